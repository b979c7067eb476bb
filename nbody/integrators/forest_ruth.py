"""Forest and Ruth's scheme: symplectic, time-reversible, order 4, three force evaluations per step.

The same fractions of the time step as :mod:`.yoshida4`, found independently, but the step begins and ends with a drift.
Forest & Ruth 1990, Physica D 43, 105.
"""

from nbody.integrators.table import MoveTable, leapfrogs_from_drifts, table
from nbody.integrators.yoshida4 import W0, W1


class ForestRuth(MoveTable):
    """The drift-first partner of yoshida4."""

    facts = table(leapfrogs_from_drifts(W1, W0, W1), order=4, source="Forest & Ruth 1990")
