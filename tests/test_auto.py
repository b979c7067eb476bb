"""What ``auto`` stands for on a GPU, and the file that remembers it; the timing itself needs a card."""

import json

import pytest

from nbody import cache
from nbody.forces import ENGINES, auto, choose
from nbody.forces.auto import CANDIDATES, COUNTS, fastest_engines, nearest

TABLE = dict(zip(COUNTS, ["gpu-split"] * 4 + ["gpu-symmetric"] * 4, strict=True))
ENGINES_ABLE = {name: ENGINES.load(name) for name in CANDIDATES}


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """A folder for the file, a card by name only, and how often it was measured."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(auto, "_key", lambda precision: f"some card, {precision}")
    calls = []

    def measure(engines, precision):
        calls.append(precision)
        return TABLE

    monkeypatch.setattr(auto, "measure", measure)
    return calls


@pytest.mark.parametrize(
    "particles,engine",
    [(1, "gpu-split"), (8192, "gpu-split"), (11000, "gpu-split"), (12000, "gpu-symmetric"), (10**7, "gpu-symmetric")],
)  # fmt: skip
def test_another_count_takes_the_engine_of_the_nearest(particles, engine):
    assert nearest(TABLE, particles) == engine


def test_a_card_is_measured_once_for_each_precision(measured):
    told = []
    for precision in ("float32", "float64", "float32", "float64"):
        assert fastest_engines(ENGINES_ABLE, precision, told.append) == TABLE
    assert measured == ["float32", "float64"]
    assert len(told) == 2 and "float32" in told[0]


@pytest.mark.parametrize(
    "text", ["", "{", "[1, 2]", '{"some card, float32": {"1024": "gpu-warp"}}', '{"some card, float32": 7}', '{"x": 7}']
)
def test_a_file_that_is_damaged_or_old_is_measured_anew(measured, text):
    cache.file("fastest").parent.mkdir()
    cache.file("fastest").write_text(text)
    for _ in range(2):
        assert fastest_engines(ENGINES_ABLE, "float32") == TABLE
    assert measured == ["float32"]
    stored = json.loads(cache.file("fastest").read_text())
    assert stored["some card, float32"]["1024"] == "gpu-split"


def test_a_folder_that_can_not_be_written_costs_only_the_time(measured, tmp_path):
    (tmp_path / "nbody").write_text("a file where the folder should be")
    assert fastest_engines(ENGINES_ABLE, "float32") == TABLE
    assert fastest_engines(ENGINES_ABLE, "float32") == TABLE
    assert measured == ["float32", "float32"]


def test_a_count_that_no_engine_has_memory_for_is_left_out_and_not_remembered(measured, monkeypatch):
    monkeypatch.setattr(auto, "measure", lambda engines, precision: {1024: "gpu-split"})
    assert nearest(fastest_engines(ENGINES_ABLE, "float32"), 10**6) == "gpu-split"
    assert not cache.file("fastest").exists()
    monkeypatch.setattr(auto, "measure", lambda engines, precision: {})
    assert nearest(fastest_engines(ENGINES_ABLE, "float32"), 1000) == CANDIDATES[0]


def test_without_a_home_nothing_is_remembered(measured, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("pathlib.Path.home", no_home)
    assert fastest_engines(ENGINES_ABLE, "float32") == TABLE


def test_one_engine_needs_no_measuring(measured):
    assert set(fastest_engines({"gpu-symmetric": ENGINES.load("gpu-symmetric")}, "mixed").values()) == {"gpu-symmetric"}
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
    assert choose("float32", 10**6) == ("gpu-tiled", "gpu-symmetric needs more memory than is free")
    monkeypatch.setattr("nbody.forces.memory.fits", lambda *_: False)  # the run will say how much is missing
    assert choose("float32", 10**6)[0] == "gpu-symmetric"


def test_auto_does_not_measure_one_engine_under_two_names(card, monkeypatch):
    from nbody import gpu

    monkeypatch.setattr("nbody.forces.memory.fits", lambda *_: True)
    assert choose("float32", 1000, measure=False)[0] == "gpu-scheduled"
    monkeypatch.setattr(gpu, "facts", lambda: gpu.Facts("a card", (8, 6), 20, 2e9, 8 << 30, 7 << 30, "1"))
    assert choose("float32", 1000, measure=False)[0] == "gpu-symmetric"


def test_a_look_at_what_auto_is_measures_nothing(card, monkeypatch):
    monkeypatch.setattr("nbody.forces.memory.fits", lambda *_: True)
    assert choose("float32", 1000, measure=False) == (
        "gpu-scheduled",
        "a card is not measured yet: the first run does that",
    )
    assert card == []
    choose("float32", 1000)
    assert choose("float32", 1000, measure=False)[0] == "gpu-split"
    assert card == ["float32"]


@pytest.mark.gpu
def test_auto_takes_what_is_measured_as_fastest_and_stays_with_it(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    told = []
    first = [choose("float32", count, told.append)[0] for count in COUNTS]
    assert len(told) == 1 and set(first) <= set(CANDIDATES)
    assert [choose("float32", count)[0] for count in COUNTS] == first
    slower = auto._seconds(ENGINES.load("gpu-unrolled")(*_gravity()), auto._sphere(4096))
    quicker = auto._seconds(ENGINES.load(choose("float32", 4096)[0])(*_gravity()), auto._sphere(4096))
    assert quicker < slower


def _gravity():
    from nbody.law import Gravity

    return Gravity(1.0, 3, "plummer", 0.01), "float32"
