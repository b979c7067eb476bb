"""The list of fields."""

from nbody.registry import Entry, Registry

FIELDS = Registry(
    "field",
    {
        "point_mass": Entry("nbody.fields.potentials:PointMass", "a fixed mass, Φ = -G M/r"),
        "plummer": Entry("nbody.fields.potentials:Plummer", "Plummer's sphere: a cluster or a bulge"),
        "hernquist": Entry("nbody.fields.potentials:Hernquist", "Hernquist's sphere: a bulge or an elliptical galaxy"),
        "nfw": Entry("nbody.fields.potentials:NFW", "the halo of Navarro, Frenk and White"),
        "logarithmic_halo": Entry("nbody.fields.potentials:LogarithmicHalo", "a flat rotation curve"),
        "miyamoto_nagai": Entry("nbody.fields.potentials:MiyamotoNagai", "a disc of finite thickness"),
        "rotating_bar": Entry("nbody.fields.potentials:RotatingBar", "the bar of Long and Murali, which turns"),
        "post_newtonian": Entry("nbody.fields.post_newtonian:PostNewtonian", "general relativity, to order 1PN"),
        "j2": Entry("nbody.fields.planets:J2", "the oblateness of a body, J2 and J4"),
        "tides": Entry("nbody.fields.planets:Tides", "tides that others raise on a body, with a constant time lag"),
        "migration": Entry("nbody.fields.planets:Migration", "migration and damping of planets in a disc"),
        "radiation": Entry("nbody.fields.planets:Radiation", "radiation pressure and Poynting-Robertson drag on dust"),
        "companion": Entry("nbody.fields.planets:Companion", "the tide of a distant companion: Kozai's cycles"),
        "galactic_tide": Entry("nbody.fields.planets:GalacticTide", "the Galaxy's tide on comets and wide orbits"),
        "milky_way": Entry("nbody.fields.potentials:MilkyWay", "nucleus, bulge, disc and halo; needs 'units'"),
        "function": Entry(
            "nbody.fields.function:FunctionField", "your own, from Python: Simulation(…, fields=[nbody.force(f)])"
        ),
    },
    meant=dict.fromkeys(("gr", "relativity", "general_relativity", "1pn"), "post_newtonian"),
)
"""Every external field a scenario may name."""
