"""The integrators suite's tables and picture: error against time, and the facts that the schemes' classes state."""

from collections.abc import Iterator

from typing_extensions import TypedDict

from nbody.bench.plot import Line, Panel, Picture
from nbody.bench.report import Report
from nbody.bench.row import Amount, Count, Row, grouped
from nbody.bench.tables import Joined, Sheet, TableColumn, about, error, markdown, named, of
from nbody.forces import ENGINES
from nbody.forces.problem import PRECISIONS
from nbody.integrators import INTEGRATORS
from nbody.integrators.integrator import unsupported
from nbody.law import Gravity
from nbody.number_format import duration


class CallFacts(TypedDict, total=False):
    """The system, and what is called."""

    problem: str
    setting: str


class IntegratorFacts(TypedDict, total=False):
    """The problem, the option that sets the accuracy, the steps, and the error at the end."""

    energy_error: Amount
    steps: Count
    problem: str
    setting: str


FACTS = {"integrators": IntegratorFacts, "few": CallFacts}

COLUMNS = (
    TableColumn("problem", "problem", left=True),
    TableColumn("N", "particles"),
    TableColumn("on", lambda row: row.backend.upper(), left=True),
    TableColumn("scheme", "name", left=True),
    TableColumn("setting", "setting", left=True),
    TableColumn("steps", "steps"),
    TableColumn("time", "seconds", duration),
    TableColumn("energy error", "energy_error", error),
    TableColumn("distance", "error", error),
)

LEAST = 1e-16
"""What is drawn for an energy error of zero, which has no logarithm."""

EXPLAINED = (
    "float64, all cores, excluding compilation. kepler: two bodies, e = 0.9, 9.5 orbits (distance: from the exact solution, "
    "in semi-major axes); planets: the outer solar system, 200 000 days; cluster: a Plummer sphere, ε = 1e-4, one unit of "
    "time. Energy errors at the end."
)

CALLS = (
    TableColumn("problem", "problem", left=True),
    TableColumn("N", "particles"),
    TableColumn("scheme", "name", left=True),
    TableColumn("what", "setting", left=True),
    TableColumn("time", "seconds", duration),
)

CALLS_EXPLAINED = (
    "float64, one core: the time per step of one long call (many steps), and per call of step(), run(steps=1) and "
    "Simulation(…), without an output; the fastest of five rounds."
)

CALL_HEADINGS = {
    "many steps": "one long call, per step",
    "one step": "`step()`",
    "run(steps=1)": "`run(steps=1)`",
    "construction": "`Simulation(…)`",
}
"""The calls in the README's table, by their names in a report."""


def sheets(report: Report) -> Iterator[Sheet]:
    """One table with all problems, and one with the calls for small systems."""
    if rows := report.of("integrators"):
        yield Sheet(f"Error against time on {report.device}", about(report, EXPLAINED, rows), COLUMNS, rows, "problem")
    if rows := report.of("few"):
        yield Sheet(f"Small systems on {report.device}", about(report, CALLS_EXPLAINED, rows), CALLS, rows, "problem")


def picture(report: Report) -> Picture:
    """Energy error against seconds, a panel per problem, a line per scheme."""
    panels = []
    for (problem, count, backend), own in grouped(report.of("integrators"), "problem", "particles", "backend").items():
        lines = [
            Line(name, [row["seconds"] for row in of], [max(row["energy_error"], LEAST) for row in of])
            for (name,), of in grouped([row for row in own if row.seconds], "name").items()
        ]
        panels.append(Panel(f"{problem}, N = {count}, {backend.upper()}", "seconds", "energy error", lines))
    return Picture(f"Error against time: {report.device}", panels)


def full_table(report: Report) -> str:
    """A line per problem and scheme in Markdown, with the time and the energy error of each setting."""
    lines = grouped(report.of("integrators"), "problem", "particles", "backend", "name").values()
    columns = [
        TableColumn("problem", lambda line: f"{_system(line[0])}, {line[0].backend.upper()}", left=True),
        TableColumn("scheme", lambda line: f"`{line[0].name}`", left=True),
        *(
            TableColumn(heading, lambda line, k=k: next(iter(line[k:]), None), _in_short, left=True)  # type: ignore[misc]
            for k, heading in enumerate(("coarse", "middle", "fine"))
        ),
    ]
    return markdown(columns, lines, f"On {report.provenance}. {EXPLAINED}") if lines else ""


def calls_table(report: Report) -> str:
    """A line per small system and scheme in Markdown, a column per call."""
    groups = grouped(report.of("few"), "problem", "particles", "name").values()
    columns = [
        TableColumn("system", _system, left=True),
        named("scheme"),
        *(of(call, heading, "seconds", duration) for call, heading in CALL_HEADINGS.items()),
    ]
    explained = f"On {report.provenance}. {CALLS_EXPLAINED}"
    return markdown(columns, [Joined(own, "setting") for own in groups], explained) if groups else ""


def _system(row: Row | Joined) -> str:
    return f"{row['problem']}, N = {row['particles']}"


def _in_short(row: Row) -> str:
    found = f"{duration(row.seconds)}, {error(row['energy_error'])}" if row["energy_error"] is not None else "–"
    return f"{row['setting']}: {found}"


def schemes(_: Report | None = None) -> str:
    """Every scheme with its order, steps, engines, precisions, evaluations and source, in Markdown."""
    columns = [
        TableColumn("scheme", lambda name: f"`{name}`", left=True),
        TableColumn("order", lambda name: INTEGRATORS.load(name).facts.order),
        TableColumn("steps", lambda name: INTEGRATORS.load(name).facts.lengths, left=True),
        TableColumn("force evaluations per step", lambda name: INTEGRATORS.load(name).facts.evaluations),
        TableColumn("runs on", _places, left=True),
        TableColumn("source", lambda name: INTEGRATORS.load(name).facts.source, left=True),
    ]
    return markdown(columns, INTEGRATORS)


def _places(name: str) -> str:
    """The engines and precisions of a scheme: ``CPU`` stands for all engines on the CPU."""
    scheme, found = INTEGRATORS.load(name), []
    law = Gravity(softening="plummer", length=0.01) if scheme.facts.softened else Gravity()
    for device in ("cpu", "gpu"):
        engines = {each: kind for each in ENGINES if (kind := ENGINES.load(each)).can.device == device}
        able = {
            each: [p for p in PRECISIONS if not unsupported(scheme, kind, law, p)] for each, kind in engines.items()
        }
        names = [f"`{each}`" for each in able if able[each]]
        every = scheme.facts.own_forces or len(names) == len(engines)
        precisions = [p for p in PRECISIONS if any(p in offered for offered in able.values())]
        if names:
            found.append(f"{device.upper() if every else ', '.join(names)}: {', '.join(precisions)}")
    return "; ".join(found)


PAGES = {"schemes": schemes, "integrators": full_table, "calls": calls_table}
