"""Several processes make one run through MPI: the same bits for any number of ranks, and one end, however it comes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import ROOT, child
from ranks_session import changed, dividing
from recordings import plummer_text

from nbody import Scenario, Simulation, Trajectory, machine
from nbody.errors import InputError, RunFailed
from nbody.parallel import Alone, binding, launcher
from nbody.run.ranks import require_same_machines
from nbody.run.resume import resume
from nbody.trajectory import first_difference, read_checkpoint

HERE = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
MPIRUN = shutil.which("mpirun", path=HERE)
SCENARIO = plummer_text(200, 20, 0.01, seed=3, engine="cpu", precision="float64", record="{every: 4}")
ENDS_WITHIN = 100
"""Seconds in which a run must end everywhere when one of its processes has (less than one, beside no other programs)."""

pytest.importorskip("mpi4py")
pytestmark = pytest.mark.skipif(MPIRUN is None, reason="no mpirun here")


def launch(count, *arguments, **environment):
    """``mpirun -n COUNT python ARGUMENTS``, started in its own session."""
    command = [MPIRUN, "-n", str(count), sys.executable, *map(str, arguments)]
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"PYTHONPATH": paths} | environment
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def together(count, *arguments, **environment):
    """The exit code, the results and the messages of several ranks."""
    job = launch(count, *arguments, **environment)
    try:
        results, messages = job.communicate(timeout=300)  # the tree's kernels take a minute to compile
    finally:
        job.kill()
    return job.returncode, results, messages


def session(cases, folder):
    """What each of three ranks says about the cases of :mod:`ranks_session`."""
    (folder / "small.yaml").write_text(SCENARIO)
    code, results, messages = together(3, ROOT / "tests/ranks_session.py", cases, folder)
    assert code == 0, results + messages
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(3)]


def processes(job):
    """The ids of the ranks that a launcher has started, in no order."""
    found, parents = [], {job.pid}
    for _ in range(3):  # mpirun starts a proxy, which starts the ranks
        for status in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields, words = status.read_text().rsplit(")", 1)[1].split(), (status.parent / "cmdline").read_bytes()
            except OSError:
                continue
            pid = int(status.parent.name)
            if int(fields[1]) in parents and fields[0] != "Z" and pid not in parents:
                parents.add(pid)
                found += [pid] * (words.split(b"\0")[0] == sys.executable.encode())
    return found


def begun(path, scenario, count=3):
    """A long run of several ranks that has recorded some frames, and the ids of its processes."""
    job = launch(count, "-m", "nbody", "run", scenario, "-o", path, "--quiet")
    end = time.monotonic() + 100
    while time.monotonic() < end and job.poll() is None:
        if path.exists() and len(Trajectory(path)) > 2:
            return job, processes(job)
        time.sleep(0.01)
    job.kill()
    raise AssertionError(job.communicate())


def ended(job, ids):
    """The exit code of a run that must end soon, in all its processes."""
    before = time.monotonic()
    try:
        job.communicate(timeout=ENDS_WITHIN)
    finally:
        job.kill()
    while any(Path(f"/proc/{pid}").exists() for pid in ids):
        assert time.monotonic() < before + ENDS_WITHIN, "a rank is left"
        time.sleep(0.01)
    return job.returncode


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of one process, of 20 steps; and the file of its scenario."""
    folder = tmp_path_factory.mktemp("ranks")
    (folder / "small.yaml").write_text(SCENARIO)
    Simulation(Scenario.load(folder / "small.yaml"), folder / "whole.h5").run()
    return folder / "whole.h5", folder / "small.yaml"


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """The same with 4000 steps."""
    folder = tmp_path_factory.mktemp("long")
    (folder / "long.yaml").write_text(SCENARIO.replace("steps: 20", "steps: 4000").replace("every: 4", "every: 40"))
    Simulation(Scenario.load(folder / "long.yaml"), folder / "whole.h5").run()
    return folder / "whole.h5", folder / "long.yaml"


def test_ranks_make_the_same_file_and_are_recorded(whole, tmp_path):
    """Two go on in test_a_signal_stops_all_ranks…"""
    path = tmp_path / "run.h5"
    code, results, messages = together(3, "-m", "nbody", "run", whole[1], "-o", path)
    assert code == 0 and messages == ""
    assert results.count("200 particles, 20 steps") == 1
    assert first_difference(whole[0], path) is None
    with Trajectory(path) as run:
        assert run.provenance["ranks"] == 3 == sum(run.provenance["hosts"].values())
    assert read_checkpoint(path).meta["scope"] == read_checkpoint(whole[0]).meta["scope"]


@pytest.mark.slow
def test_work_that_is_worth_dividing_gives_the_same_file(tmp_path):
    """More interactions than ``segments.WORTH``: steps of all bodies, of blocks, and with a tree."""
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / "small.yaml").write_text(SCENARIO)
    alone = dividing(Alone(), tmp_path / "alone")  # first: ranks that wait for another one's compiler need a core each
    session("dividing", tmp_path)
    for path in alone:
        assert first_difference(path, tmp_path / Path(path).name) is None


def test_one_simulation_of_several_ranks_is_used_as_one_of_one(whole, tmp_path):
    """After values and rows have reached every rank, and so have errors."""
    found = session("values,failures,going_on,simulated,changing,wrong_states,full_disk", tmp_path)
    for rank, each in enumerate(found):
        broadcast, squares, whole_rows, blocks = each["values"]
        assert broadcast == {"from": 0} and squares == [0, 1, 4] and whole_rows
        assert blocks == [[rank + 2, 10 * p + rank] for p in range(3)]
        first, second, third = each["failures"]
        assert first.startswith("rank 1 (") == (rank != 1) and first.endswith("this value is wrong")
        assert second == third == "this value is wrong"
    assert first_difference(whole[0], tmp_path / "parts.h5") is None
    energy = Simulation(Scenario.load(whole[1])).run().energy_final
    assert all(each["going_on"] == [6, 20, energy, 6] for each in found)
    assert all(each["simulated"] == 6 for each in found)
    (tmp_path / "alone").mkdir()
    shutil.copy(tmp_path / "small.yaml", tmp_path / "alone")
    assert all(tuple(each["changing"]) == changed(tmp_path / "alone" / "changed.h5") for each in found)
    assert first_difference(tmp_path / "alone" / "changed.h5", tmp_path / "changed.h5") is None
    assert all("the states of rank 0" in each["wrong_states"] and "rank 2" in each["wrong_states"] for each in found)
    assert read_checkpoint(tmp_path / "wrong.h5").meta["step"] == 0
    assert all("No space left" in each["full_disk"] for each in found)
    with Trajectory(tmp_path / "full.h5") as run:
        assert len(run) == 3 and run.status == "stopped" and run.verify() == []


def test_a_signal_stops_all_ranks_after_the_same_step_and_another_number_of_ranks_goes_on(long, tmp_path):
    path = tmp_path / "run.h5"
    job, ids = begun(path, long[1])
    assert len(ids) == 3
    os.kill(ids[2], signal.SIGTERM)  # to one of them; Ctrl-C reaches all
    assert ended(job, ids) == 130
    with Trajectory(path) as run:
        assert run.status == "stopped" and run.step[-1] == read_checkpoint(path).meta["step"] < 4000
    code, _, messages = together(2, "-m", "nbody", "resume", path, "--quiet")
    assert code == 0 and messages == ""
    assert first_difference(long[0], path) is None


@pytest.mark.parametrize("rank", [0, 1])
def test_the_death_of_a_rank_ends_the_others_and_one_process_can_go_on(long, tmp_path, rank):
    path = tmp_path / "run.h5"
    job, ids = begun(path, long[1])
    numbers = {pid: Path(f"/proc/{pid}/environ").read_bytes().split(b"PMI_RANK=")[1][:1] for pid in ids}
    os.kill(next(pid for pid, number in numbers.items() if number == b"%d" % rank), signal.SIGKILL)
    assert ended(job, ids) not in (0, None)
    with Trajectory(path) as run:
        assert run.status == "killed" and run.verify() == []
    resume(path, notify=lambda line: None).run()
    assert first_difference(long[0], path) is None


@pytest.mark.parametrize("case", ["stopped", "stopped_in_an_evaluation", "stopped_elsewhere"])
def test_a_rank_that_hangs_is_named_and_ends_the_run(tmp_path, case):
    code, _, messages = together(3, ROOT / "tests/ranks_session.py", case, tmp_path, NBODY_RANK_PATIENCE="2")
    assert code not in (0, None) and "has waited 2 s for rank 1;" in messages


def test_ranks_with_different_scenarios_are_refused(whole, tmp_path):
    other = [":", "-n", "1", sys.executable, "-m", "nbody", "run", whole[1], "--dt", "0.02", "-o", tmp_path / "run.h5"]
    code, _, messages = together(1, "-m", "nbody", "run", whole[1], "-o", tmp_path / "run.h5", *other)
    assert code == 2 and messages.count("\n") == 1 and "differ in integrator" in messages
    assert not (tmp_path / "run.h5").exists()


@pytest.mark.parametrize(
    "variables,found",
    [
        ({}, None),
        ({"SLURM_NTASKS": "4", "SLURM_PROCID": "0"}, None),  # a batch script without srun
        ({"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "3"}, ("srun", 3, 4)),
        ({"SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"}, None),
        ({"PMI_SIZE": "2", "PMI_RANK": "1"}, ("mpirun or srun (PMI)", 1, 2)),
        ({"PMI_SIZE": "2", "PMI_RANK": "1", "NBODY_RANKS": "1"}, None),
        ({"PMIX_RANK": "5"}, ("mpirun or srun (PMIx)", 5, 0)),
        ({"OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_RANK": "7", "PMIX_RANK": "7"}, ("Open MPI's mpirun", 7, 8)),
    ],
)
def test_a_launcher_is_known_by_its_variables(variables, found):
    assert launcher.launch(variables) == found


class Hosts(Alone):
    """Rank ``rank`` of a team whose ranks answer as given."""

    def __init__(self, rank, hosts, answers):
        self.rank, self.size, self.hosts, self._answers = rank, len(hosts), hosts, answers

    def allgather(self, value):
        return self._answers


def test_the_ranks_of_a_host_share_the_cores_to_which_they_are_not_bound(monkeypatch):
    monkeypatch.setattr(machine, "_sharing", 1)
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 3})
    everywhere, bound = frozenset({0, 1, 2, 3}), frozenset({4, 5})
    binding.divide_cores(Hosts(0, ["a", "a", "b", "a"], [everywhere, everywhere, everywhere, bound]))
    assert machine.cores() == 2


@pytest.mark.parametrize("bound,cores", [({0, 1, 2, 3, 4, 5, 6, 7}, 2), ({2}, 1)])
def test_a_process_of_srun_that_runs_alone_uses_its_part_of_the_job(monkeypatch, bound, cores):
    for name, value in {"STEP_NUM_TASKS": "5", "STEP_NUM_NODES": "2", "CPUS_ON_NODE": "6"}.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    monkeypatch.setattr(machine, "_sharing", 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: bound)
    binding.limit_to_job()
    assert machine.cores() == cores


@pytest.mark.parametrize(
    "visible,local_rank,seen", [(None, 1, "1"), ("", 1, ""), ("4,6", 1, "6"), ("4,6", 2, ""), ("GPU-5", 3, "GPU-5")]
)
def test_each_rank_of_a_host_sees_another_gpu(monkeypatch, visible, local_rank, seen):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    binding.choose_gpu(local_rank)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == seen


class Cards(Hosts):
    """A team whose ranks are alike, and have the given cards."""

    def allgather(self, value):
        return self._answers if isinstance(value, tuple) else [value] * self.size


def test_two_ranks_on_one_gpu_are_refused(monkeypatch):
    card = SimpleNamespace(name="H200", multiprocessors=132, memory_total=1 << 37)
    monkeypatch.setattr("nbody.compute.facts", lambda: card, raising=False)
    monkeypatch.setattr("nbody.compute.uuid", lambda: "", raising=False)
    engine, hosts = SimpleNamespace(can=SimpleNamespace(device="gpu")), ["a", "b", "a"]
    require_same_machines(Cards(1, hosts, [("a", "1"), ("b", "1"), ("a", "2")]), engine, dict)
    with pytest.raises(InputError, match="ranks 0 and 2 have the same GPU of host a; start as many ranks"):
        require_same_machines(Cards(1, hosts, [("a", "1"), ("b", "1"), ("a", "1")]), engine, dict)


def test_processes_that_can_not_work_together_are_refused(monkeypatch, tmp_path, capfd):
    from nbody.parallel.mpi import MpiTeam

    command = ["-m", "nbody", "run", "plummer", "-o", tmp_path / "run.h5"]
    alone = child(*command, env={"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"}, timeout=300)
    assert alone.returncode == 2 and not (tmp_path / "run.h5").exists()
    assert "Open MPI's mpirun has started 2 processes, but MPI (" in alone.stderr.splitlines()[-1]
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    alone = child(*command, env={"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0"}, timeout=300)
    assert alone.returncode == 2 and alone.stderr.count("\n") == 1 and "'srun --mpi=pm" in alone.stderr
    with pytest.raises(InputError, match=r"srun has started 4 processes, and mpi4py is missing.*\[mpi\]"):
        MpiTeam(launcher.JobLaunch("srun", 0, 4))


@pytest.mark.parametrize(
    "environment,known",
    [({}, False), ({"SLURM_PROCID": "0"}, False), ({"PMI_RANK": "0"}, True), ({"PMIX_RANK": "0"}, True)],
)
def test_open_mpi_is_not_started_by_a_srun_that_it_can_not_ask(environment, known):
    """It would end each process with a page of text."""
    from nbody.parallel.library import _check_pmi

    mpi = SimpleNamespace(Get_library_version=lambda: "Open MPI v4.1.4, package: Debian OpenMPI")
    with nullcontext() if known else pytest.raises(InputError, match=r"v4.1.4 can't connect.*'srun --mpi=pmix'"):
        _check_pmi(launcher.JobLaunch("srun", 0, 4), mpi, environment)


def test_an_exchange_with_a_dead_rank_ends_the_run():
    from nbody.parallel.mpi import MpiTeam

    ranks = object.__new__(MpiTeam)
    ranks._mpi = SimpleNamespace(Exception=ArithmeticError)
    with pytest.raises(RunFailed, match="an exchange with another rank has failed: it was killed"):
        ranks._tested(lambda: 1 / 0)


def test_a_rank_that_hangs_within_an_exchange_of_an_evaluation_is_waited_for_no_longer_than_for_rows():
    """It has sent the length of its value, and the value itself does not come."""
    from nbody.parallel.mpi import MpiTeam

    def lengths(own, found):
        found[...] = own
        return SimpleNamespace(Test=lambda: True)

    ranks = object.__new__(MpiTeam)
    ranks.rank, ranks.size, ranks.timeout, ranks._calls = 0, 2, 0.02, 0
    ranks._mpi, ranks._announce, ranks._absent = (
        SimpleNamespace(BYTE=None, Exception=OSError),
        lambda: None,
        lambda: "rank 1",
    )
    ranks._comm = SimpleNamespace(Iallgather=lengths, Iallgatherv=lambda *_: SimpleNamespace(Test=lambda: False))
    with pytest.raises(RunFailed, match=r"rank 0 has waited 0.02 s for rank 1"):
        ranks.allgather("a value", short_timeout=True)


@pytest.mark.parametrize(
    "options,reason",
    [
        (
            ["run", "plummer", "--integrator", "ias15", "--precision", "float64"],
            "computes its own forces in one process",
        ),
        (["info", "plummer"], "works in one process"),
    ],
)
def test_commands_for_one_process_are_refused_under_ranks(options, reason, tmp_path):
    code, _, messages = together(2, "-m", "nbody", *options)
    assert code == 2 and messages.count("\n") == 1 and reason in messages
