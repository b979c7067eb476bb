"""What a user can choose about the picture: one value, made from options, changed by keys, followed by the drawing.

Listing the names imports nothing of what they stand for (:mod:`.quantities`, :mod:`.styles`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from nbody.errors import InputError
from nbody.given import converted, number, whole
from nbody.registry import Entry, Registry
from nbody.viewer.sources.camera import FEW

_QUANTITIES, _STYLES = "nbody.viewer.picture.quantities", "nbody.viewer.picture.styles"

COLOURS = Registry(
    "color",
    {
        "speed": Entry(f"{_QUANTITIES}:SPEED", "the speed of each body"),
        "relative-speed": Entry(f"{_QUANTITIES}:RELATIVE_SPEED", "its speed relative to the centre of mass"),
        "acceleration": Entry(f"{_QUANTITIES}:ACCELERATION", "its acceleration, from the velocities of its frames"),
        "density": Entry(f"{_QUANTITIES}:DENSITY", "the mass density around it"),
        "potential": Entry(f"{_QUANTITIES}:POTENTIAL", "the depth of the potential well (a tree, for many bodies)"),
        "species": Entry(f"{_QUANTITIES}:SPECIES", "its species, each with a colour and a name"),
        "id": Entry(f"{_QUANTITIES}:ID", "its id: bodies that started together keep one colour"),
        "mass": Entry(f"{_QUANTITIES}:MASS", "its mass"),
        "energy-error": Entry(f"{_QUANTITIES}:ENERGY_ERROR", "the relative energy error of the whole frame"),
    },
)
"""The quantities that colours show."""

MAPS = Registry(
    "map",
    {
        "ember": Entry(f"{_STYLES}:ember", "amber, rose, violet, blue, all of one lightness"),
        "reef": Entry(f"{_STYLES}:reef", "green, cyan, blue, magenta, all of one lightness"),
        "viridis": Entry(f"{_STYLES}:viridis", "matplotlib's viridis: from violet over green to yellow"),
        "cividis": Entry(f"{_STYLES}:cividis", "matplotlib's cividis: the same to colour-blind and other eyes"),
        "inferno": Entry(f"{_STYLES}:inferno", "matplotlib's inferno: from violet over red to yellow"),
        "plasma": Entry(f"{_STYLES}:plasma", "matplotlib's plasma: from blue over magenta to yellow"),
    },
)
"""The colour maps, all perceptually uniform."""

BACKGROUNDS = Registry(
    "background",
    {
        "dark": Entry(f"{_STYLES}:DARK", "a night sky"),
        "light": Entry(f"{_STYLES}:LIGHT", "a pale page on a screen"),
        "print": Entry(f"{_STYLES}:PRINT", "white paper"),
    },
)

SIZES = Registry(
    "sizes",
    {
        "auto": Entry(f"{_STYLES}:automatic", "by mass up to 64 bodies, else equal"),
        "equal": Entry(f"{_STYLES}:equal", "the same disc and the same light for each body"),
        "mass": Entry(f"{_STYLES}:by_mass", "heavier bodies have larger discs (the radius grows with the cube root)"),
        "flux": Entry(f"{_STYLES}:by_flux", "light in proportion to the mass"),
    },
)

TRAILS = ("auto", "none", "all")  # the words that trails can be, besides a list of ids

DIMMEST, BRIGHTEST = -8.0, 8.0
LONGEST_TRAIL, TRAIL_FRAMES = 10_000, 200


def _option(default: str | float, help: str, names: Registry | None = None) -> Any:
    return field(default=default, metadata={"help": help} | ({"names": names} if names else {}))


@dataclass(frozen=True)
class Look:
    """How the bodies are drawn. The defaults give the plain picture: colours by speed on a dark sky.

    Each field is an option of ``nbody view`` and ``nbody movie``, with its help text.

    Raises:
        InputError: a name is unknown or a number out of range; the line begins with the option.
    """

    color: str = _option("speed", "What colours show", COLOURS)
    map: str = _option("ember", "The colour map", MAPS)
    background: str = _option("dark", "The background", BACKGROUNDS)
    sizes: str = _option("auto", "Sizes of the bodies", SIZES)
    trails: str = _option("auto", f"Trails: none, all, ids like 0,3,7, or auto (all, up to {FEW} bodies).")
    trail_frames: int = _option(TRAIL_FRAMES, "The number of earlier frames that trails go through.")
    vectors: bool = _option(False, "Arrows along the velocities.")
    contours: bool = _option(False, "Lines of equal surface density, for many bodies.")
    axes: bool = _option(False, "The axes x, y, z with their lengths.")
    scale_bar: bool = _option(False, "A bar with its length.")
    smooth: bool = _option(False, "Smooth light where there are few bodies, for very many.")
    auto_exposure: bool = _option(
        True, "Faint parts are seen beside bright ones; else the first frame sets the brightness of all."
    )
    exposure: float = _option(0.0, "Brighter (positive) or darker; 1 doubles the light.")

    def __post_init__(self) -> None:
        for each in fields(self):
            if names := each.metadata.get("names"):
                names.check(getattr(self, each.name), f"{option(each.name)}: ")
        self.trail_ids()
        if not 1 <= converted("--trail-frames: ", whole, self.trail_frames) <= LONGEST_TRAIL:
            raise InputError(f"--trail-frames {self.trail_frames}: must be 1 to {LONGEST_TRAIL}")
        if not DIMMEST <= converted("--exposure: ", number, self.exposure) <= BRIGHTEST:
            raise InputError(f"--exposure {self.exposure:g}: must be {DIMMEST:g} to {BRIGHTEST:g}")

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Look":
        """A look from values by field name; other keys are ignored, and so are values of None."""
        if options.get("trails") == "light":  # of version 0.2
            options = {**options, "trails": "all"}
        return cls(**{each.name: options[each.name] for each in fields(cls) if options.get(each.name) is not None})

    def trail_ids(self) -> tuple[int, ...]:
        """The ids of the bodies that :attr:`trails` names; empty if it is one of the words."""
        if self.trails in TRAILS:
            return ()
        try:
            return tuple(int(word) for word in self.trails.split(","))
        except (ValueError, AttributeError):
            raise InputError(f"--trails {self.trails}: must be {', '.join(TRAILS)} or ids like 0,3,7") from None

    def next(self, name: str) -> "Look":
        """A field with the next of its names; or on instead of off, and off instead of on."""
        now, names = getattr(self, name), self.__dataclass_fields__[name].metadata.get("names", TRAILS)
        if isinstance(now, bool):
            return replace(self, **{name: not now})  # type: ignore[arg-type]
        known = list(names)
        return replace(self, **{name: known[(known.index(now) + 1) % len(known)] if now in known else known[0]})


def option(name: str) -> str:
    """The command line's name of a field."""
    return f"--{name.replace('_', '-')}"
