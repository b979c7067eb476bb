"""The MPI library of the processes that a launcher has started: loading it, and whether it belongs to the launcher."""

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from nbody import install
from nbody.errors import InputError, printable
from nbody.parallel.launcher import ALONE_VARIABLE, SRUN, JobLaunch


def start_mpi(launched: JobLaunch) -> Any:
    """mpi4py's module MPI, with MPI started.

    Raises:
        InputError: mpi4py or an MPI library is missing, or the library does not know the launcher.
    """
    several = f"{launched.launcher} has started {launched.size or 'several'} processes"
    try:
        import mpi4py

        mpi4py.rc.initialize, mpi4py.rc.finalize = False, True
        from mpi4py import MPI

        _check_pmi(launched, MPI)
        with _killed_by_ctrl_c():  # MPI's start waits for all ranks, and Python hears no signal meanwhile
            if not MPI.Is_initialized():  # a user's program may have started it
                MPI.Init_thread(MPI.THREAD_SERIALIZED)  # the recorder's thread does not call MPI; UCX may lack more
    except ModuleNotFoundError:
        raise InputError(
            f"{several}, and mpi4py is missing, through which they work together: {install.install_extra('mpi')}"
        ) from None
    except (ImportError, RuntimeError) as error:
        raise InputError(
            f"{several}, and mpi4py can't load an MPI library ({' '.join(str(error).split())[:200]}); load your cluster's "
            f"MPI, or: {install.install_extra('mpi-local')}"
        ) from None
    size = MPI.COMM_WORLD.Get_size()
    if launched.size and size != launched.size:
        raise InputError(
            f"{launched.launcher} has started {launched.size} processes, but MPI ({name_of(MPI)}) sees {size}: "
            f"{_remedy(launched, MPI)}, or for independent runs set {ALONE_VARIABLE}=1"
        )
    return MPI


def _check_pmi(launched: JobLaunch, mpi: Any, environment: Mapping[str, str] = os.environ) -> None:
    """Raise an InputError where Open MPI's start would end each process with a page of text: srun has offered no PMI."""
    offered = any(name.startswith(("PMI_", "PMIX_")) for name in environment)
    if launched.launcher == SRUN and not offered and "Open MPI" in name_of(mpi):
        raise InputError(
            f"srun has started {launched.size} processes that {name_of(mpi)} can't connect: {_remedy(launched, mpi)}"
        )


def _remedy(launched: JobLaunch, mpi: Any) -> str:
    if launched.launcher != SRUN and "SLURM_STEP_NUM_TASKS" not in os.environ:
        return "they belong to different MPIs; use the mpirun of this one"
    kind = "pmix" if "Open MPI" in name_of(mpi) else "pmi2"
    return f"start them with 'srun --mpi={kind}' ('srun --mpi=list' shows what there is) or with the mpirun of this MPI"


def name_of(mpi: Any) -> str:
    """The name and the version of the MPI library, such as ``MPICH 5.0.2``."""
    words = mpi.Get_library_version().split("\n")[0].split(",")[0].replace("Version:", "").strip("\0 ")
    return printable(" ".join(words.split()))


@contextmanager
def _killed_by_ctrl_c() -> Iterator[None]:
    """Inside this block Ctrl-C kills the process, so that the launcher ends the others."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    earlier = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, earlier)
