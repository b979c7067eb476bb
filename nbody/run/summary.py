"""What a run tells of itself: its progress between two steps, and its summary at the end."""

from typing import TYPE_CHECKING

from nbody.run.progress import Clock, Progress, Summary
from nbody.run.schedule import Schedule, StepSchedule

if TYPE_CHECKING:
    from nbody.run.simulation import Simulation


def progress_of(
    run: "Simulation", clock: Clock, schedule: Schedule, doing: str = "", fraction: float = 0.0
) -> Progress:
    """The progress of a run at this moment; ``doing`` and ``fraction`` describe a long step."""
    return Progress(
        step=run.step,
        steps=schedule.last if isinstance(schedule, StepSchedule) else None,
        time=run.time,
        steps_per_s=clock.steps_per_s,
        interactions_per_s=clock.steps_per_s * run.integrator.pairs_per_step(run.motion),
        bodies_per_s=_bodies_per_s(run, clock),
        energy_error=run.energies.error,
        fraction_done=schedule.fraction(run.step, run.time),
        doing=doing,
        fraction=fraction,
        observed=run.recording.observed,
        units=run.scenario.units,
    )


def summary_of(run: "Simulation", clock: Clock, done: int, single: int | None, interrupted: bool) -> Summary:
    """The summary of a call that has made ``done`` steps. ``single``: the steps of single bodies before it."""
    individual = run.integrator.single is not None
    return Summary(
        name=run.scenario.name,
        output=None if run.output is None else str(run.output),
        engine=run.engine_name,
        device=run.engine.devices_name(run.state),
        precision=run.scenario.precision,
        integrator=run.scenario.integrator.scheme,
        particles=run.bodies.count,
        steps=done,
        step=run.step,
        time=run.time,
        wall_s=clock.seconds(),
        steps_per_s=clock.steps_per_s,
        interactions_per_s=clock.steps_per_s * run.integrator.pairs_per_step(run.motion),
        bodies_per_s=_bodies_per_s(run, clock),
        energy_initial=run.energies.initial,
        energy_final=run.energies.latest + (run.colliding.now.energy if run.colliding else 0.0),
        energy_error=run.energies.error,
        frames=run.frames,
        interrupted=interrupted,
        energy_error_largest=run.energies.largest_error,
        blocks=done if individual and run.integrator.adaptive else None,
        body_steps=(run.integrator.single or 0) - (single or 0) if individual else None,
        time_unit=run.scenario.units.time if run.scenario.units else "",
        **(run.colliding.summary() if run.colliding else {}),
    )


def _bodies_per_s(run: "Simulation", clock: Clock) -> float | None:
    """The bodies whose forces a tree computes per second; None with direct sums."""
    return clock.steps_per_s * run.integrator.bodies_per_step(run.motion) if run.engine.can.growth == 1 else None
