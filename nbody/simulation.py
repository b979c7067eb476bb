"""A run: step, diagnose, record."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from nbody.forces import ENGINES, resolve
from nbody.forces.memory import check_fits
from nbody.initial import check_initial, make_particles, resolved_initial
from nbody.integrators import INTEGRATORS
from nbody.integrators.scheme import Scheme, advance, advance_many
from nbody.interrupt import stop_on_signals
from nbody.recorder import Recorder
from nbody.scenario import Generated, Scenario
from nbody.state import State
from nbody.trajectory import RunHeader, TrajectoryWriter
from nbody.trajectory.provenance import collect_provenance

HEARTBEAT = 0.2
"""Seconds between two looks at the clock: progress is shown and the device waited for this often, not every step."""


@dataclass(frozen=True)
class Progress:
    """Where a run is: what a progress bar shows."""

    step: int
    steps: int
    steps_per_s: float
    interactions_per_s: float
    energy_error: float


@dataclass(frozen=True)
class Summary:
    """What a run did. Rates leave out the first step, in which kernels compile; ``energy_error`` is (E - E₀)/|E₀|."""

    name: str
    output: str | None
    engine: str
    device: str
    precision: str
    integrator: str
    particles: int
    steps: int
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

    def look(self, steps: int, state: State) -> None:
        """Take the time after so many steps, with the device's work done: what is only queued has no rate."""
        state.synchronize()
        self.last_look = time.perf_counter()
        if self.skipped is None:
            self.skipped, self.rate_start = steps, self.last_look
        elif steps > self.skipped:
            self.steps_per_s = (steps - self.skipped) / (self.last_look - self.rate_start)

    def steps_in_a_beat(self) -> int:
        """How many steps may be queued before the next look: one until the rate is known."""
        return max(1, int(self.steps_per_s * HEARTBEAT / 2))


def frame_count(every: int, first: int, last: int) -> int:
    """How many frames the steps ``first`` to ``last`` record: the first step, each ``every``-th, and the last."""
    return 1 + last // every - first // every + (last % every != 0 and last > first)


class Simulation:
    """A scenario made real: its particles on the engine's device, and the loop that moves them.

    Args:
        scenario: what to simulate.
        output: the trajectory to write; None keeps nothing.
        overwrite: replace an existing output instead of keeping it under a numbered name.
        notify: gets one line about a choice made for the user (``auto``'s engine, a file kept under another name).

    Raises:
        InputError: the scenario names something that does not exist, or needs more memory or disk than there is.
        DeviceError: a GPU engine was named, and there is no GPU.
    """

    def __init__(
        self,
        scenario: Scenario,
        output: str | Path | None = None,
        overwrite: bool = False,
        notify: Callable[[str], None] = lambda line: None,
    ) -> None:
        check_initial(scenario)
        self.scenario, self.output, self.overwrite, self.notify = scenario, output, overwrite, notify
        self.scheme: Scheme = INTEGRATORS.load(scenario.integrator.scheme, scenario.where("integrator.scheme"))
        self.engine_name, why = resolve(scenario.engine, scenario.precision, scenario.where("engine"))
        if why:
            notify(f"engine: {self.engine_name} ({why})")
        engine_type = ENGINES.load(self.engine_name)
        engine_type.require_device()
        if isinstance(scenario.initial, Generated):  # a file's bodies are counted as they are read
            check_fits(engine_type, scenario.initial.particles, scenario.precision, scenario.where("initial.particles"))
        self.engine = engine_type(scenario.gravity, scenario.precision)
        self.particles = make_particles(scenario)
        self.state = self.engine.load(self.particles)
        self.step = 0

    def run(self, steps: int | None = None, progress: Callable[[Progress], None] = lambda now: None) -> Summary:
        """Make the scenario's steps (or so many), recording frame 0, every ``record.every``-th step and the last.

        SIGINT or SIGTERM ends the run after the current step, with a frame of it.

        Raises:
            RunFailed: a number in the state is no longer finite, or the file can't be written; the frames before
                are kept.
        """
        last = self.step + (self.scenario.integrator.steps if steps is None else steps)
        clock = Clock()
        with ExitStack() as stack:
            stop = stack.enter_context(stop_on_signals())
            writer = None if self.output is None else stack.enter_context(self._writer(last))
            recorder = Recorder(writer)
            stack.callback(recorder.close)
            self._record(recorder)
            first = self.step
            while self.step < last and not stop.requested:
                queued = self._advance(recorder, last, clock.steps_in_a_beat())
                if queued > 1 or clock.due():
                    clock.look(self.step - first, self.state)
                    progress(self._progress(clock, recorder, last))
            if not self._due(self.step, last):  # interrupted between frames
                self._record(recorder)
            recorder.close()
            if writer is not None:
                writer.close(complete=self.step == last)
            clock.look(self.step - first, self.state)
            progress(self._progress(clock, recorder, last))
        return self._summary(clock, recorder, self.step - first, stop.requested)

    def _writer(self, last: int) -> TrajectoryWriter:
        """The file, with room for every frame up to step ``last``."""
        every, first = self.scenario.record.every, self.step
        header = RunHeader(
            frames=frame_count(every, first, last),
            dtype=str(self.state.dtype),
            scenario_text=self.scenario.text,
            resolved=self.scenario.resolved() | {"initial": resolved_initial(self.scenario)},
            provenance=collect_provenance(
                engine=self.engine_name,
                device=self.engine.device_name(),
                driver=self.engine.driver(),
                precision=self.scenario.precision,
                seed=getattr(self.scenario.initial, "seed", "none: the bodies come from a file"),
            ),
        )
        assert self.output is not None
        return TrajectoryWriter(self.output, self.particles, header, overwrite=self.overwrite, notify=self.notify)

    def _due(self, step: int, last: int) -> bool:
        return step % self.scenario.record.every == 0 or step == last

    def _advance(self, recorder: Recorder, last: int, at_most: int) -> int:
        """To the step before the next frame, but at most so many steps; or, from there, the step to the frame.
        Returns the number of steps."""
        every, dt = self.scenario.record.every, self.scenario.integrator.dt
        frame = min((self.step // every + 1) * every, last)
        if between := min(frame - 1 - self.step, at_most):
            advance_many(self.scheme, self.engine, self.state, dt, between)
            self.step += between
            return between
        advance(self.scheme, self.engine, self.state, dt, potential=True)
        self.step += 1
        self._record(recorder)
        return 1

    def _record(self, recorder: Recorder) -> None:
        self.engine.evaluate(self.state, potential=True)
        recorder.record(self.step, self.time, self.state.snapshot())

    @property
    def time(self) -> float:
        """The moment of the state: the start's, plus steps times dt (summing dt would drift)."""
        return self.particles.time + (self.step - self.particles.step) * self.scenario.integrator.dt

    def _progress(self, clock: Clock, recorder: Recorder, last: int) -> Progress:
        rate = clock.steps_per_s
        return Progress(self.step, last, rate, rate * self.state.count**2, recorder.energies.error)

    def _summary(self, clock: Clock, recorder: Recorder, done: int, interrupted: bool) -> Summary:
        rate, energies = clock.steps_per_s, recorder.energies
        return Summary(
            name=self.scenario.name,
            output=None if self.output is None else str(self.output),
            engine=self.engine_name,
            device=self.engine.device_name(),
            precision=self.scenario.precision,
            integrator=self.scenario.integrator.scheme,
            particles=self.state.count,
            steps=done,
            time=self.time,
            wall_s=clock.seconds(),
            steps_per_s=rate,
            interactions_per_s=rate * self.state.count**2,
            energy_initial=energies.initial,
            energy_final=energies.latest,
            energy_error=energies.error,
            frames=recorder.frames,
            interrupted=interrupted,
        )
