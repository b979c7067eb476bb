"""The roofline: slots are counted in real machine code, bounds are the card's, and nothing is made up."""

import json
from types import SimpleNamespace

import pytest
from compiled_forces import for_h200, kernel_of

from nbody import compute
from nbody.bench.forces.competitor import Competitor
from nbody.bench.roofline import slots
from nbody.bench.roofline import suite as roofline
from nbody.bench.roofline.slots import InstructionCounts
from nbody.bench.roofline.tables import RooflineRow
from nbody.bench.timing import Timing, seconds
from nbody.cli import main
from nbody.forces import ENGINES
from nbody.forces.direct.gpu_triangle import PairTiling
from nbody.forces.reference import ReferenceEngine
from nbody.registry import Entry
from nbody.state import Outputs

H200 = compute.DeviceProperties("NVIDIA H200", (9, 0), 132, 1.98e9, 141 << 30, 140 << 30, "none")


def a_row(**more):
    """A row of an engine on a card."""
    known = {"name": "x", "device": "", "backend": "gpu", "precision": "float32", "threads": 0, "particles": 1000}
    return RooflineRow(**known | more)


# --- Real kernels, compiled for a card that is not here ---------------------------------------------------------------


class Compiled:
    """A kernel compiled for an H200, as :class:`gpu.Launch` looks at it."""

    def __init__(self, name: str, precision: str) -> None:
        tiling = PairTiling(4, 8 if precision == "float32" else 4)
        kernel, signature = kernel_of(name, 3, Outputs.ACCELERATION, tiling=tiling, precision=precision)
        code, _ = for_h200(kernel, signature)
        self.machine_code, _ = compute.assembled(code)
        self.py_func = kernel.py_func
        self._codelibrary = SimpleNamespace(get_cubin=lambda: self.machine_code)


@pytest.fixture(scope="module")
def compiled():
    """Kernels by engine and precision, compiled once."""
    made: dict[tuple[str, str], Compiled] = {}

    def get(name, precision="float32"):
        if (name, precision) not in made:
            made[name, precision] = Compiled(name, precision)
        return made[name, precision]

    return get


def loop(kernel):
    listing = slots.disassembled(kernel.machine_code)
    if listing is None:
        pytest.skip("no nvdisasm here")
    return slots.hottest_loop(listing)


@pytest.mark.parametrize("name", ["gpu-global", "gpu-tiled", "gpu-unrolled", "gpu-split", "gpu-symmetric"])
def test_a_pair_takes_the_operations_of_the_law_and_one_root(compiled, name):
    """float32, 3-D: 3 subtractions, 3 multiply-adds for r², 2 multiplications for u³ and 1 for the mass, 3 multiply-adds
    for the sum; a pair computed once has 3 more of these, and one more mass."""
    found = loop(compiled(name))
    once = ENGINES.load(name).can.pairs_once
    assert found.roots >= 4 and found.float64 == 0
    assert found.float32 / found.roots == (16 if once else 12)
    assert found.instructions / found.roots > found.float32 / found.roots + 1


def test_the_slots_of_the_machine_code_are_those_that_the_engines_state(compiled):
    """gpu_tiled.py: 14.2 per interaction with 32 bodies per iteration."""
    work = loop(compiled("gpu-tiled")).per_interaction(1)
    assert work.instructions == pytest.approx(14.2, abs=0.1) and work.roots == 1


def test_float64_is_counted_for_its_own_pipe(compiled):
    found = loop(compiled("gpu-tiled", "float64"))
    assert found.float32 == 0 and 16 <= found.float64 / found.roots <= 19
    work = found.per_interaction(1)
    # Half as many lanes: the pipe, not the issue of instructions, is what bounds it.
    assert roofline.slot_bound(work, H200) == pytest.approx(132 * H200.clock * 64 / work.float64)


def test_without_a_disassembler_nothing_is_counted(monkeypatch):
    monkeypatch.setattr(slots, "disassembler", lambda: None)
    assert slots.disassembled(b"") is None and slots.hottest_loop("") is None


# --- Bounds -----------------------------------------------------------------------------------------------------------


def test_the_bounds_of_an_h200_are_those_that_its_figures_give():
    """132 multiprocessors at 1.98 GHz: 13 slots allow 2.57e12 interactions/s; a root each 4.18e12, a root a pair twice
    that; 66.9 and 33.5 TFLOP/s."""
    plain = InstructionCounts(13, 12, 0, 1)
    assert roofline.slot_bound(plain, H200) == pytest.approx(2.573e12, rel=1e-3)
    assert roofline.root_bound(plain, H200) == pytest.approx(4.182e12, rel=1e-3)
    assert roofline.root_bound(plain._replace(roots=0.5), H200) == pytest.approx(8.364e12, rel=1e-3)
    assert (H200.peak_float32, H200.peak_float64) == pytest.approx((66.9e12, 33.5e12), rel=2e-3)


@pytest.mark.parametrize(
    ("version", "lanes"),
    [
        ((6, 0), (64, 32)), ((6, 1), (128, 4)), ((7, 0), (64, 32)), ((7, 5), (64, 2)), ((8, 0), (64, 32)),
        ((8, 6), (128, 2)), ((8, 9), (128, 2)), ((9, 0), (128, 64)), ((10, 0), (128, 64)), ((12, 0), (128, 2)),
        ((7, 2), (64, 32)), ((12, 1), (128, 2)),
    ],
)  # fmt: skip
def test_the_lanes_are_those_of_the_programming_guide_and_the_only_source_of_a_cards_peaks(version, lanes):
    """CUDA C++ Programming Guide, throughput of native arithmetic instructions; an unknown version is like the last one
    before it."""
    card = compute.DeviceProperties("a card", version, 10, 1e9, 0, 0, "none")
    assert (card.lanes_float32, card.lanes_float64) == lanes
    assert card.peak("float32") == card.peak("mixed") == card.peak_float32 == 2 * lanes[0] * 10e9
    assert card.peak("float64") == card.peak_float64 == 2 * lanes[1] * 10e9


@pytest.mark.parametrize(
    "line",
    [
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue Jan 1 00:00:00 UTC 2026",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (root@x)",
    ],
)
def test_the_drivers_version_is_read_from_either_kind_of_driver(line):
    assert compute.version_in(line) == "580.159.04"


def test_a_narrow_float_pipe_bounds_before_the_issue_of_instructions_does():
    a100 = compute.DeviceProperties("A100", (8, 0), 108, 1.41e9, 0, 0, "none")  # 64 float32 lanes for 128 issued
    assert roofline.slot_bound(InstructionCounts(14, 12, 0, 1), a100) == pytest.approx(108 * 1.41e9 * 64 / 12)


def test_a_row_above_its_bound_says_so():
    row = a_row(interactions_per_s=9e12)
    assert "jumped over" in roofline.bounded(row, H200, InstructionCounts(13, 12, 0, 1)).note
    fine = roofline.bounded(row, H200, InstructionCounts(1, 1, 0, 0.1))
    assert fine.note == "" and fine.percent_of_slots == pytest.approx(100 * 9e12 / (132 * H200.clock * 128))


# --- The command, on a card that is not here --------------------------------------------------------------------------


class OnThisProcessor(ReferenceEngine):
    """An engine that says it is a GPU's: it launches a real kernel, and the processor does the work."""

    can = ReferenceEngine.can._replace(device="gpu")
    launched: Compiled

    def _compute(self, state, potential):
        from numba.cuda.dispatcher import _Kernel

        _Kernel.launch(self.launched, (), (-(-state.count // 256), 1, 1), (256, 1, 1), 0, 0)
        super()._compute(state, potential)


@pytest.fixture
def card(monkeypatch, compiled):
    """A stand-in for an H200: real machine code, and launches that do nothing."""
    from numba.cuda import dispatcher

    OnThisProcessor.launched = compiled("gpu-tiled", "float64")
    monkeypatch.setitem(ENGINES._entries, "gpu-here", Entry(f"{__name__}:OnThisProcessor", "here"))
    monkeypatch.setattr(dispatcher._Kernel, "launch", lambda *_: None)
    monkeypatch.setattr("nbody.bench.card.no_gpu", lambda: "")
    monkeypatch.setattr(compute, "require", lambda *_: None)
    monkeypatch.setattr(compute, "facts", lambda: H200)
    roofline.pairs_loop.cache_clear()
    monkeypatch.setattr(roofline, "device_times", lambda work, repeats: Timing.of([seconds(work)] * repeats, "device"))


ROOFLINE = ["bench", "roofline", "--engines", "gpu-here", "--precision", "float64"]


def test_the_command_tells_a_kernel_its_bounds(card, tmp_path, capsys):
    arguments = [*ROOFLINE, "--particles", "1000", "1500", "-o", str(tmp_path)]
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    rows = [row for row in found["rows"] if row["suite"] == "roofline"]
    assert [row["particles"] for row in rows] == [1000, 1500]
    assert json.loads((tmp_path / "roofline.json").read_text()) == found
    for row in rows:
        assert row["interactions_per_s"] == pytest.approx(row["particles"] ** 2 / row["seconds"])
        # What a processor does of an H200's bounds: little, but by the same arithmetic.
        assert row["percent_of_slots"] == pytest.approx(100 * row["interactions_per_s"] / row["slot_bound"])
        assert row["percent_of_peak"] == pytest.approx(2000 * row["interactions_per_s"] / (2 * 64 * 132 * H200.clock))
        assert 0 < row["percent_of_roots"] < row["percent_of_slots"] < 100
        assert row["error"] == 0 and not row["wrong"]


def test_the_tables_and_the_picture_are_drawn(card, tmp_path, capsys):
    assert main([*ROOFLINE, "--particles", "1000", "-o", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "Forces and their bounds on NVIDIA H200" in out
    assert f"wrote {tmp_path / 'roofline.png'}" in err
    assert main(["bench", "show", str(tmp_path / "roofline.json")]) == 0
    assert capsys.readouterr().out == out


def test_a_wrong_engine_gets_neither_a_time_nor_a_bound(card, monkeypatch, tmp_path, capsys):
    def nothing(self, state, potential):
        state.acceleration[...] = 0.0

    monkeypatch.setattr(OnThisProcessor, "_compute", nothing)
    assert main([*ROOFLINE, "--particles", "500", "--json", "-o", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    (row,) = json.loads(out)["rows"]
    assert row["wrong"] and row["seconds"] is None and row["percent_of_slots"] is None
    assert "error: gpu-here float64, N = 500: forces are wrong" in err


def test_a_kernel_without_roots_gets_no_bound(card, monkeypatch):
    monkeypatch.setattr(slots, "disassembled", lambda cubin: None)
    (row,) = roofline.measure([Competitor.of("gpu-here", "float64")], [300])
    roofline.pairs_loop.cache_clear()
    assert row.seconds and row.slots is None and row.slot_bound is None and "no loop" in row.note


@pytest.mark.gpu
def test_no_engine_passes_its_bound_on_a_card(tmp_path, capsys):
    who = ["--engines", "gpu-split", "gpu-symmetric", "--precision", "float32", "--particles", "4097", "20480"]
    assert main(["bench", "roofline", *who, "--json", "-o", str(tmp_path)]) == 0
    rows = [row for row in json.loads(capsys.readouterr().out)["rows"] if row["suite"] == "roofline"]
    assert {row["device"] for row in rows} == {compute.facts().name}
    assert all(0 < row["percent_of_slots"] <= 100 and 0 < row["percent_of_roots"] <= 100 for row in rows)
