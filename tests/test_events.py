"""Events: found once, located to the accuracy of the scheme, recorded, and acted on, without changing a step."""

import json
import math
import pickle
import signal
import time

import numpy as np
import pytest
from test_divisions import ADAPTIVE, LOADED, moving, of_each_loop, planets, what_is_kept

import nbody
from nbody.cli import main
from nbody.diagnostics.transits import linear_ephemeris
from nbody.errors import InputError
from nbody.events.finder import roots
from nbody.run.dense import NotedSteps
from nbody.run.resume import rerun, resume
from nbody.run.stepper import Stepper
from nbody.scenario.events import event_of_text
from nbody.trajectory import first_difference
from nbody.viewer.display.hud import Timeline
from nbody.viewer.sources.recording import RecordedSource
from nbody.viewer.window.clock import Playback

SEVERAL = [
    "apsis(1, 2, 3)",
    "transit(1, axis=x)",
    "distance(1, 2) < 0.7",
    "crossing(1, axis=y)",
    "escape(4, radius=2.5)",
]


def pair(e=0.5, **values):
    """A planet without mass at the apocentre of an orbit of the period 2π about a star."""
    bodies = nbody.Particles([1.0, 0.0], [[0, 0, 0], [1 + e, 0, 0]], [[0, 0, 0], [0, math.sqrt((1 - e) / (1 + e)), 0]])
    return nbody.Simulation(bodies, **{"integrator": "ias15", "precision": "float64", "engine": "cpu", **values})


def rows(simulation):
    return simulation.recording.log.rows


# --- Where and when ---


def test_apsides_and_nodes_are_at_the_times_of_keplers_equation():
    """The run begins at the apocentre, which is no event. x = a (e - cos E) changes its sign where cos E = e, at the times
    E - e sin E after the pericentre at π."""
    run = pair(events=["apsis(1)", "crossing(1, axis=x, direction=up)"])
    run.integrate(13.0)
    found = rows(run)
    np.testing.assert_allclose(found["time"][found["kind"] == b"pericentre"], [math.pi, 3 * math.pi], rtol=1e-13)
    np.testing.assert_allclose(found["time"][found["kind"] == b"apocentre"], [2 * math.pi, 4 * math.pi], rtol=1e-13)
    np.testing.assert_allclose(found["distance"][found["kind"] == b"pericentre"], 0.5, rtol=1e-13)
    E = math.acos(0.5)
    times = np.array([math.pi, 3 * math.pi]) + (E - 0.5 * math.sin(E))
    np.testing.assert_allclose(found["time"][found["event"] == 1], times, rtol=1e-13)


def test_a_distance_reached_only_within_a_step_is_found():
    """A body passes another at 0.1 with 10 per unit of time, in one step of a tenth of a unit: in and out of 0.2."""
    bodies = nbody.Particles([1e-12, 1e-12], [[0, 0, 0], [-0.5, 0.1, 0]], [[0, 0, 0], [10, 0, 0]])
    events = ["distance(0, 1) < 0.2", "distance(0, 1) > 0.2", "closest(0, 1)", "closest(0, 1) < 0.05"]
    run = nbody.Simulation(bodies, dt=0.1, precision="float64", events=events)
    run.run(steps=1)
    half = math.sqrt(0.2**2 - 0.1**2) / 10
    np.testing.assert_allclose(rows(run)["time"], [0.05 - half, 0.05, 0.05 + half], rtol=1e-12)
    assert rows(run)["event"].tolist() == [0, 2, 1]
    np.testing.assert_allclose(rows(run)["distance"], [0.2, 0.1, 0.2], rtol=1e-12)


@pytest.mark.parametrize("name", [n for n in LOADED if not LOADED[n].facts.adaptive and LOADED[n].facts.order > 3])
def test_the_time_of_an_event_has_the_error_of_the_scheme(name):
    """Half the step: 2^p times as accurate for a scheme of order p, until rounding limits it."""
    errors = []
    for dt in (0.02, 0.01):
        run = nbody.Simulation(
            planets(), integrator=name, dt=dt, engine="cpu", precision="float64", events=["crossing(1, axis=y)"]
        )
        run.run(steps=round(4 / dt))
        exact = nbody.Simulation(planets(), integrator="ias15", precision="float64", events=["crossing(1, axis=y)"])
        exact.integrate(4.0)
        errors.append(np.abs(rows(run)["time"] - rows(exact)["time"]).max())
    assert errors[1] < 1e-12 or errors[0] / errors[1] > 2 ** (LOADED[name].facts.order - 0.5)


TRANSITS = [4.88674655, 11.16963713, 17.4525024]


def two_planets():
    bodies = [{"m": 1.0}, {"m": 3e-5, "a": 1.0, "e": 0.02, "M": 80}, {"m": 5e-5, "a": 1.55, "e": 0.03, "M": 200}]
    return nbody.planets(bodies=bodies, dimensions=3)


def transits_of_rebound(count):
    """The times at which the first planet passes in front of the star, seen from the x axis, by halving intervals."""
    rebound = pytest.importorskip("rebound")
    sim, bodies, found = rebound.Simulation(), two_planets(), []
    for m, x, v in zip(bodies.mass, bodies.position, bodies.velocity, strict=True):
        sim.add(m=m, x=x[0], y=x[1], z=x[2], vx=v[0], vy=v[1], vz=v[2])
    star, planet = sim.particles[0], sim.particles[1]
    while len(found) < count:
        before, begin = planet.y - star.y, sim.t
        sim.integrate(sim.t + 0.5)
        end = sim.t
        if before * (planet.y - star.y) < 0 and planet.x > star.x:
            while end - begin > 1e-13:
                begin, end = (begin, sim.t) if before * (planet.y - star.y) < 0 else (sim.t, end)
                sim.integrate((begin + end) / 2)
            found.append(sim.t)
            sim.integrate(sim.t + 0.05)
    return found


def transits(scheme, dt, count):
    run = nbody.Simulation(two_planets(), integrator=scheme, dt=dt, precision="float64", events=["transit(1, axis=x)"])
    end = TRANSITS[0] + 6.2827 * (count - 1) + 0.1
    run.integrate(end) if dt is None else run.run(steps=math.ceil(end / dt))
    return rows(run)["time"][:count]


@pytest.mark.parametrize(("scheme", "dt"), [("ias15", None), ("wisdom_holman", 0.02)])
def test_transit_times_are_those_of_rebound_to_1e_9(scheme, dt):
    np.testing.assert_allclose(transits(scheme, dt, 3), TRANSITS, rtol=0, atol=1e-8)  # which has nine digits
    np.testing.assert_allclose(transits(scheme, dt, 10), transits_of_rebound(10), rtol=0, atol=1e-9)


def test_escapes_are_beyond_a_radius_or_of_positive_energy():
    """A light body on a parabola and a bit more is never bound; one that a third body kicks out becomes unbound once."""
    bodies = nbody.Particles([1.0, 1e-9], [[0, 0, 0], [1, 0, 0]], [[0, 0, 0], [0, 1.5, 0]])
    events = [
        "escape(radius=3)",
        "escape(radius=3, unbound=True)",
        "escape(1, radius=4, about=0)",
        "escape(unbound=True)",
    ]
    run = nbody.Simulation(bodies, integrator="ias15", precision="float64", events=events)
    run.integrate(8.0)
    assert rows(run)["event"].tolist() == [0, 1, 2]  # unbound from the beginning: 3 does not happen
    assert (rows(run)["id_1"] == 1).all()
    for row, radius in zip(rows(run), (3, 3, 4), strict=True):
        np.testing.assert_allclose(math.hypot(row["x"], row["y"]), radius, rtol=1e-8)


def test_the_zero_of_a_function_is_an_event():
    seen = []
    events = [
        lambda now: now.position[1, 0] - 0.3,
        {"kind": "function", "function": lambda now: now.position[1, 1], "direction": "down", "action": seen.append},
    ]
    run = pair(events=events)
    run.integrate(7.0)
    found = rows(run)
    assert np.abs(found["time"][found["event"] == 1] - math.pi).max() < 1e-12 and len(seen) == 1
    assert (found["event"] == 0).sum() == 2 and set(found["kind"]) == {b"function"} and (found["id_1"] == -1).all()


def test_the_function_of_an_event_returns_a_number():
    for wrong in ("x", None, np.zeros(2)):
        with pytest.raises(InputError, match="the function of an event must return a number, got"):
            pair(events=[lambda now: wrong]).integrate(1.0)  # noqa: B023


def test_roots_are_found_to_the_tolerance():
    first, last, powers = np.array([-1.0, 2.0, 1e-300] * 2), np.array([2.0, -1e-3, -1.0] * 2), np.repeat([1, 3], 3)

    def f(which, x):
        return first[which] + (last - first)[which] * x ** powers[which]

    found = roots(f, (np.zeros(6), first), (np.ones(6), last), np.full(6, 1e-14))
    assert np.abs(found - (-first / (last - first)) ** (1 / powers)).max() < 1e-13


# --- The steps ---


@pytest.mark.parametrize("scheme", of_each_loop([name for name in LOADED if name not in ADAPTIVE]) + ADAPTIVE, ids=str)
def test_events_change_no_step_and_no_division_changes_events(scheme, tmp_path):
    """Calls by steps and times, looks, frames in a file, checkpoints and resumes in the middle of a step."""

    def make(**more):
        if scheme in ADAPTIVE:
            return nbody.Simulation(planets(), integrator=scheme, engine="cpu", precision="float64", **more)
        eta = {"eta": 2.5} if scheme == "leapfrog_block" else {}  # ten times longer steps than usual
        return moving(planets(), scheme, "cpu", eta, **more)

    alone, whole = make(), make(events=SEVERAL)
    steps = 70 if scheme == "leapfrog_block" else 400  # its steps are a hundred times longer
    end = 4.0 if scheme in ADAPTIVE else steps * alone.setup.integrator.dt
    for run in (alone, whole):
        run.integrate(end) if scheme in ADAPTIVE else run.run(steps=steps)
    for name, values in what_is_kept(alone).items():
        np.testing.assert_array_equal(what_is_kept(whole)[name], values, err_msg=name)
    assert len(rows(whole)) > 4
    parts, path = make(events=SEVERAL), tmp_path / "run.h5"
    for k in range(1, 8):
        parts.integrate(end * k / 7) if scheme in ADAPTIVE else parts.run(steps=steps * k // 7 - steps * (k - 1) // 7)
        parts.at(parts.time + 0.003)
    np.testing.assert_array_equal(rows(parts), rows(whole))
    record = {"dt": end / 30} if scheme in ADAPTIVE else {"every": 7}
    half = {"end": end / 2} if scheme in ADAPTIVE else {"steps": steps * 19 // 40}
    make(events=SEVERAL, output=path, record=record, **half).run()
    resume(path, end=end if scheme in ADAPTIVE else None, steps=None if scheme in ADAPTIVE else steps, notify=str).run()
    with nbody.Trajectory(path) as run:
        found = run.event_rows()
        assert not run.verify()
    for name in found.dtype.names[:-1]:
        np.testing.assert_array_equal(found[name], rows(whole)[name], err_msg=name)


@pytest.mark.parametrize("scheme", ["yoshida6", "hermite4", "ias15", "wisdom_holman", "hybrid", "leapfrog_adaptive"])
@pytest.mark.parametrize("back", [False, True])
def test_events_found_in_blocks_of_steps_are_those_found_step_by_step(scheme, back, monkeypatch):
    keys = {"scheme": scheme} | ({"eta": 0.02} if scheme == "hermite4" else {})
    dt = None if scheme in (*ADAPTIVE, "hermite4") else 0.05
    events = [*SEVERAL, "closest(1, 2)", lambda now: now.position[1, 0], {"distance(1, 2) < 0.5": "record"}]
    found, bodies = [], []
    for blocks in (True, False):
        run = nbody.Simulation(planets(), integrator=keys, dt=dt, engine="cpu", precision="float64", events=events)
        if not blocks:
            scheme = run.stepper.integrator
            monkeypatch.setattr(scheme, "facts", scheme.facts._replace(notes=lambda _: False))
        assert NotedSteps(run.stepper, None).possible is blocks
        run.integrate(-6.0 if back else 6.0)
        found.append(rows(run))
        bodies.append(run.particles)
    assert len(found[0]) > 6
    np.testing.assert_array_equal(*found)
    np.testing.assert_array_equal(*(each.position for each in bodies))


def test_the_step_of_an_error_in_a_function_is_found_in_a_block():
    def fails(now):
        if now.time > 3.0:
            raise RuntimeError(f"at {now.time:.2f}")
        return 1.0

    run = pair(integrator="leapfrog", dt=0.01, events=[fails, "apsis(1)"])
    with pytest.raises(RuntimeError, match=r"at 3\.0[01]"):
        run.run(steps=1000)
    assert run.steps_made in (300, 301)


def test_a_killed_run_goes_on_with_its_events(tmp_path):
    whole, part, killed = (tmp_path / f"{name}.h5" for name in ("whole", "part", "killed"))
    values = {"events": SEVERAL, "end": 4.0, "record": {"dt": 0.1}}
    nbody.Simulation(planets(), whole, integrator="ias15", precision="float64", **values).run()

    def copy(particles):
        if particles.time > 2.0 and not killed.exists():
            end = time.monotonic() + 300.0
            while not part.exists() and time.monotonic() < end:  # a thread writes it
                time.sleep(0.01)
            killed.write_bytes(part.read_bytes())  # its last checkpoint is that of the beginning

    nbody.Simulation(planets(), part, integrator="ias15", precision="float64", **values).run(callback=copy)
    resume(killed, notify=str).run()
    assert first_difference(whole, part) is first_difference(whole, killed) is None


@pytest.mark.parametrize("engine", ["cpu", pytest.param("gpu-global", marks=pytest.mark.simulated)])
def test_events_of_few_bodies_among_many_copy_these_alone_and_are_the_same(engine, monkeypatch):
    found, copied, bodies = [], [], nbody.plummer(16, seed=3)
    copy = Stepper.bodies

    def counted(stepper, ids=None):
        copied.append(len((now := copy(stepper, ids)).position))
        return now

    monkeypatch.setattr(Stepper, "bodies", counted)
    for more in ([], ["escape > 1000"]):  # an escape needs all bodies
        events = ["crossing(5, 6, axis=x)", "closest(5, 6)", *more]
        run = nbody.Simulation(bodies, dt=0.2, softening=0.3, precision="float32", engine=engine, events=events)
        copied.clear()
        run.run(steps=15)
        found.append(rows(run))
        few = [size for size in copied if size < 16]
        assert not few if more else set(few) == {2} and len(copied) - len(few) <= 2 < len(few)
    assert len(found[0]) > 1
    np.testing.assert_array_equal(*found)


# --- Actions ---


def test_a_stop_ends_the_run_with_the_step_and_a_line_and_the_run_can_go_on(tmp_path):
    said, path = [], tmp_path / "run.h5"
    record = {"end": 20.0, "record": {"dt": 0.5}}
    run = pair(output=path, events={"apsis(1, which=pericentre)": "stop"}, notify=said.append, **record)
    summary = run.run()
    assert not summary.interrupted and math.pi <= run.time < math.pi + 0.5
    assert [line for line in said if "stopped: t = 3.14159265: 1 at its pericentre about 0, at 0.5" in line]
    with nbody.Trajectory(path) as recorded:
        assert recorded.status == "complete" and recorded.time[-1] == run.time
    run.integrate(20.0)
    assert 3 * math.pi <= run.time < 3 * math.pi + 0.5
    assert 5 * math.pi <= resume(path, end=40.0, notify=str).run().time < 5 * math.pi + 0.5
    run.record(None)
    run.step(10_000)
    assert 5 * math.pi <= run.time < 5 * math.pi + 0.5


def test_a_function_is_called_at_the_end_of_the_step_and_may_end_the_run():
    times = []

    def call(particles):
        times.append(particles.time)
        return len(times) < 2

    run = pair(events={"apsis(1)": call})
    assert not run.integrate(30.0).interrupted
    found = rows(run)["time"]
    assert len(times) == len(found) == 2 and run.time == times[-1]
    assert all(0 <= after - at < 0.5 for after, at in zip(times, found, strict=True))


def test_control_c_during_a_function_that_fails_ends_this_step_alone():
    def call(particles):
        signal.raise_signal(signal.SIGINT)
        raise ValueError

    run = pair(events={"apsis(1)": call})
    with pytest.raises(KeyboardInterrupt) as caught:
        for _ in range(100):
            run.step()
    assert isinstance(caught.value.__context__, ValueError)
    made = run.steps_made
    run.step()
    assert run.steps_made == made + 1


def test_the_error_of_a_called_function_is_raised_when_the_file_is_finished(tmp_path):
    def call(particles):
        raise ZeroDivisionError("mine")

    run = pair(events={"apsis(1)": call}, output=tmp_path / "run.h5", end=30.0, record={"dt": 0.5})
    with pytest.raises(ZeroDivisionError, match="mine"):
        run.run()
    with nbody.Trajectory(tmp_path / "run.h5") as recorded:
        assert len(recorded.event_rows()) == 1 and recorded.time[-1] == run.time


@pytest.mark.parametrize("scheme", [{"integrator": "ias15"}, {"integrator": "leapfrog", "dt": 0.01, "softening": 0.05}])
@pytest.mark.parametrize("what", ["function", "action", "callback"])
def test_the_frames_due_before_the_error_of_a_users_function_are_in_the_file(tmp_path, scheme, what):
    """The function fails after t = 2, within the step of ias15 that shows the frame at 2. The run can go on."""

    def mine(now):
        if 2.0 < now.time < 2.3:
            raise ZeroDivisionError("mine")
        return now.position[1, 1] - 0.5  # the zero is after t = 1

    acts = {"kind": "function", "function": lambda now: now.time - 2.1, "action": mine}
    events = {"function": [mine], "action": [acts], "callback": None}[what]
    run = pair(events=events, output=tmp_path / "run.h5", end=6.0, record={"dt": 0.5}, **scheme)
    with pytest.raises(ZeroDivisionError, match="mine"):
        run.run(callback=mine if what == "callback" else None)
    with nbody.Trajectory(tmp_path / "run.h5") as recorded:
        np.testing.assert_allclose(recorded.time[:-1], [0.0, 0.5, 1.0, 1.5, 2.0])
        assert recorded.time[-1] == run.time > 2.0
        assert len(recorded.event_rows()) == {"function": 1, "action": 1, "callback": 0}[what]
    if what != "function":
        run.run()
        assert run.time == 6.0


def test_a_function_that_is_not_finite_is_named_once():
    said = []
    run = pair(events=[lambda now: math.nan, lambda now: now.position[1, 1]], notify=said.append)
    run.integrate(2.0)
    run.integrate(4.0)
    assert sum(line.startswith("warning: events.0: the function returns nan at t = 0") for line in said) == 1
    assert run.events.event.tolist() == [1]
    silent = pair(events=[lambda now: math.nan])
    with pytest.warns(UserWarning, match="the function returns nan"):
        silent.integrate(1.0)


def test_events_are_given_to_the_simulation_and_not_to_a_call():
    run = pair()
    for call in (lambda: run.run(1, events=["apsis(1)"]), lambda: run.integrate(1.0, events=["apsis(1)"])):
        with pytest.raises(InputError, match=r"events: give it at the beginning: Simulation\(.*events=…\)"):
            call()
    with pytest.raises(InputError, match="did you mean 'steps'"):
        run.run(stpes=1)


def test_the_bodies_at_an_event_are_shown_after_the_step():
    """The run stops at the end of the step of the event, and shows the bodies at its time: at the distance asked for."""
    run = pair(events={"distance(0, 1) < 0.7": "stop"})
    run.integrate(9.0)
    time = float(run.events["time"].max())
    assert time < run.time
    assert np.linalg.norm(np.subtract(*run.at(time).position)) == pytest.approx(0.7, abs=1e-9)


def test_the_file_has_room_for_the_events_asked_for(tmp_path):
    said = []
    run = pair(events=["apsis(1)"], output=tmp_path / "r.h5", notify=said.append, record={"dt": 1.0, "events": 3}, end=40.0)
    run.run()
    with nbody.Trajectory(tmp_path / "r.h5") as recorded:
        assert len(recorded.event_rows()) == 3 < len(rows(run))
    assert sum("room for 3 events (record.events)" in line for line in said) == 1


# --- Transit times ---


def test_a_linear_ephemeris_counts_missing_transits_and_leaves_the_variations():
    """Seven of thirty transits are missing; the variation is one that no linear ephemeris fits in part."""
    n = np.delete(np.arange(30), [3, 10, 11, 12, 20, 25, 26])
    varied = 1e-3 * np.sin(n)
    varied -= np.polyval(np.polyfit(n, varied, 1), n)
    found = linear_ephemeris((5.0 + 2.5 * n + varied)[::-1])
    np.testing.assert_array_equal(found.epoch, n)
    np.testing.assert_allclose([found.start, found.period], [5.0, 2.5], rtol=1e-13)
    np.testing.assert_allclose(found.residual, varied, atol=1e-13)


def test_transit_times_are_plotted_as_observed_minus_calculated_and_exported(tmp_path, capsys):
    """Alone, a planet is on time. In minutes where the run has days; the table has the bodies' names."""
    path, table = tmp_path / "run.h5", tmp_path / "events.csv"
    bodies = [{"m": 1, "name": "star"}, {"m": 1e-3, "P": 10, "e": 0.3, "M": 20, "name": "b"}, {"m": 0, "P": 70}]
    units = {"length": "au", "mass": "Msun", "time": "day"}
    scenario = {"initial": {"generator": "planets", "bodies": bodies}, "units": units, "record": {"dt": 30}}
    values = {"integrator": {"scheme": "ias15", "end": 60}, "precision": "float64", "events": ["transit(b, 2)"]}
    nbody.Simulation(nbody.Scenario.from_dict(scenario | values), path).run()
    (axes,) = nbody.plot(path, "transits").axes
    assert axes.get_ylabel() == "O − C [min]" and axes.lines[0].get_label() == "b, P = 10 day"
    assert len(axes.lines[0].get_ydata()) == 6 and np.abs(axes.lines[0].get_ydata()).max() < 1e-7
    with pytest.raises(InputError, match="has no planet with 3 transits"):
        nbody.plot(path, "transits", bodies=[2])
    assert main(["export", str(path), str(table), "--events"]) == 0
    found = np.genfromtxt(table, delimiter=",", names=True, dtype=None, encoding="utf-8")
    with nbody.Trajectory(path) as run:
        np.testing.assert_array_equal(found["time"], run.event_rows()["time"])
    assert set(found["name_1"]) == {"b"} and set(found["name_2"]) == {"star"}


# --- Scenarios and the command line ---


SCENARIO = """
name: pair
units: {length: au, mass: Msun, time: yr}
initial: {generator: planets, bodies: [{m: 1}, {m: 1e-3, a: 1 au, e: 0.5}]}
integrator: {scheme: ias15, end: 3 yr}
precision: float64
record: {dt: 0.1 yr}
events:
  - {kind: transit, bodies: 1, axis: x}
  - apsis(1, which=apocentre)
  - distance(0, 1) > 1.4 au: record
"""


def test_a_scenario_and_options_name_events(tmp_path, capsys):
    path = tmp_path / "pair.yaml"
    path.write_text(SCENARIO)
    output = str(tmp_path / "run.h5")
    command = ["run", str(path), "-o", output, "--stop-when", "distance(0,1) < 0.6 au", "--event", "crossing(1,axis=y)"]
    assert main(command) == 0
    said = capsys.readouterr()
    assert "stopped: t = " in said.err and "0 and 1 are 0.6 apart" in said.err
    with nbody.Trajectory(output) as run:
        kinds = [each["kind"] for each in run.resolved["events"]]
        assert kinds == ["transit", "apsis", "distance", "crossing", "distance"]
        assert run.resolved["events"][-1] == {"kind": "distance", "action": "stop", "bodies": [0, 1], "below": 0.6}
        assert {b"distance", b"apocentre"} <= set(run.event_rows()["kind"])
    assert main(["info", output]) == 0
    assert "0 and 1 are 0.6 apart" in capsys.readouterr().out
    assert main(["info", output, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["events"] > 2
    assert main(["resume", output, "--quiet"]) == 0


@pytest.mark.parametrize(
    ("event", "line"),
    [
        ("distanc(0, 1) < 1", "did you mean 'distance'"),
        ("distance(0, 1)", "give 'below' or 'above'"),
        ("distance(0, 0) < 1", "body 0 is named twice"),
        ("distance(0, 7) < 1", "there is no body with the id 7; ids go from 0 to 1"),
        ("distance(0) < 1", "0.bodies: must be two bodies"),
        ("transit(hearth)", "there is no body named 'hearth'"),
        ("transit(1.5)", "must be a whole number"),
        ("distance(0, 1) < x", "0.below: must be a number"),
        ("distance(0, 1) < 1 pc", "has a unit"),
        ("transit(1, axis=w)", "axis"),
        ("escape()", "is missing; write 'escape"),
        ("import os", "is no event"),
        ("distance(0, 1) <", "is no event"),
        ("distance(__import__('os'), 1) < 1", "is no event"),
        ({"kind": "transit", "bodies": [1], "acton": "stop"}, "did you mean 'action'"),
        ({"kind": "transit", "bodies": [1], "action": "halt"}, "must be 'record' or 'stop'"),
        ({"kind": "function", "function": 3}, "must be a function of the particles"),
        ({"kind": "function", "function": len, "action": "halt"}, "must be 'record' or 'stop'"),
        (3, "must be a list of events"),
    ],
)
def test_a_wrong_event_is_refused(event, line):
    with pytest.raises(InputError, match=line.replace("(", r"\(")) as error:
        pair(events=[event])
    assert "event" in str(error.value)


def test_bodies_have_names_wherever_they_are_chosen(tmp_path, capsys):
    """In events, orbits, changes of the bodies, plots and lines about events; an id is accepted everywhere too."""
    bodies = [{"m": 1, "name": "sun"}, {"m": 1e-6, "a": 1.0, "e": 0.1, "name": "earth"}, {"m": 1e-6, "a": 2}]
    path, events = (
        tmp_path / "run.h5",
        ["transit(earth, about=sun)", "apsis(earth): stop", {"closest(2, earth)": "stop"}],
    )
    run = nbody.Simulation(
        nbody.planets(bodies=bodies), path, integrator="ias15", precision="float64", events=events, end=9.0,
        record={"dt": 0.5},
    )  # fmt: skip
    assert "earth at its apocentre about 0" not in (stopped := run.run().stopped)
    assert "earth at its apocentre about sun" in stopped
    assert run.events.id_1.tolist() == [1] and run.setup.events[0].kind.about == 0
    assert run.orbits(about="sun", bodies=["earth"]).id.tolist() == [1]
    for chosen in (["earth", 2], ["1", "2"]):
        with nbody.Trajectory(path) as recorded:
            assert recorded.orbits(about="sun", bodies=chosen).id.tolist() == [1, 2]
            assert recorded.resolved["events"][0]["bodies"] == ["earth"]
    assert main(["info", str(path)]) == 0 and "0 sun, 1 earth\n" in capsys.readouterr().out
    assert main(["plot", str(path), "e", "--bodies", "earth,2", "--about", "sun"]) == 0
    assert main(["plot", str(path), "e", "--bodies", "hearth"]) == 2
    assert "no body named 'hearth' (did you mean 'earth'?)" in capsys.readouterr().err
    run.change("earth", mass=2e-6)
    run.remove("earth")
    assert run.particles.id.tolist() == [0, 2]
    named = nbody.Particles([1.0, 1.0], np.eye(2), np.eye(2), species_names=("a", "b"))
    assert named.species.tolist() == [0, 1]


def test_an_escape_is_written_as_one_says_it():
    """The messages' own advice is accepted, in YAML's words for true; and a comparison gives the radius."""
    for text in ("escape(unbound=true)", "escape(unbound=yes)", "escape(unbound=True)"):
        assert event_of_text(text) == {"kind": "escape", "unbound": True}
    assert pair(events=["escape(unbound=true)"]).setup.events[0].kind.unbound
    assert pair(events=["escape > 1.2", "escape(1) > 1.2"]).setup.events[1].kind.radius == 1.2


def test_a_line_says_that_a_condition_holds_at_the_beginning():
    """The planet goes from 1.5 to 0.5 and back: what holds first happens when it begins to hold again. Told once, and not of
    an extremum."""
    said = []
    events = [{"distance(0, 1) > 1": "stop"}, "escape(1, about=0) > 1.2", "distance(0, 1) < 1", "apsis(1)"]
    run = pair(events=events, notify=said.append)
    run.integrate(1.0)
    held = [line for line in said if "already at the beginning" in line]
    assert [line[: line.index(" holds")] for line in held] == ["events.0: distance", "events.1: escape"]
    assert "(ids 0, 1)" in held[0] and "stops the run only when it begins to hold again" in held[0]
    run.copy().integrate(2.0)
    run.integrate(7.0)
    assert rows(run)["event"].tolist() == [2, 3, 0] and run.time < 5
    assert sum("already at the beginning" in line for line in said) == 2


# --- Later ---


def test_a_resumed_run_asks_for_its_functions(tmp_path):
    path, said, seen = tmp_path / "run.h5", [], []
    events = [{"apsis(1, which=pericentre)": seen.append}, lambda now: now.position[1, 1]]
    pair(events=events, output=path, end=4.0, record={"dt": 0.5}).run()
    assert len(seen) == 1
    resume(path, end=8.0, notify=said.append)
    assert [line for line in said if "give resume(events=" in line]
    resume(path, end=12.0, notify=said.append, events=events).run()
    with nbody.Trajectory(path) as run:
        assert len(seen) == 2 and (run.event_rows()["kind"] == b"function").sum() == 3


def test_a_rerun_asks_for_its_functions_and_leaves_changes_to_them(tmp_path, capsys):
    path, again, said = str(tmp_path / "run.h5"), str(tmp_path / "again.h5"), []

    def halve(now):
        now.velocity[1] *= 0.5

    events = [{"apsis(1, which=pericentre)": halve}, lambda now: now.position[1, 1]]
    values = {"integrator": "leapfrog", "dt": 0.01, "softening": 0.05, "notify": str}
    run = pair(events=events, output=path, steps=400, **values)
    run.run()
    with pytest.raises(InputError, match=r"give nbody\.rerun\(path, output, events="):
        rerun(path, again, notify=str)
    assert main(["rerun", path]) == 2 and capsys.readouterr().err.count("\n") == 1
    rerun(path, again, notify=said.append, events=events).run()
    assert [line for line in said if "left to the functions" in line] and len(run.events) > 2
    assert first_difference(path, again) is None


def test_a_run_back_in_time_finds_the_events_of_the_run_forward():
    """Pericentres stay pericentres, and what grows with time grows."""
    events = ["apsis(1)", "crossing(1, axis=x, direction=up)", "distance(0, 1) < 0.7"]
    run = pair(events=events)
    run.integrate(9.0)
    forward = rows(run)
    run.integrate(0.5)
    back = rows(run)[len(forward) :]
    apsides = [found[found["event"] < 2] for found in (forward, back[::-1])]
    assert apsides[0]["kind"].tolist() == apsides[1]["kind"].tolist()
    np.testing.assert_allclose(apsides[1]["time"], apsides[0]["time"], atol=1e-9)


def test_a_copy_and_a_pickle_go_on_with_events():
    run = pair(events=["apsis(1)"])
    run.integrate(1.0)
    others = [run.copy(), pickle.loads(pickle.dumps(run))]
    for each in (run, *others):
        each.integrate(7.0)
        np.testing.assert_array_equal(rows(each), rows(run))
    assert len(rows(run)) == 2


def test_a_called_function_may_change_the_bodies():
    """The planet loses half of its speed at its pericentre, and comes no farther out again."""
    run = pair(events={"apsis(1, which=pericentre)": lambda now: run.change(1, velocity=[0, -0.87, 0])})
    run.integrate(3.3)
    assert np.linalg.norm(run.particles.position[1]) < 0.5 and len(run.events) > 1


@pytest.mark.parametrize("scheme", [{"integrator": "ias15"}, {"integrator": "leapfrog", "dt": 0.01}])
@pytest.mark.parametrize("given", [True, False])
def test_what_a_called_function_writes_counts(scheme, given):
    """As in a callback: into the particles that it gets, and into those of the simulation."""

    def halve(now):
        (now if given else run.particles).velocity[1] *= 0.5

    run = pair(events={"apsis(1, which=pericentre)": halve}, **scheme)
    run.integrate(3.5)
    assert run.events.kind.tolist()[:2] == ["pericentre", "changed"]
    assert np.linalg.norm(run.particles.position[1]) < 0.5  # it was the pericentre of the faster body


def test_the_time_line_and_the_caption_show_events(tmp_path):
    pair(events=["apsis(1)"], output=tmp_path / "run.h5", end=7.0, record={"dt": 0.1}).run()
    with nbody.Trajectory(tmp_path / "run.h5") as run:
        source = RecordedSource(run)
        np.testing.assert_allclose(source.marks(), [10 * math.pi, 20 * math.pi], rtol=1e-6)
        assert source.caption(40.0).note == "1 event" and len(source.flashes(32.0)[0]) == 1
        clock = Playback(len(run), source=source)
        places = [clock.place(at) for at in source.marks()]
        plain, marked = (Timeline((800, 600)).image(0.0, each) for each in ((), places))
        assert (plain != marked).any(axis=(0, 2)).sum() >= 2
        source.close()
