"""External fields: gravity of what is not simulated, such as the galaxy around a cluster. ``FIELDS`` lists them.

A scenario names them under ``fields``. Their accelerations are added to those between the bodies, on every engine and in
every precision; their energy Σ m Φ is part of the potential energy. To add a field, write a subclass of
:class:`~nbody.fields.field.Field`, and add a line to ``FIELDS``. ``post_newtonian`` is a force between the bodies that
depends on their velocities (:class:`~nbody.fields.field.VelocityField`); the schemes that know it compute it themselves.
"""

from nbody.errors import InputError
from nbody.fields.added import AddedFields
from nbody.fields.field import Field, VelocityField
from nbody.registry import Entry, Registry
from nbody.scenario import Scenario
from nbody.scenario.model import component
from nbody.scenario.values import arithmetic

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
        "post_newtonian": Entry(
            "nbody.fields.post_newtonian:PostNewtonian", "general relativity's 1PN term of the heaviest body"
        ),
        "milky_way": Entry("nbody.fields.potentials:MilkyWay", "nucleus, bulge, disc and halo; needs 'units'"),
    },
)
"""Every external field a scenario may name."""


def chosen_fields(scenario: Scenario) -> list[Field | VelocityField]:
    """The fields of a scenario with their parameters.

    Raises:
        InputError: one line about an unknown name or parameter, or a wrong value; or a field of another package that
            depends on velocities, which no scheme would compute.
    """
    found = []
    for k, chosen in enumerate(scenario.fields or ()):
        _, field = component(scenario, f"fields.{k}", chosen, FIELDS)
        if FIELDS[chosen.field].package and not isinstance(field, Field):
            where = scenario.where(f"fields.{k}.field")
            raise InputError(f"{where}'{chosen.field}' of another package is no subclass of nbody.fields.field.Field")
        assert isinstance(field, Field | VelocityField)
        found.append(field)
    return found


def added_fields(scenario: Scenario) -> AddedFields | None:
    """The sum of a scenario's fields, for :class:`nbody.forces.layers.fields.WithFields`; None if it has none."""
    fields = chosen_fields(scenario)
    with arithmetic(scenario.source, ("fields",)):
        return AddedFields(fields, scenario.gravity.G) if fields else None
