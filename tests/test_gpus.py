"""Several GPUs in one run: how their shares are added, what users may ask for, and the same bits for any number of them."""

import json
import weakref
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from combinations import every_pair
from conftest import program, random_bodies, said

from nbody import Simulation
from nbody.cli import main
from nbody.errors import InputError
from nbody.forces import ENGINES
from nbody.forces.direct import gpu_triangle
from nbody.forces.options import GpuOptions, gpus_asked
from nbody.forces.problem import Problem
from nbody.integrators import INTEGRATORS
from nbody.integrators.integrator import Motion
from nbody.law import Gravity
from nbody.parallel.segments import cover, push
from nbody.run import plan as run_plan
from nbody.run.gpus import notify_if_few
from nbody.scenario import Scenario
from nbody.state import Outputs


@pytest.mark.parametrize("shares,devices,step", every_pair((1, 2, 64, 256), (1, 2, 3, 5, 7, 8), (1, 4, 64)))
def test_every_division_adds_the_shares_in_the_same_tree(shares, devices, step):
    """The nodes of all devices and launches, merged as they come, are one text with the same brackets."""

    def merged(nodes, stack, texts):
        for node, text in nodes:
            texts.append(text)
            for _ in range(push(stack, node)):
                texts[-2:] = [f"({texts[-2]}+{texts[-1]})"]

    def text(begin, size):
        half = size // 2
        return str(begin) if size == 1 else f"({text(begin, half)}+{text(begin + half, half)})"

    everything: list = []
    for device in range(devices):
        begin, end = shares * device // devices, shares * (device + 1) // devices
        stack, texts = [], []
        while begin < end:
            stop = min(end, (begin // step + 1) * step)
            merged([(node, text(*node)) for node in cover(begin, stop)], stack, texts)
            begin = stop
        everything += zip(stack, texts, strict=True)
    stack, texts = [], []
    merged(everything, stack, texts)
    assert stack == [(0, shares)] and texts == [text(0, shares)]


@pytest.mark.parametrize(
    "written,meant",
    [(2, 2), ("2", 2), ("all", "all"), ("0,2", [0, 2]), ([1], [1]), ([0, 1], [0, 1]), (2.0, 2), (None, None)],
)
def test_gpus_may_be_a_number_all_or_a_list(written, meant):
    assert GpuOptions(gpus=written).gpus == meant


@pytest.mark.parametrize("written", [0, -1, "x", "", "0,0", [1, 1], [], 1.5, True, "1,x", [0, -1]])
def test_anything_else_is_refused(written):
    with pytest.raises(ValueError, match="GPU"):
        GpuOptions(gpus=written)


@pytest.fixture
def cards(monkeypatch):
    """A function that puts cards of these names into this machine."""
    from nbody.compute.gpu import peers

    def put(*names):
        monkeypatch.setattr(peers, "device_count", lambda: len(names))
        monkeypatch.setattr(peers, "_kind", lambda number: (names[number],))

    return put


def test_devices_are_counted_and_alike(cards):
    from nbody.compute.gpu.peers import devices_for

    cards("H200", "H200", "A100")
    assert devices_for(None) == devices_for(1) == (0,)
    assert devices_for(2) == (0, 1) and devices_for([1, 0]) == (1, 0) and devices_for([2]) == (2,)
    for asked, line in {
        4: "here: 4 GPUs are asked for; this machine has 3 GPUs; write --gpus 3, or all",
        "all": "here: GPU 0 is a H200 and GPU 2 a A100",
        (0, 3): "here: there is no GPU 3; this machine has 3 GPUs, counted from 0",
    }.items():
        assert said(devices_for, asked, "here: ").startswith(line)


def test_a_library_that_two_devices_share_is_unloaded_once():
    from nbody.compute.gpu.peers import _unload_once

    class Module(SimpleNamespace):
        """One that may be referred to weakly."""

    unloaded = []

    def context(*libraries):
        made = [Module(object_code=SimpleNamespace(handle=library)) for library in libraries]
        for module in made:
            module._finalizer = weakref.finalize(module, unloaded.append, module.object_code.handle)
        return SimpleNamespace(modules=dict(enumerate(made)))

    contexts = [context(1, 2), context(2, 3), context(1)]
    _unload_once(contexts)
    for each in contexts:
        each.modules.clear()
    assert sorted(unloaded) == [1, 2, 3]


@pytest.mark.parametrize(
    "arguments,line",
    [
        (["--gpus", "0"], "--gpus: must be a number of GPUs from 1 on, all, or their own numbers as in 0,2; got '0'"),
        (
            ["--gpus", "2", "--engine", "cpu"],
            "--gpus: engine 'cpu' and scheme 'leapfrog': it computes on one device; leave gpus out",
        ),
        (
            ["--set", "engine.gpus=2", "--engine", "cpu-tree"],
            "--set engine.gpus: engine 'cpu-tree' and scheme 'leapfrog': it computes on one device; leave gpus out",
        ),
    ],
)
def test_impossible_gpus_are_refused(refused, tmp_path, arguments, line):
    given = ["run", "plummer", "-n", "33", "--steps", "1", "-o", tmp_path / "run.h5", "-q", *arguments]
    assert line in refused(*given) and not (tmp_path / "run.h5").exists()


@pytest.mark.parametrize(
    "engine,count,said",
    [
        ("gpu-tree", 10**6, False),
        ("gpu-tree", 100_000, True),
        ("gpu-symmetric", 50_000, False),
        ("gpu-split", 100, True),
    ],
)
def test_the_engine_decides_from_how_many_bodies_on_its_work_is_divided(monkeypatch, cards, engine, count, said):
    from nbody import compute

    cards("H200", "H200")
    monkeypatch.setattr(compute, "why_unavailable", lambda: "")
    lines = []
    notify_if_few(ENGINES.load(engine), 2, count, "", lines.append)
    assert [line.split(";")[0] for line in lines] == ["gpus: one of 2 GPUs computes"] * said
    with pytest.raises(InputError, match="--gpus: 3 GPUs are asked for; this machine has 2 GPUs"):
        notify_if_few(ENGINES.load(engine), 3, count, "--gpus: ", lines.append)


@pytest.mark.parametrize(
    "asked,why",
    [
        ({"gpus": 2}, ""),
        ({"gpus": 64}, ""),
        ({"gpus": 65}, "64 GPUs at most divide its work"),
        ({"ranks": 65}, "64 GPUs at most divide its work"),
        ({"gpus": 2, "ranks": 2}, "each rank has one GPU"),
    ],
)
def test_an_engine_says_which_gpus_divide_its_work(asked, why):
    found = ENGINES.load("gpu-symmetric").supports(Problem(Gravity(), "float32", 10**6, **asked))
    assert found.startswith(why) and bool(found) == bool(why)


@pytest.mark.parametrize("gpus,asked", [(None, 1), (1, 1), (2, 2), ("all", 2), ([1], 2), ([0, 1], 2), (3, 3)])
def test_naming_gpus_needs_an_engine_that_takes_them(gpus, asked):
    assert gpus_asked(gpus) == asked


def test_block_steps_with_a_tree_say_what_is_not_divided():
    scheme = INTEGRATORS.load("leapfrog_block")(0.1)
    engine = SimpleNamespace(work=lambda state: 4)
    for helpers, ranks, line in (((), 1, ""), (("a GPU",), 1, "gpus: only the first GPU"), ((), 2, "every rank")):
        partition = SimpleNamespace(transport=SimpleNamespace(helpers=helpers, ranks=ranks))
        motion = Motion(engine, SimpleNamespace(count=2, partition=partition))
        assert scheme.report(motion).message.split(" computed")[0] == line


@pytest.mark.parametrize("engine", ["gpu-symmetric", "gpu-tree"])
def test_the_memory_of_a_run_has_what_gpus_or_ranks_send_each_other(monkeypatch, engine):
    bodies = {"generator": "uniform", "particles": 300000}
    scenario = Scenario.from_dict({"initial": bodies, "engine": "cpu", "integrator": {"dt": 0.1, "steps": 1}})
    planned, kind = run_plan.plan(scenario, measure=False), ENGINES.load(engine)

    def needed(ranks=1, **gpus):
        monkeypatch.setattr(run_plan, "team", lambda: SimpleNamespace(size=ranks))
        return replace(planned, engine_kind=kind, engine_options=kind.Options(**gpus)).memory["GPU memory"]

    alone = needed()
    assert needed(gpus=1) == alone < needed(gpus=2) == needed(gpus=[0, 3])
    assert needed(ranks=3) - alone > 10 * 300000


def test_one_gpu_is_no_option_of_an_engine_that_has_none(capsys, tmp_path):
    given = ["run", "plummer", "-n", "33", "--steps", "1", "--engine", "cpu", "--gpus", "1", "--json", "-q"]
    assert main([*given, "-o", str(tmp_path / "run.h5")]) == 0
    assert json.loads(capsys.readouterr().out)["engine"] == "cpu"


def test_a_run_is_repeated_on_the_gpus_that_are_asked_for(capsys, tmp_path):
    path = str(tmp_path / "run.h5")
    given = ["-n", "33", "--steps", "1", "--engine", "cpu", "--gpus", "1", "-q", "-o", path]
    assert main(["run", "plummer", *given]) == 0 == main(["rerun", path, "--gpus", "1", "--verify", "-q"])
    assert "hold the same bits" in capsys.readouterr().out
    for command in (["rerun", path, "--overwrite"], ["resume", path]):  # these have no --engine
        assert main([*command, "--gpus", "2", "-q"]) == 2
        line = "--gpus: engine 'cpu' and scheme 'leapfrog': it computes on one device; leave gpus out"
        assert line in capsys.readouterr().err


def test_a_gpu_that_fails_is_named_and_the_others_go_on_with_the_same_bits(tmp_path):
    """Once in a launch, and once in a wait, whose error does not say which device it is about."""
    done = program("failing_gpus", cwd=tmp_path, env={"NUMBA_ENABLE_CUDASIM": "1"})
    assert json.loads(done.stdout.splitlines()[-1]) == [0, 1, 0, 0, 1, 0, 0], done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("error")] == [
        "error: GPU 1 has failed: [700] Call to cuX results in Y; go on without it: nbody resume read.h5 --gpus 0,2",
        "error: GPU 1 has failed: [999] unspecified; go on without it: nbody resume is_done.h5 --gpus 0,",
    ]


@pytest.fixture
def two_gpus():
    """Skip a test on a machine with fewer."""
    from nbody import compute

    if compute.why_unavailable() or compute.device_count() < 2:
        pytest.skip("needs two GPUs")


def forces_of(bodies, precision, gpus, engine="gpu-symmetric", gravity=None):
    """Accelerations and the energy by some GPUs."""
    kind = ENGINES.load(engine)
    made = kind(gravity or Gravity(1.0, 3, "plummer", 0.05), precision, kind.Options(gpus=gpus))
    state = made.load(bodies)
    assert state.partition.transport.size == gpus
    made.evaluate(state, Outputs.ENERGY if engine == "gpu-symmetric" else Outputs.POTENTIAL)
    return [state.values("acceleration")[0], np.array(state.frames.snapshot().wait().sums[1])]


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "mixed", "float64"])
@pytest.mark.parametrize("masses", ["equal", "product", "half are zero"])
def test_two_gpus_give_the_bits_of_one(precision, masses):
    bodies = random_bodies(70001 if masses == "half are zero" else 40001)
    if masses != "product":
        bodies.mass[: 30000 if masses == "half are zero" else None] = 0.0 if masses == "half are zero" else 0.5
    one, two = (forces_of(bodies, precision, gpus) for gpus in (1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.gpu
@pytest.mark.parametrize("engine", ["gpu-tiled", "gpu-unrolled"])
def test_two_gpus_divide_rows_with_the_bits_of_one(engine):
    one, two = (forces_of(random_bodies(40001), "float32", gpus, engine) for gpus in (1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "mixed"])
def test_two_gpus_divide_a_tree_with_the_bits_of_one(monkeypatch, precision):
    """With an outlier, which has a tree of its own. Also without access to each other's memory."""
    from nbody.forces.transports import gpus as layer

    kind = ENGINES.load("gpu-tree")
    monkeypatch.setattr(kind, "can", kind.can._replace(divided_from=1))
    bodies, found = random_bodies(140001), []
    bodies.position[70000] = 1e6
    for gpus, direct in ((1, True), (2, True), (2, False)):
        if not direct:
            monkeypatch.setattr(layer.gpu, "connect", lambda devices: False)
        found.append(forces_of(bodies, precision, gpus, "gpu-tree"))
    assert all(np.array_equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "mixed"])
def test_a_run_with_a_tree_on_two_gpus_has_the_bits_of_one_replayed_or_not_or_resumed(monkeypatch, tmp_path, precision):
    """40 steps in graphs; the same without a graph; and 20 on two GPUs, 20 on one."""
    from nbody.run.resume import resume
    from nbody.state.device_progress import DeviceProgress

    bodies, found, path = random_bodies(140001), set(), tmp_path / "run.h5"
    halo = [{"field": "plummer", "mass": 1.0, "b": 0.5}]
    given = {"dt": 1e-3, "softening": 0.05, "engine": "gpu-tree", "precision": precision, "fields": halo}
    kind = ENGINES.load("gpu-tree")
    monkeypatch.setattr(kind, "can", kind.can._replace(divided_from=1))
    for gpus, recorded in ((1, True), (2, True), (2, False)):
        with monkeypatch.context() as patch:
            patch.setattr(DeviceProgress, "can_be_recorded", lambda self, recorded=recorded: recorded)
            run = Simulation(bodies, gpus=gpus, **given)
            run.run(40)
        assert run.state.partition.transport.size == gpus
        found.add(b"".join(array.tobytes() for array in run.state.values("position", "velocity")))
    Simulation(bodies, gpus=2, output=path, every=10, **given).run(20)
    again = resume(path, steps=40, gpus="1", notify=lambda line: None)
    again.run()
    assert again.state.partition.transport.size == 1
    found.add(b"".join(array.tobytes() for array in again.state.values("position", "velocity")))
    assert len(found) == 1


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("launches", [1, 4])
def test_a_run_on_two_gpus_has_the_bits_of_one_replayed_or_not(monkeypatch, precision, launches):
    """20 steps in graphs, and the same without a graph."""
    from nbody.state.device_progress import DeviceProgress

    if launches > 1:
        monkeypatch.setattr(gpu_triangle, "COLUMNS_BUDGET", 4 << 20)
    found = set()
    for gpus, recorded in ((1, True), (2, True), (2, False)):
        monkeypatch.setattr(DeviceProgress, "can_be_recorded", lambda self, recorded=recorded: recorded)
        bodies = random_bodies(40001)
        run = Simulation(bodies, dt=1e-3, softening=0.05, engine="gpu-symmetric", precision=precision, gpus=gpus)
        run.run(20)
        assert (len(run.state.workspace.parts[0].launches) > 1) == (launches > 1)
        found.add(b"".join(array.tobytes() for array in run.state.values("position", "velocity")))
    assert len(found) == 1
