"""The courses: tasks are checked by what the kernels do, and a notebook runs from top to bottom."""

import json
import re
import sys
from pathlib import Path

import pytest
from conftest import ROOT, program

from nbody.cli import main
from nbody.lessons.notebook import COURSES, notebook
from nbody.lessons.task import TASKS, start
from nbody.lessons.task_matrix import NAMES

OWN = "from nbody.linalg import LADDER\nlaunch = LADDER.load('{}').launch\n"
"""A solution: the rung's own kernel."""

TILED = """
from math import sqrt
from numba import cuda
from numpy import float32

@cuda.jit
def kernel(body, acceleration, length2):
    tile = cuda.shared.array((32, 4), float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    own = min(i, body.shape[0] - 1)
    x, y, z = body[own, 0], body[own, 1], body[own, 2]
    ax = ay = az = float32(0)
    for start in range(0, body.shape[0], 32):
        cuda.syncthreads()
        for k in range(4):
            tile[t, k] = body[start + t, k] if start + t < body.shape[0] else 0
        cuda.syncthreads()
        for j in range(32):
            dx, dy, dz, m = tile[j, 0] - x, tile[j, 1] - y, tile[j, 2] - z, tile[j, 3]
            r2 = dx * dx + dy * dy + dz * dz + length2
            w = m / (r2 * sqrt(r2))
            ax, ay, az = ax + w * dx, ay + w * dy, az + w * dz
    if i < body.shape[0]:
        acceleration[i, 0], acceleration[i, 1], acceleration[i, 2] = ax, ay, az

def launch(count):
    return kernel, -(-count // 32), 32
"""
WALK = """
from numpy.linalg import norm

def solve(target, root, place, side, child, act):
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if side[node] < 0.5 * norm(place[node] - place[target]):
            act(node)
        else:
            waiting += [k for k in child[node] if k != -1 and k != target]
"""
MORTON = """
import numpy as np

def solve(x):
    digits = (x * 2**20).astype(int)
    key = sum((digits[:, k] >> bit & 1) << (3 * bit + k) for bit in range(20) for k in range(3))
    return np.argsort(key)
"""
SOLUTIONS = {"gpu-tiled": TILED, "barnes-hut": WALK, "cpu-tree": MORTON}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Each test runs in an empty folder."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "name", ["k11", *SOLUTIONS, *(pytest.param(each, marks=pytest.mark.more) for each in NAMES if each != "k11")]
)
def test_the_kernel_of_a_rung_and_the_method_of_an_engine_solve_their_tasks(name, capsys):
    Path("mine.py").write_text(SOLUTIONS.get(name, OWN.format(name)))
    assert main(["course", "check", name, "mine.py"]) == 0, capsys.readouterr().out
    assert all(line.startswith("ok ") for line in capsys.readouterr().out.splitlines())


@pytest.mark.more
@pytest.mark.parametrize("name,of,missing", [("k06", "k05", "lines of global memory"), ("k05", "k04", "words of one bank")])
def test_the_kernel_of_the_rung_before_does_not_solve_it(name, of, missing, capsys):
    Path(f"{name}.py").write_text(OWN.format(of))
    assert main(["course", "check", name]) == 1
    (line,) = (line for line in capsys.readouterr().out.splitlines() if not line.startswith("ok"))
    assert line.startswith(f"not yet {missing}")


def test_a_task_begins_with_a_kernel_that_is_right_and_reads_too_often(capsys):
    assert main(["course", "start", "k11"]) == 0
    assert main(["course", "check", "k11"]) == 1
    out = capsys.readouterr().out
    assert "k11.py" in out and out.count("ok      results") == 2 and "not yet reads of global memory" in out
    assert "exists already and is kept" in (main(["course", "start", "k11"]), capsys.readouterr().err)[1]
    assert all(start(name, "a.py") for name in TASKS)


@pytest.mark.parametrize(
    "name,missing",
    [("gpu-unrolled", "bodies read from global"), ("barnes-hut", "nodes that act"), ("cpu-tree", "cells of side 1/2")],
)
def test_the_tasks_of_the_other_courses_begin_with_all_pairs_and_no_order(name, missing, capsys):
    assert main(["course", "start", name]) == 0 and main(["course", "check", name]) == 1
    failed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("not yet")]
    assert failed and failed[0].startswith(f"not yet {missing}")


@pytest.mark.parametrize("name", COURSES)
def test_slides_are_one_page_with_the_figures_of_the_course_and_need_no_network(name, tmp_path):
    assert main(["course", "slides", name]) == 0
    page = (tmp_path / f"{name}.html").read_text()
    cells = json.loads(notebook(name))["cells"]
    assert page.count("<section>") == sum(cell["metadata"]["slideshow"]["slide_type"] != "skip" for cell in cells)
    assert page.count("data:image/png;base64,") == sum(len(cell.get("attachments", ())) for cell in cells)
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=.http|Solution|attachment:", page)


@pytest.mark.parametrize(
    "text,says",
    [
        ("", "has no function 'launch'"),
        ("launch = lambda shape, dtype: 1", "launch() returns int"),
        ("1 +", "mine.py: SyntaxError"),
        (None, "there is no such file"),
    ],
)
def test_a_file_that_cannot_be_checked_is_refused(text, says, capfd):
    if text is not None:
        Path("mine.py").write_text(text)
    assert main(["course", "check", "k06", "mine.py"]) == 2
    error = capfd.readouterr().err
    assert says in error and error.count("\n") == 1


def test_a_file_that_does_not_end_is_said_to_loop(monkeypatch, refused):
    monkeypatch.setattr(sys.modules["nbody.cli.course"], "SECONDS", 0.5)
    Path("mine.py").write_text("while True:\n    pass\n")
    assert "mine.py: does not end within 0.5 s" in refused("course", "check", "k06", "mine.py")


def test_unknown_names_are_refused(refused):
    assert "did you mean 'k06'" in refused("course", "check", "k6")
    assert "did you mean 'trees'" in refused("course", "notebook", "tree")
    assert "did you mean 'pairs'" in refused("course", "notebook", "nbody")


def test_the_tasks_are_listed(capsys):
    assert main(["course", "list"]) == 0 and capsys.readouterr().out.endswith("\nbarnes-hut, cpu-tree\n")


@pytest.mark.parametrize("name", COURSES)
def test_a_notebook_has_the_figures_of_its_page_and_every_exercise_a_solution(name):
    cells = json.loads(notebook(name))["cells"]
    page = (ROOT / "nbody" / COURSES[name] / "README.md").read_text()
    pictures = {Path(each).name for each in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page)}
    assert pictures == {each for cell in cells for each in cell.get("attachments", {})}
    assert page.count("**Exercise:**") == page.count("<details><summary>Solution</summary>") > 2
    assert sum(cell["source"].startswith("<details>") for cell in cells) == page.count("**Exercise:**")


@pytest.mark.more
@pytest.mark.parametrize("name", COURSES)
def test_a_notebook_runs_in_the_simulator(name, tmp_path):
    assert main(["course", "notebook", name]) == 0
    done = program("questions", "notebook", tmp_path / f"{name}.ipynb")
    assert done.returncode == 0, done.stderr
    errors = [float(each) for each in re.findall(r"largest relative error is ([-+.e0-9]+)", done.stdout)]
    assert len(errors) >= 2 and max(errors) < 0.1
