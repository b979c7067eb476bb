"""What a run tells of itself: its progress between two steps, and its summary at the end."""

from typing import TYPE_CHECKING

from nbody.diagnostics.energy import Energies
from nbody.integrators.integrator import SchemeReport
from nbody.run.progress import Clock, Progress, Summary
from nbody.run.schedule import Schedule, StepSchedule

if TYPE_CHECKING:
    from nbody.run.simulation import Simulation


def progress_of(
    run: "Simulation", clock: Clock, schedule: Schedule, energies: Energies, doing: str = "", fraction: float = 0.0
) -> Progress:
    """The progress of a run at this moment; ``doing`` and ``fraction`` describe a long step."""
    report = run.integrator.report(run.motion)
    return Progress(
        step=run.steps_made,
        steps=schedule.last if isinstance(schedule, StepSchedule) else None,
        time=run.time,
        steps_per_s=clock.steps_per_s,
        interactions_per_s=clock.steps_per_s * report.pairs_per_step,
        bodies_per_s=_bodies_per_s(run, clock, report),
        energy_error=energies.error,
        fraction_done=schedule.fraction(run.steps_made, run.time),
        doing=doing,
        fraction=fraction,
        observed=run.recording.observed,
        units=run.scenario.units,
    )


def summary_of(run: "Simulation", clock: Clock, done: int, single: int | None, interrupted: bool) -> Summary:
    """The summary of a call that has made ``done`` steps. ``single``: the steps of single bodies before it."""
    report, energies = run.integrator.report(run.motion), run.recording.energies
    body_steps = report.body_steps
    return Summary(
        name=run.scenario.name,
        output=None if run.output is None else str(run.output),
        engine=run.engine_name,
        device=run.engine.identity(run.state).device,
        precision=run.scenario.precision,
        integrator=run.scenario.integrator.scheme,
        particles=run.bodies.count,
        steps=done,
        step=run.steps_made,
        time=run.time,
        wall_s=clock.seconds(),
        steps_per_s=clock.steps_per_s,
        interactions_per_s=clock.steps_per_s * report.pairs_per_step,
        bodies_per_s=_bodies_per_s(run, clock, report),
        energy_initial=energies.initial,
        energy_final=energies.latest + (run.colliding.now.energy if run.colliding else 0.0),
        energy_error=energies.error,
        frames=run.frames,
        interrupted=interrupted,
        energy_error_largest=energies.largest_error,
        blocks=done if body_steps is not None and run.integrator.facts.adaptive else None,
        body_steps=None if body_steps is None else body_steps - (single or 0),
        time_unit=run.scenario.units.time if run.scenario.units else "",
        **(run.colliding.summary() if run.colliding else {}),
    )


def _bodies_per_s(run: "Simulation", clock: Clock, report: SchemeReport) -> float | None:
    """The bodies whose forces a tree computes per second; None with direct sums."""
    return clock.steps_per_s * report.bodies_per_step if run.engine.can.is_tree else None
