"""How far a run is, how fast it goes, and what it came to."""

import time
from dataclasses import asdict, dataclass

from nbody.state import State

HEARTBEAT = 0.2
"""Seconds between two looks at the clock: progress is shown and the device waited for this often, not every step."""


@dataclass(frozen=True)
class Progress:
    """Where a run is: what a progress bar shows. ``steps`` is the step at which it ends.

    While something takes long, ``doing`` says what (``step 13``), and ``fraction`` how much of its pairs are done.
    """

    step: int
    steps: int
    steps_per_s: float
    interactions_per_s: float
    energy_error: float
    doing: str = ""
    fraction: float = 0.0


@dataclass(frozen=True)
class Summary:
    """What a run did. Rates leave out the first steps, in which kernels compile, and the end of the recording, which
    waits for the disk; ``wall_s`` does not. ``energy_error`` is (E - E₀)/|E₀|;
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


class Clock:
    """Wall time of a run and the rate of its steps, leaving out the first ones, in which kernels compile."""

    def __init__(self) -> None:
        self.start = self.last_look = self.rate_start = time.perf_counter()
        self.skipped: int | None = None
        self.steps_per_s = 0.0

    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self.start

    def due(self) -> bool:
        """True once every :data:`HEARTBEAT`, and until the first steps are done."""
        return self.skipped is None or time.perf_counter() - self.last_look >= HEARTBEAT

    def look(self, steps: int, state: State, soon: bool = False) -> None:
        """Take the time after so many steps, with the device's work done: what is only queued has no rate. ``soon``: it is
        no more than a beat's."""
        state.synchronize(soon)
        self.last_look = time.perf_counter()
        if self.skipped is None:
            self.skipped, self.rate_start = steps, self.last_look
        elif steps > self.skipped:
            self.steps_per_s = (steps - self.skipped) / (self.last_look - self.rate_start)

    def steps_in_a_beat(self) -> int:
        """How many steps may be queued before the next look: one until the rate is known."""
        return max(1, int(self.steps_per_s * HEARTBEAT / 2))
