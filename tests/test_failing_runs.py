"""What fails or is interrupted at a bad moment costs what was not recorded yet, and nothing else: no older file, no frame
that was there, no true word about what is left."""

import errno
import os
import threading
from unittest.mock import patch

import h5py
import numpy as np
import pytest
from conftest import program
from recordings import plummer_text
from stepping import interrupt_at, interrupted

from nbody import Scenario, Simulation, Trajectory
from nbody.errors import InputError, RunFailed
from nbody.run.resume import resume
from nbody.trajectory import TrajectoryWriter, lock, read_checkpoint
from nbody.trajectory.writing import background, output_path
from nbody.trajectory.writing.framefile import FrameFile

SCENARIO = plummer_text(16, 40, engine="reference", precision="float64", record="{every: 4}")


def simulation(path=None, **options):
    """A small run."""
    return Simulation(Scenario.from_text(SCENARIO, "test.yaml").override(**options), path)


def stopped_by_ctrl_c(run, step):
    """``run``, which gets one SIGINT when it has made ``step``; every step is made by itself."""
    interrupt_at(run, step)
    with patch("nbody.run.recording.frames_per_block", lambda *_: 1):
        return interrupted(run.run)


class Killed(BaseException):
    """What stands for a kill in this process: nothing is done after it."""


def killed_after(method, run, monkeypatch):
    """``run``, until its writer has done ``method`` once; then nothing of it writes any more, and its lock is gone."""
    done = getattr(TrajectoryWriter, method)

    def do_and_die(writer, *arguments):
        done(writer, *arguments)
        writer.close = lambda complete: None
        writer._lock.release()
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(TrajectoryWriter, method, do_and_die)
        with pytest.raises(Killed):
            run.run()


def fails(*_):
    raise OSError(errno.EIO, os.strerror(errno.EIO))


# --- Frames and what is said of them --------------------------------------------------------------------------------------


def test_a_frame_of_an_older_schedule_is_kept_through_later_ones(tmp_path, monkeypatch):
    """Recorded at 8 (every 4); stopped at 9 (every 5), a frame that a longer run does not have; killed; resumed."""
    path = tmp_path / "run.h5"
    stopped_by_ctrl_c(simulation(path), 8)
    stopped_by_ctrl_c(resume(path, every=5), 9)
    going_on = resume(path)
    killed_after("append_many", going_on, monkeypatch)
    resume(path).run()
    with Trajectory(path) as run:
        assert list(run.step) == [0, 4, 8, *range(10, 41, 5)]


def test_a_checkpoint_between_frames_keeps_the_frame_before_it(tmp_path, monkeypatch):
    path = tmp_path / "run.h5"
    stopped_by_ctrl_c(simulation(path), 8)
    going_on = resume(path, every=30)
    going_on._checkpointed = -1e9  # as if its minutes were over
    killed_after("checkpoint", going_on, monkeypatch)
    resume(path).run()
    with Trajectory(path) as run:
        assert list(run.step) == [0, 4, 8, 30, 40]


@pytest.mark.parametrize("more", [{"steps": 4000}, {}])  # in a larger copy, and in place
def test_a_run_that_goes_on_is_neither_complete_nor_stopped(tmp_path, monkeypatch, more):
    path = tmp_path / "run.h5"
    if more:
        simulation(path, steps=8).run()
    else:
        stopped_by_ctrl_c(simulation(path), 8)
    going_on = resume(path, every=1000, **more)
    going_on._checkpointed = -1e9
    killed_after("checkpoint", going_on, monkeypatch)
    with Trajectory(path) as run:
        assert run.status == "killed" and not run.complete


# --- A disk that fails ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_disk_that_fails_at_the_first_checkpoint_leaves_the_older_recording(tmp_path, monkeypatch, overwrite):
    path = tmp_path / "run.h5"
    simulation(path).run()
    before = path.read_bytes()
    newer = Simulation(Scenario.from_text(SCENARIO, "test.yaml"), path, overwrite=overwrite)
    monkeypatch.setattr(FrameFile, "write_slot", fails)
    with pytest.raises(RunFailed, match=r"a checkpoint failed .* no file has been made or changed"):
        newer.run()
    assert os.listdir(tmp_path) == ["run.h5"] and path.read_bytes() == before


def test_frames_that_the_disk_refused_are_not_confirmed(tmp_path, monkeypatch):
    """The system tells of a failed write once, and confirms everything after that."""
    path, sync, failed = tmp_path / "run.h5", FrameFile.sync, threading.Event()

    def once_not(file):
        if threading.current_thread().name == "sync" and path.exists() and not failed.is_set():
            failed.set()
            fails()
        sync(file)

    monkeypatch.setattr(FrameFile, "sync", once_not)
    monkeypatch.setattr(background, "SYNC_SECONDS", 0.0)
    with pytest.raises(RunFailed, match="Input/output error"):
        simulation(path).run()
    with h5py.File(path) as file:
        commit = file["nbody/commit"][...]
    assert commit["synced"] == 1 < commit["frames"]  # the first checkpoint's


def test_where_no_thread_can_be_started_a_run_fails_and_does_not_wait_for_it(tmp_path, monkeypatch):
    start = threading.Thread.start

    def none_to_sync(thread):
        if thread.name == "sync":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(background, "SYNC_SECONDS", 0.0)
    monkeypatch.setattr(threading.Thread, "start", none_to_sync)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        simulation(tmp_path / "run.h5").run()


def test_a_run_whose_recorder_cannot_start_leaves_no_lock_and_no_room_taken(tmp_path, monkeypatch):
    def none(thread):
        raise RuntimeError("can't start new thread")

    run = simulation(tmp_path / "run.h5")
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", none)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            run.run()
    assert os.listdir(tmp_path) == []
    run.run()  # the machine has threads again
    assert read_checkpoint(tmp_path / "run.h5").meta["step"] == 40


# --- Interrupts -----------------------------------------------------------------------------------------------------------


def test_an_interrupt_in_the_middle_of_a_step_is_not_gone_on_from():
    run = simulation()
    evaluate, calls = run.setup.engine.evaluate, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return evaluate(*arguments)

    run.setup.engine.evaluate = interrupted
    with pytest.raises(KeyboardInterrupt):
        run.run()
    with pytest.raises(InputError, match="the state is between steps"):
        run.run()


def test_a_run_without_a_file_goes_on_as_if_it_had_been_made_in_one_go():
    parts = simulation()
    first, second = parts.run(steps=16), parts.run(steps=24)
    whole = simulation()
    at_once = whole.run()
    assert second.frames == at_once.frames and second.energy_initial == first.energy_initial
    assert second.energy_error == at_once.energy_error
    np.testing.assert_array_equal(parts.state.position, whole.state.position)


def test_a_run_that_was_refused_can_be_tried_again(tmp_path, monkeypatch):
    run = simulation(tmp_path / "run.h5")

    def none_free(*_):
        raise InputError("needs 10 GB and 5 GB are free")

    with monkeypatch.context() as patch:
        patch.setattr(output_path, "check_space", none_free)
        with pytest.raises(InputError, match="5 GB are free"):
            run.run()
    assert run.run().frames == 11


def test_an_interrupt_while_the_recorder_is_waited_for_never_hangs_its_end():
    """One interrupt of ten to ninety hung where locks were taken."""
    done = program("interrupted_recorder")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100


# --- Names and locks ------------------------------------------------------------------------------------------------------


def test_a_run_killed_while_it_keeps_the_older_file_leaves_one_name_for_it_to_the_next(tmp_path, monkeypatch):
    path = tmp_path / "run.h5"
    simulation(path).run()
    os.link(path, tmp_path / "run.1.h5")  # as one that was killed before it gave its own file the name
    simulation(path).run()
    assert sorted(os.listdir(tmp_path)) == ["run.1.h5", "run.h5"]
    assert not path.samefile(tmp_path / "run.1.h5")


def test_who_asks_who_is_writing_keeps_no_writer_out(tmp_path):
    path, answers, over = tmp_path / "run.h5", [], threading.Event()
    lock.lock_path(path).write_text("process 1 on gone\n")  # as a kill leaves it

    def ask():
        while not over.is_set():
            answers.append(lock.writing_process(path))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        made = 0
        while made < 2000 or (len(answers) <= 100 and asking.is_alive()):
            os.close(lock.WriterLock(path)._fd)  # a dead writer's lock, whose file stays
            made += 1
    finally:
        over.set()
        asking.join()
    assert len(answers) > 100


def test_a_lock_works_on_a_full_disk(tmp_path, monkeypatch):
    path = tmp_path / "run.h5"
    with monkeypatch.context() as patch:
        patch.setattr("os.pwrite", fails)
        held = lock.WriterLock(path)
    with pytest.raises(InputError, match="is being written by another process"):
        lock.WriterLock(path)
    held.release()


def test_a_part_that_another_run_has_replaced_is_not_given_the_name(tmp_path):
    """``rm output/*`` takes the lock and leaves the hidden part; the second run makes its own."""
    path = tmp_path / "run.h5"
    first = simulation(path)
    publish = TrajectoryWriter._publish

    def after_another(writer):
        other = tmp_path / "other"
        other.write_bytes(b"another's")
        os.replace(other, tmp_path / ".run.h5.part")
        publish(writer)

    TrajectoryWriter._publish = after_another
    try:
        with pytest.raises(RunFailed, match=r"can't be given its name any more \(\.run\.h5\.part is gone\)"):
            first.run()
    finally:
        TrajectoryWriter._publish = publish
    assert not path.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_write_protected_recording_is_not_called_damaged(tmp_path):
    path = tmp_path / "run.h5"
    stopped_by_ctrl_c(simulation(path), 8)
    path.chmod(0o444)
    with pytest.raises(InputError, match=r"can't be written .Permission denied.; check the path and its permissions"):
        resume(path).run()
