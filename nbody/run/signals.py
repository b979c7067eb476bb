"""Turns Ctrl-C, SIGTERM and a lost terminal into a request to stop, which the run checks after each step.

An exception inside HDF5 or a kernel launch can damage a frame, so the handler only sets a flag. A second signal raises
KeyboardInterrupt, which waits for the current write; a third one does not wait (see recorder.py).
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequest:
    """``requested`` is True after the first signal; ``signal_name`` is its name.

    If ``deferred``, a signal sets only ``heard``: several ranks must agree on the step after which they stop.

    A run on another thread cannot be interrupted by a signal: ``now`` asks it to stop within a step, as the second signal
    does on the main thread. ``silent``: nobody waits for an answer (a window was closed).
    """

    def __init__(self) -> None:
        self.requested = self.heard = self.now = self.silent = self.deferred = False
        self.signal_name = ""

    def request(self) -> None:
        """Ask for a stop, as the first signal does."""
        self.heard, self.requested = True, self.requested or not self.deferred

    def handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested or self.heard:
            raise KeyboardInterrupt
        self.signal_name = signal.Signals(number).name
        self.request()


@contextmanager
def stop_on_signals(deferred: bool = False) -> Iterator[StopRequest]:
    """Inside this block :data:`SIGNALS` only request a stop; the earlier handlers are restored afterwards.

    A signal that was ignored stays ignored: ``nohup`` ignores SIGHUP, and a shell's background job SIGINT. Outside the main
    thread, where Python does not allow handlers, nothing changes.
    """
    request = StopRequest()
    request.deferred = deferred
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    earlier = {number: signal.getsignal(number) for number in SIGNALS}
    earlier = {number: handler for number, handler in earlier.items() if handler not in (signal.SIG_IGN, None)}
    for number in earlier:
        signal.signal(number, request.handle)
    try:
        yield request
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
