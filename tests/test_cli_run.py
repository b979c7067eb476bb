"""``nbody run`` as a user types it."""

import json
import os
import signal
import subprocess

import pytest
from conftest import begun, child, program, recorded_frames, until
from recordings import plummer_text

from nbody import Trajectory
from nbody.cli.summary import summary_text
from nbody.run.progress import Summary

SCENARIO = plummer_text(64, 20, 0.01, engine="cpu")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a scenario in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(SCENARIO)
    return tmp_path


def test_a_run_is_recorded_to_output_run_h5_and_summed_up(folder, typed):
    done = typed("run", "small.yaml")
    assert done.returncode == 0, done.stderr
    assert "20 steps" in done.stdout and "output/run.h5" in done.stdout
    assert " steps/s, " in done.stdout and "interactions/s, excluding compilation" in done.stdout
    with Trajectory(folder / "output/run.h5") as run:
        assert len(run) == 21


def test_a_whole_number_may_be_written_as_in_a_scenario(folder, typed):
    done = typed("run", "small.yaml", "--particles", "1e1", "--steps", "1_0")
    assert done.returncode == 0, done.stderr
    assert "10 particles, 10 steps" in done.stdout


def test_no_command_at_all_gets_the_help(folder):
    done = child("-m", "nbody")
    assert done.returncode == 2 and "Usage" in done.stdout and done.stderr == ""


def test_json_is_one_object_on_standard_output(folder, typed):
    done = typed("run", "small.yaml", "--json", "--steps", 4, "--every", 2, "--precision", "float64")
    summary = json.loads(done.stdout)
    assert {
        "output", "engine", "device", "precision", "integrator", "particles", "steps", "time", "wall_s", "steps_per_s",
        "interactions_per_s", "energy_initial", "energy_final", "energy_error", "frames",
    } <= set(summary)  # fmt: skip
    assert (summary["steps"], summary["frames"], summary["precision"]) == (4, 3, "float64")


def test_a_speed_that_was_not_measured_is_not_printed(folder, typed):
    """The first step compiles, so a run of one has no speed; and none that was done already."""
    for arguments in (["run", "small.yaml", "--steps", 1], ["resume", "output/run.h5"]):
        done = typed(*arguments)
        assert done.returncode == 0 and "/s" not in done.stdout, done.stdout
        assert "1 step to" in done.stdout or "0 steps to" in done.stdout
    summary = json.loads(typed("resume", "output/run.h5", "--json").stdout)
    assert summary["steps_per_s"] is None and summary["interactions_per_s"] is None


def test_a_run_that_mostly_compiled_says_so():
    facts = dict.fromkeys(("name", "output", "engine", "device", "precision", "integrator"), "x")
    numbers = dict.fromkeys(("particles", "frames", "time", "energy_initial", "energy_final", "energy_error"), 2)
    run = {"steps": 1000, "step": 1000, "steps_per_s": 500.0, "interactions_per_s": 2e3, "interrupted": False}
    assert "in 8 s, including 6 s for compilation, start and end\n" in summary_text(
        Summary(**facts, **numbers, **run, wall_s=8.0)
    )
    tree = Summary(**facts, **numbers, **run, wall_s=8.0, bodies_per_s=5e6)
    assert "500 steps/s, 5.00 M bodies/s, excl" in summary_text(tree) and "interactions" not in summary_text(tree)
    for usual in (2.4, 2.9):
        assert "compilation," not in summary_text(Summary(**facts, **numbers, **run, wall_s=usual))
    assert "compilation," not in summary_text(Summary(**facts, **numbers, **run | {"steps_per_s": 0.0}, wall_s=8.0))


@pytest.mark.parametrize("error,largest,warned", [(0.02, -0.11, "11"), (-3.0, -3.0, "300"), (0.09, 0.09, "")])
def test_an_energy_error_above_ten_percent_is_a_warning(error, largest, warned):
    texts = dict.fromkeys(("name", "output", "engine", "device", "precision", "integrator"), "x")
    zeros = ("steps", "step", "wall_s", "steps_per_s", "interactions_per_s", "time", "energy_initial", "energy_final")
    summary = Summary(
        **texts, **dict.fromkeys(zeros, 0), particles=2, frames=2, interrupted=False, energy_error=error,
        energy_error_largest=largest,
    )  # fmt: skip
    last = summary_text(summary).splitlines()[-1]
    assert ("warning: " in last) == bool(warned) and (f"{warned} % is too large" in last or not warned)


def test_a_second_run_keeps_the_first_one_unless_told_to_overwrite(folder, typed):
    typed("run", "small.yaml", "--steps", 1)
    second = typed("run", "small.yaml", "--steps", 2)
    assert "run.1.h5" in second.stderr
    typed("run", "small.yaml", "--steps", 3, "--overwrite")
    steps = {path.name: Trajectory(path).step[-1] for path in (folder / "output").glob("*.h5")}
    assert steps == {"run.h5": 3, "run.1.h5": 1}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_with_130_and_a_whole_file(folder, number):
    run = begun("-m", "nbody", "run", "small.yaml", "--steps", 10**10, "--every", 10**9, cwd=folder, stderr=None)
    assert until(lambda: recorded_frames(folder / "output/run.h5"))
    run.send_signal(number)
    output, _ = run.communicate(timeout=300)
    assert run.returncode == 130
    assert "interrupted at step" in output and "with room for the whole run); continue with: nbody resume" in output
    with Trajectory(folder / "output/run.h5") as recorded:
        assert len(recorded) == 2
        assert not recorded.complete


def test_a_run_goes_on_after_standard_error_is_closed(folder):
    """As in ``nbody run … 2>&1 >/dev/null | head -1``."""
    (folder / "small.yaml").write_text(SCENARIO + "on_energy_error: {limit: 1e-300, action: warn}\n")
    reading, writing = os.pipe()
    os.close(reading)
    options = {"capture_output": False, "stdout": subprocess.PIPE, "stderr": writing}
    done = child("-m", "nbody", "run", "small.yaml", cwd=folder, **options)
    os.close(writing)
    assert done.returncode == 0 and "20 steps" in done.stdout
    with Trajectory(folder / "output/run.h5") as run:
        assert run.complete


WRONG = [
    (["run"], "Missing argument"),
    (["run", "small.yaml", "--partcles", 3], "--particles"),
    (["run", "small.yaml", "--particles", 1.5], "must be a whole number, got '1.5'"),
    (["run", "small.yaml", "--engine", "cpuu"], "did you mean 'cpu'"),
    (["run", "small.yaml", "--integrator", "leapfrg"], "did you mean 'leapfrog'"),
    (["run", "small.yaml", "--precision", "mixed"], "float32 or float64"),
    (["run", "small.yaml", "--engine", "reference"], "choose --precision float64"),
    (["run", "small.yaml", "--engine", "matrix:k99"], "unknown rung 'k99'"),
    (["run", "small.yaml", "--engine", "cpu:k07"], "did you mean 'cpu'"),
    (["run", "small.yaml", "--output", ""], "directory"),
    (["run", "small.yaml", "-o", "small.yaml"], "is no recording"),
    (["run", "small.yaml", "small.yaml"], "unexpected extra argument"),
    (["run", "https://host/small.yaml"], "no such file"),
    (["run", "small.yaml", "-o", "own.csv"], "own.csv: a recording is an HDF5 file; give a name that ends in .h5"),
    (["run", "small.yaml", "-o", "nodir"], "ends in .h5"),
    (["run", "small.yaml", "--steps", 10**9, "--particles", 10**5], "free"),
]


@pytest.mark.parametrize("arguments,expected", WRONG, ids=lambda value: " ".join(map(str, value))[:60])
def test_invalid_commands_are_refused_and_create_nothing(folder, refused, arguments, expected):
    before = sorted(folder.rglob("*"))
    assert expected in refused(*arguments, *(["--quiet"] if len(arguments) > 1 else []))
    assert sorted(folder.rglob("*")) == before


def test_an_engine_of_a_gpu_without_a_gpu_is_refused(folder, refused):
    from nbody import compute

    if compute.available():
        pytest.skip("there is a GPU here")
    assert "engine 'gpu-tiled' needs an NVIDIA GPU" in refused("run", "small.yaml", "--engine", "gpu-tiled")


def test_a_defect_of_the_program_keeps_its_traceback(folder):
    """Only the user's mistakes are one line; a defect of the program keeps its traceback and exits with 1."""
    done = program("questions", "defect", "run", "small.yaml", cwd=folder)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
