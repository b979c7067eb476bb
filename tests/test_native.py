"""The hand-written C is a fair yardstick only if it computes the same thing."""

import numpy as np
import pytest

from nbody.bench.forces import foreign
from nbody.bench.forces.problems import cluster
from nbody.forces.reference import direct_sum


@pytest.fixture(autouse=True)
def made():
    """Not while tests are collected, by each worker."""
    if reason := foreign.compiled()[1]:
        pytest.skip(reason)


@pytest.mark.parametrize("count", [1, 17, 1000, 1026])  # ragged in its vectors of 16, and in its passes of 4
def test_the_c_agrees_with_the_referee(count):
    problem = cluster(count)
    engine = foreign.NativeEngine(problem.gravity, "float32")
    state = engine.load(problem.particles)
    engine.evaluate(state)
    kept = problem.particles.position.astype(np.float32), problem.particles.mass.astype(np.float32)
    expected, _ = direct_sum(*kept, problem.gravity)
    scale = np.abs(expected).max() or 1.0
    assert np.abs(state.acceleration - expected).max() < 1e-6 * scale  # float32: some 20 roundings of 6e-8


def test_without_a_compiler_it_says_why(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    library, reason = foreign.compiled.__wrapped__()
    assert library is None
    assert "compiler" in reason
