"""Whole runs through the library: what is conserved, what is recorded, what is the same twice."""

import errno
import os
import signal

import numpy as np
import pytest
from recordings import plummer_text
from stepping import after_steps

import nbody
from nbody import Scenario, Simulation, Trajectory
from nbody.errors import InputError, RunFailed
from nbody.integrators.integrator import Motion
from nbody.run.resume import resume
from nbody.run.signals import stop_on_signals
from nbody.trajectory.writing.framefile import FrameFile

PLUMMER = plummer_text(256, 64, seed=3, engine="cpu", precision="float64", record="{every: 10}")


def scenario(text=PLUMMER, **options):
    """A small run."""
    return Scenario.from_text(text, "test.yaml").override(**options)


def test_frames_are_the_start_every_tenth_step_and_the_end(tmp_path):
    summary = Simulation(scenario(), tmp_path / "run.h5").run()
    with Trajectory(tmp_path / "run.h5") as run:
        assert list(run.step) == [0, 10, 20, 30, 40, 50, 60, 64]
        assert np.array_equal(run.time, np.array(run.step) * 0.0078125)
        assert run.complete
    assert (summary.frames, summary.steps, summary.time) == (8, 64, 0.5)


def test_leapfrog_conserves_energy_momentum_and_angular_momentum(tmp_path):
    Simulation(scenario(), tmp_path / "run.h5").run()
    with Trajectory(tmp_path / "run.h5") as run:
        energy = run.observable("total_energy")
        momentum, spin = run.observable("momentum"), run.observable("angular_momentum")
    # dt is a hundredth of the softened crossing time ε/σ, so the second-order error stays below (1/14)² ≈ 5e-3 of the
    # tightest pair's share; the whole system's is far smaller. Momentum is conserved to rounding by Newton's third law.
    assert np.abs(energy / energy[0] - 1).max() < 1e-4
    assert np.abs(momentum - momentum[0]).max() < 1e-14
    assert np.abs(spin - spin[0]).max() < 1e-14


def test_the_same_scenario_gives_the_same_bits_twice_and_however_often_it_is_recorded(tmp_path):
    ends = []
    for k, every in enumerate((10, 10, 1, 64)):
        Simulation(scenario(every=every, precision="float32"), tmp_path / f"{k}.h5").run()
        with Trajectory(tmp_path / f"{k}.h5") as run:
            ends.append((run.position[-1], run.velocity[-1]))
    for position, velocity in ends[1:]:
        assert np.array_equal(position, ends[0][0])
        assert np.array_equal(velocity, ends[0][1])


@pytest.mark.simulated
@pytest.mark.parametrize("integrator", ["taylor", "leapfrog"])
def test_frames_leave_a_simulated_gpu_in_order_and_whole(integrator):
    """Sixteen at a time and fewer: the positions, velocities and sums that the CPU has, to rounding."""
    text, found = PLUMMER.replace("plummer, particles: 256", "lecture, particles: 20"), []
    text = text.replace("0.05", "0.05, dimensions: 2")
    for engine in ("cpu", "gpu-global"):
        run = Simulation(scenario(text, engine=engine, integrator=integrator, dt=0.0001))
        moments = []
        for count in (16, 1, 8, 8, 3, 8):  # more blocks than a ring has
            motion = Motion(run.setup.engine, run.state)
            for snapshot in run.stepper.integrator.frames(motion, count, every=1 + count % 2):
                snapshot.wait()
                moments.append((snapshot.position.copy(), snapshot.velocity.copy(), snapshot.sums))
                snapshot.release()
            run.stepper.integrator.advance(motion, 2)
        ends = run.state.arrays()
        columns = ("body", "velocity") if "body" in ends else ("position", "velocity")
        ends = np.stack([ends[name][:, :2] for name in columns])  # with all the moves that were asked for
        found.append([*(np.stack(each) for each in zip(*moments, strict=True)), ends])
    for cpu, gpu, shape in zip(*found, [(44, 20, 3), (44, 20, 3), (44, 8), (2, 20, 2)], strict=True):
        assert gpu.shape == shape and len(np.unique(gpu.reshape(len(gpu), -1), axis=0)) == len(gpu)
        np.testing.assert_allclose(gpu, cpu, rtol=1e-9, atol=1e-9 * np.abs(cpu).max())


def test_another_seed_is_another_run():
    runs = [Simulation(scenario(seed=seed, steps=1)) for seed in (1, 2)]
    assert not np.array_equal(runs[0].particles.position, runs[1].particles.position)


@pytest.mark.parametrize("integrator", ["taylor", "leapfrog"])
def test_float32_follows_float64_until_rounding_has_grown(integrator):
    """64 steps of a smooth (softened) system amplify rounding by less than a thousand."""
    ends = []
    for precision in ("float32", "float64"):
        simulation = Simulation(scenario(PLUMMER, precision=precision, integrator=integrator, dt=0.001))
        simulation.run()
        ends.append(simulation.state.frames.snapshot().wait().position.astype(np.float64))
    assert np.abs(ends[0] - ends[1]).max() < 1e3 * 6e-8 * np.abs(ends[1]).max()


def test_a_run_without_an_output_still_measures_its_energy():
    summary = Simulation(scenario(steps=5)).run()
    assert summary.output is None
    assert abs(summary.energy_error) < 1e-4
    assert summary.frames == 2


@pytest.mark.parametrize("every", [1, 3, 10, 300])
def test_frames_made_in_blocks_are_those_of_the_schedule(tmp_path, every):
    """Sixteen frames at a time where the steps between are few and fast; and the last, off schedule."""
    run = Simulation(scenario(steps=2065, every=every, particles=8), tmp_path / "run.h5")
    sizes = []
    after_steps(run, sizes.append)
    run.run()
    with Trajectory(tmp_path / "run.h5") as whole:
        assert list(whole.step) == [*range(0, 2066, every), *([2065] if 2065 % every else [])] and whole.verify() == []
    assert sum(sizes) == 2065 and (every == 300 or 16 * every in sizes)


def test_zero_steps_record_the_start(tmp_path):
    summary = Simulation(scenario(steps=0), tmp_path / "run.h5").run()
    assert (summary.frames, summary.steps) == (1, 0)


def test_a_state_that_is_no_longer_finite_stops_the_run_and_keeps_the_frames_before(tmp_path):
    simulation = Simulation(scenario(every=1), tmp_path / "run.h5")
    simulation.run(steps=2)

    def poison(now):
        simulation.state.velocity[17, 1] = np.nan

    simulation = Simulation(scenario(every=1, steps=100000), tmp_path / "bad.h5")
    with pytest.raises(RunFailed, match=r"particle 17 .*dt"):
        simulation.run(progress=poison)
    with Trajectory(tmp_path / "bad.h5") as run:
        assert len(run) > 1
        assert not run.complete
        assert all(np.isfinite(run.position[k]).all() for k in range(len(run)))


def test_a_lost_terminal_ends_a_run_in_good_order_unless_it_was_to_be_ignored():
    earlier = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests themselves may run under nohup
    with stop_on_signals() as stop:
        os.kill(os.getpid(), signal.SIGHUP)
        assert stop.signal_name == "SIGHUP"
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup has it
    try:
        with stop_on_signals() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop.requested
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, earlier)


def test_a_disk_that_fills_up_at_the_last_frames_is_reported(tmp_path, monkeypatch):
    write = FrameFile.write_frames

    def fill(file, k, frames):
        if k + len(frames) > 6:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(file, k, frames)

    monkeypatch.setattr(FrameFile, "write_frames", fill)
    with pytest.raises(RunFailed, match=r"frame 6 failed \(No space left .* the 6 frames before it are whole"):
        Simulation(scenario(steps=60), tmp_path / "run.h5").run()
    with Trajectory(tmp_path / "run.h5") as run:
        assert len(run) == 6 and run.status == "stopped" and run.verify() == []
    monkeypatch.undo()
    told = []
    resume(tmp_path / "run.h5", notify=told.append).run()
    assert told == ["going on from step 0, the last checkpoint: the 5 frames after it are made again"]
    with Trajectory(tmp_path / "run.h5") as run:
        assert run.complete and len(run) == 7


def test_a_rate_leaves_out_the_steps_before_the_run_was_at_its_pace(monkeypatch):
    """But not where hardly any came after them."""
    from types import SimpleNamespace

    from nbody.run import progress

    now = SimpleNamespace(at=0.0)
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now.at)
    clock, state, rates = progress.WallClock(), SimpleNamespace(progress=SimpleNamespace(wait=lambda soon: None)), []
    assert clock.due() and clock.steps_per_heartbeat() == 1
    # compiled; one step; graphs recorded; at its pace
    for at, steps in ((5.0, 1), (5.25, 2), (6.0, 9), (6.5, 19), (8.0, 49)):
        now.at = at
        clock.look(steps, state)
        rates.append(clock.steps_per_s)
    assert rates == [0.0, 4.0, 8.0, 12.0, 20.0]


@pytest.mark.parametrize(
    ("name", "fix"),
    [("dt", r"particles=simulation.particles, dt="), ("integratr", "no such attribute .*'integrator'")],
)
def test_an_attribute_that_does_nothing_is_refused(name, fix):
    run = nbody.Simulation(nbody.plummer(8, seed=1), dt=0.01, softening=0.05, engine="cpu", precision="float64")
    with pytest.raises(InputError, match=fix):
        setattr(run, name, 1)
    run.observers = []


def test_a_program_is_told_of_an_energy_error_above_a_tenth():
    """Two bodies at rest 1e-3 apart, and a step that is far too long."""
    lines, pair = [], nbody.Particles([1, 1.0], [[0, 0, 0], [1e-3, 0, 0]], np.zeros((2, 3)))
    values = {"dt": 0.01, "softening": "none", "engine": "cpu", "precision": "float64"}
    with pytest.warns(UserWarning, match="an energy error of .* too large to trust"):
        nbody.Simulation(pair, **values).run(4)
    nbody.Simulation(pair, notify=lines.append, **values).run(4)
    assert [line for line in lines if "too large to trust" in line]
