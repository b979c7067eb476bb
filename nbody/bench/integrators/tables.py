"""The rows of the integrators suite, their tables and their picture; and the facts that the schemes' classes state."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from nbody.bench.columns import Sheet, TableColumn, code, column, columns, grouped, markdown, relative_error
from nbody.bench.plot import Line, Panel, Picture
from nbody.bench.report import Report
from nbody.bench.row import Amount, Count, Row
from nbody.forces import ENGINES
from nbody.forces.problem import PRECISIONS
from nbody.integrators import INTEGRATORS
from nbody.integrators.integrator import unsupported
from nbody.law import Gravity
from nbody.number_format import duration


@dataclass(frozen=True, kw_only=True)
class MotionRow(Row):
    """A problem that was moved by a scheme; ``setting`` says how."""

    whole_run: ClassVar[bool] = True

    name: Annotated[str, TableColumn("scheme", left=True)]
    problem: Annotated[str, TableColumn("problem", left=True)] = ""
    setting: Annotated[str, TableColumn("setting", left=True)] = ""

    @property
    def what(self) -> str:
        return f"{self.name} ({self.setting}), {self.problem}, N = {self.particles}"

    @property
    def system(self) -> str:
        return f"{self.problem}, N = {self.particles}"


@dataclass(frozen=True, kw_only=True)
class IntegratorRow(MotionRow):
    """A run, whose setting is the option that sets the accuracy, and its errors at the end."""

    suite: ClassVar[str] = "integrators"

    steps: Annotated[Count | None, TableColumn("steps")] = None
    energy_error: Annotated[Amount | None, TableColumn("energy error", relative_error)] = None
    error: Annotated[Amount | None, TableColumn("distance", relative_error)] = None


@dataclass(frozen=True, kw_only=True)
class CallRow(MotionRow):
    """A call for a small system, which the setting names."""

    suite: ClassVar[str] = "few"

    setting: Annotated[str, TableColumn("what", left=True)] = ""
    energy_error: Annotated[Amount | None, TableColumn("energy error", relative_error)] = None


ROWS = (IntegratorRow, CallRow)

RUNS = columns(IntegratorRow, "problem particles backend name setting steps seconds energy_error error")

EXPLAINED = (
    "float64, all cores, excluding compilation. kepler: two bodies, e = 0.9, 9.5 orbits (distance: from the exact solution, "
    "in semi-major axes); planets: the outer solar system, 200 000 days; cluster: a Plummer sphere, ε = 1e-4, one unit of "
    "time. Energy errors at the end."
)

CALLS = columns(CallRow, "problem particles name setting seconds energy_error")

CALLS_EXPLAINED = (
    "float64, one core: the time per step of one long call (many steps), and per call of step(), run(steps=1) and "
    "Simulation(…), without an output; the fastest of 24 rounds. Energy errors after 120 000 steps."
)

CALL_HEADINGS = {
    "many steps": "one long call, per step",
    "one step": "`step()`",
    "run(steps=1)": "`run(steps=1)`",
    "construction": "`Simulation(…)`",
}
"""The calls in the README's table, by their names in a report."""

LEAST = 1e-16
"""What is drawn for an energy error of zero, which has no logarithm."""


def sheets(report: Report) -> Iterator[Sheet]:
    """One table with all problems, and one with the calls for small systems."""
    if runs := report.of(IntegratorRow):
        yield Sheet(f"Error against time on {report.device}", report.about(EXPLAINED, runs), RUNS, runs, "problem")
    if calls := report.of(CallRow):
        yield Sheet(f"Small systems on {report.device}", report.about(CALLS_EXPLAINED, calls), CALLS, calls, "problem")


def picture(report: Report) -> Picture:
    """Energy error against seconds, a panel per problem, a line per scheme."""
    panels = []
    for (system, backend), own in grouped(report.of(IntegratorRow), "system", "backend").items():
        lines = [
            Line(name, [row.seconds or 0 for row in timed], [max(row.energy_error or 0, LEAST) for row in timed])
            for name, timed in grouped([row for row in own if row.seconds], "name").items()
        ]
        panels.append(Panel(f"{system}, {backend.upper()}", "seconds", "energy error", lines))
    return Picture(f"Error against time: {report.device}", panels)


def full_table(report: Report) -> str:
    """A line per problem and scheme in Markdown, with the time and the energy error of each setting."""
    groups = grouped(report.of(IntegratorRow), "system", "backend", "name").values()
    found = [
        TableColumn("problem", lambda row: f"{row.system}, {row.backend.upper()}", left=True).of_line(),
        column(IntegratorRow, "name")._replace(show=code).of_line(),
        *(TableColumn(name, _in_short, left=True).of_line(key=k) for k, name in enumerate(("coarse", "middle", "fine"))),
    ]
    lines = [dict(enumerate(own)) for own in groups]
    return markdown(found, lines, f"On {report.provenance}. {EXPLAINED}") if lines else ""


def calls_table(report: Report) -> str:
    """A line per small system and scheme in Markdown, a column per call."""
    lines = [{row.setting: row for row in own} for own in grouped(report.of(CallRow), "system", "name").values()]
    time = column(CallRow, "seconds")
    found = [
        TableColumn("system", lambda row: row.system, left=True).of_line(),
        column(CallRow, "name")._replace(show=code).of_line(),
        *(time.of_line(heading, call) for call, heading in CALL_HEADINGS.items()),
        column(CallRow, "energy_error").of_line(key="many steps"),
    ]
    return markdown(found, lines, f"On {report.provenance}. {CALLS_EXPLAINED}") if lines else ""


def _in_short(row: IntegratorRow) -> str:
    known = row.energy_error is not None
    return f"{row.setting}: {f'{duration(row.seconds)}, {relative_error(row.energy_error or 0)}' if known else '–'}"


def schemes(_: Report | None = None) -> str:
    """Every scheme with its order, steps, engines, precisions, evaluations and source, in Markdown."""
    facts = {name: INTEGRATORS.load(name).facts for name in INTEGRATORS}
    found = [
        TableColumn("scheme", code, left=True),
        TableColumn("order", lambda name: str(facts[name].order)),
        TableColumn("steps", lambda name: facts[name].lengths, left=True),
        TableColumn("force evaluations per step", lambda name: str(facts[name].evaluations)),
        TableColumn("runs on", _places, left=True),
        TableColumn("source", lambda name: facts[name].source, left=True),
    ]
    return markdown(found, INTEGRATORS)


def _places(name: str) -> str:
    """The engines and precisions of a scheme: ``CPU`` stands for all engines on the CPU."""
    scheme, found = INTEGRATORS.load(name), []
    law = Gravity(softening="plummer", length=0.01) if scheme.facts.softened else Gravity()
    for device in ("cpu", "gpu"):
        engines = {each: kind for each in ENGINES if (kind := ENGINES.load(each)).can.device == device}
        able = {each: [p for p in PRECISIONS if not unsupported(scheme, kind, law, p)] for each, kind in engines.items()}
        names = [f"`{each}`" for each in able if able[each]]
        every = scheme.facts.own_forces or len(names) == len(engines)
        precisions = [p for p in PRECISIONS if any(p in offered for offered in able.values())]
        if names:
            found.append(f"{device.upper() if every else ', '.join(names)}: {', '.join(precisions)}")
    return "; ".join(found)


PAGES = {"schemes": schemes, "integrators": full_table, "calls": calls_table}
