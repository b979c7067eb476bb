"""The viewer: its clock and its camera as plain functions, a picture drawn without a screen, a window under Xvfb."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nbody import Trajectory
from nbody.errors import DeviceError
from nbody.particles import Particles
from nbody.trajectory import Frame, RunHeader, TrajectoryWriter
from nbody.viewer.appearance import framing, speed_scale
from nbody.viewer.camera import Camera
from nbody.viewer.playback import Playback

ROOT = Path(__file__).resolve().parents[1]


def record(path, frames, mass=None):
    """A recording of the given (position, velocity) pairs."""
    count = len(frames[0][0])
    particles = Particles(np.ones(count) if mass is None else mass, *frames[0])
    header = RunHeader(frames=len(frames), resolved={"name": "test"})
    energy = {"total_energy": -1.0}
    with TrajectoryWriter(path, particles, header) as writer:
        for k, (position, velocity) in enumerate(frames):
            writer.append(Frame(k, 0.1 * k, position.astype("f4"), velocity.astype("f4"), energy))
    return path


# --- The clock ---


def test_playback_shows_speed_frames_a_second_and_begins_again_at_the_end():
    playback = Playback(frames=10, speed=30)
    shown = [playback.frame]
    for _ in range(60):  # one second, sixty ticks
        playback.tick(1 / 60)
        shown.append(playback.frame)
    assert playback.frame == 30 % 10 or playback.frame == 29 % 10  # rounding of 60 · 1/60
    assert sorted(set(shown)) == list(range(10))


def test_a_paused_run_stands_still_and_steps_stop_at_the_ends():
    playback = Playback(frames=5)
    playback.toggle()
    assert not playback.tick(10)
    playback.step(-3)
    assert playback.frame == 0
    playback.step(99)
    assert playback.frame == 4


def test_who_looks_at_the_last_frame_of_a_growing_run_stays_at_the_last():
    playback = Playback(frames=5)
    playback.step(4)
    playback.grow(9)
    assert playback.frame == 8
    playback.step(-5)
    playback.grow(12)
    assert playback.frame == 3


def test_scrubbing_reaches_the_first_and_the_last_frame():
    playback = Playback(frames=101)
    for fraction, frame in ((0.0, 0), (0.5, 50), (1.0, 100), (2.0, 100), (-1.0, 0)):
        playback.seek_fraction(fraction)
        assert playback.frame == frame


# --- The camera ---


def project(camera, point, size=(800, 600)):
    """Where a point lands, in pixels from the picture's middle, x right and y up."""
    clip = np.append(point, 1.0) @ camera.matrix(*size)
    return clip[:2] / clip[3] * np.array(size) / 2


def test_the_flat_camera_shows_the_radius_at_the_nearer_edge():
    camera = Camera(np.array([1.0, 2.0, 0.0]), radius=3.0, flat=True)
    assert project(camera, [1, 2, 0]) == pytest.approx([0, 0])
    assert project(camera, [1, 5, 0]) == pytest.approx([0, 300])
    assert project(camera, [4, 2, 7]) == pytest.approx([300, 0])


def test_the_perspective_camera_turns_around_its_centre_and_makes_what_is_near_larger():
    camera = Camera(np.zeros(3), radius=2.0, flat=False, azimuth=0, elevation=0)
    assert project(camera, [0, 0, 2]) == pytest.approx([0, 300])  # z is up
    assert project(camera, [2, 0, 0]) == pytest.approx([300, 0])  # x is right
    near, far = project(camera, [1, -1, 0])[0], project(camera, [1, 1, 0])[0]
    assert near > 150 > far
    camera.elevation = 90
    assert project(camera, [0, 2, 0]) == pytest.approx([0, 300])  # from above, y is up
    for azimuth in (0, 77, 200):
        camera.azimuth = azimuth
        assert project(camera, [0, 0, 0]) == pytest.approx([0, 0])


def test_panning_moves_the_picture_with_the_mouse():
    for flat in (True, False):
        camera = Camera(np.zeros(3), radius=2.0, flat=flat)
        camera.pan(0.5, 0.25)
        assert project(camera, [0, 0, 0]) == pytest.approx([150, 75], rel=0.02)


def test_a_few_escapers_do_not_shrink_the_picture(tmp_path):
    rng = np.random.default_rng(1)
    position = rng.standard_normal((1000, 2))
    position[:10] *= 1e4
    with Trajectory(record(tmp_path / "run.h5", [(position, position)])) as run:
        camera = framing(run)
    assert camera.flat
    assert camera.radius == pytest.approx(2.8, rel=0.2)  # 97 % of a unit Gaussian in the plane lies within 2.65


def test_colours_are_on_one_scale_for_the_whole_run(tmp_path):
    rng = np.random.default_rng(2)
    frames = [(rng.standard_normal((500, 3)), rng.standard_normal((500, 3)) * speed) for speed in (1, 1, 10)]
    with Trajectory(record(tmp_path / "run.h5", frames)) as run:
        scale = speed_scale(run)
        slow, fast = scale(run.velocity[0]), scale(run.velocity[2])
    assert 0 <= slow.min() and fast.max() <= 1
    assert fast.mean() > slow.mean() + 0.4


# --- Pictures without a screen ---


@pytest.fixture(scope="module")
def egl():
    """Skips where OpenGL can't be had without a screen."""
    from nbody.viewer.screenshot import use_egl

    try:
        use_egl()
    except DeviceError as error:
        pytest.skip(str(error))


def draw(path, frame=0, size=(400, 300), hud=False):
    """(height, width, 3) of a frame, drawn in a process of its own (a vispy process has one backend)."""
    target = path.with_suffix(f".{frame}.png")
    options = [] if hud else ["--no-hud"]
    command = [sys.executable, "-m", "nbody", "view", path, "--screenshot", target, "--overwrite"]
    command += ["--frame", frame, "--size", "x".join(map(str, size)), *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    from PIL import Image

    return np.asarray(Image.open(target)).astype(int)


def test_bright_pixels_are_where_the_bodies_are(egl, tmp_path):
    position = np.array([[-1.0, 0], [1, 0], [0, 0.5], [0, -0.5]])
    path = record(tmp_path / "run.h5", [(position, np.ones((4, 2)))])
    picture = draw(path)
    with Trajectory(path) as run:
        camera = framing(run)
    for body in position:
        x, y = project(camera, [*body, 0], (400, 300))
        column, row = round(200 + x), round(150 - y)
        assert picture[row - 1 : row + 2, column - 1 : column + 2].max() > 100, body
    dark = picture.max(axis=2) < 40
    assert dark.mean() > 0.9


def test_another_frame_is_another_picture_and_the_same_one_the_same(egl, tmp_path):
    rng = np.random.default_rng(3)
    frames = [(rng.standard_normal((200, 3)), rng.standard_normal((200, 3))) for _ in range(2)]
    path = record(tmp_path / "run.h5", frames)
    first, again, second = draw(path, 0), draw(path, 0), draw(path, 1)
    assert np.array_equal(first, again)
    assert np.abs(first - second).max() > 100


def test_a_hundred_times_the_bodies_are_about_as_bright_and_the_core_keeps_its_colour(egl, tmp_path):
    rng = np.random.default_rng(4)
    means = []
    for count in (1000, 100_000):
        position = rng.standard_normal((count, 2))
        velocity = np.where(np.abs(position) < 0.5, 0.1, 10.0) * np.ones((count, 2))
        picture = draw(record(tmp_path / f"{count}.h5", [(position, velocity)]))
        means.append(picture.mean())
        assert (picture.min(axis=2) > 250).mean() < 0.02  # hardly anything is burnt out to white
    # The flux is the same; its logarithm is larger where it is spread evenly than in a thousand dots on black.
    assert 1 <= means[1] / means[0] < 4


def test_the_hud_says_which_frame_it_is(egl, tmp_path):
    position = np.array([[0.0, 0.0], [1.0, 1.0]])
    path = record(tmp_path / "run.h5", [(position, position + 1)] * 3)
    bare, with_text = draw(path, 1), draw(path, 1, hud=True)
    changed = np.abs(bare - with_text).max(axis=2) > 60
    assert changed[:70, :250].sum() > 200  # the text, top left
    assert changed[-25:, :].sum() > 400  # the timeline
    assert not changed[100:250, 250:].any()


def view(*arguments, **environment):
    """``nbody view``, in a process of its own."""
    command = [sys.executable, "-m", "nbody", "view", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=os.environ | {"PYTHONPATH": str(ROOT)} | environment
    )


def test_what_is_wrong_is_said_in_one_line(tmp_path):
    path = record(tmp_path / "run.h5", [(np.ones((2, 2)), np.ones((2, 2)))])
    (tmp_path / "text.h5").write_text("this is not HDF5")
    png = tmp_path / "out.png"
    wrong = [
        ((tmp_path / "missing.h5",), "missing.h5"),
        ((tmp_path,), "directory"),
        ((tmp_path / "text.h5", "--screenshot", png), "text.h5"),
        ((path, "--screenshot", png, "--frame", 7), "there is no frame 7; it has 1"),
        ((path, "--screenshot", png, "--size", "big"), "--size"),
        ((path, "--screenshot", tmp_path / "no" / "such" / "x.png"), "no folder"),
        ((ROOT / "scenarios" / "disk.yaml",), "nbody run"),
        ((path,), "--screenshot"),  # no screen
    ]
    for arguments, expected in wrong:
        done = view(*arguments, DISPLAY="", WAYLAND_DISPLAY="")
        assert done.returncode == 2, (arguments, done.stderr)
        assert len(done.stderr.strip().splitlines()) == 1 and expected in done.stderr, done.stderr
    assert not png.exists()


def test_a_picture_that_exists_is_kept_under_a_numbered_name(egl, tmp_path):
    path = record(tmp_path / "run.h5", [(np.ones((2, 2)), np.ones((2, 2)))])
    png = tmp_path / "out.png"
    png.write_bytes(b"mine")
    done = view(path, "--screenshot", png, "--size", "64x64")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.1.png").read_bytes() == b"mine"
    assert "out.1.png" in done.stderr
    assert png.read_bytes().startswith(b"\x89PNG")


# --- A window ---


@pytest.fixture
def display():
    """A virtual screen."""
    if not shutil.which("Xvfb"):
        pytest.skip("no Xvfb here")
    read, write = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(write), "-screen", "0", "800x600x24"], pass_fds=[write], stderr=subprocess.DEVNULL
    )
    os.close(write)
    with os.fdopen(read) as pipe:
        number = pipe.readline().strip()
    yield f":{number}"
    server.terminate()
    server.wait()


def test_a_window_plays_pauses_scrubs_turns_and_shows_it(display, tmp_path):
    pytest.importorskip("PySide6")
    from PIL import Image

    rng = np.random.default_rng(5)
    frames = [(rng.standard_normal((300, 3)), rng.standard_normal((300, 3))) for _ in range(40)]
    path = record(tmp_path / "run.h5", frames)
    environment = os.environ | {"DISPLAY": display, "PYTHONPATH": str(ROOT), "QT_QPA_PLATFORM": "xcb"}
    script = ROOT / "tests" / "window_under_xvfb.py"
    done = subprocess.run(
        [sys.executable, script, path, tmp_path], capture_output=True, text=True, env=environment, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["played"]["playing"] and seen["played"]["frame"] > 0
    assert not seen["paused"]["playing"]
    assert (seen["home"]["frame"], seen["right"]["frame"], seen["ten"]["frame"]) == (0, 1, 11)
    assert seen["dragged"]["camera"] != seen["ten"]["camera"]
    assert seen["timeline"]["frame"] == pytest.approx(19.5, abs=2)
    assert seen["end"]["frame"] == 39

    def shown(name):
        return np.asarray(Image.open(tmp_path / f"{name}.png").convert("RGB")).astype(int)

    for before, after in (("home", "right"), ("ten", "dragged"), ("timeline", "end")):
        assert np.abs(shown(before) - shown(after)).max() > 60, f"{after} looks like {before}"
    assert (shown("home").max(axis=2) > 120).sum() > 300  # the picture is not black
    # 'h' takes the text away: fewer bright pixels at the top left of the window
    assert np.abs(shown("timeline") - shown("bare")).max() > 60
