"""Steps that take seconds: how far they are, what Ctrl-C does to them, and that no bit depends on who watches."""

import os
import signal
import threading
import time
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from combinations import every_pair
from conftest import random_bodies, until
from recordings import plummer_text
from stepping import interrupted

import nbody
from nbody import Scenario, Simulation, Trajectory
from nbody.compute.gpu import waiting
from nbody.forces import ENGINES
from nbody.forces.direct import cpu_tiles
from nbody.forces.reference import ReferenceEngine, direct_sum
from nbody.integrators import INTEGRATORS
from nbody.integrators.integrator import FixedStep, Motion
from nbody.law import Gravity
from nbody.registry import Entry
from nbody.run.resume import resume
from nbody.run.watch import work_of_steps
from nbody.state import Outputs

LAW = Gravity(1.0, 3, "plummer", 0.05)
PIECES, PIECE = 8, 0.1
EVALUATION = PIECES * PIECE


class Event:
    """An event of a device, which occurs after so many seconds; asked as Numba's are."""

    def __init__(self, seconds):
        self.at = time.perf_counter() + seconds

    def query(self):
        return time.perf_counter() >= self.at


class SlowEngine(ReferenceEngine):
    """A force evaluation takes PIECES pieces of PIECE seconds, and each is waited for as a device is. Ctrl-C is pressed at
    the pieces ``presses``, counted from the beginning."""

    pieces, presses, pressed_at = 0, (), 0.0

    def _compute(self, state, potential):
        for _ in range(PIECES):
            SlowEngine.pieces += 1
            if self.pieces in self.presses:
                SlowEngine.pressed_at = time.perf_counter()
                os.kill(os.getpid(), signal.SIGINT)
            waiting.wait_for(Event(PIECE), lambda: state.progress.report(0))
            state.progress.report(state.count**2 // PIECES)
        state.acceleration[...], state.potential[...] = direct_sum(state.position, state.mass, self.gravity)


SLOW = plummer_text(64, 20, 0.01, engine="slow", precision="float64", record="{every: 10}")


@pytest.fixture
def slow(tmp_path, monkeypatch):
    """A run of SlowEngine, and what it says: (the piece that is computed, line)."""
    monkeypatch.setattr(waiting, "is_done", Event.query)
    monkeypatch.setitem(ENGINES._entries, "slow", Entry(f"{__name__}:SlowEngine", "for tests"))
    said = []

    class Run:
        path, lines = tmp_path / "run.h5", said

        def __init__(self):
            notify = lambda line: said.append((SlowEngine.pieces, line))  # noqa: E731
            self.simulation = Simulation(Scenario.from_text(SLOW, "slow.yaml"), self.path, notify=notify)

        def press(self, *pieces):
            """Ctrl-C at these pieces."""
            monkeypatch.setattr(SlowEngine, "pieces", 0)
            monkeypatch.setattr(SlowEngine, "presses", pieces)

    return Run()


def test_a_wait_answers_signals_and_is_hardly_ever_late(monkeypatch):
    monkeypatch.setattr(waiting, "is_done", Event.query)
    heard = []
    earlier = signal.signal(signal.SIGINT, lambda *_: heard.append(time.perf_counter()))
    try:
        event, asked = Event(0.5), []
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        waiting.wait_for(event, lambda: asked.append(time.perf_counter()))
        ended = time.perf_counter()
        assert until(lambda: heard)
    finally:
        signal.signal(signal.SIGINT, earlier)
    assert len(heard) == 1 and (heard[0] < event.at or ended > event.at + 0.1)
    pauses = np.diff([*asked, ended])
    assert ended - event.at <= pauses.max() and np.median(pauses) < 0.1  # 5 ms, where nobody else computes


def test_querying_an_event_logs_nothing(monkeypatch, caplog):
    driver = pytest.importorskip("cuda.bindings.driver")
    answers = [(driver.CUresult.CUDA_ERROR_NOT_READY,), (driver.CUresult.CUDA_SUCCESS,)]
    monkeypatch.setattr(driver, "cuEventQuery", lambda handle: answers[handle])
    assert not waiting.is_done(SimpleNamespace(handle=0))
    assert waiting.is_done(SimpleNamespace(handle=1, query=lambda: True))
    assert not caplog.records


def test_a_long_step_shows_how_far_it_is(slow):
    shown = []
    slow.simulation.run(steps=1, progress=shown.append)
    steps = [now.fraction for now in shown if now.doing == "step 1"]
    assert any(now.doing == "the frame of step 0" for now in shown)
    assert len(steps) >= 1 and steps == sorted(steps) and 0 < steps[-1] <= 1
    assert shown[-1].doing == "" and shown[-1].step == 1


def test_a_short_step_shows_nothing():
    shown = []
    text = SLOW.replace("slow", "reference")
    Simulation(Scenario.from_text(text, "short.yaml")).run(progress=shown.append)
    assert not any(now.doing for now in shown)


def test_the_first_control_c_is_answered_at_once_and_the_step_finished(slow):
    slow.press(PIECES + 4)  # in the second of the evaluations of step 1
    summary = interrupted(slow.simulation.run)
    took = time.perf_counter() - SlowEngine.pressed_at
    piece, line = slow.lines[0]
    assert summary.step == 1
    assert line.startswith("stopping after step 1, in about ") and line.endswith("; Ctrl-C again stops now")
    assert piece < PIECES + 7  # not at its end
    left = float(line.split("about ")[1].split(" s")[0])
    # The rest of the step, and the potential for a last frame: 1.4 evaluations, or what they take on a busy machine.
    assert abs(left - took) <= 1.0 + 0.5 * took
    with Trajectory(slow.path) as run:
        assert list(run.step) == [0, 1] and run.verify() == []


def test_the_second_control_c_ends_a_step_between_two_pieces(slow):
    slow.press(PIECES + 3, PIECES + 5)
    with pytest.raises(KeyboardInterrupt):
        slow.simulation.run()
    assert SlowEngine.pieces == PIECES + 5
    assert slow.lines[-1][1].startswith("interrupted at step 0; continue with: nbody resume")
    with Trajectory(slow.path) as run:
        assert list(run.step) == [0] and run.verify() == []
    again = resume(slow.path, steps=1, notify=lambda line: None)
    again.run()
    whole = Simulation(Scenario.from_text(SLOW.replace("slow", "reference"), "whole.yaml"))
    whole.run(steps=1)
    assert np.array_equal(again.state.position, whole.state.position)


def test_a_run_that_stops_at_once_does_not_say_when(tmp_path):
    lines = []
    text = SLOW.replace("slow", "reference").replace("steps: 20", "steps: 1000000")
    run = Simulation(Scenario.from_text(text, "short.yaml"), tmp_path / "r.h5", notify=lines.append)
    interrupted(run.run, callback=lambda now: os.kill(os.getpid(), signal.SIGINT), every=100)
    assert lines == []


def test_control_c_ends_a_loop_over_calls_between_two_whole_steps():
    """It is raised even if the call has just made its last step; and it ends a call of many steps that records nothing."""
    run = nbody.Simulation(nbody.plummer(8), dt=0.01, softening=0.1)
    press = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt, match="interrupted at step 20"):
        for end in (0.1, 0.2, 0.3):
            run.integrate(end, callback=lambda now: now.step < 20 or os.kill(os.getpid(), signal.SIGINT) or True)
    assert not run.summary.interrupted
    press.start()
    with pytest.raises(KeyboardInterrupt, match="interrupted at step"):
        run.step(10**12)
    run.step()
    assert run.steps_made > 21 and run.time == pytest.approx(0.01 * run.steps_made)


@pytest.mark.parametrize(
    "scheme,outputs,fresh,name",
    every_pair(
        [name for name in INTEGRATORS if not INTEGRATORS.load(name).facts.star],
        (Outputs.ACCELERATION, Outputs.ENERGY), (False, True), ("reference", "cpu"),
    ),
)  # fmt: skip
def test_the_predicted_work_of_steps_is_what_they_do(scheme, outputs, fresh, name):
    scheme, engine = INTEGRATORS.load(scheme)(0.01), ENGINES.load(name)(LAW, "float64")
    motion = Motion(engine, engine.load(random_bodies(100)))
    scheme.prepare(motion)
    scheme.start(motion)
    if fresh:
        motion.evaluate()
    told = work_of_steps(scheme, motion, 2, outputs)
    before = motion.state.progress.computed
    if outputs is Outputs.ENERGY and isinstance(scheme, FixedStep):
        scheme.frames(motion, 1, every=2)
    else:
        scheme.advance(motion, 2)
        if outputs is Outputs.ENERGY:
            motion.evaluate(outputs)
    assert motion.state.progress.computed - before == pytest.approx(told, abs=2)


@pytest.mark.parametrize("count", [65, 300, 5000, 20001])
def test_the_rounds_of_the_cpu_engine_change_no_bit(monkeypatch, count):
    bodies, engine = random_bodies(count), ENGINES.load("cpu")(LAW, "float32")
    found, made, rounds = [], [], cpu_tiles.Tiles.rounds
    monkeypatch.setattr(cpu_tiles.Tiles, "rounds", lambda *given: made.append(list(rounds(*given))) or made[-1])
    for piece in (1 << 31, 1):
        monkeypatch.setattr(cpu_tiles, "PIECE", piece)
        state, seen = engine.load(bodies), []
        state.progress.watch = seen.append
        engine.evaluate(state)
        found.append(state.acceleration)
        pieces = made[-1]
        assert pieces[0][0] == 0 and pieces[-1][1] == cpu_tiles.Tiles.shape(count, np.dtype("float32"))[0] // 2 + 1
        assert all(a[1] == b[0] for a, b in pairwise(pieces)) and len(seen) == len(pieces)
        assert (len(seen) > 1) == (piece == 1 and count > 300) and seen == sorted(seen)
        assert seen[-1] == pytest.approx(count**2, rel=1e-3)
    assert np.array_equal(*found)


@pytest.mark.parametrize("engine", ["cpu", "matrix:numpy", "reference"])
def test_an_engine_serves_two_states(engine):
    one = ENGINES.load(engine)(LAW, "float64")
    states = [one.load(random_bodies(count, seed=count)) for count in (300, 700)]
    for state in (*states, *states):
        state.fresh = False
        one.evaluate(state)
    for count, state in zip((300, 700), states, strict=True):
        alone = ENGINES.load(engine)(LAW, "float64")
        expected = alone.load(random_bodies(count, seed=count))
        alone.evaluate(expected)
        assert np.array_equal(state.acceleration, expected.acceleration)


@pytest.mark.simulated
def test_slabs_of_rows_change_no_bit(monkeypatch):
    """The simulator's card holds three blocks: here of eight bodies each."""
    from nbody.forces.direct import gpu_global, gpu_rows

    monkeypatch.setattr(gpu_global.GlobalMemoryEngine, "_threads", gpu_rows.ThreadBlock(8, 8))
    bodies, found, reports = random_bodies(50), [], []
    for piece in (1, 10**6):
        monkeypatch.setattr(gpu_rows, "interactions_per_piece", lambda dtype, piece=piece: piece)
        engine = ENGINES.load("gpu-global")(Gravity(1.0, 3, "plummer", 0.1), "float32")
        state, told = engine.load(bodies), []
        engine.evaluate(state, Outputs.ENERGY)  # its kernels are compiled
        state.progress.report = told.append
        state.invalidate()
        engine.evaluate(state, Outputs.ENERGY)
        found.append(state.acceleration.copy_to_host())
        reports.append(told)
    assert np.array_equal(*found) and found[0].any(axis=1).all()
    assert reports == [[1200, 1200, 100], [2500]]


@pytest.mark.simulated
def test_a_device_has_one_piece_more_than_it_works_on(monkeypatch):
    from nbody.state import device, device_progress

    later, clock = 0.2, [0.0]

    class Later:
        """Done so long after the one before."""

        last = 0.0

        def __init__(self, stream):
            Later.last = self.at = max(clock[0], Later.last) + later

    def sleep(seconds):
        clock[0] += seconds

    monkeypatch.setattr(waiting, "time", SimpleNamespace(sleep=sleep, perf_counter=lambda: clock[0]))
    monkeypatch.setattr(waiting, "is_done", lambda event: sleep(1e-4) or clock[0] >= event.at)
    monkeypatch.setattr(device_progress, "mark", Later)
    monkeypatch.setattr(device_progress, "EVENT_INTERACTIONS", 100)
    state = device.DeviceState(random_bodies(9), np.dtype("float32"))
    seen = []
    for _ in range(20):
        state.progress.report(60)
    assert clock[0] < later / 2 and not seen  # nobody watches: nothing is waited for
    state.progress.watch = seen.append
    for piece in range(1, 5):
        state.progress.report(60)
        state.progress.report(60)  # now there is enough for an event
        # The piece before the last is done, and no more is waited for.
        assert piece - 2 <= clock[0] / later < piece - 0.5, piece
    state.progress.wait()
    assert 5 <= clock[0] / later < 5.9  # four pieces, and the event of this very wait
    assert seen == sorted(seen) and set(seen) == {0, 120, 240, 360, 480}
    assert state.progress.requested == state.progress.computed == 480


def test_control_c_in_a_single_step_waits_for_its_end_and_goes_to_the_handler_of_the_caller(monkeypatch):
    run, alone, heard = (*(nbody.Simulation(nbody.plummer(8), dt=0.01, softening=0.1) for _ in "ab"), [])
    advance = run.stepper.integrator.advance

    def interrupted_advance(*given):
        os.kill(os.getpid(), signal.SIGINT)
        return advance(*given)

    monkeypatch.setattr(run.stepper.integrator, "advance", interrupted_advance)
    with pytest.raises(KeyboardInterrupt):
        run.step()
    earlier = signal.signal(signal.SIGINT, lambda *_: heard.append(run.steps_made))
    try:
        run.step()
    finally:
        signal.signal(signal.SIGINT, earlier)
    alone.step(2)
    assert heard == [2] and np.array_equal(run.state.position, alone.state.position)
