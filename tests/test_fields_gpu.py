"""External fields on the GPU: as PTX, in the simulator at small N, and on a card."""

import math

import numpy as np
import pytest
from compiled_forces import for_h200
from conftest import random_bodies
from test_fields import EXTERNAL, PARAMETERS, TEXT, fields

import nbody
from nbody.fields import FIELDS
from nbody.fields.field import Term
from nbody.fields.planets import J2
from nbody.forces import ENGINES
from nbody.forces.layers import layered
from nbody.law import Gravity
from nbody.run.resume import resume
from nbody.run.simulation import Simulation
from nbody.scenario import Scenario
from nbody.state import Outputs, replay
from nbody.state.device_progress import DeviceProgress
from nbody.trajectory import Trajectory, first_difference

GPU_ENGINES = [name for name in ENGINES if name.startswith("gpu") and name != "gpu-tree"]  # it is in test_tree_gpu.py
ALONE = Gravity(0.0, 3, "plummer", 0.1)
"""Pairs exert no force, so that the fields' rounding is seen alone."""


def check_fields(engine, precision, dimensions, count, names, G=0.0):
    """An engine's results with fields are those of the referee: to the rounding of the state, or of the pairs if G > 0."""
    bodies, law = random_bodies(count, dimensions), Gravity(G, dimensions, "plummer", 0.1)
    bodies.position = bodies.position.astype(np.float32).astype(np.float64)
    bodies.mass = bodies.mass.astype(np.float32).astype(np.float64)
    bodies.time = 0.7
    found = []
    for name, real in ((engine, precision), ("reference", "float64")):
        made = layered(ENGINES.load(name)(law, real), fields(*names))
        state = made.load(bodies)
        made.evaluate(state, Outputs.ACCELERATION)
        first = state.values("acceleration")[0]
        made.evaluate(state, Outputs.ENERGY)
        assert np.array_equal(first, state.values("acceleration")[0])
        found.append((first, float(state.frames.snapshot().wait().sums[1])))
    (a, energy), (expected, expected_energy) = found
    bound = 1e-13 if precision == "float64" else 5e-6 if G else 2e-7
    assert np.abs(a - expected).max() < bound * np.linalg.norm(expected, axis=1).max()
    assert energy == pytest.approx(expected_energy, rel=bound)


@pytest.mark.parametrize("real", ["float32", "float64"])
def test_the_fields_kernel_rounds_as_the_cpu_does(real):
    pytest.importorskip("cuda.core")
    from numba import types

    from nbody.fields.device import build
    from nbody.state.graph_time import MOST_DRIFTS

    terms = tuple(Term(FIELDS.load(name).evaluate) for name in PARAMETERS if name != "milky_way")
    terms = (*terms, J2(j2=0.1, radius=1).term())
    numbers, float64 = getattr(types, real), types.float64
    rows, scalars = numbers[:, ::1], types.UniTuple(float64, MOST_DRIFTS)
    moves = (types.int64[::1], types.int64, float64, float64, scalars, float64[:, ::1], *[types.int32] * 3)
    code, _ = for_h200(build(terms), (rows, rows, *moves, rows))
    assert "sqrt.rn.f64" in code and "div.rn.f64" in code  # arithmetic follows IEEE 754
    assert "sqrt.approx" not in code and "div.approx" not in code and "div.full" not in code


@pytest.mark.simulated
@pytest.mark.parametrize(
    ("precision", "dimensions", "names"),
    [
        ("float32", 3, tuple(name for name in EXTERNAL if name != "milky_way")),
        ("float64", 2, ("rotating_bar",)),
    ],
)
def test_the_simulator_adds_fields(precision, dimensions, names):
    check_fields("gpu-global", precision, dimensions, 9, names, G=1.0)


@pytest.mark.simulated
def test_a_simulated_run_in_a_turning_bar_is_the_cpus():
    runs = []
    for engine in ("gpu-global", "reference"):
        scenario = Scenario.from_text(TEXT).override(engine=engine, particles=5, steps=5)
        run = Simulation(scenario)
        run.run()
        runs.append(run.state.arrays()["body"][:, :3] if engine == "gpu-global" else run.state.position)
    assert np.abs(runs[0] - runs[1]).max() < 1e-12


def own_forces_move(engine: str, precision: str) -> np.ndarray:
    """The positions after a few steps in a force of the mass and the time, in a halo, about an oblate body."""
    pull = nbody.force(lambda x, y, z, m, t, k: (-k * x * (1 + m) * math.cos(t), -k * y, -k * z), k=2.0)
    fields = [pull, nbody.fields.NFW(mass=1, a=2), nbody.fields.J2(j2=0.1, radius=0.3, about=4)]
    run = Simulation(random_bodies(9), dt=0.01, softening=0.1, engine=engine, precision=precision, fields=fields)
    run.run(steps=6)
    return run.particles.position


@pytest.mark.simulated
def test_own_forces_in_the_simulator_are_the_cpus():
    assert np.abs(own_forces_move("gpu-global", "float64") - own_forces_move("cpu", "float64")).max() < 1e-13


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "mixed", "float64"])
def test_own_forces_on_the_device_are_the_cpus(precision):
    bound = 1e-13 if precision == "float64" else 1e-5
    assert np.abs(own_forces_move("gpu-symmetric", precision) - own_forces_move("cpu", "float64")).max() < bound


@pytest.mark.gpu
@pytest.mark.parametrize("name", EXTERNAL)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_the_device_computes_each_field(name, precision):
    check_fields("gpu-global", precision, 3, 1000, (name,))


@pytest.mark.gpu
@pytest.mark.parametrize("engine", GPU_ENGINES)
@pytest.mark.parametrize("precision", ["float32", "mixed", "float64"])
@pytest.mark.parametrize("dimensions", [2, 3])
def test_every_engine_on_the_device_adds_fields(engine, precision, dimensions):
    if precision not in ENGINES.load(engine).can.precisions:
        pytest.skip(f"{engine} has no {precision}")
    check_fields(engine, precision, dimensions, 3000, ("rotating_bar", "miyamoto_nagai"), G=1.0)


@pytest.mark.gpu
@pytest.mark.parametrize("omega", [0.0, 0.6])
def test_a_run_on_the_device_is_the_cpus_and_is_resumed_bit_for_bit(tmp_path, omega):
    """With graphs (fields that do not change) and without; 200 steps of 1/128, in which rounding grows little."""
    text = TEXT.replace("omega: 0.6", f"omega: {omega}").replace("particles: 64", "particles: 512")
    if not omega:
        text = text.replace("field: rotating_bar, mass: 2, a: 1.1, c: 0.2, omega: 0.0", "field: plummer, mass: 2, b: 0.5")
    scenario = Scenario.from_text(text).override(steps=200)
    for engine in ("cpu", "gpu-tiled"):
        Simulation(scenario.override(engine=engine), tmp_path / f"{engine}.h5").run()
    Simulation(scenario.override(engine="gpu-tiled", steps=77), tmp_path / "part.h5").run()
    resume(tmp_path / "part.h5", steps=200, notify=pytest.fail).run()
    with Trajectory(tmp_path / "cpu.h5") as cpu, Trajectory(tmp_path / "gpu-tiled.h5") as card:
        assert np.abs(cpu.position[-1] - card.position[-1]).max() < 1e-8
        assert card.observable("total_energy") == pytest.approx(cpu.observable("total_energy"), rel=1e-10)
    assert first_difference(tmp_path / "gpu-tiled.h5", tmp_path / "part.h5") is None


@pytest.mark.gpu
@pytest.mark.parametrize("scheme", ["taylor", "leapfrog", "leapfrog_dkd", "yoshida4", "yoshida6"])
def test_replayed_steps_in_a_field_that_turns_have_the_bits_of_steps_made_one_by_one(monkeypatch, scheme):
    found, graphs, graph = [], [], replay.Graph
    monkeypatch.setattr(replay, "Graph", lambda *given: graphs.append(graph(*given)) or graphs[-1])
    for long in (False, True):  # a long step is not replayed
        graphs.clear()
        monkeypatch.setattr(DeviceProgress, "can_be_recorded", lambda self, long=long: not long)
        simulation = Simulation(Scenario.from_text(TEXT).override(engine="gpu-tiled", integrator=scheme))
        simulation.stepper.integrator.start(simulation.stepper.motion)
        for steps in (1, 100, 7):
            simulation.stepper.integrator.advance(simulation.stepper.motion, steps)
            frames = simulation.stepper.integrator.frames(simulation.stepper.motion, 4, 3)
            found.append([frame.wait().position.tobytes() for frame in frames])
            for frame in frames:
                frame.release()
        assert bool(graphs) != long
        found.append(simulation.time)
    assert found[:4] == found[4:]
