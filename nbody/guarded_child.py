"""A library that reads a file which may crash it does so in a child process: a crash, an endless loop or excessive memory
use ends only the child, and the user gets one line.

Questions and answers are JSON, one line each; the bytes of an answer follow its line. In 16 000 files damaged at random the
HDF5 library crashed 21 times and hung 25 times. Starting the process takes 0.25 s (h5py 3.16, on two busy Zen 4 cores).
"""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import warnings
from typing import Any, Protocol

from nbody.child import python
from nbody.errors import InputError
from nbody.memory import memory_available
from nbody.registry import imported

LEAST_MEMORY = 2**30

LONGEST_WAIT = 600.0
"""In seconds, for a child that uses no processor time."""

LONGEST_ANSWER = 2**22
"""In bytes, of the line."""


class LibraryFailed(ValueError):
    """The library failed, or ended; ``input_error``: the file is not used as it should be."""

    def __init__(self, message: str, input_error: bool = False) -> None:
        super().__init__(message)
        self.input_error = input_error


class FileReader(Protocol):
    """What runs in the child, made of the arguments of :class:`GuardedReader`."""

    def answer(self, *question: Any) -> tuple[dict[str, Any], bytes]:
        """Plain types, and bytes."""


class GuardedReader:
    """A :class:`FileReader` in a child process. Threads may share it.

    Args:
        library: what may fail, for messages.
        target: the reader's class, as in ``module:Class``.
        seconds: of processor time, for each answer.
        arguments: texts.
    """

    def __init__(self, library: str, target: str, seconds: float, *arguments: str) -> None:
        self.library = library
        self.process = start(target, memory_limit(), seconds, *arguments)
        self._lock = threading.Lock()

    def ask(self, *question: Any) -> tuple[dict[str, Any], bytes]:
        """Its answer. Raises LibraryFailed."""
        stopped = threading.Event()

        def stop() -> None:
            stopped.set()
            self.process.kill()

        with self._lock:
            timer = threading.Timer(LONGEST_WAIT, stop)
            timer.start()
            try:
                answer, data = self._answer(question)
            except (BrokenPipeError, EOFError, ValueError, LookupError, TypeError, RecursionError):
                self.process.kill()
                code = -signal.SIGPROF if stopped.is_set() else self.process.wait()
                raise LibraryFailed(why_it_ended(code, self.library)) from None
            finally:
                timer.cancel()
        if "error" in answer:
            raise LibraryFailed(answer["error"], bool(answer.get("input_error")))
        return answer, data

    def _answer(self, question: tuple) -> tuple[dict[str, Any], bytes]:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(question).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline(LONGEST_ANSWER)
        if not line.endswith(b"\n"):
            raise EOFError
        answer = json.loads(line)
        data = self.process.stdout.read(answer["bytes"])
        if len(data) != answer["bytes"]:
            raise EOFError
        return answer, data

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


def memory_limit() -> int:
    """The bytes of memory that a child may use."""
    return max(LEAST_MEMORY, memory_available() // 2)


def start(target: str, memory: int, seconds: float, *arguments: str) -> subprocess.Popen[bytes]:
    """Start ``serve(target, …)`` in a child."""
    # No plugins: a file could name a filter, and the HDF5 library would load its code. One thread: each would reserve tens
    # of megabytes of addresses.
    command = ("-m", "nbody.guarded_child", target, str(memory), str(seconds), *arguments)
    child = python(*command, HDF5_PLUGIN_PRELOAD="::", OPENBLAS_NUM_THREADS="1")
    return subprocess.Popen(**child, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def why_it_ended(code: int, library: str) -> str:
    """The message for the exit code of a child that was ended by a signal."""
    if code == -signal.SIGPROF:
        return f"{library} does not finish reading it"
    return f"{library} crashed on it, {signal.Signals(-code).name if code < 0 else code}"


def serve(target: str, memory: int, seconds: float, *arguments: str) -> None:
    """In the child: answer the questions on standard input, until it ends. The kernel ends the process if it uses more than
    ``memory``, and SIGPROF if it uses more than ``seconds`` of processor time for an answer, wherever in the library it is.
    """
    answers = os.fdopen(os.dup(1), "wb")
    for descriptor in (1, 2):  # where the library may print
        os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    warnings.simplefilter("ignore")
    reader: FileReader = imported(target)(*arguments)
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            answer, data = reader.answer(*json.loads(line))
        except Exception as error:
            text = " ".join(str(error).split()) or type(error).__name__
            answer, data = {"error": text, "input_error": isinstance(error, InputError)}, b""
        answers.write(json.dumps(answer | {"bytes": len(data)}).encode() + b"\n" + data)
        answers.flush()


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        serve(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), *sys.argv[4:])
