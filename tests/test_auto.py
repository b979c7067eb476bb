"""What ``auto`` stands for on a GPU, and the file that remembers it; the timing itself needs a card."""

import json
from dataclasses import replace

import pytest

from nbody import cache
from nbody.forces import ENGINES, auto, choose
from nbody.forces.auto import bucket, candidates, contenders, fastest

TWO = candidates()


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """A folder for the file, a card by name only, and what was measured. gpu-split is the fastest up to 8192 particles."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(auto, "_key", lambda engines, precision, n: f"some card, {precision}, {bucket(n)}")
    calls = []

    def measure(engines, precision, count):
        calls.append((precision, count))
        times = {"gpu-split": count / 8193, "gpu-symmetric": 1.0}
        return {name: times[name] for name in engines}

    monkeypatch.setattr(auto, "measure", measure)
    return calls


def silent(line):
    """Nobody is told."""


def test_an_experimental_engine_is_never_a_candidate(monkeypatch):
    assert "gpu-split" in candidates()
    monkeypatch.setitem(ENGINES._entries, "gpu-split", replace(ENGINES["gpu-split"], experimental=True))
    assert list(candidates()) == ["gpu-symmetric"]


@pytest.mark.parametrize("particles,names", [
    (1, {"gpu-split"}), (2047, {"gpu-split"}), (2048, {"gpu-split", "gpu-symmetric"}),
    (65536, {"gpu-split", "gpu-symmetric"}), (65537, {"gpu-symmetric"}), (10**9, {"gpu-symmetric"}),
])  # fmt: skip
def test_only_engines_that_may_win_are_compared(particles, names):
    assert set(contenders(TWO, particles)) == names
    assert set(contenders({"gpu-symmetric": TWO["gpu-symmetric"]}, particles)) == {"gpu-symmetric"}


@pytest.mark.parametrize("particles,count", [(2048, 2048), (2896, 2048), (2897, 4096), (20480, 16384), (65536, 65536)])
def test_a_number_of_particles_is_measured_as_the_nearest_power_of_two(particles, count):
    assert bucket(particles) == count


def test_each_precision_and_power_of_two_is_measured_once(measured):
    told = []
    for _ in range(2):
        for precision in ("float32", "float64"):
            assert fastest(TWO, precision, 20480, told.append) == "gpu-symmetric"
            assert fastest(TWO, precision, 15000, told.append) == "gpu-symmetric"
            assert fastest(TWO, precision, 9000, told.append) == "gpu-split"
    assert measured == [("float32", 16384), ("float32", 8192), ("float64", 16384), ("float64", 8192)]
    assert len(told) == 4 and "16384 particles in float32" in told[0]


@pytest.mark.parametrize("text", [
    "", "{", "[1, 2]", '{"some card, float32, 8192": "gpu-warp"}', '{"some card, float32, 8192": {"8192": 7}}', '{"x": 7}',
])  # fmt: skip
def test_a_file_that_is_damaged_or_old_is_measured_anew(measured, text):
    cache.file("fastest").parent.mkdir()
    cache.file("fastest").write_text(text)
    for _ in range(2):
        assert fastest(TWO, "float32", 8192, silent) == "gpu-split"
    assert measured == [("float32", 8192)]
    assert json.loads(cache.file("fastest").read_text())["some card, float32, 8192"] == "gpu-split"


def test_a_folder_that_can_not_be_written_costs_only_the_time(measured, tmp_path):
    (tmp_path / "nbody").write_text("a file where the folder should be")
    for _ in range(2):
        assert fastest(TWO, "float32", 8192, silent) == "gpu-split"
    assert len(measured) == 2


def test_an_engine_without_memory_loses_and_the_answer_is_not_remembered(measured, monkeypatch):
    monkeypatch.setattr(auto, "measure", lambda engines, precision, count: {"gpu-symmetric": 1.0})
    assert fastest(TWO, "float32", 4096, silent) == "gpu-symmetric"
    assert not cache.file("fastest").exists()
    monkeypatch.setattr(auto, "measure", lambda engines, precision, count: {})
    assert fastest(TWO, "float32", 4096, silent) in TWO
    assert not cache.file("fastest").exists()


def test_without_a_home_nothing_is_remembered(measured, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("pathlib.Path.home", no_home)
    assert fastest(TWO, "float32", 8192, silent) == "gpu-split"


def test_one_engine_needs_no_measuring(measured):
    assert fastest(contenders(TWO, 10**6), "float32", 10**6, silent) == "gpu-symmetric"
    assert fastest(contenders(TWO, 1024), "float32", 1024, silent) == "gpu-split"
    assert measured == []


@pytest.fixture
def card(monkeypatch, measured):
    """A card by name only; see ``measured``."""
    from nbody import gpu

    monkeypatch.setattr(gpu, "why_unavailable", lambda: "")
    monkeypatch.setattr(gpu, "facts", lambda: gpu.Facts("a card", (9, 0), 132, 2e9, 8 << 30, 7 << 30, "1"))
    return measured


def test_auto_leaves_out_what_does_not_fit_the_memory(card, monkeypatch):
    monkeypatch.setattr("nbody.forces.memory.fits", lambda engine, *_: True)
    assert choose("float32", 10**6) == ("gpu-symmetric", "the fastest for 1000000 particles on a card")
    monkeypatch.setattr("nbody.forces.memory.fits", lambda engine, *_: engine.name in ("gpu-tiled", "gpu-split"))
    assert choose("float32", 10**6) == ("gpu-split", "gpu-symmetric needs more memory than is free")
    monkeypatch.setattr("nbody.forces.memory.fits", lambda *_: False)  # the run will say how much is missing
    assert choose("float32", 10**6)[0] == "gpu-symmetric"


def test_a_look_at_what_auto_is_measures_nothing(card, monkeypatch):
    monkeypatch.setattr("nbody.forces.memory.fits", lambda *_: True)
    unmeasured = ("gpu-symmetric", "a card is not measured yet: the first run does that")
    assert choose("float32", 5000, measure=False) == unmeasured
    assert choose("float32", 1000, measure=False) == ("gpu-split", "the fastest for 1000 particles on a card")
    assert card == []
    choose("float32", 5000)
    assert choose("float32", 5000, measure=False)[0] == "gpu-split"
    assert card == [("float32", 4096)]


@pytest.mark.gpu
def test_auto_takes_what_is_measured_as_fastest_and_stays_with_it(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    told, counts = [], (1024, 4096, 16384, 262144)
    first = [choose("float32", count, told.append)[0] for count in counts]
    assert len(told) == 2 and set(first) <= set(TWO)
    assert [choose("float32", count, told.append)[0] for count in counts] == first
    assert len(told) == 2
