"""Error against time: the rows are of runs that reached the end, and the README knows every scheme."""

import json
import re
from pathlib import Path

import pytest

from nbody.bench.integrators import calls, suite, tables
from nbody.bench.integrators.problems import problems
from nbody.bench.readme import markers
from nbody.bench.report import Report, machine
from nbody.cli import main
from nbody.integrators import INTEGRATORS

README = Path(tables.__file__).parents[2] / "integrators" / "README.md"


@pytest.fixture
def few(monkeypatch):
    """The orbit with two schemes, at fewer steps."""
    orbit = problems()[0]._replace(schemes=("leapfrog_dkd", "ias15"), evaluations=(4096, 8192))
    monkeypatch.setattr(suite, "problems", lambda counts: [orbit])
    monkeypatch.setattr(calls, "measure", lambda notify: ([], []))
    return orbit


def test_the_readme_has_every_scheme_as_its_class_describes_it():
    begin, end = map(re.escape, markers("schemes"))
    (found,) = re.findall(f"{begin}\n(.*?)\n{end}", README.read_text(), re.DOTALL)
    assert found == tables.schemes(), "write the table again: nbody bench show REPORT --readme"
    for name in INTEGRATORS:
        assert f"| `{name}` |" in found


def test_every_scheme_has_a_problem_and_every_setting_is_an_option():
    assert {name for problem in problems((8,)) for name in problem.schemes} == set(INTEGRATORS)
    for scheme in map(INTEGRATORS.load, INTEGRATORS):
        assert scheme.facts.accuracies or not scheme.facts.adaptive
        for key, values in scheme.facts.accuracies.items():
            assert all(scheme.Options(**{key: value}) for value in values)


def test_a_smaller_step_costs_more_and_the_errors_are_those_of_the_end(few):
    rows = suite.measure()
    assert [row.name for row in rows] == ["leapfrog_dkd"] * 2 + ["ias15"] * 3
    coarse, fine, *_, exact = rows
    assert (coarse.steps, fine.steps) == (4096, 8192) and all(row.seconds > 0 for row in rows)
    assert fine.energy_error < coarse.energy_error < 0.1 and fine.error < coarse.error
    assert exact.error < 1e-11 and exact.energy_error < 1e-13


def test_the_command_writes_shows_and_compares_its_report(few, tmp_path, capsys):
    assert main(["bench", "integrators", "-o", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {row["setting"] for row in found["rows"] if row["name"] == "ias15"} == {
        "epsilon: 1e-05", "epsilon: 1e-07", "epsilon: 1e-09",
    }  # fmt: skip
    path = str(tmp_path / "integrators.json")
    assert (tmp_path / "integrators.png").read_bytes().startswith(b"\x89PNG")
    assert main(["bench", "show", path]) == 0 and "leapfrog_dkd" in capsys.readouterr().out
    assert main(["bench", "compare", path, path, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["comparison"]["rows"]
    assert len(rows) == 5 and {row["ratio"] for row in rows} == {1.0}  # each setting with itself


def test_a_scheme_that_takes_too_long_is_a_note(few, monkeypatch):
    monkeypatch.setattr(suite, "TIMEOUT", 0.0)
    row = suite.measured(few, "cpu", "leapfrog_dkd", "dt", 0.01)
    assert row.seconds is None and "not finished after 0 s, at 9 %" in row.note and not row.wrong


def test_small_systems_are_timed_call_by_call_beside_a_competitor_that_is_installed(monkeypatch):
    for name in ("STEPS", "CALLS", "ROUNDS"):
        monkeypatch.setattr(calls, name, 1)
    rows, absent = calls.measure()
    settings = {(row.name, row.setting) for row in rows if row.seconds}
    assert {("leapfrog", each) for each in ("many steps", "one step", "run(steps=1)", "construction")} < settings
    assert ("wisdom_holman", "many steps") in settings
    assert bool(absent) != (("rebound whfast", "many steps") in settings)
    found = Report(machine(), rows, absent)
    assert found.suites == ["integrators"]
    (sheet,) = tables.sheets(found)
    assert [column.cell(rows[0]) for column in sheet.columns][:3] == ["figure eight", "3", "leapfrog"]
