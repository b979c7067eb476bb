"""What there is to know of every key and component: on a terminal, in Python, and in the manual."""

import re
import shlex
import sys
from pathlib import Path

import pytest
from conftest import ROOT, child

import nbody
from nbody import compute
from nbody.cli import main
from nbody.cli.components import NAMED_IN, component, found, options_of, page, registry
from nbody.registry import REGISTRIES
from nbody.scenario.described import keys_of_group
from nbody.scenario.model import Scenario

COMPONENTS = [(kind, name) for kind in REGISTRIES for name in registry(kind)]


def groups(kind, seen):
    """A group of keys, and those within it."""
    if kind is not None and kind not in seen:
        seen.append(kind)
        for key in keys_of_group(kind):
            for each in key.groups:
                groups(each, seen)
    return seen


def test_every_key_has_a_meaning_a_type_and_a_default():
    known = groups(Scenario, [])
    for kind, name in COMPONENTS:
        groups(options_of(registry(kind).load(name)), known)
    for group in known:
        for key in keys_of_group(group):
            assert key.meaning and key.takes and (key.default or key.groups), f"{group.__name__}.{key.name}"


def test_every_component_is_described():
    for kind, name in COMPONENTS:
        text = component(kind, name)
        assert text.startswith(f"*{registry(kind)[name].summary}*")
        assert not re.search(r":\w+:`|(?<!`)``[^`]|Attributes:|Pydantic", text), text


@pytest.mark.parametrize(
    "path,texts",
    [
        ("initial.king", ["`W0` (number ≥ 0.5 and ≤ 14; default 6)", "`radius`, `half_mass_radius`"]),
        ("wisdom_holman", ["source: Wisdom & Holman 1991", "`corrector` (0, 3, 5, 7, 11 or 17; default 11)"]),
        ("fields.nfw", ["`mass` (mass > 0; required): M = 4π ρ₀ a³"]),
        ("integrator.dt", ["`dt` (time; optional)"]),
        ("integrator.eta", ["`eta` (number > 0; default 0.05)"]),
        ("initial.planets.bodies.1.inc", ["`inc` (degrees; default 0): the inclination."]),
        ("gravity", ["`G` (gravitational constant ≥ 0; default 1)", "`spline`: GADGET's"]),
        ("gravity.softening", ["`cutoff`: no force"]),
        ("seed", ["`seed` (whole number ≥ 0; default 1)"]),
        ("rotation", ["around the axis of the angular momentum", "options: `--frame`, `--species`, `--cylindrical`"]),
        ("engine.tree", ["gpu-tree, or cpu-tree"]),
        ("gpu-tree", ["`gpus` (whole number, all, or a list; optional)", "computes on: GPUs"]),
    ],
)  # fmt: skip
def test_a_name_or_a_path_of_keys_is_explained(path, texts):
    page = "\n".join(found(path).values())
    assert all(text in page for text in texts), page


def test_what_two_components_of_a_name_have_in_common_is_said_once():
    shown, known = ("\n".join(each("integrator.wisdom_holman").values()) for each in (page, found))
    assert shown.count("`corrector`") == shown.count("source: ") == 1 and shown.count("precisions: ") == 2
    assert known.count("`corrector`") == known.count("source: ") == 2  # for programs: 'nbody list wisdom_holman --json'
    assert len(page("wisdom_holman.corrector")) == 1


def test_help_and_list_print_it(capsys):
    for words in (["help", "initial.king"], ["list", "king"], ["help"], ["help", "run"], ["help", "bench", "matmul"]):
        assert main(words) == 0
        assert re.search("W0|initial|Run a scenario|Usage", capsys.readouterr().out)
    assert main(["help", "initial.kin"]) == 2 and main(["list", "nfww"]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 2 and "did you mean 'king'" in errors[0] and "did you mean 'nfw'" in errors[1]


def test_every_key_that_names_components_is_in_the_scenario():
    assert NAMED_IN.keys() <= Scenario.model_fields.keys()
    assert {kind for kinds in NAMED_IN.values() for kind in kinds} == REGISTRIES.keys() - {
        "formats",
        "plots",
        "quantities",
    }


FOLDER = ROOT / "nbody" / "manual"
PAGES = [path for path in sorted(FOLDER.rglob("*.md")) if "```sh" in path.read_text() or "```python" in path.read_text()]
BLOCK = re.compile(r"^```(sh|yaml|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SLOW = {
    "another_room", "coming_from", "first_run", "galaxy", "how_to", "own_forces", "planet_fields", "stability",
    "star_cluster",
}  # fmt: skip
"""Pages that take more than a few seconds."""


@pytest.mark.parametrize(
    "path", [pytest.param(each, id=each.stem, marks=[pytest.mark.more] * (each.stem in SLOW)) for each in PAGES]
)
def test_every_example_of_a_page_works_as_written(path, tmp_path, monkeypatch, capfd):
    """In order, in one folder, and Python in one namespace. A scenario's first line names its file."""
    monkeypatch.chdir(tmp_path)
    names = {}
    for language, code in BLOCK.findall(path.read_text()):
        if language == "yaml":
            Path(code.split()[1]).write_text(code)
        elif language == "python":
            exec(compile(code, path.name, "exec"), names)
        else:
            for line in filter(None, code.splitlines()):
                command, _, comment = line.partition(" # ")
                needs_gpu = comment.startswith("[GPU]")
                if needs_gpu and not compute.why_unavailable():
                    continue
                assert main(shlex.split(command)[1:]) == (2 if needs_gpu else 0), capfd.readouterr().err


@pytest.mark.more
def test_the_manual_is_built_without_a_warning_and_docs_prints_its_path(tmp_path, capsys, monkeypatch):
    for name in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(name)
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    run = child("-m", "nbody.manual", str(tmp_path / "nbody" / "manual"), "--strict")
    assert run.returncode == 0, run.stderr
    pages = {path.stem: path.read_text() for path in (tmp_path / "nbody" / "manual").rglob("*.html")}
    for kind, name in COMPONENTS:
        assert kind in pages, f"give it a page: nbody/manual/reference/{kind}.md, with {{{{ {kind} }}}}"
        assert f'id="{name.replace("_", "-").lower()}"' in pages[kind], f"{kind}.html has no section '{name}'"
    assert "the depth of the centre" in pages["generators"] and "Wisdom &amp; Holman 1991" in pages["integrators"]
    assert all(f"nbody.{name}" in pages["python"] for name in nbody.__all__)
    assert "with --gpu the cluster" in " ".join(pages["commands"].split())
    assert "Now --camera" not in pages["commands"], "a hidden option"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(["docs"]) == 0  # it is there already
    assert capsys.readouterr().out == f"{tmp_path}/nbody/manual/manual/index.html\n"


def test_docs_names_the_extra_that_is_missing(monkeypatch, refused):
    monkeypatch.setitem(sys.modules, "furo", None)
    assert "furo" in refused("docs") and "[docs]" in refused("docs")
