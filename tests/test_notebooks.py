"""The notebooks run from top to bottom, and what they hold is what they show when they are run."""

import json
import re
from pathlib import Path

import pytest
from notebook_runner import run

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "scenarios").glob("*.ipynb"))


@pytest.mark.more
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_holds_its_outputs(path, tmp_path, monkeypatch):
    """Numbers may differ between machines in their last digits: the texts are compared without them."""
    monkeypatch.chdir(tmp_path)
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    found = run(path)
    for cell, outputs in zip(cells, found, strict=True):
        assert [shape(each) for each in cell["outputs"]] == [shape(each) for each in outputs]
    errors = [float(text) for text in re.findall(r"energy error ([-+.e0-9]+)", json.dumps(found))]
    assert all(abs(error) < 1e-3 for error in errors)


def shape(output):
    """An output without its numbers and pictures."""
    return (
        output["output_type"],
        list(output.get("data", {})),
        re.sub(r"[-+.e0-9 ]+", " ", "".join(output.get("text", []))),
    )


def test_the_gallery_names_every_notebook():
    gallery = (NOTEBOOKS[0].parent / "README.md").read_text()
    assert len(NOTEBOOKS) >= 5 and all(f"({path.name})" in gallery for path in NOTEBOOKS)
