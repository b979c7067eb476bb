"""``nbody verify``: cases with published answers."""

import time
from typing import Annotated

import typer

from nbody.cli.completion import names
from nbody.cli.options import AsJson
from nbody.cli.streams import print_message, result, result_json
from nbody.errors import InputError


def verify(
    cases: Annotated[
        list[str] | None,
        typer.Argument(
            help="Cases by name; by default all.", show_default=False, autocompletion=names("nbody.verify:CASES")
        ),
    ] = None,
    gpu: Annotated[bool, typer.Option("--gpu", help="Compute on the GPU (the fastest engine there).")] = False,
    engine: Annotated[str, typer.Option(help="Compute with this engine.")] = "cpu",
    as_json: AsJson = False,
) -> int:
    """Compute cases with published answers, and compare.

    The cases are orbits that close, Burrau's bodies at t = 10, the Earth against
    JPL's ephemeris, stability, Kozai's cycles and resonances of planets, radii of
    clusters, the course's invariant. Takes two minutes.
    Exits with 0 if all pass, and with 1 if not.

    \b
    Examples:
      nbody verify
      nbody verify kepler figure_eight --gpu
    """
    from nbody.forces import ENGINES
    from nbody.verify import CASES, engine_of

    if gpu and engine != "cpu":
        raise InputError("--gpu: cannot be combined with --engine; leave one of the two out")
    chosen = "gpu" if gpu else engine
    if chosen not in ("gpu", "auto"):
        ENGINES.check(chosen, "--engine: ")
    for name in cases or ():
        CASES.check(name)
    begun, found = time.perf_counter(), []
    engines = {name: engine_of(name, chosen) for name in cases or CASES}
    for name, by in engines.items():
        print_message(f"{name}: {CASES[name].summary}")
        for check in CASES.load(name)(by):
            found.append((name, check))
            if not as_json:
                mark = "pass" if check.passed else "FAIL"
                numbers = f"expected {check.expected:.10g}, got {check.got:.10g}, within {check.tolerance:.1e}"
                result(f"{mark}  {name}: {check.what}: {numbers} ({check.source})")
    failed, seconds = sum(not check.passed for _, check in found), time.perf_counter() - begun
    if as_json:
        rows = [{"case": name, "engine": engines[name], **vars(check), "passed": check.passed} for name, check in found]
        result_json({"engine": chosen, "passed": not failed, "failed": failed, "seconds": seconds, "checks": rows})
    else:
        others = "".join(f"; {name}: {by}" for name, by in engines.items() if by != chosen)
        result(f"{len(found) - failed} of {len(found)} checks pass in {seconds:.0f} s; engine {chosen}{others}")
    return 1 if failed else 0
