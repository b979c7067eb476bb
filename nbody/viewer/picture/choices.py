"""What a user can choose about the picture, by name. Listing the names imports nothing."""

from nbody.registry import Entry, Registry

_COLOURS, _MAPS = "nbody.viewer.picture.colours", "nbody.viewer.picture.palette"
_BACKGROUNDS, _SIZES = "nbody.viewer.picture.background", "nbody.viewer.picture.sizes"

COLOURS = Registry(
    "color",
    {
        "speed": Entry(f"{_COLOURS}.properties:SPEED", "the speed of each body"),
        "relative-speed": Entry(f"{_COLOURS}.properties:RELATIVE_SPEED", "its speed relative to the centre of mass"),
        "acceleration": Entry(
            f"{_COLOURS}.properties:ACCELERATION", "its acceleration, from the velocities of its frames"
        ),
        "density": Entry(f"{_COLOURS}.surroundings:DENSITY", "the mass density around it"),
        "potential": Entry(f"{_COLOURS}.surroundings:POTENTIAL", "the depth of the potential well (up to 4096 bodies)"),
        "species": Entry(f"{_COLOURS}.properties:SPECIES", "its species, each with a colour and a name"),
        "id": Entry(f"{_COLOURS}.properties:ID", "its id: bodies that started together keep one colour"),
        "mass": Entry(f"{_COLOURS}.properties:MASS", "its mass"),
        "energy-error": Entry(f"{_COLOURS}.properties:ENERGY_ERROR", "the relative energy error of the whole frame"),
    },
)
"""The quantities that colours show."""

MAPS = Registry(
    "map",
    {
        "ember": Entry(f"{_MAPS}:ember", "amber, rose, violet, blue, all of one lightness"),
        "reef": Entry(f"{_MAPS}:reef", "green, cyan, blue, magenta, all of one lightness"),
        "viridis": Entry(f"{_MAPS}:viridis", "matplotlib's viridis: from violet over green to yellow"),
        "cividis": Entry(f"{_MAPS}:cividis", "matplotlib's cividis: the same to colour-blind and other eyes"),
        "inferno": Entry(f"{_MAPS}:inferno", "matplotlib's inferno: from violet over red to yellow"),
        "plasma": Entry(f"{_MAPS}:plasma", "matplotlib's plasma: from blue over magenta to yellow"),
    },
)
"""The colour maps, all perceptually uniform."""

BACKGROUNDS = Registry(
    "background",
    {
        "dark": Entry(f"{_BACKGROUNDS}:DARK", "a night sky"),
        "light": Entry(f"{_BACKGROUNDS}:LIGHT", "a pale page on a screen"),
        "print": Entry(f"{_BACKGROUNDS}:PRINT", "white paper"),
    },
)

SIZES = Registry(
    "sizes",
    {
        "auto": Entry(f"{_SIZES}:automatic", "by mass up to 64 bodies, else equal"),
        "equal": Entry(f"{_SIZES}:equal", "the same disc and the same light for each body"),
        "mass": Entry(f"{_SIZES}:by_mass", "heavier bodies have larger discs (the radius grows with the cube root)"),
        "flux": Entry(f"{_SIZES}:by_flux", "light in proportion to the mass"),
    },
)
