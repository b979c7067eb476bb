"""Whatever a Python program asks of a simulation, the answer is a result or one line; after a line nothing has changed."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from test_fuzz_scenario import budget, examined, is_one_line

from nbody import Particles, Simulation, Trajectory, accelerations
from nbody.errors import InputError, RunFailed
from nbody.integrators import INTEGRATORS

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")  # NumPy's, which would be more than one line

ODD = [
    -1, -0.0, 1.5, 2**60, 2**63, 10**400, float("nan"), float("inf"), -float("inf"), 1e-320, -1e300, True, None, "a", "1",
    "1 yr", "", [1], (), {}, 1j, np.float32(0.1), np.int64(2), np.float64(3), np.array(0.01), np.array([1, 2]), b"1",
]  # fmt: skip
"""What is no number of steps or no time, or is one written in another way."""

STEPS = st.sampled_from([0, 1, 2, 7, 70]) | st.sampled_from(ODD)
AHEAD = st.sampled_from([0.0, 1e-9, 0.005, 0.01, 0.03, 0.1, 1e-17, -0.004, -0.01]) | st.sampled_from(ODD)
"""Times after the present one; an odd value stands for itself."""

BODIES = Particles([1.0, 1e-3, 5e-4, 0.0], np.eye(4, 3) * [[0], [1], [2], [3]], np.eye(4, 3, 1) * [[0], [1], [0.7], [0]])
SCHEMES = [*({"scheme": name} for name in INTEGRATORS), {"scheme": "hermite4", "eta": 0.02}]
FIELD = [{"field": "plummer", "mass": 0.1, "b": 1.0}]

EVERY = st.none() | st.sampled_from([1, 2, 3]) | st.sampled_from(ODD)
INTERVAL = st.none() | st.sampled_from([0.01, 0.02, 0.015]) | st.sampled_from(ODD)

COLUMNS = ["mass", "position", "velocity", "id", "time", "step", "radius"]

ACTIONS = st.one_of(
    st.tuples(st.just("step"), STEPS),
    st.tuples(st.just("run"), STEPS, EVERY, INTERVAL),
    st.tuples(st.just("integrate"), AHEAD, EVERY, INTERVAL),
    st.tuples(st.just("at"), AHEAD),
    st.tuples(st.just("edit"), st.sampled_from(COLUMNS), st.sampled_from(ODD)),
    st.tuples(st.just("kick"), st.sampled_from([0.1, 1e10, float("nan")])),
    st.tuples(st.just("stop"), st.integers(0, 3)),
    st.tuples(st.just("record"), st.sampled_from([None, "b.h5", *ODD])),
)  # fmt: skip


@st.composite
def programs(draw) -> tuple[dict, list[tuple]]:
    """The keywords of a simulation, and what is done with it."""
    keys: dict = {"integrator": draw(st.sampled_from(SCHEMES)), "dt": 0.01, "softening": 0.1, "engine": "cpu"}
    keys["precision"] = draw(st.sampled_from(["float64", "float64", "float32"]))
    if draw(st.integers(0, 3)) == 0:
        keys["fields"] = FIELD
    if draw(st.integers(0, 3)) == 0:
        keys["collisions"] = {"rule": draw(st.sampled_from(["merge", "stop", "record"])), "radius": 0.3}
    if draw(st.integers(0, 3)) == 0:
        keys["units"] = {"length": "au", "mass": "Msun", "time": "yr"}
    if draw(st.integers(0, 2)) == 0:
        keys |= {"output": "a.h5", "overwrite": True} | draw(st.sampled_from([{}, {"record": {"dt": 0.02}}, {"every": 3}]))
    if draw(st.integers(0, 5)) == 0:
        keys[draw(st.sampled_from(["dt", "softening", "every", "G", "output", "end", "steps"]))] = draw(st.sampled_from(ODD))
    return keys, draw(st.lists(ACTIONS, max_size=6))


def state_of(simulation: Simulation) -> tuple:
    """What an answer must not change."""
    now = simulation.particles
    return now.step, now.time, now.position.tobytes(), now.velocity.tobytes()


def done(simulation: Simulation, action: tuple) -> Simulation:
    """Do it. Returns the simulation to go on with."""
    name, value, *when = action
    if name in ("integrate", "at") and type(value) is float and 1e-300 < abs(value) < 1:
        value += simulation.time
    if name in ("integrate", "at") and type(value) is int and value > 10**9 and simulation.stepper.integrator.facts.adaptive:
        return simulation  # which would take centuries
    if name == "edit":
        now = simulation.particles
        names = ("mass", "position", "velocity", "time", "step")
        given = Particles(**{each: getattr(now, each) for each in names} | {value: when[0]})
        return Simulation(given, dt=0.01, softening=0.1, engine="cpu")
    if name == "kick":
        simulation.arrays["velocity"][0] += value
        simulation.state.invalidate()
    elif name == "stop":
        simulation.run(5, callback=lambda now: now.step % 4 != value)
    elif when:
        every, interval = when
        callback = None if every is interval is None else lambda now: np.add(now.position, 0)
        getattr(simulation, name)(value, callback=callback, every=every, interval=interval)
    elif name == "at":
        before = state_of(simulation)
        assert np.isfinite(simulation.at(value).time)
        assert state_of(simulation) == before
    else:
        getattr(simulation, name)(value)
    return simulation


def obeyed(program: tuple[dict, list[tuple]]) -> None:
    """Run a program: each action ends well, or in one line that changes nothing, or the run has failed in one line."""
    keys, actions = program
    try:
        simulation = Simulation(BODIES, **keys)
    except InputError as error:
        assert is_one_line(error)
        return
    for action in actions:
        before = state_of(simulation)
        try:
            simulation = done(simulation, action)
        except InputError as error:
            assert is_one_line(error)
            assert state_of(simulation) == before, action
        except RunFailed as error:
            assert is_one_line(error)
            break
        assert type(simulation.steps_made) is int and type(simulation.time) is float
    for path in ("a.h5", "b.h5"):
        if Path(path).exists():
            with Trajectory(path) as run:
                assert not run.verify()
            os.remove(path)


@budget(60, 20_000)
def test_any_calls_of_a_simulation_end_in_a_result_or_a_clear_error(examples, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examined(obeyed, programs(), examples, deadline=None)


ARRAYS = st.sampled_from(
    [BODIES.position, BODIES.mass, [], [[0, 0, 0]], [1.0], np.zeros((4, 2)), np.full((4, 3), np.nan), *ODD]
)


@budget(60, 10_000)
def test_any_arrays_have_accelerations_or_a_clear_error(examples):
    def asked(position, mass, at, softening, length, G) -> None:
        try:
            found = accelerations(position, mass, at=at, softening=softening, length=length, G=G, engine="cpu")
        except InputError as error:
            assert is_one_line(error)
        else:
            assert found.ndim == 2

    given = st.tuples(
        ARRAYS, ARRAYS, st.none() | ARRAYS, st.sampled_from(["none", "plummer", "spline", 0.1, *ODD]),
        st.sampled_from([0.0, 0.1, *ODD]), st.sampled_from([1.0, 0.0, *ODD]),
    )  # fmt: skip
    examined(lambda each: asked(*each), given, examples, deadline=None)
