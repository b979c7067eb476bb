"""Movies: motion between frames, frames read ahead, camera paths, encoded files decoded back and compared with stills."""

import io
import signal
import sys
import threading
import time
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest
from conftest import begun, child, files_end_at, until
from PIL import Image
from recordings import cloud, record

import nbody
from nbody.cli import main
from nbody.errors import InputError
from nbody.trajectory import Trajectory
from nbody.viewer import notebook
from nbody.viewer.movie.film import moments
from nbody.viewer.picture.aim import Aim
from nbody.viewer.picture.camera_file import read_path, save_camera
from nbody.viewer.sources.camera import Camera
from nbody.viewer.sources.frames import ShownFrame, ShownMoment
from nbody.viewer.sources.history import MEMORY
from nbody.viewer.sources.recording import ReadAhead, RecordedSource
from nbody.viewer.sources.samples import SAMPLE
from nbody.viewer.window.clock import Playback

SIZE = (320, 240)


def orbit(turns, share, radius=1.0):
    """A body on a circle that makes ``turns`` turns between two frames, at the fraction ``share`` of the interval."""
    angle = 2 * np.pi * turns * np.array([0.0, 1.0]) + 0.3

    def frame(k):
        position = radius * np.array([[np.cos(angle[k]), np.sin(angle[k]), 0.0]])
        velocity = 2 * np.pi * turns * radius * np.array([[-np.sin(angle[k]), np.cos(angle[k]), 0.0]])
        return ShownFrame(k, position.astype("f4"), velocity.astype("f4"), k)

    return ShownMoment(frame(0), frame(1), share)


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
            ShownFrame(k, np.array([[0, x, 0]], "f4"), np.array([[0, v, 0]], "f4"), k)
            for k, (x, v) in enumerate([(0.0, v0), ((v0 + v1) / 2, v1)])
        ]
        top = ShownMoment(*ends, 0.5).positions()[0, 1]
        exact = v0 / 2 - 1 / 4
        assert top == pytest.approx(exact, abs=1e-6) if drop >= 0.2 else abs(top - exact) < 0.25
    same = ShownMoment(ends[0], ends[0], 0.5)
    assert np.isfinite(same.positions()).all()


def test_frames_of_unequal_spacing_are_interpolated_in_time(recorded):
    """A body on a parabola, recorded at the times 0, 1, 1.5 and 4."""
    times = np.array([0.0, 1.0, 1.5, 4.0])
    frames = [(np.array([[t * t, 0, 0]]), np.array([[2 * t, 0, 0]])) for t in times]
    recording = recorded(*frames, times=times, dtype="float64")
    for at in (0.25, 1.5, 2.1, 2.75):
        t = np.interp(at, np.arange(4), times)
        assert recording.moment(at).positions()[0, 0] == pytest.approx(t * t, rel=1e-5)


# --- Frames read ahead ----------------------------------------------------------------------------------------------


def test_frames_are_read_ahead_within_a_bound_in_both_directions():
    read, size = [], 10
    ahead = ReadAhead(lambda k: read.append(k) or ShownFrame(k, np.zeros((1, 3)), np.zeros((1, 3))), MEMORY, size)
    assert ahead.capacity == 8
    before = threading.active_count()
    assert ahead.get(3).number == 3 and threading.active_count() == before
    ahead.prepare(range(3, 100))
    assert [ahead.get(k).number for k in range(3, 11)] == list(range(3, 11))
    assert sorted(read) == list(range(3, 11))  # frame 3 was not read again
    ahead.prepare(range(10, 0, -1))
    assert ahead.get(9).number == 9 and read.count(9) == 1
    assert not ahead.waiting(11)
    assert ahead.get(50).number == 50 and ahead.get(9).number == 9 and read.count(9) == 1  # an odd one drops nothing
    ahead.close()
    assert threading.active_count() <= before
    assert ReadAhead(lambda k: None, MEMORY, 10**12).capacity == 3


def test_playing_forward_and_backward_shows_the_frames_of_the_file(recorded):
    frames = cloud(20, frames=30)
    recording = recorded(*frames)
    for at in (*np.arange(0, 29, 0.7), *np.arange(29, 0, -0.9), 12, 5, 28):
        moment = recording.moment(float(at))
        np.testing.assert_array_equal(moment.first.position, frames[int(at)][0].astype("f4"))
        if at % 1:
            np.testing.assert_array_equal(moment.second.velocity, frames[int(at) + 1][1].astype("f4"))
        assert not recording.waiting(float(at))
    recording.close()


def test_the_clock_of_a_window_waits_for_the_disk(recorded):
    disk = threading.Event()
    recording = recorded(*cloud(20, frames=30))
    read = recording._ahead._read
    recording._ahead._read = lambda k: (disk.wait(300), read(k))[1] if k > 2 else read(k)
    playback = Playback(30, 10, source=recording)
    for _ in range(8):  # 0.5 frames each: frame 3 can't be had
        recording.moment(playback.at)
        while recording._ahead.waiting(1) or recording._ahead.waiting(2):
            time.sleep(0.001)
        playback.advance(0.05)
    assert playback.at == 2.0
    disk.set()
    while recording.waiting(2.5):
        time.sleep(0.01)
    playback.advance(0.05)
    assert playback.at == 2.5
    recording.close()


def test_a_damaged_frame_is_interpolated_and_reported(tmp_path):
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
            RecordedSource(run).moment(1.5)
        recording = RecordedSource(run, said.append)
        for at, expected in ((1.0, 1.0), (1.5, 1.5), (2.0, 2.0), (2.25, 2.25), (3.0, 3.0), (3.5, 3.0), (4.0, 3.0)):
            np.testing.assert_allclose(recording.moment(at).positions()[0], expected, atol=1e-6)
    assert len(said) == 2 and "frame 2" in said[0] and "frame 4" in said[1]


def test_bodies_without_a_finite_position_are_left_out_and_reported(recorded):
    (first, velocity), (second, _) = cloud(10, frames=2)
    second[3] = np.nan
    said = []
    seen = recorded((first, velocity), (second, velocity), notify=said.append).moment(1.0).first.position
    assert np.isfinite(seen).all() and (seen[3] > 1e12).all()
    assert len(said) == 1 and "frame 1: 1 body has no finite position" in said[0]


def test_a_sample_of_many_bodies_has_their_speeds(recorded):
    count = 3 * SAMPLE
    rng = np.random.default_rng(1)
    velocity = (rng.standard_normal((count, 3)) * np.linspace(1, 2, count)[:, None]).astype("f4")
    position = rng.standard_normal((count, 3)).astype("f4")
    source = recorded((position, velocity))
    part = source.run.velocity.sample(0, SAMPLE)
    assert SAMPLE <= len(part) < 1.01 * SAMPLE
    np.testing.assert_array_equal(part[:2048], velocity[:2048])
    # Percentiles of 131072 of the bodies scatter by less than 1 %.
    np.testing.assert_allclose(source.speeds, np.percentile(np.linalg.norm(velocity, axis=1), [5, 98]), rtol=0.01)


# --- Which moments --------------------------------------------------------------------------------------------------


def test_a_movie_shows_each_frame_once_or_evenly_spaced_times():
    time = np.array([0.0, 1, 2, 4, 8])
    assert moments(time, 0, 4, 30).tolist() == [0, 1, 2, 3, 4]
    assert moments(time, 3, 1, 30).tolist() == [3, 2, 1]
    at = moments(time, 0, 4, 10, seconds=1.7)
    assert len(at) == 17 and np.ptp(np.diff(np.interp(at, np.arange(5), time))) < 1e-7
    assert (at[0], at[-1], at[8]) == (0, 4, 3)  # the middle of the time is frame 3
    assert len(moments(time, 0, 4, 10, speed=2.0)) == 40  # 8 units of time at 2 per second
    assert moments(time, 4, 0, 10, seconds=0.5).tolist()[::4] == [4, 0]
    assert moments(np.zeros(3), 0, 2, 5, seconds=1).tolist() == [0, 0.5, 1, 1.5, 2]  # a file without times
    assert moments(time, 2, 2, 10, seconds=0.3).tolist() == [2, 2, 2]
    for arguments in ((time, 2, 2, 30), (time, 2, 2, 30, None, 1.0), (time, 0, 4, 30, 1e9)):
        with pytest.raises(InputError):
            moments(*arguments)


# --- The camera -----------------------------------------------------------------------------------------------------


def camera_path(folder, text):
    (folder / "camera.yaml").write_text(text)
    return folder / "camera.yaml"


def test_a_camera_path_goes_through_its_views_without_overshooting(tmp_path):
    path = camera_path(
        tmp_path,
        "views:\n- {at: 1, radius: 4, azimuth: 0}\n- {at: 3, radius: 1, centre: [1, 2, 3]}\n- {at: 4, azimuth: 360}\n",
    )
    home = Camera(radius=8.0, elevation=0.3)
    move = partial(read_path(path, 2.0), home)
    radii = [move(t).radius for t in np.linspace(0, 5, 51)]
    assert radii[0] == radii[10] == pytest.approx(2) and radii[30] == radii[-1] == pytest.approx(0.5)  # units of 2
    assert (np.diff(radii) <= 1e-12).all()
    assert radii[20] == pytest.approx(1.0)  # halfway in the logarithm
    assert move(4).azimuth == pytest.approx(2 * np.pi) and move(2.5).elevation == 0.3
    np.testing.assert_allclose(move(0).centre, [0.5, 1, 1.5])
    assert home.radius == 8.0
    save_camera(Camera(radius=3.0), 2.0, tmp_path / "still.yaml")
    still = partial(read_path(tmp_path / "still.yaml", 2.0), home)
    assert still(0).radius == still(9).radius == pytest.approx(3.0) and still(5).elevation != 0.3


def test_a_spin_turns_and_a_plane_has_nothing_to_turn(recorded):
    move = Aim().moving(recorded(*cloud(5, 2)), spin=90.0)
    assert move(2.0, 0.0).azimuth == pytest.approx(move(0.0, 0.0).azimuth + np.pi)
    with pytest.raises(InputError, match="plane"):
        Aim().moving(recorded(*cloud(5, 2, 2)), spin=1.0)


@pytest.mark.parametrize(
    "text, words",
    [
        ("views: []", "list of views"),
        ("zoom: 3", "unknown key"),
        ("views: [{at: 0}]\nradius: 3", "list of views"),
        ("views: [{radius: 3}]", "view 1: at: must be a number"),
        ("views: [{at: 0}, {at: 0}]", "must increase"),
        ("views: [{at: 0, radius: -1}]", "greater than 0"),
        ("views: [{at: 0, zoom: 1}]", "zoom"),
        ("views: [3]", "must have keys"),
        ("", "is empty; write lines such as 'key: value'"),
        ("# " + "x" * 10**6, "larger than 1 MB"),
    ],
)
def test_invalid_camera_paths_are_refused(tmp_path, text, words):
    with pytest.raises(InputError, match=words) as raised:
        read_path(camera_path(tmp_path, text), 1.0)
    assert "camera.yaml" in str(raised.value)


# --- Files ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run_file(tmp_path_factory):
    """200 bodies that turn around the vertical axis, 8 frames."""
    rng = np.random.default_rng(3)
    position = rng.standard_normal((200, 3))
    frames = []
    for angle in 0.2 * np.arange(8):
        (s, c), omega = (np.sin(angle), np.cos(angle)), 2.0  # 0.2 per 0.1 units of time
        x, y, z = position.T
        turned = np.stack([c * x - s * y, s * x + c * y, z], axis=1)
        frames.append((turned, omega * np.stack([-turned[:, 1], turned[:, 0], 0 * z], axis=1)))
    return record(tmp_path_factory.mktemp("run") / "run.h5", frames)


def decoded(path):
    """The pictures of a movie, RGB, with the colours of BT.709."""
    av = pytest.importorskip("av")
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            yield (frame.reformat(format="rgb24", src_colorspace="ITU709", src_color_range="MPEG").to_ndarray().astype(int))


def stills(path, moments, with_hud=True):
    """What ``nbody view --screenshot`` draws."""
    from nbody.viewer.gl.studio import Studio

    found = []
    with Trajectory(path) as run, Studio(RecordedSource(run), SIZE) as studio:
        for at in moments:
            studio.draw(float(at), with_hud=with_hud)
            found.append(studio.read().astype(int))
    return found


def movie(*arguments):
    return main(["movie", *map(str, arguments), "--size", f"{SIZE[0]}x{SIZE[1]}"])


LUMA = np.array([0.2126, 0.7152, 0.0722])
QUANTIZER = 26
"""x264 at quality 18 uses quantizers up to about 26 in moving pictures. Its step is 2^((26-4)/6) = 13 levels, and the error
of rounding to steps has a root mean square of step/√12, in a transform that keeps it."""
CODEC_ERROR = 2 ** ((QUANTIZER - 4) / 6) / np.sqrt(12)


def luma_error(picture, still):
    return np.sqrt((((picture - still) @ LUMA) ** 2).mean())


def test_a_movie_decoded_back_shows_the_stills_of_its_frames(egl, run_file, tmp_path, capsys):
    pytest.importorskip("av")
    assert movie(run_file, tmp_path / "a.mp4", "--fps", 25) == 0
    assert "8 pictures of 320x240, 0.32 s" in capsys.readouterr().out
    pictures, expected = list(decoded(tmp_path / "a.mp4")), stills(run_file, range(8))
    assert len(pictures) == 8
    for k, (picture, still) in enumerate(zip(pictures, expected, strict=True)):
        assert luma_error(picture, still) < CODEC_ERROR, k
        # No channel is too bright: the colours are right. The even, dark ground is off by half a step of luma (255/219/2)
        # and of chroma (up to 2.1/2) everywhere.
        assert abs((picture - still).mean(axis=(0, 1))).max() < 1.7
        other = expected[(k + 3) % 8]
        assert luma_error(picture, other) > 3 * luma_error(picture, still)
    assert [path.name for path in tmp_path.iterdir()] == ["a.mp4"]


def test_pictures_between_frames_are_those_that_the_viewer_interpolates(egl, run_file, tmp_path):
    assert movie(run_file, tmp_path / "a.png", "--seconds", 1, "--fps", 10, "--from", 2, "--to", -2, "--no-hud") == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"a.{k:04d}.png" for k in range(10)]
    for k, still in enumerate(stills(run_file, np.round(np.linspace(2, 6, 10), 9), with_hud=False)):
        np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / names[k])), still)


def test_a_picture_of_bodies_beyond_float32_is_drawn_without_warnings(egl, tmp_path):
    frames = cloud(20, 3)
    for position, velocity in frames:
        position[3], velocity[4] = 3e38, 1e38
    arguments = ["view", record(tmp_path / "far.h5", frames), "--screenshot", tmp_path / "a.png", "--trail-frames", 2]
    done = child("-m", "nbody", *arguments)
    assert done.returncode == 0 and "Warning" not in done.stderr and len(done.stderr.splitlines()) <= 2, done.stderr
    assert Image.open(tmp_path / "a.png").getextrema() != ((0, 0),) * 3


@pytest.mark.parametrize("suffix, most", [("gif", 12.0), ("webp", 6.0)])
def test_animated_pictures_show_the_stills_at_the_right_speed(egl, run_file, tmp_path, suffix, most):
    """256 colours of 3 + 3 + 2 bits are off by up to 32 levels, 9 in the mean; WebP at quality 80 by less."""
    path = tmp_path / f"a.{suffix}"
    assert movie(run_file, path, "--fps", 24) == 0
    with Image.open(path) as image:
        assert image.n_frames == 8 and image.info["loop"] == 0
        total = 0
        for k, still in enumerate(stills(run_file, range(8))):
            image.seek(k)
            image.load()
            total += image.info["duration"]
            assert luma_error(np.asarray(image.convert("RGB")).astype(int), still) < most
    assert total == pytest.approx(8 * 1000 / 24, abs=5)


def test_the_colours_of_video_are_those_of_the_standard(egl):
    """BT.709: white is (235, 128, 128), black (16, 128, 128), and the four bytes of a pixel are four pixels' luma."""
    from vispy import app, gloo

    from nbody.viewer.movie.make import Nv12

    rng = np.random.default_rng(0)
    picture = rng.integers(0, 256, (8, 12, 3), dtype=np.uint8)
    picture[0, :2] = picture[1, :2] = [[255] * 3] * 2
    canvas = app.Canvas(size=(16, 16), show=False)
    texture = gloo.Texture2D(np.dstack([picture[::-1], np.full((8, 12), 255, np.uint8)]), interpolation="linear")
    video = Nv12(texture, (12, 8))
    video.draw()
    with video.target:
        found = gloo.read_pixels((0, 0, *video.size))[::-1].reshape(12, 12).astype(float)
    canvas.close()
    light = picture @ LUMA
    np.testing.assert_allclose(found[:8], 16 + 219 * light / 255, atol=1)
    mean = picture.reshape(4, 2, 6, 2, 3).mean(axis=(1, 3))
    blue, red = (mean[..., 2] - mean @ LUMA) / 1.8556, (mean[..., 0] - mean @ LUMA) / 1.5748
    np.testing.assert_allclose(found[8:, 0::2], 128 + 224 * blue / 255, atol=1.5)
    np.testing.assert_allclose(found[8:, 1::2], 128 + 224 * red / 255, atol=1.5)
    assert found[0, 0] == 235 and found[8, :2].tolist() == [128, 128]


def test_the_followed_body_stays_in_the_middle(egl, tmp_path, capsys):
    frames = [
        (np.array([[0.0, 0, 0], [3 + k, k**2 / 4, 0], [9, 9, 0]]), np.array([[0, 0, 0], [10, 5.0 * k, 0], [0, 0, 0]]))
        for k in range(5)
    ]
    path = record(tmp_path / "run.h5", frames)
    views = camera_path(tmp_path, "views: [{at: 0, radius: 0.5}]")
    command = (path, tmp_path / "a.png", "--track", 1, "--camera", views, "--seconds", 0.7, "--fps", 10, "--no-hud")
    assert movie(*command) == 0
    for k in range(7):
        light = np.asarray(Image.open(tmp_path / f"a.{k:04d}.png")).max(axis=2)
        row, column = np.unravel_index(light.argmax(), light.shape)
        assert abs(row - 120) <= 2 and abs(column - 160) <= 2, k
    before = np.asarray(Image.open(tmp_path / "a.0000.png"))
    assert movie(path, tmp_path / "b.png", "--follow", 1, "--path", views, "--to", 1, "--no-hud") == 0  # of version 0.2
    assert np.array_equal(np.asarray(Image.open(tmp_path / "b.0000.png")), before)
    said = capsys.readouterr().err
    assert "--path: is called --camera" in said and "--follow: is called --track" in said


def test_a_scenario_is_run_and_leaves_only_the_movie(egl, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    steps = ("--particles", 8, "--steps", 5, "--engine", "reference", "--set", "precision=float64", "record.every=1")
    assert movie("plummer", "a.gif", *steps, "--fps", 10) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["a.gif"]
    assert "a.gif: 6 pictures" in capsys.readouterr().out


def test_an_older_movie_is_kept_unless_it_may_be_replaced(egl, run_file, tmp_path, capsys):
    path = tmp_path / "a.gif"
    path.write_bytes(b"GIF8 mine")
    assert movie(run_file, path, "--to", 1) == 0
    assert (tmp_path / "a.1.gif").read_bytes() == b"GIF8 mine" and "a.1.gif" in capsys.readouterr().err
    assert movie(run_file, path, "--to", 1, "--overwrite") == 0
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.1.gif", "a.gif"]
    path.write_bytes(b"no movie")
    assert movie(run_file, path, "--to", 1, "--overwrite") == 2 and "is no movie" in capsys.readouterr().err


def test_a_damaged_frame_is_reported_and_the_movie_goes_on(egl, run_file, tmp_path, capsys):
    data, path = bytearray(run_file.read_bytes()), tmp_path / "run.h5"
    with Trajectory(run_file) as run:
        data[data.index(run.position[3].tobytes()) + 5] ^= 1
    path.write_bytes(data)
    assert movie(path, tmp_path / "a.png", "--no-hud") == 0
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1 and "frame 3" in said[0] and "interpolated" in said[0]
    seen = np.asarray(Image.open(tmp_path / "a.0003.png")).astype(int)
    (right, wrong) = stills(run_file, (3, 1), with_hud=False)
    # The rotation of 0.4 between the frames 2 and 4 is interpolated to 0.4⁴/384 of the radius: the same pixels.
    assert abs(seen - right).mean() < 0.1 * abs(seen - wrong).mean()


# --- Interruptions and errors ---------------------------------------------------------------------------------------


def test_an_interrupt_leaves_a_movie_that_plays(egl, run_file, tmp_path):
    pytest.importorskip("av")
    path = tmp_path / "a.mp4"
    process = begun("-m", "nbody", "movie", run_file, path, "--seconds", "900", "--size", "64x48")
    assert until(lambda: [each for each in tmp_path.glob(".nbody-*/a.mp4") if each.stat().st_size])  # with a picture
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 130
    made = int(said.split(" has ")[1].split(" of 27000 ")[0])
    assert said.startswith("interrupted: ") and len(said.splitlines()) == 1
    assert len(list(decoded(path))) == made > 0
    assert [each.name for each in tmp_path.iterdir()] == ["a.mp4"]


@pytest.mark.parametrize("suffix", ["mp4", "gif", "webp", "png"])
def test_a_full_disk_ends_a_movie_and_leaves_no_partial_file(egl, run_file, tmp_path, capsys, suffix):
    if suffix == "mp4":
        pytest.importorskip("av")
    with files_end_at(4096):
        code = movie(run_file, tmp_path / f"a.{suffix}")
    said = capsys.readouterr().err.strip().splitlines()
    assert code == 1 and len(said) == 1 and "can't be written (File too large)" in said[0]
    assert suffix == "png" or not list(tmp_path.iterdir())


def test_invalid_movie_options_are_refused_before_anything_is_drawn(run_file, tmp_path, refused, monkeypatch):
    one = record(tmp_path / "one.h5", cloud(5))
    text = tmp_path / "text.h5"
    text.write_text("not HDF5")
    out = tmp_path / "a.webp"
    for arguments, words in (
        ((run_file, tmp_path / "a.avi"), ".mp4, .gif, .webp, .png"),
        ((run_file, tmp_path / "no" / "b" / "a.gif"), "there is no folder"),
        ((run_file, tmp_path / "a.gif", "--fps", 100), "up to 50 pictures"),
        ((run_file, out, "--from", 8), "there is no frame 8"),
        ((run_file, out, "--to", -9), "frames 0 to 7"),
        ((run_file, out, "--seconds", 0), "--seconds 0: must be greater than 0"),
        ((run_file, out, "--seconds", "1e308"), "more than 1000000; make it shorter"),
        ((run_file, out, "--spin", "nan"), "must be a finite number"),
        ((run_file, out, "--seconds", 1, "--speed", 1), "cannot be combined"),
        ((run_file, out, "--track", "sun"), "--track sun: "),
        ((run_file, out, "--particles", 3), "is a recording"),
        ((one, out), "one frame"),
        ((text, out), "not an HDF5 file"),
        ((tmp_path / "none.yaml", out), "there is no such file"),
    ):
        assert words in refused("movie", *arguments, "--size", "64x48"), arguments
    monkeypatch.setitem(sys.modules, "av", None)
    assert "[movie]'" in refused("movie", run_file, tmp_path / "a.mp4")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["one.h5", "text.h5"]


# --- Notebooks ------------------------------------------------------------------------------------------------------


def test_a_notebook_shows_a_movie_where_jupyter_rfb_is_missing(egl, run_file, tmp_path, monkeypatch):
    monkeypatch.setattr(notebook, "find_spec", lambda name: None)
    shown = nbody.show(str(run_file), size=(160, 101), color="id")
    assert shown.kind == "image/webp" and shown.size == (160, 100)
    assert '<img width="160" height="100" src="data:image/webp;base64,UklGR' in shown._repr_html_()
    with Image.open(io.BytesIO(shown.data)) as image:
        assert image.n_frames == 8 and image.size == (160, 100)
    monkeypatch.setattr(notebook, "find_spec", lambda name: name == "av" or None)
    if find_spec("av"):
        shown = nbody.show(Trajectory(run_file), size=(160, 100))
        assert shown._repr_html_().startswith("<video ")
        (tmp_path / "a.mp4").write_bytes(shown.data)
        assert len(list(decoded(tmp_path / "a.mp4"))) == 8
    with pytest.raises(InputError, match="unknown option 'colour'"):
        nbody.show(str(run_file), colour="id")


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"size": "12"}, "--size 12: is not a size; write it as 1280x720"),
        ({"size": (720,)}, "--size .*: is not a size"),
        ({"size": None}, "--size None: is not a size"),
        ({"size": (0, 0)}, "sides are 16 to 16384 pixels"),
        ({"trails": [0, 3]}, "--trails .*: must be auto, none, all or ids like 0,3,7"),
        ({"trail_frames": 2.5}, "--trail-frames: must be a whole number, got 2.5"),
        ({"exposure": "bright"}, "--exposure: must be a number, got 'bright'"),
        ({}, "the name of a file is needed, as a text or a pathlib.Path; got 5"),
    ],
)
def test_a_wrong_type_in_a_notebook_is_refused(wrong, line):
    with pytest.raises(InputError, match=line):
        nbody.show(5, **wrong)


def test_the_movie_of_a_notebook_follows_bodies_that_leave_the_view(egl, tmp_path, monkeypatch):
    (position, velocity), *_ = cloud(100)
    drift = [(np.add(position, [20 * k, 0, 0]), np.add(velocity, [200, 0, 0])) for k in range(4)]
    monkeypatch.setattr(notebook, "find_spec", lambda name: None)
    shown = nbody.show(record(tmp_path / "run.h5", drift), size=(480, 300), background="print", trails="none")
    with Image.open(io.BytesIO(shown.data)) as image:
        for k in range(4):
            image.seek(k)
            picture = np.asarray(image.convert("L"))
            assert (picture[130:170, 220:260] < 200).mean() > 0.1, k


def test_a_notebook_shows_a_simulation_by_running_it(egl, monkeypatch):
    monkeypatch.setattr(notebook, "find_spec", lambda name: None)
    simulation = nbody.Simulation(nbody.plummer(8), dt=0.01, steps=4, engine="reference", precision="float64")
    with Image.open(io.BytesIO(nbody.show(simulation, size=(64, 48)).data)) as image:
        assert image.n_frames == 5
    assert simulation.steps_made == 0  # a copy of it was run


def test_a_canvas_of_a_notebook_plays_turns_and_ends(egl, run_file):
    pytest.importorskip("jupyter_rfb")
    canvas = nbody.show(str(run_file), size=(320, 240))
    first = canvas.get_frame()
    assert first.shape == (240, 320, 3) and first.max() > 100

    def send(kind, **more):
        canvas.handle_event({"type": kind, "x": 0, "y": 0, "modifiers": (), "ratio": 1.0, "button": 1, **more})

    send("key_down", key=" ")
    assert not canvas.window.transport.playing
    send("key_down", key="h")
    send("key_down", key="h", modifiers=("Shift",))
    assert canvas.window.controls.show_hud
    send("key_down", key="End")
    send("key_down", key="ArrowLeft")
    assert int(canvas.window.transport.at) == 6
    last = canvas.get_frame()
    assert (abs(last.astype(int) - first).max(axis=2) > 40).mean() > 0.005
    before = canvas.window.controls.camera.azimuth
    send("pointer_down", x=100, y=50)
    send("pointer_move", x=140, y=50)
    send("pointer_up", x=140, y=50)
    assert canvas.window.controls.camera.azimuth < before
    radius = canvas.window.controls.camera.radius
    send("wheel", x=160, y=120, dx=0, dy=-100)
    assert canvas.window.controls.camera.radius < radius
    send("resize", width=200, height=150, ratio=2.0)
    assert canvas.get_frame().shape == (300, 400, 3)
    send("key_down", key="F11")
    send("close")
    assert canvas.get_frame() is None
