"""The lecture's run and its table: ten steps from the same start each time, waited for, and rates over the processor."""

import numpy as np
import pytest

from nbody.bench.forces import contestant, lecture
from nbody.bench.forces.accuracy import Judge
from nbody.bench.forces.contestant import ALL_CORES, ONE_CORE, EngineContestant
from nbody.bench.forces.lecture import K40C, LectureRow, LectureRun, table_rows
from nbody.bench.forces.problems import LECTURE_DT, LECTURE_STEPS, lecture_disk
from nbody.forces import ENGINES
from nbody.integrators import INTEGRATORS
from nbody.integrators.integrator import Motion
from nbody.state import Snapshot


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(contestant, "PILOT", 128)
    monkeypatch.setattr(lecture, "ENOUGH", 0.0)


def test_every_run_makes_the_same_ten_steps_from_the_start():
    disk = lecture_disk(100)
    run = LectureRun(EngineContestant("reference", "float64"), disk)
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
    monkeypatch.setattr(Snapshot, "wait", lambda self: done.append("waited") or self)
    monkeypatch.setattr(Snapshot, "release", lambda self: done.append("released"))
    run = LectureRun(EngineContestant("reference", "float64"), lecture_disk(50))
    run._run()
    assert done == ["waited", "released"]


def test_rates_are_over_one_core_and_all_cores_at_the_same_n():
    who = [EngineContestant(ALL_CORES, "float32", one_core=True), EngineContestant(ALL_CORES, "float32")]
    rows = table_rows(who, [300, 200])
    assert [(row.name, row.particles) for row in rows] == [(n, c) for c in (300, 200) for n in (ONE_CORE, ALL_CORES)]
    for one, all_cores in (rows[:2], rows[2:]):
        assert one.speedup == all_cores.speedup_all_cores == 1
        assert all_cores.speedup == pytest.approx(one.seconds / all_cores.seconds)
        assert one.interactions_per_s == pytest.approx(LECTURE_STEPS * one.particles**2 / one.seconds)
        assert one.error <= one.error_bound and one.k40c_seconds is None


def test_a_wrong_force_gets_no_time(monkeypatch):
    monkeypatch.setattr(Judge, "bound", lambda self, precision, condition=1.0: 0.0)
    (row,) = table_rows([EngineContestant(ALL_CORES, "float32")], [100])
    assert row.wrong and row.seconds is None and "forces are wrong" in row.note


def test_the_lectures_own_figures_belong_to_engines_that_there_are():
    assert {name for name, _ in K40C} <= set(ENGINES) and {count for _, count in K40C} == set(lecture.COUNTS)
    assert K40C["gpu-global", 20480] / K40C["gpu-tiled", 20480] == pytest.approx(215.7 / 173.6)


def test_no_rate_without_a_processor_to_refer_to():
    (row,) = lecture._with_rates([LectureRow("gpu-tiled", "", "gpu", "float32", 0, 100, seconds=1.0)])
    assert row.speedup is None and row.speedup_all_cores is None
