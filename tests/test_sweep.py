"""Sweeps: all combinations in processes of their own, one table, and what is left to do after an interruption."""

import csv
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nbody import Trajectory
from nbody.errors import InputError
from nbody.run.sweep import Sweep

SCENARIO = """
initial: {generator: plummer, particles: 32, seed: 1}
gravity: {softening: plummer, length: 0.05}
integrator: {scheme: leapfrog, dt: 0.01, steps: 4}
engine: reference
precision: float64
on_energy_error: {limit: 1e-3, action: stop}
"""


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO)
    return path


def sweep(scenario, *varied, fixed=()):
    return Sweep(scenario, varied, fixed, scenario.parent / "sweep", jobs=2)


def test_the_runs_are_all_combinations(scenario):
    planned = sweep(scenario, "initial.seed=1..2", "integrator.dt=0.01,1.0")
    assert [task.values for task in planned.tasks] == [
        (f"initial.seed={seed}", f"integrator.dt={dt}") for seed in (1, 2) for dt in ("0.01", "1.0")
    ]


def test_runs_that_fail_leave_the_others_alone_and_complete_runs_are_kept(scenario, monkeypatch):
    """A step of 1 time unit breaks the limit of the energy error."""
    monkeypatch.setattr("nbody.run.sweep.ATTEMPTS", 2)
    planned = sweep(scenario, "integrator.dt=0.01,1.0", fixed=("initial.seed=2",))
    lines = []
    planned.check()
    assert planned.run(lines.append)
    rows = planned.table()
    assert [(row["integrator.dt"], row["status"]) for row in rows] == [("0.01", "complete"), ("1.0", "stopped")]
    assert sum("energy" in line for line in lines) == 1
    with open(planned.folder / "table.csv") as file:
        assert [row["file"] for row in csv.DictReader(file)] == [str(task.path) for task in planned.tasks]
    with Trajectory(planned.tasks[0].path) as run:
        assert run.resolved["initial"]["seed"] == 2 and run.resolved["integrator"]["dt"] == 0.01
    before = planned.tasks[0].path.stat().st_mtime_ns
    planned.check()
    assert planned.run(lines.append)
    assert planned.tasks[0].path.stat().st_mtime_ns == before
    with pytest.raises(InputError, match="holds another sweep; choose another --output"):
        sweep(scenario, "initial.seed=1..3").check()


def test_an_interrupted_sweep_goes_on_from_the_checkpoints(scenario):
    command = [sys.executable, "-m", "nbody", "sweep", str(scenario), "--vary", "initial.seed=1,2", "--jobs", "2"]
    command += ["--set", "integrator.steps=3000", "--set", "record.every=50", "-o", str(scenario.parent / "sweep")]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    first = subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    planned = sweep(scenario, "initial.seed=1,2")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not all(task.path.exists() for task in planned.tasks):
        time.sleep(0.05)
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)
    assert first.returncode == 130
    assert "stopped" in {row["status"] for row in planned.table()} <= {"stopped", "complete"}
    done = subprocess.run(command, env=environment, text=True, capture_output=True, timeout=120, check=True)
    assert len(re.findall(" complete +3000 ", done.stdout)) == 2


@pytest.mark.parametrize(
    ("varied", "message"),
    [
        ("initial.seed", "must be KEY=VALUES"),
        ("initial.seed=5..1", "has no number"),
        ("initial.seed=1..200000", "has no number, or more than 100000"),
        ("initial.sead=1,2", "initial.sead: unknown key .*did you mean 'seed'"),
        ("integrator.dt=0.01,-1", "integrator.dt: must be greater than 0"),
    ],
)
def test_wrong_values_are_found_before_anything_runs(scenario, varied, message):
    with pytest.raises(InputError, match=message):
        sweep(scenario, varied).check()
    assert not (scenario.parent / "sweep").exists()


def test_lists_in_brackets_are_one_value(scenario):
    planned = sweep(scenario, "record.observables=[half_mass_radius,core_radius],[]")
    assert [task.values[0] for task in planned.tasks] == [
        "record.observables=[half_mass_radius,core_radius]", "record.observables=[]",
    ]  # fmt: skip
