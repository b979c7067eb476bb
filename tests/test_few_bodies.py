"""Schemes for few bodies: known orbits, conserved energies, and the same bits however a run is cut into pieces."""

from fractions import Fraction

import numpy as np
import pytest
from motions import checkpoint, energy, moving, prepared, restore

from nbody.bench.integrators.problems import SUN, outer_solar_system
from nbody.errors import InputError, RunFailed
from nbody.forces import ENGINES
from nbody.initial.solar import SolarSystem
from nbody.integrators import INTEGRATORS
from nbody.integrators.adaptive import NEXT
from nbody.integrators.integrator import unsupported
from nbody.integrators.solvers.blocks.cpu_kernels import kepler_motion
from nbody.integrators.solvers.radau_tables import NODES
from nbody.integrators.solvers.splitting import corrector_kicks
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario import Scenario


def orbit(eccentricity):
    """Two bodies of mass ½ at pericentre, semi-major axis 1, period 2π, in a plane."""
    d, v = 1 - eccentricity, np.sqrt((1 + eccentricity) / (1 - eccentricity))
    return Particles([0.5, 0.5], [[d / 2, 0], [-d / 2, 0]], [[0, v / 2], [0, -v / 2]])


# --- ias15 ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("eccentricity", [0.5, 0.9, 0.999])
def test_ias15_closes_kepler_orbits_to_rounding(eccentricity):
    """An energy error of δ shifts the phase by 3π δ per orbit, at pericentre with the speed v there. δ is a few roundings
    of the pericentre's energies, which exceed the total by 1/(1 - e); ten orbits, each a random step."""
    scheme, motion = moving("ias15", orbit(eccentricity))
    first = energy(motion)
    scheme.advance(motion, 10**6, 20 * np.pi)
    assert motion.state.clock.time == 20 * np.pi
    rounding = 2.0**-52 / (1 - eccentricity)
    assert abs(energy(motion) / first - 1) < 20 * rounding
    speed = np.sqrt((1 + eccentricity) / (1 - eccentricity))
    relative = motion.state.position[0] - motion.state.position[1]
    assert np.linalg.norm(relative - [1 - eccentricity, 0]) < 100 * 3 * np.pi * 10 * rounding * speed


@pytest.mark.parametrize("eccentricity", [0.0, 0.3, 0.9])
def test_between_the_ends_of_its_steps_ias15_is_as_accurate_and_makes_the_same_steps(eccentricity):
    """The energy within a step is that of its ends but for a few roundings of the pericentre's energies."""
    scheme, motion = moving("ias15", orbit(eccentricity))
    alone, other = moving("ias15", orbit(eccentricity))
    first, rounding = energy(motion), 2.0**-52 / (1 - eccentricity)
    for k in range(1, 1000):
        scheme.advance(motion, 10**6, 0.01 * k)
        assert motion.state.clock.time == 0.01 * k
        assert abs(energy(motion) / first - 1) < 20 * rounding
    alone.advance(other, 10**6, 0.01 * k)
    assert motion.state.clock.step == other.state.clock.step < 500
    np.testing.assert_array_equal(motion.state.position, other.state.position)


def test_the_points_of_ias15_are_those_of_radaus_quadrature():
    """The integral of the polynomial through eight points is exact up to degree 14 = 2·8 - 2 for Radau's points and no
    others, which makes the order 15; in exact fractions, with the points' 30 digits."""
    tau = [Fraction(node) for node in NODES]
    weights = []
    for node in tau:
        product = [Fraction(1)]  # Lagrange's polynomial of the node, lowest power first
        for other in tau:
            if other != node:
                pairs = zip([Fraction(0), *product], [*product, Fraction(0)], strict=True)
                product = [(low - other * high) / (node - other) for low, high in pairs]
        weights.append(sum(c / (k + 1) for k, c in enumerate(product)))
    for degree in range(16):
        found = sum(w * node**degree for w, node in zip(weights, tau, strict=True))
        assert (abs(found - Fraction(1, degree + 1)) < Fraction(1, 10**27)) == (degree <= 14)


@pytest.mark.parametrize("eccentricity,steps", [(0.5, (8, 20)), (0.9, (60, 240))])
def test_the_error_of_ias15_with_fixed_steps_falls_faster_than_that_of_any_lower_order(eccentricity, steps):
    """So coarse an epsilon that all steps are dt; against Kepler's solution after a period. Before rounding limits the error
    it does not reach the slope 15, but it is steeper than 8."""
    errors = []
    for number in steps:
        scheme, motion = moving("ias15", orbit(eccentricity), 2 * np.pi / number, epsilon=1.0)
        scheme._clock[NEXT] = scheme.dt
        scheme.advance(motion, 10**6, 2 * np.pi)
        assert motion.state.clock.step <= number + 3  # near pericentre some are shorter
        relative = motion.state.position[0] - motion.state.position[1]
        errors.append(np.linalg.norm(relative - [1 - eccentricity, 0]))
    assert errors[1] < 1e-6
    assert np.log(errors[0] / errors[1]) / np.log(steps[1] / steps[0]) > 8


def test_ias15_follows_the_figure_eight_for_a_hundred_periods():
    """In the middle a body's acceleration vanishes, and the criterion of 2024 alone asks for a step of zero.
    Simó's digits close the orbit to 3e-8 per period; errors grow linearly on this stable orbit."""
    x, v = np.array([0.97000436, -0.24308753]), np.array([-0.93240737, -0.86473146])
    eight = Particles(np.ones(3), [x, -x, 0 * x], [-v / 2, -v / 2, v])
    scheme, motion = moving("ias15", eight)
    first = energy(motion)
    scheme.advance(motion, 10**6, 100 * 6.32591398)
    assert motion.state.clock.step < 100 * 160
    assert abs(energy(motion) / first - 1) < 1e-14
    assert first == pytest.approx(-1.2871419918, abs=1e-10)
    assert np.abs(motion.state.position - eight.position).max() < 100 * 3e-8


def test_ias15_solves_the_pythagorean_problem():
    """Burrau's three bodies after ten units (the reference solution of the literature), and their energy after fifty: past
    encounters at 4e-4, where each rounding counts 4000 times."""
    burrau = Particles([3, 4, 5], [[1.0, 3], [-2, -1], [1, -1]], np.zeros((3, 2)))
    scheme, motion = moving("ias15", burrau)
    scheme.advance(motion, 10**6, 10.0)
    np.testing.assert_allclose(motion.state.position[0], [0.77848041, 0.14139229], atol=2e-8)
    scheme.advance(motion, 10**6, 50.0)
    assert energy(motion) == pytest.approx(-769 / 60, rel=1e-9)


def test_a_step_that_is_too_long_is_repeated_and_bodies_without_a_force_move_straight():
    scheme, motion = moving("ias15", orbit(0.9), dt=100.0)
    scheme._clock[NEXT] = 3.0
    scheme.advance(motion, 10**6, 2 * np.pi)
    np.testing.assert_allclose(motion.state.position[0] - motion.state.position[1], [0.1, 0], atol=1e-11)
    lonely = Particles([1.0, 0.0], [[0.0, 0], [5, 5]], [[1.0, 0], [0, 2]])
    scheme, motion = moving("ias15", lonely, gravity=Gravity(G=0.0, dimensions=2))
    scheme.advance(motion, 10**6, 8.0)
    np.testing.assert_allclose(motion.state.position, [[8, 0], [5, 21]], rtol=1e-15)


def test_a_head_on_collision_stops_with_the_names_of_the_pair():
    scheme, motion = moving("ias15", Particles([1.0, 1], [[0.0, 0], [1, 0]], np.zeros((2, 2))))
    with pytest.raises(RunFailed, match=r"particles 0 and 1 .* softening"), np.errstate(all="ignore"):
        scheme.advance(motion, 10**6, 10.0)


# --- The map --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("eccentricity", [0.0, 0.5, 0.99, 1.5, 5.0])
@pytest.mark.parametrize("h", [1e-3, 0.7, 40.0, -0.7])
def test_kepler_motion_is_exact_forward_and_backward(eccentricity, h):
    """Against Kepler's equation M = E - e sin E (e sinh E - E), semi-major axis 1, from pericentre; then back again."""
    e, sign = eccentricity, 1 if eccentricity < 1 else -1
    a = sign * 1.0
    x = np.array([[1 - e if e < 1 else e - 1], [0.0], [0.0]])
    v = np.array([[0.0], [np.sqrt((1 + e) / abs(1 - e))], [0.0]])
    start = x.copy(), v.copy()
    kepler_motion(x, v, np.ones(1), np.array([h]))
    anomaly = h
    for _ in range(200):
        if e < 1:
            anomaly -= 0.7 * (anomaly - e * np.sin(anomaly) - h) / (1 - e * np.cos(anomaly))
        else:
            anomaly -= (e * np.sinh(anomaly) - anomaly - h) / (e * np.cosh(anomaly) - 1)
    root = np.sqrt(abs(1 - e * e))
    cos, sin = (np.cos, np.sin) if e < 1 else (np.cosh, np.sinh)
    truth = np.array([a * (cos(anomaly) - e), root * sin(anomaly), 0])
    scale = 1e-14 * max(1, abs(h)) / abs(1 - e)
    np.testing.assert_allclose(x[:, 0], truth, atol=20 * scale)
    kepler_motion(x, v, np.ones(1), np.array([-h]))
    np.testing.assert_allclose(x, start[0], atol=40 * scale / abs(1 - e))


def test_the_corrector_has_the_published_coefficients():
    """Wisdom, Holman & Touma 1996: third and fifth order."""
    np.testing.assert_allclose(corrector_kicks(3), [0.024900596027799867], rtol=1e-14)
    np.testing.assert_allclose(corrector_kicks(5), [0.041500993379666446, -0.0083001986759332891], rtol=1e-13)


def worst_energy_error(dt, corrector, time=100_000.0, **options):
    scheme, motion = moving("wisdom_holman", outer_solar_system(), float(dt), SUN, corrector=corrector, **options)
    first, worst = energy(motion), 0.0
    for _ in range(40):
        scheme.advance(motion, round(time / dt / 40))
        worst = max(worst, abs(energy(motion) / first - 1))
    return worst


def test_the_map_has_order_two_and_the_corrector_removes_most_of_its_error():
    """Without corrector the error goes as ε dt² with the mass ratio ε = 1e-3; with it ε² dt² is left."""
    coarse, fine = worst_energy_error(200.0, 0), worst_energy_error(100.0, 0)
    assert np.log2(coarse / fine) == pytest.approx(2, abs=0.2)
    assert fine < 1e-6
    assert worst_energy_error(100.0, 11) < 1e-2 * fine


@pytest.mark.parametrize("coordinates", ["jacobi", "democratic"])
@pytest.mark.parametrize("corrector,splitting,dt,order", [(0, "wh", 100, 2), (17, "wh", 100, 2), (17, "wh_modified", 100, 4),
    (0, "saba2", 400, 4), (17, "saba3", 200, 2), (0, "saba4", 200, 2), (0, "aba104", 200, 4), (0, "aba864", 400, 10),
    (0, "aba1064", 800, 9)])  # fmt: skip
def test_splittings_have_their_orders_in_both_coordinates(coordinates, corrector, splitting, dt, order):
    """With ε = 1e-3: that of the term that is larger than others there. (REBOUND's whfast with correctors, lazy kernel or
    democratic coordinates, and its saba, have the same energy errors in two digits.)"""
    if (coordinates, splitting) == ("democratic", "wh_modified"):
        with pytest.raises(InputError, match="splitting wh_modified needs coordinates jacobi"):
            worst_energy_error(dt, corrector, coordinates=coordinates, splitting=splitting)
        return
    coarse, fine = (worst_energy_error(h, corrector, coordinates=coordinates, splitting=splitting) for h in (dt, dt / 2))
    assert np.log2(coarse / fine) == pytest.approx(order, abs=1.3 if order > 4 else 0.8)


def test_map_and_ias15_agree_on_the_outer_solar_system():
    """200 000 days, steps of 10: the phase error of Jupiter is 1e-9 of an orbit per period (fifty of them) and less."""
    ends = []
    for name, dt in (("ias15", None), ("wisdom_holman", 10.0)):
        scheme, motion = moving(name, outer_solar_system(), dt, SUN)
        first = energy(motion)
        scheme.advance(motion, 10**6 if dt is None else 20_000, 200_000.0 if dt is None else np.inf)
        assert abs(energy(motion) / first - 1) < (1e-14 if dt is None else 1e-10)
        ends.append(motion.state.position)
    assert np.abs(ends[0] - ends[1]).max() < 1e-6


def test_planets_that_come_too_close_stop_the_map_and_are_named():
    crossing = Particles([1.0, 1e-3, 1e-3], [[0.0, 0], [1, 0], [0, 1.02]], [[0.0, 0], [0, 1], [0.99, 0]])
    scheme, motion = moving("wisdom_holman", crossing, 0.01)
    with pytest.raises(RunFailed, match=r"particles 1 and 2 .* closer than 1 Hill radii.*hybrid.*ias15"):
        scheme.advance(motion, 10_000)


@pytest.mark.parametrize("scheme", ["wisdom_holman", "hybrid"])
@pytest.mark.parametrize(
    "particles,gravity,message",
    [
        (orbit(0.1), Gravity(dimensions=2), "body 0 must be the heaviest"),
        (outer_solar_system(), Gravity(softening="plummer", length=0.1), "orbits about the star are not softened"),
    ],
)
def test_a_map_refuses_what_has_no_star_or_is_softened(scheme, particles, gravity, message):
    with pytest.raises(InputError, match=message):
        moving(scheme, particles, 1.0, gravity)


# --- The hybrid -----------------------------------------------------------------------------------------------------


def meeting(mass=1e-5, apart=0.04, height=0.002):
    """Two planets on circular orbits, ``apart`` in distance from the star; the inner one overtakes the other at t = 8."""
    x, v = np.zeros((3, 3)), np.zeros((3, 3))
    for k, (radius, angle) in enumerate(((1.0, -0.5), (1.0 + apart, 0.0)), 1):
        x[k], v[k] = [radius * np.cos(angle), radius * np.sin(angle), 0], [-np.sin(angle), np.cos(angle), 0]
        v[k] /= np.sqrt(radius)
    x[2, 2] = height
    m = np.array([1.0, mass, mass])
    return Particles(m, x - m @ x / m.sum(), v - m @ v / m.sum())


def test_the_hybrid_keeps_the_energy_through_close_encounters_to_its_order():
    """The planets meet at 0.027 Hill radii, where Kepler's map alone fails; the error falls with dt² and is the one without
    encounters, the planets' mass times (dt/P)². The path itself: the encounter multiplies errors by some thousand."""
    exact, true = moving("ias15", meeting())
    nearest = np.inf
    for k in range(3000):
        exact.advance(true, 10**6, 0.01 * (k + 1))
        nearest = min(nearest, np.linalg.norm(true.state.position[1] - true.state.position[2]))
    assert nearest < 0.1 * (2e-5 / 3) ** (1 / 3)
    errors = []
    for dt in (0.05, 0.025, 0.0125):
        scheme, motion = moving("hybrid", meeting(), dt)
        first, worst = energy(motion), 0.0
        for _ in range(60):
            scheme.advance(motion, round(0.5 / dt))
            worst = max(worst, abs(energy(motion) / first - 1))
        errors.append(worst)
    assert errors[1] < 3e-8
    assert np.log2(errors[0] / errors[2]) / 2 == pytest.approx(2, abs=0.5)
    assert np.abs(motion.state.position - true.state.position).max() < 1e-4


def test_the_hybrid_away_from_encounters_is_a_map_of_order_two():
    errors = []
    for dt in (200.0, 100.0):
        scheme, motion = moving("hybrid", outer_solar_system(), dt, SUN)
        first, worst = energy(motion), 0.0
        for _ in range(50):
            scheme.advance(motion, round(2000 / dt))
            worst = max(worst, abs(energy(motion) / first - 1))
        errors.append(worst)
    assert errors[1] < 1e-6
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.1)


def test_the_hybrid_keeps_the_energy_of_eight_planets_for_five_thousand_years():
    """Steps of six days: the largest error is that of MERCURIUS of REBOUND 5.2.2, 9.9e-8."""
    bodies = SolarSystem().generate(11, SUN, np.random.default_rng(0))
    kept = [k for k, name in enumerate(bodies.species_names) if name not in ("Moon", "Pluto")]
    planets = Particles(bodies.mass[kept], bodies.position[kept], bodies.velocity[kept])
    scheme, motion = moving("hybrid", planets, 6.0, SUN)
    first, worst = energy(motion), 0.0
    for _ in range(40):
        scheme.advance(motion, round(5000 * 365.25 / 6 / 40))
        worst = max(worst, abs(energy(motion) / first - 1))
    assert worst < 1.2e-7


def test_a_body_without_mass_meets_a_planet_and_momentum_is_kept():
    """A test particle passes the planet and goes where ias15 has it go; the planet does not notice."""
    bodies = meeting(1e-4, 0.09)
    bodies.mass[1] = 0.0
    exact, true = moving("ias15", bodies)
    exact.advance(true, 10**6, 10.0)
    scheme, motion = moving("hybrid", bodies, 0.005)
    scheme.advance(motion, 2000)
    straight, alone = moving("wisdom_holman", bodies, 0.005, encounter=0.0)
    straight.advance(alone, 2000)
    start = bodies.mass @ bodies.velocity
    np.testing.assert_allclose(motion.state.mass @ motion.state.velocity, start, atol=1e-15)
    np.testing.assert_allclose(motion.state.position, true.state.position, atol=1e-6)
    np.testing.assert_allclose(motion.state.position[2], alone.state.position[2], atol=1e-6)


def test_the_bits_of_encounters_do_not_depend_on_where_a_run_is_cut_or_resumed():
    whole, at_once = moving("hybrid", meeting(), 0.05)
    whole.advance(at_once, 400)
    scheme, motion = moving("hybrid", meeting(), 0.05)
    for steps in (150, 17, 1, 1, 31):  # the encounter is around step 160
        scheme.advance(motion, steps)
        scheme, motion = restore(*prepared("hybrid", meeting(), 0.05), checkpoint(scheme, motion))
    scheme.advance(motion, 200)
    np.testing.assert_array_equal(motion.state.position, at_once.state.position)
    np.testing.assert_array_equal(motion.state.velocity, at_once.state.velocity)


def comet(dt):
    """A Jupiter, and another one whose orbit has an eccentricity of 0.99; moved by 1000 steps."""
    x, v = np.zeros((3, 3)), np.zeros((3, 3))
    x[1], v[1] = [-1.99, 0, 0], [0, -np.sqrt(0.01 / 1.99), 0.001]
    x[2], v[2] = [0, 5.2, 0], [-np.sqrt(1 / 5.2), 0, 0]
    m = np.array([1.0, 1e-3, 3e-4])
    scheme, motion = moving("hybrid", Particles(m, x - m @ x / m.sum(), v - m @ v / m.sum()), dt)
    return scheme, motion


@pytest.mark.parametrize("dt", [0.2, 0.05])
def test_the_hybrid_follows_a_planet_past_its_star(dt):
    """A pericentre at 0.01 is passed in much less than a step. The error is that of TRACE of REBOUND 5.2.2, 3e-5 to 1e-4;
    the map alone loses more than the whole energy."""
    scheme, motion = comet(dt)
    first = energy(motion)
    scheme.advance(motion, 1000)
    assert abs(energy(motion) / first - 1) < 1e-4


@pytest.mark.parametrize(("mass", "some"), [(0.0, slice(5)), (1e-5, slice(3, 4))])
def test_steps_of_giant_planets_suffice_for_comets_that_pass_the_star(mass, some):
    """Pericentres at 0.01 to 0.4, in steps of a thirtieth of Jupiter's period. TRACE of REBOUND 5.2.2 errs by 2e-4 of the
    energies in the median and 5e-4 at most; without tides in the step, and with its criterion, the hybrid did so too."""
    q, a = np.array([0.01, 0.05, 0.2, 0.3, 0.4])[some], np.array([5.0, 8.0, 9.0, 13.0, 19.0])[some]
    x, v, m = np.zeros((2 + len(q), 3)), np.zeros((2 + len(q), 3)), np.full(2 + len(q), mass)
    x[1], v[1], m[:2] = [0, 5.2, 0], [-np.sqrt(1 / 5.2), 0, 0], [1, 1e-3]
    x[2:, 0], speed = -(2 * a - q), np.sqrt(q / (a * (2 * a - q)))
    v[2:, 1], v[2:, 2] = -0.9 * speed, np.sqrt(0.19) * speed
    bodies, energies = Particles(m, x, v), []
    for name, dt in (("hybrid", 2.5), ("ias15", None)):
        scheme, motion = moving(name, bodies, dt)
        scheme.advance(motion, 148 if dt else 10**6, until=148 * 2.5)
        x, v = (rows[2:] - rows[0] for rows in (motion.state.position, motion.state.velocity))
        energies.append((v**2).sum(axis=1) / 2 - 1 / np.linalg.norm(x, axis=1))
    error = np.abs(energies[0] / energies[1] - 1)
    assert error.max() < 1e-4


@pytest.mark.parametrize("system", [comet, lambda dt: moving("hybrid", meeting(), dt)])
def test_the_hybrid_goes_back_the_way_that_it_came(system):
    """Through an encounter of two planets and through pericentres: what is left is the error of the encounters' own steps,
    multiplied by each encounter."""
    scheme, motion = system(0.1)
    start = motion.state.position.copy()
    scheme.advance(motion, 100)
    moved = motion.state.position.copy()
    back, motion = moving("hybrid", Particles(motion.state.mass, moved, -motion.state.velocity), 0.1)
    back.advance(motion, 100)
    assert np.abs(moved - start).max() > 0.5
    np.testing.assert_allclose(motion.state.position, start, atol=1e-8)


def test_bodies_without_mass_change_no_bit_of_a_planets_motion():
    """One meets a planet and one the star; the planets have the same bits without them."""
    planets = meeting(1e-4, 0.09)
    with_them = Particles(
        [*planets.mass, 0, 0],
        [*planets.position, planets.position[1] + [0.03, 0, 0], [1.5, 0, 0]],
        [*planets.velocity, planets.velocity[1], [0, 0.05, 0]],
    )
    (alone, first), (scheme, motion) = moving("hybrid", planets, 0.05), moving("hybrid", with_them, 0.05)
    alone.advance(first, 400)
    scheme.advance(motion, 400)
    np.testing.assert_array_equal(motion.state.position[:3], first.state.position)
    assert np.isfinite(motion.state.position).all()


def test_planets_that_fall_into_each_other_stop_the_hybrid_and_are_named():
    falling = Particles([1.0, 1e-3, 1e-3], [[0.0, 0], [1, 0], [1.001, 0]], [[0.0, 0], [0, 1], [0, 1]])
    scheme, motion = moving("hybrid", falling, 0.05)
    with pytest.raises(RunFailed, match=r"particles 1 and 2 .* scheme 'ias15'"), np.errstate(all="ignore"):
        scheme.advance(motion, 1000)


# --- Both -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "engine,precision,why", [("cpu", "float32", "computes in float64"), ("gpu-tiled", "float64", "on the CPU")]
)
def test_a_scheme_with_its_own_forces_says_where_it_runs(engine, precision, why):
    assert why in unsupported(INTEGRATORS.load("ias15"), ENGINES.load(engine), Gravity(), precision)


@pytest.mark.parametrize("scheme,why", [("ias15", "own forces"), ("leapfrog_adaptive", "works on the CPU")])
def test_auto_takes_the_cpu_for_a_scheme_that_no_gpu_serves(scheme, why, tmp_path, monkeypatch):
    monkeypatch.setattr("nbody.compute.why_unavailable", lambda: "")
    monkeypatch.setattr("nbody.compute.SIMULATED", False)
    from nbody.run.plan import plan

    np.savez(tmp_path / "bodies.npz", mass=[0.5, 0.5], position=orbit(0.5).position, velocity=orbit(0.5).velocity)
    text = (
        "name: pair\ninitial: {file: bodies.npz}\ngravity: {dimensions: 2}\nprecision: float64\n"
        f"integrator: {{scheme: {scheme}, end: 1.0}}\n"
    )
    (tmp_path / "pair.yaml").write_text(text)
    made = plan(Scenario.load(tmp_path / "pair.yaml"))
    assert made.engine_name == "cpu" and why in made.engine_reason
