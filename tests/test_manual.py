"""What there is to know of every key and component: on a terminal, in Python, and in the manual."""

import re

import pytest

from nbody.cli import main
from nbody.manual.components import NAMED_IN, component, found, options_of, registry
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


@pytest.mark.parametrize("kind,name", COMPONENTS)
def test_every_component_is_described(kind, name):
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
        ("gpu-tree", ["`gpus` (whole number, all, or a list; optional)", "computes on: GPUs"]),
    ],
)  # fmt: skip
def test_a_name_or_a_path_of_keys_is_explained(path, texts):
    page = "\n".join(found(path).values())
    assert all(text in page for text in texts), page


def test_help_and_list_print_it(capsys):
    for words in (["help", "initial.king"], ["list", "king"], ["help"], ["help", "run"], ["help", "bench", "matmul"]):
        assert main(words) == 0
        assert re.search("W0|initial|Run a scenario|Usage", capsys.readouterr().out)
    assert main(["help", "initial.kin"]) == 2 and main(["list", "nfww"]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 2 and "did you mean 'king'" in errors[0] and "did you mean 'nfw'" in errors[1]


def test_every_key_that_names_components_is_in_the_scenario():
    assert NAMED_IN.keys() <= Scenario.model_fields.keys()
    assert {kind for kinds in NAMED_IN.values() for kind in kinds} == REGISTRIES.keys() - {"formats", "plots"}
