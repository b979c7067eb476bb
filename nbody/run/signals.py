"""Ctrl-C, SIGTERM and a lost terminal as a question that the run answers at the end of a step.

A signal raised inside HDF5 or a kernel launch can tear a frame, so the handler only sets a flag. A second signal means
now: the usual KeyboardInterrupt, which waits for the write that is going on; a third one does not (see recorder.py).
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequest:
    """``requested`` turns True at the first signal; ``signal_name`` says which it was."""

    def __init__(self) -> None:
        self.requested = False
        self.signal_name = ""

    def handle(self, number: int, frame: FrameType | None) -> None:
        """The signal handler."""
        if self.requested:
            raise KeyboardInterrupt
        self.requested, self.signal_name = True, signal.Signals(number).name


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Within this block :data:`SIGNALS` only ask to stop; the earlier handlers return afterwards.

    A signal that was ignored stays so: ``nohup`` means a lost terminal, and a shell's background job Ctrl-C. Outside
    the main thread, where Python forbids handlers, nothing is caught.
    """
    request = StopRequest()
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
