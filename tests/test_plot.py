"""Plots of recordings: what the lines show, what the program says, the files it writes; and a recording in a notebook."""

import io
import math
import re

import numpy as np
import pytest
from matplotlib.colors import to_hex

import nbody
from nbody.analysis import PLOTS
from nbody.analysis.data import SAMPLES
from nbody.analysis.models import fitted
from nbody.analysis.panel import frames_per_oscillation
from nbody.cli import main
from nbody.diagnostics import density_centre, lagrangian_radii, radial_profile
from nbody.errors import InputError
from nbody.figures import SERIES
from nbody.particles import Particles
from nbody.trajectory import Frame, RunHeader, Trajectory, TrajectoryWriter

ENERGIES = {"kinetic_energy": 1, "potential_energy": 1, "total_energy": 1, "virial_ratio": 1}


def record(path, frames=5, count=300, dimensions=3, wide=None, energies=True, name="test", spoil=None, units=None):
    """A recording of a cloud that grows by 1 % per frame and rotates about z; its energy error at frame k is k/1000."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((count, dimensions))
    v = 0.3 * rng.standard_normal((count, dimensions))
    v[:, :2] += np.stack([-x[:, 1], x[:, 0]], axis=1)
    particles = Particles(np.full(count, 1 / count), x, v, np.arange(count) + 10)
    resolved = {"name": name} | ({"units": units} if units else {})
    header = RunHeader(frames, "float64", resolved=resolved, observables=ENERGIES | (wide or {}))
    writer = TrajectoryWriter(path, particles, header)
    for k in range(frames):
        energy = -0.25 - 0.25e-3 * k
        values = dict(zip(ENERGIES, (-energy, 2 * energy, energy, 0.5), strict=True))
        position = x * 1.01**k
        if k == spoil:
            position[7] = math.nan
        recorded = (values if energies else {}) | {each: np.full(size, 3.0 + k) for each, size in (wide or {}).items()}
        writer.append(Frame(k, 0.1 * k, position, v, recorded))
    writer.close()
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return record(tmp_path_factory.mktemp("plots") / "run.h5")


def lines(figure, panel=0):
    return [line.get_xydata() for line in figure.axes[panel].lines]


def texts(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


# --- What is drawn ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimensions", [2, 3])
def test_every_plot_has_labels_and_finite_data(tmp_path, dimensions):
    alone = {"transits", "megno", "lyapunov", "residuals"}  # in test_events.py, test_megno.py and below
    plots = set(PLOTS) - {"overview", "profile", "elements"} - alone
    figure = nbody.plot(record(tmp_path / "a.h5", dimensions=dimensions), *plots)
    assert len([axes for axes in figure.axes if axes.get_xlabel()]) == len(plots)
    for axes in figure.axes:
        assert axes.get_ylabel()
        drawn = [line.get_xydata() for line in axes.lines] + [points.get_offsets() for points in axes.collections]
        assert any(np.isfinite(data).any() for data in drawn if len(data))


def test_the_energy_error_is_the_recorded_one_with_a_line_per_run(run, tmp_path):
    other = record(tmp_path / "run.h5", frames=3)
    figure = nbody.plot([run, other], "energy")
    first, second = lines(figure)
    np.testing.assert_allclose(first, [[0.1 * k, 1e-3 * k] for k in range(5)], atol=1e-12)
    assert len(second) == 3
    assert figure.axes[0].get_yscale() == "log"
    one, two = texts(figure)
    assert one.endswith("/run, N = 300") and two.endswith("/run, N = 300") and one != two


def test_radii_are_computed_from_frames_spread_over_the_run_with_a_message(tmp_path):
    path, said = record(tmp_path / "long.h5", frames=SAMPLES + 100, count=20), []
    figure = nbody.plot(path, "lagrangian", notify=said.append)
    assert said == [f"{path}: radii from {SAMPLES} of its {SAMPLES + 100} frames, evenly spread"]
    with Trajectory(path) as opened:
        last = opened.particles(-1)
    expected = lagrangian_radii(last, (0.1, 0.5, 0.9), density_centre(last))
    np.testing.assert_array_equal([line[-1, 1] for line in lines(figure)], expected)
    assert [len(line) for line in lines(figure)] == [SAMPLES] * 3


def test_what_was_recorded_is_not_computed(tmp_path):
    path, said = record(tmp_path / "a.h5", wide={"lagrangian_radii": 3, "momentum": 3, "angular_momentum": 3}), []
    radii, momentum = (nbody.plot(path, name, notify=said.append) for name in ("lagrangian", "momentum"))
    assert not said
    assert all(line[:, 1].tolist() == [3, 4, 5, 6, 7] for line in lines(radii))
    with Trajectory(path) as opened:
        p = opened.particles(0)
    scale = p.mass @ np.linalg.norm(p.velocity, axis=1)
    np.testing.assert_allclose(lines(momentum)[0][:, 1], np.arange(5) * math.sqrt(3) / scale)


def test_frames_and_bodies_are_chosen(run):
    with Trajectory(run) as opened:
        figure = nbody.plot(opened, "rotation", frame=[0, 2, -1])
        orbit = nbody.plot(opened, "orbits", bodies=[12])
        path = opened.position[0:5][:, 2, :2]
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["t = 0", "t = 0.2", "t = 0.4"]
    figure.draw_without_rendering()
    assert axes.get_legend().get_window_extent().y0 >= axes.bbox.y1  # error bars, which 'best' does not see, stay visible
    np.testing.assert_array_equal(lines(orbit)[0], path)  # ids begin with 10


def test_orbits_call_a_body_by_its_name_if_it_has_one(tmp_path):
    x, v = np.eye(4, 3) * [[1], [2], [3], [4]], np.zeros((4, 3))
    names = ("sun", "earth", "dust")
    bodies = nbody.Particles(np.full(4, 1e-6), x, v, species=np.array([0, 1, 2, 2]), species_names=names)
    nbody.simulate(bodies, steps=2, dt=0.01, output=tmp_path / "a.h5", engine="reference", precision="float64").close()
    (axes,) = nbody.plot(tmp_path / "a.h5", "orbits").axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["sun", "earth", "body 2", "body 3"]


def test_labels_have_the_units_of_the_scenario(tmp_path):
    units = {"length": "pc", "mass": "Msun", "time": "Myr", "velocity": "km/s"}
    figure = nbody.plot(record(tmp_path / "a.h5", units=units), "density", "dispersion", "lagrangian", "energies")
    shown = {axes.get_xlabel() for axes in figure.axes} | {axes.get_ylabel() for axes in figure.axes}
    assert shown >= {"radius r [pc]", "density ρ [Msun/pc³]", "time [Myr]", "energy [Msun (km/s)²]"}


def test_an_overview_says_why_a_panel_is_empty(tmp_path):
    figure = nbody.plot(record(tmp_path / "a.h5", spoil=0))
    said = [axes.texts[0].get_text() for axes in figure.axes if not axes.axison]
    assert len(said) == 2 and all("frame 0: body 17" in " ".join(text.split()) for text in said)


@pytest.mark.parametrize("count,frames,panels", [(300, 5, 6), (3, 5, 4), (300, 1, 3), (3, 1, 1)])
def test_an_overview_shows_what_a_run_has(tmp_path, count, frames, panels):
    assert len(nbody.plot(record(tmp_path / "a.h5", frames, count)).axes) == panels


def test_a_quantity_that_never_changes_is_drawn_too(tmp_path):
    """A conserved energy has no logarithm of its error."""
    with Trajectory(record(tmp_path / "a.h5", frames=2)) as opened:
        opened.observable = lambda name: np.full(2, -1.0)
        figure = nbody.plot(opened, "energy")
    figure.savefig(io.BytesIO(), format="png")
    assert lines(figure)[0][:, 1].tolist() == [0, 0]


def test_the_one_error_of_two_frames_is_a_dot(tmp_path):
    """That of the first frame is 0, which a logarithmic axis does not show."""
    for frames, marker in ((2, "o"), (3, "None")):
        figure = nbody.plot(record(tmp_path / f"{frames}.h5", frames), "energy")
        assert figure.axes[0].lines[0].get_marker() == marker


def test_frames_that_are_not_finite_are_left_out_of_a_series_and_refused_as_a_profile(tmp_path):
    path, said = record(tmp_path / "a.h5", spoil=2), []
    assert [len(line) for line in lines(nbody.plot(path, "lagrangian", notify=said.append))] == [4] * 3
    assert said == [f"{path}: radii without 1 frame that is damaged or not finite"]
    with pytest.raises(InputError, match=r"frame 2: body 17 has a position, .* choose another frame"):
        nbody.plot(path, "density", frame=2)


@pytest.fixture(scope="module")
def spheres(tmp_path_factory):
    """Recordings of King's and Hernquist's sphere, and of both; 2000 bodies each, at rest in their frames."""
    folder = tmp_path_factory.mktemp("spheres")
    king = {"generator": "king", "W0": 6, "radius": 0.5, "mass": 3, "particles": 2000, "seed": 2}
    hernquist = {"generator": "hernquist", "radius": 1.5, "particles": 2000, "seed": 3}
    both = {"combine": [king | {"species": "stars"}, hernquist | {"species": "halo"}]}
    for name, initial in (("king", king), ("hernquist", hernquist), ("both", both)):
        values = {"name": name, "initial": initial, "gravity": {"softening": "plummer", "length": 0.01}}
        values["integrator"] = {"dt": 0.001, "steps": 1}
        values |= {"engine": "reference", "precision": "float64"}
        nbody.simulate(nbody.Scenario.from_dict(values), output=folder / f"{name}.h5").close()
    return folder


@pytest.mark.parametrize("run,model,length,mass", [("king", "king", 0.5, 3), ("hernquist", "hernquist", 1.5, 1)])
def test_a_model_is_fitted_and_predicts_the_dispersion(spheres, run, model, length, mass):
    """N bodies tell a scale to 1/√N at best, King's W0 and with it r_c to a few times that; χ² per bin is 1 ± √(2/24)."""
    with Trajectory(spheres / f"{run}.h5") as opened:
        particles = opened.particles(0)
    profile = radial_profile(particles, centre=np.zeros(3))
    found, tolerance = fitted(model, profile), 5 / math.sqrt(particles.count)
    assert found.length == pytest.approx(length, rel=tolerance) and found.mass == pytest.approx(mass, rel=tolerance)
    for measured, error, expected in (
        (profile.density, profile.density_error, found.density(profile.inner, profile.outer)),
        (profile.dispersion, profile.dispersion_error, found.dispersion(profile.radius)),
    ):
        assert np.mean((measured / expected - 1) ** 2 / (error / measured) ** 2) < 1 + 4 * math.sqrt(2 / 24)


def test_a_scenarios_own_model_stands_beside_its_bodies_and_residuals_are_ratios(spheres, tmp_path):
    path = spheres / "king.h5"
    assert main(["plot", str(path), "residuals", "--model", "initial", "-o", str(tmp_path / "a.svg")]) == 0
    figure = nbody.plot(path, "profile", model="initial", frame=0)
    density, _, _, residuals = figure.axes
    assert "t = 0, initial: a = 0.5, M = 3" in [text.get_text() for text in density.get_legend().get_texts()]
    measured, curve = (line.get_xydata() for line in density.lines[:2] if len(line.get_xdata()) > 3)
    ratio = residuals.lines[0].get_ydata()
    np.testing.assert_allclose(ratio, measured[:, 1] / curve[:, 1])
    assert abs(np.median(ratio) - 1) < 0.1
    for refused in ({"model": "initial", "cylindrical": True}, {"model": "kin"}, {}):
        with pytest.raises(InputError, match=r"is a sphere|did you mean 'king'|of which model"):
            nbody.plot(path, "residuals", **refused)


def test_species_are_drawn_on_their_own_about_the_centre_of_all(spheres):
    path = spheres / "both.h5"
    figure = nbody.plot(path, "density", "lagrangian", "bodies", species="all", model="initial")
    assert texts(figure) == ["stars, N = 2000", "halo, N = 2000"]
    assert [text.get_text()[:26] for text in figure.axes[0].get_legend().get_texts()] == [
        "last frame, initial: a = 0",
        "last frame, initial: a = 1",
    ]
    with Trajectory(path) as opened:
        last = opened.particles(-1)
    halo = last.rows(last.species == 1)
    expected = lagrangian_radii(halo, (0.1, 0.5, 0.9), density_centre(last))
    np.testing.assert_array_equal([line.get_ydata()[-1] for line in figure.axes[1].lines[3:6]], expected)
    one = nbody.plot(path, "density", species=["halo", "halo"], frame=-1).axes[0].lines[0].get_ydata()
    np.testing.assert_array_equal(one, figure.axes[0].lines[2].get_ydata()[: len(one)])
    for plots, species, message in (
        ("energy", "halo", "'total energy' is that of all bodies"), ("density", "hallo", "did you mean 'halo'"),
        ("density", ["all", "halo"], "'all' stands for every one"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            nbody.plot(path, plots, species=species)


def test_a_species_without_bodies_is_refused_by_name_and_left_out_of_all(tmp_path):
    x = np.random.default_rng(1).standard_normal((300, 3))
    bodies = nbody.Particles(np.full(300, 1e-9), x, 0 * x, species=np.zeros(300, int), species_names=("disc", "none"))
    path = tmp_path / "a.h5"
    nbody.simulate(bodies, steps=1, dt=0.01, output=path, engine="reference", precision="float64").close()
    assert len(nbody.plot(path, "density", species="all").axes) == 1
    for species in ("none", ["disc", "none"]):
        with pytest.raises(InputError, match="species 'none' has no bodies"):
            nbody.plot(path, "density", species=species)


def test_escapers_are_counted_in_every_frame(tmp_path):
    """A body that leaves a heavy one, at 0.9 of the escape speed and at 1.1 of it."""
    for factor, expected in ((0.9, 0), (1.1, 1)):
        path, speed = tmp_path / f"{expected}.h5", factor * math.sqrt(2.0)
        bodies = nbody.Particles([1.0, 1e-6], [[0, 0, 0], [1, 0, 0]], [[0, 0, 0], [0, speed, 0]])
        nbody.simulate(bodies, steps=2, dt=0.01, output=path, engine="reference", precision="float64").close()
        figure = nbody.plot(path, "escapers")
        assert lines(figure)[0][:, 1].tolist() == [expected] * 3
        assert {*figure.axes[0].get_yticks()} >= {0, 1} and all(each % 1 == 0 for each in figure.axes[0].get_yticks())


@pytest.mark.parametrize("frames", [4, 7, 9.5, 25])
def test_a_curve_with_too_few_frames_per_oscillation_says_so(tmp_path, frames):
    wave = np.cos(2 * np.pi * np.arange(200) / frames)
    assert frames_per_oscillation(3 + wave) == pytest.approx(frames, rel=0.02)
    assert frames_per_oscillation(30 + wave) == math.inf  # 2 %: noise, for all that is known
    said = []
    with Trajectory(record(tmp_path / "a.h5", frames=200, count=3)) as opened:
        opened.observable = lambda name: 3 + wave
        (axes,) = nbody.plot(opened, "virial", notify=said.append).axes
    assert len(said) == (frames < 10) == axes.get_title("right").endswith("too few")
    assert all(f"{frames:.2g} frames per oscillation" in line and "record more often" in line for line in said)


# --- The command ------------------------------------------------------------------------------------------------------


def test_figures_are_png_pdf_and_svg_and_the_same_bits_twice(run, tmp_path):
    for suffix, begin in ((".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")):
        files = [tmp_path / f"{k}{suffix}" for k in range(2)]
        for path in files:
            assert main(["plot", str(run), "energy", "--out", str(path)]) == 0
        one, two = (path.read_bytes() for path in files)
        assert one.startswith(begin) and one == two


def test_the_figure_stands_beside_the_run_and_an_older_one_is_kept(run, capsys):
    for _ in range(2):
        assert main(["plot", str(run), "virial"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == f"{run.with_name('run-virial.png')}: virial of {run}"
    assert "it is kept as run-virial.1.png" in err and run.with_name("run-virial.1.png").exists()
    assert main(["plot", str(run), "virial", "--overwrite"]) == 0
    assert not run.with_name("run-virial.2.png").exists()


def test_list_names_every_plot(capsys):
    assert main(["plot", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [*PLOTS]


@pytest.mark.parametrize(
    "arguments,message",
    [
        (["run.h5", "enrgy"], r"unknown plot 'enrgy' \(did you mean 'energy'\?\); one of: overview, energy"),
        (["energy"], "no recording is named; write, for example, 'nbody plot output/run.h5 energy'"),
        (["disk.yaml"], "is a scenario; record it with 'nbody run disk.yaml'"),
        (["text.h5"], "text.h5: is not an HDF5 file"),
        (["none.h5"], "none.h5: there is no such file"),
        (["run.h5", "energy", "--frame", "5"], "there is no frame 5; it has frames 0 to 4, or from the end -1 to -5"),
        (
            ["run.h5", "orbits", "--bodies", "10,7"],
            "run.h5: there is no body with the id 7; ids go from 10 to 309",
        ),
        (["one.h5", "energy"], "has one frame, and 'energy' shows a change over time; plot bodies or profile"),
        (["bare.h5", "energy"], "bare.h5: holds no total energy; plot lagrangian or momentum"),
        (["two.h5", "core"], "two.h5: radii about a density centre need three bodies or more; plot orbits"),
        (["two.h5", "density"], "frame 0: a profile needs more bodies at different radii; plot orbits"),
        (["run.h5", "energy", "--model", "kin"], r"unknown model 'kin' \(did you mean 'king'\?\)"),
        (
            ["run.h5", "energy", "--model", "king"],
            "model: no panel shows it; plot one of density, dispersion, residuals",
        ),
        (["run.h5", "energy", "--bodies", "10"], "bodies: no panel shows it; plot one of orbits, resonance, a, "),
        (["run.h5", "orbits", "--about", "10"], "about: no panel shows it; plot one of resonance, a, P, q"),
        (["run.h5", "--output", "a.jpg"], "a.jpg: figures are .png, .pdf or .svg"),
        (["run.h5", "--out", "none/a.png"], "there is no folder .*none; make it first"),
        (["run.h5", "--overwrite", "--out", "text.png"], "exists and is no figure; give another name"),
    ],
)
def test_invalid_plots_are_refused(tmp_path, monkeypatch, refused, arguments, message):
    monkeypatch.chdir(tmp_path)
    record("run.h5")
    record("one.h5", frames=1)
    record("bare.h5", frames=2, energies=False)
    record("two.h5", frames=2, count=2)
    for name in ("text.h5", "text.png"):
        (tmp_path / name).write_text("text")
    assert re.search(message, refused("plot", *arguments))


@pytest.mark.parametrize(
    ("plot", "wrong", "line"),
    [
        ("bodies", {"frame": 1.5}, "frame: must be a whole number"),
        ("orbits", {"bodies": [1.5]}, "needs the id or the name of a body"),
        ("orbits", {"bodies": "Earth"}, "no body named 'Earth'"),
        ("resonance", {"resonance": 3}, "must be two different whole numbers"),
        ("bodies", {"species": 3}, "unknown species '3'"),
        ("bodies", {"style": 3}, "style 3: is neither"),
    ],
)
def test_a_wrong_type_in_python_is_refused(tmp_path, plot, wrong, line):
    path = record(tmp_path / "run.h5", frames=2)
    with pytest.raises(InputError, match=line):
        nbody.plot(path, plot, **wrong)
    with pytest.raises(InputError, match="the name of a file is needed"):
        nbody.plot([], plot)


def test_one_body_may_be_named_without_a_list(tmp_path):
    orbits = nbody.plot(record(tmp_path / "run.h5", frames=2), "orbits", bodies=10)
    assert len(orbits.axes[0].lines) == 2  # its path and its end


def test_a_dispersion_with_binaries_is_said_to_include_their_motion(tmp_path):
    pairs = {"fraction": 0.5, "period": [0.1, 0.2]}
    initial = {"generator": "plummer", "particles": 64, "binaries": pairs}
    scenario = nbody.Scenario.from_dict({"initial": initial, "integrator": {"dt": 1e-5, "steps": 1}})
    nbody.simulate(scenario, output=tmp_path / "pairs.h5", engine="cpu").close()
    for path, said in ((tmp_path / "pairs.h5", True), (record(tmp_path / "run.h5"), False)):
        label = nbody.plot(path, "dispersion").axes[0].get_ylabel()
        assert label.endswith("with the motion within binaries") == said


# --- Notebooks --------------------------------------------------------------------------------------------------------


def test_a_recording_shows_its_facts_and_its_last_frame(tmp_path):
    path = record(tmp_path / "a<b>.h5", name="cloud & co")
    with Trajectory(path) as opened:
        assert repr(opened) == f"<Trajectory {path}: cloud & co, 300 bodies, 5 frames, t = 0 to 0.4, complete>"
        page = opened._repr_html_()
    assert "cloud &amp; co" in page and "a&lt;b&gt;.h5" in page and "+4.00e-03" not in page and "-4.00e-03" in page
    assert "data:image/png;base64," in page
    assert repr(opened).endswith("closed>") and "data:image" not in opened._repr_html_()


def test_a_spoilt_last_frame_has_no_picture(tmp_path):
    with Trajectory(record(tmp_path / "a.h5", spoil=4)) as opened:
        assert "data:image" not in opened._repr_html_() and "cloud" not in opened._repr_html_()


def test_a_figure_shows_itself_in_a_notebook(run):
    assert nbody.plot(run, "virial")._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize("frame", [0, 2])
def test_a_damaged_frame_is_left_out_of_a_curve_and_of_a_path_with_a_line(tmp_path, frame):
    path, said = record(tmp_path / "a.h5"), []
    with Trajectory(path) as opened:
        needle = opened.position[frame].tobytes()[:64]
    data = bytearray(path.read_bytes())
    data[data.index(needle)] ^= 1
    path.write_bytes(data)
    for name, what, curves in (
        ("lagrangian", "radii", 3), ("momentum", "momenta", 2), ("orbits", "paths", 8), ("e", "elements", 7),
    ):  # fmt: skip
        figure = nbody.plot(path, name, notify=said.append)
        assert [len(line) for line in lines(figure) if len(line) > 1] == [4] * curves
        assert said.pop() == f"{path}: {what} without 1 frame that is damaged or not finite"


def test_a_style_gives_its_colours_fonts_and_background(run, tmp_path, refused):
    file = tmp_path / "paper.mplstyle"
    file.write_text(
        "axes.prop_cycle: cycler('color', ['123456'])\nfont.size: 5\nfigure.facecolor: eeeeee\nfigure.figsize: 3, 2\n"
    )
    plain, styled = (nbody.plot(run, "energy", style=style) for style in ("", file))
    assert [figure.axes[0].lines[0].get_color() for figure in (plain, styled)] == [SERIES[0], "#123456"]
    assert [to_hex(figure.get_facecolor()) for figure in (plain, styled)] == ["#ffffff", "#eeeeee"]
    assert [tuple(figure.get_size_inches()) for figure in (plain, styled)] == [(5, 3.6), (3, 2)]
    (axes,) = nbody.plot(run, "bodies", style="dark_background").axes
    assert axes.collections[0].get_facecolor()[0, :3].tolist() == [1, 1, 1]
    assert "style papper: is neither" in refused("plot", run, "energy", "--style", "papper")
