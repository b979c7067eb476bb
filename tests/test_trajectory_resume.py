"""Checkpoints hold the state bit for bit, and a recording goes on from one as if it had never stopped."""

import os

import numpy as np
import pytest

from nbody.cli import main
from nbody.diagnostics.observables import ALWAYS
from nbody.errors import InputError
from nbody.particles import Particles
from nbody.trajectory import (
    Frame,
    RunHeader,
    Trajectory,
    TrajectoryWriter,
    first_difference,
    read_checkpoint,
    state_bytes,
)
from nbody.trajectory.writing.framefile import FrameFile

STATE = {
    "position": np.random.default_rng(3).standard_normal((9, 4)).astype("f4"),
    "big": np.array([1.5, np.nan, -0.0], ">f8"),
    "half": np.arange(6, dtype="f2").reshape(2, 3).T,
    "flags": np.array([True, False]),
    "step": np.array(2**62),
    "none": np.empty((0, 3)),
    "spin": np.array([1 + 2j], "c16"),
}
ROOM = state_bytes(STATE, {})
X = np.random.default_rng(4).standard_normal((9, 3))


def frame(k: int) -> Frame:
    """Frame ``k``, unlike every other."""
    return Frame(k, 0.1 * k, (X + k).astype("f4"), (X - k).astype("f4"), dict.fromkeys(ALWAYS, float(k)))


def recorded(path, frames: int, planned: int = 6, checkpoint_at: int | None = None):
    """A recording of ``frames`` frames, with a checkpoint after so many of them."""
    header = RunHeader(planned, "float32", "name: x\n", {"steps": planned}, state_bytes=ROOM)
    with TrajectoryWriter(path, Particles(np.ones(9), X, X), header, overwrite=True) as writer:
        for k in range(frames):
            writer.append(frame(k))
            if k + 1 == checkpoint_at:
                writer.checkpoint(STATE, {"step": k})
        writer.close(complete=frames == planned)
    return path


def test_a_checkpoint_gives_back_every_bit_dtype_and_shape(tmp_path):
    found = read_checkpoint(recorded(tmp_path / "run.h5", 3, checkpoint_at=2))
    assert (found.frames, found.sequence, found.meta) == (2, 1, {"step": 1})
    assert list(found.state) == list(STATE)
    for name, array in STATE.items():
        got = found.state[name]
        assert (got.dtype, got.shape, got.tobytes()) == (array.dtype, array.shape, array.tobytes())


def test_a_file_appears_with_its_first_checkpoint_so_that_what_is_there_can_be_resumed(tmp_path):
    path, header = tmp_path / "run.h5", RunHeader(5, state_bytes=ROOM)
    with TrajectoryWriter(path, Particles(np.ones(9), X, X), header) as writer:
        writer.append(frame(0))
        assert not path.exists()
        writer.checkpoint(STATE, {})
        assert read_checkpoint(path).frames == 1
    with TrajectoryWriter(path, Particles(np.ones(9), X, X), header, overwrite=True) as writer:
        writer.append(frame(0))
        writer.append(frame(1))  # a run that makes no checkpoint after all
        with Trajectory(path) as run:
            assert len(run) == 2
    with TrajectoryWriter(path, Particles(np.ones(9), X, X), header, overwrite=True) as writer:
        writer.append(frame(0))
    with Trajectory(path) as run:
        assert len(run) == 1 and run.complete
    assert os.listdir(tmp_path) == ["run.h5"]


def test_two_checkpoints_are_kept_and_a_damaged_one_is_passed_over(tmp_path):
    path = tmp_path / "run.h5"
    with TrajectoryWriter(path, Particles(np.ones(9), X, X), RunHeader(5, state_bytes=ROOM)) as writer:
        writer.append(frame(0))
        for k in range(1, 4):
            writer.append(frame(k))
            writer.checkpoint(STATE, {"k": k})
    assert read_checkpoint(path).meta == {"k": 3}
    file = FrameFile(path)
    os.pwrite(file.fd, b"?", file._slots_at[3 % 2] + 500)
    file.close()
    assert read_checkpoint(path).meta == {"k": 2}


def test_a_checkpoint_that_does_not_fit_is_refused_and_the_last_one_stays(tmp_path):
    path = tmp_path / "run.h5"
    with TrajectoryWriter(path, Particles(np.ones(9), X, X), RunHeader(5, state_bytes=ROOM)) as writer:
        writer.append(frame(0))
        writer.checkpoint(STATE, {})
        with pytest.raises(ValueError, match="room for"):
            writer.checkpoint({"large": np.zeros(10**5)}, {})
    assert read_checkpoint(path).sequence == 1


def test_going_on_drops_the_frames_after_the_checkpoint_when_the_first_new_one_comes(tmp_path):
    path = recorded(tmp_path / "run.h5", 5, checkpoint_at=3)
    writer = TrajectoryWriter.reopen(path, read_checkpoint(path))
    assert writer.frames == 3
    with Trajectory(path) as run:
        assert len(run) == 5  # nothing is lost if what comes next fails
    for k in range(3, 6):
        writer.append(frame(k))
        with Trajectory(path) as run:
            assert len(run) == k + 1 and run.status == "running" and run.verify() == []
    writer.close()
    assert first_difference(path, recorded(tmp_path / "whole.h5", 6)) is None
    assert sorted(os.listdir(tmp_path)) == ["run.h5", "whole.h5"]


def test_going_on_and_failing_before_the_first_frame_changes_nothing(tmp_path):
    path = recorded(tmp_path / "run.h5", 5, checkpoint_at=3)
    before = path.read_bytes()
    TrajectoryWriter.reopen(path, read_checkpoint(path)).close(complete=False)
    TrajectoryWriter.reopen(path, read_checkpoint(path), frames=50).close(complete=False)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["run.h5"]


def test_a_finished_run_goes_on_beyond_its_planned_end_in_a_larger_copy(tmp_path):
    path = recorded(tmp_path / "run.h5", 6, checkpoint_at=6)
    node = path.stat().st_ino
    with TrajectoryWriter.reopen(path, read_checkpoint(path), frames=10, resolved={"steps": 10}) as writer:
        assert path.stat().st_ino == node
        for k in range(6, 10):
            writer.append(frame(k))
    with Trajectory(path) as run:
        assert (len(run), run.planned, run.complete, run.resolved) == (10, 10, True, {"steps": 10})
        assert run.scenario_text == "name: x\n" and run.verify() == []
    assert first_difference(path, recorded(tmp_path / "whole.h5", 10, planned=10)) is None
    assert read_checkpoint(path).sequence == 1  # still there for the next time
    assert sorted(os.listdir(tmp_path)) == ["run.h5", "whole.h5"]


def test_a_frame_that_only_the_end_of_the_first_run_had_can_be_left_out(tmp_path):
    path = recorded(tmp_path / "run.h5", 4, checkpoint_at=4)
    with TrajectoryWriter.reopen(path, read_checkpoint(path), keep=3) as writer:
        writer.append(frame(7))
    with Trajectory(path) as run:
        assert list(run.step) == [0, 1, 2, 7] and run.verify() == []


def test_an_ended_run_that_was_only_not_closed_is_closed_by_going_on(tmp_path):
    path = recorded(tmp_path / "run.h5", 5, checkpoint_at=5)
    TrajectoryWriter.reopen(path, read_checkpoint(path)).close()
    with Trajectory(path) as run:
        assert run.complete and len(run) == 5


def test_a_resume_that_is_impossible_is_refused(tmp_path):
    path = recorded(tmp_path / "run.h5", 3)
    with pytest.raises(InputError, match="holds no checkpoint to go on from"):
        read_checkpoint(path)
    path = recorded(tmp_path / "run.h5", 3, checkpoint_at=2)
    checkpoint = read_checkpoint(path)
    writer = TrajectoryWriter.reopen(path, checkpoint)
    with pytest.raises(InputError, match="being written by process"):
        TrajectoryWriter.reopen(path, checkpoint)
    writer.append(frame(2))
    writer.checkpoint(STATE, {})
    writer.close()
    with pytest.raises(InputError, match="another run has gone on with it"):
        TrajectoryWriter.reopen(path, checkpoint)
    with pytest.raises(InputError, match=r"needs \S+ .B and \S+ .B are free"):
        TrajectoryWriter.reopen(path, read_checkpoint(path), frames=10**11)
    with pytest.raises(InputError, match="there is no such file"):
        TrajectoryWriter.reopen(tmp_path / "other.h5", checkpoint)
    assert os.listdir(tmp_path) == ["run.h5"]


# --- Where two recordings differ ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda a: None, None),
        (lambda a: a.position.__setitem__((4, 1), np.nextafter(a.position[4, 1], 9)), (2, "position", 4)),
        (lambda a: a.velocity.__setitem__((8, 2), 0.5), (2, "velocity", 8)),
        (lambda a: setattr(a, "time", 0.25), (2, "time", None)),
        (lambda a: setattr(a, "step", 3), (2, "step", None)),
        (lambda a: a.observables.__setitem__("momentum", np.array([2.0, 2.0, -2.0])), (2, "momentum", None)),
        (lambda a: a.observables.__setitem__("virial_ratio", np.nan), (2, "virial_ratio", None)),
    ],
)
def test_the_first_frame_field_and_particle_that_differ_are_named(tmp_path, change, expected):
    for name, changed in (("a", False), ("b", True)):
        with TrajectoryWriter(tmp_path / name, Particles(np.ones(9), X, X), RunHeader(4)) as writer:
            for k in range(4):
                now = frame(k)
                if changed and k >= 2:
                    change(now)
                writer.append(now)
    found = first_difference(tmp_path / "a", tmp_path / "b")
    assert (found and (found.frame, found.field, found.particle)) == expected
    if expected and expected[2] is not None:
        assert f"frame 2: {expected[1]} of particle {expected[2]}: " in str(found)


def test_recordings_of_other_particles_or_another_length_differ(tmp_path, capsys):
    recorded(tmp_path / "a", 4)
    recorded(tmp_path / "b", 3)
    assert str(first_difference(tmp_path / "a", tmp_path / "b")) == "frames: 4 and 3"
    with TrajectoryWriter(tmp_path / "c", Particles(np.ones(8), X[:8], X[:8]), RunHeader(1)) as writer:
        writer.append(Frame(0, 0.0, X[:8], X[:8]))
    assert first_difference(tmp_path / "a", tmp_path / "c").field == "mass"
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "c")]) == 1
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'a'} and {tmp_path / 'c'}: mass: ")
