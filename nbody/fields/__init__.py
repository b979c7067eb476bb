"""External fields: gravity of what is not simulated, such as the galaxy around a cluster. ``FIELDS`` lists them.

A scenario names them under ``fields``; a Python program gives them as ``Simulation(particles, fields=[…])``: nbody's own,
``nbody.fields.NFW(mass=1, a=20)``; functions, ``nbody.force(f)``; potentials of galpy and gala that have a counterpart.
Their accelerations are added to those between the bodies, on every engine and in every precision; their energy Σ m Φ is part
of the potential energy. To add a field, write a subclass of :class:`~nbody.fields.field.Field` and a line in ``FIELDS``.
``post_newtonian`` is a force between the bodies that depends on their velocities
(:class:`~nbody.fields.field.VelocityField`); the schemes that know it compute it themselves.
"""

from collections.abc import Callable

from nbody.errors import InputError
from nbody.fields.added import AddedFields
from nbody.fields.field import Field, VelocityField
from nbody.fields.registry import FIELDS as FIELDS
from nbody.scenario import Scenario
from nbody.scenario.groups import FieldChoice
from nbody.scenario.model import component
from nbody.scenario.values import arithmetic


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
    if not (fields := chosen_fields(scenario)):
        return None
    with arithmetic(scenario.source, ("fields",)):
        found = AddedFields(fields, scenario.gravity.G, scenario.ensemble.count if scenario.ensemble else 1)
    if scenario.gravity.dimensions == 3 and (flat := [term.function for term in found.terms if term.returns == 2]):
        name = flat[0].__name__.strip("<>")
        raise InputError(f"force '{name}': returns (ax, ay), and the run is in 3-D; return (ax, ay, az)")
    return found


def __dir__() -> list[str]:
    return [*globals(), *_named()]


def _named() -> dict[str, str]:
    """The names of the fields by those of their classes."""
    return {FIELDS[each].target.partition(":")[2]: each for each in FIELDS if each != "function"}


def __getattr__(name: str) -> Callable[..., FieldChoice]:
    """``nbody.fields.NFW``: a function that makes a field, by the name of its class or that of a scenario."""
    named = _named() | {each: each for each in FIELDS}
    if name.startswith("_") or name not in named:
        raise AttributeError(f"module 'nbody.fields' has no attribute '{name}'; its fields are {', '.join(_named())}")
    from nbody.fields.given import field_function

    return field_function(named[name])
