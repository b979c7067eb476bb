"""Reports the progress of long steps and, after Ctrl-C, when the run will stop.

Steps of large runs take seconds or minutes. The engine reports each piece of a force evaluation, and waiting for a
device calls back regularly (:mod:`nbody.compute.gpu.waiting`); each of these reports is a call of a :class:`Watch`.
"""

import math
import time
from collections.abc import Callable

from nbody.integrators.integrator import FixedStep, Integrator, Motion
from nbody.run.progress import HEARTBEAT
from nbody.run.signals import StopRequest
from nbody.run.stepper import Stepper
from nbody.state import Outputs
from nbody.state.moves import MoveKind
from nbody.whole_file import Notify

LONG = 0.5
"""Seconds after which the progress of a step is shown."""

WORTH_TELLING = 1.0
"""Seconds: if the stop takes longer than this, a line says when the run will stop."""


class Watch:
    """Follows the steps and frames of a run, counted in interactions.

    Args:
        stepper: what makes the steps. The watch registers itself with its state.
        stop: the request of Ctrl-C.
        show: called several times per second during long work, with its description and the fraction that is done.
        notify: called with a line for the user.
    """

    def __init__(self, stepper: Stepper, stop: StopRequest, show: Callable[[str, float], None], notify: Notify) -> None:
        self._stepper, self._stop, self._show, self._notify = stepper, stop, show, notify
        self._announced = False
        self._speed = self._earlier = 0.0
        self._begin("the run", 0, 0)
        stepper.state.progress.watch = self

    def step(self, number: int, recorded: bool, steps: int = 1) -> None:
        """Call this before ``steps`` steps, of which step ``number`` is the last; ``recorded`` if it becomes a frame."""
        scheme, motion, of_a_frame = self._stepper.integrator, self._stepper.motion, self._stepper.state.frames.outputs
        now = work_of_steps(scheme, motion, steps, of_a_frame if recorded else Outputs.ACCELERATION)
        # A run that stops between two frames records one more frame, whose accelerations may already be known.
        closing = 0 if recorded else motion.engine.work(motion.state, of_a_frame, scheme.facts.leaves)
        self._begin(f"step {number}", now, closing)

    def frame(self) -> None:
        """Call this before a frame, which may need the potential and the forces."""
        (engine, state), clock = self._stepper.motion, self._stepper.clock
        if work := engine.work(state, state.frames.outputs, clock.current):
            self._begin(f"the frame of step {clock.step}", work, 0)

    def _begin(self, doing: str, now: int, closing: int) -> None:
        """Start work of ``now`` interactions, with ``closing`` more if the run then stops."""
        self._doing, self._interactions, self._closing = doing, now, closing
        self._earlier = self._speed or self._earlier
        self._speed = 0.0  # interactions per second of this; an earlier one may have been far from it
        self._before = self._stepper.state.progress.requested  # a device may still be working on earlier interactions
        self._began = self._shown = time.perf_counter()
        self._sample: tuple[float, int] | None = None

    def __call__(self, computed: int) -> None:
        """Report that ``computed`` interactions have been computed since the state was made."""
        if self._stop.now:
            raise KeyboardInterrupt
        now, done = time.perf_counter(), max(0, computed - self._before)
        seconds = now - self._began
        if self._sample is None:  # the time until now may have been spent compiling kernels
            self._sample, self._shown = (now, computed), now
        if computed > self._sample[1] and now - self._sample[0] > HEARTBEAT:
            self._speed = (computed - self._sample[1]) / (now - self._sample[0])
            self._sample = now, computed
        asked = self._stop.requested or self._stop.heard
        if asked and not (self._announced or self._stop.silent) and (self._speed or seconds > HEARTBEAT):
            self._answer(done)
        if seconds > LONG and now - self._shown > HEARTBEAT and done < self._interactions:
            self._shown = now
            self._show(self._doing, done / self._interactions)

    def _answer(self, done: int) -> None:
        """Confirm Ctrl-C with a line, unless the run ends at once."""
        self._announced = True
        left = max(0, self._interactions - done) + self._closing
        speed = self._speed or self._earlier
        seconds = left / speed if speed else 0.0
        if not speed or seconds > WORTH_TELLING:
            when = f", in about {seconds:.0f} s" if speed else ""
            self._notify(f"stopping after {self._doing}{when}; Ctrl-C again stops now")


def work_of_steps(scheme: Integrator, motion: Motion, steps: int, outputs: Outputs = Outputs.ACCELERATION) -> int:
    """Interactions that the engine computes in the next steps, if ``outputs`` are current after them."""
    (engine, state), facts, work = motion, scheme.facts, 0
    if steps and not facts.own_forces:
        begins = bool(facts.leaves) or (facts.moves and facts.moves[0].kind == MoveKind.FORCE)
        first = bool(facts.leaves) - bool(state.clock.current) if begins else 0  # of the forces at the beginning
        work = steps * math.ceil(scheme.report(motion).pairs_per_step) + first * engine.work(state, facts.outputs)
    if outputs is Outputs.ACCELERATION:
        return work
    if isinstance(scheme, FixedStep):  # whose last forces are a part of them
        return work + engine.work(state, outputs) - (engine.work(state) if facts.leaves else 0)
    return work + engine.work(state, outputs, facts.leaves)
