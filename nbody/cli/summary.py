"""The summary of a run, on standard output, and what its numbers are called."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from nbody.cli.streams import discard, result, result_json
from nbody.diagnostics.observables import OBSERVABLES
from nbody.errors import counted
from nbody.number_format import rate, size
from nbody.run.progress import Progress, Summary
from nbody.scenario.quantities import Units, time_text


def unit_of(observable: str, units: Units | None) -> str:
    """The unit of an observable; empty if it has none. (Collisions and ensembles observe numbers of their own.)"""
    quantity = OBSERVABLES.load(observable).quantity if observable in OBSERVABLES else ""
    return units.symbol(quantity) if units and quantity else ""


def speed(now: Progress | Summary) -> list[str]:
    """Steps and interactions per second, with a tree bodies per second; empty if too few steps were made to measure them."""
    if not now.steps_per_s:
        return []
    if now.bodies_per_s is not None:
        return [f"{now.steps_per_s:.4g} steps/s", f"{rate(now.bodies_per_s).strip()} bodies/s"]
    return [f"{now.steps_per_s:.4g} steps/s", f"{rate(now.interactions_per_s).strip()} interactions/s"]


def show_summary(summary: Summary, as_json: bool = False, quiet: bool = False) -> int:
    """Print the summary of a run, if it is not ``quiet`` or JSON is asked for. Returns the exit code: 130 for an interrupted
    run, even if its terminal is lost."""
    try:
        if as_json:  # a speed that was not measured is null
            unmeasured = [] if summary.steps_per_s else ["steps_per_s", "interactions_per_s", "bodies_per_s"]
            result_json(summary.as_dict() | dict.fromkeys(unmeasured))
        elif not quiet:
            result(summary_text(summary))
    except OSError:
        if not summary.interrupted:
            raise
        discard(sys.stdout)
    return 130 if summary.interrupted else 0


def summary_text(summary: Summary) -> str:
    """The summary of a run in a few lines."""
    bodies, made = counted(summary.particles, "particle"), counted(summary.steps, "step")
    ended = f"interrupted at step {summary.step}" if summary.interrupted else made
    energies = f"{summary.energy_initial:.9g} -> {summary.energy_final:.9g}"
    until = time_text(summary.time, summary.time_unit)
    lines = [
        f"{summary.name}: {bodies}, {ended} to t = {until} in {summary.wall_s:.3g} s{_overhead(summary)}",
        *([f"  stopped: {summary.stopped}"] if summary.stopped else []),
        f"  {summary.engine} on {summary.device}, {summary.precision}, {summary.integrator}",
        f"  energy {energies}, {_error(summary)}",
    ]
    if measured := speed(summary):
        lines.insert(-1, f"  {', '.join(measured)}, excluding compilation")
    if summary.body_steps is not None:
        start = "a step is a block: " if summary.blocks is not None else ""
        lines.insert(-1, f"  {start}{counted(summary.body_steps, 'step')} of single bodies")
    if summary.collisions is not None or summary.booked_energy is not None:
        lines.append(f"  {_changes(summary)}")
    if summary.output:
        lines.append(f"  {counted(summary.frames, 'frame')} in {_output(summary)}")
    if summary.warning:
        lines.append(f"  {summary.warning}")
    return "\n".join(lines)


def _changes(summary: Summary) -> str:
    """The number of collisions, that of the bodies that are left, and what this has changed."""
    words = [] if summary.collisions is None else [counted(summary.collisions, "collision")]
    left, energy, cause = summary.particles_left, summary.collision_energy, "mergers"
    if left != summary.particles or not words:
        words.append(f"{counted(left or 0, 'particle is', 'particles are')} left")
    if summary.booked_energy is not None:
        energy, cause = summary.booked_energy, "changes of the bodies"
    elif left == summary.particles:
        cause = "collisions"
    return ": ".join(words) + (f"; {cause} changed the energy by {energy:+.4g}" if energy else "")


def _error(summary: Summary) -> str:
    """The energy error, and the largest one of all frames if it is not the last one's."""
    if summary.without_potential:
        return not_conserved(summary.without_potential)
    last, largest = summary.energy_error, summary.energy_error_largest
    changes = summary.energy_changes
    what, why = ("relative change", f" ({changes})") if changes else ("relative error", "")
    return f"{what} {last:+.2e}" + (f", largest {largest:+.2e}" if abs(largest) > 1.5 * abs(last) else "") + why


def not_conserved(forces: Sequence[str]) -> str:
    """Why there is no energy error."""
    return f"not conserved: {', '.join(forces)} {'has' if len(forces) == 1 else 'have'} no potential"


def _overhead(summary: Summary) -> str:
    """The time of a run that was not spent on steps, if it is long: a first run compiles for seconds."""
    overhead = summary.wall_s - (summary.steps / summary.steps_per_s if summary.steps_per_s else summary.wall_s)
    large = overhead > max(1.0, summary.wall_s / 5)
    return f", including {overhead:.2g} s for compilation, start and end" if large else ""


def _output(summary: Summary) -> str:
    """The recording and the command that comes next."""
    if not summary.interrupted:
        return f"{summary.output}; view it with: nbody view {summary.output}"
    with suppress(OSError):
        room = f" ({size(Path(str(summary.output)).stat().st_size)}, with room for the whole run)"
        return f"{summary.output}{room}; continue with: nbody resume {summary.output}"
    return str(summary.output)
