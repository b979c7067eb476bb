"""A benchmark ends soon: what takes long is measured once more at most, or left out; and it says how long the rest takes."""

from contextlib import nullcontext

import numpy as np
import pytest

from nbody.bench import report, timing
from nbody.bench.forces import accuracy, budget, contestant, lecture, suite
from nbody.bench.forces.accuracy import Judge, on_all_cores
from nbody.bench.forces.budget import Plan, about
from nbody.bench.forces.contestant import FULLER, PATIENCE, PILOT, Contestant, EngineContestant
from nbody.bench.forces.lecture import LectureRun
from nbody.bench.forces.problems import cluster, lecture_disk
from nbody.bench.forces.row import ForceRow
from nbody.bench.forces.tables import markdown
from nbody.bench.timing import ENOUGH, FIRST_COUNTS, Rival, in_turns
from nbody.cli import progress
from nbody.forces.reference import direct_sum


class OnAClockOfItsOwn(Contestant):
    """Right forces, at so many interactions a second by its own account; remembers the N that it has computed."""

    def __init__(self, rate=1e9, backend="cpu"):
        super().__init__("stand-in", "float64")
        self.speed, self.backend, self.counts = rate, backend, []

    def load(self, problem):
        self.problem = problem

    def evaluate(self):
        self.counts.append(self.problem.particles.count)

    def acceleration(self):
        particles = self.problem.particles
        return direct_sum(particles.position, particles.mass, self.problem.gravity)[0]

    def release(self):
        pass

    def timed(self):
        self.evaluate()
        self.took = self.counts[-1] ** 2 / self.speed
        return self.took


@pytest.fixture
def timed_by_rate(monkeypatch):
    """Times are what a contestant's own rate says."""
    monkeypatch.setattr(suite, "_times", lambda group, count: [timing.Timing(*[count**2 / c.speed] * 2) for c in group])


# --- What is left out -------------------------------------------------------------------------------------------------


def test_a_processor_is_not_timed_where_one_evaluation_takes_long_once_its_speed_is_known(timed_by_rate, monkeypatch):
    monkeypatch.setattr(contestant, "PILOT", 50)
    slow = OnAClockOfItsOwn(rate=200**2 / (budget.LONGEST_AGAIN / 2))
    rows = suite.measure([slow], [100, 200, 400])
    assert [bool(row.seconds) for row in rows] == [True, True, False]
    assert rows[2].note == f"left out: one evaluation would take about {2 * budget.LONGEST_AGAIN:.0f} s"
    assert not rows[2].wrong and slow.counts.count(400) == 0


def test_where_nothing_else_tells_its_speed_it_may_take_longer(timed_by_rate):
    (row,) = suite.measure([OnAClockOfItsOwn(rate=400**2 / (0.9 * budget.LONGEST))], [400])
    assert row.seconds == pytest.approx(0.9 * budget.LONGEST)


def test_a_graphics_card_may_take_longer_at_every_n_for_its_speed_grows(timed_by_rate):
    card = OnAClockOfItsOwn(rate=400**2 / (0.9 * budget.LONGEST), backend="gpu")
    assert all(row.seconds for row in suite.measure([card], [100, 400]))


def test_a_graphics_cards_rate_is_learnt_with_a_number_that_fills_it():
    card, processor = OnAClockOfItsOwn(1e12, "gpu"), OnAClockOfItsOwn(1e12)
    for each in (card, processor):
        each.warm_up(FULLER * 16384)
    assert set(card.counts) == {PILOT, 16384} and set(processor.counts) == {PILOT}


def test_and_with_fewer_where_that_would_take_long():
    card = OnAClockOfItsOwn(32768**2 / PATIENCE, "gpu")
    card.warm_up(FULLER**2 * 32768)
    assert set(card.counts) == {PILOT, 32768}


def test_the_lectures_run_is_made_for_the_lectures_n_and_no_larger(monkeypatch):
    monkeypatch.setattr(lecture, "LARGEST", 100)
    monkeypatch.setattr(timing, "ENOUGH", 0.0)
    rows = suite.measure([EngineContestant("reference", "float64")], [100, 101])
    assert rows[0].lecture_seconds and rows[1].lecture_seconds is None
    assert all(row.seconds and not row.note for row in rows)


def test_a_lecture_run_that_takes_long_is_left_out_with_a_reason(monkeypatch):
    monkeypatch.setattr(budget, "LONGEST_RUN", 0.0)
    (row,) = suite.measure([EngineContestant("reference", "float64")], [100])
    assert row.seconds and row.lecture_seconds is None and "lecture run left out" in row.note


def test_the_readme_shows_the_lectures_run_where_it_was_made():
    rows = [
        ForceRow("cpu", "", "cpu", "float32", 1, count, error=1e-7, error_median=1e-7, lecture_seconds=run).timed(
            timing.Timing(1.0, 1.0)
        )
        for count, run in ((4096, 0.5), (65536, None))
    ]
    lines = markdown(report.report(rows)).splitlines()
    assert "lecture's run, N = 4096 |" in lines[2] and lines[-1].endswith("| 500 ms |")


# --- How often something is timed -------------------------------------------------------------------------------------


def calls_of(seconds, before=(), monkeypatch=None):
    calls = []
    monkeypatch.setattr(timing, "seconds", lambda work: calls.append(seconds) or seconds)
    (found,) = in_turns([Rival(lambda: None, seconds, nullcontext, before)])
    return len(calls), found


def test_what_takes_long_is_timed_twice_and_its_spread_is_known(monkeypatch):
    assert calls_of(2 * ENOUGH, (), monkeypatch)[0] == 2
    calls, found = calls_of(2.0, (2.5,), monkeypatch)
    assert calls == 1 and found == timing.Timing(2.25, 2.0) and found.spread == pytest.approx(1 / 9)
    assert calls_of(ENOUGH / 2, (), monkeypatch)[0] == timing.FEWEST


@pytest.mark.parametrize(("took", "counts"), [(1.1 * FIRST_COUNTS, True), (0.9 * FIRST_COUNTS, False)])
def test_the_first_evaluation_counts_where_it_takes_long(monkeypatch, took, counts):
    rivals = []
    monkeypatch.setattr(suite, "in_turns", lambda these: rivals.extend(these) or [timing.Timing(1.0, 1.0)])
    slow = OnAClockOfItsOwn(100**2 / took)
    suite.measure([slow], [100])
    assert rivals[0].before == ((slow.took,) if counts else ())


def test_a_long_lecture_run_is_made_twice_after_one_step(monkeypatch):
    made = []
    monkeypatch.setattr(LectureRun, "_run", lambda self, steps=10: made.append(steps))
    monkeypatch.setattr(lecture, "seconds", lambda run: run() or 2 * lecture.PATIENCE)
    LectureRun(EngineContestant("reference", "float64"), lecture_disk(10)).timing()
    assert made == [1, 10, 10]


@pytest.mark.parametrize("estimate", [1e-7, 1e-4, 0.02, 0.09, 3.0])
def test_a_card_is_asked_often_enough_for_a_median_and_not_for_longer_than_that(estimate):
    repeats, calls = timing.calls_on_device(estimate)
    assert timing.FEWEST_ON_DEVICE <= repeats <= timing.FEWEST and 1 <= calls <= timing.MOST
    assert repeats * calls * estimate <= max(ENOUGH, timing.FEWEST_ON_DEVICE * estimate)


# --- The judge on all cores -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cores", [1, 3, 16])
def test_the_judge_comes_to_the_same_bits_on_any_number_of_cores(monkeypatch, cores):
    monkeypatch.setattr(accuracy.machine, "cores", lambda: cores)
    problem = cluster(101)
    right, _ = direct_sum(problem.particles.position, problem.particles.mass, problem.gravity)
    assert Judge(problem).error(right).maximum == 0
    assert (on_all_cores(lambda rows: rows * 2, np.arange(7)) == 2 * np.arange(7)).all()
    assert on_all_cores(lambda rows: rows, np.arange(1)).tolist() == [0]


# --- How long it will take --------------------------------------------------------------------------------------------


def test_what_is_left_falls_to_nothing_and_what_is_left_out_never_counted():
    quick, slow = OnAClockOfItsOwn(1e9), OnAClockOfItsOwn(1e5)
    quick.rate, slow.rate = quick.speed, slow.speed
    plan = Plan([quick, slow], [100, 10**4])
    before = plan.seconds_left()
    assert before < budget.LONGEST  # 1000 s for the slow one's second row are not in it
    for count in (100, 10**4):
        for each in (quick, slow):
            plan.timed(each, count)
            plan.done(each, count)
            assert plan.seconds_left() < before
            before = plan.seconds_left() or 1e-9
    assert plan.seconds_left() == 0


def test_what_takes_long_counts_twice():
    slow = OnAClockOfItsOwn(1e9)
    slow.rate = 1e4**2 / 1.5
    assert Plan([slow], [10**4]).seconds_left() == pytest.approx(2 * 1.5 + budget.OVERHEAD)


def test_every_notice_says_what_is_done_and_after_compilation_how_long_the_rest_takes():
    lines = []
    suite.measure([EngineContestant("reference", "float64")], [64], lines.append)
    assert lines[0] == "compiling reference float64 (1 of 1)"
    assert lines[1] == "about 1 s left, N = 64: checking reference float64"
    assert all(" left, N = 64: " in line for line in lines[1:])


def test_on_a_terminal_a_notice_takes_one_line(monkeypatch, capsys):
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "20")
    with progress.status_line() as notify:
        notify("about 40 s left, N = 4096: checking")
    assert capsys.readouterr().err == "\r\033[Kabout 40 s left, N \r\033[K"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.0, "1 s"), (7.2, "7 s"), (12, "10 s"), (114, "110 s"), (119, "2 min"), (200, "3 min")],
)
def test_a_time_in_words(seconds, words):
    assert about(seconds) == words


def test_a_batch_jobs_log_gets_a_line_every_ten_seconds(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.status_line() as notify:
        for now[0], line in ((1.0, "one"), (10.0, "two"), (19.0, "three"), (20.5, "four")):
            notify(line)
    assert capsys.readouterr().err == "two\nfour\n"
