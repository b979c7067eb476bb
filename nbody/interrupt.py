"""Ctrl-C and SIGTERM as a question that the run answers at the end of a step.

A signal raised inside HDF5 or a kernel launch can tear a frame, so the handler only sets a flag. A second signal means
now: the usual KeyboardInterrupt, which waits for the write that is going on; a third one does not (see recorder.py).
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


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
    """Within this block SIGINT and SIGTERM only ask to stop; the earlier handlers return afterwards.

    Outside the main thread, where Python forbids handlers, nothing is caught.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    earlier = {number: signal.signal(number, request.handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
