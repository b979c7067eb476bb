"""What a run shows while it goes on (on standard error) and when it ends."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from nbody.progress import Progress, Summary
from nbody.units import rate

LOG_SECONDS = 10.0


def say(line: str) -> None:
    """One line for the user, on standard error. If nobody reads it any more, that is no reason to end a run."""
    with suppress(OSError, ValueError):
        print(line, file=sys.stderr)


@contextmanager
def status_line() -> Iterator[Callable[[str], None]]:
    """One line on standard error that says what is being measured, where that is a terminal. (No spinner: its thread
    would compete with what is timed.)"""
    shown = sys.stderr.isatty()

    def notify(line: str) -> None:
        if shown:
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)

    try:
        yield notify
    finally:
        notify("")


def facts(now: Progress) -> str:
    """Speed and energy error, and how far a long step is, short enough for a bar."""
    doing = f"{now.doing}: {now.fraction:.0%}  " if now.doing else ""
    if not now.steps_per_s:  # nothing is known before the first steps are done
        return doing
    speed = f"{now.steps_per_s:.4g} steps/s  {rate(now.interactions_per_s)}interactions/s"
    return f"{doing}{speed}  ΔE/E {now.energy_error:+.1e}"


def summary_text(summary: Summary) -> str:
    """A finished run in four lines."""
    ended = f"interrupted at step {summary.step}" if summary.interrupted else f"{summary.steps} steps"
    energies = f"{summary.energy_initial:.9g} -> {summary.energy_final:.9g}"
    lines = [
        f"{summary.name}: {summary.particles} particles, {ended} to t = {summary.time:.6g} in {summary.wall_s:.3g} s",
        f"  {summary.engine} on {summary.device}, {summary.precision}, {summary.integrator}",
        f"  {summary.steps_per_s:.4g} steps/s, {rate(summary.interactions_per_s)}interactions/s",
        f"  energy {energies}, relative error {summary.energy_error:+.2e}",
    ]
    if summary.output:
        frames = "1 frame" if summary.frames == 1 else f"{summary.frames} frames"
        then = (
            f"go on with: nbody resume {summary.output}"
            if summary.interrupted
            else f"look: nbody view {summary.output}"
        )
        lines.append(f"  {frames} in {summary.output}; {then}")
    return "\n".join(lines)


@contextmanager
def progress_bar(hidden: bool = False) -> Iterator[Callable[[Progress], None]]:
    """A bar with the time left, steps/s, interactions/s and the energy error.

    Where standard error is not a terminal (a batch job's log), a line every ten seconds instead.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if hidden or not console.is_terminal:
        yield _log_lines(hidden)
        return
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("steps"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Bar(*columns, console=console) as bar:
        task = bar.add_task("", total=None)
        yield lambda now: bar.update(task, total=now.steps, completed=now.step, description=facts(now))


def _log_lines(hidden: bool) -> Callable[[Progress], None]:
    last = time.monotonic()

    def show(now: Progress) -> None:
        nonlocal last
        if not hidden and time.monotonic() - last >= LOG_SECONDS:
            last = time.monotonic()
            say(f"step {now.step}/{now.steps}  {facts(now)}")

    return show
