"""What the shell offers after Tab: names from the registries and files of the right kind, without a wait."""

import sys

import pytest
from conftest import program

from nbody.analysis import PLOTS
from nbody.cli import main
from nbody.forces import ENGINES
from nbody.integrators import INTEGRATORS
from nbody.linalg import ELEMENTWISE, LADDER
from nbody.scenario import packaged


@pytest.fixture
def offered(tmp_path, monkeypatch, capsys):
    """A function: the words that bash is offered for a line that ends with a word begun, or with a blank."""
    (tmp_path / "scenarios").mkdir()
    for name in ("disk.yaml", "run.h5", "notes.txt", "two words.yaml", "scenarios/plummer.yml"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["nbody"])
    monkeypatch.setattr(sys.modules["__main__"], "__package__", None, raising=False)  # as of the installed script
    monkeypatch.setenv("_NBODY_COMPLETE", "complete_bash")

    def ask(line: str) -> list[str]:
        words = line.split(" ")
        monkeypatch.setenv("COMP_WORDS", "\n".join(words))
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        with pytest.raises(SystemExit):
            main([])
        out, err = capsys.readouterr()
        assert err == ""
        return [word for word in out.splitlines() if word]

    return ask


@pytest.mark.parametrize(
    "line,words",
    [
        ("nbody run --engine ", ["auto", "gpu", "tree", *ENGINES]),
        ("nbody run --engine gpu-ti", ["gpu-tiled"]),
        ("nbody run --engine matrix:k1", [f"matrix:{name}" for name in LADDER if name.startswith("k1")]),
        ("nbody run --integrator ", [*INTEGRATORS]),
        ("nbody run --precision ", ["float32", "mixed", "float64", "auto"]),
        ("nbody bench --precision m", ["mixed"]),
        ("nbody bench --engines ", [*ENGINES]),
        ("nbody bench --engines cpu gpu-tiled gpu-s", ["gpu-split", "gpu-symmetric"]),
        ("nbody bench matmul --rungs k00 n", ["numpy"]),
        ("nbody bench matmul --explain k01 ", [*LADDER, *ELEMENTWISE]),
        ("nbody bench --engines cpu --prec", ["--precision"]),
        ("nbody bench m", ["matmul"]),
        ("nbody run ", [*packaged.names(), "disk.yaml", "scenarios/plummer.yml"]),
        ("nbody run plu", ["plummer"]),
        ("nbody run scenarios/", ["scenarios/plummer.yml"]),
        ("nbody view r", ["run.h5", "resonance_capture", "resonance_overlap"]),
        ("nbody view d", ["disc_galaxy", "disk", "disk.yaml"]),
        ("nbody plot ", ["run.h5", *PLOTS]),
        ("nbody plot run.h5 energy o", ["overview", "orbits", "omega"]),
        ("nbody diff run.h5 r", ["run.h5"]),
        ("nbody info d", ["disc_galaxy", "disk", "disk.yaml"]),
        ("nbody info [", []),
        ("nbody run n", []),  # and the shell goes on with all files
    ],
)
def test_the_shell_is_offered(offered, line, words):
    assert offered(line) == words


def test_nothing_heavy_is_imported_for_it():
    assert program("questions", "after_completion", check=True).stdout == "[]\n"
