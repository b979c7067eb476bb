"""Progress, speed and summary of a run."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from nbody.errors import counted
from nbody.state import State

if TYPE_CHECKING:
    from nbody.scenario.quantities import Units

HEARTBEAT = 0.2
"""Seconds between updates of the progress and synchronizations with the device."""

LARGE_ERROR = 0.1
"""Relative energy errors above this are a warning."""


@dataclass(frozen=True)
class Progress:
    """The state of a run as a progress bar shows it. ``steps`` is the last step, None for a run that ends at a time;
    ``fraction_done`` is how much of the run is done.

    With a tree ``bodies_per_s`` is the number of bodies whose forces are computed per second; else None.

    During a long step, ``doing`` names it (``step 13``) and ``fraction`` is the share of its pairs that is done.
    """

    step: int
    steps: int | None
    time: float
    steps_per_s: float
    interactions_per_s: float
    bodies_per_s: float | None
    energy_error: float
    fraction_done: float
    doing: str = ""
    fraction: float = 0.0
    observed: Mapping[str, float] = field(default_factory=dict)
    """The scenario's observables of the latest frame that are single numbers."""
    units: "Units | None" = None
    """The scenario's."""


@dataclass(frozen=True)
class Summary:
    """The result of a run.

    Rates exclude the first steps, which compile kernels and record GPU graphs, and the end of the recording, which waits for
    the disk; ``wall_s`` includes both. ``energy_error`` is (E - E₀)/|E₀| of the last frame,
    ``energy_error_largest`` that of the frame where it is largest. ``steps`` counts the steps of this call, ``step``
    is the number of the last step, ``frames`` counts all frames of the recording (without a file, the first
    moment and the last).
    ``interactions_per_s`` of a tree counts what it computes, pairs and moments; ``bodies_per_s`` is the number of bodies
    whose forces it computes per second (None with direct sums). With individual steps ``body_steps`` counts the steps of
    single bodies; if a step is a block, ``blocks`` equals ``steps``.
    """

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
    energy_error_largest: float = 0.0
    blocks: int | None = None
    body_steps: int | None = None
    time_unit: str = ""
    bodies_per_s: float | None = None
    collisions: int | None = None
    """All collisions in the recording; None if the scenario does not look for them."""
    particles_left: int | None = None
    """The number of bodies after mergers and other changes."""
    collision_energy: float | None = None
    """What mergers have added to the energy; the errors above leave it out."""
    without_potential: Sequence[str] = ()
    """Forces that the energies leave out; the errors above are then NaN."""
    energy_changes: str = ""
    """Why the errors above are changes of the energy rather than errors; empty for most runs."""
    booked_energy: float | None = None
    """What all changes of the bodies have added to it, mergers too; None if there were no others."""
    stopped: str = ""
    """The event or the collision that has ended the run, in words, with its time; the bodies are those at the end of its
    step."""

    def __repr__(self) -> str:
        made = f"{counted(self.particles, 'particle')}, {counted(self.steps, 'step')} in {self.wall_s:.3g} s"
        error = "" if self.without_potential else f", energy error {self.energy_error:+.2e}"
        return f"<Summary of {self.name!r}: {made}, to t = {self.time:.6g} {self.time_unit}".rstrip() + f"{error}>"

    @property
    def warning(self) -> str:
        """A line about an energy error above :data:`LARGE_ERROR`; empty if there is none, or if the energy may change."""
        largest = max(self.energy_error, self.energy_error_largest, key=abs)
        if self.energy_changes or not abs(largest) > LARGE_ERROR:
            return ""
        return (
            f"warning: an energy error of {100 * largest:.3g} % is too large to trust the run; take a smaller --dt, a "
            "larger softening, or a scheme for close encounters (nbody list integrators)"
        )

    def as_dict(self) -> dict:
        """For JSON, which has no NaN: an unknown energy error is None."""
        return {name: None if value != value else value for name, value in asdict(self).items()}


STEADY = 3
"""Calls of :meth:`WallClock.look` until the speed is steady. Kernels compile before the first; the second measures how many
steps fit between two calls; GPU graphs are recorded before the third (20480 particles, every step recorded: 10 ms on an
H200)."""


class WallClock:
    """Wall time of a run and the rate of its steps. The rate excludes the steps before the speed was steady if the run
    lasted longer than those steps did, else only the first step. Several ranks (not ``alone``) look at it only after the
    steps on which they have agreed."""

    def __init__(self, alone: bool = True) -> None:
        self._alone = alone
        self.start = self.last_look = time.perf_counter()
        self.steps_per_s = 0.0
        self._begun: list[tuple[int, float]] = []  # number of steps and time at the first looks

    @property
    def is_steady(self) -> bool:
        return len(self._begun) == STEADY

    def seconds(self) -> float:
        return time.perf_counter() - self.start

    def due(self) -> bool:
        """True once every :data:`HEARTBEAT`, and until the first steps are done."""
        return self._alone and (not self._begun or time.perf_counter() - self.last_look >= HEARTBEAT)

    def look(self, steps: int, state: State, soon: bool = False) -> None:
        """Measure the time after ``steps`` steps, once the device has finished them. ``soon``: it finishes them within a
        heartbeat."""
        state.progress.wait(soon)
        self.last_look = time.perf_counter()
        if len(self._begun) < STEADY:
            self._begun.append((steps, self.last_look))
        first, latest = self._begun[0], self._begun[-1]
        before, begun = latest if self.last_look - latest[1] > latest[1] - first[1] else first
        if steps > before:
            self.steps_per_s = (steps - before) / (self.last_look - begun)

    def exclude(self, seconds: float) -> None:
        """Leave out a pause that has just ended from the rate of the steps."""
        self.last_look += seconds
        self._begun = [(steps, begun + seconds) for steps, begun in self._begun]

    def steps_per_heartbeat(self) -> int:
        """How many steps may be queued before the next look: one until the rate is known."""
        return max(1, int(self.steps_per_s * HEARTBEAT / 2))
