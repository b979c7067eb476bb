"""``nbody run``, ``nbody resume`` and ``nbody rerun``: record a run, continue it, repeat it."""

from pathlib import Path
from typing import Annotated

import typer

from nbody.cli.diff import show_difference
from nbody.cli.groups import Replaced, grouped
from nbody.cli.options import (
    AsJson,
    Gpus,
    Overwrite,
    Quantity,
    Quiet,
    Recording,
    Scenario,
    Served,
    count_option,
    quantity_option,
)
from nbody.cli.ranks import refuse_ranks
from nbody.errors import InputError


@grouped
def run(
    scenario: Scenario,
    replaced: Replaced,
    output: Annotated[Path, typer.Option("--output", "-o", help="The trajectory to write.")] = Path("output/run.h5"),
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
    view: Annotated[bool, typer.Option("--view", help="Show the run in a window; it goes on when that is closed.")] = False,
    served: Served = Served(),
) -> int:
    """Run a scenario and record it.

    An option replaces the scenario's value. Ctrl-C (or SIGTERM, or a lost
    terminal) ends the run after the current step and leaves a file that
    'nbody resume' can continue; a second Ctrl-C ends it at once, and a third
    one does not wait for the disk.

    \b
    Examples:
      nbody run scenarios/disk.yaml --particles 20480
      nbody run plummer --engine cpu --precision float64 --steps 100 --every 10
      nbody run scenarios/disk.yaml -o output/disk.h5 --quiet --json
      nbody run plummer --view
      nbody run plummer --web
    """
    from nbody.cli.progress import messages, run_with_bar
    from nbody.cli.summary import show_summary
    from nbody.run.simulation import Simulation
    from nbody.scenario.packaged import locate

    screen = served.screen()
    if shown := view or served.web:
        refuse_ranks(screen.option)
    elif served.memory is not None:
        raise InputError("--memory: is for a view; add --view or --web")
    with messages(quiet) as notify:
        settings = replaced.load(locate(scenario, notify))
        if shown:
            from nbody.cli.live import run_in_view

            return run_in_view(settings, output, overwrite, notify, quiet, as_json, served)
        summary = run_with_bar(Simulation(settings, output, overwrite=overwrite, notify=notify), quiet)
    return show_summary(summary, as_json, quiet)


def resume(
    run: Recording,
    steps: Annotated[
        int | None, count_option("Steps of the whole run, including those already made; by default as planned.")
    ] = None,
    end: Annotated[Quantity, quantity_option("The time at which the run ends.", "--end", "--until")] = None,
    every: Annotated[int | None, count_option("Steps between recorded frames, from here on.")] = None,
    gpus: Gpus = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> int:
    """Continue a run, or a map, after a crash, an interrupt or its end, in the same file.

    It starts from the last checkpoint. On the same machine with the same
    versions, the result has the same bits as that of a run that was never
    interrupted; if something differs, a warning says what.

    \b
    Examples:
      nbody resume output/run.h5
      nbody resume output/run.h5 --steps 2000
    """
    from nbody.cli.progress import messages, run_with_bar
    from nbody.cli.summary import show_summary
    from nbody.run.resume import resume as resumed
    from nbody.trajectory.grid_file import is_map

    if is_map(run):
        options = {"--steps": steps, "--end": end, "--every": every, "--gpus": gpus}
        if given := [name for name, value in options.items() if value is not None]:
            raise InputError(f"{given[0]}: a map is completed as planned; leave it out, or make another: nbody map")
        from nbody.cli.map import compute
        from nbody.maps.stability_map import StabilityMap

        return compute(StabilityMap.load(run), quiet, as_json)
    with messages(quiet) as notify:
        simulation = resumed(run, steps, every, notify, end, gpus)
        made = simulation.steps_made
        if simulation.setup.plan.schedule.ended(simulation.stepper.moment):
            option = "--end" if simulation.scenario.integrator.steps is None else "--steps"
            notify(f"{run}: the run is at its end, step {made}; to continue, give {option} a larger number")
        summary = run_with_bar(simulation, quiet)
    return show_summary(summary, as_json, quiet)


def rerun(
    run: Recording,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where to record; by default RUN.again.h5.")] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare both recordings bit by bit; exit with 1 if they differ.")
    ] = False,
    overwrite: Overwrite = False,
    gpus: Gpus = None,
    quiet: Quiet = False,
) -> int:
    """Repeat a recorded run: same first frame, scenario and engine. --verify compares the two recordings.

    \b
    Examples:
      nbody rerun output/run.h5 --verify
      nbody rerun output/run.h5 -o output/again.h5 --gpus 1
    """
    from nbody.cli.progress import messages, run_with_bar
    from nbody.cli.summary import show_summary
    from nbody.parallel import team
    from nbody.run.resume import rerun as repeated
    from nbody.trajectory import first_difference

    target = output or run.with_name(f"{run.stem}.again{run.suffix}")
    with messages(quiet) as notify:
        summary = run_with_bar(repeated(run, target, overwrite, notify, gpus), quiet)
    code = show_summary(summary, quiet=quiet)
    if code or not verify:
        return code
    difference = team().broadcast(first_difference(run, target) if team().first else None)
    return show_difference(run, target, difference)
