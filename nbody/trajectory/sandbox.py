"""Child processes in which a library reads a file that may crash it: a crash, an endless loop or excessive memory use ends
only the child."""

import resource
import signal
import subprocess
from typing import Any

from nbody import machine
from nbody.child import python

LEAST_MEMORY = 2**30


def memory_limit() -> int:
    """The bytes of memory that a child may use."""
    return max(LEAST_MEMORY, machine.memory_available() // 2)


def start(module: str, *arguments: object, **pipes: Any) -> subprocess.Popen[bytes]:
    """Start ``python -m module arguments``. ``pipes``: as for :class:`subprocess.Popen`."""
    # No plugins: a file could name a filter, and the HDF5 library would load its code. One thread: each would reserve tens
    # of megabytes of addresses.
    command = python("-m", module, *map(str, arguments), HDF5_PLUGIN_PRELOAD="::", OPENBLAS_NUM_THREADS="1")
    return subprocess.Popen(**command, stdout=subprocess.PIPE, **pipes)


def limit(memory: int) -> None:
    """Called in the child: let it have ``memory`` bytes, and leave no core dump."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def allow(seconds: float) -> None:
    """Called in the child: SIGPROF ends it after ``seconds`` of processor time, wherever in the library it is."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


def why_it_ended(code: int, library: str) -> str:
    """The message for the exit code of a child that was ended by a signal."""
    if code == -signal.SIGPROF:
        return f"{library} does not finish reading it"
    return f"{library} crashed on it, {signal.Signals(-code).name if code < 0 else code}"
