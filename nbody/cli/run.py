"""``nbody run``: runs a scenario and records it."""

from pathlib import Path
from typing import Annotated, Any

import typer

from nbody.cli.completion import engines_or_auto, integrators, precisions, scenarios
from nbody.cli.numbers import count_option, quantity_option
from nbody.forces import ENGINES
from nbody.integrators import INTEGRATORS

Scenario = Annotated[
    Path,
    typer.Argument(
        help="The scenario: a YAML file, or the name of one that comes with nbody, such as disk.",
        show_default=False,
        autocompletion=scenarios,
    ),
]


def run(
    scenario: Scenario,
    particles: Annotated[int | None, count_option("Number of particles.")] = None,
    steps: Annotated[int | None, count_option("Number of time steps.")] = None,
    end: Annotated[
        Any, quantity_option("The time at which the run ends, as in 10 or '20 Myr'.", "--end", "--until")
    ] = None,
    dt: Annotated[Any, quantity_option("The time step.")] = None,
    seed: Annotated[int | None, count_option("Seed of the initial conditions.")] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help=f"Force engine: auto, {ENGINES.listing()}; matrix:k07 chooses the kernel k07.",
            show_default=False,
            autocompletion=engines_or_auto,
        ),
    ] = None,
    integrator: Annotated[
        str | None,
        typer.Option(help=f"Scheme: {INTEGRATORS.listing()}.", show_default=False, autocompletion=integrators),
    ] = None,
    precision: Annotated[
        str | None, typer.Option(help="float32, mixed or float64.", show_default=False, autocompletion=precisions)
    ] = None,
    every: Annotated[int | None, count_option("Steps between recorded frames.")] = None,
    set: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="Any other value, as in gravity.G=2; can be repeated.", show_default=False
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The trajectory to write.")] = Path("output/run.h5"),
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing output (else it is kept under a numbered name).")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Only the summary: no progress bar, no messages.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
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
    """
    from nbody.cli.progress import progress_bar, say, show_summary
    from nbody.run.simulation import Simulation
    from nbody.scenario import Scenario
    from nbody.scenario.packaged import locate

    notify = (lambda line: None) if quiet else say
    settings = Scenario.load(locate(scenario, notify)).override(
        set or (), particles=particles, steps=steps, end=end, dt=dt, seed=seed, engine=engine,
        integrator=integrator, precision=precision, every=every,
    )  # fmt: skip
    simulation = Simulation(settings, output, overwrite=overwrite, notify=notify)
    with progress_bar(hidden=quiet) as progress:
        summary = simulation.run(progress=progress)
    return show_summary(summary, as_json)
