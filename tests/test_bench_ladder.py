"""The ladder's benchmark: what its command refuses, what it explains, and what it says of a report."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from nbody import compute
from nbody.bench import card, report
from nbody.bench.matmul import cublas, products, suite, tables
from nbody.bench.matmul.tables import ProductRow
from nbody.bench.plot import plot
from nbody.cli import main
from nbody.errors import InputError
from nbody.linalg import ELEMENTWISE, LADDER, explain
from nbody.linalg.rung import ProductShape

PEAK = 66e3


def a_row(name, precision, n, gflops, title="", **more):
    """A row before it knows the others, with a rate of one's choice."""
    rung = LADDER.load(name) if name in LADDER else None
    side = min(n, rung.largest or n) if rung else n
    columns = 4 if "skinny" in name else (rung and rung.columns) or side
    shape, reads = ProductShape(side, columns, side), rung.reads(ProductShape(side, columns, side)) if rung else None
    known = {"title": title or (rung.title if rung else "cuBLAS 13.1.0"), "device": "a card", "error": 2e-6}
    if rung:
        known |= {"reads_global": reads.from_global}
        known["predicted_cycles"] = reads.cycles if rung.on == "gpu" else None
    known |= {"suite": "matmul", "name": name, "precision": precision, "size": n, **shape._asdict()}
    known |= {"seconds": shape.flops / (1e9 * gflops), "gflops": gflops, "percent_of_peak": 100 * gflops / PEAK}
    return ProductRow.of(known | {"gbytes_per_s": 1234.5} | more)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """A report of the whole ladder at two sizes with rates that grow from rung to rung, and its file."""
    rows = []
    for precision in suite.PRECISIONS:
        for n in (512, 2048):
            group = [a_row("cublas", precision, n, 50e3), a_row("cublas-skinny", precision, n, 600)]
            rates = zip(LADDER, np.linspace(5, 48e3, len(LADDER)), strict=True)
            group += [a_row(k, precision, n, float(r)) for k, r in rates if precision in LADDER.load(k).dtypes]
            sums = replace(a_row("sum", precision, n, 1.0, "matrix sum"), gflops=None, k=None)
            sums = replace(sums, percent_of_peak=None)
            rows += suite.with_ratios([*group, sums], suite.naive())
    made = report.Report(report.machine(), rows)
    path = tmp_path_factory.mktemp("ladder") / "matmul.json"
    path.write_text(made.json())
    return made, path


@pytest.fixture
def no_card(monkeypatch):
    monkeypatch.setattr(card, "no_gpu", lambda: "it was taken out")
    cublas.load.cache_clear()
    yield
    cublas.load.cache_clear()


# --- The command ------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("error")
def test_the_processors_rungs_are_measured_without_a_gpu_and_slow_ones_left_out(no_card, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(suite, "_pilot", lambda rung, precision: 1e9)
    monkeypatch.setattr(suite, "LONGEST", 2 * 50**3 / 1e9)
    options = ["--rungs", "k00", "numpy", "--sizes", "48", "65", "--json", "-o", str(tmp_path)]
    monkeypatch.setattr("nbody.bench.timing.ENOUGH", 0.01)
    assert main(["bench", "matmul", *options]) == 0
    out, err = capsys.readouterr()
    rows = json.loads(out)["rows"]
    assert [(row["name"], row["precision"], row["size"]) for row in rows] == [
        (name, precision, size) for precision in suite.PRECISIONS for size in (48, 65) for name in ("k00", "numpy")
    ]
    for row in rows:
        assert row["device"] == "CPU" and row["percent_of_peak"] is None and not row["wrong"]
        assert row["seconds"] or (row["size"] == 65 and "left out: one product would take about" in row["note"])
    assert all(row["seconds"] for row in rows if row["size"] == 48)
    assert "not measured: cuBLAS (it was taken out)" in err and (tmp_path / "matmul.png").exists()


@pytest.fixture
def not_compiled(monkeypatch):
    """Kernels have resources without being compiled (the compiled ones are tested in test_linalg_compiled.py)."""
    monkeypatch.setattr(compute, "ptx", lambda kernel, signature, version: version)
    monkeypatch.setattr(compute, "resources", lambda code, version: compute.Resources(40, 9216, 0))


@pytest.mark.parametrize("rung", [*LADDER, *ELEMENTWISE])
def test_every_rung_is_explained_anywhere(not_compiled, rung):
    text, thing = explain.explain(rung), (LADDER if rung in LADDER else ELEMENTWISE).load(rung)
    assert text.startswith(f"{rung}: {thing.title}") and "What limits it: " in text
    if getattr(thing, "on", "gpu") == "gpu":
        assert "registers per thread" in text or "Kernels are simulated" in text
    else:
        assert "cycles" not in text and "global" not in text
    limit = text.split("What limits it: ")[1]
    assert limit[0].islower() or limit[0].isdigit() or limit.split()[0] in ("A's", "B")
    assert not re.search(r"(?<![0-9.])1 (blocks|reads|threads|registers)|e\+0|100%", text)


@pytest.mark.parametrize("words", [["k01", "k06"], ["k01,k06"]])
def test_several_rungs_are_explained_with_what_their_kernels_take(words, capsys):
    assert main(["bench", "matmul", "--explain", *words]) == 0
    first, second = capsys.readouterr().out.split("\n\nk06: ")
    for text in ("k01: " in first and first, second):
        assert "registers per thread" in text or "install" in text or "Kernels are simulated" in text


def test_the_explanation_is_of_the_readers_own_card(not_compiled, monkeypatch):
    if compute.SIMULATED:
        pytest.skip("kernels are simulated")
    turing = compute.DeviceProperties("a T4", (7, 5), 40, 1.59e9, 1 << 34, 1 << 34, "none")
    monkeypatch.setattr(compute, "available", lambda: True)
    monkeypatch.setattr(compute, "facts", lambda: turing)
    monkeypatch.setattr(compute, "multiprocessor_limits", lambda: (65536, 65536, 1024, 16))
    text = explain.explain("k01")
    assert "Compiled for a T4 (compute capability 7.5):" in text
    assert "9216 bytes of shared memory; 1 block per multiprocessor, all of its threads" in text
    monkeypatch.setattr(compute, "available", lambda: False)
    assert "Compiled for an H200, for there is no card here (compute capability 9.0):" in explain.explain("k01")


@pytest.mark.parametrize(
    "error",
    [
        ImportError("No module named 'cuda.core'"), RuntimeError("libNVVM cannot be found"),
        RuntimeError('Failure finding "libnvrtc.so.13 or libnvrtc.so.12": No such file'),
    ],
)  # fmt: skip
def test_without_the_cuda_extra_the_command_that_installs_it_is_named(error, monkeypatch):
    if compute.SIMULATED:
        pytest.skip("kernels are simulated")

    def fails(*_):
        raise error

    monkeypatch.setattr(compute, "ptx", fails)
    assert re.search(r"also without one: .*pip install .*\[cu13\]", explain.explain("k06"))
    monkeypatch.setattr(compute, "ptx", lambda *_: 1 / 0)
    assert "float32: does not compile for it (ZeroDivisionError" in explain.explain("k06")


def test_an_explanation_in_json_is_one_object(not_compiled, capsys):
    assert main(["bench", "matmul", "--explain", "numpy", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rung"] == "numpy"
    assert main(["bench", "matmul", "--explain", "numpy", "k00", "--json"]) == 0
    assert [each["rung"] for each in json.loads(capsys.readouterr().out)["rungs"]] == ["numpy", "k00"]


# --- A report ---------------------------------------------------------------------------------------------------------


def test_an_earlier_report_is_shown_in_full(found, capsys):
    assert main(["bench", "show", str(found[1])]) == 0
    out = capsys.readouterr().out
    for precision in suite.PRECISIONS:
        for n in (512, 2048):
            assert f"{precision}, n = {n}, on " in out
    assert all(f"{row.name} " in out for row in found[0].rows) and "1000 cycles" in " ".join(out.split())
    assert main(["bench", "show", str(found[1]), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(found[1].read_text())


def test_shares_and_speedups_refer_to_the_right_competitor():
    rates = {"cublas": 50e3, "cublas-skinny": 1e3, "k02": 1e3, "k06": 8e3, "k18": 4e3}
    rows = suite.with_ratios([a_row(name, "float32", 2048, rate) for name, rate in rates.items()], "k02")
    of = {row.name: row for row in rows}
    assert suite.naive() == "k02" and of["k06"].percent_of_cublas == 16 and of["k06"].speedup == 8
    assert of["k18"].percent_of_cublas == 400  # cuBLAS on the same four columns, not on the square
    # k02 reads 4096 numbers from global memory; k06 as many from shared memory, and a 32nd of them from global
    assert of["k06"].predicted_speedup == pytest.approx(4096 * 1000 / (4096 / 32 * 1000 + 4096 * 10))


def test_a_rung_that_a_card_cannot_run_leaves_the_others_alone(monkeypatch):
    def broken(rung, problem, row):
        raise RuntimeError("ptxas: cp.async needs sm_80\nor newer")

    monkeypatch.setattr(suite, "_measure", broken)
    monkeypatch.setattr(compute, "facts", lambda: SimpleNamespace(name="an old card"))
    monkeypatch.setattr(cublas, "load", lambda: (None, ""))
    (row,) = suite.measure([8], ["float32"], ["k06"])
    assert row.seconds is None and not row.wrong and row.device == "an old card"
    assert row.note == "does not run here (RuntimeError: ptxas: cp.async needs sm_80 or newer)"


def test_a_wrong_product_gets_no_time(no_card, monkeypatch):
    monkeypatch.setattr(products.ProductProblem, "error", lambda self, product: SimpleNamespace(maximum=np.nan, mean=np.nan))
    (row,) = suite.measure([8], ["float32"], ["numpy"])
    assert row.wrong and row.seconds is None and row.note == "the result is wrong; it was not timed"


def test_sizes_beyond_memory_are_refused(monkeypatch):
    monkeypatch.setattr("nbody.compute.facts", lambda: SimpleNamespace(memory_free=1 << 30))
    with pytest.raises(InputError, match=r"--sizes: products of 10000000x10000000 matrices in float64 need .* memory"):
        products.check_fits(10_000_000, "float64", on_gpu=True)


def test_the_picture_shows_every_rung(found, tmp_path):
    plot(found[0], tmp_path / "ladder.png")
    assert (tmp_path / "ladder.png").read_bytes().startswith(b"\x89PNG")


def test_the_readmes_tables_have_every_rung_at_one_n_and_its_speed_at_every_n(found):
    full, by_size = tables.full_table(found[0]).split("\n\n")[1:]
    for name in [*LADDER, "sum", "cublas"]:
        assert f"| `{name}` |" in full
        assert bool(re.search(rf"\| `{name}` \| float(32|64) \|", by_size)) == (name != "sum")
    assert "| FLOP/s | precision | n = 512 | n = 2048 |" in by_size and " %) |" in by_size
    assert "n = 2048" in tables.full_table(found[0]).split("\n")[0]


# --- On a card --------------------------------------------------------------------------------------------------------


@pytest.mark.gpu
def test_the_ladder_is_measured_and_every_product_is_right(capsys, tmp_path):
    options = ["--sizes", "130", "256", "--precision", "float32", "--rungs", "k02", "k06", "k17", "k18", "sum"]
    assert main(["bench", "matmul", *options, "--json", "-o", str(tmp_path)]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["name"] for row in rows} >= {"k02", "k06", "k17", "k18", "sum"}
    assert not any(row["note"] for row in rows) and all(row["seconds"] for row in rows)
    assert (tmp_path / "matmul.png").exists() and (tmp_path / "matmul.json").exists()


@pytest.mark.gpu
def test_cublas_multiplies_row_major_matrices():
    library, reason = cublas.load()
    if library is None:
        pytest.skip(reason)
    rng = np.random.default_rng(2)
    for dtype, tolerance in (("float32", 1e-5), ("float64", 1e-13)):
        a, b = rng.random((33, 70)).astype(dtype), rng.random((70, 9)).astype(dtype)
        c = compute.cuda.to_device(np.full((33, 9), np.nan, dtype))
        library.multiply(compute.cuda.to_device(a), compute.cuda.to_device(b), c)
        np.testing.assert_allclose(c.copy_to_host(), a @ b, rtol=tolerance)
    assert library.version.split(".")[0] in ("11", "12", "13")
