"""The ladder's benchmark: what its command refuses, and what it says of a report."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from nbody.bench import card, readme, report
from nbody.bench.ladder import cublas, suite, tables
from nbody.bench.ladder.plot import plot_ladder
from nbody.bench.ladder.row import with_ratios
from nbody.cli import main
from nbody.errors import InputError
from nbody.linalg import ELEMENTWISE, LADDER
from nbody.linalg.rung import Shape

ROOT = Path(__file__).resolve().parents[1]
PEAK = 66e3


def a_row(name, precision, n, gflops, title="", **more):
    """A row as :func:`suite.measure` makes it before it knows the others, with a rate of one's choice."""
    rung = LADDER.load(name) if name in LADDER else None
    side = min(n, rung.largest or n) if rung else n
    shape = Shape(side, 4 if "skinny" in name or name == suite.SKINNY else side, side)
    reads = rung.reads(shape) if rung else None
    return {
        "suite": "matmul", "name": name, "title": title or (rung.title if rung else "cuBLAS 13.1.0"),
        "device": "a card", "precision": precision, "size": n, **shape._asdict(),
        "seconds": shape.flops / (1e9 * gflops), "gflops": gflops, "percent_of_peak": 100 * gflops / PEAK,
        "gbytes_per_s": 1234.5, "error": 2e-6, "error_mean": 3e-7, "wrong": False, "note": "",
    } | ({
        "improves": rung.improves, "reads_global": reads.from_global, "bytes_global": reads.from_global * n * n * 4,
        "predicted_cycles": reads.cycles if rung.on == "gpu" else None,
    } if rung else {})  # fmt: skip


@pytest.fixture
def found(tmp_path):
    """A report of the whole ladder at two sizes with rates that grow from rung to rung, and its file."""
    rows = []
    for precision in suite.PRECISIONS:
        for n in (512, 2048):
            group = [a_row("cublas", precision, n, 50e3), a_row("cublas-skinny", precision, n, 600)]
            rates = dict(zip(LADDER, np.linspace(5, 48e3, len(LADDER)), strict=True)) | {"k18": 2200}
            group += [a_row(k, precision, n, rate) for k, rate in rates.items() if precision in LADDER.load(k).dtypes]
            sums = a_row("sum", precision, n, 1.0, "matrix sum")
            rows += with_ratios([*group, sums | {"gflops": None, "percent_of_peak": None, "k": None}])
    made = {"machine": report.machine_facts() | {"cublas": "13.1.0", "no_cublas": ""}, "rows": rows}
    path = tmp_path / "matmul.json"
    path.write_text(json.dumps(made))
    return made, path


# --- The command ------------------------------------------------------------------------------------------------------

BAD = {
    "--matmul --sizes 0": "--sizes: must be at least 1, got 0",
    "--matmul --sizes many": "--sizes",
    "--matmul --precision mixed": "--precision: unknown precision 'mixed'",
    "--matmul --rungs k02 k99": "--rungs: unknown rung 'k99' (did you mean",
    "--matmul --rungs k00 --sizes 513 1024": "--sizes: k00 is left out beyond n = 512: it is slow",
    "--matmul --explain k99": "--explain: unknown rung 'k99' (did you mean",
    "--matmul --from /nowhere.json": "/nowhere.json: there is no such file",
    "--matmul --particles 100": "--particles goes without --matmul",
    "--matmul --gpu": "--gpu goes without --matmul",
    "--sizes 512": "--sizes goes with --matmul",
    "--explain k02": "--explain goes with --matmul",
    "--matmul --rungs k00 k00 --sizes 513": "--sizes: k00 is left out beyond n = 512: it is slow, and a larger product",
    "--matmul --rungs numpy --sizes 8192": "--sizes: numpy is left out beyond n = 4096: it is slow, and a larger",
} | {
    f"--matmul --explain k02 {option}": f"{option.split()[0]} goes without --explain"
    for option in ("--sizes 64", "--precision float32", "--rungs k02", "--from a.json", "--output output", "--readme R.md")
} | {
    f"{option} --from a.json": f"{option.split()[0 if option[2] != 'm' else 1]} goes without --from"
    for option in (
        "--matmul --sizes 64", "--matmul --rungs k02", "--precision float32", "--cpu", "--gpu", "--particles 64",
        "--engines cpu", "--roofline", "--output output",
    )
}  # fmt: skip


@pytest.mark.parametrize("arguments", BAD)
def test_bad_input_is_one_line_before_anything_is_measured(arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["bench", *arguments.split()]) == 2
    out, err = capsys.readouterr()
    assert err.startswith("error: ") and BAD[arguments] in err and err.count("\n") == 1
    assert out == "" and list(tmp_path.iterdir()) == []


def test_without_a_gpu_one_line_says_what_works_all_the_same(capsys, tmp_path, monkeypatch):
    if not card.no_gpu():
        pytest.skip("there is a GPU")
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "--matmul"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: --matmul: there is no NVIDIA GPU to measure here (") and err.count("\n") == 1
    assert "--rungs k00 numpy, --explain RUNG and --from REPORT need none" in err and list(tmp_path.iterdir()) == []
    assert main(["bench", "--matmul", "--rungs", "numpy", "k06"]) == 2


@pytest.mark.filterwarnings("error")
def test_the_processors_rungs_are_measured_without_a_gpu(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(card, "no_gpu", lambda: "it was taken out")
    cublas.rival.cache_clear()
    options = ["--rungs", "k00", "numpy", "--sizes", "48", "65", "--json", "-o", str(tmp_path)]
    assert main(["bench", "--matmul", *options]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert [(row["name"], row["precision"], row["size"]) for row in found["rows"]] == [
        (name, precision, size) for precision in suite.PRECISIONS for size in (48, 65) for name in ("k00", "numpy")
    ]
    for row in found["rows"]:
        assert row["seconds"] > 0 and row["device"] == "CPU" and row["percent_of_peak"] is None and not row["wrong"]
    assert "cuBLAS does not take part: it was taken out" in err and (tmp_path / "matmul.png").exists()
    cublas.rival.cache_clear()


def test_what_is_left_out_is_told_once_a_rung():
    lines = suite.left_out(suite.SIZES, ["k00", "numpy", "k00"])
    assert lines == ["k00 is left out beyond n = 512: it is slow, and a larger product teaches nothing more"]
    assert suite.left_out([512], []) == [] and len(suite.left_out([8192], [])) == len(suite.LARGEST)


def test_the_command_tells_what_is_left_out(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(suite, "LARGEST", {"k00": 32})
    monkeypatch.setattr(card, "no_gpu", lambda: "it was taken out")
    cublas.rival.cache_clear()
    assert main(["bench", "--matmul", "--rungs", "k00", "numpy", "--sizes", "32", "48", "64", "-o", str(tmp_path)]) == 0
    assert capsys.readouterr().err.count("k00 is left out beyond n = 32") == 1
    cublas.rival.cache_clear()


@pytest.mark.parametrize("rung", [*LADDER, *ELEMENTWISE])
def test_every_rung_is_explained_anywhere(rung, capsys):
    assert main(["bench", "--matmul", "--explain", rung]) == 0
    out, thing = capsys.readouterr().out, (LADDER if rung in LADDER else ELEMENTWISE).load(rung)
    assert out.startswith(f"{rung}: {thing.title}") and "What limits it: " in out
    if getattr(thing, "on", "gpu") == "gpu":
        assert "registers per thread" in out or "can't be compiled here" in out or "Kernels are simulated" in out
    else:
        assert "cycles" not in out and "global" not in out
    limit = out.split("What limits it: ")[1]
    assert limit[0].islower() or limit[0].isdigit() or limit.split()[0] in ("A's", "B")
    assert not re.search(r"(?<![0-9.])1 (blocks|reads|threads|registers)|e\+0|100%", out)


def test_an_explanation_in_json_is_one_object(capsys):
    assert main(["bench", "--matmul", "--explain", "numpy", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rung"] == "numpy"


@pytest.mark.parametrize("option", [["--matmul"], []])
def test_an_earlier_report_is_shown_in_full(found, capsys, option):
    assert main(["bench", *option, "--from", str(found[1])]) == 0
    out = capsys.readouterr().out
    for precision in suite.PRECISIONS:
        for n in (512, 2048):
            assert f"{precision}, n = {n}, on " in out
    for row in found[0]["rows"]:
        assert f"{row['name']} " in out
    assert "1000 cycles" in " ".join(out.split())


def test_an_earlier_report_in_json_is_one_object(found, capsys):
    assert main(["bench", "--matmul", "--from", str(found[1]), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == found[0]


def test_a_wrong_product_is_told_and_the_command_fails(found, capsys):
    found[0]["rows"][5] |= {"wrong": True, "seconds": None, "note": "the result is wrong; it was not timed"}
    found[1].write_text(json.dumps(found[0]))
    assert main(["bench", "--matmul", "--from", str(found[1])]) == 1
    out, err = capsys.readouterr()
    assert "WRONG" in out and "error: k02 float32, n = 512: the result is wrong" in err


def test_a_report_of_forces_has_no_ladder():
    with pytest.raises(InputError, match="no row of the matrix ladder"):
        tables.ladder_rows({"machine": {}, "rows": [{"suite": "forces"}]})


# --- Figures ----------------------------------------------------------------------------------------------------------


def test_shares_and_speedups_refer_to_the_right_rival():
    rows = with_ratios(
        [a_row(name, "float32", 2048, rate) for name, rate in
         (("cublas", 50e3), ("cublas-skinny", 1e3), ("k02", 1e3), ("k06", 8e3), ("k18", 4e3))]
    )  # fmt: skip
    of = {row["name"]: row for row in rows}
    assert of["k06"]["percent_of_cublas"] == 16 and of["k06"]["speedup"] == 8
    assert of["k18"]["percent_of_cublas"] == 400  # cuBLAS on the same four columns, not on the square
    # k02 reads 4096 numbers from global memory; k06 as many from shared memory, and a 32nd of them from global
    assert of["k06"]["predicted_speedup"] == pytest.approx(4096 * 1000 / (4096 / 32 * 1000 + 4096 * 10))


def test_a_rung_that_a_card_cannot_run_leaves_the_others_alone(monkeypatch):
    class Broken:
        title, improves = "broken", "k02"

        def launch(self, shape, dtype):
            raise RuntimeError("ptxas: cp.async needs sm_80\nor newer")

    class Factors:
        shape, dtype = Shape(8, 8, 8), np.dtype("float32")

    monkeypatch.setattr("nbody.bench.ladder.row._device_name", lambda: "an old card")
    monkeypatch.setattr("nbody.bench.ladder.row.float_peak", lambda dtype: 1.0)
    found = suite._measured_or_not("k99", Broken(), Factors())
    assert found["seconds"] is None and not found["wrong"]
    assert found["note"] == "does not run here (RuntimeError: ptxas: cp.async needs sm_80 or newer)"


def test_what_does_not_fit_is_one_line(monkeypatch):
    from types import SimpleNamespace

    from nbody.bench.ladder import products

    monkeypatch.setattr("nbody.gpu.facts", lambda: SimpleNamespace(memory_free=1 << 30))
    with pytest.raises(
        InputError, match=r"--sizes: products of 10000000x10000000 matrices in float64 need .* of memory"
    ):
        products.check_fits(10_000_000, "float64")


def test_the_picture_shows_every_rung(found, tmp_path):
    from PIL import Image

    plot_ladder(found[0], tmp_path / "ladder.png")
    picture = Image.open(tmp_path / "ladder.png")
    assert picture.format == "PNG" and picture.width > 1000 and picture.height > 600
    shades = np.unique(np.asarray(picture.convert("RGB")).reshape(-1, 3), axis=0)
    assert len(shades) > 20


# --- The README -------------------------------------------------------------------------------------------------------


def test_the_readmes_table_comes_from_the_report_and_nothing_else_changes(found, tmp_path):
    (begin, end), forces = readme.markers("matmul"), readme.markers("bench")
    page = tmp_path / "README.md"
    page.write_text(f"# head\n{forces[0]}\nforces\n{forces[1]}\n{begin}\nold\n{end}\ntail\n")
    arguments = ["bench", "--matmul", "--from", str(found[1]), "--readme", str(page)]
    assert main(arguments) == 0
    once = page.read_text()
    assert once.startswith(f"# head\n{forces[0]}\nforces\n{forces[1]}\n{begin}\n") and "old" not in once
    for name in [*LADDER, "sum", "cublas"]:
        assert f"| `{name}` |" in once
    assert "n = 2048" in once and "| `k17` | float64 | " in once
    assert main(arguments) == 0 and page.read_text() == once


def test_at_every_n_stand_the_champion_and_who_beats_it_or_comes_near_cublas():
    rates = {"cublas": 60e3, "k14": 15e3, "k21": 24e3, "k19": 31e3, "k17": 25e3}
    rows = [a_row(name, "float64", n, rate) for n in (512, 4096) for name, rate in rates.items()]
    slow_when_large = a_row("k15", "float64", 512, 59e3), a_row("k15", "float64", 4096, 20e3)
    table = tables._by_size(with_ratios([*rows[:5], slow_when_large[0]])
                            + with_ratios([*rows[5:], slow_when_large[1]]), (512, 4096))  # fmt: skip
    assert [line.split("`")[1] for line in table[2:]] == ["cublas", "k21", "k19", "k17"]


def test_the_champion_as_called_has_the_rates_of_the_time_that_a_call_takes(monkeypatch):
    from nbody.bench.ladder.as_called import as_called
    from nbody.bench.ladder.products import Problem

    problem = Problem(Shape(16, 16, 16), "float64")
    problem.on_device = [problem.a, problem.b, problem.nothing()]
    monkeypatch.setattr("nbody.gpu.milliseconds", lambda work, inner: 2.0)
    champion = a_row("k21", "float64", 16, 500.0) | {"seconds": 1e-3}
    row = as_called(champion, problem)
    assert row["seconds"] == 2e-3 and row["gflops"] == 250 and row["name"] == "as-called" and "k21" in row["title"]
    assert champion["gflops"] == 500  # the kernel's own row stays as it is


# --- On a card --------------------------------------------------------------------------------------------------------


@pytest.mark.gpu
def test_the_ladder_is_measured_and_every_product_is_right(capsys, tmp_path):
    options = ["--sizes", "130", "256", "--precision", "float32", "--rungs", "k02", "k06", "k17", "k18", "sum"]
    assert main(["bench", "--matmul", *options, "--json", "-o", str(tmp_path)]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["name"] for row in rows} >= {"k02", "k06", "k17", "k18", "sum"}
    assert not any(row["note"] for row in rows) and all(row["seconds"] for row in rows)
    assert (tmp_path / "matmul.png").exists() and (tmp_path / "matmul.json").exists()


@pytest.mark.gpu
def test_cublas_multiplies_row_major_matrices():
    from nbody.gpu import cuda

    library, reason = cublas.rival()
    if library is None:
        pytest.skip(reason)
    rng = np.random.default_rng(2)
    for dtype, tolerance in (("float32", 1e-5), ("float64", 1e-13)):
        a, b = rng.random((33, 70)).astype(dtype), rng.random((70, 9)).astype(dtype)
        c = cuda.to_device(np.full((33, 9), np.nan, dtype))
        library.multiply(cuda.to_device(a), cuda.to_device(b), c)
        np.testing.assert_allclose(c.copy_to_host(), a @ b, rtol=tolerance)
    assert library.version.split(".")[0] in ("11", "12", "13")


def test_the_elementwise_kernels_are_named_beside_the_rungs():
    suite._check_names([1], ["float32"], [*LADDER, *ELEMENTWISE])
