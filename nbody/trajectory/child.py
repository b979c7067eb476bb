"""Child processes in which a library reads a file that may crash it: a crash, an endless loop or excessive memory use ends
only the child."""

import os
import resource
import signal
import subprocess
import sys
from typing import Any

from nbody import machine

LEAST_MEMORY = 2**30


def memory_limit() -> int:
    """The bytes of memory that a child may use."""
    return max(LEAST_MEMORY, machine.memory_available() // 2)


def start(module: str, *arguments: object, **pipes: Any) -> subprocess.Popen[bytes]:
    """Start ``python -m module arguments``. ``pipes``: as for :class:`subprocess.Popen`."""
    command = [sys.executable, "-P", "-m", module, *map(str, arguments)]
    # No plugins: a file could name a filter, and the HDF5 library would load its code.
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "HDF5_PLUGIN_PRELOAD": "::",
        "OPENBLAS_NUM_THREADS": "1",  # each thread would reserve tens of megabytes of addresses
    }
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, **pipes)


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
