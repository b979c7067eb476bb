"""The moves between two force evaluations: what they come to, however they are asked for, and what they compile to."""

import gc
import math
import random
import weakref

import numpy as np
import pytest
from conftest import random_bodies

from nbody.forces.gpu_engine import KernelEngine
from nbody.integrators import INTEGRATORS
from nbody.integrators.integrator import Motion
from nbody.law import Gravity
from nbody.state import Outputs, frames, replay
from nbody.state import device_moves as moves
from nbody.state.device import DeviceState
from nbody.state.graph_time import time_of
from nbody.state.host import HostState


@pytest.mark.simulated
def test_moves_give_the_results_of_the_host_however_many_make_a_launch(monkeypatch):
    bodies, launched = random_bodies(150, 3), []  # two blocks of threads, the second not full
    kernel = moves.make_moves

    class Counted:
        def __getitem__(self, grid):
            return lambda *arguments: (launched.append(grid), kernel[grid](*arguments))

    monkeypatch.setattr(moves, "make_moves", Counted())
    host, state = HostState(bodies, np.float64), DeviceState(bodies, np.float64)
    rng = np.random.default_rng(1)
    host.acceleration[:] = rng.standard_normal((150, 3))
    host.potential[:] = rng.standard_normal(150)
    state.restore(state.arrays() | {"acceleration": np.c_[host.acceleration, host.potential]})

    def same(a, b):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)

    # As many as a launch makes, and more; the state is asked only at the end.
    for either in (host, state):
        either.moves.make([("kick", 0.5), ("drift", 0.25), ("drift_taylor", 0.5), ("kick", -0.25), ("drift", 1.5)])
    ends = state.arrays()
    assert len(launched) == 2  # five moves
    same(ends["body"][:, :3], host.position), same(ends["velocity"][:, :3], host.velocity)
    assert np.array_equal(ends["body"][:, 3], bodies.mass)

    # A frame is packed where it was asked for, between the moves before and those after, by the same launch.
    launched.clear()
    expected = []

    step = [("kick", 0.25), ("drift", 0.125)]

    def to_frames(each):
        return lambda packings: each.moves.make(
            move for packing in packings for move in [*step, *([("pack", packing)] if packing else [])]
        )

    for _ in range(3):
        host.moves.make(step)
        expected.append(host.frames.snapshot())
    found = state.frames.snapshots(to_frames(state), 3, key="step")
    assert len(launched) == 3  # of six moves and three frames
    for one, other in zip(expected, found, strict=True):
        other.wait()
        same(other.position, one.position), same(other.velocity, one.velocity), same(other.sums, one.sums)
        other.release()

    # A state whose frames are large has room for one on the device.
    monkeypatch.setattr(frames, "BLOCK_BYTES", 1)
    assert frames.device_blocks(150, "float64") == 2
    monkeypatch.setattr(frames, "LARGE_BYTES", 1)
    assert frames.device_blocks(150, "float64") == 1
    large = DeviceState(bodies, np.float64)
    large.restore(state.arrays())
    for _ in range(3):
        host.moves.make(step), state.moves.make(step)
        [one] = large.frames.snapshots(to_frames(large), 3, key="step")
        same(one.wait().position, host.position), same(one.velocity, host.velocity)
        one.release()

    before = state.arrays()
    state.moves.kick(1.0)
    state.restore(before)
    assert np.array_equal(state.arrays()["velocity"], before["velocity"])

    moment = state.clock.moment
    state.moves.turn()
    same(state.values("velocity")[0], -before["velocity"][:, :3])
    assert (state.clock.time, state.clock.origin, state.clock.step) == (-moment.time, -moment.origin, moment.step)
    state.moves.turn()
    assert np.array_equal(state.arrays()["velocity"], before["velocity"]) and state.clock.moment == moment


@pytest.mark.simulated
def test_a_state_that_replays_graphs_goes_where_the_hosts_goes_and_records_nothing_uncompiled(monkeypatch):
    """Whatever steps, frames, evaluations and restores follow each other."""
    recording, compiled = None, set()

    def launch(name, work):  # as a card would: what a graph records runs later, and must have been compiled before
        if recording is None:
            compiled.add(name), work()
        else:
            assert name in compiled, f"{name} would be compiled while a graph is recorded"
            recording.append(work)

    class Graph:
        def __init__(self, stream, work):
            nonlocal recording
            self.launches = recording = []
            try:
                work()
            finally:
                recording = None
            if Graph.fails:
                raise RuntimeError("no graph")

        def replay(self):
            for work in self.launches:
                work()

    def make_moves(body, velocity, acceleration, kinds, factors, rows, sums):
        for kind, f in zip(kinds, factors, strict=True):
            if kind == moves.PACK:
                rows[0], rows[1], sums[...] = body[:, :3], velocity[:, :3], 0
                sums[0, 0] = 0.5 * (acceleration[:, 3] * body[:, 3]).sum()
            elif kind != moves.NOTHING:
                target = velocity if kind == moves.KICK else body
                target[:, :3] += f * (velocity if kind == moves.DRIFT else acceleration)[:, :3]

    class Moves:
        def __getitem__(self, grid):
            return lambda *arrays: launch("moves", lambda: make_moves(*(getattr(a, "_ary", a) for a in arrays)))

    class Springs(KernelEngine):
        can = KernelEngine.can._replace(potential="summed")

        def _kernel(self, potential, state):
            return potential

        def _launch(self, potential, state, G, length2):
            body, acceleration = state.body._ary, state.acceleration._ary
            state.clock.time_dependent, moment = True, state.clock.graph_time()

            def pull():
                acceleration[:, :3] = -body[:, :3] + math.cos(100 * time_of(*moment))
                if potential:
                    acceleration[:, 3] = (body[:, :3] ** 2).sum(1)

            launch(("force", potential), pull)

        def _compute(self, state, potential):
            if isinstance(state, DeviceState):
                return super()._compute(state, potential)
            state.acceleration[...] = -state.position + math.cos(100 * state.clock.now)
            if potential:
                state.potential[...] = (state.position**2).sum(1)

    Graph.fails = False
    for module, name, value in ((replay, "Graph", Graph), (replay, "SIMULATED", False), (moves, "make_moves", Moves())):
        monkeypatch.setattr(module, name, value)
    engine, bodies = Springs(Gravity(1.0, 3, "plummer", 0.1), "float64"), random_bodies(20, 3)

    def same(card, host):
        assert card.clock.current == host.clock.current
        for found, expected in ((card.arrays()["body"], host.position), (card.arrays()["velocity"], host.velocity)):
            np.testing.assert_allclose(found[:, :3], expected, rtol=1e-9, atol=1e-11)

    for seed in range(40):
        chosen, kept = random.Random(seed), None
        compiled.clear()
        both = DeviceState(bodies, np.float64), HostState(bodies, np.float64)
        scheme = INTEGRATORS.load(chosen.choice(["taylor", "leapfrog", "yoshida4"]))(0.01)
        for _ in range(20):
            what, count, every = chosen.choice("sssffekr"), chosen.choice([1, 2, 3, 16, 17, 40]), chosen.choice([1, 3])
            if what == "s":
                for state in both:
                    scheme.advance(Motion(engine, state), count)
            elif what == "f":
                found, expected = (scheme.frames(Motion(engine, state), min(count, 16), every) for state in both)
                for one, other in zip(found, expected, strict=True):
                    np.testing.assert_allclose(one.wait().position, other.position, rtol=1e-9, atol=1e-11)
                    np.testing.assert_allclose(one.velocity, other.velocity, rtol=1e-9, atol=1e-11)
                    np.testing.assert_allclose(one.sums[0], other.sums[1], rtol=1e-9)
                    one.release()
            elif what == "e":
                for state in both:
                    engine.evaluate(state, Outputs.ENERGY)
            elif what == "k":
                same(*both)
                kept = [{name: array.copy() for name, array in state.arrays().items()} for state in both]
            elif kept:
                for state, arrays in zip(both, kept, strict=True):
                    state.restore(arrays)
        same(*both)

    # The first of the steps may be of a known kind, and the second not.
    compiled.clear()
    taylor, card = INTEGRATORS.load("taylor")(0.01), DeviceState(bodies, np.float64)
    engine.evaluate(card, Outputs.ENERGY)
    start = card.arrays()
    taylor.advance(Motion(engine, card), 1)
    card.restore(start)
    taylor.advance(Motion(engine, card), 17)

    # A graph that can't be made leaves the state as it was.
    card.restore(start)
    card.moves.repeats._replays.clear()
    before, Graph.fails = (card.clock.current, card.clock.reached), True
    with pytest.raises(RuntimeError, match="no graph"):
        taylor.advance(Motion(engine, card), 1)
    assert before == (card.clock.current, card.clock.reached)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_the_kernel_of_the_moves_keeps_its_numbers_in_registers(precision):
    from numba.cuda import types

    from nbody import compute
    from nbody.state.device_moves import MOST, make_moves

    real = getattr(types, precision)
    rows = types.Array(real, 2, "C", aligned=True)
    kinds, factors = types.UniTuple(types.int64, MOST), types.UniTuple(real, MOST)
    area = types.Array(real, 3, "C", aligned=True), types.Array(types.float64, 2, "C", aligned=True)
    code = compute.ptx(make_moves, (rows, rows, rows, kinds, factors, *area))
    found = compute.resources(code)
    assert found.local == 0 and found.registers <= 64
    assert code.count("ld.global.v4.f32" if precision == "float32" else "ld.global.v2.f64") >= 3  # a body: one load, or two


@pytest.mark.simulated
def test_a_state_is_in_no_cycle_of_references():
    """Its memory on the device is free at once when nobody holds it any more; freed by the garbage collector while a graph
    is recorded, it would end the recording."""

    def use():
        state = DeviceState(random_bodies(9), np.dtype("float32"))
        state.moves.kick(0.5)
        state.moves.drift(0.25)
        state.moves.repeats.make(lambda steps: state.moves.make([("kick", 0.5)] * steps), 3, "kick")
        state.frames.snapshots(lambda packings: state.moves.make([("pack", *packings)]), 1, "frame")[0].wait().release()
        state.progress.wait()
        return weakref.ref(state)

    gc.disable()
    try:
        assert use()() is None
    finally:
        gc.enable()
