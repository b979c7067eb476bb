"""The viewer: its geometry, clock and colours as plain functions, pictures without a screen, a window under Xvfb."""

import json

import numpy as np
import pytest
from conftest import ROOT, on_screen, program
from recordings import append, cloud, record

from nbody import opengl
from nbody.cli import main
from nbody.errors import DeviceError, InputError
from nbody.trajectory import Trajectory
from nbody.viewer import backends
from nbody.viewer.display import hud
from nbody.viewer.picture.aim import Aim, Display
from nbody.viewer.picture.look import COLOURS, TRAILS, Look
from nbody.viewer.picture.styles import LIGHTNESS, ember, reef
from nbody.viewer.screenshot import draw_frame
from nbody.viewer.sources.camera import Camera
from nbody.viewer.sources.recording import RecordedSource
from nbody.viewer.sources.samples import speed_scale
from nbody.viewer.window.clock import LIVE, Playback
from nbody.viewer.window.controls import FLIGHT, KEYS, LEFT, PLANE, RIGHT, Controls

SIZE = (400, 300)


def test_the_view_of_a_run_follows_bodies_that_leave_it_together_and_no_others(recorded):
    """A cluster that drifts by a hundred times its size; one that only expands; two bodies on an orbit."""
    (position, velocity), *_ = cloud(200)
    drift = [(position + np.array([20 * k, 0, 0]), velocity) for k in range(6)]
    grows = [(position * 2**k, velocity) for k in range(6)]
    orbit = [(np.array([[np.cos(k), np.sin(k)], [0, 0]]), np.zeros((2, 2))) for k in range(6)]
    for name, frames, leaves in (("drift", drift, True), ("grows", grows, False), ("orbit", orbit, False)):
        source = recorded(*frames)
        assert source.leaves_view is leaves, name
        follow = Aim().follow(source)
        assert (follow is not None) is leaves and Aim("frame").follow(source) is None
        if follow:
            x = Aim().view(source, 5).centre * source.length_unit
            np.testing.assert_allclose(x, [100, 0, 0], atol=0.5)
        source.close()


# --- The camera -----------------------------------------------------------------------------------------------------


def test_a_plane_is_seen_face_on_with_the_radius_at_the_nearer_edge():
    camera = Camera(np.array([1.0, 2.0, 0.0]), radius=3.0, flat=True)
    points = np.array([[1.0, 2, 0], [1, 5, 0], [4, 2, 0]])
    np.testing.assert_allclose(camera.project(points, SIZE), [[200, 150], [200, 0], [350, 150]], atol=1e-9)
    np.testing.assert_allclose(camera.project(points, (300, 400)), [[150, 200], [150, 50], [300, 200]])


def test_in_space_what_is_near_is_larger_and_z_is_up():
    camera = Camera(radius=2.0, azimuth=0.0, elevation=0.0)  # on the x axis
    right, up, near, far = camera.project(np.array([[0, 1.0, 0], [0, 0, 1], [1, 1, 0], [-1, 1, 0]]), SIZE)
    np.testing.assert_allclose([right, up], [[275, 150], [200, 75]])
    assert near[0] > right[0] > far[0] > 200
    camera.elevation = np.pi / 2
    np.testing.assert_allclose(camera.project(np.array([[-1.0, 0, 0]]), SIZE), [[200, 75]], atol=1e-9)


@pytest.mark.parametrize("flat", [True, False])
def test_what_the_mouse_holds_follows_it_and_stays_under_the_wheel(flat):
    camera = Camera(np.array([0.3, -0.2, 0.0]), 2.0, flat, azimuth=0.4, elevation=0.7)
    held = camera.centre.copy()[None]
    camera.pan(40, -25, SIZE)
    np.testing.assert_allclose(camera.project(held, SIZE), [[240, 125]])
    camera.zoom(3.0, (240, 125), SIZE)
    np.testing.assert_allclose(camera.project(held, SIZE), [[240, 125]])
    assert camera.radius == pytest.approx(2 / 3)


def test_turning_keeps_the_centre_and_stops_at_the_poles():
    camera = Camera(np.array([5.0, 6.0, 7.0]), 2.0)
    camera.orbit(100, 60, SIZE)
    np.testing.assert_allclose(camera.project(camera.centre[None], SIZE), [[200, 150]])
    np.testing.assert_allclose(camera.axes() @ camera.axes().T, np.eye(3), atol=1e-12)
    camera.orbit(0, 10_000, SIZE)
    assert camera.elevation == np.pi / 2


def test_the_framing_holds_the_bodies_but_not_a_few_escapers():
    position = cloud(1000, dimensions=2)[0][0] + [10, 20]
    framed = Camera.framing(position, 2)
    assert framed.flat and framed.radius == pytest.approx(1.08 * 2.65, rel=0.1)  # 97 % of a plane's unit Gaussian
    np.testing.assert_allclose(framed.centre, [10, 20, 0], atol=0.1)
    position[:10] *= 1e6
    position[10] = np.nan
    assert Camera.framing(position, 2).radius == pytest.approx(framed.radius, rel=0.1)


@pytest.mark.parametrize("position", [np.zeros((1, 3)), np.ones((5, 3)), np.full((2, 3), np.nan)])
def test_a_framing_of_nothing_is_still_a_view(position):
    camera = Camera.framing(position, 3)
    assert camera.radius == 1 and np.isfinite(camera.view()).all() and np.isfinite(camera.projection(SIZE)).all()


def test_three_bodies_are_all_framed():
    position = np.array([[0.97, -0.24], [-0.97, 0.24], [0, 0]])
    seen = Camera.framing(position, 2).project(np.pad(position, ((0, 0), (0, 1))), SIZE)
    assert (seen > 0).all() and (seen < SIZE).all()


# --- Colours --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("colour_map", [ember, reef])
def test_our_maps_are_equally_light_in_equal_steps_and_all_on_the_screen(colour_map):
    rgb = colour_map(64).astype(float)
    assert (rgb > 0).all() and (rgb < 1).all()
    to_lms = np.array([[0.4122214708, 0.5363325363, 0.0514459929],
                       [0.2119034982, 0.6806995451, 0.1073969566],
                       [0.0883024619, 0.2817188376, 0.6299787005]])  # fmt: skip
    lms = np.cbrt(rgb @ to_lms.T)
    lightness = lms @ [0.2104542553, 0.7936177850, -0.0040720468]
    np.testing.assert_allclose(lightness, LIGHTNESS, atol=2e-3)
    steps = np.linalg.norm(np.diff(lms, axis=0), axis=1)
    assert steps.min() > 0.002


def test_a_look_is_made_from_options_and_changed_by_keys():
    look = Look.of({"color": "density", "trails": "0,3,7", "map": None, "frame": 9})
    assert (look.color, look.trail_ids(), look.map) == ("density", (0, 3, 7), Look().map)
    assert look.next("trails").trails == TRAILS[0] and not look.next("axes").next("axes").axes
    seen = [look.color]
    while (look := look.next("color")).color not in seen:
        seen.append(look.color)
    assert sorted(seen) == sorted(COLOURS)
    ours = Controls(Camera(), Playback(2), look)
    ours.brighter(99)
    assert ours.look.exposure == 8 and ours.notice == "exposure: +8"


def test_colours_are_on_one_scale_for_the_whole_run(recorded):
    (x, v), *_ = cloud(500, dimensions=2)
    slow, fast = recorded((x, v), (x, 10 * v), (x, 100 * v)).speeds
    assert slow < np.linalg.norm(v, axis=1).max() < fast < 100 * np.linalg.norm(v, axis=1).max()


@pytest.mark.parametrize("velocity,ends", [(np.zeros((3, 2)), 0), (np.ones((3, 2)), 2**0.5), (np.full((3, 2), np.nan), 0)])
def test_equal_speeds_have_no_invented_scale(velocity, ends):
    assert speed_scale([velocity]) == pytest.approx((ends, ends))


# --- Keys, mouse and display ----------------------------------------------------------------------------------------


def controls(flat=False, frames=101):
    return Controls(Camera(flat=flat), Playback(frames)), hud.Timeline(SIZE)


class LiveClock(Playback):
    """A clock that says it is that of a simulation."""

    kind = LIVE

    def record(self):
        self.recording = True


def state_of(ours):
    return [repr(vars(each)) for each in (ours, ours.transport)]


def test_every_key_does_something_and_is_in_the_table():
    for key in KEYS:
        for name in key.names or ("",):
            ours, _ = controls(flat=key.only == PLANE)
            ours.transport = LiveClock(101) if key.only == LIVE else ours.transport
            ours.flying = key.only == FLIGHT
            if not name:  # the mouse
                continue
            ours.transport.seek(50)
            before = state_of(ours)
            assert ours.key(name)
            assert state_of(ours) != before or name == "R", name
        rows = [row for _, rows in ours.key_table for row in rows]
        assert not key.label or (key.label, key.help) in rows
    ours, _ = controls()
    assert not ours.key("F13") and not ours.key("O")  # only a simulation that is running can be recorded
    labels = "  ".join(label for _, rows in ours.key_table for label, _ in rows)
    for word in ("Space", "←", "Home", "R ", "H ", "Q", "drag", "wheel", "click"):
        assert word in labels
    assert {"Space play/pause", "R reset view"} <= set(ours.hints)


def test_the_reset_undoes_turning_moving_and_zooming():
    ours, line = controls()
    home = repr(ours.camera)
    ours.press((200, 100), LEFT, False, line)
    assert ours.move((230, 90), (200, 100), line, SIZE)
    ours.release()
    assert not ours.move((260, 90), (230, 90), line, SIZE)
    ours.press((200, 100), RIGHT, False, line)
    ours.move((230, 90), (200, 100), line, SIZE)
    ours.wheel(2, (10, 10), SIZE)
    assert repr(ours.camera) != home
    ours.key("R")
    assert repr(ours.camera) == home


def test_in_free_flight_the_mouse_looks_around_and_letters_fly():
    ours, line = controls()

    def eye():
        return ours.camera.centre + ours.camera.distance * ours.camera.axes()[2]

    ours.key("Y")
    begin, ahead = eye(), -ours.camera.axes()[2]
    ours.press((200, 100), LEFT, False, line)
    ours.move((230, 90), (200, 100), line, SIZE)
    np.testing.assert_allclose(eye(), begin, atol=1e-12)
    assert not np.allclose(ours.camera.axes()[2], -ahead) and not ours.release()
    ahead, look = -ours.camera.axes()[2], ours.look
    assert ours.key("W") and ours.look == look  # no arrows
    seconds = 0.0
    while ours.tick(0.02):
        seconds += 0.02
    way = eye() - begin
    np.testing.assert_allclose(way, (way @ ahead) * ahead, atol=1e-12)
    assert 0.9 < way @ ahead / (0.35 * 0.4 * ours.camera.radius) <= 1.0 and seconds < 2.0  # speed times its time constant
    ours.key("R")
    assert not ours.flying and ours.key("W") and ours.look.vectors


def test_the_time_line_reaches_every_frame_and_no_other():
    ours, line = controls()
    y = line.top + line.height / 2
    for x, frame in ((line.left, 0), (200, 50), (line.left + line.width - 1, 100)):
        ours.press((x, y), LEFT, False, line)
        assert (ours.transport.at, ours.transport.playing) == (frame, False)
    ours.move((-500, 0), (200, y), line, SIZE)
    assert ours.transport.at == 0
    ours.move((9999, 0), (200, y), line, SIZE)
    assert ours.transport.at == 100
    for frame in (0, 37, 100):
        ours.transport.choose(line.place(line.left + (frame + 0.5) / 101 * line.width))
        assert ours.transport.at == frame


def test_the_display_names_what_there_is_to_know(recorded):
    recording = recorded(*cloud(2000, 3, 2))
    caption = recording.caption(2)
    assert (caption.name, caption.step, caption.frame, caption.frames) == ("test", 2, 2, 3)
    assert caption.time == pytest.approx(0.2) and caption.energy_error == pytest.approx(0.01)
    plain = hud.caption_panel(caption, 1.0)
    assert plain.dtype == np.uint8 and plain.shape[2] == 4
    assert hud.caption_panel(caption, 2.0).shape[0] == pytest.approx(2 * plain.shape[0], abs=4)
    recording.shown.thin_out(500)
    assert recording.caption(2).shown == 500
    assert hud.caption_panel(recording.caption(2), 1.0).shape[0] > plain.shape[0]  # a line says so


# --- Recordings -----------------------------------------------------------------------------------------------------


def test_thinning_out_shows_the_same_particles_in_every_frame(recorded):
    (x, v), *_ = cloud(1000)
    recording = recorded((x, v), (x + 1, v))
    recording.shown.thin_out(5000)
    assert recording.shown.count == 1000
    recording.shown.thin_out(100)
    before, after = recording.past(0).position, recording.past(1).position
    assert before.shape == (100, 3) and len(np.unique(before, axis=0)) == 100
    np.testing.assert_allclose(after - before, 1, atol=1e-5)


def test_new_frames_are_seen_while_the_run_goes_on(tmp_path):
    path, frames = tmp_path / "run.h5", cloud(50, 6, 2)
    writer = record(path, frames[:2], planned=6)
    with writer, Trajectory(path) as run:
        recording = RecordedSource(run)
        assert recording.frames == 2
        append(writer, 2, *frames[2])
        scale = recording.speeds
        assert recording.refresh() == 3 and recording.speeds == scale  # colours stay
        append(writer, 3, frames[3][0], 9 * frames[3][1])
        assert recording.refresh() == 4 and recording.speeds != scale  # until the run has doubled


# --- Pictures without a screen --------------------------------------------------------------------------------------


def test_bright_pixels_are_where_the_bodies_are(egl, recorded):
    for dimensions in (2, 3):
        position = np.array([[-1.0, 0.2, 0.1], [1, -0.3, 0.5], [0.1, 0.6, -0.8], [0, -0.7, 0]])[:, :dimensions]
        recording = recorded((position, np.ones_like(position)))
        picture = draw_frame(recording, 0, SIZE, with_hud=False)
        expected = recording.home().project(recording.past(0).position, SIZE)
        light = picture.astype(int).max(axis=2)
        for x, y in expected:
            column, row = int(x), int(y)
            patch = light[row - 8 : row + 9, column - 8 : column + 9].astype(float)
            assert patch.max() > 150
            rows, columns = np.indices(patch.shape) - 8
            weight = np.where(patch > 100, patch, 0.0)
            centre = np.array([(weight * columns).sum(), (weight * rows).sum()]) / weight.sum()
            np.testing.assert_allclose(np.add(centre, (column + 0.5, row + 0.5)), [x, y], atol=0.7)
        assert (light < 40).mean() > 0.95


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("power", [66, -66, 110])
def test_a_picture_does_not_depend_on_the_units(egl, recorded, power):
    """A galaxy in metres, 2^66 of them: its square is beyond the float32 of a shader."""
    (position, velocity), *_ = cloud(500, dimensions=2)
    sources = [recorded((position * unit, velocity * unit)) for unit in (1.0, 2.0**power)]
    one, other = (draw_frame(source, 0, SIZE, with_hud=False).astype(int) for source in sources)
    assert one.max() > 100 and np.abs(one - other).max() <= 1


def test_the_frame_changes_the_picture_and_nothing_else_does(egl, recorded):
    recording = recorded(*cloud(300, 3))
    first, again, third = (draw_frame(recording, k, SIZE, False).astype(int) for k in (0, 0, 2))
    np.testing.assert_array_equal(first, again)
    assert (abs(first - third).max(axis=2) > 40).mean() > 0.05
    for size, (bottom, right), ink in (((800, 600), (235, 290), 0.05), ((480, 300), (140, 130), 0.03)):
        plain, text = (draw_frame(recording, 0, size, hud).astype(int) for hud in (False, True))
        changed = abs(plain - text).max(axis=2) > 20
        assert changed[:bottom, :right].mean() > ink  # a small picture has a small caption and legend
        assert not changed[bottom:].any() and not changed[:, right:].any()


@pytest.fixture
def renderer(egl, recorded):
    """Makes renderers of one frame of bodies."""
    from vispy import app

    from nbody.viewer.gl.renderer import PictureRenderer

    canvas = app.Canvas(size=(16, 16), show=False, dpi=96)

    def make(position, velocity, **options):
        found = PictureRenderer(canvas, recorded((position, velocity)), **options)
        found.load(0)
        return found

    yield make
    canvas.close()


def test_the_light_of_all_particles_is_the_same_whatever_their_number_and_size(renderer):
    """Σ light = (R pixels)² by construction, of which the colours take a share that is the same for equal speeds.
    The Gaussian's tail beyond 3σ is 1.1 %, and its sampling at σ = 0.6 pixels another 1 %."""
    share = []
    for count in (600, 3000, 100_000):
        angle = np.arange(count) * np.pi * (3 - np.sqrt(5))
        position = (0.8 * np.sqrt((np.arange(count) + 0.5) / count) * np.stack([np.cos(angle), np.sin(angle)])).T
        drawn = renderer(position, np.ones_like(position))
        assert drawn.home.radius < 0.9
        drawn.home.radius = 0.9  # all inside the picture
        for size, scale in ((SIZE, 1.0), ((800, 600), 1.0), (SIZE, 3.0)):
            drawn.sprites.draw(drawn.home, size, scale)
            pixels = drawn.home.pixels_per_length(size)
            share.append(drawn.sprites.read().sum() / (drawn.source.home().radius * pixels) ** 2)
    assert min(share) > 0.1
    np.testing.assert_allclose(share, share[0], rtol=0.04)


def test_a_window_draws_no_more_bodies_than_it_can_and_loses_no_light(renderer, monkeypatch):
    """Also when it is zoomed in; what it shows is what it reads. 1000 of 8000 bodies: the light in the picture is that of
    the bodies inside, whose number has a standard deviation of about 1/√1000 = 3 % (five times that is allowed)."""
    monkeypatch.setattr("nbody.viewer.gl.renderer.MOST_ON_A_CPU", 1000)
    monkeypatch.setattr("nbody.viewer.gl.renderer.MOST_IN_A_WINDOW", 1000)
    (position, velocity), *_ = cloud(8000)
    still, window = renderer(position, velocity), renderer(position, velocity, exact=False)
    assert still.source.shown.count == 8000 and window.source.shown.count == 1000
    assert window.moment.first.position.shape == (1000, 3)
    for zoom in (1.0, 3.0):
        light = []
        for each in (still, window):
            camera = each.home.copy()
            camera.radius /= zoom
            each.draw(camera, SIZE)
            light.append(each.sprites.read().sum())
        assert light[1] == pytest.approx(light[0], rel=0.16)


def test_between_two_frames_bodies_follow_the_cubic_through_positions_and_velocities(egl, recorded):
    """The cubic reproduces the parabola of a constant acceleration: at 0.25 the body is at x = 0.0625, not 0.25."""
    still = np.array([[-1.0, -1.0], [1.0, 1.0]])
    ends = [np.vstack([still, [[x, 0.5]]]) for x in (0.0, 1.0)]
    speeds = [np.vstack([0 * still, [[20.0 * x, 0.0]]]) for x in (0.0, 1.0)]  # the frames are 0.1 apart
    recording = recorded(*list(zip(ends, speeds, strict=True)))
    picture = draw_frame(recording, 0.25, SIZE, with_hud=False)
    x, y = recording.home().project(np.array([[0.0625, 0.5, 0.0]]), SIZE)[0].astype(int)
    row = picture[y - 3 : y + 4].max(axis=(0, 2))
    assert abs(int(row.argmax()) - x) <= 3


def test_a_dense_core_is_not_burnt_out_to_white_and_arms_are_seen_beside_it(egl, recorded):
    rng = np.random.default_rng(4)
    core, halo = 0.08 * rng.standard_normal((20_000, 2)), rng.uniform(-1, 1, (4000, 2))
    position = np.concatenate([core, halo])
    velocity = np.concatenate([np.ones_like(core), 5 * np.ones_like(halo)])
    source = recorded((position, velocity))
    picture = draw_frame(source, 0, SIZE, with_hud=False).astype(int)
    x, y = source.home().project(np.zeros((1, 3)), SIZE)[0].astype(int)
    middle = picture[y - 2 : y + 3, x - 2 : x + 3].reshape(-1, 3).mean(axis=0)
    assert middle.max() > 180 and middle.max() - middle.min() > 30, middle  # bright, and of a colour
    assert middle[0] > middle[2]  # the slow core is warm
    arm = picture[y - 90 : y + 90, x + 70 : x + 100].max(axis=2)  # the surface is 500 times fainter here
    sky = picture[5, 5].max()
    assert arm.mean() > 2.5 * sky and np.quantile(arm, 0.95) > 6 * sky, (arm.mean(), np.quantile(arm, 0.95), sky)
    assert (picture.min(axis=2) > 240).mean() == 0


def test_without_half_floats_a_single_particle_among_many_is_still_seen(renderer, monkeypatch):
    from nbody.viewer.gl import renderer as module

    monkeypatch.setattr(module, "float_targets_work", lambda canvas: False)
    for count in (10, 100_000):
        (position, velocity), *_ = cloud(count, dimensions=2)
        position[0] = [2.9, 0.0]
        drawn = renderer(position, velocity)
        drawn.sprites.draw(drawn.home, (1280, 720))
        assert drawn.sprites.format == "rgba8"
        x, y = drawn.home.project(np.array([[2.9, 0.0, 0.0]]), (1280, 720))[0].astype(int)
        assert drawn.sprites.read()[y - 2 : y + 3, x - 2 : x + 3].max() > 0


# --- The command ----------------------------------------------------------------------------------------------------


@pytest.fixture
def run_file(tmp_path):
    return record(tmp_path / "run.h5", cloud(50, 3, 2))


def test_invalid_view_options_are_refused(run_file, tmp_path, refused):
    png = tmp_path / "out.png"
    (tmp_path / "text.h5").write_text("not HDF5")
    shot = (run_file, "--screenshot")
    for arguments, words in (
        ((tmp_path / "none.h5",), "there is no such file"),
        ((tmp_path,), "is a directory"),
        ((tmp_path / "text.h5", "--screenshot", png), "not an HDF5 file"),
        ((ROOT / "scenarios/disk.yaml", "--screenshot", png), "nbody run"),
        ((*shot, png, "--camera", "fram"), "run, frame or a file"),
        ((*shot, png, "--camera", "none.yaml"), "there is no such file"),
        ((*shot, png, "--track", "99"), "com, densest, a species or a body of the run"),
        ((*shot, png, "--track", "9" * 5000), "com, densest, a species or a body of the run"),
        ((*shot, png, "--frame", 3), "frames 0 to 2"),
        ((*shot, png, "--frame", -4), "-1 to -3"),
        ((*shot, png, "--follow"), "--follow: is for the window"),
        ((*shot, png, "--fps", "10"), "--fps: is for the window"),
        ((*shot, png, "--size", "large"), "1280x720"),
        ((*shot, png, "--size", "1x1"), "16 to 16384"),
        ((*shot, tmp_path / "no/out.png"), "there is no folder"),
        ((*shot, tmp_path / "out.jpg"), ".png"),
        ((*shot, tmp_path), ".png"),
        ((*shot, png, "--color", "sped"), "--color: unknown color 'sped' (did you mean 'speed'?)"),
        ((*shot, png, "--trails", "sun"), "ids like 0,3,7"),
        ((*shot, png, "--exposure", "99"), "--exposure 99: must be -8 to 8"),
    ):
        assert words in refused("view", *arguments), arguments
    assert not png.exists()


def test_what_is_missing_for_a_window_is_named(run_file, refused, monkeypatch):
    pytest.importorskip("PySide6")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    assert "--screenshot" in refused("view", run_file)
    monkeypatch.setenv("DISPLAY", ":4711")
    monkeypatch.setattr(opengl, "missing_packages", lambda libraries: ["libxcb-cursor0"])
    assert "apt install libxcb-cursor0" in refused("view", run_file)
    monkeypatch.setattr(opengl, "missing_packages", lambda libraries: [])
    if not opengl.missing_packages({"libxcb.so.1": "libxcb1"}):
        assert "':4711' (DISPLAY) does not answer" in refused("view", run_file)
    monkeypatch.setattr(backends, "find_spec", lambda name: None)
    assert "[view]'; or" in refused("view", run_file)


def test_missing_egl_names_the_packages(monkeypatch):
    monkeypatch.setattr(opengl, "missing_packages", lambda libraries: ["libegl1"])
    error = backends.no_screenless(RuntimeError("Could not import app backend:\nEGL library not found"))
    assert isinstance(error, DeviceError)
    assert "EGL library not found" in str(error) and "apt install libegl1 libgl1-mesa-dri" in str(error)


def test_a_picture_that_exists_is_kept_under_a_numbered_name(egl, run_file, tmp_path, capsys):
    png = tmp_path / "out.png"
    png.write_bytes(b"mine")
    shot = ["view", str(run_file), "--screenshot", str(png), "--size", "64x48"]
    assert main([*shot, "--frame", "-3"]) == 0
    said = capsys.readouterr()
    assert "out.1.png" in said.err and "frame 0 of 0 to 2" in said.out
    assert (tmp_path / "out.1.png").read_bytes() == b"mine" and png.read_bytes()[:4] == b"\x89PNG"
    assert main([*shot, "--overwrite"]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.1.png", "out.png", "run.h5"]


def test_a_damaged_frame_is_refused_and_leaves_no_picture(egl, run_file, tmp_path, refused):
    data = run_file.read_bytes()
    with Trajectory(run_file) as run:
        row = run.position[1].astype("f4")
    at = data.index(np.pad(row, ((0, 0), (0, 1))).tobytes())
    run_file.write_bytes(data[: at + 5] + bytes([data[at + 5] ^ 1]) + data[at + 6 :])
    png = tmp_path / "out.png"
    assert "frame 1" in refused("view", run_file, "--screenshot", png, "--frame", 1)
    assert not png.exists()
    assert main(["view", str(run_file), "--screenshot", str(png), "--frame", "2", "--size", "64x48"]) == 0


# --- A window -------------------------------------------------------------------------------------------------------


def test_a_window_plays_pauses_scrubs_turns_and_shows_it(display, tmp_path):
    from PIL import Image

    path = record(tmp_path / "run.h5", cloud(300, 40))
    done = program("viewer_session", path, tmp_path, env=on_screen(display), cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout)
    assert seen["played"]["playing"] and not seen["paused"]["playing"]
    assert [seen[act]["frame"] for act in ("home", "right", "ten", "end")] == [0, 1, 11, 39]
    assert seen["clicked"]["frame"] == pytest.approx(20, abs=1)
    assert seen["dragged"]["azimuth"] < seen["ten"]["azimuth"] and seen["dragged"]["centre"] == seen["ten"]["centre"]

    def shown(act):
        return np.asarray(Image.open(tmp_path / f"{act}.png").convert("RGB")).astype(int)

    for before, after in (("home", "right"), ("ten", "dragged"), ("clicked", "end")):
        assert (abs(shown(before) - shown(after)).max(axis=2) > 40).mean() > 0.005, f"{after} looks like {before}"
    changed = abs(shown("end") - shown("bare")).max(axis=2) > 40
    assert changed[-30:].sum() > 500 and changed[:160, :280].sum() > 500  # the time line and the caption are gone
    assert not changed[240:-120].any()

    row = int(done.stderr.split()[0])
    assert seen["chosen"]["chosen"] == row and seen["followed"]["follow"] == "body"
    for act in ("followed", "moved"):  # the body is in the middle, also in another frame
        np.testing.assert_allclose(seen[act]["centre"], seen[act]["body"])
        np.testing.assert_allclose(seen[act]["pixel"], (640, 360))
    assert seen["moved"]["frame"] == 0 and seen["moved"]["body"] != seen["followed"]["body"]
    for act in ("chosen", "followed", "moved"):  # the ring is where the body is
        x, y = np.rint(seen[act]["pixel"]).astype(int)
        angle = np.linspace(0, 2 * np.pi, 100)
        circle = shown(act)[np.rint(y + 10 * np.sin(angle)).astype(int), np.rint(x + 10 * np.cos(angle)).astype(int)]
        assert (circle.max(axis=1) > 120).mean() > 0.9, act
    assert seen["centre"]["follow"] == "com"
    panel = np.s_[20:320, -340:-20]  # at the top right
    assert (abs(shown("centre") - shown("drawn"))[panel].max(axis=2) > 40).sum() > 1000  # the curves
    moved = abs(shown("drawn") - shown("earlier"))[40:100, -290:-30].max(axis=2) > 40
    assert moved.all(axis=0).sum() in range(1, 10)  # the cursor, before and after
    assert (abs(shown("earlier") - shown("keys"))[100:500, 300:900].max(axis=2) > 80).mean() > 0.02  # the table
    assert {"test-00010.png", "test-camera.yaml"} <= {path.name for path in tmp_path.iterdir()}
    assert "--camera test-camera.yaml" in seen["viewed"]["notice"]
    saved = np.asarray(Image.open(tmp_path / "test-00010.png"))
    assert saved.shape == (720, 1280, 3) and abs(saved[:300] - shown("earlier")[:300]).max() <= 2  # but without the keys
    assert "◀" in seen["backward"]["status"] and seen["backward"]["frame"] < 39
    small = shown("small")
    assert small.shape[:2] == (400, 500) and (small[-90:-40, 14:480].max(axis=2) > 150).sum() > 300  # the help


def test_size_and_text_are_those_of_a_window_too(run_file, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "nbody.cli.live.view_scenario", lambda settings, output, overwrite, view, screen, memory: seen.append(view) or 0
    )
    monkeypatch.setattr("nbody.viewer.window.show.Desktop.show", lambda screen, source, transport, view: seen.append(view))
    monkeypatch.setattr("nbody.viewer.backends.check_window", lambda: None)
    monkeypatch.setattr("nbody.viewer.window.show.Desktop.check", lambda screen: None)
    for run in ("plummer", run_file):
        assert main(["view", str(run), "--size", "320x200", "--no-hud", "--axes"]) == 0
    assert seen == [Display(Look(axes=True), size=(320, 200), hud=False)] * 2


def test_an_interrupt_closes_the_window(display, tmp_path):
    path = record(tmp_path / "run.h5", cloud(30, 4))
    done = program("interrupted_view", path, env=on_screen(display))
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_the_recording_has_a_frame_before_it_is_shown(tmp_path):
    class Empty:
        path, resolved = "run.h5", {}

        def __len__(self):
            return 0

    with pytest.raises(InputError, match="has no frame yet"):
        RecordedSource(Empty())


def test_a_picture_that_opengl_cannot_draw_is_refused(run_file, tmp_path, refused, monkeypatch, egl):
    """As where a limit of the memory leaves no place for its textures."""

    def fail(*arguments):
        raise RuntimeError("FrameBuffer attachments are incomplete.")

    monkeypatch.setattr("nbody.viewer.gl.renderer.PictureRenderer.draw", fail)
    said = refused("view", run_file, "--screenshot", tmp_path / "big.png", "--size", "64x48")
    assert "OpenGL can't draw a picture of 64x48 here" in said and not list(tmp_path.glob("*big*"))


def test_the_colour_that_the_footer_names_is_the_one_of_the_picture(egl, recorded, monkeypatch):
    from nbody.viewer.window.offscreen import OffscreenWindow

    source = recorded(*cloud(5000, 2))
    clock = Playback(source.frames)
    clock.playing = False
    window = OffscreenWindow(source, clock, Display(Look(color="density"), size=(480, 300)))
    window.draw()

    def refuse(*problem, where):
        raise InputError(f"{where}the tree has no such law")

    monkeypatch.setattr("nbody.forces.choose.choose", refuse)
    window.key("C", False)  # to the potential, which can't be computed
    window.draw()
    assert window.due and "--color potential: the tree has no such law" in window.notice
    window.draw()
    color = window.controls.look.color
    assert color not in ("density", "potential") and f"color: {color}" in window.notice
    assert window.renderer.look.color == color and not window.renderer.problem
    window.close()
