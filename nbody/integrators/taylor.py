"""The lecture's scheme: a second-order position update, then a first-order velocity update, both with the old force.

    x += v dt + a dt²/2,    v += a dt,    a = a(x before the step)

The error of the velocity makes the scheme first order: good enough for a demonstration, not for an orbit.
"""

from nbody.integrators.integrator import Move
from nbody.integrators.table import FORCE, MoveTable, table


class Taylor(MoveTable):
    """The scheme of ``scenarios/lecture.yaml``."""

    facts = table(
        (FORCE, Move("drift_taylor"), Move("kick")),
        order=1,
        source="the lecture; Taylor's series cut after dt² and dt",
        power_of_dt=2,
    )
