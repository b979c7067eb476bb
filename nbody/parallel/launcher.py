"""The launcher that has started this process as one of several (``mpirun``, ``srun``), by its environment variables.

Nothing is imported for this: a process that was started alone never loads MPI.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

ALONE_VARIABLE = "NBODY_RANKS"
"""``NBODY_RANKS=1`` lets each process of a launcher run alone: independent runs side by side."""

SRUN = "srun"

VARIABLES = (
    ("Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("mpirun or srun (PMI)", "PMI_SIZE", "PMI_RANK"),  # MPICH's mpirun on a cluster has variables of a srun too
    (SRUN, "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),  # a batch script without srun has SLURM_NTASKS
    ("mpirun or srun (PMIx)", "", "PMIX_RANK"),
)
"""Launchers, with the variables of the number of processes and of this one's rank."""


class JobLaunch(NamedTuple):
    """What a launcher says: its name, this process's rank, and the number of processes (0: it does not say)."""

    launcher: str
    rank: int
    size: int


def launch(environment: Mapping[str, str] = os.environ) -> JobLaunch | None:
    """The launcher of this process; None if it was started alone."""
    if environment.get(ALONE_VARIABLE) == "1":
        return None
    for name, size, rank in VARIABLES:
        counted, own = environment.get(size, "0"), environment.get(rank, "")
        if own.isdecimal() and counted.isdecimal() and (size in environment or not size):
            return None if counted == "1" else JobLaunch(name, int(own), int(counted))
    return None
