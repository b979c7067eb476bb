"""``nbody verify`` compares with published answers, and says so when one is missed."""

import json

import pytest

from nbody.cli import main
from nbody.registry import Entry, Registry
from nbody.verify import CASES, Check

QUICK = ["king", "exponential_disk"]


@pytest.mark.parametrize(
    "name", ["kepler", "lagrange_triangle", "mercury", "stability", "star_passage", *QUICK, "cold_collapse", "lecture"]
)
def test_a_case_passes(name):
    """The long ones (the Solar System, Burrau's bodies) run in 'nbody verify'."""
    checks = list(CASES.load(name)("cpu"))
    assert checks and all(check.passed for check in checks), [check for check in checks if not check.passed]
    assert all(check.source and check.tolerance > 0 for check in checks)


def test_a_nan_or_a_difference_fails():
    assert Check("x", 1.0, 1.05, 0.1, "s").passed
    assert not Check("x", 1.0, 1.2, 0.1, "s").passed
    assert not Check("x", 1.0, float("nan"), 0.1, "s").passed


def test_the_command_prints_what_it_expects_and_what_it_got(capsys):
    assert main(["verify", *QUICK]) == 0
    out = capsys.readouterr().out
    assert "pass  exponential_disk: largest v_c" in out and "expected 0.62213, got 0.6221" in out and "Freeman 1970" in out
    assert "8 of 8 checks pass" in out


def test_a_case_that_another_engine_computes_says_so(capsys):
    arguments = ["verify", "pythagorean", "lecture", "king", "--engine", "reference"]
    assert main(arguments) == 0
    assert capsys.readouterr().out.endswith("; engine reference; pythagorean: cpu; king: none\n")
    assert main([*arguments, "--json"]) == 0
    engines = {check["case"]: check["engine"] for check in json.loads(capsys.readouterr().out)["checks"]}
    assert engines == {"pythagorean": "cpu", "lecture": "reference", "king": "none"}


def test_json_and_the_exit_code_tell_of_a_failure(capsys, monkeypatch):
    def wrong(engine):
        yield Check("two and two", 4.0, 5.0, 0.1, "arithmetic")

    monkeypatch.setattr("nbody.verify.CASES", Registry("case", {"wrong": Entry("nbody.verify.wrong:wrong", "it fails")}))
    monkeypatch.setattr(Registry, "load", lambda self, name, where="": wrong)
    assert main(["verify", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["passed"] is False and found["failed"] == 1
    assert found["checks"][0] == {
        "case": "wrong", "engine": "cpu", "what": "two and two", "expected": 4.0, "got": 5.0, "tolerance": 0.1,
        "source": "arithmetic", "passed": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["keppler"], "unknown case 'keppler' (did you mean 'kepler'?)"),
        (["--engine", "cpv"], "--engine: unknown engine 'cpv' (did you mean 'cpu'?)"),
        (["--gpu", "--engine", "reference"], "--gpu: cannot be combined with --engine"),
    ],
)
def test_invalid_arguments_are_refused(refused, arguments, says):
    assert says in refused("verify", *arguments)
