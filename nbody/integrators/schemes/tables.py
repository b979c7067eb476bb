"""The schemes that are tables of moves: kicks and drifts over fractions of the time step.

All but :class:`Taylor` are symplectic (Hairer, Lubich & Wanner, Geometric Numerical Integration, I.1.4). To add one, add a
table here and a line to ``INTEGRATORS``.
"""

from nbody.integrators.facts import Move
from nbody.integrators.schemes.table import FORCE, MoveTable, leapfrogs, leapfrogs_from_drifts, table
from nbody.state.moves import MoveKind

KICK, DRIFT, DRIFT_TAYLOR = MoveKind.KICK, MoveKind.DRIFT, MoveKind.DRIFT_TAYLOR


class Taylor(MoveTable):
    """The scheme of ``scenarios/lecture.yaml``: the update of the position has order 2, that of the velocity order 1, both
    with the force at the beginning: x += v dt + a dt²/2, v += a dt. Good enough for a demonstration, not for an orbit."""

    facts = table(
        (FORCE, Move(DRIFT_TAYLOR), Move(KICK)),
        order=1,
        source="the lecture; Taylor's series cut after dt² and dt",
        power_of_dt=2,
    )


class Leapfrog(MoveTable):
    """The default: v += a dt/2, x += v dt, a = a(x), v += a dt/2. The force at the end of a step is the force at the start
    of the next, so only the first step evaluates it twice. Time-reversible."""

    facts = table(leapfrogs(1.0), order=2, source="Verlet 1967")


class LeapfrogDKD(MoveTable):
    """The leapfrog of REBOUND and others: x += v dt/2, a = a(x), v += a dt, x += v dt/2. A recorded frame costs one more
    force evaluation, for its energy. Time-reversible."""

    facts = table(leapfrogs_from_drifts(1.0), order=2, source="Verlet 1967")


W1 = 1 / (2 - 2 ** (1 / 3))
W0 = 1 - 2 * W1
"""The fractions w₁, w₀, w₁ add up to 1, their cubes to zero, so that the leapfrog's error of order dt³ cancels."""


class Yoshida4(MoveTable):
    """Three leapfrogs (Physics Letters A 150, 262). Long steps, small errors; needs smooth forces. Time-reversible."""

    facts = table(leapfrogs(W1, W0, W1), order=4, source="Yoshida 1990")


class ForestRuth(MoveTable):
    """The fractions of :class:`Yoshida4`, found independently, with the drift first (Physica D 43, 105). Time-reversible."""

    facts = table(leapfrogs_from_drifts(W1, W0, W1), order=4, source="Forest & Ruth 1990")


KICKS = (0.1344961992774310892, -0.2248198030794208058, 0.7563200005156682911, 0.3340036032863214255)
DRIFTS = (0.5153528374311229364, -0.085782019412973646, 0.4415830236164665242, 0.1288461583653841854)
"""The coefficients that minimize the error term of order dt⁵ for forces that depend on positions only (Nonlinearity 5, 541,
table 2)."""


class McLachlan4(MoveTable):
    """The smallest error per force evaluation of the schemes of order 4. It is not time-reversible."""

    facts = table(
        tuple(move for b, a in zip(KICKS, DRIFTS, strict=True) for move in (FORCE, Move(KICK, b), Move(DRIFT, a))),
        order=4,
        source="McLachlan & Atela 1992",
    )


SIX = (0.78451361047755726382, 0.23557321335935813368, -1.17767998417887100695)
"""w₃, w₂ and w₁ of Yoshida's solution A (Physics Letters A 150, 262, table 1): w₃ w₂ w₁ w₀ w₁ w₂ w₃ add up to 1, and the
error terms of order dt³ and dt⁵ cancel."""


class Yoshida6(MoveTable):
    """Seven leapfrogs, for smooth forces and small errors: pays where ``yoshida4`` would need steps a third as long.
    Time-reversible."""

    facts = table(leapfrogs(*SIX, 1 - 2 * (SIX[2] + SIX[1] + SIX[0]), *SIX[::-1]), order=6, source="Yoshida 1990")
