"""Standard output and standard error if they can't be written: a closed pipe, a lost terminal, a full disk."""

import contextlib
import io
import os
import sys
from typing import Any


def prepare() -> None:
    """Call this before anything is printed."""
    if sys.stderr is None:  # the shell has closed it; print(file=None) would write into the results
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal without × or ε shows '?' instead of raising an error
        sys.stdout.reconfigure(errors="replace")


def tell(line: str) -> None:
    """Print one line on standard error, if it can be written."""
    with contextlib.suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)


def result(text: str) -> None:
    """Print a result on standard output. Raises OSError if it can't be written."""
    print(text, flush=True)


def settle() -> None:
    """Drop text that can't be written, else Python would print an error at exit and return 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            discard(stream)


def discard(stream: Any) -> None:
    """Redirect a stream that can't be written to the null device."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class Unbroken:
    """A stream that drops text that can't be written instead of raising an error."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write ``text``, or drop it."""
        with contextlib.suppress(OSError, ValueError):
            return self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush; ignores errors."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()
