"""The progress bar of a run, on standard error."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nbody.simulation import Progress


def say(line: str) -> None:
    """One line for the user, on standard error."""
    print(line, file=sys.stderr)


def rate(value: float) -> str:
    """A rate with its prefix: 2.5e10 is ``25.0 G``."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}"
    return f"{value:.3g} "


@contextmanager
def progress_bar(hidden: bool = False) -> Iterator[Callable[[Progress], None]]:
    """A bar with the time left, steps/s, interactions/s and the energy error.

    Where standard error is not a terminal nothing is drawn, so that logs stay short.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        BarColumn(), MofNCompleteColumn(), TextColumn("steps"), TimeRemainingColumn(), TextColumn("{task.fields[facts]}"),
    )  # fmt: skip
    console = Console(stderr=True)
    with Bar(*columns, console=console, disable=hidden or not console.is_terminal) as bar:
        task = bar.add_task("run", total=None, facts="")

        def show(now: Progress) -> None:
            facts = (
                f"{now.steps_per_s:.4g} steps/s  {rate(now.interactions_per_s)}interactions/s  "
                f"ΔE/E {now.energy_error:+.1e}"
            )
            bar.update(task, total=now.steps, completed=now.step, facts=facts)

        yield show
