"""McLachlan and Atela's optimal scheme of order 4: symplectic, four force evaluations per step.

Kicks and drifts alternate, kick first; the coefficients minimize the error term of order dt⁵ for forces that depend on
positions only. It is not time-reversible. McLachlan & Atela 1992, Nonlinearity 5, 541, table 2.
"""

from nbody.integrators.integrator import Move
from nbody.integrators.table import FORCE, MoveTable, table

KICKS = (0.1344961992774310892, -0.2248198030794208058, 0.7563200005156682911, 0.3340036032863214255)
DRIFTS = (0.5153528374311229364, -0.085782019412973646, 0.4415830236164665242, 0.1288461583653841854)


class McLachlan4(MoveTable):
    """The smallest error per force evaluation of the schemes of order 4."""

    facts = table(
        tuple(move for b, a in zip(KICKS, DRIFTS, strict=True) for move in (FORCE, Move("kick", b), Move("drift", a))),
        order=4,
        source="McLachlan & Atela 1992",
    )
