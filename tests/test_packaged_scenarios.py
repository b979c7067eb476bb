"""The scenarios that come with nbody are found by name from any folder, in a checkout and in a wheel."""

import json
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from conftest import ROOT, program

from nbody.cli import main
from nbody.errors import InputError
from nbody.run.plan import plan
from nbody.run.simulation import Simulation
from nbody.scenario import Scenario, packaged

NAMES = [path.stem for path in sorted((ROOT / "scenarios").glob("*.yaml"))]
SMALL = ["--particles", "8", "--steps", "1", "--engine", "reference", "--precision", "float64"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Each test runs in an empty folder."""
    monkeypatch.chdir(tmp_path)


def test_the_packaged_scenarios_are_those_of_the_top_level_folder():
    assert packaged.names() == NAMES
    for name in NAMES:
        assert packaged.locate(Path(name)).read_bytes() == (ROOT / "scenarios" / f"{name}.yaml").read_bytes()


@pytest.mark.parametrize(("given", "lines"), [("disk", 0), ("disk.yaml", 1), ("scenarios/disk.yaml", 1)])
def test_a_packaged_scenario_runs_from_any_folder(capsys, given, lines):
    assert main(["run", given, *SMALL]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "comes with nbody" in line]
    assert len(told) == lines
    assert all(given in line and "'disk'" in line for line in told)
    assert Path("output/run.h5").is_file()


def test_quiet_keeps_the_line_back(capsys):
    assert main(["run", "scenarios/disk.yaml", "--quiet", *SMALL]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_file_of_the_users_comes_first(capsys):
    Path("scenarios").mkdir()
    Path("disk").mkdir()  # a folder is no scenario
    Path("scenarios/disk.yaml").write_text((ROOT / "scenarios" / "plummer.yaml").read_text())
    assert Scenario.load("scenarios/disk.yaml").name == "plummer"
    assert Scenario.load("disk").name == "disk"
    Path("plummer").write_text((ROOT / "scenarios" / "disk.yaml").read_text())
    assert Scenario.load("plummer").name == "disk"


@pytest.mark.parametrize("command", ["run", "info"])
@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("plumer", "no scenario of this name (did you mean 'plummer'?); name a .yaml file, or one of:"),
        ("scenarios/dsk.yaml", "there is no such file (did you mean 'scenarios/disk.yaml'?)"),
        ("mine/disk.yaml", "mine/disk.yaml: there is no such file"),
    ],
)
def test_an_unknown_scenario_is_refused_with_the_nearest_name(refused, command, wrong, says):
    assert says.split("; name")[0] in refused(command, wrong)
    with pytest.raises(InputError):
        Scenario.load(wrong)


# --- nbody new, nbody scenarios --------------------------------------------------------------------------------------


def test_new_copies_a_scenario_with_its_comments_and_never_overwrites(capsys, refused):
    assert main(["new", "plummer"]) == 0
    assert Path("plummer.yaml").read_bytes() == (ROOT / "scenarios" / "plummer.yaml").read_bytes()
    assert capsys.readouterr().out == "plummer.yaml\n"
    Path("plummer.yaml").write_text("mine")
    assert "plummer.yaml: exists already and is kept; give another name" in refused("new", "plummer")
    assert Path("plummer.yaml").read_text() == "mine"
    Path("folder").mkdir()
    assert main(["new", "disk", "folder"]) == 0 and main(["new", "disk", "other.yaml"]) == 0
    assert Path("folder/disk.yaml").read_bytes() == Path("other.yaml").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["plumer"], "plumer: unknown scenario (did you mean 'plummer'?)"),
        (["plummer", "x.txt"], "x.txt: a scenario ends in .yaml"),
        (["plummer", "no/such/x.yaml"], "no/such/x.yaml: can't be written"),
        (["../disk"], "unknown scenario"),
        (["disk", 300 * "a" + ".yaml"], "can't be written (File name too long)"),
        (["disk", 300 * "a"], "a scenario ends in .yaml"),
    ],
)
def test_new_refuses_what_it_cannot_copy(refused, arguments, says):
    assert says in refused("new", *arguments) and not list(Path().iterdir())


def test_scenarios_lists_each_with_its_first_sentence(capsys):
    assert main(["scenarios"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == NAMES
    assert all(len(line) < 140 and len(line.split()) > 4 for line in lines)
    assert main(["scenarios", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_plans_makes_its_bodies_and_has_a_head(name):
    """Its head says the physics, what to look for and the source. A small version of it takes its first step."""
    text = (ROOT / "scenarios" / f"{name}.yaml").read_text()
    assert all(f"\n# {part}:" in text for part in ("Physics", "What to look for", "Source")), name
    scenario = Scenario.load(name)
    assert scenario.name == name
    planned = plan(scenario, measure=False)
    assert planned.file_bytes < 1e9 and 20 <= planned.frames <= 2000
    fixed = getattr(scenario.initial, "particles", None) is None and not hasattr(scenario.initial, "combine")
    end = {} if scenario.integrator.end is None else {"end": scenario.integrator.dt or 0.01}
    few = scenario.override(engine="reference", precision="float64", steps=None if end else 1, **end)
    few = few if fixed else few.override(particles=30)
    if end:
        few = few.override([f"record.dt={end['end']!r}"])
    summary = Simulation(few).run()
    assert summary.particles == (planned.count if fixed else 30) and summary.step >= 1


def old_setuptools() -> bool:
    """True where setuptools is missing or older than the 77 that pyproject.toml asks for."""
    try:
        return int(version("setuptools").split(".")[0]) < 77
    except PackageNotFoundError:
        return True


@pytest.mark.more
@pytest.mark.skipif(old_setuptools(), reason="building a wheel takes setuptools 77")
def test_a_wheel_holds_the_scenarios_and_runs_them(tmp_path):
    wheels = tmp_path / "wheels"
    source = tmp_path / "source"  # building leaves folders behind
    for part in ("nbody", "scenarios"):
        shutil.copytree(ROOT / part, source / part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / part, source)
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", wheels, source]
    built = subprocess.run(build, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    (wheel,) = wheels.glob("nbody-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = archive.namelist()
        archive.extractall(tmp_path / "site")
    assert {f"nbody/scenarios/{name}.yaml" for name in NAMES} <= set(held)
    assert {f"nbody/scenarios/pictures/{name}.png" for name in NAMES} <= set(held)
    assert {f"nbody/scenarios/{path.name}" for path in (ROOT / "scenarios").glob("*.ipynb")} <= set(held)
    assert any(name.endswith("LICENSE") for name in held)
    assert not any(name.startswith(("scenarios/", "tests/")) for name in held)
    site = {"PYTHONPATH": str(tmp_path / "site")}
    done = program("questions", "packaged", "run", "scenarios/disk.yaml", *SMALL, cwd=tmp_path, env=site)
    assert done.returncode == 0, done.stderr
    assert "site/nbody" in done.stdout
    pytest.importorskip("furo")
    done = program("questions", "packaged_manual", cwd=tmp_path, env=site)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "manual" / "_images" / "banks.png").is_file()
