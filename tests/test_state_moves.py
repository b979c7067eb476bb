"""The moves between two force evaluations: what they come to, however they are asked for, and what they compile to."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

MOVES = textwrap.dedent("""
    import sys
    import numpy as np
    sys.path.insert(0, "tests")
    from conftest import random_bodies
    from nbody.state import moves
    from nbody.state.device import DeviceState
    from nbody.state.host import HostState

    bodies, launched = random_bodies(150, 3), []  # two blocks of threads, the second not full
    kernel = moves.make_moves
    class Counted:
        def __getitem__(self, grid):
            return lambda *arguments: (launched.append(arguments[3]), kernel[grid](*arguments))
    import nbody.state.device as device
    device.make_moves = Counted()
    host, state = HostState(bodies, np.float64), DeviceState(bodies, np.float64)
    rng = np.random.default_rng(1)
    host.acceleration[:] = rng.standard_normal((150, 3))
    host.potential[:] = rng.standard_normal(150)
    state.restore(state.arrays() | {"acceleration": np.c_[host.acceleration, host.potential]})

    def same(a, b):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)

    # As many as a launch makes, and more; the state is asked only at the end.
    for either in (host, state):
        either.kick(0.5), either.drift(0.25), either.drift_taylor(0.5), either.kick(-0.25), either.drift(1.5)
    assert launched == [(moves.KICK, moves.DRIFT, moves.DRIFT, moves.BEND)]
    ends = state.arrays()
    assert launched[1:] == [(moves.KICK, moves.DRIFT, moves.NOTHING, moves.NOTHING)]
    same(ends["body"][:, :3], host.position), same(ends["velocity"][:, :3], host.velocity)
    assert np.array_equal(ends["body"][:, 3], bodies.mass)

    # A frame is packed where it was asked for, between the moves before and those after, by the same launch.
    launched.clear()
    expected = []
    def step(each):
        each.kick(0.25)
        each.drift(0.125)
    for _ in range(3):
        step(host)
        expected.append(host.snapshot())
    found = state.snapshots(lambda: step(state), 3, key="step")
    K, D, P, N = moves.KICK, moves.DRIFT, moves.PACK, moves.NOTHING
    assert launched == [(K, D, P, K), (D, P, K, D), (P, N, N, N)], launched
    for one, other in zip(expected, found, strict=True):
        other.wait()
        same(other.position, one.position), same(other.velocity, one.velocity), same(other.sums, one.sums)
        other.release()

    # What was asked for before a state is restored is not made after it.
    before = state.arrays()
    state.kick(1.0)
    state.restore(before)
    assert np.array_equal(state.arrays()["velocity"], before["velocity"])
""")


def test_moves_come_to_what_they_do_on_the_host_however_many_make_a_launch():
    environment = os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_ENABLE_CUDASIM": "1"}
    subprocess.run([sys.executable, "-c", MOVES], cwd=ROOT, env=environment, check=True)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_the_kernel_of_the_moves_keeps_its_numbers_in_registers(precision):
    from numba.cuda import types

    from nbody import gpu
    from nbody.state.moves import MOST, make_moves

    real = getattr(types, precision)
    rows = types.Array(real, 2, "C", aligned=True)
    kinds, factors = types.UniTuple(types.int64, MOST), types.UniTuple(real, MOST)
    area = types.Array(real, 3, "C", aligned=True), types.Array(types.float64, 2, "C", aligned=True)
    code = gpu.ptx(make_moves, (rows, rows, rows, kinds, factors, *area))
    found = gpu.resources(code)
    assert found.local == 0 and found.registers <= 64
    assert (
        code.count("ld.global.v4.f32" if precision == "float32" else "ld.global.v2.f64") >= 3
    )  # a body: one load, or two
