"""The recorder's thread owns the file: it is never closed during a write, however the run ends."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import ENVIRONMENT, ROOT, until

from nbody import Particles, Simulation
from nbody.errors import RunFailed
from nbody.run.measured import Measured
from nbody.run.recorder import Recorder
from nbody.run.signals import stop_on_signals
from nbody.state import Frame
from nbody.state.sums import SUMS
from nbody.trajectory import Trajectory


class SlowSink:
    """A sink whose disk waits until the test lets it continue; ``said`` lists the calls in order, ``groups``
    the number of frames in each group."""

    path = "run.h5"

    def __init__(self) -> None:
        self.answer, self.said, self.groups, self.writing = threading.Event(), [], [], False

    def append_many(self, frames):
        self.writing = True
        self.said += [frame.step for frame in frames]
        self.groups.append(len(frames))
        self.answer.wait(300)
        self.writing = False

    def checkpoint(self, state, meta):
        self.said.append("checkpoint")

    def close(self, complete):
        assert not self.writing
        self.said.append("complete" if complete else "stopped")


class Counted(Frame):
    """A frame of three bodies at rest that counts the releases."""

    released = 0

    def __init__(self, step=0):
        super().__init__(step, 0.0, np.zeros((3, 3)), np.zeros((3, 3)), sums=np.ones(SUMS))

    def release(self):
        Counted.released += 1


@pytest.fixture
def measured():
    """What measures frames of three bodies."""
    bodies = Particles(np.ones(3), np.eye(3), np.zeros((3, 3)))
    return Measured(Simulation(bodies, dt=1.0, softening=0.1, engine="reference", precision="float64").setup)


def test_frames_and_checkpoints_come_in_order_and_then_the_end(measured):
    sink = SlowSink()
    sink.answer.set()
    with Recorder(sink, measured) as recorder:
        for step in range(10):
            recorder.record(Counted(step))
        recorder.checkpoint({}, {})
        recorder.close(complete=True)
    assert sink.said == [*range(10), "checkpoint", "complete"] and recorder.measured.frames == 10


def test_an_error_lets_go_of_what_is_queued_and_the_thread_closes_the_sink(measured):
    sink, Counted.released = SlowSink(), 0
    with pytest.raises(ZeroDivisionError), Recorder(sink, measured) as recorder:
        recorder.record(Counted(0))
        assert until(lambda: sink.writing)
        for step in range(1, 4):
            recorder.record(Counted(step))
        threading.Thread(target=lambda: until(lambda: recorder._failed) and sink.answer.set()).start()
        raise ZeroDivisionError
    assert sink.said == [0, "stopped"] and Counted.released == 4


def test_frames_that_wait_are_written_in_groups_and_what_has_not_arrived_is_not_waited_for(measured):
    class Late(Counted):
        def arrived(self):
            return arrive.is_set()

        def wait(self):
            assert arrive.wait(300)

    sink, arrive, Counted.released = SlowSink(), threading.Event(), 0
    with Recorder(sink, measured, at_a_time=3) as recorder:
        recorder.record(Counted(0))
        assert until(lambda: sink.writing)
        for step in range(1, 9):
            recorder.record(Counted(step))
        recorder.checkpoint({}, {})
        recorder.record(Counted(9))
        recorder.record(Late(10))
        sink.answer.set()
        assert until(lambda: recorder.measured.frames == 10)
        assert sink.groups == [1, 6, 2, 1]  # twice three at a time; none past a checkpoint, none that is late
        arrive.set()
    assert sink.said == [*range(9), "checkpoint", 9, 10, "complete"] and Counted.released == 11


def test_the_frames_before_one_that_is_refused_are_stored_though_they_came_together(measured):
    class Broken(Counted):
        def __init__(self, step):
            super().__init__(step)
            self.position[1, 2] = self.sums[0] = np.nan

    sink = SlowSink()
    with (
        pytest.raises(RunFailed, match="step 3: the position of particle 1"),
        Recorder(sink, measured, at_a_time=6) as recorder,
    ):
        recorder.record(Counted(0))
        assert until(lambda: sink.writing)
        for step in range(1, 6):
            recorder.record(Broken(step) if step == 3 else Counted(step))
        sink.answer.set()
        recorder.close()
    assert sink.said == [0, 1, 2, "stopped"] and recorder.measured.frames == 3


def test_snapshots_queued_after_an_error_are_released_all_the_same(measured):
    released = []

    class Noted(Counted):
        def release(self):
            super().release()
            released.append(self)

    class Full(SlowSink):
        def append_many(self, frames):
            raise RunFailed("the disk is full")

    recorder = Recorder(Full(), measured, at_a_time=4)
    with pytest.raises(RunFailed, match="full"), recorder:
        recorder.record(Noted(0))
        assert until(lambda: recorder.error)
        recorder.record(*map(Noted, range(1, 5)))
    assert until(lambda: len(released) == 5)


def test_a_third_interrupt_leaves_the_sink_to_the_thread_that_is_writing(measured):
    """The second interrupt ends the wait for the disk during a write; the sink stays open."""

    class Impatient(Recorder):
        def abandon(self):  # the second interrupt has been noticed
            threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT]).start()
            super().abandon()

    sink = SlowSink()
    recorder = Impatient(sink, measured)
    with pytest.raises(KeyboardInterrupt), stop_on_signals() as stop, recorder:
        stop.requested = True  # by the first one
        recorder.record(Counted(0))
        assert until(lambda: sink.writing)
        raise KeyboardInterrupt
    assert sink.said == [0] and sink.writing
    sink.answer.set()
    assert until(lambda: sink.said == [0, "stopped"])


def test_a_disk_that_fails_at_the_end_of_a_recording_is_reported(measured):
    class Full(SlowSink):
        def close(self, complete):
            raise RunFailed("the disk is full")

    with pytest.raises(RunFailed, match="full"), Recorder(Full(), measured) as recorder:
        recorder.close()


def test_three_times_control_c_ends_a_run_whose_disk_hangs_and_its_frames_are_whole(tmp_path):
    (tmp_path / "run.yaml").write_text(
        "initial: {generator: plummer, particles: 16}\ngravity: {softening: plummer, length: 0.05}\n"
        "integrator: {dt: 0.001, steps: 100000000}\nengine: cpu\nrecord: {every: 1000}\ncheckpoint: {minutes: 0.001}\n"
    )
    command = [sys.executable, ROOT / "tests/programs/hanging_disk.py", "run", "run.yaml", "-o", "run.h5"]
    run = subprocess.Popen(command, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert run.stdout.readline() == b"hanging\n"
    for answer in (b"stopping\n", b"waiting\n", b""):  # signals that come together count as one
        run.send_signal(signal.SIGINT)
        assert run.stdout.readline() == answer
        time.sleep(0.15)
    _, said = run.communicate(timeout=300)  # the disk hangs for ten minutes
    assert run.returncode == 130 and said.count(b"interrupted at step") == 1, said
    with Trajectory(tmp_path / "run.h5") as recording:
        assert recording.status == "killed" and len(recording) >= 3 and recording.verify() == []
