"""Sweeps: all combinations in processes of their own, one table, and what is left to do after an interruption."""

import csv
import os
import re
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from conftest import begun, child, files_end_at, until
from recordings import plummer_text

from nbody import Trajectory
from nbody.cli import main
from nbody.errors import DeviceError, InputError
from nbody.run.cluster import Cluster
from nbody.run.sweep import Sweep
from nbody.trajectory.structure import layout

SCENARIO = plummer_text(
    32, 4, 0.01, seed=1, engine="reference", precision="float64", on_energy_error="{limit: 1e-3, action: stop}"
)


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


@pytest.mark.parametrize(
    ("varied", "message", "more"),
    [
        ("initial.seed=1,2 initial.seed=3", "^--vary initial.seed: is given twice; write all its values in one", {}),
        ("initial.seed=1,2", "^--set initial.seed: it varies", {"fixed": ["initial.seed=5"]}),
        (f"initial.seed=1..{5000 * '9'}", "^--vary initial.seed: must be a number, got '1..99", {}),
        ("initial.seed=1..9999999999999999999", "^--vary initial.seed: the range 1..9* has more than 100000", {}),
        ("initial.seed=5..1", "^--vary initial.seed: the range 5..1 is empty; write 1..5", {}),
        ("initial.seed", "must be KEY=VALUES", {}),
        ("initial.sead=1,2", "initial.sead: unknown key .*did you mean 'seed'", {}),
        ("integrator.dt=0.01,0", "integrator.dt: must not be 0", {}),
        ("initial.seed=1,2", "^--jobs: must be at least 1, got 0", {"jobs": 0}),
        ("initial.seed=1,2", "^--output: run.h5: a sweep writes a folder", {"folder": Path("run.h5")}),
    ],
)
def test_invalid_sweep_values_are_refused(scenario, varied, message, more):
    with pytest.raises(InputError, match=message):
        Sweep(scenario, varied.split(), **{"fixed": [], "folder": scenario.parent / "sweep"} | more).check()
    assert not (scenario.parent / "sweep").exists()


def test_an_interrupted_sweep_goes_on_from_the_checkpoints(scenario):
    command = ["-m", "nbody", "sweep", scenario, "--vary", "initial.seed=1,2", "--jobs", "2"]
    command += ["--set", "integrator.steps=3000", "--set", "record.every=50", "-o", scenario.parent / "sweep"]
    planned = sweep(scenario, "initial.seed=1,2")
    for _ in range(10):  # both may end before the signal comes
        shutil.rmtree(planned.folder, ignore_errors=True)
        first = begun(*command)
        assert until(lambda: all(task.path.exists() for task in planned.tasks))
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=300)
        found = {row["status"] for row in planned.table()}
        if found != {"complete"}:
            break
    assert first.returncode == 130 and found != {"complete"} and found <= {"stopped", "complete"}
    done = child(*command, check=True)
    assert len(re.findall(" complete +3000 ", done.stdout)) == 2


def test_lists_in_brackets_are_one_value(scenario):
    planned = sweep(scenario, "record.observables=[half_mass_radius,core_radius],[]")
    assert [task.values[0] for task in planned.tasks] == [
        "record.observables=[half_mass_radius,core_radius]", "record.observables=[]",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("visible", "jobs", "expected"),
    [
        ("", None, ["0", "1"]),
        ("3,1", None, ["3", "1"]),
        ("GPU-8932f937, GPU-1b2c", 3, ["GPU-8932f937", "GPU-1b2c", "GPU-8932f937"]),  # jobs share a card
        ("1,0,9", 1, ["1"]),
        ("1,0,-1,2", None, ["1", "0"]),  # CUDA has two
    ],
)
def test_each_run_on_a_gpu_has_a_card(scenario, monkeypatch, visible, jobs, expected):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr("nbody.compute.cuda", SimpleNamespace(gpus=[0, 1]))
    kind = SimpleNamespace(can=SimpleNamespace(device="gpu"))
    monkeypatch.setattr("nbody.run.sweep.plan", lambda *_, **__: SimpleNamespace(engine_kind=kind))
    slots = Sweep(scenario, ["initial.seed=1..9"], [], scenario.parent, jobs)._slots()
    assert [slots.get()["CUDA_VISIBLE_DEVICES"] for _ in range(slots.qsize())] == expected


# --- On a cluster ----------------------------------------------------------------------------------------------------


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A cluster whose ``sbatch`` keeps what it is given, and takes no job."""
    pytest.importorskip("submitit")
    for name in ("srun", "sbatch"):
        (tmp_path / name).write_text('#!/bin/sh\ncp "$1" "$(dirname $0)/submitted.sh"; echo Submitted batch job 12\n')
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def on_cluster(scenario, *varied, fixed=(), name="local", **options):
    folder = scenario.parent / "sweep"
    place = Cluster(name, [f"{key}={value}" for key, value in options.items()], folder / "jobs")
    return Sweep(scenario, varied, fixed, folder, 2, place)


def test_a_job_whose_run_fails_is_submitted_again(scenario, monkeypatch):
    pytest.importorskip("submitit")
    monkeypatch.setattr("nbody.run.sweep.ATTEMPTS", 2)
    planned, lines = on_cluster(scenario, "integrator.dt=1.0", fixed=("initial.seed=2",)), []
    planned.check()
    assert planned.run(lines.append)
    assert [row["status"] for row in planned.table()] == ["stopped"] and "energy" in lines[0]
    assert len(list((planned.folder / "jobs").glob("*_submitted.pkl"))) == 2
    assert not list(planned.folder.glob("*.job"))


def test_a_job_that_reaches_its_time_limit_is_resumed_by_the_next_and_that_is_no_failure(scenario, monkeypatch):
    """The first job gets the cluster's warning when it has recorded 500 steps: Slurm sends it to all processes of a job."""
    pytest.importorskip("submitit")
    monkeypatch.setattr("nbody.run.sweep.ATTEMPTS", 1)
    monkeypatch.setattr("nbody.run.cluster.POLL_SECONDS", 0.05)
    planned = on_cluster(
        scenario, "initial.seed=1", fixed=("integrator.steps=20000", "integrator.dt=0.0002", "record.every=250")
    )
    (task,), warned, done = planned.tasks, [], Cluster._done

    def warn(self, made, cancelled):
        if not warned and recorded(task.path) > 500:
            warned.append(made.job_id)
            (process,) = children(made.job_id)
            for each in (*children(process), process):
                os.kill(int(each), signal.SIGUSR2)
        return done(self, made, cancelled)

    monkeypatch.setattr(Cluster, "_done", warn)
    assert planned.run([].append)
    assert [row["status"] for row in planned.table()] == ["complete"] and warned
    assert len(list((planned.folder / "jobs").glob("*_submitted.pkl"))) == 2
    with Trajectory(task.path) as run:
        assert len(run) == 81 and run.verify() == []


def children(process):
    return Path(f"/proc/{process}/task/{process}/children").read_text().split()


def recorded(path):
    """The last step of a recording; -1 if there is none."""
    try:
        with Trajectory(path) as run:
            return int(run.step[-1])
    except InputError:
        return -1


def test_a_slurm_job_has_the_options_of_sbatch_and_is_found_again_by_its_number(scenario, slurm, monkeypatch):
    options = {"time": "2:00:00", "partition": "gpu", "gpus-per-node": "1", "cpus-per-task": "4"}
    planned = on_cluster(scenario, "initial.seed=1", name="slurm", **options)
    monkeypatch.setattr(Cluster, "_done", lambda *_: 1 / 0)  # the sweep is lost
    planned.check()
    with pytest.raises(ZeroDivisionError):
        planned.run([].append)
    script = (slurm / "submitted.sh").read_text()
    for line in (
        "--time=2:00:00", "--partition=gpu", "--gpus-per-node=1", "--cpus-per-task=4", "--job-name=nbody", "--nodes=1",
    ):  # fmt: skip
        assert script.count(f"#SBATCH {line}\n") == 1
    assert len(re.findall("^#SBATCH --(?:time|partition)", script, re.MULTILINE)) == 2
    assert "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK\n" in script and "srun " in script
    assert (planned.folder / "1.job").read_text() == "12"
    (slurm / "submitted.sh").unlink()
    found = []
    monkeypatch.setattr(Cluster, "_done", lambda self, made, _: found.append(made.job_id) or True)
    monkeypatch.setattr("submitit.SlurmJob.exception", lambda job: None)
    monkeypatch.setattr("submitit.SlurmJob.result", lambda job: InputError.exit_code)
    assert planned.run([].append)
    assert found == ["12"] and not (slurm / "submitted.sh").exists() and not list(planned.folder.glob("*.job"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--cluster", "slurn"], "did you mean 'slurm'"),
        (["--cluster", "slurm"], "needs the time limit of a job"),
        (["--cluster", "slurm", "--cluster-option", "time"], "must be KEY=VALUE"),
        (["--cluster", "slurm", "--cluster-option", "ntasks=4"], "each run of a sweep is one process"),
        (
            ["--cluster", "slurm", "--cluster-option", "time=9"],
            "no Slurm here ('srun' is not found); leave --cluster out",
        ),
        (["--cluster-option", "time=9"], "needs --cluster"),
    ],
)
def test_an_unknown_cluster_is_refused(scenario, refused, monkeypatch, options, message):
    pytest.importorskip("submitit")
    monkeypatch.setenv("PATH", "")  # without Slurm
    assert message in refused("sweep", scenario, "--vary", "initial.seed=1", "-o", scenario.parent / "s", *options)


def test_a_machine_without_a_gpu_may_submit_runs_on_one(scenario, slurm, monkeypatch):
    def no_gpu(*_, **__):
        raise DeviceError("there is no GPU")

    monkeypatch.setattr("nbody.run.sweep.plan", no_gpu)
    on_cluster(scenario, "initial.seed=1", name="slurm", time=9).check()
    with pytest.raises(DeviceError):
        Sweep(scenario, ["initial.seed=1"], [], scenario.parent / "here").check()


def test_a_refused_job_ends_the_sweep_with_the_words_of_sbatch(scenario, slurm, capsys):
    (slurm / "sbatch").write_text("#!/bin/sh\necho sbatch: error: invalid partition specified: gpuu >&2; exit 1\n")
    given = ["--cluster", "slurm", "--cluster-option", "time=9", "--cluster-option", "partition=gpuu", "--quiet"]
    assert main(["sweep", str(scenario), "--vary", "initial.seed=1,2", "-o", str(slurm / "sweep"), *given]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines.pop() == "error: --cluster: the job was refused: sbatch: error: invalid partition specified: gpuu"
    assert all(line.startswith("sbatch: ") for line in lines)


# --- Files that the sweep did not write ----------------------------------------------------------------------------------


def test_a_recording_of_another_seed_is_no_run_of_the_sweep(scenario):
    planned = sweep(scenario, "initial.seed=8,9")
    planned.folder.mkdir()
    foreign = planned.tasks[0].path
    assert main(["run", str(scenario), "-o", str(foreign), "--seed", "7", "--quiet"]) == 0
    before = foreign.read_bytes()
    with pytest.raises(InputError, match=r"1\.h5: was not made by this sweep; move it, or choose another --output"):
        planned.check()
    assert os.listdir(planned.folder) == ["1.h5"] and foreign.read_bytes() == before
    foreign.unlink()
    assert main(["run", str(scenario), "-o", str(foreign), "--seed", "8", "--quiet"]) == 0
    planned.check()


@pytest.mark.parametrize("name", ["table.csv", "1.log", "2.job"])
def test_a_sweep_replaces_no_file_that_it_did_not_write(scenario, name):
    planned = sweep(scenario, "initial.seed=8,9")
    planned.folder.mkdir()
    (planned.folder / name).write_text("mine")
    with pytest.raises(InputError, match=f"{name}: was not made by this sweep"):
        planned.check()
    assert os.listdir(planned.folder) == [name] and (planned.folder / name).read_text() == "mine"


def test_a_file_that_is_no_recording_keeps_a_number(scenario, monkeypatch):
    """As a run of the sweep that a broken disk has damaged."""
    planned = sweep(scenario, "initial.seed=8")
    planned.check()
    planned.tasks[0].path.write_bytes(b"\x89HDF mine")
    assert planned.run([].append)
    assert [row["status"] for row in planned.table()] == ["complete"]
    assert (planned.folder / "1.1.h5").read_bytes() == b"\x89HDF mine"


def test_a_sweep_that_was_killed_while_it_began_locks_no_folder(scenario):
    planned = sweep(scenario, "initial.seed=8,9")
    planned.folder.mkdir()
    (planned.folder / "sweep.json").write_text("")
    planned.check()
    with pytest.raises(InputError, match="holds another sweep"):
        sweep(scenario, "initial.seed=3,4").check()
    (planned.folder / "sweep.json").write_text(100_000 * "[")
    with pytest.raises(InputError, match="nested too deeply"):
        planned.check()


def test_a_recording_without_a_frame_has_no_numbers_in_the_table(scenario):
    planned = sweep(scenario, "initial.seed=8")
    planned.check()
    path = planned.tasks[0].path
    assert main(["run", str(scenario), "-o", str(path), "--seed", "8", "--quiet"]) == 0
    with h5py.File(path, "r+") as file:
        del file[layout.STEP]
        file[layout.STEP] = np.zeros(0, np.int64)
    assert planned.table()[0]["steps"] is None


def test_a_sweep_on_a_full_disk_keeps_the_older_table(scenario, capsys):
    planned = sweep(scenario, "initial.seed=8")
    command = ["sweep", str(scenario), "--vary", "initial.seed=8", "-o", str(planned.folder), "--quiet"]
    with files_end_at(10):
        assert main(command) == 1
    assert not os.listdir(planned.folder) and main(command) == 0
    table = (planned.folder / "table.csv").read_bytes()
    with files_end_at(10):
        assert main(command) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first == f"error: {planned.folder}: can't be written (File too large); choose another --output"
    assert second.startswith(f"error: {planned.folder / 'table.csv'}: can't be written (File too large)")
    assert (planned.folder / "table.csv").read_bytes() == table
