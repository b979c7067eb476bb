"""Several processes on one run: what every rank must know and how rows are exchanged (:class:`Team`)."""

import atexit
from functools import cache

from nbody.parallel.launcher import launch
from nbody.parallel.team import ALONE, Alone, Team

__all__ = ["ALONE", "Alone", "Team", "launch", "team"]


@cache
def team() -> Team:
    """The processes that a launcher has started together with this one; :data:`ALONE` without a launcher. MPI is loaded only
    with one.

    Raises:
        InputError: the processes can't work together: mpi4py is missing, or the launcher belongs to another MPI.
    """
    from nbody.parallel.binding import choose_gpu, divide_cores, limit_to_job

    launched = launch()
    if launched is None:
        limit_to_job()
        return ALONE
    from nbody.parallel.mpi import MpiTeam

    found = MpiTeam(launched)
    atexit.register(found.abort_after_a_crash)
    choose_gpu(found.local_rank)
    divide_cores(found)
    return found
