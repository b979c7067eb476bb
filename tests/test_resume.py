"""A run that was stopped, killed or extended ends with the bits of one that never was."""

from dataclasses import replace

import numpy as np
import pytest
from combinations import every_pair
from conftest import ROOT, child, sample
from recordings import plummer_text
from stepping import interrupt_at, interrupted

from nbody import Particles, Scenario, Simulation, Trajectory
from nbody.errors import InputError, RunFailed
from nbody.forces import ENGINES
from nbody.integrators import INTEGRATORS
from nbody.run.plan import plan
from nbody.run.recording import Recording
from nbody.run.resume import rerun, resume
from nbody.trajectory import first_difference, read_checkpoint, state_bytes
from nbody.trajectory.writing.checkpoint import pack
from nbody.trajectory.writing.framefile import FrameFile

SCENARIO = plummer_text(128, 40, engine="cpu", record="{every: 7}")


def simulate(path, text=SCENARIO, **options):
    """A whole run; returns the path of its recording."""
    Simulation(Scenario.from_text(text, "test.yaml").override(**options), path).run()
    return path


def interrupted_after(path, steps, **options):
    """A run that gets SIGINT after so many steps, as by Ctrl-C."""
    simulation = Simulation(Scenario.from_text(SCENARIO, "test.yaml").override(**options), path)
    interrupt_at(simulation, steps)
    interrupted(simulation.run)
    return path


SCHEMES = [*((name, None) for name in INTEGRATORS), ("wisdom_holman", 2), ("ias15", 2)]
"""Each scheme, and the number of systems of those for ensembles."""


@pytest.mark.parametrize(("scheme", "systems"), SCHEMES)
def test_a_recording_has_room_for_every_array_of_a_checkpoint(scheme, systems):
    kind = INTEGRATORS.load(scheme)
    values = {
        "initial": {"generator": "planets", "bodies": [{"m": 1.0}, *({"m": 0, "a": 1.0 + k} for k in range(50))]},
        "gravity": {"softening": "plummer", "length": 0.1} if kind.facts.softened else {},
        "integrator": {"scheme": scheme, "dt": 1 / 64, "end": 4.0}, "engine": "cpu", "precision": "float64",
        **({"ensemble": {"systems": systems}} if systems else {}),
    }  # fmt: skip
    assert plan(Scenario.from_dict(values)).header().state_bytes > 0  # before any run with this scheme
    run = Simulation(Scenario.from_dict(values), notify=lambda line: None)
    names = 100  # bytes of the arrays' names, which may grow
    assert state_bytes(run.stepper.arrays(), {}) <= run.setup.plan.header().state_bytes + names


@pytest.mark.parametrize(("scheme", "systems"), SCHEMES)
def test_the_steps_after_a_checkpoint_do_not_change_it(scheme, systems):
    """Those of collisions included: planets 1 and 2 are in contact from the beginning."""
    kind = INTEGRATORS.load(scheme)
    planets = [
        {"m": 1.0},
        {"m": 1e-9, "a": 1.0, "e": 0.1},
        {"m": 1e-9, "a": 1.1, "e": 0.1},
        {"m": 1e-9, "a": 2.0, "e": 0.1},
    ]
    values = {
        "initial": {"generator": "planets", "bodies": planets},
        "gravity": {"softening": "plummer", "length": 0.1} if kind.facts.softened else {},
        "integrator": {"scheme": scheme, "dt": 1 / 64, "end": 4.0}, "record": {"dt": 0.25},
        "engine": "cpu", "precision": "float64",
        **({"ensemble": {"systems": systems}} if systems else {"collisions": {"rule": "merge", "radius": 0.05}}),
    }  # fmt: skip
    run = Simulation(Scenario.from_dict(values), notify=lambda line: None)
    run.integrate(0.25)
    taken = run.stepper.arrays()
    before = {name: array.copy() for name, array in taken.items()}
    run.integrate(4.0)
    for name, array in before.items():
        np.testing.assert_array_equal(taken[name], array, err_msg=name)


CLUSTER = "initial: {generator: plummer, particles: 64, seed: 5}\ngravity: {softening: plummer, length: 0.05}\n"
PLANETS = "initial: {generator: outer_solar_system}\ngravity: {G: 2.95912208286e-4}\n"
BAR = "fields: [{field: rotating_bar, mass: 2, a: 1.1, c: 0.2, omega: 0.6}, {field: plummer, mass: 1, b: 2}]\n"
RELATIVITY = "fields: {field: post_newtonian, c: 173.1446326846693}\n"
EVERY, TIMES = "record: {every: 7}\n", "record: {dt: 0.07}\n"
RUNS = {
    "leapfrog": CLUSTER + EVERY + "integrator: {dt: 0.0078125, steps: 40}",
    "taylor": CLUSTER + EVERY + "integrator: {scheme: taylor, dt: 0.0078125, steps: 40}",
    "float64": CLUSTER + EVERY + "integrator: {dt: 0.0078125, steps: 40}\nprecision: float64",
    "a field that turns": CLUSTER + EVERY + BAR + "integrator: {dt: 0.0078125, steps: 40}\nprecision: float64",
    "BLAS": CLUSTER + EVERY + "integrator: {dt: 0.0078125, steps: 40}\nengine: matrix:numpy",
    "Hermite": CLUSTER + EVERY + "integrator: {scheme: hermite4, dt: 0.01, steps: 30}\nprecision: float64",
    "adaptive Hermite": CLUSTER + TIMES + "integrator: {scheme: hermite4, eta: 0.02, end: 0.28}\nprecision: float64",
    "adaptive leapfrog": CLUSTER + TIMES + "integrator: {scheme: leapfrog_adaptive, end: 0.28}\nprecision: float64",
    "blocks of leapfrog": CLUSTER + "record: {every: 2}\nintegrator: {scheme: leapfrog_block, dt: 0.05, steps: 26}",
    "blocks, fourth order": CLUSTER + TIMES + "integrator: {scheme: hermite4_block, end: 0.28}\nprecision: float64",
    "blocks, sixth order, in a field": CLUSTER + TIMES + "integrator: {scheme: hermite6_block, end: 0.28}\n"
    "precision: float64\nfields: [{field: logarithmic_halo, v: 1, core: 1}]",
    "a map": PLANETS + EVERY + "integrator: {scheme: wisdom_holman, dt: 100, steps: 40}\nprecision: float64",
    "the hybrid": PLANETS + EVERY + "integrator: {scheme: hybrid, dt: 100, steps: 40}\nprecision: float64",
    "ias15": PLANETS + "record: {dt: 500}\nintegrator: {scheme: ias15, end: 9000}\nprecision: float64",
    "relativity": PLANETS + RELATIVITY + "record: {dt: 500}\nintegrator: {scheme: ias15, end: 9000}\nprecision: float64",
    "a map with relativity": PLANETS + RELATIVITY + EVERY
    + "integrator: {scheme: wisdom_holman, dt: 20, steps: 40}\nprecision: float64",
}  # fmt: skip
"""Runs of every kind, of at least 26 steps."""


@pytest.mark.parametrize(
    "kind,steps", [(kind, steps) for kind in RUNS for steps in ((1, 14, 25) if kind == "leapfrog" else (14,))]
)
def test_an_interrupted_run_that_is_resumed_or_repeated_has_the_bits_of_a_whole_one(tmp_path, kind, steps):
    text = RUNS[kind] + ("" if "engine" in RUNS[kind] else "\nengine: cpu")
    whole, broken = simulate(tmp_path / "whole.h5", text), tmp_path / "broken.h5"
    simulation = Simulation(Scenario.from_text(text), broken)
    interrupt_at(simulation, steps, at_most=1)
    interrupted(simulation.run)
    with Trajectory(broken) as run:
        assert not run.complete and run.step[-1] == simulation.steps_made
    said = []
    resume(broken, notify=said.append).run()
    assert first_difference(whole, broken) is None
    rerun(whole, tmp_path / "again.h5", notify=said.append).run()
    assert first_difference(whole, tmp_path / "again.h5") is None
    assert not any("bits" in line for line in said)
    with Trajectory(broken) as run:
        assert run.complete


@pytest.mark.parametrize(
    ("scheme", "systems"),
    [({"scheme": "ias15"}, None), ({"scheme": "ias15"}, 2), ({"scheme": "leapfrog_adaptive"}, None),
     ({"scheme": "hermite4", "eta": 0.02}, None)],
)  # fmt: skip
def test_an_adaptive_run_that_is_resumed_at_a_frame_within_a_step_has_the_bits_of_one_that_was_not(
    tmp_path, scheme, systems
):
    planets = [{"m": 1.0}, {"m": 1e-3, "a": 1.0, "e": 0.3}, {"m": 1e-4, "a": 1.7}]
    values = {
        "initial": {"generator": "planets", "bodies": planets}, "integrator": scheme | {"end": 3.0},
        "record": {"dt": 0.005}, "engine": "cpu", "precision": "float64",
        **({"ensemble": {"systems": systems}} if systems else {}),
    }  # fmt: skip
    whole, broken = (Simulation(Scenario.from_dict(values), tmp_path / name) for name in ("whole.h5", "broken.h5"))
    assert whole.run().steps < 600 / 2  # several frames in most steps
    broken.integrate(223 * 0.005)
    resume(tmp_path / "broken.h5", end=3.0).run()
    assert first_difference(tmp_path / "whole.h5", tmp_path / "broken.h5") is None


def test_steps_beyond_the_end_extend_the_run_to_the_bits_of_a_longer_one(tmp_path):
    longer = simulate(tmp_path / "longer.h5", steps=100)
    extended = simulate(tmp_path / "extended.h5", steps=40)
    summary = resume(extended, steps=100).run()
    assert first_difference(longer, extended) is None
    assert summary.steps == 60
    with Trajectory(extended) as run:
        assert run.resolved["integrator"]["steps"] == 100
        assert summary.frames == len(run)


def test_another_interval_between_frames_changes_which_are_recorded_and_nothing_else(tmp_path):
    whole = simulate(tmp_path / "whole.h5")
    broken = interrupted_after(tmp_path / "broken.h5", 14)
    resume(broken, every=13).run()
    with Trajectory(whole) as one, Trajectory(broken) as two:
        assert list(two.step) == [0, 7, 14, 26, 39, 40]
        assert np.array_equal(one.position[-1], two.position[-1])
        assert np.array_equal(one.velocity[-1], two.velocity[-1])


ON_A_GPU = [name for name in ENGINES if name.startswith("gpu")] + ["matrix"]


@pytest.mark.gpu
@pytest.mark.parametrize(
    "engine,precision,integrator",
    every_pair(
        ON_A_GPU, ("float32", "mixed", "float64"), ("leapfrog", "taylor"),
        where=lambda engine, precision, integrator: precision in ENGINES.load(engine).can.precisions,
    ),
)  # fmt: skip
def test_on_a_gpu_a_run_goes_on_and_is_repeated_with_the_same_bits(tmp_path, engine, precision, integrator):
    """Also where it records other frames."""
    options = {"engine": engine, "precision": precision, "integrator": integrator, "particles": 3000}
    whole = simulate(tmp_path / "whole.h5", **options)
    same = interrupted_after(tmp_path / "same.h5", 14, **options)
    resume(same, notify=pytest.fail).run()
    assert first_difference(whole, same) is None
    other = interrupted_after(tmp_path / "other.h5", 14, **options)
    resume(other, every=13, notify=pytest.fail).run()
    with Trajectory(whole) as one, Trajectory(other) as two:
        assert list(two.step) == [0, 7, 14, 26, 39, 40]
        assert np.array_equal(one.position[-1], two.position[-1])
        assert np.array_equal(one.velocity[-1], two.velocity[-1])
    rerun(whole, tmp_path / "again.h5", notify=pytest.fail).run()
    assert first_difference(whole, tmp_path / "again.h5") is None


@pytest.mark.gpu
@pytest.mark.parametrize("engine,integrator", [(each, ("leapfrog", "taylor")[k % 2]) for k, each in enumerate(ON_A_GPU)])
def test_on_a_gpu_it_does_not_matter_to_the_bits_which_frames_are_recorded(tmp_path, engine, integrator):
    """Every one and every third, in blocks that are replayed; and the last alone, with the steps between replayed."""
    options = {"engine": engine, "integrator": integrator, "particles": 3000, "steps": 480}
    runs = [Trajectory(simulate(tmp_path / f"{every}.h5", every=every, **options)) for every in (1, 3, 480)]
    for run in runs[1:]:
        energies = run.observable("total_energy"), runs[0].observable("total_energy")[run.step]
        assert np.array_equal(*energies)
        for k, step in enumerate(run.step):
            assert np.array_equal(run.position[k], runs[0].position[step])
            assert np.array_equal(run.velocity[k], runs[0].velocity[step])
    assert all(run.verify() == [] for run in runs)


def test_frames_after_the_last_checkpoint_are_made_again_with_a_message(tmp_path, monkeypatch):
    """As after a kill: the file has frames up to step 40, and a checkpoint of step 0."""
    whole = simulate(tmp_path / "whole.h5")
    with monkeypatch.context() as patch:
        checkpoint = Recording.checkpoint
        patch.setattr(Recording, "checkpoint", lambda self: self._stepper.clock.step or checkpoint(self))
        killed = simulate(tmp_path / "killed.h5")
    lines, before = [], killed.read_bytes()
    with pytest.raises(InputError, match="--steps: the run has made 40 steps already"):
        resume(killed, steps=10)
    assert killed.read_bytes() == before
    resume(killed, notify=lines.append).run()
    assert lines == ["going on from step 0, the last checkpoint: the 6 frames after it are made again"]
    assert first_difference(whole, killed) is None


def test_a_finished_run_has_nothing_to_go_on_with_and_is_left_as_it_is(tmp_path):
    path = simulate(tmp_path / "run.h5")
    with Trajectory(path) as run:
        before = [run.frame(k).position for k in range(len(run))]
    summary = resume(path).run()
    assert summary.steps == 0
    with Trajectory(path) as run:
        assert run.complete
        assert all(np.array_equal(run.position[k], before[k]) for k in range(len(run)))
        assert len(run) == len(before)


def test_fewer_steps_than_there_are_is_refused(tmp_path):
    path = simulate(tmp_path / "run.h5")
    with pytest.raises(InputError, match="40 steps already"):
        resume(path, steps=20)


def test_a_rerun_has_the_same_bits_and_a_changed_file_differs(tmp_path):
    path = simulate(tmp_path / "run.h5")
    rerun(path, tmp_path / "again.h5", notify=pytest.fail).run()
    assert first_difference(path, tmp_path / "again.h5") is None
    stopped = interrupted_after(tmp_path / "stopped.h5", 25)
    rerun(stopped, tmp_path / "stopped.again.h5", notify=pytest.fail).run()
    assert first_difference(stopped, tmp_path / "stopped.again.h5") is None
    other = simulate(tmp_path / "other.h5", seed=6)
    assert first_difference(path, other) is not None


def test_a_resume_on_a_different_machine_warns_that_bits_may_differ(tmp_path, monkeypatch):
    path = simulate(tmp_path / "run.h5")
    monkeypatch.setattr("nbody.machine.simd_level", lambda: "AVX9")
    lines = []
    resume(path, notify=lines.append)
    assert len(lines) == 1 and "AVX9" in lines[0] and "bits may differ" in lines[0]


def test_checkpoints_are_kept_as_often_as_the_scenario_says(tmp_path):
    text = SCENARIO + "checkpoint: {minutes: 0.00001}\n"
    path = simulate(tmp_path / "run.h5", text, steps=20000, every=1000)
    assert read_checkpoint(path).sequence > 3


def test_an_energy_error_beyond_the_limit_warns_once_or_stops_the_run(tmp_path):
    coarse = SCENARIO.replace("dt: 0.0078125", "dt: 0.5")
    lines = []
    text = coarse + "on_energy_error: {limit: 1e-9}\n"
    Simulation(Scenario.from_text(text), tmp_path / "warn.h5", notify=lines.append).run()
    assert len([line for line in lines if "energy error" in line]) == 1
    text = coarse + "on_energy_error: {limit: 1e-9, action: stop}\n"
    with pytest.raises(RunFailed, match="energy error"):
        Simulation(Scenario.from_text(text), tmp_path / "stop.h5").run()
    with Trajectory(tmp_path / "stop.h5") as run:
        assert len(run) >= 2 and not run.complete


def test_doubtful_numbers_are_warned_of_before_the_run(tmp_path):
    lines = []
    np.savez(tmp_path / "far.npz", mass=[1.0, 1e9], position=[[1e5, 0, 0], [1e5, 1, 0]], velocity=np.zeros((2, 3)))
    text = "initial: {file: far.npz}\ngravity: {softening: plummer, length: 0.01}\nintegrator: {dt: 0.1, steps: 1}\n"
    Simulation(Scenario.from_text(text + "precision: float32", folder=tmp_path), notify=lines.append)
    warnings = [line for line in lines if line.startswith("warning")]
    assert len(warnings) == 3 and "softening length" in warnings[0] and "masses differ" in warnings[2]


def test_coincident_bodies_without_softening_are_refused_by_their_numbers(tmp_path):
    np.savez(tmp_path / "two.npz", mass=np.ones(3), position=[[0.0, 0], [1, 1], [0, 0]], velocity=np.zeros((3, 2)))
    text = "initial: {file: two.npz}\ngravity: {dimensions: 2}\nintegrator: {dt: 0.1, steps: 1}\n"
    with pytest.raises(InputError, match=r"particles 0 and 2 .*softening"):
        Simulation(Scenario.from_text(text, folder=tmp_path))


@pytest.mark.parametrize("kills", sample([8, 100], 1))
def test_killed_commands_are_resumed_to_the_same_bits(kills):
    """``nbody run`` and ``nbody resume``, SIGKILLed; more of them, and on a GPU: tests/crash/command_kills.py."""
    done = child(ROOT / "tests/crash/command_kills.py", kills)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_second_resume_knows_which_frames_the_first_one_found_on_schedule(tmp_path):
    """Stopped at 14 (every 7), resumed with every 3 but killed before its first checkpoint, resumed again."""
    path = interrupted_after(tmp_path / "run.h5", 14)
    simulation = resume(path, every=3)
    simulation.recording.checkpoint = lambda: None
    simulation.run(steps=0)
    resume(path, every=3).run()
    with Trajectory(path) as run:
        assert list(run.step)[:4] == [0, 7, 14, 15]


def test_no_frame_is_kept_twice_when_a_longer_run_was_killed_before_its_first_checkpoint(tmp_path):
    """Ended at 10 (every 7) with a frame off the schedule; made longer, whose frame 14 took that one's place; killed;
    made longer again."""
    path, longer = simulate(tmp_path / "run.h5", steps=10), simulate(tmp_path / "longer.h5", steps=40)
    killed = resume(path, steps=40)
    killed.recording.checkpoint = lambda: None
    killed.run(steps=4)
    resume(path, steps=40).run()
    with Trajectory(path) as run:
        assert list(run.step) == [0, 7, 14, 21, 28, 35, 40]
    assert first_difference(longer, path) is None


@pytest.mark.parametrize("frames", [0, 1])
def test_an_interrupt_before_the_first_checkpoint_does_not_suggest_resume(tmp_path, monkeypatch, frames):
    """Least of all with somebody else's recording, which is at that place from before."""
    path = simulate(tmp_path / "run.h5")
    lines = []
    simulation = Simulation(Scenario.from_text(SCENARIO, "test.yaml"), path, overwrite=True, notify=lines.append)
    work = "record" if frames == 0 else "checkpoint"

    def interrupted(recording):
        raise KeyboardInterrupt

    monkeypatch.setattr(Recording, work, interrupted)
    with pytest.raises(KeyboardInterrupt):
        simulation.run()
    assert lines[-1] == "interrupted at step 0, before the first checkpoint"
    with Trajectory(path) as run:
        assert run.complete and run.step[-1] == 40


def test_going_on_with_an_engine_that_auto_chose_makes_no_copy(tmp_path, monkeypatch):
    path = interrupted_after(tmp_path / "run.h5", 14, engine="auto")
    before = path.stat().st_ino
    resume(path).run()
    assert path.stat().st_ino == before


def test_a_resumed_finished_run_still_knows_its_energy_error(tmp_path):
    path = simulate(tmp_path / "run.h5")
    with Trajectory(path) as run:
        energy = run.observable("total_energy")
    assert resume(path).run().energy_final == energy[-1]


def test_a_resume_with_another_number_of_blas_threads_says_so(tmp_path, monkeypatch):
    """A BLAS divides its sums among its threads, so the bits of ``matrix`` rest on their number; those of ``cpu`` do not."""
    for engine, told in (("matrix:numpy", True), ("cpu", False)):
        monkeypatch.undo()
        path = interrupted_after(tmp_path / f"{told}.h5", 14, engine=engine)
        monkeypatch.setattr("nbody.forces.matrix.blas.threads", lambda: 77)
        lines = []
        resume(path, notify=lines.append)
        assert any("the bits may differ" in line and "threads: 77" in line for line in lines) == told


def first(array, value):
    """The array with another first number."""
    array = array.copy()
    array.flat[0] = value
    return array


@pytest.mark.parametrize(
    ("scheme", "name", "forged"),
    [
        ("leapfrog", "velocity", None),
        ("leapfrog", "position", lambda array: array[:1]),
        ("leapfrog", "acceleration", lambda array: array.astype(complex)),
        ("leapfrog", "collisions.into", lambda array: first(array, 1000)),
        ("leapfrog", "collisions.into", lambda array: np.roll(array, 1)),
        ("wisdom_holman", "integrator.order", lambda array: first(array, 1)),
        ("hermite4_block", "integrator.clock", lambda array: first(array, -(2**63))),
        ("hermite4_block", "integrator.stretch", lambda array: array * np.nan),
        ("hermite4_block", "ticks", lambda array: first(array, -1)),
    ],
)
def test_forged_arrays_of_a_checkpoint_are_refused(tmp_path, scheme, name, forged):
    path = tmp_path / "run.h5"
    bodies = [{"m": 1.0}, {"m": 1e-9, "a": 1.0}, {"m": 1e-9, "a": 2.0, "M": 90}]
    values = {
        "initial": {"generator": "planets", "bodies": bodies}, "integrator": {"scheme": scheme, "dt": 0.01, "end": 0.1},
        "engine": "cpu", "precision": "float64", "collisions": {"rule": "merge", "radius": 1e-6},
    }  # fmt: skip
    Simulation(Scenario.from_dict(values), path).run()
    checkpoint = read_checkpoint(path)
    arrays = dict(checkpoint.state)
    array = arrays.pop(name)
    arrays |= {name: forged(array)} if forged else {}
    file = FrameFile(path)
    file.write_slot(checkpoint.sequence + 1, pack(replace(checkpoint, state=arrays, sequence=checkpoint.sequence + 1)))
    file.close()
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"run\.h5: is damaged, or was not written by nbody"):
        resume(path, end=0.2)
    assert path.read_bytes() == before


@pytest.mark.parametrize("scheme", ["leapfrog", "ias15"])
@pytest.mark.parametrize(
    "given,calls,last",
    [
        ({"end": 1}, [0.2345, 0.5], 1),
        ({"end": 1}, [0.5], 1),
        ({"end": 0.25}, [0.1, 0.5], 0.5),
        ({}, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 0.6),
    ],
)
def test_a_resumed_program_goes_on_to_the_end_that_it_gave_or_to_that_of_its_last_call(tmp_path, scheme, given, calls, last):
    """And a repeated one repeats all of its calls. (The steps of ias15 here are longer than some calls.)"""
    path, fixed = tmp_path / "run.h5", {"dt": 0.0005} if scheme == "leapfrog" else {}
    two = Particles([1, 1e-3], [[0, 0, 0], [1, 0, 0]], [[0, 0, 0], [0, 1, 0]])
    simulation = Simulation(two, path, integrator=scheme, record={"dt": 0.1}, precision="float64", **given, **fixed)
    for until in calls:
        simulation.integrate(until)
    resume(path, notify=lambda line: None).run()
    with Trajectory(path) as run:
        assert run.time[:] == pytest.approx(np.arange(0, last + 0.05, 0.1), abs=1e-12)
    rerun(path, tmp_path / "again.h5", notify=lambda line: None).run()
    assert first_difference(path, tmp_path / "again.h5") is None
