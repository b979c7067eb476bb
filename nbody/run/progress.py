"""How far a run is, how fast it goes, and what it came to."""

import time
from dataclasses import asdict, dataclass

from nbody.state import State

HEARTBEAT = 0.2
"""Seconds between two looks at the clock: progress is shown and the device waited for this often, not every step."""


@dataclass(frozen=True)
class Progress:
    """Where a run is: what a progress bar shows. ``steps`` is the step at which it ends, None if it ends at a time;
    ``fraction_done`` is how much of the run is done.

    While something takes long, ``doing`` says what (``step 13``), and ``fraction`` how much of its pairs are done.
    """

    step: int
    steps: int | None
    time: float
    steps_per_s: float
    interactions_per_s: float
    energy_error: float
    fraction_done: float
    doing: str = ""
    fraction: float = 0.0


@dataclass(frozen=True)
class Summary:
    """What a run did. Rates leave out the first steps, in which kernels compile and a GPU's graphs are recorded, and the end
    of the recording, which waits for the disk; ``wall_s`` does not. ``energy_error`` is (E - E₀)/|E₀|;
    ``steps`` are those made now, ``step`` is where the run stands, ``frames`` all that the file has (or would have)."""

    name: str
    output: str | None
    engine: str
    device: str
    precision: str
    integrator: str
    particles: int
    steps: int
    step: int
    time: float
    wall_s: float
    steps_per_s: float
    interactions_per_s: float
    energy_initial: float
    energy_final: float
    energy_error: float
    frames: int
    interrupted: bool

    def as_dict(self) -> dict:
        """For JSON."""
        return asdict(self)


SETTLED = 3
"""Looks until a run is at its pace. Before the first its kernels compile; the second tells how many steps a beat has; with
the first beat a GPU's graphs are recorded (20480 particles, every step kept: 10 ms of an H200's time)."""


class Clock:
    """Wall time of a run and the rate of its steps, leaving out the first ones: those before the run was at its pace, if it
    went on for longer than that took, else the very first."""

    def __init__(self, evaluations: int = 1) -> None:
        self._evaluations = evaluations
        self.start = self.last_look = time.perf_counter()
        self.steps_per_s = 0.0
        self._begun: list[tuple[int, float]] = []  # steps, and the time, at the first looks

    @property
    def settled(self) -> bool:
        """True if the rate is that of a run at its pace."""
        return len(self._begun) == SETTLED

    def interactions_per_s(self, work: int) -> float:
        """The rate of interactions, with ``work`` of them per force evaluation."""
        return self.steps_per_s * self._evaluations * work

    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self.start

    def due(self) -> bool:
        """True once every :data:`HEARTBEAT`, and until the first steps are done."""
        return not self._begun or time.perf_counter() - self.last_look >= HEARTBEAT

    def look(self, steps: int, state: State, soon: bool = False) -> None:
        """Take the time after so many steps, with the device's work done: what is only queued has no rate. ``soon``: it is
        no more than a beat's."""
        state.synchronize(soon)
        self.last_look = time.perf_counter()
        if len(self._begun) < SETTLED:
            self._begun.append((steps, self.last_look))
        first, settled = self._begun[0], self._begun[-1]
        before, begun = settled if self.last_look - settled[1] > settled[1] - first[1] else first
        if steps > before:
            self.steps_per_s = (steps - before) / (self.last_look - begun)

    def steps_in_a_beat(self) -> int:
        """How many steps may be queued before the next look: one until the rate is known."""
        return max(1, int(self.steps_per_s * HEARTBEAT / 2))
