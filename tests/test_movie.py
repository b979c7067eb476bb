"""Movies: motion between frames, frames read ahead, camera paths, encoded files decoded back and compared with stills."""

import threading

import numpy as np
import pytest
from test_viewer import cloud, egl, record  # noqa: F401 (egl is a fixture)

from nbody.errors import InputError
from nbody.particles import Particles
from nbody.trajectory import Frame, RunHeader, Trajectory, TrajectoryWriter
from nbody.viewer.sources import source
from nbody.viewer.sources.read_ahead import ReadAhead
from nbody.viewer.sources.recording import SAMPLE, Recording

SIZE = (320, 240)


def orbit(turns, share, radius=1.0):
    """A body on a circle that makes ``turns`` turns between two frames, at the fraction ``share`` of the interval."""
    angle = 2 * np.pi * turns * np.array([0.0, 1.0]) + 0.3

    def frame(k):
        position = radius * np.array([[np.cos(angle[k]), np.sin(angle[k]), 0.0]])
        velocity = 2 * np.pi * turns * radius * np.array([[-np.sin(angle[k]), np.cos(angle[k]), 0.0]])
        return source.Frame(k, position.astype("f4"), velocity.astype("f4"))

    return source.Moment(frame(0), frame(1), share, 1.0)


# --- Between frames -------------------------------------------------------------------------------------------------


def test_a_resolved_orbit_stays_on_its_circle_between_two_frames():
    """The error of the cubic is (ωΔt)⁴/384 of the radius: 1.6 % for a quarter of a turn."""
    for turns, error in ((1 / 8, 0.001), (1 / 4, 0.016)):
        for share in np.linspace(0, 1, 9):
            assert abs(np.linalg.norm(orbit(turns, share).positions()) - 1) <= error


def test_a_body_that_turned_several_times_between_two_frames_keeps_near_its_orbit():
    """Free tangents would carry a body that made 10 turns 9 radii away; limited ones leave at most the longest chord, 2,
    times 12/4, and for nearly all phases 3/4 of it."""
    farthest = [
        max(np.linalg.norm(orbit(turns, share).positions()) for share in np.linspace(0, 1, 17))
        for turns in np.linspace(2.0, 30.0, 401)
    ]
    assert max(farthest) < 1 + 6
    assert np.quantile(farthest, 0.95) < 1 + 1.5


def test_a_body_at_the_top_of_its_way_turns_there_as_gravity_tells():
    """Thrown up and back at nearly the same place: the velocities explain how little it moved, and the parabola is exact."""
    for drop in (0.05, 0.2, 1.0):
        v0, v1 = 1.0 - drop / 2, -1.0 - drop / 2
        ends = [
            source.Frame(k, np.array([[0, x, 0]], "f4"), np.array([[0, v, 0]], "f4"))
            for k, (x, v) in enumerate([(0.0, v0), ((v0 + v1) / 2, v1)])
        ]
        top = source.Moment(*ends, 0.5, 1.0).positions()[0, 1]
        exact = v0 / 2 - 1 / 4
        assert top == pytest.approx(exact, abs=1e-6) if drop >= 0.2 else abs(top - exact) < 0.25
    same = source.Moment(ends[0], ends[0], 0.5, 1.0)
    assert np.isfinite(same.positions()).all()


def test_frames_of_unequal_spacing_are_interpolated_in_time(tmp_path):
    """A body on a parabola, recorded at the times 0, 1, 1.5 and 4."""
    times = np.array([0.0, 1.0, 1.5, 4.0])
    writer = TrajectoryWriter(
        tmp_path / "run.h5", Particles(np.ones(1), np.zeros((1, 3)), np.zeros((1, 3))), RunHeader(4, "float64")
    )
    with writer:
        for k, t in enumerate(times):
            writer.append(Frame(k, t, np.array([[t * t, 0, 0]]), np.array([[2 * t, 0, 0]])))
    with Trajectory(tmp_path / "run.h5") as run:
        recording = Recording(run)
        for at in (0.25, 1.5, 2.1, 2.75):
            t = np.interp(at, np.arange(4), times)
            assert recording.moment(at).positions()[0, 0] == pytest.approx(t * t, rel=1e-5)


# --- Frames read ahead ----------------------------------------------------------------------------------------------


def test_frames_are_read_ahead_within_a_bound_in_both_directions():
    read, size = [], 10
    ahead = ReadAhead(lambda k: read.append(k) or source.Frame(k, np.zeros((1, 3)), np.zeros((1, 3))), size)
    assert ahead.capacity == 8
    before = threading.active_count()
    assert ahead.get(3).number == 3 and threading.active_count() == before
    ahead.prepare(range(3, 100))
    assert [ahead.get(k).number for k in range(3, 11)] == list(range(3, 11))
    assert sorted(read) == list(range(3, 11))  # frame 3 was not read again
    ahead.prepare(range(10, 0, -1))
    assert ahead.get(9).number == 9 and read.count(9) == 1
    assert not ahead.ready(11)
    ahead.close()
    assert threading.active_count() <= before
    assert ReadAhead(lambda k: None, 10**12).capacity == 3


def test_playing_forward_and_backward_shows_the_frames_of_the_file(tmp_path):
    frames = cloud(20, 3, frames=30)
    with Trajectory(record(tmp_path / "run.h5", frames)) as run:
        recording = Recording(run)
        for at in (*np.arange(0, 29, 0.7), *np.arange(29, 0, -0.9), 12, 5, 28):
            moment = recording.moment(float(at))
            np.testing.assert_array_equal(moment.first.position, frames[int(at)][0].astype("f4"))
            if at % 1:
                np.testing.assert_array_equal(moment.second.velocity, frames[int(at) + 1][1].astype("f4"))
            assert recording.ready(float(at))
        recording.close()


def test_a_damaged_frame_is_bridged_if_somebody_is_told(tmp_path):
    position = np.array([[0.0, 0, 0], [1, 1, 1]])
    path = record(tmp_path / "run.h5", [(position + k, 10 * np.ones((2, 3))) for k in range(5)])  # frames are 0.1 apart
    data = bytearray(path.read_bytes())
    for k in (2, 4):
        at = data.index((position + k).astype("f4").tobytes())
        data[at + 5] ^= 1
    path.write_bytes(data)
    said = []
    with Trajectory(path) as run:
        with pytest.raises(InputError, match="frame 2"):
            Recording(run).moment(1.5)
        recording = Recording(run, said.append)
        for at, expected in ((1.0, 1.0), (1.5, 1.5), (2.0, 2.0), (2.25, 2.25), (3.0, 3.0), (3.5, 3.0), (4.0, 3.0)):
            np.testing.assert_allclose(recording.moment(at).positions()[0], expected, atol=1e-6)
    assert len(said) == 2 and "frame 2" in said[0] and "frame 4" in said[1]


def test_bodies_without_a_finite_position_are_left_out_and_said(tmp_path):
    (first, velocity), (second, _) = cloud(10, 3, frames=2)
    second[3] = np.nan
    said = []
    with Trajectory(record(tmp_path / "run.h5", [(first, velocity), (second, velocity)])) as run:
        recording = Recording(run, said.append)
        seen = recording.moment(1.0).first.position
    assert np.isfinite(seen).all() and (seen[3] > 1e12).all()
    assert len(said) == 1 and "frame 1: 1 body has no finite position" in said[0]


def test_a_sample_of_many_bodies_has_their_speeds(tmp_path):
    count = 3 * SAMPLE
    rng = np.random.default_rng(1)
    velocity = (rng.standard_normal((count, 3)) * np.linspace(1, 2, count)[:, None]).astype("f4")
    position = rng.standard_normal((count, 3)).astype("f4")
    with Trajectory(record(tmp_path / "run.h5", [(position, velocity)])) as run:
        part = run.velocity.sample(0, SAMPLE)
        assert SAMPLE <= len(part) < 1.01 * SAMPLE
        np.testing.assert_array_equal(part[:2048], velocity[:2048])
        speed = np.linalg.norm(velocity, axis=1)
        # Percentiles of 131072 of the bodies scatter by less than 1 %.
        np.testing.assert_allclose(Recording(run).speeds, np.percentile(speed, [5, 98]), rtol=0.01)
