"""``nbody resume``: continues a recorded run from its last checkpoint."""

from typing import Annotated, Any

from nbody.cli.options import AsJson, Gpus, Quiet, Recording, count_option, quantity_option


def resume(
    run: Recording,
    steps: Annotated[
        int | None, count_option("Steps of the whole run, including those already made; by default as planned.")
    ] = None,
    end: Annotated[Any, quantity_option("The time at which the run ends.", "--end", "--until")] = None,
    every: Annotated[int | None, count_option("Steps between recorded frames, from here on.")] = None,
    gpus: Gpus = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> int:
    """Continue a run after a crash, an interrupt or its end, in the same file.

    It starts from the last checkpoint. On the same machine with the same versions, the result has the same bits as that of a
    run that was never interrupted; if something differs, a warning says what.

    Examples:

      nbody resume output/run.h5

      nbody resume output/run.h5 --steps 2000
    """
    from nbody.cli.progress import messages, progress_bar, show_summary
    from nbody.run.resume import resume as resumed

    with messages(quiet) as notify:
        simulation = resumed(run, steps, every, notify, end, gpus)
        if simulation.plan.schedule.ended(*simulation.stepper.reached):
            option = "--end" if simulation.scenario.integrator.steps is None else "--steps"
            made = simulation.steps_made
            notify(f"{run}: the run is at its end, step {made}; to continue, give {option} a larger number")
        with progress_bar(hidden=quiet) as progress:
            summary = simulation.run(progress=progress)
    return show_summary(summary, as_json)
