"""A scenario is read as its author meant it, and says where each of its values came from."""

from pathlib import Path

import numpy as np
import pytest
from conftest import program, said
from hypothesis import strategies as st
from test_fuzz_scenario import budget, examined

from nbody.errors import InputError
from nbody.initial import resolved_initial
from nbody.law import Gravity
from nbody.scenario import OPTIONS, Scenario

PRESETS = sorted((Path(__file__).parents[1] / "scenarios").glob("*.yaml"))

TEXT = """\
# a comment
initial:
  generator: lecture
  particles: 1e3        # YAML 1.1 reads this as text
integrator: {dt: 1e-3, steps: 10}
"""


def scenario(text: str = TEXT) -> Scenario:
    return Scenario.from_text(text, "some/disc.yaml")


def test_the_disc_is_the_lectures_problem():
    disc = Scenario.load(PRESETS[0].with_name("lecture.yaml"))
    assert disc.gravity == Gravity(G=10.0, dimensions=2, softening="cutoff", length=0.01)
    assert (disc.integrator.scheme, disc.integrator.dt, disc.integrator.steps) == ("taylor", 0.001, 800)
    assert (disc.initial.generator, disc.initial.particles, disc.initial.seed) == ("lecture", 20480, 1)
    assert (disc.engine.name, disc.precision) == ("auto", "float32")


def test_missing_keys_have_defaults():
    assert scenario().resolved() == {
        "name": "disc",
        "initial": {"generator": "lecture", "particles": 1000, "seed": 1},
        "gravity": {"G": 1.0, "dimensions": 3, "softening": "none", "length": 0.0},
        "integrator": {"scheme": "leapfrog", "dt": 0.001, "steps": 10},
        "engine": "auto",
        "precision": "float32",
        "record": {"every": 1},
        "checkpoint": {"minutes": 5.0},
    }


@pytest.mark.parametrize(
    ("written", "dt"),
    [("1e-3", 1e-3), ("1E5", 1e5), (".5", 0.5), ("5.", 5.0), ("+2", 2.0), ("0.01", 0.01), ("1_0", 10.0)],
)
def test_a_number_is_what_a_physicist_writes(written, dt):
    assert scenario(TEXT.replace("1e-3", written)).integrator.dt == dt


def test_kinds_are_python_kinds():
    read = scenario()
    assert type(read.initial.particles) is int and type(read.integrator.dt) is float
    assert type(read.gravity) is Gravity


def test_a_byte_order_mark_and_windows_lines_are_no_obstacle(tmp_path):
    path = tmp_path / "disc.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
    assert Scenario.load(path).resolved() == scenario().resolved()


def test_a_scenario_is_frozen():
    with pytest.raises(ValueError, match="frozen"):
        scenario().integrator.dt = 1.0


def test_where_names_the_line_of_a_value_or_of_the_group_it_is_missing_from():
    read = scenario()
    assert read.where("initial.particles") == "some/disc.yaml:4: initial.particles: "
    assert read.where("initial.radius") == "some/disc.yaml:2: initial.radius: "
    assert read.where("integrator.dt") == "some/disc.yaml:5: integrator.dt: "
    assert read.where("engine") == "some/disc.yaml: engine: "


def test_an_option_replaces_a_value_and_is_named_in_its_stead():
    changed = scenario().override(dt=0.5, particles=7, engine="cpu", every=None)
    assert (changed.integrator.dt, changed.initial.particles, changed.engine.name) == (0.5, 7, "cpu")
    assert changed.where("integrator.dt") == "--dt: "
    assert changed.where("integrator.steps") == "some/disc.yaml:5: integrator.steps: "
    assert changed.text == TEXT
    assert "dt: 0.5" in changed.to_yaml()
    assert scenario().integrator.dt == 1e-3


@pytest.mark.parametrize("change", [lambda s, **v: s.override(**v), lambda s, **v: s.with_keywords(v)])
def test_every_short_name_reaches_its_value_from_the_command_line_and_from_python(change):
    given = {
        "particles": 3, "seed": 4, "steps": 5, "dt": 0.25, "integrator": "taylor", "end": 2.0, "engine": "cpu",
        "precision": "float64", "every": 2, "G": 3.0, "softening": "none", "accuracy": 1e-3, "gpus": 2,
        "observables": ["escapers"], "length": 0.5, "event": "closest(0, 1)", "stop_when": ["apsis(1)"],
    }  # fmt: skip
    events = {"event": ("record", "closest", [0, 1]), "stop_when": ("stop", "apsis", [1])}
    expected = given | {
        name: ({"action": action, "kind": kind, "bodies": bodies},) for name, (action, kind, bodies) in events.items()
    }
    assert set(given) == set(OPTIONS)
    softened = scenario().override(softening="plummer:0.1")
    for name, option in OPTIONS.items():
        group = change(softened if name == "length" else scenario(), **{name: given[name]}).resolved()
        for key in option.keys:
            group = group[key]
        assert group == expected[name]


def test_keywords_in_any_order_give_the_same_scenario():
    for chosen in ({"scheme": "hermite4", "eta": 0.02}, {"eta": 0.02, "scheme": "hermite4"}):
        assert scenario().with_keywords({"integrator": chosen}).integrator.options == {"eta": 0.02}
    with pytest.raises(InputError, match=r"end: cannot be combined with steps; leave one of the two out"):
        scenario().with_keywords({"steps": 5, "end": 1.0})


def test_another_scheme_leaves_no_option_of_the_written_one_behind():
    written = scenario().with_keywords({"integrator": {"scheme": "hermite4", "eta": 0.02}})
    for changed in (written.override(integrator="leapfrog"), written.override(["integrator.scheme=leapfrog"])):
        assert changed.integrator.options == {}


def test_an_assignment_reaches_any_value():
    changed = scenario().override(["gravity.G=2.5", "initial.spin=3", "record={dt: 0.5}", "name=x y"])
    assert (changed.gravity.G, changed.initial.options["spin"], changed.record.dt, changed.name) == (2.5, 3, 0.5, "x y")


@pytest.mark.parametrize(
    "assignment,line",
    [
        ("gravity.G", "--set: must be KEY=VALUE, as in engine.theta=0.5, got 'gravity.G'"),
        ("fields.².mass=1", "--set: must be KEY=VALUE, as in engine.theta=0.5, got 'fields.\\xb2.mass=1'"),
        ("gravity.G=-1", "--set gravity.G: must be at least 0, got -1"),
        ("gravity.g=1", "--set gravity.g: unknown key (did you mean 'G'?)"),
        ("engin.theta=1", "--set engin.theta: unknown key (did you mean 'engine'?)"),
        ("gravity.G=[1", "--set gravity.G:1: not valid YAML: the bracket opened here is not closed; close it"),
        ("record.dt=-1", "--set record.dt: must be greater than 0, got -1"),
    ],
)
def test_invalid_assignments_are_refused(assignment, line):
    assert said(scenario().override, [assignment]) == line


def test_an_option_may_give_what_the_file_lacks_and_hides_no_other_error(tmp_path):
    path = tmp_path / "short.yaml"
    path.write_text("initial: {generator: plummer, particles: 10}\nintegrator: {dt: 0.1}\n")
    with pytest.raises(InputError, match=r"short.yaml:2: integrator.steps: is missing"):
        Scenario.load(path)
    assert Scenario.load(path, steps=3).integrator.steps == 3
    assert Scenario.load(path, ["integrator.end=2"]).integrator.end == 2
    for wrong, message in (("{dt: 0}", "integrator.dt: must not be 0"), ("5", "must be a group of keys")):
        path.write_text(f"initial: {{generator: plummer, particles: 10}}\nintegrator: {wrong}\n")
        with pytest.raises(InputError, match=message):
            Scenario.load(path, steps=3)


def test_of_two_keys_that_exclude_each_other_an_option_takes_the_written_ones_place():
    assert scenario().override(end=3.0).resolved()["integrator"] == {"scheme": "leapfrog", "dt": 0.001, "end": 3.0}
    for options in ({"steps": 5, "end": 1.0}, {"assignments": ["record.dt=1"], "every": 2}):
        with pytest.raises(InputError, match=r"cannot be combined with --(steps|every); leave one of the two out"):
            scenario().override(**options)
    timed = Scenario.from_text(TEXT + "record: {dt: 0.5}\n")
    assert timed.override(every=3).resolved()["record"] == {"every": 3}


def test_an_engine_is_a_name_or_a_group_and_another_engine_leaves_no_option_behind():
    chosen = Scenario.from_text(TEXT + "engine: {name: tree, theta: 0.5}\n")
    assert chosen.resolved()["engine"] == {"name": "tree", "theta": 0.5}
    assert chosen.override(["engine.theta=0.7"]).resolved()["engine"] == {"name": "tree", "theta": 0.7}
    assert chosen.override(engine="tree").resolved()["engine"] == "tree" or chosen.engine.options
    assert chosen.override(engine="cpu").resolved()["engine"] == "cpu"
    both = scenario().override(["integrator.eta=0.1"], integrator="hermite4")
    assert both.integrator.options == {"eta": 0.1}  # an assignment belongs to the scheme that an option names
    assert Scenario.from_text(TEXT + "engine: {name: cpu}\n").resolved()["engine"] == "cpu"


def test_an_option_adds_a_key_to_a_value_that_stands_for_a_group():
    short = Scenario.from_text(TEXT + "collisions: merge\nescape: 5\nevents: ['transit(1)']\n")
    chosen = short.override(["collisions.radius=0.1", "escape.every=3", "events.0.action=stop"])
    assert (chosen.collisions.rule, chosen.collisions.radius) == ("merge", 0.1)
    assert (chosen.escape.radius, chosen.escape.every) == (5, 3)
    assert (chosen.events[0].kind, chosen.events[0].action) == ("transit", "stop")
    assert short.override(["escape.radius=3"]).escape.radius == 3
    with pytest.raises(InputError, match=r"^--set integrator\.dt\.x: must be a number, got a group of keys$"):
        short.override(["integrator.dt.x=3"])


def test_options_may_follow_one_another():
    assert scenario().override(dt=0.5).override(steps=3).integrator.dt == 0.5
    with pytest.raises(InputError, match=r"^--dt: "):
        scenario().override(dt=0.0).override(steps=3)


def test_a_scenario_from_python_takes_numpys_numbers():
    made = Scenario.from_dict(
        {
            "initial": {"generator": "lecture", "particles": np.int64(5), "spin": np.float32(2)},
            "integrator": {"dt": np.float64(0.1), "steps": 3},
        }
    )
    assert made.initial.particles == 5 and made.name == "run"
    assert Scenario.from_text(made.text).resolved() == made.resolved()
    with pytest.raises(InputError, match=r"^integrator\.dt: must be a number, got a list$"):
        Scenario.from_dict({"initial": {"file": "a.csv"}, "integrator": {"dt": [1], "steps": 1}})


def test_the_resolved_initial_shows_the_generators_own_defaults():
    expected = {"generator": "lecture", "particles": 1000, "seed": 1, "radius": 3.2767, "spin": 10.0}
    assert resolved_initial(scenario()) == expected
    changed = scenario(TEXT.replace("generator: lecture", "generator: disk\n  spin: 3"))
    assert resolved_initial(changed)["spin"] == 3.0


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_what_is_written_out_reads_back_the_same(path):
    loaded = Scenario.load(path)
    assert Scenario.from_text(loaded.to_yaml()).resolved() == loaded.resolved()


NAMES = st.text(min_size=1, max_size=20).filter(lambda text: text.strip() and text.isprintable())


@budget(50, 2000)
def test_any_name_and_number_survives_being_written_out(examples):
    def survives(given):
        name, dt, seed = given
        initial = {"generator": "lecture", "particles": 1, "seed": seed}
        made = Scenario.from_dict({"name": name, "initial": initial, "integrator": {"dt": dt, "steps": 1}})
        assert Scenario.from_text(made.to_yaml()).resolved() == made.resolved()

    examined(survives, st.tuples(NAMES, st.floats(1e-30, 1e30), st.integers(0, 2**63 - 1)), examples)


@pytest.mark.parametrize("name", ["010", "1e5", "1:30", "no", "null", "true", ".nan", "2024-01-01", "a: b", "# c", "- d"])
def test_a_name_that_looks_like_something_else_stays_a_name(name):
    values = {"name": name, "initial": {"file": "a.csv"}, "integrator": {"dt": 1, "steps": 1}}
    assert Scenario.from_text(Scenario.from_dict(values).to_yaml()).name == name


def test_reading_a_scenario_needs_no_compiler_and_no_hdf5():
    assert program("questions", "after_scenario", check=True).stdout == "[]\n"
