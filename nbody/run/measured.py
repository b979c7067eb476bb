"""What is measured of the frames of a run: observables, energies, and whether all numbers are finite."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nbody.diagnostics.energy import Energies, booked, conserved_quantities
from nbody.diagnostics.observables import measured
from nbody.errors import RunFailed
from nbody.run.guards import check_finite
from nbody.run.setup import Setup
from nbody.state import Frame, Moment

if TYPE_CHECKING:
    from nbody.run.stepper import Stepper
    from nbody.trajectory import Checkpoint


class Start(NamedTuple):
    """Where a run goes on: at a checkpoint of its recording, or as a copy of another simulation.

    Attributes:
        moment: where it is.
        arrays: of the stepper.
        events: the number of collisions before.
        frames: the number of recorded frames that are kept.
        energies: the energies of these frames.
        checkpoint, path: of the recording; None for a copy.
        ends: the last of these frames is the end of a call, which is not on the schedule: a further call drops it.
    """

    moment: Moment
    arrays: Mapping[str, np.ndarray]
    events: int
    frames: int
    energies: Energies
    checkpoint: "Checkpoint | None" = None
    path: str | Path = ""
    ends: bool = False

    def restore(self, stepper: "Stepper") -> None:
        """Let a stepper go on there. Raises InputError: the checkpoint is damaged."""
        from nbody.trajectory.structure.opening import one_line

        with nullcontext() if self.checkpoint is None else one_line(self.path):
            stepper.restore(self.arrays, self.moment, self.events)


class Measured:
    """The frames of a recording so far: their number, their energies, and the latest observables. During a call of a run
    its recorder adds frames.

    Args:
        setup: what the run is.
        start: where the run goes on, if its first frames were recorded before.

    Attributes:
        observed: the latest observables that are single numbers, besides those of the sums.
    """

    def __init__(self, setup: Setup, start: Start | None = None) -> None:
        none = Energies(conserved=not setup.without_potential)
        self.setup, self.frames, self.energies = setup, *((start.frames, start.energies) if start else (0, none))
        self.observed: dict[str, float] = {}
        self._warned = False

    def add(self, frame: Frame) -> None:
        """Measure a frame that has arrived, which gets its ``observables``. Raises RunFailed: a number in it is not
        finite."""
        self._check(frame)
        more = {**frame.observables, **self.observables(frame)}
        self.observed = {name: value for name, value in more.items() if isinstance(value, float)}
        excluded = booked(self.observed)  # from the energy error
        for name in ("collision_energy", "booked_energy"):
            self.observed.pop(name, None)
        frame.observables = values = conserved_quantities(frame.sums) | more
        self.energies = self.energies.after(float(values["total_energy"]) - excluded)

    def _check(self, frame: Frame) -> None:
        scenario = self.setup.scenario
        functions = (field for field in scenario.fields or () if field.field == "function")
        check_finite(frame, scenario.gravity, next((str(getattr(field, "name", "")) for field in functions), ""))

    def check_energy(self, step: int) -> None:
        """Warn once, or raise RunFailed, if the energy error of the latest frame, of a ``step``, exceeds its limit."""
        limit = self.setup.scenario.on_energy_error
        if limit is None or self._warned or abs(self.energies.error) <= limit.limit:
            return
        line = (
            f"step {step}: the relative energy error is {self.energies.error:+.2e}, beyond the limit of "
            f"{limit.limit:g} (on_energy_error); try a smaller --dt"
        )
        if limit.action == "stop":
            raise RunFailed(line)
        self._warned = True
        self.setup.notify(f"warning: {line}")

    def with_unrecorded(self, frame: Frame) -> Energies:
        """The energies, and that of a frame that is not recorded. Raises RunFailed: a number in it is not finite."""
        self._check(frame.wait())
        energy = float(frame.sums[0]) + float(frame.sums[1]) - booked(frame.observables)
        frame.release()
        return self.energies.after(energy)

    def observables(self, frame: Frame) -> dict[str, float | np.ndarray]:
        """What the scenario records of a frame besides the conserved quantities."""
        scenario, slots = self.setup.scenario, frame.slots
        bodies = self.setup.bodies if slots is None else slots.bodies
        if scenario.ensemble:
            from nbody.forces.systems.cpu import energies

            law = scenario.gravity
            systems = law.G, law.length2, law.softening, scenario.ensemble.count
            found = energies(frame.position, frame.velocity, bodies.mass, *systems)
            if (fields := self.setup.plan.fields) is not None:
                own = fields.energies(frame.position, frame.velocity, bodies.mass, frame.time)
                found += (bodies.mass * own).reshape(len(found), -1).sum(axis=1)
            return {"system_energy": found}
        if not scenario.record.observables:
            return {}
        position, velocity = (array[:, : bodies.dimensions] for array in (frame.position, frame.velocity))
        if slots is not None:
            position, velocity = position[slots.left], velocity[slots.left]
        now = replace(bodies, position=position, velocity=velocity, time=frame.time, step=frame.step)
        return measured(scenario.record.observables, now, scenario.gravity.G, frame.extras)
