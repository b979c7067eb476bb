"""When frames are recorded and a run ends: counted in steps or in time; and what a plan says beforehand."""

import numpy as np
import pytest
from conftest import said

from nbody import Scenario, Simulation, Trajectory
from nbody.errors import InputError
from nbody.particles import Particles
from nbody.run.plan import plan
from nbody.run.resume import rerun, resume
from nbody.run.schedule import StepSchedule, TimeSchedule
from nbody.state import Moment
from nbody.trajectory import first_difference

PLUMMER = """
initial: {generator: plummer, particles: 24, seed: 5}
gravity: {softening: plummer, length: 0.05}
integrator: {%s}
engine: %s
precision: float64
record: {%s}
"""

HERMITE = "scheme: hermite4, eta: 0.02, end: 0.3"


def scenario(integrator, record="every: 1", engine="cpu"):
    return Scenario.from_text(PLUMMER % (integrator, engine, record), "run.yaml")


@pytest.mark.parametrize("every,last", [(1, 5), (3, 10), (7, 7), (9, 5)])
def test_a_schedule_of_steps_counts_the_frames_that_are_due(every, last):
    schedule = StepSchedule(every, last)
    due = [step for step in range(1, last + 1) if schedule.due(Moment(step, 0.0))]
    assert [schedule.count_after(Moment(step, 0.0)) for step in range(last + 1)] == [
        sum(d > s for d in due) for s in range(last + 1)
    ]


def test_a_time_just_below_a_frame_is_before_it():
    """Quotients of times are rounded both ways: 1.7 / 0.1 is 17, and the frame 17 is at 1.7000000000000002."""
    for number in range(1, 400):
        for interval in (0.1, 0.07, 0.3):
            schedule = TimeSchedule(interval, 1e9, 0.0)
            for time in (np.nextafter(number * interval, 0), number * interval, np.nextafter(number * interval, 1e9)):
                assert schedule.next(Moment(0, time))[1] > time
                assert schedule.regular(Moment(0, time)) == (time == number * interval)


@pytest.mark.parametrize("interval,end,origin", [(0.1, 1.0, 0.0), (0.3, 1.0, 0.0), (0.1, 7.7, 7.0), (2.0, 1.0, 0.0)])
def test_a_schedule_of_times_meets_each_frame_once_whatever_their_rounding(interval, end, origin):
    schedule, times = TimeSchedule(interval, end, origin), [origin]
    planned = schedule.count_after(Moment(0, origin))
    while not schedule.ended(Moment(0, times[-1])):
        assert schedule.count_after(Moment(0, times[-1])) == planned - len(times) + 1
        times.append(schedule.next(Moment(0, times[-1]))[1])
        assert schedule.due(Moment(0, times[-1]))
    assert times[-1] == end and len(times) == planned + 1 == len(set(times))
    assert np.diff(times)[:-1] == pytest.approx(interval)
    assert not schedule.due(Moment(0, origin + interval / 2)) or interval / 2 == end - origin


def test_times_of_a_scheme_with_fixed_steps_are_steps():
    timed, counted = (
        plan(scenario(f"dt: 0.125, {ends}", record)).schedule
        for ends, record in (("end: 2", "dt: 0.5"), ("steps: 16", "every: 4"))
    )
    assert timed == counted == StepSchedule(4, 16)


@pytest.mark.parametrize(
    "integrator,record,line",
    [
        ("dt: 0.125, end: 1, steps: 8", "every: 1", "integrator.end: cannot be combined with 'steps'; remove one"),
        ("dt: 0.125", "every: 1", "integrator.steps: is missing; write 'steps: N' or 'end: TIME' to say where the run ends"),
        ("steps: 8", "every: 1", "integrator.dt: is missing; this scheme makes steps of one length, as in 'dt: 0.001'"),
        ("dt: 0.125, end: 1.1", "every: 1", "integrator.end: 1.1 is not a whole number of steps of 0.125; write 1.125"),
        ("dt: 0.125, steps: 8", "dt: 0.2", "record.dt: 0.2 is not a whole number of steps of 0.125; write 0.25"),
        ("dt: 0.125, steps: 8", "dt: -1", "record.dt: must be greater than 0, got -1"),
        ("dt: 0.125, steps: 8", "dt: 1, every: 2", "record.dt: cannot be combined with 'every'; remove one of the two"),
        (HERMITE, "every: 2", "record.every: how many steps this scheme makes until 'end' is not known; write 'dt: TIME'"),
        ("scheme: hermite4, steps: 9", "every: 1", "integrator.dt: is missing; this scheme makes steps of one length"),
        ("scheme: hermite4, etta: 0.1, end: 9", "dt: 1", "integrator.etta: unknown key"),
        ("scheme: leapfrog, eta: 0.1, steps: 9, dt: 1", "every: 1", "integrator.eta: unknown key"),
    ],
)  # fmt: skip
def test_times_and_steps_that_do_not_fit_are_refused(integrator, record, line):
    assert line in said(lambda: plan(scenario(integrator, record)))


@pytest.mark.parametrize(
    "engine,line", [("{nmae: cpu}", "run.yaml:5: engine.nmae: unknown key"), ("{name: cpu, thta: 1}", "engine.thta")]
)
def test_unknown_options_of_an_engine_are_refused(engine, line):
    with pytest.raises(InputError, match=line):
        plan(scenario("dt: 0.125, steps: 8", engine=engine))


def test_a_scheme_with_the_jerk_names_the_engines_that_have_it():
    with pytest.raises(
        InputError,
        match=r"engine 'matrix' and scheme 'hermite4': it does not compute the jerk.*choose --engine reference or cpu",
    ):
        plan(scenario(HERMITE, "dt: 0.1", "matrix"))
    assert plan(scenario(HERMITE, "dt: 0.1", "auto")).engine_name == "cpu"


@pytest.mark.parametrize("keys", ["scheme: ias15", "scheme: hermite4, eta: 0.02", "scheme: hermite4_block"])
def test_a_run_of_so_many_adaptive_steps_records_at_the_times_it_says(keys, tmp_path):
    """However many frames that are: the file grows. All divisions of the run give the same file, also after a resume."""
    first, second, again = (tmp_path / f"{name}.h5" for name in "abc")
    whole = Simulation(scenario(f"{keys}, steps: 24", "dt: 0.002"), first)
    whole.run()
    divided = Simulation(scenario(f"{keys}, steps: 0", "dt: 0.002"), second)
    divided.run(steps=3)
    divided.run(steps=6)
    resume(second, steps=24).run()
    rerun(first, again).run()
    assert first_difference(first, second) is None and first_difference(first, again) is None
    with Trajectory(first) as run:
        assert run.step[-1] == 24 and run.complete and len(run) == whole.frames > 30 and not run.verify()
        np.testing.assert_allclose(run.time[:-1], 0.002 * np.arange(len(run) - 1), rtol=1e-12)


def test_a_run_with_adaptive_steps_records_at_the_times_it_says(tmp_path):
    summary = Simulation(scenario(HERMITE, "dt: 0.07"), tmp_path / "run.h5").run()
    with Trajectory(tmp_path / "run.h5") as run:
        assert list(run.time) == [0.0, 0.07, 2 * 0.07, 3 * 0.07, 4 * 0.07, 0.3] and run.complete and len(run) == run.planned
        assert list(run.step) == sorted(set(run.step)) and run.step[-1] == summary.steps > 10
    assert abs(summary.energy_error) < 1e-5
    assert rerun(tmp_path / "run.h5", tmp_path / "again.h5", notify=pytest.fail).run().frames == 6
    assert first_difference(tmp_path / "run.h5", tmp_path / "again.h5") is None


def test_a_run_with_adaptive_steps_that_says_nothing_of_its_frames_records_a_hundred(tmp_path):
    text = PLUMMER.replace("record: {%s}\n", "") % (HERMITE, "cpu")
    assert plan(Scenario.from_text(text)).frames == 101


def test_a_run_is_extended_to_a_later_time_with_the_bits_of_a_longer_one(tmp_path):
    for name, end in (("short", 0.14), ("long", 0.28)):
        Simulation(scenario(HERMITE, "dt: 0.07").override(end=end), tmp_path / f"{name}.h5").run()
    resume(tmp_path / "short.h5", end=0.28).run()
    assert first_difference(tmp_path / "short.h5", tmp_path / "long.h5") is None
    with pytest.raises(
        InputError, match=r"--end: the run has made \d+ steps already, to t = 0.28; give more than 0.28, got 0.2"
    ):
        resume(tmp_path / "short.h5", end=0.2)


def test_progress_events_come_between_steps_and_leaving_them_ends_the_run(tmp_path):
    simulation = Simulation(scenario("dt: 0.001, steps: 100000", "every: 5"), tmp_path / "run.h5")
    times = []
    for event in simulation.progress_events():
        times.append(event.state.clock.time)
        assert event.progress.step == event.state.clock.step and event.progress.time == event.state.clock.time
        if len(times) == 3:
            break
    assert times == sorted(times) and times[-1] > 0
    with Trajectory(tmp_path / "run.h5") as run:
        assert not run.complete and run.step[-1] == simulation.steps_made
    summary = resume(tmp_path / "run.h5", steps=int(simulation.steps_made) + 3).run()
    assert not summary.interrupted


def test_a_run_extended_from_an_end_that_is_nearly_a_frame_has_all_frames(tmp_path):
    text = "scheme: hermite4, eta: 0.1, end: 1.7"
    Simulation(scenario(text, "dt: 0.1"), tmp_path / "run.h5").run()
    resume(tmp_path / "run.h5", end=2.0, notify=lambda line: None).run()
    with Trajectory(tmp_path / "run.h5") as run:
        assert list(run.time) == pytest.approx(np.arange(21) / 10)


def test_bodies_on_which_no_force_acts_at_first_do_not_stop_an_adaptive_run():
    """A body at rest in the middle of two that move: its acceleration is 0, its jerk is not."""
    bodies = Particles([1.0, 1, 1], [[0, 0, 0], [1, 0, 0], [-1, 0, 0]], [[0, 0, 0], [0, 0.5, 0], [0, 0.5, 0]])
    chosen = scenario("scheme: hermite4, eta: 0.02, end: 0.1", "dt: 0.1")
    assert Simulation(chosen, particles=bodies).run().time == 0.1


def test_a_run_that_ends_before_the_time_of_the_bodies_says_that_it_goes_back():
    late = Particles([1.0, 1], [[0, 0, 0], [1, 0, 0]], np.zeros((2, 3)), time=5.0)
    for integrator, notes in ((HERMITE, []), ("dt: 0.125, end: 0.5", [])):
        planned = plan(scenario(integrator, "dt: 0.125"), late, notes.append)
        assert planned.backward and "before the time of the bodies, 5" in notes[0]


def test_a_plan_says_what_the_run_then_is(tmp_path):
    chosen = scenario("dt: 0.125, steps: 9", "every: 2")
    planned = plan(chosen)
    summary = Simulation(chosen, tmp_path / "run.h5").run()
    assert (planned.engine_name, planned.frames, planned.count) == (summary.engine, summary.frames, summary.particles)
    size = (tmp_path / "run.h5").stat().st_size
    assert abs(planned.file_bytes - size) < 2**17
    assert planned.memory["memory"] > 24 * 14 * 8


def test_what_a_refusal_of_frames_of_an_adaptive_scheme_names_works(tmp_path):
    """'every' can't be used until a time: the 'dt' that the line names can, without another key."""
    two = Particles([1, 1e-3], [[0, 0, 0], [1, 0, 0]], [[0, 0, 0], [0, 1, 0]])

    def run(**record):
        return Simulation(two, tmp_path / "run.h5", integrator="ias15", precision="float64", overwrite=True, record=record)

    with pytest.raises(InputError, match=r"give record=\{'dt': TIME\} instead"):
        run(every=5).integrate(0.5)
    assert run(dt=0.1).integrate(0.5).frames == 6
    with pytest.raises(InputError, match=r"record\.(every|dt): cannot be combined with record\.(dt|every)"):
        run(dt=0.1, every=5)


def test_what_a_refusal_of_a_time_between_steps_names_works():
    """Each way out goes on from the same moment, and reaches the time."""
    two = Particles([1, 1e-3], [[0, 0, 0], [1, 0, 0]], [[0, 0, 0], [0, 1, 0]])
    run = Simulation(two, dt=0.03, softening=0.01, precision="float64")
    run.integrate(0.3)
    with pytest.raises(
        InputError,
        match=r"until: 0.35 is not a whole number of steps of 0.03 after 0.3; write 0.36, or look with "
        r"simulation.at\(0.35\), or .* particles=simulation.particles, dt=0.025\), or integrator='ias15'",
    ):
        run.integrate(0.35)
    with pytest.raises(InputError, match=r"beginning: Simulation\(simulation.scenario, particles=.*, softening=…"):
        run.softening = 0.1
    assert run.at(0.35).time == 0.35
    for values in ({"dt": 0.025}, {"integrator": "ias15"}, {"softening": 0.1, "dt": 0.05}):
        other = Simulation(run.scenario, particles=run.particles, **values)
        assert (other.time, other.steps_made) == (run.time, run.steps_made)
        other.integrate(0.35)
        assert other.time == pytest.approx(0.35, abs=1e-15)
