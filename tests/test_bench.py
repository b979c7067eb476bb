"""The benchmark: what is wrong gets no time, what is right is timed fairly, and the figures are told in full."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from nbody.bench import reading, readme, timing
from nbody.bench.forces import budget, contestant, native, suite
from nbody.bench.forces.accuracy import ALL_ROWS, Judge, judged
from nbody.bench.forces.contestant import ALL_CORES, ONE_CORE, EngineContestant
from nbody.bench.forces.problems import LECTURE, LECTURE_DT, Problem, cluster, lecture_disk
from nbody.bench.forces.row import ForceRow, force_rows
from nbody.bench.forces.tables import markdown
from nbody.cli import main
from nbody.forces import ENGINES
from nbody.forces.reference import ReferenceEngine, direct_sum
from nbody.particles import Particles
from nbody.registry import Entry
from nbody.scenario import Scenario

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = readme.markers("bench")


class ForgetsTheLast(ReferenceEngine):
    """The classic mistake: the ragged end of the last tile is left out."""

    def _compute(self, state, potential):
        state.acceleration[...], _ = direct_sum(state.position, np.append(state.mass[:-1], 0.0), self.gravity)


class MakesNaN(ReferenceEngine):
    def _compute(self, state, potential):
        state.acceleration[...] = np.nan


class RightIn3DOnly(ReferenceEngine):
    def _compute(self, state, potential):
        super()._compute(state, potential)
        if self.gravity.dimensions == 2:
            state.acceleration *= 1.001


@pytest.fixture
def add_engine(monkeypatch):
    """Registers a class of this file as an engine."""

    def add(name, kind):
        monkeypatch.setitem(ENGINES._entries, name, Entry(f"{__name__}:{kind.__name__}", kind.__name__))

    return add


@pytest.fixture(autouse=True)
def small_pilot(monkeypatch):
    """Compile and learn rates with few particles, so that the tests are quick."""
    monkeypatch.setattr(contestant, "PILOT", 128)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """A report of a real, small benchmark, and the folder of its files."""
    folder = tmp_path_factory.mktemp("bench")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contestant, "PILOT", 128)
        patch.setattr(timing, "ENOUGH", 0.01)
        assert main(["bench", "--cpu", "--particles", "65", "130", "--output", str(folder)]) == 0
    return reading.load(folder / "bench.json"), folder


# --- What is wrong gets no time ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ForgetsTheLast, MakesNaN])
def test_a_wrong_engine_gets_no_time(add_engine, kind):
    add_engine("wrong", kind)
    (row,) = suite.measure([EngineContestant("wrong", "float64")], [200])
    assert row.wrong and "wrong" in row.note and row.error > row.error_bound
    assert row.seconds is None and row.interactions_per_s is None and row.lecture_seconds is None


def test_an_engine_that_is_wrong_on_the_lectures_disc_gets_no_lecture_time(add_engine):
    add_engine("flat", RightIn3DOnly)
    (row,) = suite.measure([EngineContestant("flat", "float64")], [200])
    assert row.wrong and row.seconds and row.lecture_seconds is None


def test_the_command_prints_a_wrong_engine_without_a_time_and_fails(add_engine, tmp_path, capsys):
    add_engine("wrong", MakesNaN)
    options = ["--cpu", "--engines", "wrong", "--particles", "100", "--precision", "float64", "--json"]
    code = main(["bench", *options, "-o", str(tmp_path)])
    out, err = capsys.readouterr()
    assert code == 1 and "error: wrong float64, N = 100: forces are wrong" in err
    (row,) = [row for row in json.loads(out)["rows"] if row["name"] == "wrong"]
    assert row["wrong"] and row["seconds"] is None and row["error"] is None


def test_right_engines_are_within_the_bound_at_ragged_sizes(found):
    for row in force_rows(found[0]):
        assert not row.wrong and 0 <= row.error_median <= row.error_99 <= row.error <= row.error_bound


def test_what_would_take_too_long_is_left_out_with_a_reason(monkeypatch):
    monkeypatch.setattr(budget, "LONGEST", 0.0)
    (row,) = suite.measure([EngineContestant("reference", "float64")], [200])
    assert row.seconds is None and not row.wrong and "left out: one evaluation would take about" in row.note


# --- The judge ------------------------------------------------------------------------------------------------------


def test_the_judge_measures_a_known_error():
    problem = cluster(300)
    right, _ = direct_sum(problem.particles.position, problem.particles.mass, problem.gravity)
    judge = Judge(problem)
    assert judge.error(right).maximum == 0
    wrong = right.copy()
    wrong[299] *= 1 + 1e-3  # one particle of 300: the median does not see it, the largest error does
    error = judge.error(wrong)
    assert error.median == 0 and error.maximum == pytest.approx(1e-3)
    for_each = np.full(300, 1e-2)  # rounding may explain more for one particle than for another
    assert judge.error(wrong, for_each).excess == pytest.approx(0.1)
    for_each[299] = 1e-4
    assert judge.error(wrong, for_each).excess == pytest.approx(10)
    wrong[0] = np.nan
    assert judge.error(wrong, np.inf).excess == np.inf


def test_float32_positions_alone_stay_within_the_float32_bound_and_far_beyond_that_of_float64():
    problem = cluster(300)
    rounded = problem.particles.position.astype(np.float32)
    acceleration, _ = direct_sum(rounded, problem.particles.mass, problem.gravity)
    judge = Judge(problem)
    assert judge.bound("float64") < judge.error(acceleration).maximum < judge.bound("float32")


def test_a_particle_without_a_force_is_judged_too():
    alone = Problem(Particles([1.0], [[0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0]]), cluster(1).gravity)
    assert Judge(alone).error(np.zeros((1, 3))).maximum == 0
    assert Judge(alone).error(np.ones((1, 3))).maximum == np.inf


@pytest.mark.parametrize("count", [1, 100, ALL_ROWS, ALL_ROWS + 1, 20480])
def test_the_judged_particles_are_distinct_and_include_both_ends(count):
    rows = judged(count)
    assert len(np.unique(rows)) == len(rows) <= ALL_ROWS
    assert {0, count - 1} <= set(rows.tolist()) and rows.min() == 0 and rows.max() == count - 1


def test_the_lecture_problem_is_that_of_the_disk_scenario():
    disk = Scenario.load(ROOT / "scenarios" / "disk.yaml")
    assert disk.gravity == LECTURE and disk.integrator.dt == LECTURE_DT and disk.integrator.scheme == "taylor"
    position = lecture_disk(100).particles.position
    assert (position == position.astype(np.float32)).all()


# --- Figures --------------------------------------------------------------------------------------------------------


def test_a_report_has_the_machine_and_complete_rows(found):
    machine, rows = found[0]["machine"], found[0]["rows"]
    assert machine["cpu"] and machine["cores"] >= 1 and "packages" in machine and "gpu" in machine
    needed = "suite name device precision particles seconds interactions_per_s speedup error lecture_seconds"
    for row in rows:
        assert set(needed.split()) <= set(row) and row["device"] == machine["cpu"]
    offered = [(name, p) for name in (ALL_CORES, ONE_CORE) for p in ("float32", "float64")] + [("reference", "float64")]
    assert {(row["name"], row["precision"]) for row in rows} >= set(offered)
    assert sorted({row["particles"] for row in rows}) == [65, 130]


def test_rates_follow_from_the_time_at_n_squared_interactions_and_20_flops(found):
    for row in force_rows(found[0]):
        assert row.interactions_per_s == pytest.approx(row.particles**2 / row.seconds)
        assert row.gflops == pytest.approx(20 * row.interactions_per_s / 1e9)
        assert row.compile_seconds >= 0
        # The competitor in C knows only the law of the force rows.
        assert (row.lecture_seconds is None) == (row.name == native.NAME)


def test_speedups_refer_to_the_same_precision_and_the_largest_n_below():
    def row(name, precision, count, rate):
        return ForceRow(name, "", "cpu", precision, 1, count).timed(timing.Timing(count**2 / rate, count**2 / rate))

    rows = suite.with_speedups(
        [
            row(ONE_CORE, "float32", 100, 2e9), row(ONE_CORE, "float32", 200, 4e9), row(ONE_CORE, "float64", 200, 1e9),
            row("fast", "float32", 200, 40e9), row("fast", "float32", 400, 48e9), row("fast", "float64", 50, 3e9),
        ]
    )  # fmt: skip
    assert [r.speedup for r in rows[:5]] == pytest.approx([1, 1, 1, 10, 12])
    assert rows[5].speedup is None  # nothing to compare with at so small an N
    assert all(r.speedup_all_cores is None and r.speedup_reference is None for r in rows)


def test_rivals_take_turns_and_the_median_ignores_an_interruption(monkeypatch):
    monkeypatch.setattr(timing, "TURN", 0.0)
    monkeypatch.setattr(timing, "ENOUGH", 0.0)
    order, durations = [], {"a": iter([1, 1, 50, 1, 1]), "b": iter([2, 2, 2, 2, 2])}

    def seconds(work):
        name = work()
        order.append(name)
        return next(durations[name])

    monkeypatch.setattr(timing, "seconds", seconds)
    monkeypatch.setattr(timing, "_enough", lambda sample: len(sample) == 5)
    rivals = [timing.Rival(lambda: "a", 1.0), timing.Rival(lambda: "b", 1.0)]
    assert timing.in_turns(rivals) == [timing.Timing(1, 1), timing.Timing(2, 2)]
    assert "".join(order) == "ab" * 5


def test_one_core_is_one_thread_and_the_threads_come_back():
    import numba

    before = numba.get_num_threads()
    one = EngineContestant(ALL_CORES, "float32", one_core=True)
    with one.running():
        assert numba.get_num_threads() == one.threads == 1
    assert numba.get_num_threads() == before == EngineContestant(ALL_CORES, "float32").threads


# --- The command ----------------------------------------------------------------------------------------------------


def test_the_picture_is_a_png_of_a_plausible_size(found):
    from PIL import Image

    picture = Image.open(found[1] / "bench.png")
    assert picture.format == "PNG" and picture.width > picture.height > 500
    shades = np.unique(np.asarray(picture.convert("RGB")).reshape(-1, 3), axis=0)
    assert len(shades) > 20  # lines and labels in several colours, not an empty sheet


def test_json_is_one_object_and_replaced_files_are_told(found, capsys):
    arguments = [
        "bench",
        "--cpu",
        "--particles",
        "65",
        "--precision",
        "float64",
        "--json",
        "-o",
        str(found[1] / "b.png"),
    ]
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert {row["precision"] for row in json.loads(out)["rows"]} == {"float64"} and "in place of" not in err
    assert main([*arguments, "--engines", "reference"]) == 0
    assert capsys.readouterr().err.count("in place of an earlier one") == 2
    assert (found[1] / "b.json").exists() and (found[1] / "b.png").exists()


def test_the_table_names_the_machine_and_every_row(found, capsys):
    assert main(["bench", "--from", str(found[1] / "bench.json")]) == 0
    out = capsys.readouterr().out
    assert found[0]["machine"]["cpu"] in out
    assert len(re.findall(r"^ *\d+ .+ float(32|64) ", out, re.MULTILINE)) == len(found[0]["rows"])


def test_a_list_option_takes_words_or_repeats(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr("nbody.bench.forces.suite.measure", lambda who, counts, notify: asked.append(counts) or [])
    for words in (["65", "70"], ["70", "--particles", "65"], ["65", "70", "65"]):
        assert main(["bench", "--cpu", "--particles", *words, "-o", str(tmp_path)]) == 0
    assert asked == [[65, 70]] * 3


BAD = {
    "--particles 0": "--particles: must be at least 1, got 0",
    "--particles 64 -5": "--particles: must be at least 1, got -5",
    "--particles many": "--particles",
    f"--particles {10**11}": "GiB of memory",
    "--engines cpuu": "unknown engine 'cpuu' (did you mean 'cpu'?)",
    "--engines reference --precision float32": "'reference' computes in float64, not in float32",
    "--cpu --engines gpu-tiled": "'gpu-tiled' works on the gpu",
    "--precision float16": "unknown precision 'float16'",
    "--from /nowhere.json": "/nowhere.json: there is no such file",
    "--cpu --roofline": "--roofline holds the GPU's engines against their bounds; leave --cpu out",
    "--from a.json b.json --compare old.json": "--compare compares one report, and --from names several",
    "--output /proc/bench": "--output: /proc/bench can't be made",
}


@pytest.mark.parametrize("arguments", BAD)
def test_bad_input_is_one_line_before_anything_is_measured(arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["bench", *arguments.split()]) == 2
    out, err = capsys.readouterr()
    assert err.startswith("error: ") and BAD[arguments] in err and err.count("\n") == 1
    assert out == "" and list(tmp_path.iterdir()) == []


def test_gpu_without_a_gpu_is_one_line(capsys):
    from nbody.bench.card import no_gpu

    if not no_gpu():
        pytest.skip("there is a GPU")
    assert main(["bench", "--gpu"]) == 2
    assert capsys.readouterr().err.startswith("error: --gpu: there is no NVIDIA GPU to measure here (")


def test_an_interrupt_leaves_no_files(monkeypatch, tmp_path, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("nbody.bench.forces.suite.measure", interrupted)
    assert main(["bench", "--cpu", "-o", str(tmp_path)]) == 130
    assert list(tmp_path.iterdir()) == [] and "Traceback" not in capsys.readouterr().err


@pytest.mark.gpu
def test_a_gpus_rows_bear_its_name(capsys, tmp_path):
    from nbody import gpu

    few = ["--engines", "gpu-tiled", "gpu-symmetric", "--particles", "1000", "4097"]  # all compile for a minute
    assert main(["bench", "--gpu", *few, "--json", "-o", str(tmp_path)]) == 0
    rows = [row for row in json.loads(capsys.readouterr().out)["rows"] if row["backend"] == "gpu"]
    assert rows and {row["device"] for row in rows} == {gpu.facts().name}
    assert all(row["seconds"] and row["speedup"] and row["lecture_seconds"] for row in rows)


# --- The README -----------------------------------------------------------------------------------------------------


def test_rewriting_the_readme_twice_changes_nothing_more_and_nothing_else(found, tmp_path):
    page = tmp_path / "README.md"
    page.write_text(f"# head\n\n{BEGIN}\nold\n{END}\n\ntail\n")
    arguments = ["bench", "--from", str(found[1] / "bench.json"), "--readme", str(page)]
    assert main(arguments) == 0
    once = page.read_text()
    assert once.startswith(f"# head\n\n{BEGIN}\n") and once.endswith(f"\n{END}\n\ntail\n")
    assert "old" not in once and found[0]["machine"]["cpu"] in once and "| `cpu` | float32 |" in once
    assert main(arguments) == 0 and page.read_text() == once


def test_a_report_without_the_force_suite_leaves_the_readme_alone(found, tmp_path, capsys):
    other, page = tmp_path / "roofline.json", tmp_path / "README.md"
    other.write_text(json.dumps(found[0] | {"rows": []}))
    page.write_text(f"{BEGIN}\nold\n{END}\n")
    assert main(["bench", "--from", str(other), "--readme", str(page)]) == 2
    assert "no force suite" in capsys.readouterr().err and "old" in page.read_text()


def test_tables_of_several_machines_stand_one_after_the_other(found, tmp_path):
    page = tmp_path / "README.md"
    page.write_text(f"{BEGIN}\n{END}\n")
    readme.rewrite(page, [found[0], found[0]], "bench", markdown)
    assert page.read_text().count("| engine | precision | N = 65 | N = 130 |") == 2


@pytest.mark.parametrize("text", ["no markers", f"{END}\n{BEGIN}\n", f"{BEGIN}\n"])
def test_a_readme_without_its_markers_is_left_alone(found, tmp_path, text, capsys):
    page = tmp_path / "README.md"
    page.write_text(text)
    assert main(["bench", "--from", str(found[1] / "bench.json"), "--readme", str(page)]) == 2
    assert BEGIN in capsys.readouterr().err and page.read_text() == text
