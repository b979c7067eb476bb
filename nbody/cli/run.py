"""``nbody run``: runs a scenario and records it."""

from pathlib import Path
from typing import Annotated

import typer

from nbody.cli.commands import Replaced, grouped
from nbody.cli.options import AsJson, Overwrite, Quiet, Scenario
from nbody.cli.ranks import refuse_ranks


@grouped
def run(
    scenario: Scenario,
    replaced: Replaced,
    output: Annotated[Path, typer.Option("--output", "-o", help="The trajectory to write.")] = Path("output/run.h5"),
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
    view: Annotated[
        bool, typer.Option("--view", help="Show the run in a window; it goes on when that is closed.")
    ] = False,
) -> int:
    """Run a scenario and record it.

    An option replaces the scenario's value. Ctrl-C (or SIGTERM, or a lost
    terminal) ends the run after the current step and leaves a file that
    'nbody resume' can continue; a second Ctrl-C ends it at once, and a third
    one does not wait for the disk.

    Examples:

      nbody run scenarios/disk.yaml --particles 20480

      nbody run plummer --engine cpu --precision float64 --steps 100 --every 10

      nbody run scenarios/disk.yaml -o output/disk.h5 --quiet --json

      nbody run plummer --view
    """
    from nbody.cli.progress import messages, progress_bar, show_summary
    from nbody.run.simulation import Simulation
    from nbody.scenario.packaged import locate

    if view:
        refuse_ranks("--view")
    with messages(quiet) as notify:
        settings = replaced.load(locate(scenario, notify))
        if view:
            from nbody.cli.live import run_in_view

            return run_in_view(settings, output, overwrite, notify, quiet, as_json)
        simulation = Simulation(settings, output, overwrite=overwrite, notify=notify)
        with progress_bar(hidden=quiet) as progress:
            summary = simulation.run(progress=progress)
    return show_summary(summary, as_json)
