"""The base class of schemes for few bodies: compiled loops over steps with their own forces, on the CPU in float64."""

import math
from typing import Any

import numpy as np

from nbody.errors import InputError
from nbody.forces.direct.cpu_few import inlines_sums
from nbody.forces.engine import Engine, device_of
from nbody.forces.layers.fields import fields_of
from nbody.forces.problem import Problem
from nbody.integrators.integrator import Integrator, Motion
from nbody.state import Outputs

BEGIN, LENGTH, END, NEXT = range(4)
"""Places in the clock of ``ias15``: when its last step begins, how long it is, when it ends, and the length of the next one.
Before the first step the length is 0, or :data:`UNKNOWN`: the state is where it begins."""

UNKNOWN = -1.0


class OwnForces(Integrator):
    """A scheme that computes the forces itself. The engine loads the state, and computes the energies of recorded frames."""

    def work(self, motion: Motion, steps: int, outputs: Outputs = Outputs.ACCELERATION) -> int:
        return motion.engine.work(motion.state, outputs) if outputs is not Outputs.ACCELERATION else 0


class FewBodies(OwnForces):
    """A scheme whose kernel makes many steps without returning to Python."""

    @classmethod
    def supports(cls, engine: type[Engine] | Engine, problem: Problem) -> str:
        if device_of(engine) != "cpu":
            return "this scheme computes its own forces, on the CPU"
        return super().supports(engine, problem) or float64_alone(problem)


def in_one_call(motion: Motion, in_fields: bool = False) -> bool:
    """True if a compiled loop makes the steps of a scheme: the engine's sums for few bodies can be a part of it.
    ``in_fields``: external fields can, too."""
    (engine, state), fields = motion, fields_of(motion.engine)
    return inlines_sums(engine, state) and (fields is None or (in_fields and fields.in_files))


def per_c2(motion: Motion) -> float:
    """1/c² of the post-Newtonian term; 0 without it. Raises InputError if the bodies can't have it."""
    fields = fields_of(motion.engine)
    if fields is None or fields.velocity_field is None:
        return 0.0
    if not motion.state.values("mass", copy=False)[0].max() > 0:
        raise InputError("fields: post_newtonian needs a body with mass")
    return fields.velocity_field.strength()


def float64_alone(problem: Problem) -> str:
    """Why a scheme that computes in float64 cannot have another precision."""
    return "" if problem.precision == "float64" else "this scheme computes in float64"


def components(rows: np.ndarray) -> np.ndarray:
    """(N, D) rows as (3, N) components; in 2-D the third one is zero."""
    found = np.zeros((3, len(rows)))
    found[: rows.shape[1]] = rows.T
    return found


def require_star(motion: Motion) -> None:
    """Raise an InputError unless body 0 is the heaviest: the need of maps, which move planets about a star. A star whose
    planets have all merged with it moves straight."""
    state: Any = motion.state
    if state.mass[0] <= state.mass[1:].max(initial=0.0):
        raise InputError("initial: this scheme moves planets about a star; body 0 must be the heaviest")


def shortest_time(motion: Motion) -> float:
    """The shortest time scale of all pairs, min(r/|v|, √(r³/G(m_i + m_j))), with softened distances r; infinity if there is
    none."""
    state: Any = motion.state
    gravity, shortest = motion.engine.gravity, math.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        for i in range(1, state.count):
            d, v = state.position[:i] - state.position[i], state.velocity[:i] - state.velocity[i]
            r2, mu = (d * d).sum(axis=1) + gravity.length2, gravity.G * (state.mass[:i] + state.mass[i])
            times = np.fmin(r2 / (v * v).sum(axis=1), r2**1.5 / mu)
            shortest = min(shortest, math.sqrt(np.nanmin(times[r2 > 0], initial=math.inf)))
    return shortest
