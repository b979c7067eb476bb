"""The list of the generators.

To add one, write a subclass of :class:`~nbody.initial.generator.Generator`, and add a line here and a preset to
``scenarios/``.
"""

from nbody.registry import Entry, Registry

GENERATORS = Registry(
    "generator",
    {
        "lecture": Entry("nbody.initial.simple:Lecture", "the lecture's spinning disc, in a plane"),
        "plummer": Entry("nbody.initial.plummer:PlummerSphere", "a star cluster in equilibrium (Plummer's sphere)"),
        "king": Entry("nbody.initial.spheres:King", "a globular cluster with a tidal radius (King's model)"),
        "hernquist": Entry("nbody.initial.spheres:HernquistSphere", "an elliptical galaxy or a bulge"),
        "isochrone": Entry("nbody.initial.spheres:Isochrone", "Hénon's isochrone sphere"),
        "nfw": Entry("nbody.initial.spheres:NFWHalo", "a dark halo (Navarro, Frenk & White), with an end"),
        "sphere": Entry("nbody.initial.spheres:ProfileSphere", "a sphere in equilibrium with any density, profile: FORMULA"),
        "exponential_disk": Entry(
            "nbody.initial.exponential_disk:ExponentialDisk", "a disc galaxy with Toomre's Q, bulge and halo"
        ),
        "galaxy_collision": Entry("nbody.initial.galaxy_collision:GalaxyCollision", "two disc galaxies on an orbit"),
        "cold_collapse": Entry("nbody.initial.simple:ColdCollapse", "a uniform sphere with too little motion to stand"),
        "uniform": Entry("nbody.initial.simple:UniformBox", "a uniform box"),
        "gaussian": Entry("nbody.initial.simple:GaussianCloud", "a normally distributed cloud"),
        "kepler": Entry("nbody.initial.few:Kepler", "two bodies on an ellipse"),
        "figure_eight": Entry("nbody.initial.few:FigureEight", "three bodies that follow each other on one curve"),
        "pythagorean": Entry("nbody.initial.few:Pythagorean", "Burrau's three bodies at rest, masses 3, 4 and 5"),
        "lagrange_triangle": Entry("nbody.initial.few:LagrangeTriangle", "three bodies on an equilateral triangle"),
        "solar_system": Entry("nbody.initial.solar:SolarSystem", "Sun, planets, Pluto and Moon in 1969 (JPL DE405)"),
        "outer_solar_system": Entry("nbody.initial.solar:OuterSolarSystem", "the Sun and the outer planets in 1994"),
        "planets": Entry("nbody.initial.planets:Planets", "bodies from orbital elements, bodies: [{m: 1}, {m: 0, a: 1}]"),
        "planetesimals": Entry("nbody.initial.annulus:Planetesimals", "a disc of small bodies around a star"),
        "ring": Entry("nbody.initial.annulus:Ring", "a thin ring around a planet"),
    },
    renamed={"disk": "lecture"},
)
"""Every generator a scenario may name."""
