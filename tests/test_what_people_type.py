"""What people type without having read the help: accepted, or answered with the right suggestion."""

import json
import re

import pytest
from conftest import said

from nbody import Scenario, Simulation, Trajectory, kepler, plot, plummer
from nbody.cli import main
from nbody.errors import InputError
from nbody.forces import ENGINES
from nbody.forces.choose import choose
from nbody.forces.problem import Problem
from nbody.law import Gravity
from nbody.registry import REGISTRIES, imported
from nbody.run.plan import plan
from nbody.scenario.packaged import names, path_of


def run(capsys, *arguments):
    """The resolved gravity and the summary of a short run."""
    assert main(["run", *arguments, "--quiet", "--json", "-o", "run.h5"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert main(["info", "run.h5", "--json"]) == 0
    return json.loads(capsys.readouterr().out)["scenario"]["gravity"], summary


def test_options_by_the_names_that_people_guess(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    given = ["--n", "24", "--G", "2", "--until", "0.0078125", "--softening", "plummer:0.25", "--engine", "cpu"]
    gravity, summary = run(capsys, "plummer", *given)
    assert summary["particles"] == 24 and summary["time"] == 0.0078125
    assert (gravity["G"], gravity["softening"], gravity["length"]) == (2, "plummer", 0.25)
    short = Scenario.load("plummer").override(softening="0.25").gravity
    assert (short.softening, short.length) == ("plummer", 0.25)
    units = {"length": "pc", "mass": "Msun", "velocity": "km/s"}
    assert Simulation(plummer(4), dt=0.1, softening="0.1 pc", units=units).scenario.gravity.length == 0.1


@pytest.mark.parametrize("call,hint", [
    (lambda: Simulation(plummer(4), dt=0.1, integrator="WHFast"), "wisdom_holman"),
    (lambda: Simulation(plummer(4), dt=0.1, integrator="trace"), "hybrid"),
    (lambda: kepler(e=0.5), "eccentricity"), (lambda: plummer(N=20), "particles"), (lambda: Simulation(N=5), "particles"),
    (lambda: Scenario.load("lectur.yaml"), "scenarios/lecture.yaml"), (lambda: Scenario.load("nope.yaml"), None),
    (lambda: plot("sol.h5", "eccentricity"), "e"),
    (lambda: plummer(4).units, None), (lambda: plummer(4).move_to_center(), None), (lambda: Trajectory("sol.h5"), None),
])  # fmt: skip
def test_names_of_other_programs_are_answered_and_far_ones_with_nothing(call, hint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("p.h5", "out.h5"):
        (tmp_path / name).touch()
    with pytest.raises((InputError, AttributeError)) as error:
        call()
    assert (f"did you mean '{hint}'" if hint else "") in str(error.value)
    assert ("did you mean" in str(error.value)) == bool(hint)


def test_sizes_of_a_benchmark_of_forces_are_numbers_of_particles(refused):
    for sizes in (["--sizes", "1024"], ["--sizes=1024"]):
        assert "numbers of bodies are --particles" in refused("bench", "--cpu", *sizes)


def test_an_option_that_is_far_from_all_gets_no_proposal(refused):
    assert "Possible" not in refused("view", "--zoom", "2", "run.h5")
    assert "--color" in refused("view", "--colr", "2", "run.h5")


@pytest.mark.parametrize("words", [
    ["--set", "gravity.G=2", "plummer"], ["--set", "gravity.G=2", "integrator.steps=3", "plummer", "-q"],
    ["-q", "--engine", "cpu", "--set", "gravity.G=2", "plummer"], ["plummer", "--set", "gravity.G=2", "integrator.steps=3"],
])  # fmt: skip
def test_a_list_of_values_may_stand_before_the_argument(words, monkeypatch):
    seen = []

    def load(*given):
        seen.extend(given)
        raise InputError("enough")

    monkeypatch.setattr("nbody.cli.groups.Replaced.load", load)
    assert main(["run", *words]) == 2
    assert seen == [{**seen[0], "set": [word for word in words if "=" in word]}, path_of("plummer")]


def test_the_recordings_of_a_plot_may_follow_a_list_of_numbers(tmp_path, refused):
    run = tmp_path / "run.h5"
    line = refused("plot", "--bodies", "1,2", "3", run, "orbits", "-o", tmp_path / "a.png")
    assert f"{run}: there is no such file" in line
    assert "must be KEY=VALUE" in refused("run", "plummer", "--set", "gravity.G", "2")


@pytest.mark.parametrize(
    "option", [["-o", "a.csv"], ["--output", "a.csv"], ["--out", "a.csv"], ["--output=a.csv"], ["-oa.csv"]]
)
@pytest.mark.parametrize("command", ["export", "movie", "plot"])
def test_the_file_to_write_is_output_everywhere(command, option, tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    line = refused(command, *option, "run.h5")
    assert line.startswith({"export": "run.h5: there is no", "movie": "a.csv: ", "plot": "a.csv: figures are"}[command])
    assert command == "plot" or "-o a.csv: another file" in refused(command, "run.h5", "b.csv", *option)


def test_a_softening_without_a_length_drops_the_one_that_was_written():
    scenario = Scenario.load("plummer")
    assert scenario.override(softening="none").gravity.length == 0
    assert scenario.override(softening="cutoff").gravity.length == scenario.gravity.length
    with pytest.raises(InputError, match=r"^--softening: unknown softening 'plumer' \(did you mean 'plummer'"):
        scenario.override(softening="plumer:0.1")
    with pytest.raises(InputError, match=r"'soft' is not a length; write it as in 'plummer:0.01'"):
        scenario.override(softening="plummer:soft")


@pytest.mark.parametrize(
    "written,advice",
    [
        ("softening: 0.01", "softening: plummer, length: 0.01"),
        ("softening: plummer:0.01", "softening: plummer, length: 0.01"),
        ("softening: 1", "softening: plummer, length: 1"),
    ],
)
def test_a_length_in_place_of_a_softening_is_refused_with_the_right_form(written, advice):
    text = f"initial: {{generator: plummer, particles: 8}}\ngravity:\n  {written}\nintegrator: {{dt: 0.1, steps: 1}}\n"
    with pytest.raises(InputError, match=rf"^run.yaml:3: gravity.softening: .*write '{advice}'$"):
        Scenario.from_text(text, "run.yaml")
    advised = text.replace(written, advice.replace(", ", "\n  "))
    assert Scenario.from_text(advised, "run.yaml").gravity.softening == "plummer"


LIKELY = {"gpuu": "gpu", "cuda": "gpu", "NVIDIA": "gpu", "numpy": "reference", "atuo": "auto", "gpu-tile": "gpu-tiled"}


@pytest.mark.parametrize("typed,meant", LIKELY.items())
def test_an_unknown_engine_is_refused_with_the_nearest_name(typed, meant):
    with pytest.raises(
        InputError, match=rf"^--engine: unknown engine '{typed}' \(did you mean '{meant}'\?\); one of: auto, gpu, "
    ):
        choose(typed, Problem(Gravity(), "float32", 10), where="--engine: ")


def test_a_removed_engine_is_accepted_with_a_hint_at_the_one_that_computes_the_same_bits():
    name, hint, _ = choose("gpu-scheduled", Problem(Gravity(), "float32", 10))
    assert name == "gpu-symmetric" and "'gpu-scheduled', which was removed" in hint
    assert ENGINES.load("gpu-scheduled") is ENGINES.load("gpu-symmetric") and "gpu-scheduled" not in list(ENGINES)


@pytest.mark.parametrize(
    "word,answer",
    [
        ("plummer", "run this scenario with: nbody run plummer"),
        ("mine.yaml", "run this scenario with: nbody run mine.yaml"),
        ("run.h5", "show this recording with: nbody view run.h5"),
        ("ls", r"did you mean 'nbody list'\?"),
        ("vieww", r"did you mean 'view'\?"),
        ("xyzzy", r"one of: run, resume"),
    ],
)
def test_an_unknown_command_is_refused_with_the_right_one(word, answer, refused):
    assert re.search(f"^there is no command '{re.escape(word)}'.*{answer}", refused(word))


def test_list_shows_everything_that_is_registered(capsys, refused):
    assert main(["list"]) == 0
    page = capsys.readouterr().out
    for kind, target in REGISTRIES.items():
        assert f"{kind}:\n" in page
        for name, summary in imported(target).summaries().items():
            assert re.search(rf"^  {re.escape(name)} +{re.escape(summary)}", page, re.M)
    assert all(re.search(rf"^  {name} +\w", page, re.M) for name in names())
    assert main(["list", "plots", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"plots": imported(REGISTRIES["plots"]).summaries()}
    assert main(["list", "engines"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert listed == ["auto", "gpu", "tree", *ENGINES, *ENGINES.plugins]
    assert "did you mean 'engines'" in refused("list", "engine")


PLAIN = "initial: {generator: plummer, particles: 8}\nintegrator: {dt: 0.01, steps: 2}\n"


@pytest.mark.parametrize(
    "text,line",
    [
        (PLAIN + "end: 3\n", "run.yaml:3: end: belongs in 'integrator'; write 'integrator: {end: …}'"),
        (PLAIN + "softening: plummer\n", "run.yaml:3: softening: belongs in 'gravity'"),
        (PLAIN.replace("8}", "8, offset: [1, 0, 0]}"), "run.yaml:1: initial.offset: only parts of 'combine' have it"),
        (PLAIN.replace("0.01", "1 day") + "gravity: {G: 2.96e-4}\n", "remove the unit, or replace 'gravity: {G: …}' by"),
        (PLAIN.replace("0.01", "1 day"), "add 'units: {length: pc"),
        (PLAIN.replace("dt: 0.01, steps: 2", "scheme: ias15, end: 2") + "record: {every: 3}\n", "(--set record.dt=TIME)"),
    ],
)  # fmt: skip
def test_a_key_in_the_wrong_group_is_refused_with_its_group(text, line):
    assert line in said(lambda: plan(Scenario.from_text(text, "run.yaml"), measure=False))


def test_null_removes_a_key_in_either_order():
    text = PLAIN.replace("dt: 0.01, steps: 2", "scheme: ias15, end: 2") + "record: {every: 3}\n"
    for keys in (["record.every=null", "record.dt=0.5"], ["record.dt=0.5", "record.every=null"], ["record.dt=0.5"]):
        assert Scenario.from_text(text).override(keys).resolved()["record"] == {"dt": 0.5}


def test_a_scenario_with_the_other_suffix_is_named(tmp_path):
    (tmp_path / "c3.yaml").write_text(PLAIN)
    with pytest.raises(InputError, match=r"did you mean 'c3.yaml'"):
        Scenario.load(tmp_path / "c3.yml")


def test_an_end_before_the_present_time_is_refused_with_that_time(tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text(PLAIN)
    assert main(["run", "a.yaml", "--engine", "cpu", "--softening", "0.1", "-q", "-o", "a.h5"]) == 0
    line = "--end: the run has made 2 steps already, to t = 0.02; give more than 0.02"
    assert line in refused("resume", "a.h5", "--end", "0.001")
    assert "there is no body named 'abc'; they have no names" in refused("plot", "a.h5", "orbits", "--bodies", "abc")


# --- What an error names --------------------------------------------------------------------------------------------


def test_an_option_that_does_not_fit_the_scenario_is_named_and_not_the_scenarios_line(tmp_path, refused):
    mine = tmp_path / "mine.yaml"
    mine.write_text(path_of("disk").read_text())
    for scenario in ("disk", mine):
        line = refused("run", scenario, "--integrator", "ias15", "--steps", "1")
        assert line.startswith("--integrator: engine: engine 'auto' and scheme 'ias15': ")
    for assignment, line in (
        ("ensemble.systems=4", "--set ensemble.systems: integrator.scheme: scheme 'leapfrog' moves one"),
        ("gravity.softening=none", "--set gravity.softening: gravity.length: has no meaning"),
    ):
        assert refused("run", "plummer", "--set", assignment).startswith(line)
    mine.write_text(mine.read_text().replace("G: 1.0", "G: one"))
    assert f"{mine}:19: gravity.G: must be a number" in refused("run", mine, "--integrator", "ias15")


def test_a_sweep_names_the_option_that_gave_the_value(tmp_path, refused):
    for option, value, more in (("--vary", "0.01,x", []), ("--set", "x", ["--vary", "initial.seed=1,2"])):
        line = refused("sweep", "disk", option, f"integrator.dt={value}", *more, "-o", tmp_path / "sweep")
        assert f"{option} integrator.dt: must be a number" in line


def test_an_option_of_a_view_is_refused_in_a_run_without_one(tmp_path, refused):
    assert "add --view or --web" in refused("run", "kepler", "--memory", "2", "-o", tmp_path / "run.h5")
