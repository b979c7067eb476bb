"""``nbody bench``: how fast, and how exact, this machine computes gravity."""

from pathlib import Path
from typing import Annotated, Any

import typer

from nbody.cli import completion
from nbody.cli.numbers import whole

FORCES, PRODUCTS, REPORT = "Forces", "Matrix products", "The report"
"""The help's panels."""


def _of(panel: str, help: str, *names: str, **more: Any) -> Any:
    """An option of a panel."""
    return typer.Option(*names, help=help, rich_help_panel=panel, **({"show_default": False} | more))


ParticleCounts = Annotated[
    list[int] | None,
    _of(FORCES, "Numbers of particles, such as 1024 20480 (where none are given: 1024 4096 10240 20480, and on a GPU "
                "65536 262144).", parser=whole, metavar="<list[int]>"),
]  # fmt: skip
Engines = Annotated[
    list[str] | None,
    _of(FORCES, "Only these engines, beside the cpu engine.", autocompletion=completion.engines),
]
Precisions = Annotated[
    list[str] | None,
    _of(FORCES, "Only these of float32, mixed and float64; with --matmul, of float32 and float64.",
        autocompletion=completion.precisions),
]  # fmt: skip
Roofline = Annotated[
    bool,
    _of(FORCES, "Hold the GPU's engines against the card's bounds and against torch, JAX and CuPy, where these are "
                "installed.", "--roofline"),
]  # fmt: skip
Matmul = Annotated[
    bool, _of(PRODUCTS, "Measure the ladder of matrix products, beside cuBLAS, instead of forces.", "--matmul")
]
Sizes = Annotated[
    list[int] | None,
    _of(PRODUCTS, "The n of the n x n matrices (512 1024 2048 4096).", parser=whole, metavar="<list[int]>"),
]
Rungs = Annotated[list[str] | None, _of(PRODUCTS, "Only these rungs.", autocompletion=completion.rungs)]
Explain = Annotated[
    str | None,
    _of(PRODUCTS, "Say what a rung does, what its kernel takes of the card, and what limits it; measures nothing.",
        autocompletion=completion.rungs),
]  # fmt: skip
Place = Annotated[
    Path | None,
    _of(REPORT, "The folder of bench.json and bench.png (with --roofline: roofline, with --matmul: matmul), or a "
                "file's name; output, where none is given.", "--output", "-o"),
]  # fmt: skip
AsJson = Annotated[bool, _of(REPORT, "Print the report as one JSON object, no table.", "--json")]
Readme = Annotated[
    Path | None,
    _of(REPORT, "Also write the table into this Markdown file, between its markers <!-- bench:begin --> and "
                "<!-- bench:end --> (with --matmul: matmul:begin, matmul:end).",
        autocompletion=completion.files(".md")),
]  # fmt: skip
Compare = Annotated[
    Path | None,
    _of(REPORT, "Also show how much faster each row is than in this earlier report, and which became slower by more "
                "than noise (not with --matmul). It is kept, and its numbers of particles are measured again.",
        autocompletion=completion.files(".json")),
]  # fmt: skip
From = Annotated[
    list[Path] | None,
    _of(REPORT, "Show these earlier reports (bench.json) instead of measuring.", "--from",
        autocompletion=completion.files(".json")),
]  # fmt: skip


def bench(
    cpu: Annotated[bool, _of(FORCES, "Measure the CPU's engines.", "--cpu")] = False,
    gpu: Annotated[bool, _of(FORCES, "Measure the GPU's engines.", "--gpu")] = False,
    particles: ParticleCounts = None,
    engines: Engines = None,
    precision: Precisions = None,
    roofline: Roofline = False,
    matmul: Matmul = False,
    sizes: Sizes = None,
    rungs: Rungs = None,
    explain: Explain = None,
    output: Place = None,
    as_json: AsJson = False,
    readme: Readme = None,
    compare: Compare = None,
    reports: From = None,
) -> int:
    """Measure every force engine that this machine has.

    Each result is checked against float64 sums before it is timed. Without
    --cpu and --gpu, whatever there is gets measured. The cpu engine always
    takes part: the speed-ups refer to it. A table goes to standard output,
    bench.json and a picture, bench.png, to the output folder; earlier ones
    are replaced. What would take too long is left out, and a line says so.

    With --roofline each GPU engine stands beside what the card allows at
    most, by the issue slots counted in its own machine code, with its
    registers, occupancy, clock and power, its part of a whole step, and the
    lecture's table with the figures of its Tesla K40c.

    With --matmul the ladder of matrix products is measured instead, beside
    cuBLAS where its library is found; its files are matmul.json and
    matmul.png.

    Examples:

      nbody bench

      nbody bench --cpu --particles 1024 20480 --precision float32

      nbody bench --gpu --engines gpu-global gpu-tiled --output output/tiles

      nbody bench --gpu --roofline --compare output/roofline.json

      nbody bench --matmul --sizes 1024 2048 --rungs k02 k06 k17

      nbody bench --matmul --explain k06

      nbody bench --json > speed.json

      nbody bench --from laptop.json h200.json --readme README.md
    """
    from nbody.bench.readme import around
    from nbody.cli.bench_report import terminable
    from nbody.errors import InputError

    given: dict[str, Any] = {"--cpu": cpu, "--gpu": gpu, "--particles": particles, "--engines": engines}
    given |= {"--precision": precision, "--roofline": roofline, "--sizes": sizes, "--rungs": rungs}
    given |= {"--matmul": matmul, "--explain": explain, "--output": output, "--readme": readme}
    given |= {"--compare": compare, "--from": reports}
    _check_together({option for option, value in given.items() if value not in (None, False, [])})
    if reports and as_json and len(reports) > 1:
        raise InputError("--json prints one report, and --from names several; leave one of the two out")
    if readme is not None:
        around(readme, "matmul" if matmul else "bench")  # before the measuring, not after
    place = output or Path("output")
    with terminable():
        if matmul:
            from nbody.cli.bench_ladder import ladder

            return ladder(sizes or [], precision or [], rungs or [], explain, place, as_json, readme, reports or [])
        from nbody.cli.bench_forces import Wanted, forces

        wanted = Wanted(cpu, gpu, roofline, particles or [], engines or [], precision or [])
        return forces(wanted, place, as_json, readme, compare, reports or [])


MEASURED = ("--cpu", "--gpu", "--particles", "--engines", "--roofline", "--precision", "--sizes", "--rungs", "--output")
"""Options that say what is measured, and where that is written."""

GOES_WITHOUT: dict[str, tuple[str, ...]] = {
    "--matmul": ("--cpu", "--gpu", "--particles", "--engines", "--roofline", "--compare"),
    "--explain": (*MEASURED, "--from", "--readme"),
    "--from": MEASURED,
}
"""Options that would be of no effect beside another."""

GOES_WITH: dict[str, tuple[str, ...]] = {"--matmul": ("--sizes", "--rungs", "--explain")}
"""Options that are of no effect without another."""


def _check_together(given: set[str]) -> None:
    """Raise InputError where an option that was given would be ignored."""
    from nbody.errors import InputError

    for other, options in GOES_WITH.items():
        for option in options:
            if option in given and other not in given:
                raise InputError(f"{option} goes with {other}")
    for other, options in GOES_WITHOUT.items():
        for option in options:
            if option in given and other in given:
                raise InputError(f"{option} goes without {other}")
