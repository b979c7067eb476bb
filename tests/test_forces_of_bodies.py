"""Forces of a body on others: rates and times of the formulas of their sources, momentum, and what is refused."""

import math
from functools import partial

import numpy as np
import pytest
from conftest import moved, said

import nbody
from nbody import fields
from nbody.errors import InputError


def star_and(*planets, mass=1e-9):
    return nbody.planets(bodies=[{"m": 1.0}, *({"m": mass} | each for each in planets)])


def elements(simulation, body=1):
    """Of a body about the star; angles in radians."""
    orbits = simulation.orbits()
    found = {name: float(getattr(orbits, name)[body - 1]) for name in ("a", "e", "inc", "Omega", "omega")}
    return {name: value if name in "ae" else math.radians(value) for name, value in found.items()}


def test_ellipse_and_node_turn_by_the_rates_of_an_oblate_star():
    """To first order in J2 (R/p)² = 1e-6; over whole periods of the apsides' passages the short terms are of this order, and
    200 periods leave them at 1/(2π 200) = 1e-3 of the turn."""
    e, inc, j2, radius, periods = 0.2, 30.0, 1e-4, 0.1, 200
    bodies = star_and({"a": 1.0, "e": e, "inc": inc, "Omega": 40, "omega": 70})
    run = moved(bodies, [fields.J2(j2=j2, radius=radius)], 2 * math.pi * periods)
    found, unit = elements(run), 2 * math.pi * periods * j2 * (radius / (1 - e * e)) ** 2
    sine2 = math.sin(math.radians(inc)) ** 2
    assert found["omega"] - math.radians(70) == pytest.approx(3 * unit * (1 - 1.25 * sine2), rel=5e-3)
    assert found["Omega"] - math.radians(40) == pytest.approx(-1.5 * unit * math.cos(math.radians(inc)), rel=5e-3)


def test_conservative_forces_keep_energy_and_momentum_to_rounding():
    """Also with the planet in the place of the body that exerts the force."""
    bodies = star_and({"a": 1.0, "e": 0.2, "inc": 20}, {"a": 2.5}, mass=1e-2)
    oblate = partial(fields.J2, j2=0.01, j4=-0.002, radius=0.3, pole=[0.3, 0, 1])
    tides = partial(fields.Tides, k2=0.3, radius=0.1)
    run = moved(bodies, [each(**more) for each in (oblate, tides) for more in ({}, {"about": 1, "on": [0, 2]})], 20.0)
    assert abs(run.energies.error) < 1e-14 and np.abs(run.particles.mass @ run.particles.velocity).max() < 1e-16


def test_forces_are_minus_the_gradients_of_their_potentials():
    x, m, h = np.array([[0.1, 0.2, -0.1], [0.7, -0.4, 0.5]]), np.array([1.0, 1e-3]), 1e-5
    for force in (
        fields.J2(j2=0.1, j4=0.05, radius=0.5, pole=[1, 2, 2]), fields.Tides(k2=0.5, radius=0.5),
        fields.Companion(mass=0.3, distance=5, inc=60, node=20, phase=50), fields.GalacticTide(density=0.1),
    ):  # fmt: skip
        at = nbody.Simulation(nbody.Particles(m, x, 0 * x), integrator="ias15", fields=[force]).setup.plan.fields.at
        slope = []
        for shift in h * np.eye(3):
            higher, lower = (at(x + sign * np.array([[0, 0, 0], shift]), 0.3, None, m)[1][1] for sign in (1, -1))
            slope.append((higher - lower) / (2 * h))
        assert at(x, 0.3, None, m)[0][1] == pytest.approx(np.negative(slope), rel=1e-7, abs=1e-10)


def test_tides_move_a_moon_outward_by_huts_rate():
    """da/dt = 6 k₂ τ (m/M) (R/a)⁵ n a (Ω - n) on a circle, against the same bulges without a lag."""
    mass, k2, radius, tau, spin = 0.01, 0.3, 0.1, 1e-3, 5.0
    bodies = star_and({"a": 1.0}, mass=mass)
    n = math.sqrt(1 + mass)
    run = moved(bodies, [fields.Tides(k2=k2, radius=radius, tau=tau, spin=[0, 0, spin])], 400 * math.pi / n)
    rate = 6 * k2 * tau * mass * radius**5 * n * (spin - n)
    still = moved(bodies, [fields.Tides(k2=k2, radius=radius)], 400 * math.pi / n)
    assert elements(run)["a"] - elements(still)["a"] == pytest.approx(rate * run.time, rel=1e-2)
    assert np.abs(run.particles.mass @ run.particles.velocity).max() < 1e-16


def test_orbits_are_damped_within_the_given_times():
    """In two of them, up to terms of 1/(n τ) within a period, and of e²."""
    tau, e, inc = 200.0, 0.01, 0.5
    bodies = star_and({"a": 1.0, "e": e, "inc": inc})
    for key, name, begin in (("tau_a", "a", 1.0), ("tau_e", "e", e), ("tau_inc", "inc", math.radians(inc))):
        found = elements(moved(bodies, [fields.Migration(**{key: tau})], 2 * tau, epsilon=1e-6))[name]
        assert found / begin == pytest.approx(math.exp(-2), rel=5e-3)
    two = star_and({"a": 1.0}, {"a": 3.0})
    run = moved(two, [fields.Migration(on=2, tau_a=-tau)], 20.0)
    assert elements(run, 1)["a"] == pytest.approx(1.0, rel=1e-6)
    assert elements(run, 2)["a"] == pytest.approx(3 * math.exp(0.1), rel=5e-3)


def test_dust_feels_a_lighter_star_and_falls_into_it_by_poynting_and_robertson():
    """From r to 0 in c r²/(4 β G M): after 3/4 of it the radius is half, to first order in v/c."""
    beta, c = 0.2, 2000.0
    speed = math.sqrt(1 - beta)
    bodies = nbody.Particles(
        [1.0, 0.0, 0.0], [[0.0, 0, 0], [1, 0, 0], [4, 0, 0]], [[0.0, 0, 0], [0, speed, 0], [0, 0.5, 0]],
        species=[0, 1, 2], species_names=("star", "dust", "planet"),
    )  # fmt: skip
    run = moved(bodies, [fields.Radiation(beta=beta, c=c, about="star", on="dust")], 0.75 * c / (4 * beta), epsilon=1e-6)
    distance = np.linalg.norm(run.particles.position - run.particles.position[0], axis=1)
    assert distance[1:] == pytest.approx([0.5, 4.0], rel=2e-3)
    assert math.isnan(run.summary.energy_error) and run.summary.without_potential == ["Radiation"]
    slow = moved(bodies, [fields.Radiation(beta=beta, c=1e12, on=[1])], 2 * math.pi / speed)
    assert slow.particles.position[1] == pytest.approx([1, 0, 0], abs=1e-10)


def test_a_companion_as_a_field_is_the_companion_as_a_body():
    """The planet, of mass 1e-12, does not turn the companion's orbit. √(1 - e²) cos i is constant (Kozai 1962) but for terms
    of the ratio of the periods, 0.1 here."""
    mass, d = 1.0, 6.0
    alone = star_and({"a": 1.0, "e": 0.2, "inc": 65.0, "omega": 60.0}, mass=1e-12)
    star, other = nbody.planets(bodies=[{"m": 1.0}, {"m": mass, "a": d}]), []
    for key in ("position", "velocity"):
        rows, pair = getattr(alone, key), getattr(star, key)
        other.append(np.vstack([rows - rows[0] + pair[0], pair[1]]))
    as_field = moved(alone, [fields.Companion(mass=mass, distance=d)], 0.0)
    as_body, seen = moved(nbody.Particles([1.0, 1e-12, mass], *other), None, 0.0), []
    for time in np.arange(10.0, 260, 10):
        as_field.integrate(time)
        found = elements(as_field)
        seen.append((found["e"], math.sqrt(1 - found["e"] ** 2) * math.cos(found["inc"])))
    as_body.integrate(time)
    difference = [run.particles.position[1] - run.particles.position[0] for run in (as_field, as_body)]
    assert np.abs(difference[0] - difference[1]).max() < 1e-6
    assert np.ptp([e for e, _ in seen]) > 0.4 and np.ptp([conserved for _, conserved in seen]) < 0.1


def test_hermite4_and_leapfrog_move_planets_about_an_oblate_star_to_their_orders():
    """The maps do in test_planets_in_fields.py."""
    bodies = star_and({"a": 1.0, "e": 0.1, "inc": 20}, {"a": 3.0, "inc": 3}, mass=1e-3)
    force = [fields.J2(j2=1e-2, radius=0.2)]
    exact = moved(bodies, force, 10.0).particles.position
    for scheme, order, dt in (("hermite4", 4, 0.02), ("leapfrog", 2, 0.02)):
        errors = [np.abs(moved(bodies, force, 10.0, scheme, dt=h).particles.position - exact).max() for h in (dt, dt / 2)]
        assert math.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.4), scheme


def test_a_force_follows_its_body_through_changes_and_ends_with_it():
    bodies = star_and({"a": 1.0}, {"a": 2.0}, mass=1e-3)
    run = moved(bodies, [fields.J2(j2=1e-2, radius=0.2, about=2, on=0)], 1.0)
    run.remove([1])
    run.integrate(2.0)
    assert abs(run.energies.error) < 1e-13
    with pytest.raises(InputError, match="body 2 can't be removed: a field acts about it"):
        run.remove([2])
    assert run.particles.id.tolist() == [0, 2]
    run.remove([0])  # it felt the force
    run.integrate(3.0)
    assert run.particles.id.tolist() == [2]


def test_a_force_follows_its_body_although_the_first_frame_comes_later():
    """The first frame shows the bodies of the beginning, of which one is gone."""
    bodies, force = (
        star_and({"a": 1.0}, {"a": 2.0}, {"a": 3.0}, mass=1e-3),
        fields.J2(j2=1e-2, radius=0.2, about=2, on=3),
    )
    run = nbody.Simulation(bodies, integrator="ias15", fields=[force], precision="float64", engine="cpu", output=None)
    run.step(3)
    run.remove([1])
    alone = nbody.Simulation(run.particles, integrator="ias15", fields=[force], precision="float64", engine="cpu")
    end = run.time + 1.0
    run.integrate(end)
    alone.integrate(end)
    np.testing.assert_allclose(run.particles.position, alone.particles.position, atol=1e-14)


def test_a_species_that_grows_feels_its_force_whole():
    two = nbody.Particles(
        [1.0, 0.0], [[0, 0, 0], [1, 0, 0]], [[0, 0, 0], [0, 1, 0]], species=[0, 1], species_names=("star", "dust")
    )
    force = fields.J2(j2=1e-2, radius=0.2, about="star", on="dust")
    run = nbody.Simulation(two, integrator="ias15", fields=[force], precision="float64", engine="cpu")
    run.step(2)
    run.add(mass=0.0, position=[0, 1, 0], velocity=[-1, 0, 0], species="dust")
    run.integrate(2.0)
    assert abs(np.linalg.norm(run.particles.position[2] - run.particles.position[0]) - 1) > 1e-4  # a circle without it


def test_a_body_that_escapes_takes_its_force_along():
    bodies = star_and({"a": 1.0}, mass=1e-3)
    comet = {"mass": 1e-6, "position": [3.0, 0, 0], "velocity": [3.0, 0, 0]}
    run = nbody.Simulation(
        bodies, integrator="ias15", fields=[fields.J2(j2=1e-3, radius=0.1, about=0, on=1)], precision="float64",
        engine="cpu", escape={"radius": 5.0, "about": 0},
    )  # fmt: skip
    run.add(**comet)
    run.integrate(2.0)
    assert run.particles.count == 2
    run.change(1, position=[6.0, 0, 0])
    run.integrate(3.0)
    assert run.particles.id.tolist() == [0]


WRONG = [
    ({"field": "j2", "j2": 1e-3, "radius": 1, "about": 9}, "fields: J2: about: there is no body with the id 9"),
    ({"field": "j2", "j2": 1e-3, "radius": 1, "about": "Sun"}, "fields: J2: about: there is no body named 'Sun'"),
    ({"field": "j2", "j2": 1e-3, "radius": 1, "on": 1.5}, "fields.0.on: must be a whole number, got 1.5"),
    ({"field": "migration", "tau_a": 0}, "fields.0.tau_a: must not be 0"),
    ("gr", "unknown field 'gr' (did you mean 'post_newtonian'?)"),
    ({"field": "radiation", "beta": 0.1}, "fields.0.c: is missing; write the speed of light"),
]


def test_a_name_alone_is_a_field_and_fields_without_a_potential_are_named_once(tmp_path):
    """Energies in fields about a body are not those of an orbit of the whole system in them."""
    values = {
        "units": {"length": "au", "mass": "Msun", "time": "yr"}, "integrator": {"scheme": "ias15", "end": 0.1},
        "initial": {"generator": "planets", "bodies": [{"m": 1}, {"m": 1e-3, "a": 1, "name": "b"}, {"m": 0, "a": 3}]},
        "fields": ["post_newtonian", *({"field": "migration", "on": k, "tau_a": 1e4} for k in ("b", 2))],
    }  # fmt: skip
    lines: list[str] = []
    scenario = nbody.Scenario.from_dict(values)
    assert [each.field for each in scenario.fields] == ["post_newtonian", "migration", "migration"]
    run = nbody.Simulation(scenario, tmp_path / "run.h5", notify=lines.append)
    assert run.run().without_potential == nbody.Trajectory(run).without_potential == ["Migration"]
    assert [line.startswith("energies leave out 'Migration', which") for line in lines if "energ" in line] == [True]


@pytest.mark.parametrize(("force", "line"), WRONG)
def test_a_force_of_no_body_is_refused(force, line):
    assert line in said(moved, star_and({"a": 1.0}), [force], 1.0)
