"""External fields in Numba's simulator, at small N, in a process of their own: the last test starts it."""

import os
import subprocess
import sys

import numpy as np
import pytest
from test_fields import TEXT
from test_fields_gpu import check_fields

from nbody.compute import SIMULATED
from nbody.fields import FIELDS
from nbody.run.simulation import Simulation
from nbody.scenario import Scenario

simulated = pytest.mark.skipif(not SIMULATED, reason="runs in the simulator's own process")


@simulated
@pytest.mark.parametrize(
    ("precision", "dimensions", "names"),
    [
        ("float32", 3, tuple(name for name in FIELDS if name not in ("milky_way", "post_newtonian"))),
        ("float64", 2, ("rotating_bar",)),
    ],
)
def test_the_simulator_adds_fields(precision, dimensions, names):
    check_fields("gpu-global", precision, dimensions, 9, names, G=1.0)


@simulated
def test_a_simulated_run_in_a_turning_bar_is_the_cpus():
    runs = []
    for engine in ("gpu-global", "reference"):
        scenario = Scenario.from_text(TEXT).override(engine=engine, particles=5, steps=5)
        run = Simulation(scenario)
        run.run()
        runs.append(run.state.arrays()["body"][:, :3] if engine == "gpu-global" else run.state.position)
    assert np.abs(runs[0] - runs[1]).max() < 1e-12


@pytest.mark.slow
@pytest.mark.skipif(SIMULATED, reason="this is the simulator's process")
def test_the_simulator_finds_the_fields_right():
    command = [sys.executable, "-m", "pytest", "-o", "addopts=", "-p", "no:cacheprovider", __file__]
    ran = subprocess.run(command, env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert " passed" in ran.stdout
