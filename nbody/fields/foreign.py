"""Potentials of galpy and gala that have a counterpart here, told by the names of their classes and attributes: neither
package is imported. The formulas are compared in the docstrings of :mod:`nbody.fields.potentials`."""

import math
from collections.abc import Callable, Iterable, Mapping, ValuesView
from typing import Any

from nbody.errors import InputError
from nbody.scenario.groups import FieldChoice

OF_GALPY: dict[str, Callable[[Any, float], dict[str, Any]]] = {
    "KeplerPotential": lambda p, M: {"field": "point_mass", "mass": M},
    "PlummerPotential": lambda p, M: {"field": "plummer", "mass": M, "b": p._b},
    "HernquistPotential": lambda p, M: {"field": "hernquist", "mass": M / 2, "a": p.a},
    "NFWPotential": lambda p, M: {"field": "nfw", "mass": M, "a": p.a},
    "MiyamotoNagaiPotential": lambda p, M: {"field": "miyamoto_nagai", "mass": M, "a": p._a, "b": p._b},
    "LogarithmicHaloPotential": lambda p, M: {
        "field": "logarithmic_halo", "v": math.sqrt(p._amp), "core": math.sqrt(p._core2), "q": p._q,
    },
    "SoftenedNeedleBarPotential": lambda p, M: {
        "field": "rotating_bar", "mass": M, "a": p._a, "b": p._b, "c": math.sqrt(p._c2),
        "angle": math.degrees(p._pa), "omega": p._omegab,
    },
}  # fmt: skip
"""By class: the field of a potential with the amplitude G M, and M."""

OF_GALA = {
    "KeplerPotential": ("point_mass", {"m": "mass"}),
    "PlummerPotential": ("plummer", {"m": "mass", "b": "b"}),
    "HernquistPotential": ("hernquist", {"m": "mass", "c": "a"}),
    "NFWPotential": ("nfw", {"m": "mass", "r_s": "a"}),
    "MiyamotoNagaiPotential": ("miyamoto_nagai", {"m": "mass", "a": "a", "b": "b"}),
    "LogarithmicPotential": ("logarithmic_halo", {"v_c": "v", "r_h": "core", "q3": "q"}),
}
"""By class: the field, and its names of gala's parameters."""

SPHERICAL = {"NFWPotential": {"a": 1, "b": 1, "c": 1}, "LogarithmicPotential": {"q1": 1, "q2": 1, "phi": 0}}
"""Parameters of gala that a counterpart does not have, and their values in it."""

UNITS = {"mass": ("solMass", "Msun"), "v": ("km/s", "km/s")}
"""By key: a unit of astropy and its name here; lengths are in kpc."""


def counterparts(potential: Any, G: float) -> list[FieldChoice]:
    """The fields that a potential of galpy or gala is the sum of; none if it is no such potential.

    Args:
        potential: one, or a sum: a list, or a ``CompositePotential``.
        G: the gravitational constant; galpy's amplitudes are G M in the units of the scenario.

    Raises:
        InputError: it has no counterpart.
    """
    name = type(potential).__name__
    each = potential.values() if isinstance(potential, Mapping) else getattr(potential, "_potlist", potential)
    if isinstance(each, list | tuple | ValuesView):
        return [field for part in each for field in counterparts(part, G)]
    if hasattr(potential, "_amp"):
        if name not in OF_GALPY or getattr(potential, "isNonAxi", False) != (name == "SoftenedNeedleBarPotential"):
            raise _without_counterpart(f"galpy's {name}", OF_GALPY)
        return [FieldChoice(**OF_GALPY[name](potential, potential._amp / G if G else 0.0))]
    if hasattr(potential, "parameters") and hasattr(potential, "units"):
        return [_of_gala(potential, name)]
    return []


def _of_gala(potential: Any, name: str) -> FieldChoice:
    given = potential.parameters
    others = SPHERICAL.get(name, {})
    turned = getattr(potential, "R", None) is not None
    if name not in OF_GALA or turned or any(float(given.get(key, value)) != value for key, value in others.items()):
        raise _without_counterpart(f"gala's {name}" + " with a rotation" * turned, OF_GALA)
    field, names = OF_GALA[name]
    values = {ours: _number(given[theirs], ours) for theirs, ours in names.items() if theirs in given}
    if getattr(potential, "origin", None) is not None:
        values["centre"] = [_number(x, "centre") for x in potential.origin]
    return FieldChoice(field=field, **values)


def _number(quantity: Any, key: str) -> Any:
    """A quantity of astropy as the text of one here; a number without a unit as it is."""
    unit = getattr(quantity, "unit", None)
    if unit is None or not str(unit) or key == "q":
        return float(getattr(quantity, "value", quantity))
    theirs, ours = UNITS.get(key, ("kpc", "kpc"))
    return f"{float(quantity.to_value(theirs))!r} {ours}"


def _without_counterpart(what: str, known: Iterable[str]) -> InputError:
    others = f"those that have one are {', '.join(known)}; else take nbody.fields.MilkyWay() or nbody.force(function)"
    return InputError(f"fields: {what} has no counterpart here; {others}")
