"""Collisions: none is missed, they happen in order of time, mergers conserve mass and momentum, and the file keeps them."""

import json
import math
import shutil
import time

import h5py
import numpy as np
import pytest

from nbody import Particles, Simulation, Trajectory
from nbody.cli import main
from nbody.errors import InputError, RunFailed
from nbody.exchange.export import export
from nbody.integrators.collisions.contact import any_contact_of_few, contacts, paths
from nbody.integrators.collisions.orbit import orbit_moment
from nbody.run.resume import resume
from nbody.scenario import Scenario
from nbody.trajectory import first_difference
from nbody.trajectory.structure import layout

EXACT = {"engine": "reference", "precision": "float64", "softening": "none"}


def straight(x, v, dt):
    """The paths of free bodies through one step."""
    return paths(x, v, x + v * dt, v, dt)


def cluster(count=24, radius=0.1, seed=2):
    """Bodies that collide several times within one unit of time."""
    rng = np.random.default_rng(seed)
    x, v = rng.normal(size=(2, count, 3)) * [[[0.7]], [[0.5]]]
    return Particles(rng.uniform(0.5, 1.5, count) / count, x, v, radius=np.full(count, radius))


def crowd(count=60, radius=0.012, seed=4):
    """Planets that meet and collide several times within one unit of time."""
    rng = np.random.default_rng(seed)
    angle, distance = rng.uniform(0, 2 * math.pi, count), rng.uniform(0.9, 1.1, count)
    x = np.stack([distance * np.cos(angle), distance * np.sin(angle), rng.normal(0, 0.01, count)], axis=1)
    v = np.stack([-np.sin(angle), np.cos(angle), np.zeros(count)], axis=1) + rng.normal(0, 0.1, (count, 3))
    x, v = (np.concatenate([np.zeros((1, 3)), rows]) for rows in (x, v))
    return Particles([1.0, *[1e-4] * count], x, v, radius=[0.0, *[radius] * count])


def simulation(scheme, output=None, particles=None, **more):
    integrator = {"scheme": scheme, "dt": 0.125 if scheme in ADAPTIVE else 1 / 128}
    values = {"integrator": integrator, "end": 1.0, "record": {"dt": 0.125}, "collisions": "merge", **EXACT, **more}
    if scheme in ADAPTIVE:
        values["engine"] = "cpu"
    bodies = particles or (crowd() if scheme == "hybrid" else cluster())
    return Simulation(bodies, output=output, overwrite=True, notify=lambda line: None, **values)


ADAPTIVE = ("ias15", "hermite4_block", "leapfrog_adaptive")


# --- Contacts within a step ---


@pytest.mark.parametrize("count", [2, 40])
def test_contacts_of_free_bodies_are_the_roots_of_a_quadratic(count):
    rng = np.random.default_rng(5)
    x, v = rng.normal(size=(2, count, 3)) * [[[1]], [[20]]]  # each crosses the whole cloud in the step
    radius, dt = rng.uniform(0.05, 0.3, count), 0.2
    pairs, times = contacts(straight(x, v, dt), radius)
    found = {tuple(pair): time for pair, time in zip(pairs.tolist(), times, strict=True)}
    for i in range(count):
        for j in range(i + 1, count):
            d, w, both = x[j] - x[i], (v[j] - v[i]) * dt, radius[i] + radius[j]
            b, c = d @ w, d @ d - both**2
            root = b * b - w @ w * c
            first = 0.0 if c <= 0 else (-b - math.sqrt(root)) / (w @ w) if root > 0 else 2.0
            if 0 <= first <= 1:
                assert found.pop((i, j)) == pytest.approx(first, abs=1e-9)
    assert not found
    assert (np.diff(times) >= 0).all()


def test_a_moving_frame_changes_no_contact():
    bodies, drift = cluster(), np.array([300.0, -200.0, 100.0])
    at_rest, moving = (straight(bodies.position, bodies.velocity + each, 0.5) for each in (0, drift))
    (pairs, times), (others, moved) = (contacts(each, bodies.radius) for each in (at_rest, moving))
    assert len(pairs) and (pairs == others).all() and times == pytest.approx(moved, abs=1e-9)


@pytest.mark.parametrize("distance", [0.999999, 1.000001])
def test_a_grazing_contact_is_distinguished_from_a_near_miss(distance):
    x, v = np.array([[-50, distance, 0], [0, 0, 0.0]]), np.array([[100.0, 0, 0], [0, 0, 0]])
    rows = x.T, v.T, (x + v).T, v.T
    touch = bool(any_contact_of_few(*rows, 1.0, np.array([0.5, 0.5])))
    assert touch == (len(contacts(straight(x, v, 1.0), np.array([0.5, 0.5]))[1]) == 1) == (distance < 1)


@pytest.mark.parametrize("far", [1e200, math.inf, math.nan])
def test_the_search_for_contacts_ends_where_positions_are_no_longer_numbers(far):
    x, v = np.array([[far, 0, 0], [0, 0, 0.0]]), np.zeros((2, 3))
    rows, radius = (x.T, v.T, x.T, v.T), np.array([0.5, 0.5])
    with np.errstate(all="ignore"):
        assert not any_contact_of_few(*rows, 1.0, radius) and not len(contacts(straight(x, v, 1.0), radius)[1])


def test_a_contact_on_a_kepler_orbit_is_where_the_orbit_first_is_at_the_sum_of_the_radii():
    """Ellipses, parabolas, hyperbolas and free falls, towards the other body and away from it."""
    rng, found = np.random.default_rng(1), 0
    for _ in range(400):
        mu, r0, direction = 10 ** rng.uniform(-2, 2), 10 ** rng.uniform(-1, 1), rng.normal(size=3)
        x = direction * r0 / np.linalg.norm(direction)
        v = rng.choice([-1, -1, 1]) * x / r0 + rng.choice([0, 10 ** rng.uniform(-3, 0)]) * rng.normal(size=3)
        v *= math.sqrt(2 * mu / r0) * rng.choice([rng.uniform(0.1, 0.99), 1, rng.uniform(1.01, 3)]) / np.linalg.norm(v)
        radius = r0 * 10 ** rng.uniform(-3, -0.01)
        path = np.array([x, x + v / 3, 9 * x, 9 * x])  # the end of the step does not matter to the orbit
        _, times = contacts(np.stack([np.zeros((4, 3)), path]), np.array([0, radius]), np.array([mu, 0]))
        until = times[0] if len(times) else 1.0
        earlier = [np.linalg.norm(orbit_moment(path, mu, until * k / 100)[0]) for k in range(100)]
        assert min(earlier) > radius * (1 - 1e-9)
        if len(times):
            found += 1
            at, speed = (np.linalg.norm(each) for each in orbit_moment(path, mu, until))
            assert abs(at - radius) < 1e-12 * (speed + r0)  # rounding of the time, and of the position
    assert 100 < found < 300


def test_fast_bodies_do_not_pass_through_each_other():
    x, v = [[-10, 0, 0], [10.3, 0, 0]], [[1000, 0, 0], [-1000, 0, 0]]  # they change places in one step
    bodies = Particles([1e-9, 3e-9], x, v, radius=[0.1, 0.2])
    run = Simulation(bodies, dt=0.02, collisions="merge", **EXACT)
    run.run(3)
    event = run.events.iloc[0] if hasattr(run.events, "iloc") else {k: c[0] for k, c in run.events.items()}
    assert event["time"] == pytest.approx((20.3 - 0.3) / 2000, rel=1e-9)
    assert event["speed"] == pytest.approx(2000)
    assert (event["id_1"], event["id_2"], run.particles.id.tolist()) == (1, 0, [1])  # the heavier one stays
    assert run.particles.velocity[0] == pytest.approx([-500, 0, 0], abs=1e-10)
    assert run.particles.radius == pytest.approx([np.cbrt(0.1**3 + 0.2**3)])


def test_several_mergers_of_one_step_happen_in_order_of_time():
    # 1 hits 0 at t = 0.4. Only the larger body that they make reaches 2, which flies past at a distance of 0.222.
    x, v = [[0, 0, 0], [-0.6, 0, 0], [0.9, 0.222, 0], [5, 5, 5]], [[0, 0, 0], [1, 0, 0], [-1, 0, 0], [0, 0, 0.0]]
    bodies = Particles(np.array([4, 2, 1, 1]) * 1e-9, x, v, id=[7, 3, 9, 1], radius=[0.11, 0.09, 0.11, 0.1])
    run = Simulation(bodies, dt=1.0, collisions="merge", **EXACT)
    run.run(1)
    assert list(run.events["id_2"]) == [3, 9] and list(run.events["id_1"]) == [7, 7]
    assert run.events["time"][0] == pytest.approx(0.4, rel=1e-6)
    assert run.events["mass_1"][1] == pytest.approx(6e-9, rel=1e-15)
    reach = np.cbrt(0.11**3 + 0.09**3) + 0.11  # the centre of mass is at -0.2 + t/3
    later = (0.9 + 0.2 - math.sqrt(reach**2 - 0.222**2)) / (1 + 1 / 3)
    assert run.events["time"][1] == pytest.approx(later, rel=1e-6)
    assert run.particles.id.tolist() == [7, 1]
    momentum = bodies.mass @ bodies.velocity
    assert run.particles.mass @ run.particles.velocity == pytest.approx(momentum, abs=1e-17)


# --- Physics ---


@pytest.mark.parametrize(("scheme", "error"), [("ias15", 1e-7), ("leapfrog", 1e-5), ("hermite4", 1e-7)])
def test_two_bodies_that_fall_onto_each_other_touch_at_the_analytic_time(scheme, error):
    """From rest at distance d: t = √(d³/2μ) (√(q(1 - q)) + arccos √q) with q = R/d; the error of a step is that of the
    scheme, and dt⁴ of the interpolation."""
    mass, d, both = np.array([0.75, 0.25]), 2.0, 0.4
    x = np.array([[-0.5, 0, 0], [1.5, 0, 0]])
    run = simulation(scheme, particles=Particles(mass, x, 0 * x, radius=[0.3, 0.1]), end=4.0, collisions="stop")
    run.run()
    q = both / d
    assert run.events["time"][0] == pytest.approx(
        math.sqrt(d**3 / 2) * (math.sqrt(q * (1 - q)) + math.acos(math.sqrt(q))), rel=error
    )


def test_a_grazing_orbit_is_recorded_once_per_passage():
    """An ellipse (a = 1, e = 0.6) whose pericentre, 0.4, is inside the sum of the radii, 0.5."""
    speed = math.sqrt((1 - 0.6) / (1 + 0.6))
    x, v = np.array([[-0.8, 0, 0], [0.8, 0, 0]]), np.array([[0, -speed / 2, 0], [0, speed / 2, 0]])
    pair = Particles([0.5, 0.5], x, v, radius=[0.25, 0.25])
    run = simulation("ias15", particles=pair, end=4 * math.pi, collisions="record", record={"dt": math.pi})
    run.run()
    anomaly = math.acos((1 - 0.5) / 0.6)  # r = 1 - e cos E, before the pericentre
    before = anomaly - 0.6 * math.sin(anomaly)
    assert list(run.events["time"]) == pytest.approx([math.pi - before, 3 * math.pi - before], rel=1e-6)
    assert run.particles.count == 2


@pytest.mark.parametrize(
    ("scheme", "momentum", "energy"),
    [
        ("leapfrog", 1e-15, 1e-2),
        ("hermite4", 1e-15, 1e-4),
        ("leapfrog_adaptive", 1e-15, 1e-2),
        ("ias15", 1e-15, 1e-13),
        ("hermite4_block", 1e-6, 1e-6),  # individual steps conserve momentum only as well as energy
    ],
)
def test_mergers_conserve_mass_momentum_and_the_energy_balance(scheme, momentum, energy, tmp_path):
    bodies, path = cluster(), tmp_path / "run.h5"
    run = simulation(scheme, path)
    summary = run.run()
    now = run.particles
    assert summary.collisions == len(run.events) == 24 - now.count >= 3
    assert now.mass.sum() == pytest.approx(bodies.mass.sum(), rel=1e-15)
    assert now.mass @ now.velocity == pytest.approx(bodies.mass @ bodies.velocity, abs=momentum)
    assert (now.radius**3).sum() == pytest.approx((bodies.radius**3).sum(), rel=1e-14)
    assert abs(summary.energy_error) < energy
    with Trajectory(path) as recorded:
        total = recorded.observable("total_energy")
        assert total[-1] - total[0] == pytest.approx(recorded.observable("collision_energy")[-1], abs=2 * energy)
        assert recorded.observable("bodies")[-1] == now.count == recorded[-1].count
        assert (recorded[-1].mass == now.mass).all() and (recorded[-1].id == now.id).all()
        assert recorded[0].count == 24
        assert not recorded.verify()


def test_planets_under_the_map_fall_into_the_star():
    planets = [
        {"m": 1.0, "radius": 0.3},
        {"m": 1e-9, "a": 1.0, "e": 0.75, "M": 180},
        {"m": 1e-9, "a": 3.0, "radius": 0.01},
    ]
    scenario = Scenario.from_dict(
        {
            "initial": {"generator": "planets", "bodies": planets},
            "integrator": {"scheme": "wisdom_holman", "dt": 0.05, "steps": 100},
            "gravity": {"softening": "none"},
            "precision": "float64",
            "collisions": "merge",
        }
    )
    run = Simulation(scenario, engine="cpu")
    run.run()
    assert run.particles.id.tolist() == [0, 2]
    anomaly = math.acos(0.7 / 0.75)
    assert run.events["time"][0] == pytest.approx(math.pi - (anomaly - 0.75 * math.sin(anomaly)), rel=1e-3)


@pytest.mark.parametrize(("scheme", "dimensions"), [("hybrid", 3), ("hybrid", 2), ("wisdom_holman", 3)])
@pytest.mark.parametrize("dt", [0.05, 0.001])
def test_a_planet_that_falls_onto_its_star_is_not_missed_in_a_long_step(scheme, dimensions, dt):
    """An ellipse whose pericentre is inside the star; it is passed within one step. The star goes on alone. The error of the
    hybrid's energy is of the order of the planet's mass: it splits off the motion of the star."""
    mass, star, x, v = 1e-4, 0.00465, np.zeros((2, 3)), np.zeros((2, 3))
    x[1, 0], v[1, :2] = 1.0, (-0.4, 0.05)
    planets = Particles([1.0, mass], x[:, :dimensions], v[:, :dimensions], radius=[star, 0.0])
    run = Simulation(planets, integrator=scheme, dt=dt, collisions="merge", **EXACT | {"engine": "cpu"})
    done = run.integrate(2.0)
    mu, speed2 = 1 + mass, 0.4**2 + 0.05**2
    a = 1 / (2 - speed2 / mu)
    e = math.sqrt(1 - 0.05**2 / (mu * a))
    first, last = (2 * math.pi - math.acos((1 - r / a) / e) for r in (1.0, star))  # eccentric anomalies
    time = math.sqrt(a**3 / mu) * (last - first - e * (math.sin(last) - math.sin(first)))
    assert list(run.events["time"]) == pytest.approx([time], rel=1e-6)
    assert run.events["speed"][0] == pytest.approx(math.sqrt(mu * (2 / star - 1 / a)), rel=1e-4)
    assert run.particles.count == 1 and run.time == 2.0
    assert run.particles.position[0] == pytest.approx(mass / mu * (x[1] + 2 * v[1])[:dimensions], abs=1e-12)
    assert abs(done.energy_error) < (1e-9 if scheme == "wisdom_holman" else 300 * mass)


@pytest.mark.parametrize("scheme", ["hybrid", "wisdom_holman"])
def test_a_planet_that_passes_its_star_closely_does_not_touch_it(scheme):
    x, v = (
        np.array([[0, 0, 0], [1.0, 0, 0]]),
        np.array([[0, 0, 0], [-0.4, 0.12, 0]]),
    )  # its pericentre is 1.6 star radii
    planets = Particles([1.0, 1e-4], x, v, radius=[0.00465, 0.0])
    run = Simulation(planets, integrator=scheme, dt=0.05, collisions="record", **EXACT | {"engine": "cpu"})
    run.integrate(2.0)
    assert not len(run.events["time"])


def test_planets_that_fall_onto_their_star_in_one_step_all_merge_with_it():
    x, v = np.zeros((3, 3)), np.zeros((3, 3))
    x[1:, 0], v[1:, 0] = (1.0, -1.005), (-0.4, 0.4)
    planets = Particles([1.0, 1e-4, 1e-4], x, v, radius=[0.00465, 0.0, 0.0])
    run = Simulation(planets, integrator="hybrid", dt=0.05, collisions="merge", **EXACT | {"engine": "cpu"})
    run.integrate(1.0)
    assert list(run.events["id_2"]) == [1, 2] and len(set(run.events["step"])) == 1
    assert run.particles.count == 1 and run.particles.mass[0] == pytest.approx(1.0002, rel=1e-15)


def test_planets_merge_beside_a_body_without_mass():
    """It moves among copies of both, whose contact is not its own."""
    x, v = np.array([[0, 0, 0], [1, 0, 0.03], [1, 0, 0], [1, 0.012, 0]]), np.zeros((4, 3))
    v[1:, 1] = 1.0, 1.0, 0.8
    planets = Particles([1, 0, 1e-5, 1e-5], x, v, radius=[1e-3, 1e-3, 4e-3, 4e-3])
    run = Simulation(planets, integrator="hybrid", dt=0.05, collisions="merge", **EXACT | {"engine": "cpu"})
    run.step()
    assert run.particles.id.tolist() == [0, 1, 2] and run.particles.mass[2] == 2e-5


def planets_that_meet(nearest, rng, mass=1e-5):
    """Two planets some time before they are ``nearest`` to each other: ``ias15`` goes back from there."""
    way, across = np.linalg.qr(rng.normal(size=(3, 2)))[0].T
    speed = math.sqrt(rng.uniform(0.05, 0.2) ** 2 + 4 * mass / nearest)
    x = np.array([[0, 0, 0], [1, 0, 0] + nearest / 2 * across, [1, 0, 0] - nearest / 2 * across])
    v = np.array([[0, 0, 0], [0, 1, 0] + speed / 2 * way, [0, 1, 0] - speed / 2 * way])
    past = Simulation(Particles([1.0, mass, mass], x, -v), integrator="ias15", **EXACT | {"engine": "cpu"})
    past.integrate(rng.uniform(0.2, 0.4))
    return past.particles.position, -past.particles.velocity


def test_planets_that_meet_under_the_hybrid_touch_as_under_ias15():
    """The error of the map in the least distance falls with dt², and is less than 10 m dt² (with dt = 0.05: up to 1.6e-7),
    so that distances that differ by 0.1 % from the sum of the radii, 4e-7, are a contact or none for certain. Kicks between
    the two keep their angular momentum but not their energy: the time of the contact errs by some 0.02 dt²."""
    mass, both, rng = 1e-5, 4e-4, np.random.default_rng(1)
    for nearest in (0.02, 0.3, 0.6, 0.999, 1.001, 1.2, 2.0, 3.0):
        x, v = planets_that_meet(nearest * both, rng)
        planets = Particles([1.0, mass, mass], x, v, radius=[0, both / 2, both / 2])
        exact = Simulation(planets, integrator="ias15", collisions="merge", **EXACT | {"engine": "cpu"})
        exact.integrate(0.5)
        assert exact.particles.count == (2 if nearest < 1 else 3)
        for dt, rule in ((0.05, "merge"), (0.01, "merge"), (0.01, "record")):
            run = Simulation(planets, integrator="hybrid", dt=dt, collisions=rule, **EXACT | {"engine": "cpu"})
            done = run.integrate(0.5)
            assert list(run.events["time"]) == pytest.approx(list(exact.events["time"]), abs=0.05 * dt**2)
            assert list(run.events["speed"]) == pytest.approx(list(exact.events["speed"]), rel=1e-4)
            assert run.particles.count == (exact.particles.count if rule == "merge" else 3)
            assert abs(done.energy_error) < 100 * mass * dt**2


def test_bodies_in_a_plane_collide_too():
    run = Simulation(
        Particles([1e-9, 1e-9], [[0, 0], [1, 0]], [[1, 0], [0, 0]]),
        dt=2.0,
        collisions={"rule": "merge", "radius": 0.1},
        **EXACT,
    )
    run.run(1)
    assert run.events["time"][0] == pytest.approx(0.8, rel=1e-6) and run.particles.position.shape == (1, 2)


# --- Rules ---


def test_stop_ends_the_run_in_good_order_and_resume_goes_on(tmp_path, capsys):
    scenario, path = tmp_path / "run.yaml", tmp_path / "run.h5"
    scenario.write_text(
        "initial: {generator: kepler, eccentricity: 0.6}\nprecision: float64\nengine: reference\n"
        "integrator: {dt: 0.01, steps: 1000}\ncollisions: {rule: stop, radius: 0.25}\nrecord: {every: 100}\n"
    )
    assert main(["run", str(scenario), "-o", str(path), "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["interrupted"] is False and json.loads(told.out)["collisions"] == 1
    lines = [line for line in told.err.splitlines() if line.startswith("stopped: bodies 0 and 1 (ids) touch at t = ")]
    assert len(lines) == 1
    with Trajectory(path) as run:
        assert run.complete and run.time[-1] - 0.01 <= run.events["time"][0] <= run.time[-1]
    assert main(["resume", str(path), "--quiet"]) == 0
    with Trajectory(path) as run:
        assert len(run.events["time"]) == 2 and run.events["time"][1] > run.events["time"][0] + 1
    assert main(["info", str(path)]) == 0
    page = capsys.readouterr().out
    assert "collisions" in page and "0 and 1 touched" in page


def test_bodies_that_touch_at_the_beginning_count_once():
    bodies = Particles([1e-9, 1e-9], [[0, 0, 0], [0.1, 0, 0]], [[0, 0, 0], [0.01, 0, 0]], radius=[0.1, 0.1])
    run = Simulation(bodies, dt=0.5, collisions="record", **EXACT)
    run.run(10)
    assert list(run.events["time"]) == [0.0]


def test_the_recording_has_room_for_the_contacts_asked_for(tmp_path):
    said = []
    values = {"dt": 0.01, "collisions": {"rule": "record", "most": 2}, **EXACT}
    run = Simulation(cluster(radius=0.3), output=tmp_path / "r.h5", notify=said.append, **values)
    run.run(50)
    with Trajectory(tmp_path / "r.h5") as recorded:
        assert len(recorded.event_rows()) == 2
    assert sum("room for 2 collisions (collisions.most)" in line for line in said) == 1


# --- The file ---


@pytest.mark.parametrize(
    ("scheme", "rule"),
    [(scheme, rule) for scheme in ("wisdom_holman", "ias15", "hermite4_block") for rule in ("merge", "bounce", "function")]
    + [("hybrid", "merge"), ("hybrid", "function")],
)
def test_every_outcome_goes_with_schemes_that_have_loops_of_their_own(scheme, rule):
    """Two planets that go round in opposite directions touch after a quarter of a turn, and go on round the star."""

    def halves(pair):
        """One body that breaks into two."""
        mass, apart = pair.mass.sum(), np.array([0, 0.05, 0])
        x, v = pair.mass @ pair.position / mass, pair.mass @ pair.velocity / mass
        return Particles([mass / 2] * 2, [x + apart, x - apart], [v, v], radius=[0.005] * 2)

    x, v = [[0, 0, 0], [1, 0, 0], [-1, 0, 0]], [[0, 0, 0], [0, 1, 0], [0, 1, 0]]
    planets = Particles([1, 1e-6, 1e-6], x, v, radius=[1e-3, 0.01, 0.01])
    outcome = {"on_collision": halves} if rule == "function" else {"collisions": rule}
    run = Simulation(planets, integrator=scheme, dt=1 / 256, **EXACT | {"engine": "cpu"}, **outcome)
    run.run(512)
    assert run.summary.collisions == 1 and abs(run.summary.energy_error) < 1e-3
    assert run.particles.id.tolist() == [0, 1, 2][: 2 if rule == "merge" else 3]
    kinds = {"merge": ["merger"], "bounce": ["bounce"], "function": ["contact", "altered", "altered"]}
    assert run.events["kind"].tolist() == kinds[rule]
    assert float(run.events["time"][0]) == pytest.approx(np.pi / 2, abs=0.02)  # they touch 0.01 before the middle


@pytest.mark.parametrize("scheme", ["leapfrog", "ias15", "hermite4_block", "hybrid"])
def test_a_resumed_run_has_the_same_bits_also_between_mergers(scheme, tmp_path):
    whole, part, killed = (tmp_path / f"{name}.h5" for name in ("whole", "part", "killed"))
    simulation(scheme, whole).run()
    with Trajectory(whole) as run:
        times = np.sort(run.event_rows()["time"])
    assert len(times) >= 3

    def until(particles):
        if particles.time > times[1] and not killed.exists():
            while not part.exists():  # the recorder works on its own thread
                time.sleep(0.01)
            shutil.copy(part, killed)  # what a kill leaves: frames and events after the last checkpoint
        return particles.time < times[2]

    simulation(scheme, part).run(callback=until, every=1)
    for path in (part, killed):
        resume(path, notify=lambda line: None).run()
        assert first_difference(whole, path) is None
    with Trajectory(part) as run:
        assert not run.verify()


def test_a_longer_copy_keeps_the_events(tmp_path):
    path = tmp_path / "run.h5"
    simulation("leapfrog", path, end=0.5).run()
    before = Trajectory(path).event_rows()
    resume(path, end=1.0, notify=lambda line: None).run()
    with Trajectory(path) as run:
        assert (run.event_rows()[: len(before)] == before).all() and len(run.event_rows()) > len(before) > 0
    simulation("leapfrog", tmp_path / "whole.h5").run()
    assert (Trajectory(tmp_path / "whole.h5").event_rows() == Trajectory(path).event_rows()).all()


def test_the_table_of_an_earlier_version_is_read_compared_and_continued(tmp_path, monkeypatch):
    """It has no distances. Without room for the longer run the file is copied, to the present form."""
    earlier, now = tmp_path / "earlier.h5", tmp_path / "now.h5"
    simulation("leapfrog", now, end=0.5).run()
    with monkeypatch.context() as old:
        old.setattr(layout, "EVENT_DTYPE", layout.EARLIER_EVENT_DTYPE)
        simulation("leapfrog", earlier, end=0.5).run()
    with Trajectory(earlier) as run:
        assert not run.verify() and run.stored_events().dtype == np.dtype(layout.EARLIER_EVENT_DTYPE)
        assert len(run.events["time"]) and np.isnan(run.events["distance"]).all() and (run.events["event"] == -1).all()
    assert first_difference(earlier, now) is None
    resume(earlier, end=1.0, notify=lambda line: None).run()
    with Trajectory(earlier) as run:
        assert not run.verify() and np.isfinite(run.event_rows()["distance"][-1])


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """A recording of a run with mergers, which tests only read or copy."""
    path = tmp_path_factory.mktemp("collisions") / "run.h5"
    simulation("leapfrog", path).run()
    return path


def test_other_tools_read_the_events(recording):
    with h5py.File(recording) as file, Trajectory(recording) as run:
        rows = file["events"][:]
        assert (rows["time"] == np.asarray(run.events["time"])).all() and set(rows["kind"]) == {b"merger"}
        assert file["particles/trajectory/radius"].shape == (24,)
        assert np.isfinite(file["particles/trajectory/position/value"][:]).all()
        gone, stays = int(rows["id_2"][-1]), int(rows["id_1"][-1])
        assert (run.position[-1, gone] == run.position[-1, stays]).all()  # a merged body is where the other one is


def test_rerun_gives_the_same_bits_and_diff_compares_events(recording, tmp_path, capsys):
    path, other = tmp_path / "run.h5", tmp_path / "other.h5"
    shutil.copy(recording, path)
    assert main(["rerun", str(path), "-o", str(tmp_path / "again.h5"), "--verify", "--quiet"]) == 0
    shutil.copy(recording, other)
    with h5py.File(other, "r+") as file:
        rows = file["events"][:]
        rows["speed"][1] *= 2
        file["events"][:] = rows
    difference = first_difference(path, other)
    assert difference is not None and difference.field == "event 1"
    with Trajectory(other) as run:
        assert run.verify() == ["event 1"]


def test_merged_bodies_are_not_exported(recording, tmp_path):
    with Trajectory(recording) as run:
        left = run[-1].count
        export(run, tmp_path / "bodies.csv")
        export(run, tmp_path / "bodies.npz")
    for name in ("bodies.csv", "bodies.npz"):
        again = Scenario.from_dict({"initial": {"file": str(tmp_path / name)}, "integrator": {"dt": 0.1, "steps": 0}})
        read = Simulation(again, **EXACT).particles
        assert read.count == left < 24 and len(read.radius) == left


def test_a_viewer_leaves_merged_bodies_out_and_marks_collisions(recording):
    from nbody.viewer.display.body import facts
    from nbody.viewer.sources.frames import FAR
    from nbody.viewer.sources.recording import RecordedSource

    with Trajectory(recording) as run:
        source, last = RecordedSource(run), len(run) - 1
        gone = ~run.left(last - 1).alive
        assert (source.past(last).position[gone] >= FAR / 2).all() and gone.any()
        assert f"{24 - int((~run.left(last).alive).sum())} particles are left" in source.caption(last).note
        when = run.event_rows()["time"][0]
        at = float(np.interp(when, run.time, np.arange(len(run))))
        places, ages = source.flashes(at + 0.01)
        assert len(places) == 1 and ages[0] < 0.01 and len(source.flashes(at - 0.01)[0]) == 0
        survivor = int(run.event_rows()["id_1"][-1])
        seen = facts(source, source.moment(last), survivor)
        assert seen.mass == run.left(last).mass[survivor] and np.isfinite(seen.potential)
        source.close()


def test_a_collision_without_a_place_is_not_marked(recording, tmp_path):
    path = tmp_path / "forged.h5"
    shutil.copy(recording, path)
    with h5py.File(path, "r+") as file:
        rows = file["events"][:]
        rows["x"] = np.nan
        file["events"][:] = rows
    assert main(["view", str(path), "--screenshot", str(tmp_path / "a.png"), "--size", "64x48"]) == 0


# --- Wrong input ---

BASE = "initial: {generator: plummer, particles: 8}\nintegrator: {dt: 0.01, steps: 1}\nprecision: float64\n"
UNITS = "units: {length: pc, mass: Msun, velocity: km/s}\n"


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("{rule: merge}", "collisions.radius: is missing, and the bodies have no radii; give a length"),
        ("{rule: merge, radius: -1}", "collisions.radius: must be at least 0, got -1"),
        ("{rule: merge, radius: 0}", "collisions.radius: every radius is 0"),
        (
            "{rule: glue, radius: 1}",
            "collisions.rule: unknown rule 'glue'; one of: merge, bounce, function, stop, record",
        ),
        ("{rule: [merge], radius: 1}", "collisions.rule: must be text, got a list"),
        ("{radius: 1}", "collisions.rule: is missing"),
        ("{rule: merge, radius: {density: 0}}", "collisions.radius.density: must be greater than 0, got 0"),
        ("{rule: merge, radius: {stars: 1}}", "collisions.radius: the bodies have no species 'stars'"),
        ("{rule: merge, radius: 1 kg}", "collisions.radius: '1 kg' has a unit, and the scenario has no units"),
        ("{rule: merge, radius: 1, most: 5}", "collisions.most: belongs to rule 'record'"),
        ("{rule: merge, radios: 1}", "collisions.radios: unknown key (did you mean 'radius'?)"),
    ],
)
def test_invalid_collision_options_are_refused(tmp_path, refused, written, says):
    path = tmp_path / "run.yaml"
    path.write_text(f"{BASE}collisions: {written}\n")
    line = refused("run", path, "-o", tmp_path / "run.h5", "--quiet")
    assert line.startswith(f"{path}:4: ") and says in line
    assert not (tmp_path / "run.h5").exists()


def test_a_radius_has_the_units_of_the_scenario():
    pytest.importorskip("astropy")
    text = f"{UNITS}{BASE}collisions: {{rule: stop, radius: 1 Rsun}}\n"
    chosen = Scenario.from_text(text).collisions
    assert chosen is not None and chosen.radius == pytest.approx(6.957e8 / 3.0856775814913673e16)
    with pytest.raises(InputError, match="'1 kg' is not a length"):
        Scenario.from_text(text.replace("1 Rsun", "1 kg"))


def test_bodies_of_a_table_may_have_radii(tmp_path):
    path = tmp_path / "bodies.csv"
    path.write_text("m,x,y,z,vx,vy,vz,radius\n1,0,0,0,0,0,0,0.5\n1e-9,2,0,0,-2,0,0,0.25\n")
    scenario = {"initial": {"file": str(path)}, "integrator": {"dt": 1e-3, "steps": 1000}, "collisions": "stop"}
    run = Simulation(Scenario.from_dict(scenario), **EXACT)
    run.run()
    assert list(run.events["radius_1"]) == [0.5] and list(run.events["radius_2"]) == [0.25]
    path.write_text(path.read_text().replace("0.25", "-0.25"))
    with pytest.raises(InputError, match=r"radius of particle 1 \(counted from 0\) is -0.25; radii are zero or more"):
        Simulation(Scenario.from_dict(scenario), **EXACT)


def test_the_density_gives_the_radius():
    bodies = cluster()
    run = Simulation(bodies, dt=0.1, collisions={"rule": "merge", "radius": {"density": 3.0}}, **EXACT)
    assert 4 / 3 * math.pi * 3.0 * run.particles.radius**3 == pytest.approx(bodies.mass, rel=1e-14)


@pytest.mark.parametrize("scheme", [{"integrator": "ias15"}, {"integrator": "leapfrog", "dt": 0.01}])
def test_the_frames_before_the_error_of_an_outcome_are_in_the_file(tmp_path, scheme):
    def fails(pair):
        raise ValueError("mine")

    bodies = Particles([1.0, 1e-6], [[0, 0, 0], [1, 0, 0]], [[0, 0, 0], [-0.5, 0, 0]], radius=[0.05, 0.05])
    path, values = tmp_path / "run.h5", {"precision": "float64", "engine": "cpu", "end": 5.0, "record": {"dt": 0.05}}
    run = Simulation(bodies, path, on_collision=fails, **scheme, **values)
    with pytest.raises(RunFailed, match="the function raised ValueError: mine"):
        run.run()
    with Trajectory(path) as found:  # they touch at 0.745
        assert len(found.time) == 15 and found.status == "stopped" and not found.verify()
