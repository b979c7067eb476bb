"""``nbody sweep``: runs a scenario many times with other values."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nbody.cli.groups import grouped
from nbody.cli.options import AsJson, Quiet, Scenario, count_option, text_option
from nbody.cli.streams import Json, result, result_json
from nbody.errors import InputError

if TYPE_CHECKING:
    from nbody.run.cluster import Cluster


@dataclass(frozen=True)
class Jobs:
    """Where the runs of a sweep run."""

    jobs: Annotated[int | None, count_option("Runs at the same time; by default one per GPU, or one per core.")] = None
    cluster: Annotated[
        str | None, text_option("Make each run a job of this cluster; needs the extra 'cluster'.", metavar="slurm")
    ] = None
    cluster_option: Annotated[
        list[str] | None,
        text_option(
            "An option of 'sbatch' for each job: time=2:00:00, cpus-per-task=8, partition=gpu, gpus-per-node=1.",
            metavar="KEY=VALUE",
        ),
    ] = None

    def cluster_in(self, folder: Path) -> "Cluster | None":
        """The cluster, whose jobs are described in ``folder``."""
        from nbody.run.cluster import Cluster

        if self.cluster_option and not self.cluster:
            raise InputError("--cluster-option needs --cluster slurm")
        return Cluster(self.cluster, self.cluster_option or [], folder) if self.cluster else None


@grouped
def sweep(
    scenario: Scenario,
    vary: Annotated[
        list[str],
        text_option(
            "A value that differs from run to run: a list with commas, or a range: 1..64 (whole numbers), 0.1..0.5:9 (nine "
            "numbers), 1e-3..1:4:log (with equal ratios). With several, all combinations are run.",
            metavar="KEY=VALUES",
        ),
    ],
    fixed: Annotated[list[str] | None, text_option("A value for all runs.", "--set", metavar="KEY=VALUE")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the runs.")] = Path("output/sweep"),
    jobs: Jobs = Jobs(),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> int:
    """Run a scenario many times with other values, side by side, and print one table (also in table.csv).

    KEY is a key of the scenario, as in --set of 'nbody run'; 'nbody help'
    lists them. A run that fails is started again, at most three times; the
    others go on. After Ctrl-C or a crash the same command continues: complete
    runs are kept, others go on from their checkpoints.

    With --cluster slurm each run is a Slurm job. A job that reaches its time
    limit is submitted again and goes on from its checkpoint. Jobs outlive a
    sweep that is killed; the same command finds them again. Ctrl-C cancels them.

    \b
    Examples:
      nbody sweep plummer --vary initial.seed=1..8 --set initial.particles=64
      nbody sweep disk --vary integrator.dt=0.01,0.005 gravity.length=0.02,0.05
      nbody sweep plummer --vary initial.seed=1..64 -o output/seeds
      nbody sweep plummer --vary initial.seed=1..64 --cluster slurm
    """
    from nbody.cli.progress import messages
    from nbody.run.sweep import Sweep
    from nbody.scenario.packaged import locate

    cluster = jobs.cluster_in(output / "jobs")
    with messages(quiet) as notify:
        planned = Sweep(locate(scenario, notify), vary, fixed or [], output, jobs.jobs, cluster)
        planned.check()
        finished = planned.run(notify)
    rows = planned.table()
    if as_json:
        result_json({"runs": rows})
    else:
        result(_page(rows))
    if not finished:
        notify("interrupted; the same command goes on")
        return 130
    return 0 if all(row["status"] == "complete" for row in rows) else 1


def _page(rows: list[Json]) -> str:
    """The table for people: a column per value, as wide as its longest cell."""
    cells = [list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(cell.ljust(n) for cell, n in zip(line, widths, strict=True)).rstrip() for line in cells)


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
