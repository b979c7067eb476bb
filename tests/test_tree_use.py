"""An accuracy that a user names: what ``auto`` takes, what a run records, trees as a library, wrong values, benchmarks.

All use kernels of test_tree.py: float32 with Plummer softening, at an accuracy of 1e-3.
"""

import re
from pathlib import Path

import numpy as np
import pytest

import nbody
from nbody import Scenario, Simulation, Trajectory
from nbody.bench.forces import selection
from nbody.bench.forces.competitor import Competitor
from nbody.bench.forces.crossings import crossings
from nbody.bench.forces.rows import ForceRow, TreeRow
from nbody.bench.forces.suite import measure
from nbody.bench.report import Report
from nbody.cli import main
from nbody.compute.compiling import cache
from nbody.errors import InputError
from nbody.forces import ENGINES
from nbody.forces.choose import choose
from nbody.forces.problem import Problem
from nbody.forces.timing import bucket
from nbody.law import Gravity
from nbody.run.force_error import force_errors
from nbody.run.plan import plan
from nbody.scenario.yaml_reader import dump
from nbody.trajectory import first_difference

N = 3000
BODIES = nbody.plummer(N, seed=1)
SCENARIO = {
    "initial": {"generator": "plummer", "particles": 1000},
    "gravity": {"softening": "plummer", "length": 0.05},
    "integrator": {"scheme": "leapfrog", "dt": 0.01, "steps": 10},
}


@pytest.fixture
def timed(tmp_path, monkeypatch):
    """A machine without a GPU, on which the tree is faster from 8193 bodies on. Returns what was timed."""
    monkeypatch.setattr(
        "nbody.compute.compiling.cache.path_of", lambda kind: tmp_path / f"{kind}.json"
    )  # compiled kernels stay
    monkeypatch.setattr("nbody.compute.why_unavailable", lambda: "none here")
    monkeypatch.setattr("nbody.compute.SIMULATED", False)
    calls = []

    def seconds(kind, asked):
        count = bucket(asked.particles)
        calls.append((kind.can.tree, count))
        return float(count) if kind.can.tree else count**2 / 8193

    monkeypatch.setattr("nbody.forces.choose.seconds", seconds)
    return calls


def auto(particles, accuracy=1e-3, **keys):
    """The engine that ``auto`` stands for, and why."""
    return choose("auto", Problem(Gravity(), "float32", particles, accuracy=accuracy), **keys)[:2]


# --- What auto takes ---------------------------------------------------------------------------------------------------


def test_auto_takes_the_faster_of_direct_sums_and_a_tree_and_measures_once(timed):
    told = []
    for _ in range(2):
        assert auto(6000, notify=told.append)[0] == "cpu"
        name, why = auto(16000, notify=told.append)
        assert name == "cpu-tree" and "median force error of 0.001 for 16000 particles" in why
    assert timed == [(False, 8192), (True, 8192), (False, 16384), (True, 16384)]
    assert len(told) == 2 and len(cache.cached_values("fastest")) == 2


@pytest.mark.parametrize(
    ("accuracy", "particles", "engine", "why"),
    [
        (1e-3, 1000, "cpu", "direct sums are faster below 2048"),
        (1e-6, 10**5, "cpu", "2e-06 at best in float32"),
        (1e-3, 10**5, "cpu", "a scheme's reason"),
        (1e-3, 3 * 10**6, "cpu-tree", "the fastest"),
    ],
)
def test_where_only_one_can_win_nothing_is_measured(timed, accuracy, particles, engine, why):

    def refuses(kind, asked):
        return why if "reason" in why and kind.can.tree else ""

    name, reason = auto(particles, accuracy, refuses=refuses)
    assert name == engine and why in reason and not timed


def test_a_look_at_a_scenario_measures_nothing(timed):
    assert auto(16000, measure=False)[0] == "cpu"
    assert not timed


def test_without_an_accuracy_auto_never_takes_a_tree(timed):
    for particles in (1000, 10**6):
        scenario = Scenario.load("plummer").override(particles=particles)
        assert plan(scenario).engine_name == "cpu" and not timed


@pytest.mark.parametrize(
    ("accuracy", "particles", "engine", "precision"),
    [
        (1e-3, 16, "cpu", "float32"),
        (1e-3, 1000, "cpu", "float32"),
        (1e-3, 16000, "cpu-tree", "float32"),
        (1e-6, 6000, "cpu", "float32"),  # direct sums in float32 beside a tree in float64
        (1e-6, 16000, "cpu-tree", "float64"),
        (1e-7, 6000, "cpu", "float64"),  # below the rounding of float32
        (1e-7, 16000, "cpu-tree", "float64"),
    ],
)
def test_auto_takes_the_lowest_precision_that_has_the_accuracy(timed, accuracy, particles, engine, precision):
    keys = SCENARIO | {"initial": {"generator": "plummer", "particles": particles}}
    planned = plan(Scenario.from_dict(keys | {"engine": {"name": "auto", "accuracy": accuracy}}))
    assert (planned.engine_name, planned.scenario.precision) == (engine, precision)
    assert planned.resolved()["precision"] == precision
    assert ("at best in float32" in planned.engine_reason) == (precision != "float32")


def test_a_precision_that_is_written_is_kept_and_so_is_the_default_without_an_accuracy(timed):
    for precision in ("float32", "float64"):
        written = SCENARIO | {"precision": precision, "engine": {"name": "auto", "accuracy": 1e-6}}
        assert plan(Scenario.from_dict(written)).scenario.precision == precision
    for engine in ("auto", "cpu"):
        assert plan(Scenario.from_dict(SCENARIO | {"engine": engine})).scenario.precision == "float32"
    with pytest.raises(InputError, match=r"an accuracy of 1\.1e-16 at best in float64"):
        plan(Scenario.from_dict(SCENARIO | {"engine": {"name": "auto", "accuracy": 1e-20}}))


@pytest.mark.parametrize("engine", ["tree", "cpu-tree"])
def test_a_tree_that_is_named_takes_the_lowest_precision_that_has_the_accuracy_and_says_so(timed, engine):
    for accuracy, precision in ((1e-3, "float32"), (1e-7, "float64")):
        told = []
        scenario = Scenario.from_dict(SCENARIO | {"engine": {"name": engine, "accuracy": accuracy}})
        planned = plan(scenario, notify=told.append)
        assert (planned.engine_name, planned.scenario.precision) == ("cpu-tree", precision)
        because = "float64: it has an accuracy of 2e-06 at best in float32"
        assert (because in planned.engine_reason) == (precision == "float64")
    assert plan(scenario.override(particles=2000)).resolved()["precision"] == "float64"
    with pytest.raises(InputError, match="an accuracy of 2e-06 at best in float32; choose --precision float64"):
        plan(scenario.override(precision="float32"))


def test_a_tree_that_has_no_precision_with_the_accuracy_is_refused(timed):
    told = []
    for engine, line in (
        (
            {"name": "gpu-tree", "accuracy": 1e-7},
            "engine 'gpu-tree' and scheme 'leapfrog': it has an accuracy of 2e-06 at best in mixed",
        ),
        ({"name": "tree", "accuracy": 1e-20}, "it has an accuracy of 1e-10 at best in float64"),
    ):
        with pytest.raises(InputError, match=line):
            plan(Scenario.from_dict(SCENARIO | {"engine": engine}), notify=told.append)


def test_info_says_which_precision_a_scenario_gets_and_why(tmp_path, capsys):
    path = tmp_path / "cluster.yaml"
    path.write_text(dump(SCENARIO | {"engine": {"name": "auto", "accuracy": 1e-8}}))
    assert main(["info", str(path)]) == 0
    page = capsys.readouterr().out
    assert "precision: float64" in page and "it has an accuracy of 5e-07 at best in float32" in page


def test_the_option_the_keyword_and_the_key_are_the_same(timed):
    plummer = Scenario.load("plummer").override(particles=16000)
    ways = [
        plummer.override(["engine.accuracy=1e-3"]),
        plummer.override(accuracy=1e-3, engine="auto"),
        plummer.override(engine="auto", accuracy=1e-3),
        plummer.with_keywords({"accuracy": 1e-3, "engine": "auto"}),
        plummer.with_keywords({"engine": {"name": "auto", "accuracy": 1e-3}}),
    ]
    for scenario in ways:
        planned = plan(scenario)
        assert planned.engine_name == "cpu-tree" and planned.engine_options.accuracy == 1e-3
        assert planned.resolved()["engine"] == {"name": "cpu-tree", "accuracy": 1e-3}


def test_direct_sums_ignore_the_accuracy_and_the_recorded_scenario_names_them(timed):
    planned = plan(Scenario.load("plummer").override(particles=1000, accuracy=1e-3))
    assert planned.resolved()["engine"] == "cpu"
    named = plan(Scenario.load("plummer").override(particles=1000, accuracy=1e-3, engine="cpu"))
    assert named.resolved()["engine"] == "cpu" and "all pairs, which is more accurate than 0.001" in named.engine_reason
    hermite = plan(Scenario.load("plummer").override(particles=16000, accuracy=1e-3, integrator="hermite4"))
    assert hermite.engine_name == "cpu" and "does not compute the jerk" in hermite.engine_reason


# --- Wrong values ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"accuracy": 0}, "--accuracy: must be greater than 0, got 0"),
        ({"accuracy": 0.5}, "--accuracy: must be at most 0.1"),
        ({"accuracy": 1e-20}, "scheme 'leapfrog': it has an accuracy of 5e-07 at best in float32"),
        ({"accuracy": 1e-20, "engine": "tree"}, "it has an accuracy of 2e-06 at best in float32"),
        ({"accuracy": 1e-20, "engine": "cpu"}, "scheme 'leapfrog': it has an accuracy of 5e-07 at best in float32"),
        ({"integrator": "hermite4", "engine": "cpu-tree"}, "scheme 'hermite4': it does not compute the jerk"),
        (
            {"integrator": "ias15", "engine": "cpu-tree"},
            "scheme 'ias15': it is a tree, and the scheme sums over all pairs itself",
        ),
        ({"assignments": ["engine.theta=0.5"]}, "unknown key; the keys here are name, gpus, accuracy"),
    ],
)
def test_invalid_tree_options_are_refused(timed, given, line):
    with pytest.raises(InputError, match=line):
        plan(Scenario.load("plummer").override(**given))


# --- What a run records ------------------------------------------------------------------------------------------------


def test_a_run_records_the_errors_of_its_first_forces_and_is_the_same_without_a_file(tmp_path, capsys):
    given = {"dt": 0.01, "softening": "plummer:0.05", "engine": {"name": "cpu-tree", "accuracy": 1e-3}, "steps": 2}
    recorded = Simulation(BODIES, output=tmp_path / "run.h5", **given)
    recorded.run()
    unrecorded = Simulation(BODIES, **given)
    unrecorded.run()
    assert np.array_equal(recorded.particles.position, unrecorded.particles.position)
    with Trajectory(tmp_path / "run.h5") as run:
        errors = run.provenance["force_error"]
    assert errors["bodies"] == 1000
    assert 1e-5 < errors["median"] < 2e-3 and errors["median"] < errors["99 %"] < errors["largest"] < 0.05
    assert main(["info", str(tmp_path / "run.h5")]) == 0
    assert "force error" in (page := capsys.readouterr().out) and "of 1000 bodies at the start" in page
    assert main(["rerun", str(tmp_path / "run.h5"), "-o", str(tmp_path / "again.h5")]) == 0
    assert first_difference(tmp_path / "run.h5", tmp_path / "again.h5") is None


def test_direct_sums_that_were_taken_for_an_accuracy_record_their_errors_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    given = ["run", "plummer", "--particles", "300", "--steps", "2", "--engine", "auto", "--quiet"]
    for name, more in (("asked", ["--accuracy", "1e-3"]), ("not", [])):
        assert main([*given, *more, "-o", f"{name}.h5"]) == 0
    with Trajectory("asked.h5") as run:
        assert run.provenance["force_error"]["largest"] < 1e-4
    assert first_difference(Path("asked.h5"), Path("not.h5")) is None
    capsys.readouterr()
    assert main(["info", "asked.h5"]) == 0
    assert "of 300 bodies at the start, against direct sums in float64" in capsys.readouterr().out


def test_the_measured_error_is_that_of_the_forces():
    engine = ENGINES.load("cpu")(Gravity(1.0, 3, "plummer", 0.05), "float64")
    state = engine.load(BODIES)
    engine.evaluate(state)
    assert force_errors(engine, state, BODIES.mass, 1)["largest"] < 1e-12
    state.acceleration *= 1.001
    errors = force_errors(engine, state, BODIES.mass, 1)
    assert [errors[name] for name in ("median", "99 %", "largest")] == pytest.approx([1e-3] * 3)


# --- As a library ------------------------------------------------------------------------------------------------------


def test_a_tree_is_asked_again_for_its_bodies_and_at_points():
    points = np.random.default_rng(1).normal(size=(200, 3))
    law = {"softening": "plummer", "length": 0.05, "precision": "float32"}
    tree = nbody.Tree(BODIES.position, BODIES.mass, accuracy=1e-3, **law)
    by_engine = {"engine": "cpu-tree", "accuracy": 1e-3, **law}
    for at in (None, points):
        for of_tree, function in ((tree.accelerations, nbody.accelerations), (tree.potential, nbody.potential)):
            exact = function(BODIES.position, BODIES.mass, at=at, engine="cpu", **law)
            for found in (of_tree(at), of_tree(at=at), function(BODIES.position, BODIES.mass, at=at, **by_engine)):
                error = np.abs(found - exact) / np.linalg.norm(exact, axis=-1, keepdims=exact.ndim > 1)
                assert found.shape == exact.shape and np.median(error) < 1e-3 and np.quantile(error, 0.99) < 1e-2


def test_accelerations_of_few_bodies_by_accuracy_are_direct_sums():
    x, m = BODIES.position[:100], BODIES.mass[:100]
    found = nbody.accelerations(x, m, accuracy=1e-3)
    assert np.array_equal(found, nbody.accelerations(x, m))


def test_a_tree_in_python_has_an_accuracy_beyond_float32_unless_that_is_asked_for():
    x, m = BODIES.position[:10], BODIES.mass[:10]
    for function in (nbody.Tree, nbody.accelerations):
        given = {"engine": "tree", "accuracy": 1e-7}
        with pytest.raises(InputError, match="it has an accuracy of 2e-06 at best in float32; choose --precision float64"):
            function(x, m, precision="float32", **given)
    assert "float64" in repr(nbody.Tree(x, m, **given))


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"accuracy": 1e-20}, "Tree: engine 'cpu-tree': it has an accuracy of 1e-10 at best in float64"),
        ({"acuracy": 1e-3}, "Tree: unknown argument 'acuracy' .*did you mean 'accuracy'"),
        ({"precision": "mixed"}, "Tree: engine 'cpu-tree': it computes in float32 or float64, not in mixed"),
        ({"softening": "plummer", "length": {"stars": 0.1}}, "Tree: "),
        ({"length": 0.1}, "Tree: length: softening is 'none', which takes no length; say softening='plummer'"),
        ({"at": BODIES.position}, "Tree: unknown argument 'at'; one of: .*engine$"),
    ],
)
def test_invalid_arguments_of_a_tree_are_refused(given, line):
    with pytest.raises(InputError, match=line):
        nbody.Tree(BODIES.position, BODIES.mass, **given)


# --- Benchmarks --------------------------------------------------------------------------------------------------------


def test_a_tree_is_measured_in_particles_per_second_beside_its_error():
    (row,) = measure([Competitor.of("cpu-tree", "float32", accuracy=1e-3)], [2048])
    assert row.suite == "trees" and row.name == "cpu-tree, 0.001" and not row.wrong
    assert row.particles_per_s == pytest.approx(2048 / row.seconds)
    assert 0 < row.interactions < 2048**2 and row.error_median < 2e-3 < row.error_bound


def test_a_measurement_of_scaling_has_two_numbers_of_particles_per_factor_of_ten():
    counts, engines, precisions = selection.scaling(50_000, [], [], [], ["cpu"])
    assert counts == [1000, 3200, 10_000, 32_000, 50_000]
    assert engines == ["cpu", "cpu-tree"] and precisions == ["float32"]
    assert selection.scaling(10**8, [], ["gpu-tree"], ["mixed"], ["gpu"])[1:] == (["gpu-tree"], ["mixed"])
    assert len(selection.scaling(10**8, [], [], [], ["gpu"])[0]) == 11
    for up_to, particles in ((10, []), (10_000, [1000])):
        with pytest.raises(InputError, match="--up-to: "):
            selection.scaling(up_to, particles, [], [], ["cpu"])


def test_the_crossing_is_between_two_numbers_of_particles():
    """Direct sums take 1 µs times N²/1000, the tree 1 µs times 10 N: equal at N = 10 000."""
    shared = {"device": "a CPU", "precision": "float32", "backend": "cpu", "threads": 1}
    direct = [ForceRow(name="cpu", particles=n, seconds=1e-9 * n**2, **shared) for n in (1000, 4000)]
    trees = [
        TreeRow(name="cpu-tree, 0.001", accuracy=1e-3, particles=n, seconds=1e-5 * n, **shared) for n in (1000, 4000, 30_000)
    ]
    for some, text in (
        (trees, "from N = 10000 on"),
        (trees[:2], "above N = 4000"),
        (trees[2:], "at every N from 30000 on"),
    ):
        assert [str(each) for each in crossings(Report({}, [*direct, *some]))] == [f"cpu-tree, 0.001 (float32) {text}"]


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ({"engine": "tree", "accuracy": "abc"}, "accuracy: must be a number, got 'abc'"),
        ({"engine": "tree", "accuracy": -1.0}, "accuracy: must be greater than 0, got -1.0"),
        ({"engine": "auto", "gpus": 2}, "engine 'auto': no GPU: none in this test; leave gpus out"),
    ],
)
def test_options_of_a_name_for_several_engines_are_checked(monkeypatch, asked, line):
    monkeypatch.setattr("nbody.compute.why_unavailable", lambda: "none in this test")
    with pytest.raises(InputError, match=re.escape(line)):
        nbody.accelerations(np.eye(3), np.ones(3), **asked)
