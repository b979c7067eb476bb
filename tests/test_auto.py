"""What ``auto`` stands for on a GPU, and the file that remembers it; the timing itself needs a card."""

import json
import math

import pytest

from nbody import compute
from nbody.compute.compiling import cache
from nbody.errors import InputError
from nbody.forces import ENGINES
from nbody.forces.choose import choose
from nbody.forces.problem import Problem
from nbody.forces.timing import bucket
from nbody.law import Gravity
from nbody.state import Outputs


@pytest.fixture
def card(tmp_path, monkeypatch):
    """A folder for the cache, and a card by name only, on which gpu-split is the fastest up to 8192 particles. Returns what
    was timed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(compute, "why_unavailable", lambda: "")
    monkeypatch.setattr(
        compute, "facts", lambda: compute.DeviceProperties("a card", (9, 0), 132, 2e9, 8 << 30, 7 << 30, "1")
    )
    monkeypatch.setattr("nbody.forces.choose.fits", lambda *_: True)
    calls = []

    def seconds(kind, asked):
        calls.append((kind._name, asked.precision, bucket(asked.particles)))
        return bucket(asked.particles) / 8193 if kind._name == "gpu-split" else 1.0

    monkeypatch.setattr("nbody.forces.choose.seconds", seconds)
    return calls


def auto(particles, precision="float32", notify=None, measure=True, **asked):
    """The engine that ``auto`` stands for, and why."""
    problem = Problem(asked.pop("gravity", Gravity()), precision, particles, **asked)
    return choose("auto", problem, notify=notify or silent, measure=measure)[:2]


def silent(line):
    """Nobody is told."""


@pytest.mark.parametrize("particles,names", [
    (1, {"gpu-split"}), (2047, {"gpu-split"}), (2048, {"gpu-split", "gpu-symmetric"}),
    (65536, {"gpu-split", "gpu-symmetric"}), (65537, {"gpu-symmetric"}), (10**9, {"gpu-symmetric"}),
])  # fmt: skip
def test_only_engines_that_may_win_are_compared(card, particles, names):
    name, _ = auto(particles)
    assert {each for each, *_ in card} == (names if len(names) > 1 else set())
    assert name in names


@pytest.mark.parametrize("particles,count", [(2048, 2048), (2896, 2048), (2897, 4096), (20480, 16384), (65536, 65536)])
def test_a_number_of_particles_is_measured_as_the_nearest_power_of_two(particles, count):
    assert bucket(particles) == count


def test_each_precision_and_power_of_two_is_measured_once(card):
    told = []
    for _ in range(2):
        for precision in ("float32", "float64"):
            assert auto(20480, precision, told.append)[0] == "gpu-symmetric"
            assert auto(15000, precision, told.append)[0] == "gpu-symmetric"
            assert auto(9000, precision, told.append)[0] == "gpu-split"
    measured = [("float32", 16384), ("float32", 8192), ("float64", 16384), ("float64", 8192)]
    assert [(precision, count) for name, precision, count in card if name == "gpu-split"] == measured
    assert len(told) == 4 and "16384 particles in float32" in told[0]


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", '{"KEY": "gpu-warp"}', '{"KEY": {"8192": 7}}', '{"x": 7}'])
def test_a_file_that_is_damaged_or_old_is_measured_anew(card, monkeypatch, text):
    monkeypatch.setattr("nbody.forces.choose.key", lambda candidates, device: "KEY")
    cache.path_of("fastest").parent.mkdir()
    cache.path_of("fastest").write_text(text)
    for _ in range(2):
        assert auto(8192)[0] == "gpu-split"
    assert len(card) == 2
    assert json.loads(cache.path_of("fastest").read_text())["KEY"] == "gpu-split"


def test_a_folder_that_can_not_be_written_costs_only_the_time(card, tmp_path):
    (tmp_path / "nbody").write_text("a file where the folder should be")
    for _ in range(2):
        assert auto(8192)[0] == "gpu-split"
    assert len(card) == 4


def test_an_engine_without_memory_loses_and_the_answer_is_not_cached(card, monkeypatch):
    monkeypatch.setattr("nbody.forces.choose.seconds", lambda kind, _: 1.0 if kind._name == "gpu-symmetric" else math.inf)
    assert auto(4096)[0] == "gpu-symmetric"
    assert not cache.path_of("fastest").exists()
    monkeypatch.setattr("nbody.forces.choose.seconds", lambda *_: math.inf)
    assert auto(4096)[0] in ENGINES
    assert not cache.path_of("fastest").exists()


def test_without_a_home_nothing_is_remembered(card, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("pathlib.Path.home", no_home)
    assert auto(8192)[0] == "gpu-split"


def test_auto_leaves_out_what_does_not_fit_the_memory(card, monkeypatch):
    assert auto(10**6) == ("gpu-symmetric", "the fastest for 1000000 particles on a card")
    monkeypatch.setattr("nbody.forces.choose.fits", lambda kind, *_: kind._name == "gpu-split")
    assert auto(10**6) == ("gpu-split", "gpu-symmetric needs more memory than is free")
    monkeypatch.setattr("nbody.forces.choose.fits", lambda *_: False)  # the run will say how much is missing
    assert auto(10**6)[0] == "gpu-symmetric"


def test_a_look_at_what_auto_is_measures_nothing(card):
    unmeasured = ("gpu-symmetric", "a card is not measured yet: the first run does that")
    assert auto(5000, measure=False) == unmeasured
    assert auto(1000, measure=False) == ("gpu-split", "the fastest for 1000 particles on a card")
    assert card == []
    auto(5000)
    assert auto(5000, measure=False)[0] == "gpu-split"


@pytest.mark.parametrize("asked", [{"outputs": Outputs.JERK}, {"targets": True}, {"ranks": 2}, {"gpus": 2}])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_auto_takes_an_engine_that_supports_what_is_asked(card, asked, precision):
    name, _ = auto(5000, precision, **asked)
    assert ENGINES.load(name).supports(Problem(Gravity(), precision, 5000, **asked)) == ""


def test_an_engine_on_one_device_is_refused_with_those_that_divide_their_work(card):
    line = "engine 'cpu': it computes on one device; leave gpus out, or use 'nbody run' with --engine gpu-global or"
    with pytest.raises(InputError, match=line):
        choose("cpu", Problem(Gravity(), "float32", 5000, gpus=2))


@pytest.mark.gpu
def test_auto_takes_what_is_measured_as_fastest_and_stays_with_it(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    told, counts = [], (1024, 4096, 16384, 262144)
    first = [auto(count, notify=told.append)[0] for count in counts]
    assert len(told) == 2 and set(first) <= {"gpu-split", "gpu-symmetric"}
    assert [auto(count, notify=told.append)[0] for count in counts] == first
    assert len(told) == 2
