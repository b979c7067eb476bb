"""Standard output and standard error when nobody reads them: a closed pipe, a lost terminal, a full disk."""

import contextlib
import io
import os
import sys
from typing import Any


def prepare() -> None:
    """Call this before anything is printed."""
    if sys.stderr is None:  # the shell has closed it; print() would turn to standard output, amid a result
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):  # where the terminal has no × or ε, '?' is better than an error
        sys.stdout.reconfigure(errors="replace")


def tell(line: str) -> None:
    """Print one line on standard error, if anyone reads it."""
    with contextlib.suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)


def result(text: str) -> None:
    """Print a result on standard output. Raises OSError if it can't be written."""
    print(text, flush=True)


def settle() -> None:
    """Drop what can't be written any more: Python would complain at its end, and exit with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            discard(stream)


def discard(stream: Any) -> None:
    """Let a stream that can't be written go nowhere from now on."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class Unbroken:
    """A stream whose loss ends no run: what can't be written to it is dropped."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write, if that is possible."""
        with contextlib.suppress(OSError, ValueError):
            return self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, if that is possible."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()
