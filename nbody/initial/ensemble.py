"""The systems of an ensemble: the scenario of each, and the bodies of all."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from nbody.errors import InputError
from nbody.given import shown
from nbody.initial.combine import concatenated
from nbody.particles import Particles
from nbody.scenario import Scenario
from nbody.scenario.ensemble import FEWEST_BODIES, MOST_BODIES, keys_of
from nbody.scenario.values import arithmetic


def member(scenario: Scenario, number: int) -> Scenario:
    """The scenario of one system alone, without ``ensemble``. Raises InputError: there is no such system, or it has a wrong
    value; the line names system, path and value."""
    (found,) = members(scenario, range(number, number + 1))
    return found


def members(scenario: Scenario, numbers: range | None = None) -> Iterator[Scenario]:
    """The scenarios of all systems, or of some."""
    numbers, varied = _varied(scenario, numbers)
    values = {key: value for key, value in scenario.source.values.items() if key != "ensemble"}
    alone = replace(scenario.source, values=values)
    for at, k in enumerate(numbers):
        source = alone
        for path, each in varied.items():
            value: Any = each[at]
            try:
                source = source.with_option(keys_of(path), f"ensemble.vary: system {k}: {path} = {shown(value)}", value)
            except (AttributeError, TypeError):
                raise InputError(f"{scenario.where('ensemble.vary')}{path}: there is no such key") from None
        yield Scenario.from_source(source)


def _varied(scenario: Scenario, numbers: range | None) -> tuple[range, dict[str, list[Any]]]:
    """The numbers of the systems, and the values of each path. Raises InputError."""
    ensemble = scenario.ensemble
    if ensemble is None:
        raise InputError("ensemble: the scenario has no 'ensemble'")
    if numbers is not None and not (numbers.start >= 0 and numbers.stop <= ensemble.count):
        raise InputError(f"ensemble: there is no system {numbers.start}; there are {ensemble.count}, counted from 0")
    if not ensemble.vary and not hasattr(scenario.initial, "seed"):
        raise InputError(
            f"{scenario.where('ensemble')}vary is missing: bodies from a file have no seed, so all systems would be the same"
        )
    with arithmetic(scenario.source, ("ensemble",)):
        numbers = numbers or range(ensemble.count)
        return numbers, ensemble.values(int(getattr(scenario.initial, "seed", 0)), numbers)


def vary_numbers(scenario: Scenario, numbers: range | None) -> dict[tuple[int, str], np.ndarray] | None:
    """The values of all paths if these are numbers of bodies, such as ``initial.bodies.1.a``: (S,) each, by the body's
    number and the key; else None."""
    from nbody.initial.planets import VARIED

    _, varied = _varied(scenario, numbers)
    found = {}
    for path, values in varied.items():
        _, *keys = keys_of(path)
        if len(keys) != 3 or keys[0] != "bodies" or not keys[1].isdecimal() or keys[2] not in VARIED:
            return None
        if not all(type(each) in (int, float) for each in values):
            return None
        found[int(keys[1]), keys[2]] = np.array(values, float)
    return found


def make_systems(scenario: Scenario, make: Callable[[Scenario], Particles], numbers: range | None = None) -> Particles:
    """The bodies of all systems, or of some, one after the other; ``make`` makes those of one. Raises InputError: systems
    with different numbers of bodies, or different species, or too many bodies."""
    parts: list[Particles] = []
    for k, alone in enumerate(members(scenario, numbers), numbers.start if numbers else 0):
        bodies = make(alone)
        if not parts:
            check_bodies(scenario, bodies.count)
        elif bodies.count != parts[0].count or bodies.species_names != parts[0].species_names:
            what = "bodies" if bodies.count != parts[0].count else "species"
            raise InputError(
                f"{scenario.where('ensemble')}system {k} has other {what} than those before; all systems have the same "
                "number of bodies, of the same species"
            )
        parts.append(bodies)
    return concatenated(parts, [bodies.species for bodies in parts], parts[0].species_names)


def check_bodies(scenario: Scenario, bodies: int) -> None:
    """Raise an InputError if a system of an ensemble cannot have this number of bodies."""
    if not FEWEST_BODIES <= bodies <= MOST_BODIES:
        raise InputError(
            f"{scenario.where('ensemble')}each system has {FEWEST_BODIES} to {MOST_BODIES} bodies, got {bodies}; use fewer, "
            "or one run for each system"
        )
