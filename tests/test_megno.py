"""Tangent vectors are differences of neighbouring orbits, and their growth tells regular orbits from chaotic ones."""

import numpy as np
import pytest
from conftest import random_bodies

import nbody
from nbody.errors import InputError
from nbody.initial.ensemble import member
from nbody.integrators.solvers.splitting import map_moves
from nbody.integrators.solvers.wisdom_holman import _kernels
from nbody.integrators.tangents import LOG, MEAN, SIZE2, Tangents
from nbody.run.resume import resume
from nbody.scenario import Scenario
from nbody.state.notes import NO_NOTES

G = 39.47841760435743
BODIES = [{"m": 1}, {"m": 1e-4, "a": 1}, {"m": 1e-4, "a": 1.3, "M": 100}, {"m": 1e-4, "a": 1.69, "M": 250}]

RECORDED = {"observables": ["megno", "lyapunov"]}


def planets(end=100, **more):
    """Three planets of a star, which are chaotic if the second one is at 1.3."""
    return {
        "initial": {"generator": "planets", "bodies": [BODIES[0], *({"e": 0.02, **each} for each in BODIES[1:])]},
        "gravity": {"G": G}, "integrator": {"scheme": "wisdom_holman", "dt": 0.05, "end": end}, "precision": "float64",
        "record": {"dt": end / 4, **RECORDED}, **more,
    }  # fmt: skip


def made(scenario, path=None):
    run = nbody.Simulation(Scenario.from_dict(scenario), path, overwrite=True)
    run.run()
    return run


def test_a_simulation_tells_its_megno_and_makes_no_frames_for_it():
    """The run's steps are those of a run that is recorded, however often it is asked."""
    recorded, asked = made(planets()), nbody.Simulation(Scenario.from_dict(planets() | {"record": RECORDED}))
    assert asked.observables["megno"] == 0
    for time in (25, 50, 100):
        asked.integrate(time)
        assert asked.observables["lyapunov"] > 0
    assert asked.frames <= 2 and asked.observables == recorded.observables
    with pytest.raises(AttributeError, match=r"it is simulation.observables\['megno'\]"):
        asked.megno  # noqa: B018


def moved(x, v, m, vectors, relativity, steps=40):
    """The coordinates of a map and its tangent vectors after some steps."""
    X, V, tangents, numbers = np.empty_like(x), np.empty_like(v), vectors.copy(), np.zeros((len(vectors), 5))
    bodies, (begin, advance, *_) = (*map(np.asfortranarray, (x, v)), X, V, m), _kernels(False)  # as in a run
    growth = tangents, numbers, np.zeros((0, len(m)))
    begin(bodies, map_moves(0.2, 3), (0.0, False), 0.0, None, (0.0, 0, 0.2), growth, (True,))
    bodies, moment = (x.copy(), v.copy(), X, V, m), (0.0, 0, 0.2)
    advance(bodies, map_moves(0.2, 3), (0.0, False), relativity, None, moment, growth, (True,), steps, NO_NOTES)
    return np.array([X, V]), tangents, numbers


@pytest.mark.parametrize("relativity", [0.0, 0.01])
def test_tangent_vectors_of_the_map_are_differences_of_neighbouring_orbits(relativity):
    """Central differences of order 4: with e = 1e-4 the error of the formula is e⁴, that of rounding 1e-16/e."""
    rng = np.random.default_rng(1)
    m, x, v = np.array([1, 1e-3, 2e-3, 0.0]), np.zeros((3, 4)), np.zeros((3, 4))
    for i in range(1, 4):  # the last one is on a hyperbola
        x[:, i] = [1.3 * i, 0, 0] + 0.05 * rng.normal(size=3)
        v[:, i] = [0, (1 + (i == 3)) / np.sqrt(1.3 * i), 0] + 0.05 * rng.normal(size=3)
    vectors, e = rng.normal(size=(2, 2, 3, 4)), 1e-4
    _, tangents, _ = moved(x, v, m, vectors, relativity)

    def shifted(vector, by):
        return moved(x + by * vector[0], v + by * vector[1], m, vectors, relativity)[0]

    for vector, found in zip(vectors, tangents, strict=True):
        near, far = (shifted(vector, k * e) - shifted(vector, -k * e) for k in (1, 2))
        expected = (8 * near - far) / (12 * e)
        assert np.abs(found - expected).max() < 1e-9 * np.abs(expected).max()


def test_the_vector_of_a_change_of_a_grows_linearly():
    """On a circle n ∝ a^(-3/2): the planet of a wider orbit falls behind by 3/2 n t δa."""
    x, v, m = np.zeros((3, 2)), np.zeros((3, 2)), np.array([1.0, 0.0])
    x[0, 1] = v[1, 1] = 1.0
    vector = np.zeros((1, 2, 3, 2))
    vector[0, 0, 0, 1], vector[0, 1, 1, 1] = 1.0, -0.5
    (_, V), tangents, _ = moved(x, v, m, vector, 0.0, steps=500)
    along = (tangents[0, 0, :, 1] * V[:, 1]).sum()
    assert along == pytest.approx(-1.5 * 0.2 * 500.5, rel=1e-10)  # the map is half a step ahead


def test_a_long_vector_is_scaled_and_nothing_else_changes():
    x, v = random_bodies(3).position.T.copy(), random_bodies(3).velocity.T.copy()
    m, vector = np.array([1.0, 1e-9, 1e-9]), Tangents(1).first(3, 3)
    _, short, numbers = moved(x, v, m, vector, 0.0)
    _, long, scaled = moved(x, v, m, vector * 2.0**99, 0.0)
    np.testing.assert_array_equal(scaled[:, [LOG, MEAN]], numbers[:, [LOG, MEAN]])
    power = np.round(np.log2(scaled[0, SIZE2] / numbers[0, SIZE2]) / 2)
    assert power < 99
    np.testing.assert_array_equal(long, short * 2.0**power)


def test_megno_is_two_on_regular_orbits_and_grows_on_chaotic_ones(tmp_path):
    """Regular: MEGNO - 2 and λ fall as 1/t and ln(t)/t. Chaotic: MEGNO is near λ t/2. (REBOUND's
    whfast finds 2.02 and 11.9 with another vector, ias15 2.02 and 11.5.)"""
    regular = planets(2000)
    regular["initial"]["bodies"][2]["a"], regular["initial"]["bodies"][3]["a"] = 1.6, 2.56
    made(regular, tmp_path / "run.h5")
    with nbody.Trajectory(tmp_path / "run.h5") as run:
        megno, exponent = run.observables["megno"], run.observables["lyapunov"]
    assert megno.iloc[0] == exponent.iloc[0] == 0 and abs(megno.iloc[-1] - 2) < 0.1
    assert exponent.iloc[-1] < 1.5 * np.log(2000) / 2000
    numbers = made(planets(2000)).stepper.integrator._tangents.observed()
    assert 9 < numbers["megno"] < 15 and 0.7 < numbers["lyapunov"] * 1000 / numbers["megno"] < 1.4


def test_the_bodies_have_the_same_bits_and_growth_does_not_depend_on_calls(tmp_path):
    whole = made(planets())
    alone = made(planets(record={"dt": 25}))
    np.testing.assert_array_equal(whole.particles.position, alone.particles.position)
    parts = nbody.Simulation(Scenario.from_dict(planets()), tmp_path / "run.h5")
    parts.run(steps=777)
    parts.step(3)
    parts.run(steps=220)
    again = resume(tmp_path / "run.h5", steps=2000)
    again.run()
    for name, values in whole.stepper.arrays().items():
        np.testing.assert_array_equal(again.stepper.arrays()[name], values, err_msg=name)


def test_each_system_of_an_ensemble_has_the_megno_that_it_has_alone(tmp_path):
    scenario = planets(ensemble={"vary": {"initial.bodies.2.a": [1.1, 1.3, 1.5]}})
    made(scenario, tmp_path / "all.h5")
    with nbody.Trajectory(tmp_path / "all.h5") as run:
        assert run.observable("system_megno").shape == (5, 3) and run.systems["status"][0] == "close encounter"
        for number in (1, 2):
            alone = made(member(Scenario.from_dict(scenario), number).source.values)
            for name, value in alone.stepper.integrator._tangents.observed().items():
                assert run.systems[name][number] == value
        assert np.isfinite(run.systems["megno"]).all()


@pytest.mark.parametrize(
    "changed,message",
    [
        (
            {"integrator": {"scheme": "hybrid", "dt": 0.05, "end": 1}},
            "no variational equations, which megno and lyapunov",
        ),
        (
            {"integrator": {"scheme": "ias15", "end": 1}, "fields": {"field": "plummer", "mass": 1, "b": 9}},
            "know no external fields; choose scheme wisdom_holman, or remove",
        ),
        ({"record": {"observables": ["megnoo"]}}, "did you mean 'megno'"),
    ],
)
def test_what_has_no_megno_says_so(changed, message):
    with pytest.raises(InputError, match=message):
        nbody.Simulation(Scenario.from_dict(planets() | changed))


def test_megno_is_drawn_where_it_was_recorded(tmp_path):
    from nbody.analysis.figure import plot

    made(planets(10), tmp_path / "run.h5")
    assert len(plot(tmp_path / "run.h5", "megno", "lyapunov").axes) == 2
    made(planets(10, record={"dt": 5}), tmp_path / "run.h5")
    with pytest.raises(InputError, match=r"holds no megno; record it with 'record: \{observables"):
        plot(tmp_path / "run.h5", "megno")
