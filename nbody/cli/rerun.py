"""``nbody rerun``: repeats a recorded run from what its file contains."""

from pathlib import Path
from typing import Annotated

import typer

from nbody.cli.options import Gpus, Overwrite, Quiet, Recording
from nbody.cli.streams import result


def rerun(
    run: Recording,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to record; by default RUN.again.h5.")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare both recordings bit by bit; exit with 1 if they differ.")
    ] = False,
    overwrite: Overwrite = False,
    gpus: Gpus = None,
    quiet: Quiet = False,
) -> int:
    """Repeat a recorded run: same first frame, scenario and engine. --verify compares the two recordings.

    Examples:

      nbody rerun output/run.h5 --verify

      nbody rerun output/run.h5 -o output/again.h5 --gpus 1
    """
    from nbody.cli.progress import messages, progress_bar, show_summary
    from nbody.parallel import team
    from nbody.run.resume import rerun as repeated
    from nbody.trajectory import first_difference

    target = output or run.with_name(f"{run.stem}.again{run.suffix}")
    with messages(quiet) as notify:
        simulation = repeated(run, target, overwrite, notify, gpus)
        with progress_bar(hidden=quiet) as progress:
            summary = simulation.run(progress=progress)
    code = show_summary(summary)
    if code or not verify:
        return code
    difference = team().broadcast(first_difference(run, target) if team().first else None)
    result(str(difference) if difference else f"{run} and {target} hold the same bits")
    return 1 if difference else 0
