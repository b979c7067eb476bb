"""NCCL between ranks with a GPU each: when it is used, how its calls are polled, and the bits of one process."""

import os
import sys
from types import ModuleType, SimpleNamespace

import pytest
import test_ranks
from conftest import child
from pretended_team import run_ranks

from nbody import compute, doctor, machine
from nbody.errors import RunFailed
from nbody.forces import ENGINES
from nbody.parallel import Alone, nccl
from nbody.parallel.nccl import Message
from nbody.run.ranks import undivided
from nbody.trajectory import first_difference

DIVIDED_TREE = ENGINES.load("gpu-tree").can.divided_from
RESULTS = SimpleNamespace(Success=0, RemoteError=6, InProgress=7)


class Bindings(ModuleType):
    """What nccl4py offers, without a library: calls are noted, and each is in progress twice before it is done."""

    NCCLError = type("NCCLError", (Exception,), {})
    Result, number, error, refused = RESULTS, 22809, 0, ""

    def __init__(self):
        super().__init__("nccl.bindings.nccl")
        self.calls, self.polled = [], 0
        self.UniqueId = SimpleNamespace(from_buffer=lambda data: SimpleNamespace(ptr=data))
        self.Config = lambda: SimpleNamespace(ptr=1, blocking=1)

    def get_version(self):
        return self.number

    def get_unique_id(self):
        return b"a mark"

    def comm_init_rank_config(self, size, mark, rank, config):
        self.calls.append((size, mark, rank))
        return "comm"

    def comm_get_async_error(self, comm):
        self.polled += 1
        return self.error or (0 if self.polled % 3 == 0 else 7)

    def get_error_string(self, result):
        return "remote process exited"

    def get_last_error(self, comm):
        return "or\na network error"

    def group_start(self):
        self.calls.append("start")

    def send(self, *arguments):
        if self.refused:
            raise self.NCCLError(self.refused)
        self.calls.append(("send", *arguments))

    def recv(self, *arguments):
        self.calls.append(("recv", *arguments))

    def group_end(self):
        self.calls.append("end")


@pytest.fixture
def bindings(monkeypatch):
    """An installed nccl4py."""
    made = Bindings()
    monkeypatch.delenv(nccl.SWITCH, raising=False)
    package, room = ModuleType("nccl"), ModuleType("nccl.bindings")
    package.bindings, room.nccl = room, made
    for name, module in (("nccl", package), ("nccl.bindings", room), (made.__name__, made)):
        monkeypatch.setitem(sys.modules, name, module)
    return made


class Answers(Alone):
    """One of two ranks whose versions of NCCL are as given."""

    size = 2

    def __init__(self, *versions):
        self.versions = [(version, "") for version in versions]

    def allgather(self, value):
        return self.versions


@pytest.mark.parametrize(
    "versions,used",
    [(("2.28.9", "2.28.9"), True), (("2.28.9", ""), False), (("", ""), False), (("2.28.9", "2.32.3"), False)],
)
def test_nccl_is_used_if_every_rank_has_the_same(bindings, versions, used):
    assert (nccl.connected(Answers(*versions)) is not None) == used == bool(bindings.calls)


def test_why_a_process_has_none(bindings, monkeypatch):
    assert nccl.version() == ("2.28.9", "")
    monkeypatch.setattr(bindings, "get_version", lambda: (_ for _ in ()).throw(RuntimeError("No such file:\nlibnccl.so.2")))
    assert nccl.version() == ("", "No such file: libnccl.so.2")
    monkeypatch.setenv(nccl.SWITCH, "0")
    assert nccl.version() == ("", "NBODY_NCCL=0")
    monkeypatch.delenv(nccl.SWITCH)
    monkeypatch.setitem(sys.modules, "nccl.bindings", None)
    assert nccl.version() == ("", "nccl4py is not installed")


def test_ranks_get_the_mark_of_rank_0_and_wait_until_a_call_is_made(bindings):
    made = run_ranks(3, nccl.connected)
    assert sorted(bindings.calls) == [(3, b"a mark", rank) for rank in range(3)] and {each.name for each in made} == {
        "NCCL 2.28.9"
    }
    bindings.calls, bindings.polled = [], 0
    made[0].send([Message(100, 8, 1)], [Message(200, 16, 2)], 7)
    assert bindings.calls == ["start", ("send", 100, 8, 0, 1, "comm", 7), ("recv", 200, 16, 0, 2, "comm", 7), "end"]
    assert bindings.polled == 3


def test_an_error_of_nccl_says_how_to_go_on_without(bindings):
    made = nccl.connected(Answers("2.28.9", "2.28.9"))
    bindings.refused = "invalid usage"
    with pytest.raises(RunFailed, match=r"^NCCL 2.28.9 has failed \(invalid usage\); with NBODY_NCCL=0 rows go through"):
        made.send([Message(100, 8, 1)], [], 7)
    bindings.error = RESULTS.RemoteError
    with pytest.raises(RunFailed, match=r"^NCCL 2.28.9 has failed \(remote process exited or a network error\)"):
        made.check()


def test_doctor_says_how_gpus_exchange(bindings, monkeypatch):
    monkeypatch.setattr(compute, "why_unavailable", lambda: "")
    [found] = doctor.ranks.nccl()
    assert found.state == doctor.GOOD and "NCCL 2.28.9" in found.text
    monkeypatch.setenv(nccl.SWITCH, "0")
    [found] = doctor.ranks.nccl()
    assert found.state == doctor.MISSING and "through host memory (NBODY_NCCL=0)" in found.text
    assert "[nccl13]" in found.remedy
    monkeypatch.setattr(machine, "version_of", {"nvidia-cuda-nvcc-cu12": "12.9.86"}.get)
    assert next(doctor.ranks.nccl()).remedy.endswith("install nccl4py nvidia-nccl-cu12")
    monkeypatch.setattr(compute, "why_unavailable", lambda: "no driver")
    assert not list(doctor.ranks.nccl())


@pytest.mark.parametrize(
    "size,engine,dividing,said",
    [(2, "gpu-tiled", 1, True), (2, "gpu-tiled", 2, False), (2, "cpu", 1, False), (1, "gpu-tiled", 1, False)],
)
def test_ranks_with_gpus_that_do_not_divide_few_bodies_say_so(size, engine, dividing, said):
    """Said if there are several ranks, the forces are computed by a GPU, and one rank computes them all."""
    partition = SimpleNamespace(transport=SimpleNamespace(ranks=dividing))
    line = undivided(
        SimpleNamespace(size=size),
        SimpleNamespace(can=ENGINES.load(engine).can, precision="float32"),
        SimpleNamespace(partition=partition),
    )
    assert ("from 98304 bodies on" in line) == said == bool(line)


@pytest.mark.gpu
@pytest.mark.skipif(test_ranks.MPIRUN is None, reason="no mpirun here")
@pytest.mark.parametrize(
    "engine,precision,count",
    [
        ("gpu-symmetric", "float32", 100001),
        ("gpu-symmetric", "float64", 100001),
        ("gpu-tiled", "float32", 100001),
        ("gpu-tiled", "float64", 100001),
        ("gpu-tree", "float32", DIVIDED_TREE + 1),
        ("gpu-tree", "mixed", DIVIDED_TREE + 1),
    ],
)
def test_two_ranks_with_a_gpu_each_make_the_file_of_one(tmp_path, engine, precision, count):
    """Through NCCL, if it is installed, and through host memory."""
    if compute.device_count() < 2:
        pytest.skip("needs two GPUs")
    run = ["-m", "nbody", "run", "plummer", "--particles", str(count), "--steps", "6", "--every", "3", "--quiet"]
    run += ["--engine", engine, "--precision", precision, "-o"]
    child(*run, tmp_path / "one.h5", check=True)
    for name, switch in (("two", os.environ.get(nccl.SWITCH, "")), ("host", "0")):
        code, _, messages = test_ranks.together(2, *run, tmp_path / f"{name}.h5", NBODY_NCCL=switch)
        assert (code, messages) == (0, "")
        assert first_difference(tmp_path / "one.h5", tmp_path / f"{name}.h5") is None
