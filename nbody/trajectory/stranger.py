"""Files that only the HDF5 library can read (rewritten by another program), read by it in a process of its own.

A crash, an endless loop or a hunger for memory inside the library then ends that process, and the user gets one line.
Starting it takes 0.25 s (h5py 3.16, on two busy Zen 4 cores), so it is for files that :mod:`.structure` does not know.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from typing import Any

import numpy as np

from nbody import machine
from nbody.trajectory.structure import DATASET, Found

LEAST_MEMORY = 2**30
LONGEST_ANSWER = 2**22
"""Of JSON, in bytes: all attributes of an object."""


def start(path: str, memory: int) -> subprocess.Popen[bytes]:
    """The process that reads the file at ``path`` with no more than so many bytes of memory."""
    command = [sys.executable, "-P", "-m", "nbody.trajectory.hdf5_process", path, str(memory)]
    # No plugins: a file could name a filter, and the library would load its code.
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "HDF5_PLUGIN_PRELOAD": "::",
        "OPENBLAS_NUM_THREADS": "1",  # each thread would reserve tens of megabytes of addresses
    }
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


class Stranger:
    """The file at ``path`` as the HDF5 library sees it; names are looked up by :meth:`find`. Threads may share it.

    Raises ValueError where the library fails, by an error or for good.
    """

    def __init__(self, path: str | os.PathLike) -> None:
        self._process = start(os.path.abspath(path), max(LEAST_MEMORY, machine.memory_available() // 2))
        self._lock = threading.Lock()

    def find(self, name: str) -> Found:
        """What ``name`` stands for; see :class:`~nbody.trajectory.structure.Structure`."""
        answer, _ = self._ask("find", name)
        if answer["kind"] != DATASET:
            return Found(str(answer["kind"]), answer.get("attributes", {}))
        shape = tuple(int(length) for length in answer["shape"])
        stored, filtered = int(answer["stored"]), bool(answer["filtered"])
        return Found(DATASET, answer["attributes"], np.dtype(answer["dtype"]), shape, stored, filtered)

    def read(self, name: str, first: int, count: int) -> bytes:
        """The bytes of so many rows of the dataset ``name``."""
        return self._ask("read", name, first, count)[1]

    def _ask(self, *question: Any) -> tuple[dict[str, Any], bytes]:
        with self._lock:
            assert self._process.stdin and self._process.stdout
            try:
                self._process.stdin.write(json.dumps(question).encode() + b"\n")
                self._process.stdin.flush()
            except BrokenPipeError:
                raise ValueError(self._why_it_ended()) from None
            line = self._process.stdout.readline(LONGEST_ANSWER)
            answer = json.loads(line) if line.endswith(b"\n") else {"error": self._why_it_ended()}
            if "error" in answer:
                raise ValueError(answer["error"])
            data = self._process.stdout.read(int(answer.get("bytes", 0)))
            if len(data) != answer.get("bytes", 0):
                raise ValueError(self._why_it_ended())
            return answer, data

    def _why_it_ended(self) -> str:
        self._process.kill()
        code = self._process.wait()
        if code == -signal.SIGPROF:
            return "the HDF5 library does not come to an end with it"
        return f"the HDF5 library crashed on it, {signal.Signals(-code).name if code < 0 else code}"

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
