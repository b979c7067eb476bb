"""The progress of a run and its messages, on standard error."""

import math
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from nbody.cli.streams import Unbroken, print_message, status
from nbody.cli.summary import speed, unit_of
from nbody.compute.compiling.announce import announcing
from nbody.run.progress import Progress, Summary
from nbody.scenario.quantities import time_text
from nbody.whole_file import Notify

if TYPE_CHECKING:
    from nbody.run.simulation import Simulation

LOG_SECONDS = 10.0  # seconds between two lines of a batch job's log


@contextmanager
def messages(quiet: bool = False) -> Iterator[Notify]:
    """What a run tells on standard error: nothing if ``quiet``; on a terminal also that it compiles kernels, if that takes
    long."""
    notify: Notify = (lambda line: None) if quiet else print_message
    with announcing(notify) if quiet or _terminal() else nullcontext():
        yield notify


@contextmanager
def status_line() -> Iterator[Notify]:
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


def _log() -> Callable[[str], None]:
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
    known = (now.steps_per_s or not doing) and not math.isnan(now.energy_error)
    error = [f"ΔE/E {now.energy_error:+.1e}"] if known else []
    observed = [
        f"{SHORT.get(name, name)} {value:.4g} {unit_of(name, now.units)}".rstrip() for name, value in now.observed.items()
    ]
    return "  ".join([*doing, *speed(now), *error, *observed])


def run_with_bar(simulation: "Simulation", hidden: bool) -> Summary:
    """Run to the end with a progress bar, unless it is ``hidden``."""
    with progress_bar(hidden) as progress:
        for event in simulation.progress_events(progress=progress):  # run() would say what the summary says again
            progress(event.progress)
    assert simulation.summary is not None
    return simulation.summary


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
