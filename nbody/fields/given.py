"""Fields that a Python program gives: nbody's own, functions, and those of galpy and gala that have a counterpart."""

from collections.abc import Callable, Iterable, Mapping
from inspect import isfunction
from typing import Any

from nbody.errors import InputError, unknown
from nbody.fields.field import Field, VelocityField
from nbody.fields.function import Force, force
from nbody.fields.registry import FIELDS
from nbody.given import shown
from nbody.scenario import Scenario
from nbody.scenario.groups import FieldChoice
from nbody.whole_file import Notify


def field_function(name: str) -> Callable[..., FieldChoice]:
    """The function that makes a field of a name of ``FIELDS``: ``nbody.fields.NFW(mass=1.0, a=20.0)``."""

    def make(**values: Any) -> FieldChoice:
        known = FIELDS.load(name).model_fields
        for key in values:
            if key not in known:
                raise unknown("argument", key, known, f"nbody.fields.{make.__name__}: ")
        return FieldChoice(field=name, **values)

    kind = FIELDS.load(name)
    make.__name__, make.__doc__ = kind.__name__, f'{kind.__doc__}\n\n    Values may have units: ``mass="1e12 Msun"``.'
    return make


def given_fields(given: object, G: float) -> list[Any]:
    """What ``Simulation(fields=…)`` gets, as the values of a scenario.

    Args:
        given: a field or several: of :func:`field_function`, of :func:`nbody.force`, a function, a name, a group of keys,
            or a potential of galpy or gala.
        G: the gravitational constant, by which galpy's amplitudes are multiplied.

    Raises:
        InputError: something is none of these.
    """
    return [choice for each in _several(given) for choice in _choices(each, G)]


def with_functions(scenario: Scenario, given: object, notify: Notify) -> Scenario:
    """A recorded scenario in which functions of this process take the places of the recorded ones.

    Args:
        given: the functions: the recorded ones, or others with their names; if there is one, with any name. Other fields are
            in the recording.
        notify: gets a line about each that differs from the recorded one.

    Raises:
        InputError: a function is given that is not recorded.
    """
    functions = [each for each in _several(given) if isinstance(each, Force) or _is_function(each)]
    left = [each if isinstance(each, Force) else force(each) for each in functions]
    fields = list(scenario.fields or ())
    several = len(left) > 1 or [each.field for each in fields].count("function") > 1
    for k, recorded in enumerate(fields):
        old = recorded.options
        same = [each for each in left if each.options["digest"] == old.get("digest")]
        same = same or [each for each in left if each.name == old.get("name") or not several]
        if recorded.field != "function" or not same:
            continue
        if any(same[0].options[key] != old.get(key) for key in ("digest", "values")):
            notify(f"warning: the function '{same[0].name}' is not the recorded one, or refers to other values")
        fields[k] = same[0]
        left = [each for each in left if each is not same[0]]
    if left:
        raise InputError(f"fields: the recording has no function '{left[0].name}'; leave it out, or give its name to it")
    return scenario.with_keywords({"fields": fields}) if given else scenario


def _several(given: object) -> Iterable[Any]:
    return given if isinstance(given, list | tuple) else () if given is None else (given,)


def _is_function(given: object) -> bool:
    return isfunction(getattr(given, "py_func", given))  # also one that Numba has compiled


def _choices(given: Any, G: float) -> list[Any]:
    if isinstance(given, FieldChoice):
        return [given.renewed() if isinstance(given, Force) else given]
    if isinstance(given, str):
        return [given]
    if isinstance(given, Mapping) and not any(hasattr(each, "parameters") for each in given.values()):
        return [given]
    if _is_function(given):
        return [force(given)]
    if isinstance(given, Field | VelocityField):
        names = [name for name in FIELDS if FIELDS.load(name) is type(given)]
        return [FieldChoice(field=names[0], **given.model_dump())] if names else _refuse(given)
    from nbody.fields.foreign import counterparts

    return counterparts(given, G) or _refuse(given)


def _refuse(given: object) -> list[Any]:
    raise InputError(
        f"fields: {shown(given)} is no field; give nbody.fields.NFW(mass=…, a=…) or another one of 'nbody list fields', "
        "nbody.force(function), or a potential of galpy or gala that has a counterpart there"
    )
