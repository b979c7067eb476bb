"""Derivatives of a run's bodies: with respect to where they are now, their masses, or a value of the scenario.

They are tangent vectors, which the scheme moves with the bodies by its variational equations
(:mod:`nbody.integrators.tangents`).
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nbody.errors import InputError
from nbody.fields.field import POST_NEWTONIAN
from nbody.initial import make_particles, resolved_initial
from nbody.integrators.integrator import unsupported
from nbody.integrators.tangents import Tangents
from nbody.run.choice import asked_of_run, scheme_of
from nbody.run.schedule import FOREVER, whole_steps
from nbody.run.stepper import Stepper
from nbody.scenario import Scenario
from nbody.scenario.ensemble import keys_of
from nbody.scenario.source import index_in

STEP = 3e-3
"""Of differences of order 6 over seven values, in units of the value's scale: an error of about 1e-13."""


class Tangent(NamedTuple):
    """The derivative of bodies with respect to one number.

    Attributes:
        mass: (N,).
        position, velocity: (N, D).
    """

    mass: np.ndarray
    position: np.ndarray
    velocity: np.ndarray


def tangent(scenario: Scenario | str | Path, key: str) -> Tangent:
    """The derivative of a scenario's bodies at the beginning with respect to a number of its ``initial``, per unit of this
    number as it is written. ::

        simulation = nbody.Simulation("planets")
        by_a = nbody.tangent(simulation.scenario, "bodies.1.a")
        simulation.derivative(100, by_a).position  # how the bodies at this time depend on it

    Args:
        scenario: a scenario, its name or its file.
        key: as in ``nbody map``: ``bodies.1.a``, ``bodies.earth.m``.

    Returns:
        Differences of order 6 of the generator's bodies, with a relative error near 1e-12.

    Raises:
        InputError: there is no such number.
    """
    given = scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)
    path = key if key.startswith("initial.") else f"initial.{key}"
    value: Any = {"initial": resolved_initial(given)}
    try:
        for each in keys_of(path):
            value = value[index_in(list(value) if isinstance(value, tuple) else value, each, "tangent")]
    except (LookupError, TypeError, ValueError):
        value = None
    if isinstance(value, bool) or not isinstance(value, int | float):
        fix = "write one, as in bodies.1.a of 'generator: planets'; bodies that are given as arrays have none"
        raise InputError(f"tangent: {key}: is no number of the scenario; {fix}")

    def bodies(at: float) -> np.ndarray:
        made = make_particles(given.override([f"{path}={at!r}"], by="tangent"))
        return np.concatenate([made.mass[:, None], made.position, made.velocity], axis=1)

    step = STEP * _scale(key.rsplit(".", 1)[-1], float(value), given)
    found = _difference(bodies, float(value), step)
    dimensions = (found.shape[1] - 1) // 2
    return Tangent(found[:, 0], found[:, 1 : 1 + dimensions], found[:, 1 + dimensions :])


def _scale(name: str, value: float, scenario: Scenario) -> float:
    """The change of a value that changes bodies by as much as they are."""
    if name == "m":
        return float(make_particles(scenario).mass.sum())
    if name in ("inc", "Omega", "omega", "pomega", "f", "M", "E", "l"):
        return 30.0
    return 1.0 if name == "e" else abs(value) or 1.0


def _difference(function: Callable[[float], np.ndarray], value: float, step: float) -> np.ndarray:
    """The derivative at a value: by values on both sides of it, or on one if some do not exist."""
    refused: InputError | None = None
    for first in (-3, 0, -6):
        offsets = np.arange(first, first + 7)
        weights = np.linalg.solve(np.vander(offsets, increasing=True).T.astype(float), np.eye(7)[1])
        try:
            values = [function(value + step * float(k)) for k in offsets]
        except InputError as error:
            refused = refused or error
            continue
        return np.tensordot(weights, values - values[-first], axes=1) / step  # type: ignore[no-any-return]
    assert refused is not None
    raise refused


def derivative(stepper: Stepper, until: float, by: Tangent) -> Tangent:
    """The derivative of the bodies at a time, for that of the present ones. Raises InputError."""
    n, D = stepper.state.count, stepper.state.dimensions
    arrays = [np.asarray(each, float) for each in by] if isinstance(by, tuple) else []
    if [each.shape for each in arrays] != [(n,), (n, D), (n, D)]:
        raise InputError(f"derivative: give nbody.tangent(…) of the {n} bodies of this run, in {D} dimensions")
    mass, *vectors = arrays
    given = np.zeros((1, 2, 3, n))
    given[0, :, :D] = np.stack(vectors).transpose(0, 2, 1)
    [(x, v)] = _moved(stepper, until, given, mass[None] if mass.any() else None)
    return Tangent(mass, x[:D].T, v[:D].T)


def transition_matrix(stepper: Stepper, until: float) -> np.ndarray:
    """The derivatives of positions and velocities at a time with respect to the present ones, (2ND, 2ND). Raises
    InputError."""
    n, D = stepper.state.count, stepper.state.dimensions
    size = 2 * n * D
    given = np.zeros((size, 2, 3, n))
    given[:, :, :D] = np.eye(size).reshape(size, 2, n, D).transpose(0, 1, 3, 2)
    return _moved(stepper, until, given, None)[:, :, :D].transpose(1, 3, 2, 0).reshape(size, size)


def _moved(stepper: Stepper, until: float, given: np.ndarray, masses: np.ndarray | None) -> np.ndarray:
    """Tangent vectors of the present bodies, (M, 2, 3, N), at a time: a run of its own moves them from here."""
    setup = stepper.setup.beginning_with(stepper.particles(), stepper.ids)
    if setup.scenario.ensemble is not None:
        raise InputError("derivatives: this is an ensemble; take one of its systems (nbody.initial.ensemble.member)")
    setup = setup.towards(until, stepper.moment)
    scenario, plan = setup.scenario, setup.plan
    asked = asked_of_run(scenario, setup.bodies.count, setup.team.size, plan.backward)
    asked["of_scheme"] = asked["of_scheme"]._replace(tangents=len(given))
    reason = unsupported(type(setup.integrator), setup.engine, scenario.gravity, scenario.precision, **asked)
    if not reason and any(field.kind == POST_NEWTONIAN for field in asked["of_scheme"].fields):
        reason = "derivatives know no relativity"  # the tangent vectors of the map are those of momenta
    if not reason and masses is not None and asked["of_scheme"].fields:
        reason = "there are none with respect to masses in external fields"
    if reason:
        raise InputError(f"derivatives: {reason}")
    sides = np.ones((2, 1, 1))
    sides[1] = -1.0 if plan.backward and not setup.integrator.facts.moves else 1.0  # the velocities are turned round
    scheme = scheme_of(scenario, scenario.integrator.dt, Tangents(given=given * sides, masses=masses))
    copy = Stepper(replace(setup, plan=replace(plan, integrator=scheme)))
    copy.collisions = None
    copy.begin()
    if scheme.facts.adaptive:
        copy.advance(FOREVER, copy.sign * until)
    else:
        copy.advance(whole_steps("derivatives: ", until - copy.clock.time, copy.dt, copy.clock.time))
    found = scheme.report(copy.motion).vectors
    assert found is not None
    return found * sides
