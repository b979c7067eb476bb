"""The lessons say what the kernels do: accesses are counted in the simulator, pictures are those that the program draws."""

import inspect

import numpy as np
import pytest
from conftest import ROOT, child
from matplotlib import rc_context

from nbody.lessons import FIGURES, FOLDER
from nbody.linalg import LADDER

COUNTED = ("k04", "k05", "k06", "k07", "k08", "k09", "k10", "k11", "k12", "k13", "k14", "k15", "k17")


@pytest.mark.simulated
@pytest.mark.parametrize("name", COUNTED)
def test_a_kernel_reads_as_often_as_its_rung_claims(name):
    from nbody.lessons.accesses import ONE_BLOCK, count

    shape, counted = ONE_BLOCK[name], count(name)
    claimed = LADDER.load(name).reads(shape)
    assert counted.from_global / counted.products == claimed.from_global / shape.k
    # k17 also looks at one number of shared memory for its type, in the simulator only
    assert counted.from_shared / counted.products == pytest.approx(claimed.from_shared / shape.k, abs=1 / counted.products)


@pytest.mark.simulated
@pytest.mark.parametrize(("name", "served", "lines"), [("k04", 32, 32), ("k05", 1, 32), ("k06", 1, 1)])
def test_bank_conflicts_and_lines_are_those_of_the_lesson(name, served, lines):
    from nbody.lessons.accesses import LINE, conflicts, of_warp, traced

    block = traced(name)[0, 0]
    reads = [words for array in ("shared0", "shared1") for words in of_warp(block, array, False)]
    assert max(map(conflicts, reads)) == served
    assert {len(np.unique(numbers * 4 // LINE)) for numbers in of_warp(block, "a", False)} == {lines}


@pytest.mark.simulated
def test_the_padding_of_k14_keeps_the_writes_of_a_warp_apart():
    from nbody.lessons.accesses import conflicts, of_warp, traced

    assert {conflicts(words) for words in of_warp(traced("k14")[0, 0], "shared0", True)} == {1}


@pytest.mark.simulated
def test_each_element_of_a_tensor_instruction_has_its_lane():
    from nbody.lessons.fragments import tf32_owners

    for elements_per_lane, lanes in zip((4, 2, 4), tf32_owners().values(), strict=True):
        assert set(np.bincount(lanes.ravel(), minlength=32)) == {elements_per_lane}


@pytest.mark.parametrize(
    "name",
    [
        *(
            pytest.param(name, marks=pytest.mark.simulated)
            for name in ("who_reads_what", "register_tiles", "triangle", "rotation", "fragments")
        ),
        "morton",
        "model",
        "speed",
    ],
)
def test_a_figure_is_drawn_and_its_titles_do_not_overlap(name, tmp_path):
    from nbody.figures import RC
    from nbody.lessons.style import save

    with rc_context(RC):
        figure = FIGURES.load(name)()
        figure.draw_without_rendering()
    titles = [axes._left_title.get_window_extent() for axes in figure.axes if axes._left_title.get_text()]
    for k, title in enumerate(titles):
        assert title.x1 <= figure.bbox.x1 and not any(title.overlaps(other) for other in titles[:k]), name
    save(figure, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 2000


@pytest.mark.simulated
@pytest.mark.parametrize("n,right", [(32, 1024), (64, 1)])
def test_k04_without_its_second_barrier_is_wrong_as_the_course_says(n, right):
    """The simulator runs the threads of a block one after the other up to the next barrier, so the first one alone sums
    before the next tiles are stored."""
    from nbody.linalg import k04_bank_conflicts as k04

    first, _, last = (
        inspect.getsource(k04.tile_kernel).removeprefix("@cache\n").rpartition("            cuda.syncthreads()\n")
    )
    names = dict(vars(k04))
    exec(first + last, names)
    a, b = np.random.default_rng(1).standard_normal((2, n, n)).astype(np.float32)
    c, blocks = np.zeros((n, n), np.float32), n // k04.TILE
    names["tile_kernel"](np.float32, k04.TILE, True)[(blocks, blocks), (k04.TILE, k04.TILE)](a, b, c)
    is_right = np.isclose(c, a.astype(np.float64) @ b, atol=1e-4)
    tiles = is_right.reshape(blocks, k04.TILE, blocks, k04.TILE)
    assert (tiles.sum(axis=(1, 3)) == right).all() and tiles[:, 0, :, 0].all()


def test_every_figure_is_committed_and_shown():
    pages = "".join((ROOT / "nbody" / room / "README.md").read_text() for room in ("linalg", "forces", "forces/tree"))
    for name in FIGURES:
        assert (FOLDER / f"{name}.png").is_file() and f"{name}.png" in pages
    assert {path.stem for path in FOLDER.glob("*.png")} == set(FIGURES)
    pictures = (path for room in ("nbody", "scenarios") for path in (ROOT / room).rglob("*.png"))
    assert sum(path.stat().st_size for path in pictures) < 1.2e6


def test_an_unknown_figure_is_refused():
    run = child("-m", "nbody.lessons", "bank")
    assert run.returncode == 2 and "did you mean 'banks'" in run.stderr and run.stderr.count("\n") == 1
