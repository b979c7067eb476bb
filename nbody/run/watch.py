"""What a run says while one of its steps takes long: how far the step is; and, after Ctrl-C, when it will be done.

Large runs make steps of seconds, even minutes. The engine reports each piece of a force evaluation, and whoever waits for
a device asks again and again (:mod:`nbody.gpu.waiting`): all these moments come to a :class:`Watch`.
"""

import time
from collections.abc import Callable

from nbody.integrators.integrator import Integrator, Motion
from nbody.run.progress import HEARTBEAT
from nbody.run.signals import StopRequest
from nbody.state import Want

LONG = 0.5
"""Seconds that something must have taken before its own progress is shown."""

WORTH_TELLING = 1.0
"""Seconds: a run that takes longer than this to stop says so."""


class Watch:
    """Follows the steps and frames of a run, counted in interactions.

    Args:
        integrator, motion: what makes the steps; the watch makes itself the state's.
        stop: what Ctrl-C asked for.
        show: gets what is being done and the fraction of it that is done, now and then, once that takes long.
        tell: gets a line.
    """

    def __init__(
        self,
        integrator: Integrator,
        motion: Motion,
        stop: StopRequest,
        show: Callable[[str, float], None],
        tell: Callable[[str], None],
    ) -> None:
        self._integrator, self._motion, self._state = integrator, motion, motion.state
        self._stop, self._show, self._tell = stop, show, tell
        self._told = False
        self._begin("the run", 0, 0)
        motion.state.watch = self

    def step(self, number: int, recorded: bool, steps: int = 1) -> None:
        """So many steps begin, the last of them the step ``number``, after which a frame is due if ``recorded``."""
        now = self._integrator.work(self._motion, steps, Want.ENERGY if recorded else Want.ACCELERATION)
        # A run that stops between two frames records one more, of which the accelerations may be known.
        closing = 0 if recorded else self._motion.engine.work(self._state, Want.ENERGY, self._integrator.leaves)
        self._begin(f"step {number}", now, closing)

    def frame(self, number: int) -> None:
        """The frame of a step begins, whose potential (and forces, perhaps) must be computed first."""
        self._begin(f"the frame of step {number}", self._motion.work(Want.ENERGY), 0)

    def _begin(self, doing: str, now: int, closing: int) -> None:
        """Something begins that takes so many interactions now, and so many more afterwards if the run is to stop."""
        self._doing, self._interactions, self._closing = doing, now, closing
        self._speed = 0.0  # interactions per second of this; a speed measured earlier may be far from it
        self._before = self._state.requested  # what a device still has to do is part of what was before
        self._began = self._shown = time.perf_counter()
        self._sample: tuple[float, int] | None = None

    def __call__(self, computed: int) -> None:
        """So many interactions were computed since the state was made: tell what is to be told now."""
        now, done = time.perf_counter(), max(0, computed - self._before)
        seconds = now - self._began
        if self._sample is None:  # what was before may have been the compiling of kernels
            self._sample = now, computed
        if computed > self._sample[1] and now - self._sample[0] > HEARTBEAT:
            self._speed = (computed - self._sample[1]) / (now - self._sample[0])
            self._sample = now, computed
        if self._stop.requested and not self._told and (self._speed or seconds > HEARTBEAT):
            self._answer(done)
        if seconds > LONG and now - self._shown > HEARTBEAT and self._interactions:
            self._shown = now
            self._show(self._doing, min(1.0, done / self._interactions))

    def _answer(self, done: int) -> None:
        """Say that Ctrl-C was heard, unless the run ends at once."""
        self._told = True
        left = max(0, self._interactions - done) + self._closing
        seconds = left / self._speed if self._speed else 0.0
        if not self._speed or seconds > WORTH_TELLING:
            when = f", in about {seconds:.0f} s" if self._speed else ""
            self._tell(f"stopping after {self._doing}{when}; Ctrl-C again stops now")
