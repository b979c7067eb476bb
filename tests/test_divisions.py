"""A run that is divided into calls of so many steps ends, and has the bits of one call: every scheme, on every device."""

import numpy as np
import pytest
from conftest import random_bodies, sample
from test_collisions import cluster as crowded
from test_ensemble import pairs_of_planets

import nbody
from nbody.errors import DeviceError
from nbody.forces import ENGINES
from nbody.integrators import INTEGRATORS, OF_SYSTEMS
from nbody.integrators.integrator import unsupported
from nbody.integrators.solvers.blocks import gpu_workers
from nbody.law import Gravity
from nbody.scenario import Scenario

LOADED = {name: INTEGRATORS.load(name) for name in INTEGRATORS}
FIXED_ENSEMBLES = [name for name in OF_SYSTEMS if not LOADED[name].facts.adaptive]


def on(engine):
    """The schemes that an engine serves."""
    kind = ENGINES.load(engine)
    return [name for name, scheme in LOADED.items() if not unsupported(scheme, kind, Gravity(), "float64")]


def of_each_loop(names):
    """One of the schemes that share a loop over steps, and in a campaign the others."""
    first = list({LOADED[name]._advance: name for name in reversed(names)}.values())
    return sample(first + [name for name in names if name not in first], len(first))


def pieces(total, *sizes):
    """Divisions of ``total`` steps: all in one call, calls of these sizes, and random ones."""
    yield [total]
    for size in sizes:
        yield [size] * (total // size) + [total % size] * (total % size > 0)
    cuts = np.sort(np.random.default_rng(11).choice(np.arange(1, total), total // 5, replace=False))
    yield np.diff(np.concatenate([[0], cuts, [total]])).tolist()


def planets():
    """A star with three planets near resonances, and a comet that comes close to two of them."""
    bodies = [
        {"m": 1.0}, {"m": 3e-4, "a": 1.0, "e": 0.05}, {"m": 1e-4, "a": 1.6, "e": 0.1, "M": 120, "inc": 2},
        {"m": 5e-4, "a": 2.6, "M": 250, "inc": 1}, {"m": 1e-9, "a": 1.9, "e": 0.6, "M": 80},
    ]  # fmt: skip
    return nbody.planets(bodies=bodies, dimensions=3)


def bodies_of(name, count):
    """Bodies that a scheme moves: about a star, if it needs one."""
    return nbody.planetesimals(count, dimensions=3) if LOADED[name].facts.star else random_bodies(count)


def moving(bodies, name, engine, options=None, **more):
    """A simulation of these bodies by a scheme with its options; softened, but for planets about a star."""
    kind = LOADED[name]
    softening = {} if kind.facts.star else {"softening": "plummer", "length": 0.01}
    dt = 1.0 if kind.facts.lengths == "individual" else 0.01  # the largest step: each body has its own
    scheme = {"scheme": name, **(options or {})}
    return nbody.Simulation(bodies, dt=dt, integrator=scheme, engine=engine, precision="float64", **softening, **more)


def ensemble(scheme, engine):
    """Twelve planetary systems that end at different times or not at all."""
    return nbody.Simulation(Scenario.from_dict(pairs_of_planets(scheme, engine=engine)))


def check_divisions(make, total, *sizes):
    """Each division makes all steps, and leaves the bits of one call in everything that a checkpoint holds."""
    ends = []
    for division in pieces(total, *sizes):
        simulation = make()
        scheme, motion = simulation.stepper.integrator, simulation.stepper.motion
        scheme.start(motion)
        for steps in division:
            scheme.advance(motion, steps)  # the loop of a run divides its calls by the clock
        assert simulation.steps_made == total
        ends.append({"time": simulation.time} | simulation.stepper.arrays())
    for end in ends[1:]:
        assert end.keys() == ends[0].keys()
        for name, values in ends[0].items():
            np.testing.assert_array_equal(end[name], values, err_msg=name)


@pytest.mark.parametrize("name", LOADED)
def test_any_division_of_a_run_into_steps_has_the_same_bits(name):
    check_divisions(lambda: moving(planets(), name, "cpu"), 60, 1, 7, 24)


@pytest.mark.parametrize("name", FIXED_ENSEMBLES)
def test_any_division_of_an_ensemble_into_steps_has_the_same_bits(name):
    check_divisions(lambda: ensemble(name, "cpu"), 40, 1, 7)


def times(end):
    """Divisions of a time: all in one call, 100 frames, the example of the manual, and random ones."""
    yield [end]
    yield [end * k / 100 for k in range(1, 101)]
    yield [0.37 * end, end]
    yield [*np.sort(np.random.default_rng(5).random(17) * end).tolist(), end]


def check_times(make, end, output=None):
    """As :func:`check_divisions`, by times, also with steps between them, looks, a callback, and a file with 30 frames."""
    ends = []
    for mixed, division in [*((False, each) for each in times(end)), (True, [0.3 * end, 0.7 * end, end])]:
        simulation = make()
        for time in division:
            simulation.integrate(time)
            assert simulation.time == simulation.particles.time == time
            if mixed and time < end:
                simulation.at(1.01 * time)
                simulation.step(2)
        ends.append(what_is_kept(simulation))
    simulation = make()
    simulation.integrate(end, callback=lambda particles: None, interval=end / 7)
    ends.append(what_is_kept(simulation))
    if output is not None:
        simulation = make(output=output, end=end, record={"dt": end / 30})
        simulation.run(steps=3)
        simulation.run()
        ends.append(what_is_kept(simulation))
    for found in ends[1:]:
        assert found.keys() == ends[0].keys()
        for name, values in ends[0].items():
            np.testing.assert_array_equal(found[name], values, err_msg=name)


def what_is_kept(simulation):
    """The moment, and everything that a checkpoint holds; without accelerations that a scheme does not use."""
    kept = {"time": simulation.time, "step": simulation.steps_made} | simulation.stepper.arrays()
    unused = {"acceleration", "potential", "current"} if simulation.stepper.integrator.facts.own_forces else set()
    return {name: kept[name] for name in kept.keys() - unused}


ADAPTIVE = [name for name in LOADED if LOADED[name].facts.adaptive] + [{"scheme": "hermite4", "eta": 0.02}]


@pytest.mark.parametrize("engine", ["cpu", "reference"])
@pytest.mark.parametrize("scheme", ADAPTIVE, ids=str)
def test_any_division_of_a_run_into_times_has_the_same_bits(scheme, engine, tmp_path):
    def make(**more):
        return nbody.Simulation(planets(), integrator=scheme, engine=engine, precision="float64", **more)

    check_times(make, 3.0, tmp_path / "run.h5")


@pytest.mark.parametrize("rule", ["merge", "bounce"])
@pytest.mark.parametrize("scheme", ADAPTIVE, ids=str)
def test_any_division_of_a_run_with_collisions_has_the_same_bits(scheme, rule, tmp_path):
    """Contacts are looked for in whole steps; several of 24 bodies merge, or bounce."""

    def make(**more):
        return nbody.Simulation(crowded(), integrator=scheme, engine="cpu", precision="float64", collisions=rule, **more)

    check_times(make, 0.5, tmp_path / "run.h5")
    simulation = make()
    simulation.integrate(0.5)
    assert len(simulation.events) > 2


def test_any_division_of_an_ensemble_into_times_has_the_same_bits():
    check_times(lambda: ensemble("ias15", "cpu"), 3.0)


@pytest.mark.parametrize("scheme", [name for name in LOADED if name not in ADAPTIVE] + ADAPTIVE, ids=str)
def test_frames_calls_and_looks_by_steps_and_times_change_no_bits(scheme, tmp_path):
    """Recorded frames need the potential, which may be summed together with the forces. A step of an adaptive scheme that is
    shown partway has not been made: neither a frame, nor a call, nor the end of the run is due."""

    def make(**more):
        if scheme in ADAPTIVE:
            return nbody.Simulation(planets(), integrator=scheme, engine="cpu", precision="float64", **more)
        return moving(planets(), scheme, "cpu", **more)

    alone = make()
    alone.run(steps=42)
    dt = alone.time / 42 if scheme in ADAPTIVE else alone.stepper.integrator.dt
    interval, path = 0.3 * dt if scheme in ADAPTIVE else 3 * dt, tmp_path / "run.h5"
    for way in ("times", "by times", "by steps", "looks", "recorded"):
        run, called = make(**({"output": path, "steps": 42, "every": 5} if way == "recorded" else {})), []
        if way == "times":
            for k in (3, 17, 18, 38):
                run.integrate((k if scheme not in ADAPTIVE else 0.9 * k) * dt)
        elif way == "by times":
            run.run(steps=42, callback=lambda particles: called.append(particles.time), interval=interval)  # noqa: B023
            np.testing.assert_allclose(called, interval * np.arange(1, len(called) + 1))
            assert called[-1] <= alone.time < called[-1] + 1.01 * interval
        elif way == "by steps":
            run.run(steps=42, callback=lambda particles: called.append(particles.step), every=5)  # noqa: B023
            assert called == list(range(5, 41, 5))
        elif way == "looks":
            for _ in range(4):
                run.at(run.time + 0.7 * dt)
                run.run(steps=10)
        else:
            assert not run.run(callback=lambda particles: None, interval=interval).interrupted
            with nbody.Trajectory(path) as recorded:
                assert recorded.step[:].tolist() == [*range(0, 41, 5), 42] and recorded.status == "complete"
        run.run(steps=42 - run.steps_made)
        for name, values in what_is_kept(alone).items():
            np.testing.assert_array_equal(what_is_kept(run)[name], values, err_msg=f"{way}: {name}")


@pytest.mark.simulated
@pytest.mark.parametrize("name", of_each_loop(on("gpu-global")))
def test_any_division_on_a_simulated_gpu_has_the_same_bits(name):
    """Block schemes make three blocks per graph there: a call that ends with a graph is the one that must not hang."""
    check_divisions(lambda: moving(bodies_of(name, 4), name, "gpu-global"), 6, 3)


@pytest.mark.simulated
@pytest.mark.parametrize("name", of_each_loop(on("gpu-global")))
def test_a_look_at_another_time_on_a_simulated_gpu_changes_no_bits(name):
    looked, alone = (moving(bodies_of(name, 4), name, "gpu-global") for _ in range(2))
    for run in (looked, alone):
        run.step(2)
    later = looked.at(looked.time + 0.005)
    for run in (looked, alone):
        run.step()
    assert later.time < looked.time and np.abs(later.position - looked.particles.position).max() < 0.1
    np.testing.assert_array_equal(looked.particles.position, alone.particles.position)


def check_shown(make, steps):
    """Looks within blocks, forward and back, change nothing, and show what the CPU shows."""
    alone, looked, on_cpu = make(), make(), make(engine="cpu")
    alone.step(steps)
    shown = []
    for run in (looked, on_cpu):
        run.step(steps - 1)
        begin = run.time
        for part in (0.4, 0.8):
            run.integrate((1 - part) * begin + part * alone.time)
            shown.append(run.particles.position)
        run.step()
        shown.append(run.at(run.time - 1e-3 * (run.time - begin)).position)
    np.testing.assert_allclose(shown[:3], shown[3:], atol=1e-12)
    alone.step()  # a step that has begun was counted
    own = [run.stepper.integrator.arrays() | run.state.arrays() for run in (alone, looked)]
    for name in ("derivatives", "ticks", "wanted_step", "stretch", "clock", "begun"):
        np.testing.assert_array_equal(own[0][name], own[1][name], err_msg=name)


@pytest.mark.simulated
def test_times_within_blocks_on_a_simulated_gpu_change_no_bits():
    def make(engine="gpu-global"):
        return moving(random_bodies(4), "hermite6_block", engine)

    check_shown(make, 3)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["hermite4_block", "hermite6_block"])
def test_times_within_blocks_on_a_card_change_no_bits(name):
    def make(engine="gpu-symmetric"):
        return moving(random_bodies(3000), name, engine)

    check_shown(make, 100)


@pytest.mark.simulated
def test_a_simulated_gpu_that_makes_no_block_is_an_error_and_not_a_loop_without_end(monkeypatch):
    simulation = moving(random_bodies(4), "hermite6_block", "gpu-global")
    simulation.stepper.integrator.start(simulation.stepper.motion)
    monkeypatch.setattr(gpu_workers.Workers, "blocks", lambda workers: None)
    with pytest.raises(DeviceError, match="the GPU made no block step"):
        simulation.stepper.integrator.advance(simulation.stepper.motion, 2)


@pytest.mark.gpu
@pytest.mark.parametrize("name", on("gpu-symmetric"))
def test_any_division_on_a_card_has_the_same_bits(name):
    graph = gpu_workers.BLOCKS_PER_GRAPH
    check_divisions(lambda: moving(bodies_of(name, 3000), name, "gpu-symmetric"), 4 * graph, 1, graph, 25)


@pytest.mark.gpu
@pytest.mark.parametrize("name", FIXED_ENSEMBLES)
def test_any_division_of_an_ensemble_on_a_card_has_the_same_bits(name):
    check_divisions(lambda: ensemble(name, "gpu"), 40, 1, 7)
