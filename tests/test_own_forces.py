"""Forces of your own: functions that Numba compiles, given from Python, stored as text and never executed from a file."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import child, random_bodies, said
from numba import njit

import nbody
from nbody.cli import main
from nbody.cli.summary import summary_text
from nbody.errors import InputError, RunFailed
from nbody.fields import added_fields, chosen_fields
from nbody.fields.given import given_fields
from nbody.integrators import INTEGRATORS
from nbody.run.resume import rerun, resume


@nbody.force(potential=lambda x, y, z, mass, b: -mass / math.sqrt(x * x + y * y + z * z + b * b))
def ball(x, y, z, mass=2.0, b=0.7):
    """Plummer's sphere."""
    u = 1.0 / math.sqrt(x * x + y * y + z * z + b * b)
    f = -mass * u * u * u
    return f * x, f * y, f * z


def run(fields, steps=8, bodies=None, output=None, **values):
    bodies = random_bodies(8) if bodies is None else bodies
    values = {"dt": 0.01, "softening": 0.1, "engine": "reference", "precision": "float64"} | values
    simulation = nbody.Simulation(bodies, output, fields=fields, **values)
    simulation.run(steps=steps)
    return simulation


@pytest.mark.parametrize(
    ("scheme", "engine", "precision"),
    [("leapfrog", "cpu", "float64"), ("yoshida4", "cpu", "float32"), ("hermite4", "cpu", "float64")],
)
def test_a_function_moves_bodies_as_the_field_of_its_formula_does(scheme, engine, precision):
    """To the rounding of the precision; Hermite's jerk is a difference whose step is another one, some 1e-11."""
    ends = [
        run(field, integrator=scheme, engine=engine, precision=precision)
        for field in (ball, nbody.fields.Plummer(mass=2, b=0.7))
    ]
    (own, theirs), tolerance = (each.particles.position for each in ends), 1e-6 if precision == "float32" else 1e-12
    np.testing.assert_allclose(own, theirs, rtol=tolerance, atol=tolerance)
    assert ends[0].energies.latest == pytest.approx(ends[1].energies.latest, rel=tolerance)


def test_functions_fields_names_and_groups_of_keys_are_given_together():
    @nbody.force
    def pull(x, m, t, k=1.0):
        return -k * x * m * t, 0.0, 0.0, 0.5 * k * m * t * x * x

    plain = lambda x, y, z: (1.0, 0, 0)  # noqa: E731
    bodies = random_bodies(5)
    fields = [pull, plain, nbody.fields.NFW(mass=1, a=2), {"field": "plummer", "mass": 2, "b": 0.7}]
    found = added_fields(nbody.Simulation(bodies, dt=0.1, fields=fields).scenario)
    x, m = bodies.position, bodies.mass
    a, phi = found.at(x, 0.5, mass=m)
    others = added_fields(nbody.Simulation(bodies, dt=0.1, fields=fields[2:]).scenario).at(x)
    assert a[:, 0] == pytest.approx(-0.5 * x[:, 0] * m + 1.0 + others[0][:, 0], rel=1e-13)
    assert phi == pytest.approx(0.25 * m * x[:, 0] ** 2 + others[1], rel=1e-13)
    assert found.time_dependent and found.without_potential == ["lambda"]
    assert pull(2.0, 3.0, 1.0) == (-6.0, 0.0, 0.0, 6.0) and repr(pull) == "<nbody.force pull(x, m, t, k)>"
    assert "NFW" in dir(nbody.fields) and "halo" in nbody.fields.NFW.__doc__


def test_in_two_dimensions_two_components_are_enough():
    bodies = random_bodies(6, 2)
    found = run(nbody.force(lambda x, y: (-x, -y)), bodies=bodies)
    same = run(nbody.force(lambda x, y, z: (-x, -y, 0.0)), bodies=bodies)
    assert np.array_equal(found.particles.position, same.particles.position)


@njit
def plummer_at(x, y, z, mass, b):
    u = 1.0 / math.sqrt(x * x + y * y + z * z + b * b)
    f = -mass * u * u * u
    return f * x, f * y, f * z, -mass * u


OMEGA, RADIUS = 0.6, 3.0
TIMES = np.linspace(0.0, 4.0, 81)
PATH = RADIUS * np.stack([np.cos(OMEGA * TIMES), np.sin(OMEGA * TIMES), 0 * TIMES])
SPEED = RADIUS * OMEGA * np.stack([-np.sin(OMEGA * TIMES), np.cos(OMEGA * TIMES), 0 * TIMES])


def satellite(x, y, z, t, mass=0.5, b=0.3):
    """A Plummer sphere on a circle."""
    return plummer_at(x - RADIUS * math.cos(OMEGA * t), y - RADIUS * math.sin(OMEGA * t), z, mass, b)


def along_a_table(x, y, z, t, mass=0.5, b=0.3):
    """The same along a table of positions and velocities: cubic Hermite interpolation."""
    h = TIMES[1] - TIMES[0]
    k = min(max(int(t / h), 0), TIMES.size - 2)
    s = t / h - k
    w0, w1 = (1 + 2 * s) * (1 - s) ** 2, s * s * (3 - 2 * s)
    d0, d1 = h * s * (1 - s) ** 2, -h * s * s * (1 - s)
    cx = w0 * PATH[0, k] + w1 * PATH[0, k + 1] + d0 * SPEED[0, k] + d1 * SPEED[0, k + 1]
    cy = w0 * PATH[1, k] + w1 * PATH[1, k + 1] + d0 * SPEED[1, k] + d1 * SPEED[1, k + 1]
    return plummer_at(x - cx, y - cy, z, mass, b)


HALO = nbody.fields.LogarithmicHalo(v=1.8, core=0.5)


def test_jacobis_integral_is_kept_near_a_satellite_on_a_circle():
    """E - omega L_z of a star is constant if a satellite moves on a circle about a round halo; the error is of order 2."""
    star = nbody.Particles([1e-9], [[2.0, 0, 0.1]], [[0, 1.7, 0]])
    errors = []
    for dt in (0.02, 0.01):
        simulation = nbody.Simulation(star, dt=dt, engine="cpu", precision="float64", fields=[HALO, satellite])
        values = []
        for _ in range(4):
            now = simulation.particles
            [x], [v] = now.position, now.velocity
            phi = simulation.setup.plan.fields.at(now.position, now.time)[1][0]
            values.append(0.5 * v @ v + phi - OMEGA * (x[0] * v[1] - x[1] * v[0]))
            simulation.run(steps=round(1 / dt))
        errors.append(np.ptp(values))
    assert errors[0] < 1e-3 and errors[0] / errors[1] == pytest.approx(4, rel=0.2)


def test_a_path_may_be_a_table():
    """Cubic interpolation of a circle is good to h⁴/384 of its fourth derivative, R omega⁴: 6e-9."""
    ends = [run([HALO, each], steps=20, dt=0.1).particles.position for each in (satellite, along_a_table)]
    np.testing.assert_allclose(*ends, atol=2e-8)


def drag(x, y, z, vx, vy, vz, m, t, k=0.3):
    """A wind that turns, and resists in proportion to the speed."""
    wx, wy = math.cos(t), math.sin(t)
    speed = math.sqrt((vx - wx) ** 2 + (vy - wy) ** 2 + vz * vz)
    f = -k * (1 + m) * speed
    return f * (vx - wx), f * (vy - wy), f * vz


def moved_by_drag(scheme, **integrator):
    bodies = nbody.Particles([0.1, 0.2, 0.3], [[1.0, 0, 0], [-1, 0.5, 0], [0, 2, 0.3]], np.full((3, 3), 0.4))
    simulation = nbody.Simulation(
        bodies, softening=0.5, engine="cpu", precision="float64", integrator=scheme, fields=[ball, drag], **integrator
    )
    simulation.integrate(2.0)
    return simulation.particles.position


def test_forces_by_velocity_and_time_are_moved_at_the_order_of_the_scheme():
    """hermite4 corrects twice and keeps order 4; ias15 is exact to rounding, as scipy's scheme of order 8 confirms."""
    from scipy.integrate import solve_ivp

    exact = moved_by_drag("ias15")
    errors = [np.abs(moved_by_drag("hermite4", dt=dt) - exact).max() for dt in (0.02, 0.01)]
    assert errors[0] < 1e-5 and math.log2(errors[0] / errors[1]) == pytest.approx(4, abs=0.3)
    m = np.array([0.1, 0.2, 0.3])

    def rate(t, y):
        x, v = y.reshape(2, 3, 3)
        a = nbody.accelerations(x, m, softening="plummer", length=0.5, engine="reference")
        a = a + [ball(*each) for each in x]
        a = a + [drag(*here, *speed, mass, t) for here, speed, mass in zip(x, v, m, strict=True)]
        return np.concatenate([v, a]).ravel()

    begin = np.concatenate([[[1.0, 0, 0], [-1, 0.5, 0], [0, 2, 0.3]], np.full((3, 3), 0.4)]).ravel()
    found = solve_ivp(rate, (0, 2), begin, method="DOP853", rtol=1e-13, atol=1e-13).y[:9, -1]
    np.testing.assert_allclose(found.reshape(3, 3), exact, atol=1e-11)


def test_ias15_keeps_jacobis_integral_in_a_bar_that_turns_and_shows_any_time():
    """To rounding; and a moment within a step is that of a run that ends there."""
    star = nbody.Particles([1e-9], [[2.0, 0, 0.1]], [[0, 1.0, 0.2]])
    bar = nbody.fields.RotatingBar(mass=1, a=0.8, c=0.3, omega=0.5)
    simulation = nbody.Simulation(star, integrator="ias15", engine="cpu", fields=[bar, nbody.fields.PointMass(mass=1)])
    values = []
    for end in (0.0, 3.3, 10.0):
        simulation.integrate(end)
        [x], [v] = simulation.particles.position, simulation.particles.velocity
        phi = simulation.setup.plan.fields.at(x[None], end)[1][0]
        values.append(0.5 * v @ v + phi - 0.5 * (x[0] * v[1] - x[1] * v[0]))
    assert np.ptp(values) < 1e-13
    assert simulation.steps_made < 200


def test_ias15_moves_a_body_on_which_no_force_acts():
    simulation = nbody.Simulation(nbody.Particles([1.0], [[1.0, 0, 0]], [[0, 1.0, 0]]), integrator="ias15")
    simulation.integrate(10)
    np.testing.assert_allclose(simulation.particles.position, [[1, 10, 0]], rtol=1e-15)


STRENGTH = np.array([1.0])


def pushed(x, y, z, k=1.0, j=2.0):
    """Refers to an array that a test changes."""
    return k * STRENGTH[0], j, 0.0


def test_values_that_a_function_refers_to_are_those_at_the_time_of_the_run():
    """Numba makes them constants when it compiles; parameters are in the order of the function, however they are given."""
    given, found = nbody.force(pushed, j=5.0, k=3.0), []
    for strength in (1.0, 7.0):
        STRENGTH[0] = strength
        made = nbody.Simulation(random_bodies(2), dt=0.1, softening=0.1, fields=[given, nbody.force(pushed)])
        found.append(made.setup.plan.fields.at(np.zeros((1, 3)))[0][0])
    assert [list(each) for each in found] == [[3 + 1, 5 + 2, 0], [21 + 7, 5 + 2, 0]]
    resolved = made.setup.plan.resolved()
    resolved["fields"][0]["values"] = {"j": 5.0, "k": 3.0}
    [first, _] = chosen_fields(nbody.Scenario.from_dict(resolved))
    assert first.parameters(1.0) == (3.0, 5.0)


WRONG = [
    (lambda: nbody.force(3), "force: needs a function, as in"),
    (lambda: nbody.force(lambda x, v: (-x, -v, 0.0)), "'v' has no value; a body gives x, y, z, vx"),
    (lambda: nbody.force(lambda position: (0.0, 0.0)), "; for 'position' write x, y, z, as in"),
    (lambda: nbody.force(lambda x, k: (-x, -k, 0.0), k=1, kk=2), "has no argument 'kk' (did you mean 'k'?)"),
    (lambda: nbody.force(lambda x, k: (-x, -k, 0.0), k="big"), "k: must be a number, got 'big'"),
    (lambda: nbody.force(lambda *x: x), "write its arguments one by one"),
    (lambda: nbody.force(lambda x: (-x, 0, 0), potential=lambda x, vx: vx), "its potential depends on 'vx'"),
    (lambda: run(nbody.force(lambda x: -x)), "must return (ax, ay, az), or (ax, ay, az, potential); it returns one number"),
    (lambda: run(nbody.force(lambda x: (-x, 0, 0), potential=lambda x: (x, x))), "its potential must return one number"),
    (lambda: run(nbody.force(lambda x, y, z: (-x, -y))), "force 'lambda': returns (ax, ay), and the run is in 3-D"),
    (lambda: run(nbody.force(lambda x: (-x, main(x), 0))), "Numba can't compile it"),
    (lambda: run(7), "fields: 7 is no field; give nbody.fields.NFW(mass=…, a=…)"),
    (lambda: nbody.fields.NFW(mas=1), "nbody.fields.NFW: unknown argument 'mas' (did you mean 'mass'?)"),
    (lambda: run(nbody.fields.NFW(mass=-1, a=1)), "fields.0.mass: must be greater than 0, got -1"),
    (lambda: run({"field": "function"}), "a function is given in Python: nbody.Simulation(…, fields="),
    (lambda: run(nbody.force(lambda vx: (-vx, 0, 0))), "fields: lambda depends on the velocities, and scheme 'leapfrog' ki"),
    (
        lambda: run(nbody.force(lambda x: (-x, 0, 0)), on_energy_error={"limit": 0.1}),
        "the energy is not conserved, as 'lambda' has no potential; give it one, or remove this",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("make", "line"), WRONG)
def test_what_is_no_force_is_refused(make, line):
    assert line in said(make)


def test_every_scheme_takes_a_function_of_positions_or_says_why_not():
    refused = []
    for name in INTEGRATORS:
        try:
            nbody.Simulation(random_bodies(8), dt=0.01, integrator=name, softening=0.1, fields=ball, precision="float64")
        except InputError as error:
            refused.append(name)
            assert "external fields" in str(error) or "star" in str(error) or "softened" in str(error)
    assert set(refused) == {"wisdom_holman", "hybrid"}  # of the softening


SERVE_VELOCITIES = ("hermite4", "ias15", "hermite4_block", "hermite6_block", "wisdom_holman", "hybrid")


@pytest.mark.parametrize("scheme", [name for name in INTEGRATORS if name not in SERVE_VELOCITIES])
def test_a_force_by_velocity_is_refused_where_it_would_be_wrong(scheme):
    with pytest.raises(
        InputError, match=r"kicks bodies at given positions; choose scheme hermite4 or hermite4_block or |no external"
    ):
        run(nbody.force(drag), integrator=scheme, softening=0.1)


def test_no_energy_error_is_shown_of_a_force_without_a_potential(tmp_path, capsys):
    simulation = run(nbody.force(lambda x, y, z: (-x, -y, -z)), output=tmp_path / "run.h5")
    assert math.isnan(simulation.summary.energy_error) and simulation.summary.without_potential == ["lambda"]
    assert "not conserved: lambda has no potential" in summary_text(simulation.summary)
    assert simulation.summary.as_dict()["energy_error"] is None
    with pytest.raises(InputError, match=r"run\.h5: holds no energy error; lambda has no potential$"):
        nbody.plot(tmp_path / "run.h5", "energy")
    assert main(["info", str(tmp_path / "run.h5")]) == 0
    assert "not conserved: lambda has no potential" in capsys.readouterr().out
    assert main(["info", "--json", str(tmp_path / "run.h5")]) == 0
    assert '"energy_error": null' in capsys.readouterr().out


def test_a_change_of_the_energy_is_not_called_an_error():
    lines = []
    keys = {"engine": "reference", "precision": "float64", "notify": lines.append}
    run = nbody.Simulation(random_bodies(5), dt=0.01, softening=0.1, fields=[HALO, satellite], **keys)
    run.run(steps=3)
    assert "energies are not conserved: the potential of 'satellite' changes with time" in lines
    assert f"relative change {run.summary.energy_error:+.2e}" in summary_text(run.summary)
    assert "(the potential of 'satellite' changes with time)" in summary_text(run.summary)


def test_a_force_that_is_not_the_gradient_of_its_potential_is_reported():
    lines = []
    twice = nbody.force(lambda x, y, z, t: (-2 * x * t, -2 * y * t, 0.0, 0.5 * (x * x + y * y) * t))
    bodies = random_bodies(20)
    bodies.time = 1.0
    nbody.Simulation(bodies, dt=0.01, softening=0.1, fields=[twice, ball, HALO], notify=lines.append)
    assert [line for line in lines if "gradient" in line] == [
        "warning: the force 'lambda' is not minus the gradient of its potential: the energies are wrong"
    ]


def test_a_recording_stores_the_source_and_goes_on_with_the_function_alone(tmp_path, capsys):
    """In this process it is known. In another one the line says what to give, and nothing of the file is executed."""
    path = tmp_path / "run.h5"
    whole = run(ball, steps=12, output=tmp_path / "whole.h5", every=3).particles.position
    run(ball, steps=6, output=path, every=3)
    with nbody.Trajectory(path) as recorded:
        [stored] = recorded.resolved["fields"]
    assert stored["name"] == "ball" and "f = -mass * u * u * u" in stored["source"] and stored["energy"] is True
    assert stored["values"] == {"mass": 2.0, "b": 0.7}
    found = child("-m", "nbody", "resume", str(path), "--steps", "12", check=False)
    assert found.returncode == 2 and found.stderr.count("\n") == 1
    assert "the function 'ball' is not in this process, and no code is executed from a file" in found.stderr
    lines = []
    other = nbody.force(lambda x, y, z: (-x, -y, -z), potential=lambda x, y, z: (x * x + y * y + z * z) / 2)
    resume(path, steps=12, fields=other, notify=lines.append)
    assert "warning: the function 'lambda' is not the recorded one, or refers to other values" in lines
    simulation = resume(path, steps=12, fields=[ball], notify=lines.append)
    simulation.run()
    assert np.array_equal(simulation.particles.position, whole)
    again = rerun(path, tmp_path / "again.h5", notify=lines.append)
    again.run()
    assert np.array_equal(again.particles.position, whole)
    assert len([line for line in lines if "recorded one" in line]) == 1


def test_functions_of_one_name_take_their_own_places_when_a_run_goes_on(tmp_path):
    path = tmp_path / "run.h5"
    left, right = (nbody.force(lambda x, k: (-k * x, 0, 0), k=1.0), nbody.force(lambda x, y: (0.0, -3 * y, 0)))
    run([left, right], steps=2, output=path)
    fields = resume(path, steps=4, fields=[right, nbody.fields.NFW(mass=1, a=1), left], notify=pytest.fail).scenario.fields
    assert [each.options["digest"] for each in fields] == [each.options["digest"] for each in (left, right)]
    with pytest.raises(InputError, match="fields: the recording has no function 'ball'"):
        resume(path, steps=4, fields=[left, right, ball], notify=pytest.fail)


class _amp_of:
    """What galpy's and gala's objects have of what is read, under the name of their class."""

    def __new__(cls, name, **attributes):
        return type(name, (SimpleNamespace,), {})(**attributes)


def test_galpys_own_objects_are_taken():
    """Also their sums; the forces are compared in test_fields.py."""
    galpy = pytest.importorskip("galpy.potential")
    halo, bar = galpy.NFWPotential(amp=2.6, a=0.7), galpy.SoftenedNeedleBarPotential(amp=2.6, a=1.1, b=0.1, c=0.2)
    found = given_fields([halo + galpy.LogarithmicHaloPotential(amp=1.21, core=0.4, q=0.8), bar], 1.3)
    assert [each.field for each in found] == ["nfw", "logarithmic_halo", "rotating_bar"]
    assert found[0].options == pytest.approx({"mass": 2.0, "a": 0.7})
    with pytest.raises(
        InputError, match=r"PowerSphericalPotentialwCutoff has no counterpart here.*take nbody\.fields\.MilkyWay\(\)"
    ):
        given_fields(galpy.MWPotential2014, 1.0)
    with pytest.raises(InputError, match="galpy's LogarithmicHaloPotential has no counterpart here"):
        given_fields(galpy.LogarithmicHaloPotential(amp=1.0, b=0.8), 1.0)


class Quantity(float):
    """What is read of astropy's quantities."""

    def __new__(cls, value, unit, **others):
        made = super().__new__(cls, value)
        made.value, made.unit, made._others = value, unit, others
        return made

    def to_value(self, unit):
        return self._others.get(unit, self.value)


def test_a_potential_of_gala_becomes_its_counterpart_with_its_units():
    mass, length = Quantity(1e12, "solMass"), Quantity(20000.0, "pc", kpc=20.0)
    halo = _amp_of("NFWPotential", parameters={"m": mass, "r_s": length, "a": Quantity(1, "")}, units=1, R=None)
    sphere = _amp_of(
        "PlummerPotential", parameters={"m": Quantity(2, ""), "b": Quantity(0.5, "")}, units=1, origin=[0, 1, 0]
    )
    assert given_fields(halo, 1.0)[0].options == {"mass": "1000000000000.0 Msun", "a": "20.0 kpc"}
    [found] = given_fields({"disk": sphere}, 1.0)
    assert found.options == {"mass": 2.0, "b": 0.5, "centre": [0.0, 1.0, 0.0]}
    bodies = nbody.Particles([1.0], [[8.0, 0, 0]], [[0, 200.0, 0]])
    units = {"length": "kpc", "mass": "Msun", "velocity": "km/s"}
    [nfw] = chosen_fields(nbody.Simulation(bodies, dt=1e-4, units=units, fields=halo).scenario)
    assert (nfw.mass, nfw.a) == (1e12, 20.0)


@pytest.mark.parametrize(
    "potential",
    [
        _amp_of("PowerSphericalPotentialwCutoff", _amp=1.0),
        _amp_of("LogarithmicHaloPotential", _amp=1.0, _core2=0.0, _q=1.0, isNonAxi=True),
        [_amp_of("MN3ExponentialDiskPotential", parameters={}, units=None)],
        _amp_of("LogarithmicPotential", parameters={"v_c": 1.0, "r_h": 1.0, "q1": 0.9, "q2": 1.0, "q3": 1.0}, units=None),
    ],
)
def test_a_potential_without_a_counterpart_is_refused(potential):
    with pytest.raises(InputError, match="has no counterpart here; those that have one are KeplerPotential, Plummer"):
        given_fields(potential, 1.0)


def test_a_function_compiles_for_a_gpu():
    pytest.importorskip("cuda.core")
    from compiled_forces import for_h200
    from numba import types

    from nbody.fields.device import build
    from nbody.state.graph_time import MOST_DRIFTS

    float64, rows = types.float64, types.float32[:, ::1]
    moves = (types.int64[::1], types.int64, float64, float64, types.UniTuple(float64, MOST_DRIFTS), float64[:, ::1])
    terms = tuple(nbody.force(each).term for each in (ball, satellite, along_a_table))
    code, _ = for_h200(build(terms), (rows, rows, *moves, *[types.int32] * 3, rows))
    assert "sqrt.rn.f64" in code


def test_an_own_force_may_be_the_cause_of_what_is_not_finite():
    with pytest.raises(RunFailed, match=r"finite number; likely the force 'lambda' \(does it divide by 0"):
        run(nbody.force(lambda x: (x / 0.0, 0.0, 0.0)))
