"""The line that says that kernels are being compiled, if that takes long."""

import contextlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from nbody.whole_file import Notify

LONG = 1.0
"""Seconds after which the compilation of a kernel is announced."""


def _show(line: str) -> None:
    """Show a line to the user of a Python program, in a terminal or a notebook."""
    if sys.stderr is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules):
        print(line, file=sys.stderr, flush=True)


_notify: list[Notify] = [_show]
"""The function of the innermost block, outside of all :func:`_show`, until it is called."""


@contextlib.contextmanager
def announcing(notify: Notify) -> Iterator[None]:
    """Inside this block ``notify`` gets one line, from another thread, if a kernel compiles for over :data:`LONG`."""
    global _notify
    outer, _notify = _notify, [notify]
    try:
        yield
    finally:
        _notify = outer


@contextlib.contextmanager
def compiling(folder: str | Path, what: str = "kernels for this machine") -> Iterator[None]:
    """Inside this block kernels are compiled, which are kept in that folder (empty if they are not)."""
    timer = threading.Timer(LONG, _announce_once, [str(folder), what])
    timer.daemon = True
    if _notify:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _announce_once(folder: str, what: str) -> None:
    with contextlib.suppress(IndexError):  # it is announced already
        _notify.pop()(f"compiling {what}" + (f" (once; kept in {folder}) …" if folder else " …"))
