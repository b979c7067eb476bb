"""Whether several processes can work together: MPI, Slurm, NCCL; and how fast the ranks of a launcher do."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from nbody import child, install, machine
from nbody.doctor.finding import Finding, good, missing
from nbody.errors import counted, last_line, printable
from nbody.number_format import size
from nbody.parallel import Team, team
from nbody.parallel.nccl import version as nccl_version
from nbody.parallel.speed import exchange_speed

TIMEOUT = 60.0
"""Seconds that another process gets for an answer."""

SLURM_TIMEOUT = 5.0
"""Seconds that ``srun`` gets for an answer: it asks the cluster for its configuration first."""

LAUNCHERS = ("PMI", "OMPI_", "HYD", "PRTE")
"""How the environment variables begin that a process inherits from a launcher, and with which MPI would look for it."""

_ASK_MPI = """
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
from nbody.parallel.library import name_of
print("answer:", " ".join(name_of(MPI).split()))
print("answer:", mpi4py.__version__)
"""


def mpi() -> Finding:
    """What several processes need to work together. Asked in a child process, since loading MPI starts it."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    launchers = [name for name in ("mpirun", "srun") if shutil.which(name, path=path)]
    answers, problem = child.ask(_ASK_MPI, TIMEOUT, LAUNCHERS)
    if problem:
        remedy = f"{install.install_extra('mpi-local')}; on a cluster load its MPI, and {install.install_extra('mpi')}"
        text = f"a run in several processes needs MPI ({problem})"
        return missing("mpi", text, remedy, launchers=launchers, mpi=None)
    library, mpi4py = answers
    text = f"{library}, through mpi4py {mpi4py}; launchers: {', '.join(launchers) or 'none found'}"
    return good("mpi", text, launchers=launchers, mpi=library, mpi4py=mpi4py)


def slurm() -> Iterator[Finding]:
    """Slurm, and the ways in which its ``srun`` tells the ranks of each other; nothing where there is no ``srun``."""
    if not shutil.which("srun"):
        return
    env = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
    run = partial(subprocess.run, env=env, capture_output=True, text=True, errors="replace", timeout=SLURM_TIMEOUT)
    try:
        version, listed = (run(["srun", option]) for option in ("--version", "--mpi=list"))
    except (OSError, subprocess.TimeoutExpired) as error:
        yield missing("slurm", f"srun does not answer ({type(error).__name__})", slurm=None)
        return
    if version.returncode:
        yield missing("slurm", f"srun can't be used ({last_line(version.stderr, 'no reason given')})", slurm=None)
        return
    # Older versions print the list on standard error, and begin each line with 'srun:'.
    names = re.findall(r"^(?:srun:)?\s*(\w+)$", f"{listed.stdout}\n{listed.stderr}", re.MULTILINE)
    types = [name for name in dict.fromkeys(names) if name != "none"]
    text = f"{printable(version.stdout.strip())}; srun --mpi: {', '.join(types) or 'no type'}"
    facts = {"slurm": version.stdout.strip(), "mpi_types": types}
    if any(name.startswith(("pmi2", "pmix")) for name in types):
        yield good("slurm", f"{text}; ranks of MPICH and its relatives need pmi2, those of Open MPI pmix", **facts)
    else:
        yield missing("slurm", f"{text}, so srun can't start ranks", "in a job, start them with mpirun", **facts)


def nccl() -> Iterator[Finding]:
    """How ranks with a GPU each exchange rows; nothing without a GPU."""
    from nbody import compute

    if compute.why_unavailable():
        return
    found, problem = nccl_version()
    if found:
        yield good("nccl", f"NCCL {found}: ranks exchange from GPU to GPU", nccl=found)
    else:
        text = f"ranks with a GPU each exchange through host memory ({problem})"
        cuda_12 = machine.version_of("nvidia-cuda-nvcc-cu12")
        remedy = install.pip_install("nccl4py", "nvidia-nccl-cu12") if cuda_12 else install.install_extra("nccl13")
        yield missing("nccl", text, remedy, nccl=None, reason=problem)


def examine_ranks() -> Iterator[Finding]:
    """A finding about each rank of a launcher, and the speed of their exchange. All ranks call this together."""
    from nbody import compute

    ranks = team()
    if ranks.size == 1:
        return
    card, uuid = ("no GPU", "") if compute.why_unavailable() else (compute.facts().name, compute.uuid())
    own = {"host": ranks.hosts[ranks.rank], "cores": machine.cores(), "gpu": card, "uuid": uuid}
    everyone = ranks.allgather(own)
    for rank, facts in enumerate(everyone):
        text = f"on {facts['host']}, {counted(facts['cores'], 'core')}, {facts['gpu']}"
        yield good(f"rank {rank}", text, **facts)
    latency, speed = exchange_speed(ranks)
    text = f"{ranks.library}: {1e6 * latency:.0f} µs, and {size(round(speed))}/s arrive at each rank"
    yield good("exchange", text, mpi=ranks.library, latency_s=latency, bytes_per_s=speed)
    if len({facts["uuid"] for facts in everyone} - {""}) == ranks.size:
        way, latency, speed = _speed_between_gpus(ranks)
        text = f"{way}: {1e6 * latency:.0f} µs, and {size(round(speed))}/s arrive at each GPU"
        yield good("exchange gpus", text, way=way, latency_s=latency, bytes_per_s=speed)


def _speed_between_gpus(ranks: Team) -> tuple[str, float, float]:
    """How ranks exchange rows on their GPUs, and the times of :func:`~nbody.parallel.speed.exchange_speed`. All ranks call
    this together."""
    from nbody import compute
    from nbody.compute import cuda
    from nbody.forces.transports.ranks import Ranks

    transport, stream = Ranks(ranks), cuda.stream()

    def prepared(rows: np.ndarray) -> Callable[[], None]:
        array, bounds = cuda.to_device(rows), ranks.bounds(len(rows))

        def exchange() -> None:
            transport.complete(array, bounds, stream)
            transport.wait()
            compute.wait_for(compute.mark(stream))

        return exchange

    ranks.in_collective = True  # so an error of one rank ends all, and this stays True
    latency, speed = exchange_speed(ranks, prepared, 1 << 23)
    ranks.in_collective = False
    return transport.nccl.name if transport.nccl else "through host memory", latency, speed
