"""A trial of a scheme of another package: two bodies on an ellipse show whether its errors fall as its order says."""

import math
from functools import cache
from typing import Any

import numpy as np

from nbody.errors import InputError
from nbody.forces import ENGINES
from nbody.integrators import INTEGRATORS
from nbody.integrators.integrator import Integrator, Motion, unsupported
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.values import Group
from nbody.state import Moment

STEPS = 32
"""The steps of the coarse run over a third of the ellipse; the fine one has twice as many."""

EXACT = 1e-11
"""An error at which the order is not measured: rounding adds to it."""


def require_order(name: str, scheme: Integrator) -> None:
    """Raise an InputError if a scheme of another package moves two bodies with errors that fall less than its order says.
    Schemes of nbody, adaptive ones, and those that the referee's forces do not serve are not tried."""
    entry, facts = INTEGRATORS[name], scheme.facts
    if not entry.package or facts.adaptive:
        return
    law = Gravity(1.0, 3, "plummer", 0.05) if facts.softened else Gravity()
    if unsupported(type(scheme), ENGINES.load("reference"), law, "float64"):
        return
    coarse, fine = _errors(type(scheme), scheme._options, law)
    found = math.log2(coarse / fine) if fine > 0 and math.isfinite(coarse / fine) else 0.0
    if coarse > EXACT and found < facts.order - 0.7:
        raise InputError(
            f"scheme '{name}' of the package {entry.package} is of order {found:.1f} for two bodies on an ellipse, and it "
            f"claims order {facts.order} (its error is {coarse:.1e} after {STEPS} steps): it is wrong, or its facts are; "
            "choose another scheme, or mend this one"
        )


@cache
def _errors(kind: type[Integrator], options: Group, law: Gravity) -> tuple[float, float]:
    """The largest errors of positions after a third of an ellipse, in :data:`STEPS` steps and in twice as many."""
    end = 2 * math.pi / 3
    exact = _moved(INTEGRATORS.load("yoshida6"), None, law, end, 16 * STEPS)
    made: Any = [_moved(kind, options, law, end, steps) for steps in (STEPS, 2 * STEPS)]
    coarse, fine = (float(np.abs(position - exact).max()) for position in made)
    return coarse, fine


def _moved(kind: type[Integrator], options: Group | None, law: Gravity, end: float, steps: int) -> np.ndarray:
    x, v = np.array([[-0.13, 0, 0], [1.17, 0, 0]]), np.array([[0, -0.0734, 0], [0, 0.6604, 0]])  # e = 0.3, a = 1
    bodies = Particles(np.array([0.9, 0.1]), x, v)
    engine = ENGINES.load("reference")(law, "float64")
    motion, scheme = Motion(engine, engine.load(bodies)), kind(end / steps, options)
    motion.state.clock.set(Moment(0, 0.0))
    scheme.prepare(motion)
    scheme.start(motion)
    with np.errstate(all="ignore"):
        scheme.advance(motion, steps)
    return motion.host.position.astype(np.float64)
