"""Kernels that are compiled together: what runs is the same, and no process is started in vain or left behind."""

import pickle
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

import nbody
from nbody import machine
from nbody.compute import compile_together, kernel
from nbody.compute.compiling import cache, precompile
from nbody.errors import InputError
from nbody.state import Outputs


def kernels():
    """Three kernels, made anew as in another process; a call of each adds 1, 2 or 3 to an array."""
    made = []
    for number in (1.0, 2.0, 3.0):

        def add(x, number=number):
            for i in range(len(x)):
                x[i] += number

        made.append(kernel("cpu")(add))
    return made


@pytest.fixture
def workers(tmp_path, monkeypatch):
    """An empty cache and three cores; the processes that are started."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(machine, "cores", lambda: 3)
    monkeypatch.setattr(precompile, "MOST", 3)
    started, start = [], subprocess.Popen

    def noted(*arguments, **options):
        started.append(start(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(precompile.subprocess, "Popen", noted)
    return started


def call(made, x):
    for each in made:
        each(x)


def loaded(made):
    return [sum(each.stats.cache_hits.values()) for each in made]


def test_missing_kernels_are_compiled_by_several_processes_and_then_loaded(workers, monkeypatch):
    x, made = np.zeros(3), kernels()
    compile_first = made[0].compile

    def after_a_worker(types):  # else this process might compile all three before a worker has started
        while cache.is_empty("kernels"):
            time.sleep(0.01)
        return compile_first(types)

    monkeypatch.setattr(made[0], "compile", after_a_worker, raising=False)
    compile_together(lambda: call(made, x))
    assert x.tolist() == [0, 0, 0], "a rehearsal computes nothing"
    assert len(workers) == 2 and all(each.poll() is not None for each in workers)
    assert len([*(cache.folder() / "kernels").iterdir()]) == 3
    call(made, x)
    assert x.tolist() == [6, 6, 6] and sum(loaded(made)) >= 1


def test_no_process_is_started_if_at_most_one_kernel_is_missing(workers):
    first = kernels()
    call(first[:2], np.zeros(3))
    for _ in range(2):
        made = kernels()
        compile_together(lambda made=made: call(made, np.zeros(3)))
        call(made, np.zeros(3))
        assert not workers
    assert loaded(made) == [1, 1, 1]


def test_where_nothing_can_be_stored_this_process_compiles(workers, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    x, made = np.zeros(3), kernels()
    compile_together(lambda: call(made, x))
    call(made, x)
    assert x.tolist() == [6, 6, 6] and not workers


def test_an_interrupt_ends_the_workers(workers, monkeypatch):
    made = kernels()

    def interrupted(types):
        raise KeyboardInterrupt

    for each in made:
        monkeypatch.setattr(each, "compile", interrupted, raising=False)
    with pytest.raises(KeyboardInterrupt):
        compile_together(lambda: call(made, np.zeros(3)))
    assert len(workers) == 2 and all(each.poll() is not None for each in workers)


def test_a_worker_that_dies_leaves_its_kernels_to_the_call(workers, monkeypatch):
    monkeypatch.setattr(precompile.child, "python", lambda *arguments, **environment: {"args": ["false"]})
    x, made = np.zeros(3), kernels()
    compile_together(lambda: call(made, x))
    call(made, x)
    assert x.tolist() == [6, 6, 6]


def test_an_error_of_a_rehearsal_is_left_to_the_evaluation(workers):
    made = kernels()

    def work():
        call(made, np.zeros(3))
        raise ValueError("it will be raised again")

    compile_together(work)
    assert len(workers) == 2


def test_a_rehearsal_within_another_one_leaves_the_rest_to_the_outer_one(workers):
    x, made = np.zeros(3), kernels()

    def work():
        call(made[:1], x)
        compile_together(lambda: call(made[1:2], x))
        assert not workers, "all missing kernels are compiled at once"
        call(made[2:], x)

    compile_together(work)
    assert x.tolist() == [0, 0, 0] and len(workers) == 2
    assert len([*(cache.folder() / "kernels").iterdir()]) == 3


@pytest.mark.parametrize("missing", [3, 1])
def test_workers_start_early_where_nothing_is_cached_and_end_when_kernels_are_compiled(workers, missing):
    x, made = np.zeros(3), kernels()[:missing]
    with precompile.workers_ahead("nbody.units"):
        assert len(workers) == 2
    compile_together(lambda: call(made, x))
    assert len(workers) == 2 and all(each.poll() is not None for each in workers)
    call(made, x)
    assert x.tolist() == [sum(range(1, missing + 1))] * 3
    with precompile.workers_ahead("nbody.units"):
        assert len(workers) == 2, "there are kernels"


def test_workers_end_with_a_run_that_is_refused(workers):
    with pytest.raises(InputError, match="cpu-tree"):
        nbody.Simulation(nbody.plummer(10, seed=1), dt=0.01, softening=0.1, engine="cpu-tree", precision="mixed")
    assert len(workers) == 2 and all(each.poll() is not None for each in workers)


def test_workers_end_with_a_process_that_is_killed(tmp_path):
    from conftest import program  # here: a worker that gets a kernel of this file imports the file

    pids = program("workers_ahead", env={"XDG_CACHE_HOME": str(tmp_path)}).stdout.split()
    ends = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < ends:
        time.sleep(0.05)
    assert pids and not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.slow
def test_a_worker_compiles_several_parallel_kernels_one_after_the_other(tmp_path, monkeypatch):
    """It ended at the second one: LLVM did not know the functions of Numba's threads."""
    from nbody.forces.tree.octree.order_cpu import find_extremes, gather, sort

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    x, m, order = np.zeros((9, 3)), np.zeros(9), np.zeros(9, np.uint32)
    with precompile.rehearsal() as calls:
        sort(x, m, 1.0, m.view(np.uint64), order, m.view(np.uint64), order, order.reshape(3, 3).astype(np.int64))
        find_extremes(x, x.reshape(3, 3, 3))
        gather(x, m, order, 1.0, 1.0, x)
    worker = subprocess.Popen(
        **precompile.child.python("-m", "nbody.compute.compiling.precompile_worker"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    for each in calls:
        stored = each.kernel._cache
        pickle.dump(stored.job(stored.name(each.types), each.types), worker.stdin)
    assert worker.communicate()[0] == b"...." and worker.returncode == 0
    assert len([*(cache.folder() / "kernels").iterdir()]) == 3


def test_a_run_compiles_what_its_steps_and_frames_need_before_its_first_step(monkeypatch):
    compiled = []
    monkeypatch.setattr("nbody.forces.engine._REHEARSED", set())
    monkeypatch.setattr("nbody.forces.engine.compile_together", compiled.append)
    for count, times in ((300, 1), (310, 1), (1200, 2)):  # kernels for about as many bodies are the same
        nbody.Simulation(nbody.plummer(count, seed=1), dt=0.01, steps=2, softening=0.1, engine="cpu").run()
        assert len(compiled) == times


@pytest.mark.slow
def test_forces_have_the_same_bits_whichever_process_compiles(workers, tmp_path, monkeypatch):
    from nbody.forces.direct.cpu import CpuEngine
    from nbody.forces.direct.cpu_few import few_kernels
    from nbody.law import Gravity
    from nbody.particles import Particles

    position = np.random.default_rng(1).standard_normal((50, 3))
    bodies, found, names = Particles(np.full(50, 1 / 50), position, 0 * position), [], []
    for cores in (1, 3):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / str(cores)))
        monkeypatch.setattr(machine, "cores", lambda cores=cores: cores)
        few_kernels.cache_clear()  # as in a new process: kernels are made, and loaded, again
        engine = CpuEngine(Gravity(softening="plummer", length=0.1), "float32")
        compile_together(lambda engine=engine: engine.evaluate(engine.load(bodies), Outputs.POTENTIAL))
        state = engine.load(bodies)
        engine.evaluate(state, Outputs.POTENTIAL)
        found.append([each.tobytes() for each in state.values("acceleration", "potential")])
        names.append({each.name for each in (cache.folder() / "kernels").iterdir()})
    assert found[0] == found[1] and len(workers) == 1
    assert names[0] == names[1] and len(names[0]) >= 2


def test_what_a_function_of_a_kernel_allocates_is_freed_when_it_returns():
    from numba.core.runtime import _nrt_python, rtsys

    from nbody.compute.compiling.cpu_inner import inner

    @inner
    def total(x):
        return x.copy().sum()

    @kernel("cpu")
    def many(x):
        for _ in range(10):
            x[0] = total(x)

    _nrt_python.memsys_enable_stats()
    many(np.ones(1))
    found = rtsys.get_allocation_stats()
    many(np.ones(1))
    now = rtsys.get_allocation_stats()
    assert now.alloc - found.alloc == now.free - found.free


@pytest.mark.parametrize("engine", ["cpu", "cpu-tree"])
@pytest.mark.parametrize("massless", [0, 150])
def test_compiling_an_evaluation_leaves_the_current_accelerations_as_they_are(monkeypatch, engine, massless):
    """The potential is asked for when they are current: in a field, and with bodies without mass among the others."""
    monkeypatch.setattr("nbody.forces.engine._REHEARSED", set())
    particles = nbody.plummer(300, seed=1)
    particles.mass[: 2 * massless : 2] = 0.0
    field = {"field": "nfw", "mass": 3.0, "a": 1.0}
    simulation = nbody.Simulation(particles, dt=0.01, softening=0.1, engine=engine, fields=[field])
    evaluate, state = simulation.setup.engine.evaluate, simulation.state
    evaluate(state, Outputs.ACCELERATION)
    before = state.acceleration.copy()
    evaluate(state, Outputs.POTENTIAL)
    assert np.array_equal(state.acceleration, before) and before.any()


def test_a_worker_compiles_for_a_gpu_that_it_does_not_open(tmp_path, monkeypatch):
    """So that each takes no memory of it. Here there may be none at all."""
    pytest.importorskip("cuda.core")
    from numba import types

    from nbody.compute.compiling import gpu_kernels
    from nbody.forces.tree.momentum_gpu import subtract_force

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(gpu_kernels, "_toolchain", lambda: ("a card", (9, 0), "its driver"))
    arguments, queue = (types.float32[:, ::1], types.float64[:, ::1]), precompile.Queue()
    kept = subtract_force._cache
    queue.put((kept.job(kept.name(arguments), arguments), None))
    queue.put(None)
    with precompile._start() as worker:
        precompile._feed(worker, queue)
    if not cache.exists(kept.name(arguments)):
        pytest.skip("no NVVM here")
    loaded = kept.load_overload(arguments, None)
    assert loaded.entry_name.encode() in loaded._codelibrary.get_cubin((9, 0, "a")).code
