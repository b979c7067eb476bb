"""Checks for numerical problems: before a run, one line of advice for each; during it, for numbers that are not finite."""

import math

import numpy as np

from nbody.errors import InputError, RunFailed
from nbody.forces.engine import Engine
from nbody.forces.range import check_range, farthest
from nbody.integrators.integrator import Integrator
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.run.precision import lost_in_float32
from nbody.scenario import Scenario
from nbody.state import Frame

SUMMED = ("the kinetic energy", "the potential", *["the momentum"] * 3, *["the angular momentum"] * 3)
"""What the sums of a frame are; see :mod:`nbody.state.sums`."""


@np.errstate(all="ignore")
def doubts(scenario: Scenario, engine: type[Engine], integrator: Integrator, particles: Particles) -> list[str]:
    """Possible numerical problems with these bodies in the run's precision, one line each. Raises InputError: numbers
    beyond the range of the precision; two bodies in the same place (in this precision) and no softening, whose energy
    is infinite; or a time step in which they move so far that nothing is known of them."""
    gravity, precision = scenario.gravity, scenario.precision
    dt = math.inf if integrator.facts.adaptive else abs(integrator.dt)
    logs = check_range(engine, gravity, precision, particles, "", dt, integrator.facts.power_of_dt)
    stored = np.float32 if precision == "float32" else np.float64
    position = particles.position.astype(stored)
    if scenario.ensemble:  # only bodies of one system may not be in the same place
        systems = np.repeat(np.arange(scenario.ensemble.count), particles.count // scenario.ensemble.count)
        position = np.column_stack((position, systems))
    if gravity.length2 == 0 and (pair := _coincident(position)):
        raise InputError(_same_place(pair) + "; move one, or add a softening (gravity: {softening: plummer, length: …})")
    _refuse_long_step(dt, float(np.finfo(stored).eps), logs, scenario)
    found = []
    if scenario.fields and "escapers" in (scenario.record.observables or ()):
        found.append("escapers: counted by the bodies' own gravity; the external fields, which may hold them, are left out")
    facts, rule = integrator.facts, scenario.collisions and scenario.collisions.rule
    if rule == "bounce" and facts.order > 2 and (facts.lengths == "individual" or not facts.adaptive):
        found.append(
            "collisions: a bounce inside a step errs by dt², although this scheme has a higher order; steps of ias15, and "
            "of hermite4 with eta, end at the contact"
        )
    if (extent := float(np.ptp(particles.position, axis=0).max())) > (most := farthest(engine, precision)):
        found.append(
            f"the bodies are {extent:.1e} apart, and in {precision} this engine takes 1/distance³ beyond {most:g} "
            "for zero; use larger units, --engine cpu, or --precision float64"
        )
    if precision == "float32":
        found += [f"{lost}; {other}take --precision auto" for lost, other in lost_in_float32(scenario, particles)]
    return found


def _refuse_long_step(dt: float, eps: float, logs: dict[str, float], scenario: Scenario) -> None:
    """Refuse a step in which a body moves so far that adding its old position changes nothing."""
    if not {"dt", "r", "x"} <= logs.keys():
        return
    speeds = [logs["v"]] if "v" in logs else []
    if "G" in logs:  # after the first steps, of bodies at rest
        speeds.append((logs["G"] + logs["M"] - logs["r"]) / 2)
    if speeds and max(speeds) + logs["dt"] + math.log10(eps) > max(logs["x"], logs["r"]):
        raise InputError(
            f"{scenario.where('integrator.dt')}in a step of {dt:g} the bodies move 1e{max(speeds) + logs['dt']:+.0f}, "
            "beside which their positions are lost to rounding; use a smaller time step"
        )


def _coincident(position: np.ndarray) -> tuple[int, int] | None:
    """The numbers of two bodies in the same place."""
    order = np.lexsort(position.T)
    rows = position[order]
    same = (rows[1:] == rows[:-1]).all(axis=1)
    if not same.any():
        return None
    k = int(np.argmax(same))
    first, second = sorted((int(order[k]), int(order[k + 1])))
    return first, second


def _same_place(pair: tuple[int, int]) -> str:
    return (
        f"particles {pair[0]} and {pair[1]} (counted from 0) are in the same place, and there is no softening: their "
        "energy is infinite"
    )


def check_finite(frame: Frame, gravity: Gravity, own: str = "") -> None:
    """Raise RunFailed if a number of the state is a NaN or an infinity, with the step, the particles and the likely
    cause; ``own``: the name of a user's force, which may be it."""
    if all(map(math.isfinite, frame.sums.tolist())):  # for eight numbers four times as fast as NumPy
        return
    step, rows = frame.step, np.arange(len(frame.position))
    if frame.slots is not None:
        rows = frame.slots.left
    if gravity.length2 == 0 and (pair := _coincident(frame.position[rows])):
        pair = int(rows[pair[0]]), int(rows[pair[1]])
        raise RunFailed(f"step {step}: {_same_place(pair)}; add a softening (softening: plummer)")
    what = next(name for name, total in zip(SUMMED, frame.sums, strict=True) if not math.isfinite(total))
    for name in ("position", "velocity"):
        sound = np.isfinite(getattr(frame, name)).all(axis=1)
        if not sound.all():
            what = f"the {name} of particle {int(np.argmin(sound))}"
            break
    if step == 0:
        cause = "a mass, a distance or G is too large for the precision; use other units, or --precision float64"
    elif gravity.length2:
        cause = "a time step too large (try a smaller --dt)"
    else:
        cause = "a close encounter without softening, or a time step too large (try a smaller --dt, or softening: plummer)"
    if own:
        cause = f"the force '{own}' (does it divide by 0 somewhere?), or {cause}"
    raise RunFailed(f"step {step}: {what} is no longer a finite number; likely {cause}")
