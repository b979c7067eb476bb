"""Turns Ctrl-C, SIGTERM and a lost terminal into a request to stop, which the run checks after each step.

An exception inside HDF5 or a kernel launch can damage a frame, so the handler only sets a flag. A second signal raises
KeyboardInterrupt, which waits for the current write; a third one does not wait (see recorder.py).
"""

import signal
import time
from _signal import getsignal  # those of ``signal`` convert enumerations, which takes as long as a step
from _signal import signal as set_handler
from collections.abc import Sequence
from types import FrameType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequest:
    """``requested`` is True after the first signal; ``signal_name`` is its name. In a ``with`` block it hears signals, see
    :func:`stop_on_signals`.

    If ``deferred``, a signal sets only ``heard``: several ranks must agree on the step after which they stop.

    A run on another thread cannot be interrupted by a signal: ``now`` asks it to stop within a step, as the second signal
    does on the main thread. ``silent``: nobody waits for an answer (a window was closed).
    """

    requested = heard = now = silent = deferred = False
    signal_name, _together = "", 0.0

    def __init__(self, signals: Sequence[int] = ()) -> None:
        self._signals, self._earlier = signals, list[Any]()

    def request(self) -> None:
        """Ask for a stop, as the first signal does."""
        self.heard, self.requested = True, self.requested or not self.deferred

    def handle(self, number: int, frame: FrameType | None) -> None:
        if (self.requested or self.heard) and time.monotonic() > self._together:  # ``timeout`` sends two at once
            raise KeyboardInterrupt
        self.signal_name, self._together = signal.Signals(number).name, time.monotonic() + 0.1
        self.request()

    def __enter__(self) -> Self:
        try:
            for number in self._signals:
                if (earlier := getsignal(number)) not in (signal.SIG_IGN, None):
                    set_handler(number, self.handle)
                    self._earlier.append((number, earlier))
        except ValueError:  # not in the main thread
            assert not self._earlier
        return self

    def __exit__(self, *error: object) -> None:
        while self._earlier:
            set_handler(*self._earlier.pop())


def stop_on_signals(deferred: bool = False, signals: Sequence[int] = SIGNALS) -> StopRequest:
    """Inside a ``with`` block the signals only request a stop; the earlier handlers are restored afterwards.

    A signal that was ignored stays ignored: ``nohup`` ignores SIGHUP, and a shell's background job SIGINT. Outside the main
    thread, where Python does not allow handlers, nothing changes.
    """
    request = StopRequest(signals)
    request.deferred = deferred
    return request
