"""The force suite: what is wrong gets no time, what is right is timed fairly, not for long, and no figure is missing."""

import json
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from conftest import ROOT
from measured_report import measured_report

from nbody.bench import report, timing
from nbody.bench.forces import competitor, foreign, lecture, problems, suite, tables
from nbody.bench.forces.competitor import Competitor, Speed
from nbody.bench.forces.lecture import LectureRun
from nbody.bench.forces.problems import (
    LECTURE,
    LECTURE_DT,
    LECTURE_STEPS,
    ForceProblem,
    Judge,
    cluster,
    lecture_disk,
    on_all_cores,
)
from nbody.bench.forces.rows import ALL_CORES, ONE_CORE, ForceRow, LectureRow
from nbody.bench.timing import ENOUGH, TimedCall, in_turns
from nbody.cli import main, progress
from nbody.forces import ENGINES
from nbody.forces.reference import ReferenceEngine, direct_sum
from nbody.integrators import INTEGRATORS
from nbody.integrators.integrator import Motion
from nbody.particles import Particles
from nbody.registry import Entry
from nbody.scenario import Scenario
from nbody.state import Frame


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


@pytest.fixture
def quick(monkeypatch):
    """Compile, learn rates and time with few particles and calls."""
    monkeypatch.setattr(competitor, "PILOT", 128)
    monkeypatch.setattr(timing, "ENOUGH", 0.01)


@pytest.fixture(scope="module")
def found():
    """The report that all tests share."""
    return report.load(measured_report())


def reference():
    return Competitor.of("reference", "float64")


# --- What is wrong gets no time ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ForgetsTheLast, MakesNaN])
def test_a_wrong_engine_gets_no_time(quick, add_engine, kind):
    add_engine("wrong", kind)
    (row,) = suite.measure([Competitor.of("wrong", "float64")], [200])
    assert row.wrong and "wrong" in row.note and row.error > row.error_bound
    assert row.seconds is None and row.interactions_per_s is None and row.lecture_seconds is None


def test_an_engine_that_is_wrong_on_the_lectures_disc_gets_no_lecture_time(quick, add_engine, monkeypatch):
    monkeypatch.setattr(lecture, "COUNTS", (200,))
    add_engine("flat", RightIn3DOnly)
    row, run = suite.measure([Competitor.of("flat", "float64")], [200])
    assert row.wrong and row.seconds and row.lecture_seconds is None
    assert run.suite == "lecture" and run.wrong and run.seconds is None and "disc are wrong" in run.note


def test_the_command_prints_a_wrong_engine_without_a_time_and_fails(quick, add_engine, tmp_path, capsys):
    add_engine("wrong", MakesNaN)
    options = ["--cpu", "--engines", "wrong", "--particles", "100", "--precision", "float64", "--json"]
    assert main(["bench", *options, "-o", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert "error: wrong float64, N = 100: forces are wrong" in err
    (row,) = [row for row in json.loads(out)["rows"] if row["name"] == "wrong"]
    assert row["wrong"] and row["seconds"] is None and row["error"] is None


def test_right_engines_are_within_the_bound_at_ragged_sizes(found):
    for row in found.of(ForceRow):
        assert not row.wrong and 0 <= row.error_median <= row.error_99 <= row.error <= row.error_bound


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


def test_a_particle_without_a_force_is_judged_too():
    alone = ForceProblem(Particles([1.0], [[0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0]]), cluster(1).gravity)
    assert Judge(alone).error(np.zeros((1, 3))).maximum == 0
    assert Judge(alone).error(np.ones((1, 3))).maximum == np.inf


@pytest.mark.parametrize("cores", [1, 3, 16])
def test_the_judge_gives_the_same_bits_on_any_number_of_cores(monkeypatch, cores):
    monkeypatch.setattr(problems.machine, "cores", lambda: cores)
    problem = cluster(101)
    right, _ = direct_sum(problem.particles.position, problem.particles.mass, problem.gravity)
    assert Judge(problem).error(right).maximum == 0
    assert (on_all_cores(lambda rows: rows * 2, np.arange(7)) == 2 * np.arange(7)).all()
    assert on_all_cores(lambda rows: rows, np.arange(1)).tolist() == [0]


# --- Figures --------------------------------------------------------------------------------------------------------


def test_a_report_has_the_machine_and_complete_rows():
    plain = json.loads(measured_report().read_text())
    machine, rows = plain["machine"], [row for row in plain["rows"] if row["suite"] == "forces"]
    assert machine["cpu"] and machine["cores"] >= 1 and "packages" in machine and "gpu" in machine
    assert plain["suite"] == "forces" and plain["options"]["particles"] == [65, 130]
    assert {row["clock"] for row in rows if row["seconds"]} == {"host"}
    needed = "name device backend precision threads particles seconds spread interactions_per_s gflops speedup error"
    more = "speedup_all_cores speedup_reference error_median error_99 error_bound lecture_seconds"
    for row in rows:
        assert {*needed.split(), *more.split(), "wrong", "note"} <= set(row) and row["device"] == machine["cpu"]
    offered = [(name, p) for name in (ALL_CORES, ONE_CORE) for p in ("float32", "float64")] + [("reference", "float64")]
    assert {(row["name"], row["precision"]) for row in rows} >= set(offered)
    assert sorted({row["particles"] for row in rows}) == [65, 130]


def test_rates_follow_from_the_time_at_n_squared_interactions_and_20_flops(found):
    for row in found.of(ForceRow):
        assert row.interactions_per_s == pytest.approx(row.particles**2 / row.seconds)
        assert row.gflops == pytest.approx(20 * row.interactions_per_s / 1e9)
        # The competitor in C knows only the law of the force rows.
        assert (row.lecture_seconds is None) == (row.name == foreign.NAME)


def timed(name, precision, count, rate, backend="cpu"):
    row = ForceRow(name=name, device="", backend=backend, precision=precision, threads=1, particles=count)
    return row.with_rates(timing.Timing(count**2 / rate, count**2 / rate), count**2)


def test_speedups_refer_to_the_same_precision_and_the_largest_n_below():
    rows = suite.with_speedups(
        [
            timed(ONE_CORE, "float32", 100, 2e9), timed(ONE_CORE, "float32", 200, 4e9),
            timed(ONE_CORE, "float64", 200, 1e9), timed("fast", "float32", 200, 40e9),
            timed("fast", "float32", 400, 48e9), timed("fast", "float64", 50, 3e9),
        ]
    )  # fmt: skip
    assert [r.speedup for r in rows[:5]] == pytest.approx([1, 1, 1, 10, 12])
    assert rows[5].speedup is None  # nothing to compare with at so small an N
    assert all(r.speedup_all_cores is None and r.speedup_reference is None for r in rows)


def test_an_experimental_engine_is_marked_and_never_the_fastest_on_the_front_page(monkeypatch):
    monkeypatch.setitem(ENGINES._entries, "gpu-split", Entry("", "", experimental=True))
    names = {ONE_CORE: 1e9, ALL_CORES: 2e9, "gpu-tiled": 1e11, "gpu-symmetric": 2e11, "gpu-split": 3e11}
    rows = [timed(name, "float32", n, r, name[:3]) for n in (1024, 20480) for name, r in names.items()]
    found = report.Report(report.machine(), suite.with_speedups(rows))
    assert "| `gpu-split` (experimental) |" in tables.full_table(found)
    assert tables.FORCES[1].cell(rows[-1]) == "gpu-split (experimental)"
    lines = tables.speed_table(found).splitlines()
    assert [line.split("`")[1] for line in lines[4:]] == [ONE_CORE, ALL_CORES, "gpu-symmetric"]
    assert len(lines[2].split("|")) == 8


# --- The lecture's run ------------------------------------------------------------------------------------------------


def test_the_lecture_problem_is_that_of_the_disk_scenario():
    disk = Scenario.load(ROOT / "scenarios" / "lecture.yaml")
    assert disk.gravity == LECTURE and disk.integrator.dt == LECTURE_DT and disk.integrator.scheme == "taylor"
    position = lecture_disk(100).particles.position
    assert (position == position.astype(np.float32)).all()


def test_every_run_makes_the_same_ten_steps_from_the_start():
    disk = lecture_disk(100)
    run = LectureRun(reference(), disk)
    ends = []
    for _ in range(2):
        run._run()
        ends.append(run._state.position.copy())
    engine, taylor = ENGINES.load("reference")(disk.gravity, "float64"), INTEGRATORS.load("taylor")(LECTURE_DT)
    state = engine.load(disk.particles)
    taylor.advance(Motion(engine, state), LECTURE_STEPS)
    assert np.array_equal(ends[0], ends[1]) and np.array_equal(ends[0], state.position)
    assert not np.array_equal(state.position, disk.particles.position)


def test_the_clock_runs_until_everything_is_back(monkeypatch):
    """On a GPU a snapshot is on its way when it is returned; only wait() says that it has arrived."""
    done = []
    monkeypatch.setattr(Frame, "wait", lambda self: done.append("waited") or self)
    monkeypatch.setattr(Frame, "release", lambda self: done.append("released"))
    LectureRun(reference(), lecture_disk(50))._run()
    assert done == ["waited", "released"]


def test_the_lectures_table_has_rates_over_one_core_and_all_cores_at_the_same_n(found):
    rows = {(row.name, row.precision, row.particles): row for row in found.of(LectureRow)}
    for count in (65, 130):
        one, every = rows[ONE_CORE, "float32", count], rows[ALL_CORES, "float32", count]
        assert one.speedup == every.speedup_all_cores == 1 and one.k40c_seconds is None
        assert every.speedup == pytest.approx(one.seconds / every.seconds)
        assert one.interactions_per_s == pytest.approx(LECTURE_STEPS * one.particles**2 / one.seconds)
        assert one.error <= one.error_bound


def test_the_lectures_run_is_made_for_the_lectures_n_and_no_larger(quick, monkeypatch):
    monkeypatch.setattr(lecture, "COUNTS", (100,))
    rows = suite.measure([reference()], [99, 100, 101])
    assert [(row.suite, row.particles) for row in rows] == [*(("forces", n) for n in (99, 100, 101)), ("lecture", 100)]
    assert [bool(row.lecture_seconds) for row in rows[:3]] == [True, True, False]
    assert all(row.seconds and not row.wrong for row in rows)


def test_a_lecture_run_that_takes_long_is_left_out_with_a_reason(quick, monkeypatch):
    monkeypatch.setattr(suite, "LONGEST_RUN", 0.0)
    (row,) = suite.measure([reference()], [100])
    assert row.seconds and row.lecture_seconds is None and "lecture run left out" in row.note


def test_competitors_take_turns_and_the_median_ignores_an_interruption(monkeypatch):
    monkeypatch.setattr(timing, "TURN", 0.0)
    order, durations = [], {"a": iter([1, 1, 50, 1, 1]), "b": iter([2, 2, 2, 2, 2])}

    def seconds(work):
        order.append(work())
        return next(durations[order[-1]])

    monkeypatch.setattr(timing, "seconds", seconds)
    monkeypatch.setattr(timing, "_enough", lambda sample: len(sample) == 5)
    calls = [timing.TimedCall(lambda: "a", 1.0), timing.TimedCall(lambda: "b", 1.0)]
    assert timing.in_turns(calls) == [timing.Timing(1, 1), timing.Timing(2, 2)]
    assert "".join(order) == "ab" * 5


@pytest.mark.parametrize(("each", "before", "calls"), [(2 * ENOUGH, (), 2), (2.0, (2.5,), 1), (ENOUGH / 2, (), 5)])
def test_slow_work_is_timed_twice_and_its_spread_is_known(monkeypatch, each, before, calls):
    made = []
    monkeypatch.setattr(timing, "seconds", lambda work: made.append(each) or each)
    (found,) = in_turns([TimedCall(lambda: None, each, nullcontext, before)])
    assert len(made) == calls
    if before:
        assert found == timing.Timing(2.25, 2.0) and found.spread == pytest.approx(1 / 9)


def test_one_core_is_one_thread_and_the_threads_come_back():
    import numba

    before = numba.get_num_threads()
    one = Competitor.of(ALL_CORES, "float32", one_core=True)
    with one.running():
        assert numba.get_num_threads() == one.threads == 1
    assert numba.get_num_threads() == before == Competitor.of(ALL_CORES, "float32").threads


def test_a_processor_is_not_timed_where_one_evaluation_takes_long_once_its_speed_is_known(quick, monkeypatch):
    most = suite.LONGEST_AGAIN
    monkeypatch.setattr(Speed, "expected", lambda self, count: most / 2 * (count / 200) ** 2)
    rows = suite.measure([reference()], [100, 200, 400])
    assert [bool(row.seconds) for row in rows] == [True, True, False]
    assert rows[2].note == f"left out: one evaluation would take about {2 * most:.0f} s" and not rows[2].wrong


def test_every_notice_says_what_is_done(quick):
    lines = []
    suite.measure([reference()], [64], lines.append)
    assert lines[:2] == ["compiling reference float64 (1 of 1)", "N = 64: checking reference float64"]
    assert all(line.startswith("N = 64: ") for line in lines[1:])


def test_a_notice_on_a_terminal_replaces_its_line(monkeypatch, capsys):
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "20")
    with progress.status_line() as notify:
        notify("N = 4096: checking gpu-tiled")
    assert capsys.readouterr().err == "\r\033[KN = 4096: checking \r\033[K"


def test_a_batch_jobs_log_gets_a_line_every_ten_seconds(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.status_line() as notify:
        for now[0], line in ((1.0, "one"), (10.0, "two"), (19.0, "three"), (20.5, "four")):
            notify(line)
    assert capsys.readouterr().err == "two\nfour\n"


# --- The command ----------------------------------------------------------------------------------------------------


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
    "--particles 1.5": "must be a whole number, got '1.5'",
    f"--particles {10**11}": "GiB of memory",
    "--engines cpuu": "unknown engine 'cpuu' (did you mean 'cpu'?)",
    "--engines reference --precision float32": "'reference': it computes in float64, not in float32",
    "--cpu --engines gpu-tiled": "'gpu-tiled' works on the gpu",
    "--precision float16": "unknown precision 'float16'",
    "--cpu --precision mixed": "no engine on the cpu computes in mixed",
    "matmul --sizes 0": "--sizes: must be at least 1, got 0",
    "matmul --sizes many": "--sizes",
    "matmul --precision mixed": "--precision: unknown precision 'mixed'",
    "matmul --rungs k02 k99": "--rungs: unknown rung 'k99' (did you mean",
    "matmul --explain k02 k99": "--explain: unknown rung 'k99' (did you mean",
    "matmul --explain k02,k99": "--explain: unknown rung 'k99' (did you mean",
    "matmul --particles 100": "No such option: --particles",
    "matmul --rungs k00 --sizes 10_000_000": "GiB of memory",
    "--matmul --sizes 64": "--matmul is a subcommand now: nbody bench matmul",
    "--gpu --roofline": "--roofline is a subcommand now: nbody bench roofline",
    "--compare old.json": "--compare is a subcommand now: nbody bench compare",
    "--from old.json": "--from is a subcommand now: nbody bench show",
    "--cpu matmul": "unexpected extra argument",
    "matmull": "unexpected extra argument",
    "show": "there is no output/bench.json here yet; measure one with 'nbody bench'",
    "compare": "there is no output/bench.json here yet",
    "show /nowhere.json": "/nowhere.json: there is no such file",
    "show a.json b.json --json": "--json prints one report",
    "compare /nowhere.json": "/nowhere.json: there is no such file",
    "--cpu --output /dev/null/bench": "--output: /dev/null/bench: can't be written",
}


@pytest.mark.parametrize("arguments", BAD)
def test_invalid_options_are_refused_before_anything_is_measured(arguments, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("nbody.bench.forces.foreign.competitors", lambda *_: ())
    assert BAD[arguments] in refused("bench", *arguments.split()) and list(tmp_path.iterdir()) == []


def test_without_a_gpu_cpu_and_gpu_measure_the_cpu_and_say_so(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("nbody.bench.card.no_gpu", lambda: "it was taken out")
    few = ["--engines", "reference", "--particles", "64", "--precision", "float64", "--json", "-o", str(tmp_path)]
    assert main(["bench", "--cpu", "--gpu", *few]) == 0
    out, err = capsys.readouterr()
    assert "--gpu: there is no NVIDIA GPU to measure here (it was taken out); measuring the CPU\n" in err
    assert {row["backend"] for row in json.loads(out)["rows"]} == {"cpu"}


@pytest.mark.parametrize("arguments", ["--gpu", "roofline", "integrators --gpu", "matmul", "matmul --rungs numpy k06"])
def test_gpu_without_a_gpu_is_refused(arguments, refused, monkeypatch):
    monkeypatch.setattr("nbody.bench.card.no_gpu", lambda: "it was taken out")
    assert "there is no NVIDIA GPU to measure here (it was taken out)" in (line := refused("bench", *arguments.split()))
    assert "matmul" not in arguments or "--rungs k00 numpy and --explain RUNG need none" in line


def test_where_nothing_may_be_compiled_nothing_is_measured(monkeypatch, tmp_path, refused):
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)
    assert "NUMBA_DISABLE_JIT forbids it" in refused("bench", "--cpu", "--particles", "64", "-o", tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.gpu
def test_a_gpus_rows_bear_its_name(capsys, tmp_path):
    from nbody import compute

    few = ["--engines", "gpu-tiled", "gpu-symmetric", "--particles", "1000", "4097"]  # all compile for a minute
    assert main(["bench", "--cpu", "--gpu", *few, "--json", "-o", str(tmp_path)]) == 0
    rows = [row for row in json.loads(capsys.readouterr().out)["rows"] if row["backend"] == "gpu"]
    assert rows and {row["device"] for row in rows} == {compute.facts().name}
    assert all(row["seconds"] and row["speedup"] and row["lecture_seconds"] for row in rows)


def test_the_table_shows_what_was_noted_and_who_is_absent(found):
    noted = replace(found.of(ForceRow)[0], note="a note")
    (sheet,) = tables.sheets(report.Report(found.machine, [noted], ["pytreegrav (it is not installed)"]))
    assert "a note" in sheet.about and "Not in the table: pytreegrav (it is not installed)." in sheet.about
