"""A simulation that is shown while it computes: its thread obeys, its recording is that of 'nbody run', it ends in order."""

import json
import threading
import time
from contextlib import closing, contextmanager

import numpy as np
import pytest
from conftest import ROOT, on_screen, program

from nbody.errors import DeviceError
from nbody.run.live import LiveRun
from nbody.run.live_pace import FASTEST, SLOWEST
from nbody.run.resume import resume
from nbody.run.simulation import Simulation
from nbody.scenario import Scenario
from nbody.trajectory import Trajectory
from nbody.trajectory.lock import writing_process
from nbody.viewer.display.body import facts
from nbody.viewer.picture.look import Look
from nbody.viewer.sources.camera import Camera
from nbody.viewer.sources.frames import ShownFrame, drawn
from nbody.viewer.sources.history import History, size
from nbody.viewer.sources.live import Live
from nbody.viewer.sources.samples import speed_scale
from nbody.viewer.window.live_clock import LiveClock

STEPS = 40
SCENARIO = Scenario.from_dict(
    {
        "name": "cluster",
        "initial": {"generator": "plummer", "particles": 60, "seed": 3},
        "gravity": {"softening": "plummer", "length": 0.1},
        "integrator": {"dt": 0.01, "steps": STEPS},
        "engine": "reference",
        "precision": "float64",
        "record": {"every": 4},
    }
)
SECONDS = 60.0
"""The longest wait for a thread; usually it takes a thousandth of that."""


def until(condition, seconds=SECONDS):
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)


@contextmanager
def live(scenario=SCENARIO, budget=100, **options):
    """A live source and its clock, whose first picture is shown, of ``budget`` bodies; at the end no thread is left."""
    before = set(threading.enumerate())
    run = LiveRun(scenario, **options)
    try:
        source = Live(run)
        clock = LiveClock(source)
        run.pace.playing = False
        source.shown.thin_out(budget)
        source.moment(source.frames - 1)
        yield source, clock, run
    finally:
        run.close()
    assert not [thread.name for thread in set(threading.enumerate()) - before if thread.is_alive()]


def is_back(clock):
    """True if an earlier picture than the present one is shown."""
    return "End: the present" in clock.status


def now(source):
    """The caption of the newest frame."""
    return source.caption(source.frames - 1)


def shown(source):
    """The newest frame."""
    return source.moment(source.frames - 1).first


def shown_step(source, clock):
    """The step shown now, after taking the newest picture."""
    clock.advance(0.0)
    return now(source).step


def stepped(source, clock, steps):
    """Make steps and wait until they are shown."""
    goal = now(source).step + steps
    clock.step(steps)
    until(lambda: shown_step(source, clock) == goal)


def states(steps):
    """The positions of an ordinary simulation after each number of steps."""
    simulation, found = Simulation(SCENARIO), {}
    for k in sorted(steps):
        simulation.run(steps=k - simulation.steps_made)
        found[k] = simulation.particles.position
    return found


def test_the_first_picture_is_the_initial_conditions_and_each_step_the_simulations():
    right = states([1, 3])
    with live() as (source, clock, _):
        assert now(source).step == 0 and source.catalogue.count == source.shown.count == 60
        first = shown(source)
        assert np.array_equal(first.position, Simulation(SCENARIO).particles.position.astype(np.float32))
        for steps, step in ((1, 1), (2, 3)):
            stepped(source, clock, steps)
            frame = shown(source)
            assert np.array_equal(frame.position, right[step].astype(np.float32))
            assert now(source).time == pytest.approx(step * 0.01)
        assert frame.number != first.number
        assert np.isfinite(now(source).energy_error)


def test_the_energy_error_of_a_slow_run_is_the_last_one_measured(monkeypatch):
    """Without a recording, and with energies that take long."""
    monkeypatch.setattr("nbody.run.loop.MANY", 10**9)
    with live() as (source, clock, run):
        stepped(source, clock, 1)
        monkeypatch.setattr("nbody.run.loop.MEASURING", 1e-9)  # never again
        stepped(source, clock, 1)
        stepped(source, clock, 1)
        last = now(source).energy_error
        assert last and run.energy_error == last
        stepped(source, clock, 1)
        assert now(source).energy_error == last


def test_a_paused_run_rests_and_a_running_one_waits_for_its_pictures():
    with live() as (source, clock, run):
        assert "paused" in clock.status
        time.sleep(0.05)
        assert run.simulation.steps_made == 0
        clock.toggle()
        until(lambda: run.simulation.steps_made == 1)
        time.sleep(0.1)
        assert run.simulation.steps_made <= 2  # nobody has taken the picture, so the run does not run away
        until(lambda: shown_step(source, clock) >= 5)
        clock.toggle()
        step = run.simulation.steps_made
        for _ in range(10):
            shown_step(source, clock)
            time.sleep(0.005)
        assert run.simulation.steps_made <= step + 1  # the one that had begun


def test_faster_is_more_steps_per_picture_and_slower_fewer_pictures():
    with live() as (source, clock, run):
        seen = []
        for _ in range(3):
            clock.faster(2.0)
            seen.append(run.pace.steps_per_picture)
        assert seen == [2, 4, 8] and "8 steps per picture" in clock.status
        for _ in range(5):
            clock.faster(0.5)
        assert run.pace.steps_per_picture == 0.25 and "1 step per 4 pictures" in clock.status
        for _ in range(40):
            clock.faster(2.0)
        assert run.pace.steps_per_picture == FASTEST
        for _ in range(40):
            clock.faster(0.5)
        assert run.pace.steps_per_picture == SLOWEST
        run.pace.steps_per_picture = 8
        clock.toggle()
        steps = set()
        until(lambda: steps.add(shown_step(source, clock)) or len(steps) > 3)
        assert steps <= set(range(STEPS + 1))
        until(lambda: shown_step(source, clock) == STEPS and run.ended)
        assert "end" in clock.status


def test_the_end_and_the_beginning():
    with live() as (source, clock, run):
        run.pace.steps_per_picture = 16
        clock.toggle()
        until(lambda: shown_step(source, clock) == STEPS and run.ended)
        assert clock.place(clock.at) == 1
        clock.leap(-1)
        assert is_back(clock) and source.caption(clock.at).step == 0 and "Home again" in clock.message
        clock.leap(-1)
        until(lambda: shown_step(source, clock) == 0)
        assert not run.pace.playing and not run.ended and source.frames == 1
        stepped(source, clock, 2)


def test_a_user_goes_back_to_the_very_pictures_that_were_shown_and_on_to_the_present():
    right = states(range(1, 9))
    with live() as (source, clock, run):
        for _ in range(8):
            stepped(source, clock, 1)

        def seen():
            frame, caption = source.moment(clock.at).first, source.caption(clock.at)
            assert caption.step == frame.step and caption.time == pytest.approx(0.01 * frame.step)
            assert np.isfinite(caption.energy_error)
            assert np.array_equal(frame.position, (right | {0: states([0])[0]})[frame.step].astype(np.float32))
            return frame.step

        clock.step(-1)
        assert (seen(), is_back(clock), clock.playing) == (7, True, False)
        clock.step(-5)
        assert seen() == 2 and "3 of 9" in clock.status
        clock.step(1)
        assert seen() == 3 and run.simulation.steps_made == 8
        clock.choose(clock.place(5))  # the bar
        assert seen() == 5 and clock.place(8) == pytest.approx(8 / STEPS)
        clock.leap(-1)
        assert seen() == 0
        clock.toggle()
        clock.advance(0.1)
        assert 0 < clock.at < 8 and is_back(clock), "the pictures are played"
        clock.reverse()
        clock.advance(1.0)
        assert (seen(), clock.playing) == (0, False)
        clock.choose(1.0)
        assert (is_back(clock), seen(), clock.playing) == (False, 8, False), "the run rests, as it did before"
        stepped(source, clock, 1)


def test_a_run_is_paused_while_a_user_is_back_and_goes_on_from_the_newest_picture():
    with live() as (source, clock, run):
        clock.toggle()
        until(lambda: shown_step(source, clock) >= 4)
        clock.step(-2)
        assert is_back(clock) and not run.pace.playing
        time.sleep(0.05)
        made = run.simulation.steps_made
        assert clock.advance(0.0) is not None and is_back(clock)
        clock.leap(1)
        assert not is_back(clock) and run.pace.playing
        until(lambda: shown_step(source, clock) > made)
        clock.step(-1)
        clock.toggle()
        until(lambda: clock.advance(0.01) and not is_back(clock))
        assert run.pace.playing


def frame_of(number, bodies=1000):
    """A shown frame at step ``number``."""
    position = np.full((bodies, 3), number, np.float32)
    return ShownFrame(0, position, position, number, number, 0.0, np.ones(bodies))


def test_kept_pictures_fit_into_the_memory_and_older_ones_are_spread_evenly():
    each = size(frame_of(0))
    history = History(40 * each)
    for number in range(1000):
        history.add(frame_of(number))
        assert len(history) <= 40 + 2  # (the last two are not counted)
    kept = [history[k].step for k in range(len(history))]
    assert kept[0] == 0 and kept[-10:] == list(range(990, 1000))
    assert set(np.diff(kept)[: len(kept) // 4]) == {history.stride} and history.stride <= 1000 / 5 and len(kept) > 25
    assert all(history[history.place(history[k].number)] is history[k] for k in range(len(history)))
    history.add(frame_of(0))
    assert len(history) == 1 and history.stride == 1, "another run has begun"


def test_copies_from_a_device_take_at_most_a_tenth_of_the_time(monkeypatch):
    now = [1.0]
    monkeypatch.setattr("nbody.viewer.sources.history.perf_counter", lambda: now[0])

    class OnDevice(ShownFrame):
        released = 0

        def on_host(self):
            now[0] += 0.02
            return frame_of(self.step, 10)

        def release(self):
            OnDevice.released += 1

    history = History()
    for step in range(250):
        history.add(OnDevice(0, None, None, step=step))
        now[0] += 0.002
    copies = [k for k in range(len(history)) if type(history[k]) is ShownFrame]
    assert copies == list(range(len(history) - 2)) and len(copies) == 3  # of 0.02 s in 0.56 s
    assert OnDevice.released == 248, "slots are given back"


def test_a_recording_begins_at_the_present_and_is_whole_and_resumable(tmp_path):
    path = tmp_path / "run.h5"
    with live(output=path) as (source, clock, run):
        stepped(source, clock, 5)
        clock.record()
        until(lambda: run.recording == path)
        assert str(path) in clock.status
        stepped(source, clock, 9)
        clock.record()
        until(lambda: run.recording is None and not run._command)
        assert not writing_process(path)
        stepped(source, clock, 1)
    with Trajectory(path) as recorded:
        assert list(recorded.step[:]) == [5, 8, 12, 14]
        for k, position in zip((0, 2), states([5, 12]).values(), strict=True):
            assert np.array_equal(recorded.position[k], position)
        assert "step 5" in recorded.stored_provenance["bodies"] and "plummer" in recorded.stored_provenance["bodies"]
    summary = resume(path, notify=lambda line: None).run()
    assert (summary.step, summary.interrupted) == (STEPS, False)
    with Trajectory(path) as recorded:
        assert recorded.step[-1] == STEPS and np.array_equal(recorded.position[-1], states([STEPS])[STEPS])


def test_a_second_recording_keeps_the_first_under_a_numbered_name(tmp_path):
    path = tmp_path / "run.h5"
    with live(output=path) as (source, clock, run):
        for _ in range(2):
            clock.record()
            until(lambda: run.recording == path)
            stepped(source, clock, 1)
            clock.record()
            until(lambda: run.recording is None and not run._command)
    assert sorted(file.name for file in tmp_path.glob("*.h5")) == ["run.1.h5", "run.h5"]


def test_a_file_that_cannot_be_written_is_reported_and_the_run_goes_on(tmp_path):
    with live(output=tmp_path / "no" / "such" / "run.h5") as (source, clock, run):
        clock.record()
        until(lambda: clock.advance(0.0) is None or "there is no folder" in clock.message)
        assert run.recording is None
        stepped(source, clock, 1)


class Slow(Simulation):
    """A simulation whose steps take ``seconds``, without the interpreter's lock."""

    seconds = 0.4

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        compute = self.setup.engine._compute

        def slowly(state, outputs):
            for _ in range(round(self.seconds / 0.02)):
                time.sleep(0.02)
                state.progress.report(0)
            compute(state, outputs)

        self.setup.engine._compute = slowly


def test_no_method_waits_for_a_slow_step_and_closing_gives_it_up(tmp_path, monkeypatch):
    monkeypatch.setattr("nbody.run.live.TIMEOUT", 0.05)
    monkeypatch.setattr(Slow, "seconds", 300.0)
    path = tmp_path / "run.h5"
    before = time.monotonic()
    with live(output=path, make=Slow) as (source, clock, _):
        for act in (clock.toggle, clock.record, lambda: clock.leap(-1), clock.toggle, lambda: clock.faster(2)):
            act()
            assert clock.advance(0.0) is not None and now(source).step == 0
    assert time.monotonic() - before < 100.0  # not the 300 s of the step


def test_closing_within_a_step_leaves_a_recording_that_can_be_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr("nbody.run.live.TIMEOUT", 0.05)
    monkeypatch.setattr(Slow, "seconds", 0.0)
    path = tmp_path / "run.h5"
    with live(output=path, make=Slow) as (source, clock, run):
        clock.record()
        until(lambda: run.recording == path)
        stepped(source, clock, 6)
        monkeypatch.setattr(Slow, "seconds", 300.0)
        clock.step(1)
        until(lambda: run.pace.granted == 1 and not run.pace.playing and run.simulation.stepper.within_a_step)
    assert not writing_process(path)
    with Trajectory(path) as recorded:
        assert list(recorded.step[:])[:2] == [0, 4]
    assert resume(path, notify=lambda line: None).run().step == STEPS


def test_a_recorded_run_goes_on_when_its_window_is_closed_and_gives_the_same_file(tmp_path):
    plain, watched = tmp_path / "plain.h5", tmp_path / "watched.h5"
    Simulation(SCENARIO, plain).run()
    run = LiveRun(SCENARIO, watched, recording=True)
    clock = LiveClock(source := Live(run), detach=True)
    source.moment(source.frames - 1)
    clock.leap(-1)
    clock.advance(0.0)
    assert "recorded" in clock.message
    clock.close()
    summary = run.wait()
    assert summary is not None and (summary.step, summary.interrupted) == (STEPS, False)
    with Trajectory(plain) as one, Trajectory(watched) as other:
        assert np.array_equal(one.position[:], other.position[:]) and list(one.step[:]) == list(other.step[:])


def test_a_recorded_run_is_stopped_after_its_step(tmp_path):
    path = tmp_path / "run.h5"
    run = LiveRun(SCENARIO, path, recording=True, make=Slow)
    source = Live(run)
    source.moment(source.frames - 1)
    until(lambda: run.progress is not None)
    run.stop()
    summary = run.wait()
    assert summary.interrupted and 0 < summary.step < STEPS
    with Trajectory(path) as recorded:
        assert recorded.step[-1] == summary.step


def test_thinned_out_bodies_are_the_same_in_every_picture():
    with live(budget=20) as (source, clock, _):
        stepped(source, clock, 1)
        rows = [source.shown.body(row) for row in range(source.shown.count)]
        assert shown(source).position.shape == (20, 3)
        assert np.array_equal(shown(source).position, states([1])[1][rows].astype(np.float32))


def test_the_masses_of_a_picture_are_those_after_mergers():
    merging = Scenario.from_dict(SCENARIO.resolved() | {"collisions": {"rule": "merge", "radius": 0.1}})
    with live(merging) as (source, clock, run):
        total = shown(source).mass.sum()
        stepped(source, clock, 8)
        mass, state = shown(source).mass, run.simulation.state
        assert mass.sum() == pytest.approx(total) and 0 < (mass == 0).sum() == 60 - state.count
        assert sorted(mass[mass > 0]) == sorted(state.values("mass")[0])
        assert np.array_equal(drawn(shown(source).position), mass > 0)  # one of the bodies that are one now


@pytest.mark.parametrize("budget", [100, 20])
def test_bodies_that_are_removed_vanish_from_the_picture_and_no_others(budget):
    with live(budget=budget) as (source, clock, run):
        speeds = [run.simulation.particles.velocity]
        stepped(source, clock, 1)
        speeds.append(run.simulation.particles.velocity)
        gone = np.array([3, 20, 59])
        run.simulation.remove(source.catalogue.id[gone])
        stepped(source, clock, 1)
        frame, bodies = shown(source), run.simulation.particles
        left = np.delete(np.arange(60), gone)
        rows = [row for row in range(source.shown.count) if source.shown.body(row) in left]
        assert np.array_equal(np.flatnonzero(drawn(frame.position)), rows)
        expected = np.zeros((60, 3), np.float32)
        expected[left] = bodies.position
        assert np.array_equal(frame.position[rows], source.shown.of(expected)[rows])
        assert np.array_equal(np.flatnonzero(frame.mass), left)
        assert source.speeds == speed_scale([*speeds, bodies.velocity]), "removed bodies have no speed"
        clock.step(-1)
        assert drawn(source.moment(clock.at).first.position).all(), "they are there when one goes back"


@pytest.mark.parametrize("budget", [100, 20])
def test_bodies_that_are_added_appear_in_the_picture(egl, budget):
    def light(at=12.0):
        """The light where the new bodies are."""
        studio.draw(source.frames - 1, Camera(np.array([at, 0, 0]), radius=2.0), with_hud=False)
        return int(studio.read().max())

    with live(budget=budget) as (source, clock, run):
        from nbody.viewer.gl.studio import Studio

        stepped(source, clock, 1)
        with closing(Studio(source, (120, 90), Look(color="mass", trails="all"))) as studio:
            before, dark = shown(source), light()
            run.simulation.remove(source.catalogue.id[5])
            new = run.simulation.add(mass=[0.02, 0.03], position=[[12, 0, 0], [12.5, 0.3, 0]], velocity=np.zeros((2, 3)))
            stepped(source, clock, 1)
            frame, bodies = shown(source), run.simulation.particles
            assert source.catalogue.id[-2:].tolist() == new.tolist() and source.shown.count == min(budget, 60) + 2
            assert np.array_equal(frame.position[-2:], bodies.position[-2:].astype(np.float32))
            assert frame.mass[[5, -2, -1]].tolist() == [0, 0.02, 0.03]
            past = source.past(source.place(before.number))
            assert drawn(past.position).tolist() == [True] * (source.shown.count - 2) + [False] * 2
            assert dark < 40 < 100 < light()
            run.simulation.remove(new)
            stepped(source, clock, 1)
            assert light() < 40


@pytest.mark.simulated
def test_a_gpus_bodies_are_packed_into_pictures():
    """In the simulator: the kernel, the slots, and the copy through pinned memory."""
    scenario = SCENARIO.override(particles=40, engine="gpu-tiled", precision="float32")
    with live(scenario, 15) as (source, clock, run):
        assert len(shown(source).position) == source.shown.count == 15
        rows = [source.shown.body(row) for row in range(source.shown.count)]
        for _ in range(6):  # more than there are slots
            stepped(source, clock, 1)
            frame, (position, velocity) = shown(source), run.simulation.state.values("position", "velocity")
            assert np.array_equal(frame.position, position[rows]) and np.array_equal(frame.velocity, velocity[rows])
            assert source.speeds[1] > 0 and frame.mass is source.catalogue.mass
        assert "copied through the host" in now(source).note


@pytest.mark.gpu
def test_interop_and_the_copy_through_the_host_give_the_same_picture():
    done = program("live_interop")
    assert done.returncode == 0, done.stderr[-2000:]
    if done.stdout.startswith("skip:"):
        pytest.skip(done.stdout)


def test_a_live_run_shows_the_units_of_its_scenario():
    """Symbols for the caption, the legend, the scale bar and the chosen body."""
    values = SCENARIO.resolved() | {"units": {"length": "pc", "mass": "Msun", "velocity": "km/s"}}
    values["gravity"] = {key: value for key, value in values["gravity"].items() if key != "G"}
    with live(Scenario.from_dict(values)) as (source, _, _):
        assert now(source).time_unit == "pc s/km" and source.catalogue.units.symbol("energy") == "Msun (km/s)^2"
        assert facts(source, source.moment(source.frames - 1), 0).units["length"] == "pc"


def test_planets_are_seen_around_their_centre_of_mass():
    with live(Scenario.load(ROOT / "scenarios/planets.yaml")) as (source, _, run):
        bodies, home = run.bodies, source.home()
        centre = bodies.mass @ bodies.position / bodies.mass.sum()
        np.testing.assert_allclose(home.centre[: bodies.dimensions], centre, atol=1e-12)
        assert np.linalg.norm(bodies.position - centre, axis=1).max() < home.radius


def test_the_error_of_a_scenario_comes_before_any_window():
    with pytest.raises(Exception, match="particles"):
        Live(LiveRun(SCENARIO.override(particles=10**13)))


def test_the_initial_conditions_are_shown_while_the_engine_is_loaded():
    loading, end = threading.Event(), threading.Event()

    def make(*arguments, **options):
        loading.set()
        assert end.wait(SECONDS)
        return Simulation(*arguments, **options)

    run = LiveRun(SCENARIO, make=make)
    try:
        clock = LiveClock(source := Live(run))
        assert loading.wait(SECONDS)
        assert np.array_equal(shown(source).position, Simulation(SCENARIO).particles.position.astype(np.float32))
        assert "preparing" in clock.status and clock.frames == 1
        end.set()
        until(lambda: shown_step(source, clock) >= 1)
        assert 0 < clock.place(clock.at) <= 1
    finally:
        run.close()


def test_an_engine_that_can_not_be_made_ends_the_window_with_its_error():
    def make(*arguments, **options):
        raise DeviceError("no such device")

    run = LiveRun(SCENARIO, make=make)
    try:
        clock = LiveClock(Live(run))
        with pytest.raises(DeviceError, match="no such device"):
            until(lambda: clock.advance(0.0) is None)
    finally:
        run.close()


def test_invalid_live_options_are_refused(tmp_path, refused, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    recorded = tmp_path / "run.h5"
    Simulation(SCENARIO, recorded).run(steps=1)
    for arguments, words in (
        (("view", "plummer", "--particles", "3"), "there is no screen to open a window on"),
        (("view", "plumer"), "did you mean 'plummer'"),
        (("view", "plummer", "--set", "gravity.GG=2"), "GG"),
        (("view", "plummer", "--follow"), "--follow: is for recordings"),
        (("view", "plummer", "--screenshot", "a.png"), "then: nbody view output/run.h5 --screenshot a.png"),
        (("view", "plummer", "--fps", "30"), "--fps: is for recordings"),
        (("view", "plummer", "--size", "big"), "--size big: is not a size"),
        (("view", recorded, "--particles", "3"), "--particles: belongs to a scenario"),
        (("view", recorded, "-o", "a.h5"), "--output: belongs to a scenario"),
        (("run", "plummer", "--view", "-o", tmp_path / "a.h5"), "--view: there is no screen to open a window on"),
    ):
        assert words in refused(*arguments), arguments
    assert not (tmp_path / "a.h5").exists()


# --- In a window ----------------------------------------------------------------------------------------------------


def session(screen, folder, seconds, end):
    """What tests/programs/live_session.py saw."""
    path = folder / "cluster.yaml"
    path.write_text(json.dumps(SCENARIO.resolved()))
    done = program("live_session", path, folder / "run.h5", folder, seconds, end, env=on_screen(screen), cwd=folder)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert (found["threads"], found["children"]) == ([], 0)
    assert not writing_process(folder / "run.h5")
    return found


def test_a_user_pauses_steps_records_and_leaves_within_a_step(display, tmp_path):
    seen = session(display, tmp_path, 0.3, "quit")["seen"]
    assert seen["runs"]["step"] > 0 and seen["runs"]["playing"] and not seen["paused"]["playing"]
    assert seen["step"]["step"] == seen["paused"]["step"] + 1 == seen["records"]["step"]
    assert "● recording" in seen["records"]["status"] and seen["more"]["step"] == seen["step"]["step"] + 1
    assert (tmp_path / f"cluster-{seen['more']['step']:05d}.png").exists() and "saved" in seen["saved"]["notice"]
    assert not seen["stopped"]["recording"] and seen["restarted"]["step"] == 0
    assert "2 steps per picture" in seen["faster"]["status"] and seen["goes on"]["playing"]
    assert seen["most drawn in a step"] >= 2  # the view turns while a step is computed
    with Trajectory(tmp_path / "run.h5") as recorded:
        assert recorded.step[0] == seen["records"]["step"] and recorded.step[-1] == seen["more"]["step"]
    assert resume(tmp_path / "run.h5", notify=lambda line: None).run().step == STEPS


def test_an_interrupt_within_a_step_ends_window_thread_and_recording(display, tmp_path):
    found = session(display, tmp_path, 0.3, "interrupt")
    assert found["interrupted"] and found["seen"]["records"]["recording"]
    assert resume(tmp_path / "run.h5", notify=lambda line: None).run().step == STEPS


def ended(end, screen, *arguments):
    """A command whose window is closed by itself or by keys, or whose X server is killed, at step 8; then another thread
    collects garbage."""
    display, server = screen
    end = str(server.pid) if end == "kill" else end
    return program("ended_view", end, *arguments, env=on_screen(display))


@pytest.fixture
def cluster(tmp_path):
    """The scenario's file."""
    path = tmp_path / "cluster.yaml"
    path.write_text(json.dumps(SCENARIO.resolved()))
    return path


@pytest.mark.parametrize("end,said", [
    ("close", "the window is closed, the run goes on"),
    ("kill", "the screen is gone; the run goes on without its window"),
])  # fmt: skip
def test_a_run_goes_on_when_its_window_is_closed_or_its_screen_gone(screen, cluster, tmp_path, end, said):
    """Qt ends the process when its X server is gone, and aborts if another thread collects a window."""
    done = ended(end, screen, "run", cluster, "--view", "-o", tmp_path / "run.h5", "--json")
    assert done.returncode == 0, done.stderr[-2000:]
    assert said in done.stderr and "WARNING" not in done.stderr and "XIO" not in done.stderr
    summary = json.loads(done.stdout)
    assert (summary["step"], summary["interrupted"], summary["frames"]) == (STEPS, False, 11)
    assert {path.name for path in tmp_path.iterdir()} == {"cluster.yaml", "run.h5"}, "no lock is left"


def test_a_view_whose_screen_is_gone_ends_with_a_clear_error(screen, cluster):
    done = ended("kill", screen, "view", cluster)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == "error: the screen is gone, and the window with it"
    assert "WARNING" not in done.stderr


def test_keys_pressed_faster_than_they_are_handled_close_the_window_without_an_error(screen, cluster):
    done = ended("keys", screen, "view", cluster)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr[-2000:]
