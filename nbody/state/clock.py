"""The steps and the time of a state, and which results belong to its positions."""

from nbody.state.outputs import Outputs


class StateClock:
    """The steps and the time of one state.

    Attributes:
        step: steps made since time :attr:`origin`.
        time: the time of the positions and velocities, in the scenario's units, float64.
        now: the same during a step too, when only some of its moves are made; setting ``time`` sets it.
        time_dependent: True if forces depend on the time itself.
        origin: the time of step 0.
        dt: the length of steps that are all the same.
        made, drifts: steps that ``step`` does not count yet, and the drifts since the last step.
        current: the results that belong to the present positions. Engines add to it, moves of the positions clear it; see
            :meth:`nbody.forces.engine.Engine.evaluate`.
    """

    def __init__(self, time: float) -> None:
        self.step, self.dt = 0, 0.0
        self.time = self.origin = float(time)
        self.time_dependent = False
        self.current = Outputs.NOTHING

    @property
    def time(self) -> float:
        """The time of the positions and velocities between steps."""
        return self._time

    @time.setter
    def time(self, time: float) -> None:
        self._time = self.now = float(time)
        self.made, self.drifts = 0, list[float]()

    def begin_steps(self, dt: float) -> None:
        """Declare that the next steps have the length ``dt``."""
        self.dt, self.made, self.drifts = dt, 0, []

    def end_steps(self, steps: int = 1) -> None:
        """Declare that one or more steps are complete, which ``step`` does not count yet."""
        self.made, self.drifts = self.made + steps, []
        self.now = self.time_at(self.step + self.made)

    def count_steps(self, steps: int, dt: float) -> None:
        """Count ``steps`` steps of the length ``dt``, which are complete."""
        self.dt, self.step = dt, self.step + steps
        self.time = self.time_at(self.step)

    @property
    def reached(self) -> tuple[int, float]:
        """The step and the time of the last step that is complete, counted or not."""
        return self.step + self.made, self.now

    def time_at(self, step: int) -> float:
        """The time of a step, origin + step · dt. (Adding up time steps would accumulate rounding errors.)"""
        return self.origin + step * self.dt

    def drift(self, dt: float) -> None:
        """Let time pass with the positions. No result is current afterwards."""
        self.now += dt
        self.drifts.append(dt)
        self.current = Outputs.NOTHING
