"""Binds a rank to its cores and its GPU."""

import os
import sys

from nbody import machine
from nbody.parallel.team import Team

THREADS, CARDS = "NUMBA_NUM_THREADS", "CUDA_VISIBLE_DEVICES"


def divide_cores(ranks: Team) -> None:
    """Divide the cores of a host among its ranks, unless the launcher has done so (by affinity) or the user has (by
    NUMBA_NUM_THREADS). All ranks call this together."""
    own = frozenset(os.sched_getaffinity(0))
    hosts = zip(ranks.hosts, ranks.allgather(own), strict=True)
    machine.share_cores(sum(host == ranks.hosts[ranks.rank] and not own.isdisjoint(cores) for host, cores in hosts))
    _limit_threads()


def limit_to_job() -> None:
    """Let a process that runs alone use the cores of its Slurm job only, and its part of them if ``srun`` has started
    several side by side. (Most clusters bind each to its cores; then this changes nothing.)"""
    given = (os.environ.get(f"SLURM_{name}", "") for name in ("STEP_NUM_TASKS", "STEP_NUM_NODES", "CPUS_ON_NODE"))
    tasks, nodes, granted = (int(text) if text.isdecimal() else 0 for text in given)
    if not granted:
        return
    if nodes and len(os.sched_getaffinity(0)) >= granted:
        machine.share_cores(-(-tasks // nodes))
    _limit_threads()


def _limit_threads() -> None:
    if THREADS in os.environ:
        return
    if "numba" in sys.modules:  # it has read the variable
        import numba

        numba.set_num_threads(min(machine.cores(), numba.get_num_threads()))
    else:
        os.environ[THREADS] = str(machine.cores())


def choose_gpu(local_rank: int) -> None:
    """Let this process see one GPU of its host, by its number among the ranks of the host. Call this before anything uses
    CUDA. If the launcher has given it one GPU (``srun --gpus-per-task=1``), or none, that is kept."""
    listed = [card for card in os.environ.get(CARDS, "").split(",") if card]
    if CARDS not in os.environ:
        os.environ[CARDS] = str(local_rank)
    elif len(listed) > 1:
        os.environ[CARDS] = listed[local_rank] if local_rank < len(listed) else ""
