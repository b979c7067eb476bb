"""What the window shows besides the bodies, as plain functions: keys, chosen body, what it follows, diagrams, the view."""

import threading
from contextlib import closing

import numpy as np
import pytest
from conftest import said
from recordings import cloud

import nbody
from nbody.diagnostics import density_centre, lagrangian_radii
from nbody.diagnostics.observables import ALWAYS
from nbody.diagnostics.structure import FRACTIONS
from nbody.errors import InputError
from nbody.forces.reference import direct_sum
from nbody.particles import Particles
from nbody.trajectory import Frame, RunHeader, Trajectory, TrajectoryWriter
from nbody.viewer.display.body import body_panel, facts
from nbody.viewer.display.diagram import draw_diagram
from nbody.viewer.display.hud import Timeline
from nbody.viewer.display.text import MARGIN, key_table, state_panel, text_scale
from nbody.viewer.picture.aim import Aim, Follow
from nbody.viewer.picture.camera_file import read_path, save_camera
from nbody.viewer.sources.camera import Camera
from nbody.viewer.sources.live import LiveSeries
from nbody.viewer.sources.recording import RecordedSource
from nbody.viewer.sources.samples import RecordedSeries
from nbody.viewer.sources.source import Series
from nbody.viewer.window.clock import LOOPS, Playback
from nbody.viewer.window.controls import LEFT, Controls
from nbody.viewer.window.panels import Layout

SIZE = (640, 400)
RESOLVED = {"name": "test", "gravity": {"G": 2.0, "dimensions": 3, "softening": "plummer", "length": 0.1}}


@pytest.fixture
def recording(recorded):
    """A function that makes recordings whose ids begin at 100 and whose masses grow."""

    def make(frames, resolved=RESOLVED):
        numbers = np.arange(len(frames[0][0]))
        return recorded(*frames, mass=1.0 + numbers, id=100 + numbers, resolved=resolved)

    return make


# --- The clock ------------------------------------------------------------------------------------------------------


def test_playback_runs_backward_and_through_moments_between_frames():
    playback = Playback(10, rate=10)
    playback.seek(5)
    playback.reverse()
    playback.advance(0.25)
    assert playback.at == pytest.approx(2.5)
    playback.step(1)
    assert playback.at == 3
    playback.seek(2.5)
    playback.step(-1)
    assert playback.at == 2 and "paused" in playback.status
    for far, end in ((-99, 0), (99, 9)):
        playback.step(far)
        playback.advance(99)  # paused
        assert playback.at == end


def test_playback_counts_seconds_and_not_drawings():
    even, late = Playback(100, rate=10), Playback(100, rate=10)
    for _ in range(20):
        even.advance(0.125)
    late.advance(2.5)
    assert even.at == late.at == 25


def test_the_pictures_per_second_are_measured_and_told_where_they_are_fewer(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("nbody.viewer.window.clock.perf_counter", lambda: now[0])
    playback = Playback(100, rate=30)
    for number in range(31):
        now[0] = number / 10
        playback.drawn()
        assert (playback.status == "▶ 30 frames/s in 10 pictures") == (number >= 10)
    now[0] = 9.0
    assert playback.status == "▶ 30 frames/s"  # after a pause


@pytest.mark.parametrize("loop,ends", [("repeat", (2.0, True)), ("there and back", (9.0, True)), ("once", (9.0, False))])
def test_at_the_end_playback_does_what_the_loop_says(loop, ends):
    playback = Playback(10, rate=10)
    for _ in range(LOOPS.index(loop)):
        playback.next_loop()
    playback.seek(8)
    playback.advance(0.4)
    assert (playback.at, playback.playing) == (pytest.approx(ends[0]), ends[1])
    playback.toggle() if loop == "once" else playback.advance(0.2)
    assert playback.at == pytest.approx({"repeat": 4.0, "there and back": 7.0, "once": 0.0}[loop])


def test_new_frames_are_looked_for_in_the_source_and_an_error_stops_that():
    class Growing:
        def refresh(self):
            if self.fails:
                raise InputError("gone")
            return 20

        def waiting(self, at):
            return False

    source = Growing()
    source.fails = False
    playback = Playback(10, 10, True, source)
    playback.seek(9)
    assert "the newest frame" in playback.status
    assert playback.advance(0.6) and playback.frames == 20 and playback.at > 9
    assert playback.status == "▶ 10 frames/s, then waits for new frames"
    source.fails = True
    playback.advance(0.6)
    assert playback.message == "gone" and playback.status == "❚❚ paused, 10 frames/s"


# --- The view -------------------------------------------------------------------------------------------------------


def test_one_view_holds_for_the_whole_run_and_shows_its_beginning_and_end(recording):
    (x, v), *_ = cloud(500)
    source = recording([(x, v), (1.5 * x, v), (0.4 * x, v)])
    home = source.home()
    own = [source.home(k).radius for k in range(3)]
    assert own[2] < own[0] <= home.radius <= own[1]
    assert Aim().view(source, 2).radius == home.radius and Aim("frame").view(source, 2).radius == own[2]


def test_a_run_that_flies_apart_does_not_begin_as_a_dot(recording):
    (x, v), *_ = cloud(500)
    source = recording([(x * 10.0**k, v) for k in range(4)])
    assert source.home().radius == pytest.approx(3 * source.home(0).radius)


def test_a_camera_file_gives_the_view_back(tmp_path):
    path, unit = tmp_path / "view.yaml", 4.0
    seen = Camera(np.array([1.0, -2.0, 3.0]), 2.5, azimuth=7.0, elevation=-0.5)
    save_camera(seen, unit, path)
    found = read_path(path, unit)(Camera(), 0)
    np.testing.assert_allclose(found.view(), seen.view(), atol=2e-5)
    path.write_text("radius: 8\n")
    found = read_path(path, unit)(seen, 0)
    assert found.radius == pytest.approx(2) and found.azimuth == 7.0
    for wrong, words in (
        ("radius: 0", "greater than 0"), ("elevation: 91", "-90 to 90"), ("centre: [1]", "[x, y]"),
        ("radios: 1", "did you mean 'radius'"), ("radius: [", "not valid YAML"), ("azimuth: .inf", "number"),
    ):  # fmt: skip
        path.write_text(wrong)
        told = said(read_path, path, unit)
        assert words in told and str(path) in told


# --- Following ------------------------------------------------------------------------------------------------------


def test_the_camera_follows_a_body_along_its_curve(recording):
    source = recording(cloud(50, 3))
    camera, moment = source.home(), source.moment(1.3)
    follow = Follow(source, "107")
    follow.aim(camera, moment)
    np.testing.assert_allclose(camera.centre, moment.positions(7))
    np.testing.assert_allclose(camera.project(moment.positions(7)[None], SIZE), [[320, 200]])
    assert follow.label == "body 107" and Aim(track="107").view(source, 1.3).centre.tolist() == camera.centre.tolist()


def test_the_camera_follows_the_centre_of_mass_and_the_densest_point(recording):
    frames = cloud(300, 2)
    source = recording(frames)
    mass = source.catalogue.mass
    expected = [mass @ x.astype("f4") / mass.sum() for x, _ in frames]
    for share in (0.0, 0.25):
        found = Follow(source, "com").point(source.moment(share))
        np.testing.assert_allclose(found, (1 - share) * expected[0] + share * expected[1], atol=1e-6)
    densest = Follow(source, "densest").point(source.moment(0))
    np.testing.assert_allclose(densest, density_centre(source.run.particles(0)), atol=1e-6)


def test_a_species_is_followed_by_its_centre_of_mass(recording):
    frames = cloud(60, 2)
    source = recording(frames)
    source.catalogue.species, source.catalogue.species_names = np.arange(60) % 3 // 2, ("disk", "halo")
    chosen, follow = source.catalogue.species == 1, Follow(source, "halo")
    mass = source.catalogue.mass[chosen]
    np.testing.assert_allclose(follow.point(source.moment(0)), mass @ frames[0][0][chosen] / mass.sum(), atol=1e-6)
    assert (follow.body, follow.label) == (None, "centre of halo")
    with pytest.raises(InputError, match="a species or a body of the run"):
        Follow(source, "hallo")


def test_the_centre_of_mass_is_that_of_the_masses_after_a_merger(tmp_path):
    """Bodies 0 and 1 of mass 1 and 3 merge; body 2 of mass 4 is twice as far from the origin as the merged one."""
    scenario = nbody.Scenario.from_dict(
        {
            "initial": {"file": "bodies.csv"},
            "gravity": {"softening": "plummer", "length": 0.01},
            "integrator": {"dt": 0.01, "steps": 20},
            "collisions": {"rule": "merge", "radius": 0.1},
            "engine": "reference",
            "precision": "float64",
        },
        folder=tmp_path,
    )
    table = "m,x,y,z,vx,vy,vz\n1,-0.15,0,0,2,0,0\n3,0.15,0,0,-2,0,0\n4,3,0,0,0,0,0\n"
    (tmp_path / "bodies.csv").write_text(table)
    nbody.Simulation(scenario, tmp_path / "run.h5").run()
    with Trajectory(tmp_path / "run.h5") as run, closing(RecordedSource(run)) as source:
        last, body = source.moment(len(run) - 1), source.home()
        np.testing.assert_allclose(last.first.mass, [0, 4, 4])
        mass, position = run.left(-1).mass, run.position[-1]
        np.testing.assert_allclose(Follow(source, "com").point(last), mass @ position / 8, atol=1e-6)
        Follow(source, "0").aim(body, last)
        assert np.array_equal(body.centre, source.home().centre)  # there is no such body any more


def test_a_body_that_is_followed_is_shown_when_others_are_left_out(recording):
    source = recording(cloud(1000))
    Follow(source, "777")
    source.shown.thin_out(100)
    assert 100 <= source.shown.count <= 101 and source.shown.body(source.shown.row(677)) == 677
    left_out = next(body for body in range(1000) if source.shown.row(body) is None)
    assert np.isnan(Follow(source, str(100 + left_out)).point(source.moment(0))).all()


def test_a_click_chooses_the_nearest_body_in_the_picture(recording):
    source = recording(cloud(200, 2))
    camera, positions = source.home(), source.moment(0.5).positions()
    for row in (3, 50, 199):
        x, y = camera.project(positions[row][None], SIZE)[0]
        assert camera.nearest(positions, (x + 0.1, y), SIZE, 14.0) == row
    assert camera.nearest(positions, (x + 28.0, -500.0), SIZE, 14.0) is None
    camera.centre, camera.radius = np.array([0.0, 0.0, 500.0]), 0.01  # all behind or beside it
    assert camera.nearest(positions, (320, 200), SIZE, 14.0) is None


def test_a_click_is_a_press_without_a_drag():
    ours = Controls(Camera(), Playback(101))
    line = Timeline(SIZE)
    ours.press((200, 100), LEFT, False, line)
    ours.move((201, 100), (200, 100), line, SIZE)
    assert ours.release()
    ours.press((200, 100), LEFT, False, line)
    ours.move((230, 100), (200, 100), line, SIZE)
    ours.move((200, 100), (230, 100), line, SIZE)
    assert not ours.release()
    ours.press((200, line.top + 2), LEFT, False, line)
    assert not ours.release()


def test_following_goes_from_the_body_to_the_centres_and_ends():
    ours = Controls(Camera(), Playback(101))
    seen = [(ours.next_follow(), ours.follow)[1] for _ in range(3)]
    assert seen == ["com", "densest", ""]
    ours.choose(3)
    assert [(ours.next_follow(), ours.follow)[1] for _ in range(4)] == ["body", "com", "densest", ""]
    ours.next_follow()
    ours.key("Escape")
    assert (ours.chosen, ours.follow, ours.closed) == (None, "", False)
    ours.key("Escape")
    assert ours.closed


def test_the_facts_about_a_body_are_those_of_the_run(recording):
    frames = cloud(40, 2)
    source = recording(frames)
    moment, row = source.moment(0.0), 7
    found = facts(source, moment, row)
    x, v = (each.astype("f4").astype(float) for each in frames[0])
    assert (found.id, found.mass, found.species) == (107, 8.0, "")
    np.testing.assert_allclose(found.position, x[row])
    np.testing.assert_allclose(found.velocity, v[row])
    assert found.kinetic_energy == pytest.approx(0.5 * 8.0 * (v[row] @ v[row]))
    potential = direct_sum(x, source.catalogue.mass, source.catalogue.gravity, np.array([row]))[1][0]
    assert found.potential == pytest.approx(potential)
    assert found.specific_energy == pytest.approx(0.5 * v[row] @ v[row] + potential)
    source.shown.thin_out(20)
    assert np.isnan(facts(source, source.moment(0.0), 3).potential)  # the others are not in the picture
    assert body_panel(found, True, 1.0).shape == (body_panel(found, False, 1.0).shape)


def test_facts_have_units_and_species_where_the_run_has_them(recording):
    class Units:
        def symbol(self, quantity):
            return {"mass": "Msun", "length": "pc", "velocity": "km/s", "energy": "Msun (km/s)^2", "time": "Myr"}[quantity]

    source = recording(cloud(10))
    plain = facts(source, source.moment(0), 4)
    catalogue = source.catalogue
    catalogue.units, catalogue.species, catalogue.species_names = Units(), np.arange(10) % 2, ("disk", "halo")
    found = facts(source, source.moment(0), 3)
    assert (found.species, found.units["length"], source.caption(0).time_unit) == ("halo", "pc", "Myr")
    assert body_panel(found, False, 1.0).shape[0] > body_panel(plain, False, 1.0).shape[0]  # a line more
    source = recording(cloud(10), RESOLVED | {"fields": [{"name": "nfw"}]})  # whose potential is missing here
    assert np.isnan(facts(source, source.moment(0), 4).specific_energy)


def test_units_of_the_picture_do_not_show_in_the_facts(recording):
    (x, v), *_ = cloud(10)
    far = recording([(x * 2.0**70, v * 2.0**50)])
    found = facts(far, far.moment(0), 4)
    assert far.length_unit > 1
    np.testing.assert_allclose(found.position, (x[4] * 2.0**70), rtol=1e-6)
    np.testing.assert_allclose(found.velocity, (v[4] * 2.0**50), rtol=1e-6)


def finished(source):
    """The series when the thread has ended."""
    source.series()
    for thread in threading.enumerate():
        if thread.name == "series":
            thread.join(20)
    return source.series()


def test_the_series_are_what_was_recorded_and_the_radii_are_computed(recording):
    frames = cloud(60, 5)
    source = recording(frames)
    series = finished(source)
    np.testing.assert_allclose(series.energy_error.values, np.arange(5) / 200, atol=1e-12)
    np.testing.assert_allclose(series.virial_ratio.values, 0.5 + np.arange(5) / 10)
    assert series.complete and series.radii.values.shape == (5, 3)
    np.testing.assert_allclose(series.radii.values[3], lagrangian_radii(source.run.particles(3)))
    np.testing.assert_allclose(series.radii.time, source.run.time)


def test_recorded_radii_are_shown_at_once_and_not_computed_again(tmp_path):
    (x, v), *_ = cloud(20)
    path = tmp_path / "run.h5"
    radii = np.array([[1.0, 2.0, 3.0], [1.5, 2.5, 3.5]])
    header = RunHeader(2, "float32", resolved=RESOLVED, observables=ALWAYS | {"lagrangian_radii": 3})
    with TrajectoryWriter(path, Particles(np.ones(20), x, v), header) as writer:
        for k in range(2):
            writer.append(Frame(k, 0.1 * k, x, v, {"lagrangian_radii": radii[k]}))
    before = set(threading.enumerate())
    with Trajectory(path) as run:
        series = RecordedSeries(run).read()
        assert set(threading.enumerate()) == before and series.complete
        assert np.array_equal(series.radii.values, radii) and series.fractions == FRACTIONS


def test_a_live_run_adds_points_and_forgets_them_when_it_begins_again(recording, monkeypatch):
    monkeypatch.setattr("nbody.viewer.sources.live.INTERVAL", 0.0)
    (x, v), *_ = cloud(60)
    source = recording([(x, v)])
    frame, series = source.past(0), LiveSeries(source)
    assert not len(series.read().times)
    kinetic = 0.5 * source.catalogue.mass @ (v**2).sum(axis=1)
    for k in range(3):
        series.add(0.1 * k, -2 * kinetic, np.nan if k == 0 else 1e-3 * k, frame)
    found = series.read()
    np.testing.assert_allclose(found.energy_error.values, [1e-3, 2e-3])
    np.testing.assert_allclose(found.virial_ratio.values, 1 / 3, rtol=1e-5)  # W = E - T = -3 T
    np.testing.assert_allclose(found.radii.values[1], lagrangian_radii(source.run.particles(0)), rtol=1e-5)
    series.add(0.0, -kinetic, 0.0, frame)
    assert series.read().radii.time.tolist() == [0.0]


@pytest.mark.parametrize("size", [(340, 310), (460, 95)], ids=["stacked", "side by side"])
def test_the_cursor_of_the_diagrams_is_at_the_time_shown(recording, size):
    series = finished(recording(cloud(60, 5)))
    drawn = draw_diagram(series, size, 1.0)
    assert drawn.image.shape == (size[1], size[0], 4)
    for time, share in ((0.0, 0.0), (0.1, 0.25), (0.4, 1.0)):
        lines = drawn.cursor(time, 1.0)
        assert len(lines) == 3
        for (x, y, _), (left, top, right, bottom) in zip(lines, drawn.boxes, strict=True):
            assert abs(x - (left + share * (right - left))) <= 1 and top == y < bottom <= size[1]
    assert drawn.cursor(0.5, 1.0) == [] and draw_diagram(Series(), size, 1.0).image.any()
    for left, top, right, bottom in drawn.boxes:  # each has a curve: pixels of a saturated colour
        inside = drawn.image[top:bottom, left:right, :3].astype(int)
        assert ((inside.max(axis=2) - inside.min(axis=2)) > 60).sum() > 20


# --- Text and places ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [400, 500, 640, 1280, 2560, 4000])
def test_help_fits_into_the_window_at_every_width(width):
    ours = Controls(Camera(), Playback(9))
    size = (width, round(width * 0.75))
    scale = text_scale(size)
    state = state_panel("▶ 30 frames/s", "a notice " * 30, ours.hints, width - 2 * MARGIN * scale, scale)
    table = key_table(ours.key_table, size, scale)
    for image in (state, table):
        assert image.shape[1] <= width and image.shape[0] <= size[1]
        # Text has strokes: bright pixels, none of them at the panel's edges, where text would be cut off.
        bright = image[..., :3].max(axis=2) > 150
        assert bright.sum() > 200 and not bright[:, -2:].any() and not bright[-2:].any()
    assert 0.75 <= scale <= 3.0


def test_panels_do_not_cover_each_other():
    layout = Layout((10, 10, 610, 410), 5, ((10, 10, 280, 160),))
    assert layout.place((250, 100)) == (10, 165, 260, 265)
    assert layout.place_wide((200, 300), 90) == (410, 10, 610, 310)
    assert layout.place_wide((400, 300), 90) == (10, 315, 610, 410)
    assert layout.place((400, 10)) is None
