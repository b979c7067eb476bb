"""Files without a valid index (written by another program or an older version, or damaged): the HDF5 library reads them
in a child process.

If it ends (:mod:`.sandbox`), the user gets one line. In 16 000 files damaged at random the library crashed 21 times and hung
25 times. Starting the process takes 0.25 s (h5py 3.16, on two busy Zen 4 cores).
"""

import json
import os
import subprocess
import threading
from typing import Any

from nbody.trajectory import sandbox
from nbody.trajectory.contents import parse_json

LONGEST_ANSWER = 2**22
"""Of JSON, in bytes: everything that the file holds."""


def start(path: str, memory: int) -> subprocess.Popen[bytes]:
    """The process that reads the file at ``path`` within ``memory`` bytes of memory."""
    return sandbox.start("nbody.trajectory.hdf5_process", path, memory, stdin=subprocess.PIPE)


class ForeignFile:
    """The file at ``path``, read by the HDF5 library. Threads may share it. Raises ValueError if the library fails or
    crashes."""

    def __init__(self, path: str | os.PathLike) -> None:
        self._process = start(os.path.abspath(path), sandbox.memory_limit())
        self._lock = threading.Lock()

    def describe(self) -> dict[str, Any]:
        """The contents of the file, for :meth:`nbody.trajectory.contents.Contents.of`."""
        return self._ask("describe")[0]

    def read(self, name: str, first: int, count: int) -> bytes:
        """The bytes of ``count`` rows of the dataset ``name``."""
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
            answer = parse_json(line) if line.endswith(b"\n") else {"error": self._why_it_ended()}
            if "error" in answer:
                raise ValueError(answer["error"])
            data = self._process.stdout.read(int(answer.get("bytes", 0)))
            if len(data) != answer.get("bytes", 0):
                raise ValueError(self._why_it_ended())
            return answer, data

    def _why_it_ended(self) -> str:
        self._process.kill()
        return sandbox.why_it_ended(self._process.wait(), "the HDF5 library")

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
