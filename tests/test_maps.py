"""Stability maps: a number of each system of a grid, in blocks, with a file that goes on."""

import json
import os
import signal
from types import SimpleNamespace

import numpy as np
import pytest

import nbody
from nbody.cli import main
from nbody.errors import InputError
from nbody.maps import QUANTITIES, stability_map
from nbody.maps.make import prepared
from nbody.scenario import Scenario
from nbody.viewer.window import map_window

G = 4 * np.pi**2
X, Y = "bodies.2.a=1.02..1.3:3", "bodies.2.e=0,0.1"


def pair(**keys):
    """Two planets of ten Earth masses about a star."""
    return Scenario.from_dict(
        {
            "name": "pair",
            "initial": {
                "generator": "planets",
                "bodies": [{"m": 1.0}, {"m": 3e-5, "a": 1.0, "name": "inner"}, {"m": 3e-5, "a": 1.1, "name": "outer"}],
            },
            "gravity": {"G": G}, "integrator": {"scheme": "wisdom_holman", "dt": 0.05, "end": 20.0},
            "engine": "cpu", "precision": "float64", "record": {"dt": 1.0},
        } | keys
    )  # fmt: skip


def test_each_value_is_that_of_the_system_alone(tmp_path):
    """The end and the least distance have the bits of an ensemble's recording; e is the largest of its frames."""
    m = nbody.map(pair(), X, Y, ["survival", "closest", "e_max(outer)", "survival(radius=1.2)"], tmp_path / "map.h5")
    assert m.values["survival"].shape == m.status.shape == (2, 3)
    np.testing.assert_allclose(m.x, [1.02, 1.16, 1.3])
    assert list(m.y) == [0, 0.1]
    grid = {"vary": {"initial.bodies.2.e": [0, 0.1], "initial.bodies.2.a": "1.02..1.3:3"}}
    nbody.Simulation(pair(ensemble=grid), tmp_path / "run.h5").run()
    with nbody.Trajectory(tmp_path / "run.h5") as run:
        table = run.systems
        np.testing.assert_array_equal(m.values["survival"].ravel(), table["time"])
        np.testing.assert_array_equal(m.values["closest"].ravel(), table["closest_approach"])
        assert (m.status.ravel() > 0).tolist() == (table["status"] != "done").tolist() == [True, *5 * [False]]
        bodies = [run[k] for k in range(len(run))]
        last = [nbody.orbits(nbody.Particles(b.mass[15:], b.position[15:], b.velocity[15:]), G).e[1] for b in bodies]
    np.testing.assert_allclose(m.values["e_max(outer)"][1, 2], max(last), rtol=1e-12)
    far = m.values["survival(radius=1.2)"]
    assert far[0, 1] == 20 and far[0, 2] == 0.0  # a = 1.16 stays within, a = 1.3 begins outside
    alone = nbody.Simulation(m.at(1.29, 0.09))
    assert alone.scenario.ensemble is None
    assert nbody.orbits(alone.particles, G).e[1] == pytest.approx(0.1)


def test_megno_is_that_of_the_ensemble(tmp_path):
    """Two for regular systems; the picture shows the one that ended in the colour beyond the scale."""
    m = nbody.map(pair(), X, "", "megno,lyapunov")
    grid = {"vary": {"initial.bodies.2.a": "1.02..1.3:3"}}
    ensemble = m.scenario.with_keywords({"ensemble": grid})
    assert nbody.Simulation(ensemble).run().frames == 2  # the first and the last: no others are used without a file
    nbody.Simulation(ensemble, tmp_path / "run.h5").run()
    with nbody.Trajectory(tmp_path / "run.h5") as run:
        np.testing.assert_array_equal(m.values["megno"], run.systems["megno"])
        np.testing.assert_array_equal(m.values["lyapunov"], run.systems["lyapunov"])
    np.testing.assert_allclose(m.values["megno"][2], 2, atol=0.2)
    assert nbody.Scenario.to_yaml(m.at(1.3)).count("megno") == 1


def test_a_map_that_was_interrupted_goes_on_with_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(stability_map, "BLOCK", {"cpu": 1})
    monkeypatch.setattr("nbody.machine.cores", lambda: 2)
    monkeypatch.setattr(stability_map, "SAVE_SECONDS", 0.0)
    whole, path = nbody.map(pair(), X, Y, "closest"), tmp_path / "map.h5"

    def interrupt(fraction, text, sent=[]):  # noqa: B006
        if text == "33.3% of 6 systems" and not sent:
            sent.append(os.kill(os.getpid(), signal.SIGINT))

    with pytest.raises(KeyboardInterrupt):
        nbody.map(pair(), X, Y, "closest", path, show=interrupt)
    cut = nbody.map(path)
    assert cut.done == 2 and np.isnan(cut.values["closest"]).sum() == 4
    says = []
    again = nbody.map(pair(), X, Y, "closest", path, notify=says.append)
    assert says == [f"{path}: holds 2 systems of 6; it goes on"]
    np.testing.assert_array_equal(again.values["closest"], whole.values["closest"])
    np.testing.assert_array_equal(nbody.map(path).values["closest"], whole.values["closest"])
    nbody.map(pair(), X, Y, "closest", path, notify=says.append)
    assert says[-1] == f"{path}: holds 6 systems of 6"
    other = nbody.map(pair(), X, "", "closest", path, notify=says.append)
    assert other.values["closest"].shape == (3,) and says[-1] == f"{path} existed; it is kept as map.1.h5"
    nbody.map(pair(), X, "", "closest", path, overwrite=True, notify=says.append)
    assert len(says) == 3 and not (tmp_path / "map.2.h5").exists()


def test_the_amplitude_of_an_angle_is_that_of_its_libration():
    """A planet of no mass in the 3:2 resonance with one of 1e-4, as Pluto with Neptune, and one beside it."""
    bodies = [{"m": 1}, {"m": 1e-4, "a": 1, "M": 90}, {"m": 0, "a": 1.3104, "e": 0.2}]
    scenario = pair(initial={"generator": "planets", "bodies": bodies}).with_keywords({"end": 400.0})
    near, far = nbody.map(scenario, "bodies.2.a=1.3104,1.4", "", "amplitude(1, 2, p=3, q=2)").values.popitem()[1]
    assert near < 90 and far > 170


@pytest.mark.parametrize(
    "given,message",
    [
        ({"x": "bodies.2.k=1..2:3"}, "--x initial.bodies.2.k: unknown key"),
        ({"x": "bodies.2.a=1..1.2"}, "--x bodies.2.a: 1..1.2 lacks the number of values, as in 1..1.2:50"),
        ({"x": "bodies.9.a=1..2:3"}, "there is no '9'"),
        ({"x": "gravity.G=1..2:3"}, "--x gravity.G: only the bodies of the systems can vary"),
        ({"x": "bodies.2.a"}, "--x: must be KEY=VALUES, as in bodies.1.a=0.9..1.1:400"),
        ({"x": ("bodies.2.a", 5)}, "--x: must be KEY=VALUES"),
        ({"y": 3}, "--y: must be KEY=VALUES, .*, got 3"),
        ({"x": "bodies.2.a=1..-2:3"}, "--x initial.bodies.2.a: -2 does not fit e = 0"),
        ({"x": "", "y": ""}, "map: which values"),
        ({"x": "", "y": X}, "--y: is the second axis"),
        ({"y": X}, "--y: is the value of --x"),
        ({"quantity": "survivl"}, "--quantity: unknown quantity 'survivl' .did you mean 'survival'"),
        ({"quantity": "e_max(outr)"}, "--quantity: there is no body named 'outr' .did you mean 'outer'"),
        ({"quantity": "e_max(0)"}, "--quantity: body 0 is the centre"),
        ({"quantity": "survival(radus=3)"}, "--quantity survival.radus=3.: radus: unknown key .did you mean 'radius'"),
        ({"quantity": "amplitude(1, 2, p=1, q=2)"}, "p: must be greater than q = 2"),
        ({"quantity": "amplitude(1, 1)"}, "--quantity: an amplitude is of two bodies, and body 1 is there twice"),
        ({"quantity": ["closest", 3]}, "--quantity: '3' is no quantity"),
        ({"quantity": "closest, e_max(1, 2"}, "--quantity: 'e_max.1' is no quantity"),
        ({"quantity": "1 + 1"}, "--quantity: '1 . 1' is no quantity"),
    ],
)
def test_invalid_maps_are_refused(given, message):
    given = {"x": X, "y": Y, "quantity": "survival"} | given
    with pytest.raises(InputError, match=message):
        prepared(pair(), {name: given[name] for name in ("x", "y")}, given["quantity"], None, print)


@pytest.mark.parametrize("keys,message", [
    ({"integrator": {"scheme": "leapfrog", "dt": 0.1, "end": 1.0}}, "choose scheme ias15 or wisdom_holman"),
    ({"initial": {"generator": "planets", "bodies": [{"m": 1}]}}, "list has 1 items|2 to 64 bodies"),
])  # fmt: skip
def test_scenarios_without_maps_are_refused(keys, message):
    with pytest.raises(InputError, match=message):
        prepared(pair(**keys), {"x": X, "y": ""}, "survival", None, print)


NONE = "has no variational equations, which megno and lyapunov need; choose scheme .*, or remove them"


@pytest.mark.parametrize("name", ["hybrid", "leapfrog"])
def test_schemes_without_variational_equations_are_refused(name):
    scheme = {"scheme": name, "dt": 0.1, "end": 1.0}
    with pytest.raises(InputError, match=r"moves one system, not an ensemble; choose scheme ias15 or wisdom_holman$"):
        prepared(pair(integrator=scheme), {"x": X, "y": ""}, "megno", None, print)
    if name == "hybrid":
        with pytest.raises(InputError, match=f"^record.observables: scheme 'hybrid' {NONE}$"):
            nbody.Simulation(pair(integrator=scheme, record={"observables": ["megno"]}))


def test_a_system_that_has_ended_gets_a_scheme_that_follows_its_encounter():
    """And the step in which it has ended, which is wrong, does not count for e_max."""
    m = nbody.map(pair(record={"dt": 0.05}), X, "", "survival,e_max")
    assert m.status[0] == stability_map.ENCOUNTER
    alone = m.at(1.02)
    assert alone.integrator.scheme == "ias15" and alone.integrator.end == 20.0 and alone.record.dt == 0.05
    nbody.Simulation(alone.with_keywords({"integrator": {"end": 0.2}})).run()
    assert m.at(1.3).integrator.scheme == "wisdom_holman"
    end = m.values["survival"][0]
    until = pair(
        integrator={"scheme": "wisdom_holman", "dt": 0.05, "end": round(end - 0.05, 9), "encounter": 0},
        record={"dt": 0.05},
    )
    before = nbody.map(until, X, "", "e_max").values["e_max"]
    assert m.values["e_max"][0] == before[0]


def test_a_map_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pair.yaml").write_text(pair().to_yaml())
    command = ["map", "pair.yaml", "--x", X, "--y", Y, "--quantity", "survival,e_max(outer)", "-o", "map.h5"]
    assert main(command) == 0
    assert "ends          5 done, 1 close encounter" in capsys.readouterr().out
    assert main([*command, "--json"]) == 0 and main(["resume", "map.h5", "--json", "--quiet"]) == 0
    assert main(["resume", "map.h5", "--end", "5000"]) == 2 and main(["info", "map.h5"]) == 0
    told = capsys.readouterr()
    assert "--end: a map is completed as planned" in told.err and "wisdom_holman, to t = " in told.out
    assert main(["info", "map.h5", "--json"]) == 0
    *_, last = capsys.readouterr().out.strip().splitlines()
    found = json.loads(last)
    assert found["done"] == found["systems"] == 6 and found["axes"]["x"]["path"] == "initial.bodies.2.a"
    (tmp_path / "paper.mplstyle").write_text("figure.figsize: 2, 2\nsavefig.dpi: 50\n")
    assert main(["plot", "map.h5", "survival", "-o", "map.png", "--style", "paper.mplstyle"]) == 0
    drawn = nbody.map("map.h5").plot("survival", style="paper.mplstyle")
    assert drawn.get_size_inches().tolist() == [2, 2]
    with pytest.raises(InputError, match="a style is of a whole figure"):
        nbody.map("map.h5").plot(axes=drawn.axes[0], style="paper.mplstyle")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    assert main(["plot", "map.h5", "--frame", "3"]) == 2
    assert "--frame: is for recordings, and map.h5 is a map" in capsys.readouterr().err
    assert main(["export", "map.h5", "a.csv"]) == 2 and "is a map, not a recording" in capsys.readouterr().err
    assert main(["new", "map.h5", "--point", "1.3,0.1", "one.yaml"]) == 0
    assert Scenario.load("one.yaml").resolved()["initial"]["bodies"][2]["e"] == 0.1
    assert main(["plot", "map.h5", "survivl"]) == main(["new", "map.h5", "--point", "3,0"]) == main(["new", "map.h5"]) == 2


def test_a_map_of_one_value_is_one_system_and_its_file_is_named_as_what_it_is(tmp_path):
    one = nbody.map(pair(), "bodies.2.a=1.3", "", "closest")
    assert one.values["closest"] == nbody.map(pair(), "bodies.2.a=1.2,1.3", "", "closest").values["closest"][1]
    with pytest.raises(InputError, match=r"map\.png: a map is an HDF5 file; give a name that ends in \.h5"):
        nbody.map(pair(), X, "", "closest", tmp_path / "map.png")
    with pytest.raises(InputError, match="no system is computed yet"):
        stability_map.StabilityMap(one.scenario, "closest").plot()


def test_an_axis_may_name_a_body_and_the_folder_is_made(tmp_path):
    m = nbody.map(pair(), "bodies.outer.a=1.02..1.3:3", "", "closest", tmp_path / "output" / "map.h5")
    assert m.labels["x"] == ("semi-major axis a of outer", "") and m.path.is_file()
    np.testing.assert_array_equal(m.values["closest"], nbody.map(pair(), X, "", "closest").values["closest"])


def test_a_picture_has_units_and_scales(tmp_path):
    scenario = pair(units={"length": "au", "mass": "Msun", "time": "yr"}, gravity={})
    m = nbody.map(scenario, "bodies.2.a=1.06..1.3:3", "bodies.2.m=1e-6..1e-4:3:log", "survival,e_max")
    assert m.units == {"x": "au", "y": "Msun", "survival": "yr", "e_max": ""}
    figure = m.plot()
    upper, mesh = figure.axes[0], figure.axes[1].collections[0]
    assert mesh.get_array().max() <= mesh.norm.vmax  # what is beyond has ended before
    assert upper.get_xlabel() == "semi-major axis a of outer [au]" and upper.get_ylabel() == "mass m of outer [Msun]"
    assert (upper.get_xscale(), upper.get_yscale()) == ("linear", "log")
    assert [axes.get_ylabel() for axes in figure.axes[2:]] == ["time of survival [yr]", "largest eccentricity"]


def test_a_click_starts_the_system_at_this_place(tmp_path, monkeypatch):
    monkeypatch.setattr(map_window, "Popen", lambda **given: given)
    m = prepared(pair(), {"x": X, "y": Y}, "survival", None, print)
    clicks = map_window.MapClicks(m, tmp_path)
    for x, y in ((1.29, 0.08), (5.0, 0.0)):  # the second is beside the map
        clicks(SimpleNamespace(inaxes=True, xdata=x, ydata=y))
    (started,) = clicks.started
    assert started["args"][2:5] == ["-m", "nbody", "view"]
    assert Scenario.load(started["args"][5]).resolved()["initial"]["bodies"][2]["a"] == 1.3


def test_a_file_that_is_no_map_is_refused(tmp_path):
    path = tmp_path / "map.h5"
    nbody.map(pair(), X, "", "closest", path)
    data = path.read_bytes()
    for bad in (data[:-1], data[:1500] + data[-8:], data.replace(b"survival", b"xurvival")[:600] + data[-8:]):
        path.write_bytes(bad)
        with pytest.raises(InputError, match=r"is no map|is damaged"):
            stability_map.StabilityMap.load(path)


def test_every_quantity_has_what_a_picture_needs():
    for name in QUANTITIES:
        kind = QUANTITIES.load(name)
        assert kind.label and kind.dimension in ("", "°", "time", "length")
