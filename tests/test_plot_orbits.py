"""Plots of orbital elements, of the angles of a resonance, and of paths between frames that are far apart."""

import re

import numpy as np
import pytest

import nbody
from nbody.cli import main
from nbody.errors import InputError
from nbody.initial.orbit import on_orbit, true_anomaly
from nbody.trajectory import Frame, RunHeader, TrajectoryWriter

SHAPES = ((0.3, 0.7, 0.4, 1.0, 2.0), (2.0, 0.1, 0.2, 3.0, 0.5), (1.5, 1.6, 2.5, 0.0, 1.0))
"""q, e, inc, Omega and omega of three bodies without mass about a star of mass 1."""


def record(path, dt=0.5, frames=12, backwards=False):
    """A star at rest with bodies on exact orbits, and the time of their pericentre half way."""
    times = dt * np.arange(frames)
    moments = []
    for t in times:
        rows = [(np.zeros(3), np.zeros(3))]
        for q, e, *angles in SHAPES:
            mean = (t - times[-1] / 2) / abs(q / (1 - e)) ** 1.5
            rows.append(on_orbit(1.0, q, e, true_anomaly(mean, e), *angles))
        moments.append([np.array(each) for each in zip(*rows, strict=True)])
    names = {"species": np.arange(4), "species_names": ("star", "b", "c", "d")}
    first = nbody.Particles([1.0, 0, 0, 0], *moments[0], **names)
    units = {"length": "kpc", "mass": "Msun", "time": "kpc s/km", "velocity": "km/s"}
    header = RunHeader(frames, "float64", resolved={"name": "exact", "gravity": {"G": 1.0}, "units": units}, observables={})
    writer = TrajectoryWriter(path, first, header)
    for k, (x, v) in enumerate(moments):
        writer.append(Frame(k, times[k], x, -v if backwards else v, {}))
    writer.close()
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return record(tmp_path_factory.mktemp("orbits") / "run.h5")


def test_the_overview_of_bodies_about_one_shows_their_orbits(run):
    """Profiles, virial ratios and radii of half of the mass say nothing of planets."""
    labels = [axes.get_ylabel() for axes in nbody.plot(run).axes if axes.axison]
    assert labels == ["y [kpc]", "semi-major axis a [kpc]", "eccentricity e"]  # it has no energies


def test_elements_are_those_of_the_trajectory_in_the_units_of_the_axes(run):
    figure = nbody.plot(run, "elements", "P", "M", bodies=[1, 2])
    with nbody.Trajectory(run) as opened:
        orbits = opened.orbits(bodies=[1, 2])
    gigayears = 977.79222168 / 1000
    expected = {
        "semi-major axis a [kpc]": orbits.a,
        "eccentricity e": orbits.e,
        "inclination i [°]": orbits.inc,
        "longitude of pericentre ϖ [°]": orbits.pomega,
        "period P [Gyr]": orbits.P * gigayears,
        "mean anomaly M [°]": orbits.M,
    }
    assert [axes.get_ylabel() for axes in figure.axes] == [*expected]
    for axes, values in zip(figure.axes, expected.values(), strict=True):
        np.testing.assert_allclose([line.get_ydata() for line in axes.lines], values.T, rtol=1e-9)
        np.testing.assert_allclose(axes.lines[0].get_xdata(), 0.5 * gigayears * np.arange(12))
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["b", "c"]


def test_the_focus_is_left_out_unless_it_is_named_and_a_hyperbola_has_no_period(run):
    (axes,) = nbody.plot(run, "P").axes
    assert [np.isfinite(line.get_ydata()).all() for line in axes.lines] == [True, True, False]
    with pytest.raises(InputError, match="body 0 is the focus and has no orbit"):
        nbody.plot(run, "a", bodies=[0, 1])
    assert len(nbody.plot(run, "a", bodies=[1, 2], about=0).axes[0].lines) == 2


def test_all_planets_of_the_solar_system_are_drawn_and_look_different(tmp_path):
    system = nbody.solar_system()
    nbody.simulate(system, steps=1, dt=0.01, engine="cpu", precision="float64", output=tmp_path / "a.h5").close()
    (axes,) = nbody.plot(tmp_path / "a.h5", "orbits").axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(system.species_names)
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.lines[::2]}) == 11


def test_the_angles_of_a_resonance_are_those_of_its_definition(run):
    (axes,) = nbody.plot(run, "resonance", bodies=[2, 1], resonance="3:1").axes
    with nbody.Trajectory(run) as opened:
        inner, outer = (opened.orbits(bodies=[k]) for k in (1, 2))
    assert axes.get_ylabel() == "3:1 of b and c [°]"
    for line, orbit in zip(axes.lines, (inner, outer), strict=True):
        angle = 3 * outer.l - inner.l - 2 * orbit.pomega
        difference = (line.get_ydata() - angle[:, 0]) % 360
        np.testing.assert_allclose(np.minimum(difference, 360 - difference), 0, atol=1e-9)
        assert np.abs(line.get_ydata()).max() <= 180


def test_without_a_choice_the_resonance_is_the_nearest_of_first_order(tmp_path):
    bodies = [{"m": 1, "name": "star"}, {"m": 1e-6, "P": 1, "name": "b"}, {"m": 1e-6, "P": 1.52, "name": "c"}]
    nbody.simulate(nbody.planets(bodies=bodies), steps=1, dt=0.01, engine="cpu", output=tmp_path / "a.h5").close()
    assert nbody.plot(tmp_path / "a.h5", "resonance").axes[0].get_ylabel() == "3:2 of b and c [°]"


@pytest.mark.parametrize("dt,frames", [(0.5, 12), (7.0, 5)])
def test_a_path_between_far_frames_is_the_ellipse_or_the_hyperbola(tmp_path, dt, frames):
    """Points on it fulfil its equation; the eccentric one makes up to seven turns between frames and is whole."""
    (axes,) = nbody.plot(record(tmp_path / "a.h5", dt, frames), "orbits", bodies=[1, 2, 3]).axes
    for line, (q, e, inc, node, argument) in zip(axes.lines[::2], SHAPES, strict=True):
        plane = np.stack([on_orbit(1.0, 1.0, 0.0, f, inc, node, argument)[0] for f in (0.0, np.pi / 2)])[:, :2]
        x, y = np.linalg.solve(plane.T, line.get_xydata().T)  # along the pericentre, and at right angles to it
        np.testing.assert_allclose(np.hypot(x, y) + e * x, q * (1 + e), rtol=1e-9)
        angle = np.unwrap(np.arctan2(y, x))
        assert len(x) > 2 * frames and (np.diff(angle) > 0).all() and np.diff(angle).max() < 0.8


def test_chords_remain_where_the_velocity_fits_no_orbit_through_both_frames(tmp_path, run):
    backwards = record(tmp_path / "a.h5", backwards=True)
    (axes,) = nbody.plot(backwards, "orbits", bodies=[2]).axes
    assert len(axes.lines[0].get_xdata()) == 12
    (axes,) = nbody.plot(record(tmp_path / "b.h5", dt=0.01), "orbits", bodies=[2]).axes
    assert len(axes.lines[0].get_xdata()) == 12  # frames are near enough


@pytest.mark.parametrize(
    "arguments,message",
    [
        (["resonance", "--resonance", "3"], "resonance: must be two different whole numbers, as in 3:2; got '3'"),
        (["resonance", "--bodies", "1"], "a resonance needs two bodies with orbits; give the ids of two"),
        (["a", "--about", "sun"], r"there is no focus 'sun'; give a body, 'inner' or 'centre' of mass"),
        (["a", "--about", "1"], "body 0 has no mass about it|body 2 has no mass about it"),
        (["e", "--bodies", "9"], "there is no body with the id 9; ids go from 0 to 3"),
    ],
)
def test_invalid_choices_are_refused(run, refused, arguments, message):
    assert re.search(message, refused("plot", str(run), *arguments))


def test_elements_are_exported_as_a_table(run, tmp_path, capsys, refused):
    out = tmp_path / "elements.csv"
    assert main(["export", str(run), str(out), "--elements", "--all"]) == 0
    assert capsys.readouterr().out.strip() == str(out)
    table = np.genfromtxt(out, delimiter=",", names=True)
    with nbody.Trajectory(run) as opened:
        orbits = opened.orbits()
    assert len(table) == 36 and table["id"][:4].tolist() == [1, 2, 3, 1]
    for name in ("a", "e", "inc", "pomega", "M", "T"):
        np.testing.assert_array_equal(table[name], getattr(orbits, name).ravel())
    np.testing.assert_array_equal(table["time"][::3], 0.5 * np.arange(12))
    assert main(["export", str(run), str(out), "--elements", "--frame", "0", "--about", "0", "--overwrite"]) == 0
    assert len(np.genfromtxt(out, delimiter=",", names=True)) == 3
    for arguments, line in (
        (["a.npz", "--elements"], "a.npz: elements and events are written to .csv files"),
        (["a.csv", "--about", "0"], "--about: belongs to --elements"),
        (["a.csv", "--elements", "--about", "sun"], "there is no focus 'sun'"),
        (["a.csv", "--events", "--all"], "--events: is one table of the whole run; leave --elements, --all"),
        (["a.csv", "--elements", "--format", "npz"], "--format: elements and events are written to .csv files"),
    ):
        assert line in refused("export", str(run), *arguments)


def test_the_command_draws_elements(run, tmp_path, capsys):
    out = str(tmp_path / "a.png")
    assert main(["plot", str(run), "a", "resonance", "--bodies", "1,2", "--resonance", "2:1", "--out", out]) == 0
    assert capsys.readouterr().out.startswith(f"{out}: a, resonance of")


def test_the_viewer_tells_the_orbit_of_a_chosen_planet(run):
    from nbody.viewer.display.body import facts
    from nbody.viewer.sources.recording import RecordedSource

    with nbody.Trajectory(run) as opened:
        source = RecordedSource(opened)
        assert [facts(source, source.moment(3), row).orbit for row in (0, 1, 3)] == [
            "", "a 1 kpc, e 0.7, i 22.92°", "a −2.5 kpc, e 1.6, i 143.2°",
        ]  # fmt: skip
        source.close()


def test_a_damaged_velocity_leaves_chords_and_a_long_path_some_arcs_out(tmp_path):
    path = record(tmp_path / "a.h5")
    with nbody.Trajectory(path) as opened:
        needle = opened.velocity[5].tobytes()[24:88]
    data = bytearray(path.read_bytes())
    data[data.index(needle)] ^= 1
    path.write_bytes(data)
    assert len(nbody.plot(path, "orbits", bodies=[1]).axes[0].lines[0].get_xdata()) == 12
    drawn = nbody.plot(record(tmp_path / "long.h5", 7.0, 300), "orbits", bodies=[1]).axes[0].lines[0].get_xdata()
    assert 5000 < np.isfinite(drawn).sum() <= 20_000
