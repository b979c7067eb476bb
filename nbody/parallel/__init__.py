"""Several processes on one run: what every rank must know and how rows are exchanged (:class:`Team`)."""

from nbody.parallel.team import ALONE, Alone, Team

__all__ = ["ALONE", "Alone", "Team"]
