"""What a run prints: its progress on standard error, its summary at the end."""

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbody.cli.streams import Unbroken, discard, print_message, result, result_json, status
from nbody.compute.announce import announcing
from nbody.diagnostics.observables import OBSERVABLES
from nbody.errors import counted
from nbody.number_format import rate, size
from nbody.run.progress import Progress, Summary
from nbody.scenario.quantities import Units, time_text

if TYPE_CHECKING:
    from nbody.run.simulation import Simulation

Tell = Callable[[str], None]  # shows a line
LOG_SECONDS = 10.0  # seconds between two lines of a batch job's log


@contextmanager
def messages(quiet: bool = False) -> Iterator[Tell]:
    """What a run tells on standard error: nothing if ``quiet``; on a terminal also that it compiles kernels, if that takes
    long."""
    if quiet:
        yield lambda line: None
        return
    with announcing(print_message) if _terminal() else nullcontext():
        yield print_message


@contextmanager
def status_line() -> Iterator[Tell]:
    """One status line on standard error, which is overwritten; without a terminal (a batch job's log), one line every ten
    seconds. (No spinner: its thread would disturb the measurement.)"""
    if not _terminal():
        yield _log()
        return
    try:
        # The beginning of a line that is folded would not be cleared.
        yield lambda line: status(line, shutil.get_terminal_size().columns)
    finally:
        status("", shutil.get_terminal_size().columns)


def _terminal() -> bool:
    """True if standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def _log() -> Tell:
    """Prints a line, unless it has printed one in the last :data:`LOG_SECONDS`."""
    last = time.monotonic()

    def show(line: str) -> None:
        nonlocal last
        if line and time.monotonic() - last >= LOG_SECONDS:
            last = time.monotonic()
            print_message(line)

    return show


SHORT = {"half_mass_radius": "r½", "core_radius": "r_core"}  # observables whose names are too long for a progress bar


def facts(now: Progress) -> str:
    """Progress of a long step, speed, energy error and recorded observables, short enough for a progress bar."""
    doing = [f"{now.doing}: {now.fraction:.0%}"] if now.doing else []
    error = [f"ΔE/E {now.energy_error:+.1e}"] if now.steps_per_s or not doing else []
    observed = [
        f"{SHORT.get(name, name)} {value:.4g} {unit_of(name, now.units)}".rstrip()
        for name, value in now.observed.items()
    ]
    return "  ".join([*doing, *_speed(now), *error, *observed])


def unit_of(observable: str, units: Units | None) -> str:
    """The unit of an observable; empty if it has none. (Collisions and ensembles observe numbers of their own.)"""
    quantity = OBSERVABLES.load(observable).quantity if observable in OBSERVABLES else ""
    return units.symbol(quantity) if units and quantity else ""


def _speed(now: Progress | Summary) -> list[str]:
    """Steps and interactions per second, with a tree bodies per second; empty if too few steps were made to measure them."""
    if not now.steps_per_s:
        return []
    if now.bodies_per_s is not None:
        return [f"{now.steps_per_s:.4g} steps/s", f"{rate(now.bodies_per_s).strip()} bodies/s"]
    return [f"{now.steps_per_s:.4g} steps/s", f"{rate(now.interactions_per_s).strip()} interactions/s"]


def show_summary(summary: Summary, as_json: bool = False) -> int:
    """Print the summary of a run and return the exit code: 130 for an interrupted run, even if its terminal is lost."""
    try:
        if as_json:  # a speed that was not measured is null
            unmeasured = [] if summary.steps_per_s else ["steps_per_s", "interactions_per_s", "bodies_per_s"]
            result_json(summary.as_dict() | dict.fromkeys(unmeasured))
        else:
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
        f"  {summary.engine} on {summary.device}, {summary.precision}, {summary.integrator}",
        f"  energy {energies}, relative error {summary.energy_error:+.2e}{_largest(summary)}",
    ]
    if speed := _speed(summary):
        lines.insert(2, f"  {', '.join(speed)}, excluding compilation")
    if summary.body_steps is not None:
        start = "a step is a block: " if summary.blocks is not None else ""
        lines.insert(-1, f"  {start}{counted(summary.body_steps, 'step')} of single bodies")
    if summary.collisions is not None:
        lines.append(f"  {_collisions(summary)}")
    if summary.output:
        lines.append(f"  {counted(summary.frames, 'frame')} in {_output(summary)}")
    return "\n".join(lines)


def _collisions(summary: Summary) -> str:
    """The number of collisions, and what mergers have changed."""
    text = counted(summary.collisions or 0, "collision")
    if summary.particles_left == summary.particles:
        return text
    change = f"mergers changed the energy by {summary.collision_energy:+.4g}"
    return f"{text}: {counted(summary.particles_left or 0, 'particle is', 'particles are')} left; {change}"


def _largest(summary: Summary) -> str:
    """The largest energy error of all frames, if it is not the last one's."""
    last, largest = summary.energy_error, summary.energy_error_largest
    return f", largest {largest:+.2e}" if abs(largest) > 1.5 * abs(last) else ""


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


def run_with_bar(simulation: "Simulation", hidden: bool) -> Summary:
    """Run to the end with a progress bar, unless it is ``hidden``."""
    with progress_bar(hidden) as progress:
        return simulation.run(progress=progress)


@contextmanager
def progress_bar(hidden: bool = False) -> Iterator[Callable[[Progress], None]]:
    """A progress bar with the remaining time, steps/s, interactions/s and the energy error; see :func:`fraction_bar`."""
    with fraction_bar(hidden) as show:
        yield lambda now: show(now.fraction_done, f"{position(now)}  {facts(now)}")


@contextmanager
def fraction_bar(hidden: bool = False) -> Iterator[Callable[[float, str], None]]:
    """A progress bar with the remaining time and a text, of the fraction that is done (0 to 1); without a terminal,
    one line every ten seconds instead."""
    if hidden or not _terminal():
        log = (lambda line: None) if hidden else _log()
        yield lambda fraction, text: log(text)
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = BarColumn(), TimeRemainingColumn(), TextColumn("{task.description}")
    terminal: Any = Unbroken(sys.stderr)
    with Bar(*columns, console=Console(file=terminal)) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda fraction, text: bar.update(task, completed=fraction, description=text)


def position(now: Progress) -> str:
    """The current step and the last one; or, if the run ends at a time, the step and the time."""
    time = time_text(now.time, now.units.time if now.units else "")
    return f"step {now.step}, t = {time}" if now.steps is None else f"step {now.step}/{now.steps}"
