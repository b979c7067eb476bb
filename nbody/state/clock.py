"""The steps and the time of a state, and which results belong to its positions."""

from collections.abc import Callable
from typing import NamedTuple

from nbody.state.notes import NO_NOTES, StepNotes
from nbody.state.outputs import Outputs


class Moment(NamedTuple):
    """Where a run is.

    Attributes:
        step: the steps that have begun.
        time: the time of the bodies, in the scenario's units, float64.
        origin: the time of step 0.
        within: the last step has begun and is not complete: the bodies are shown within it.
    """

    step: int
    time: float
    origin: float = 0.0
    within: bool = False

    @property
    def complete(self) -> int:
        """The number of complete steps."""
        return self.step - self.within


class StateClock:
    """The steps and the time of one state. Schemes :meth:`count`; all others read.

    Attributes:
        moment: where the run is between steps.
        now: the time of the positions, during a step too, when only some of its moves are made.
        time_dependent: True if forces depend on the time itself.
        revision: how often the positions have been declared changed.
        dt: the length of steps that are all the same.
        made: steps that ``step`` does not count yet.
        notes: get the bodies at the ends of steps by schemes that can note them.
        synchronize: lets all bodies end a step now. Schemes of individual steps set it; others move all bodies together.
        current: the results that belong to the present positions. Engines add to it, moves of the positions clear it; see
            :meth:`nbody.forces.engine.Engine.evaluate`.
    """

    def __init__(self, time: float) -> None:
        self.notes: StepNotes = NO_NOTES
        self.dt, self.time_dependent, self.current = 0.0, False, Outputs.NOTHING
        self.revision = 0
        self.synchronize: Callable[[], None] = lambda: None
        self.set(Moment(0, float(time), float(time)))

    @property
    def step(self) -> int:
        """Steps made, of which the last one may be shown partway."""
        return self.moment.step

    @property
    def time(self) -> float:
        """The time of the positions and velocities between steps."""
        return self.moment.time

    @property
    def origin(self) -> float:
        """The time of step 0."""
        return self.moment.origin

    def set(self, moment: Moment) -> None:
        """Go to a moment."""
        self.moment, self.now = moment, moment.time
        self.made = 0

    def count(self, steps: int, time: float, within: bool = False) -> None:
        """Count ``steps`` more steps (-1: one less), after which the bodies are at ``time``; ``within`` the last of them,
        if it is not complete."""
        self.set(Moment(self.moment.step + steps, float(time), self.moment.origin, bool(within)))

    def count_steps(self, steps: int, dt: float) -> None:
        """Count ``steps`` steps of the length ``dt``, which are complete."""
        self.dt = dt
        self.count(steps, self.time_at(self.step + steps))

    def begin_steps(self, dt: float) -> None:
        """Declare that the next steps have the length ``dt``."""
        self.dt, self.made = dt, 0

    def end_steps(self, steps: int = 1) -> None:
        """Declare that one or more steps are complete, which ``step`` does not count yet."""
        self.made += steps
        self.now = self.time_at(self.step + self.made)

    @property
    def reached(self) -> tuple[int, float]:
        """The step and the time of the last step, counted or not."""
        return self.step + self.made, self.now

    def time_at(self, step: int) -> float:
        """The time of a step, origin + step · dt. (Adding up time steps would accumulate rounding errors.)"""
        return self.origin + step * self.dt

    def drift(self, dt: float) -> None:
        """Let time pass with the positions. No result is current afterwards."""
        self.now += dt
        self.current = Outputs.NOTHING
