"""Spheres have the density they claim, velocities in equilibrium with it, and stay as they are when they run."""

import math
from itertools import pairwise

import numpy as np
import pytest
from samples import energies, largest_gap, made

from nbody.diagnostics import density_centre, lagrangian_radii, local_density
from nbody.diagnostics.structure import NEIGHBOURS
from nbody.errors import InputError
from nbody.initial.eddington import sphere
from nbody.initial.formula import compiled
from nbody.initial.masses import KROUPA, SALPETER, power_law
from nbody.initial.sampling import ALL_PAIRS, potential_energy
from nbody.initial.spheres import king_model, nfw_model
from nbody.run.simulation import Simulation
from nbody.scenario import Scenario

N = 10_000
MODELS = {
    "plummer": lambda r: (r * r / (1 + r * r)) ** 1.5,
    "hernquist": lambda r: (r / (1 + r)) ** 2,
    "isochrone": lambda r: r**3 / (np.sqrt(1 + r * r) * (1 + np.sqrt(1 + r * r)) ** 2),
    "king": lambda r: np.interp(r, king_model(6).radius, king_model(6).mass),
    "nfw": lambda r: np.log(1 + r) - r / (1 + r),
    "sphere": lambda r: r**3 * (r + 4) / (1 + r) ** 4,
}
"""The mass within r scale radii, up to a factor."""
OWN = {"sphere": {"profile": "(1+r)^-5"}, "plummer": {"cut": 22.8 * 3 * math.pi / 16}}
ENDS = {"hernquist": 199.0, "isochrone": 200.0, "nfw": 10.0, "plummer": 22.8}


def sample(name, **own):
    return made(name, N, radius=1.0, rescale=False, **OWN.get(name, {}), **own)


def from_the_centre(bodies):
    """Distances from the middle of the inner half: the outermost bodies move the centre of mass of so wide a sphere."""
    centre = np.median(bodies.position, axis=0)
    for _ in range(20):
        radius = np.linalg.norm(bodies.position - centre, axis=1)
        centre = bodies.position[radius < np.median(radius)].mean(axis=0)
    return np.linalg.norm(bodies.position - centre, axis=1)


@pytest.mark.parametrize("name", MODELS)
def test_the_mass_is_distributed_as_the_model_says(name):
    radius = from_the_centre(sample(name))
    end = ENDS.get(name, 1e4)
    inside = radius[radius < end]
    assert largest_gap(inside, lambda r: MODELS[name](r) / MODELS[name](end)) < 1.95


@pytest.mark.parametrize("name", MODELS)
def test_the_centre_of_the_density_is_the_origin_and_the_momentum_is_zero(name):
    """The error of Σ ρ x/Σ ρ is that of a mean with the weights ρ, times √k because k neighbours share what their densities
    are made of, and √(k/(k−1)) for the error of each. It is 0.005 to 0.04 scale radii; that of the centre of mass, r_rms/√N,
    is 0.05 to 0.2 (of Plummer's sphere, whose origin is the centre of mass, 0.02). A radius that holds a tenth of the mass
    M(r) has the error of M, √(0.09/N), over dM/dr."""
    count, k = 20_000, NEIGHBOURS
    own = {"W0": 9} if name == "king" else {}
    bodies = made(name, count, radius=1.0, rescale=False, seed=2, **OWN.get(name, {}), **own)
    density = local_density(bodies)
    error = k / math.sqrt(k - 1) * np.sqrt(density**2 @ bodies.position**2) / density.sum()
    assert np.all(np.abs(density_centre(bodies, density)) < 3 * error) and error.max() < 0.04
    np.testing.assert_allclose(bodies.mass @ bodies.velocity, 0, atol=1e-15)
    model = {"king": lambda: king_model(9), "nfw": lambda: nfw_model(10.0, 0.3)}.get(name)
    r = model().radius if model else np.geomspace(1e-3, ENDS.get(name, 1e4), 10_000)
    inside = model().mass if model else MODELS[name](r) / MODELS[name](r[-1])
    tenth = np.interp(0.1, inside, r)
    error = math.sqrt(0.09 / count) / np.interp(tenth, r, np.gradient(inside, r))
    assert lagrangian_radii(bodies, (0.1,))[0] == pytest.approx(tenth, abs=4 * error)


@pytest.mark.parametrize("name", MODELS)
def test_the_velocities_hold_the_sphere_up(name):
    """Jeans' equation, without the distribution function: d(ρσ²)/dr = −ρ M/r² gives σ at every radius. In each of ten bins
    the mean of v²/σ² is 3, with the scatter of so many squares (σ of v² is about 2.5 σ² here)."""
    bodies = sample(name)
    radius, speed2 = from_the_centre(bodies), (bodies.velocity**2).sum(axis=1)
    r = np.geomspace(1e-3, 0.999 * ENDS.get(name, king_model(6).radius[-1] if name == "king" else 1e4), 20_000)
    total = 1.0 if name != "nfw" else None
    mass = MODELS[name](r)
    if total is None:  # the halo's mass beyond its concentration: read off the model
        model = nfw_model(10.0, 0.3)
        r = model.radius[model.mass < 1 - 1e-9]
        mass = np.interp(r, model.radius, model.mass)
    density = np.gradient(mass, r) / r**2
    pull = density * mass / r**2 * r
    pressure = np.cumsum((pull * np.gradient(np.log(r)))[::-1])[::-1]
    sigma2 = np.interp(radius, r, pressure / density)
    edges = np.quantile(radius, np.linspace(0.02, 0.9, 11))
    for low, high in pairwise(edges):
        of = (radius > low) & (radius < high)
        assert np.mean(speed2[of] / sigma2[of]) == pytest.approx(3, abs=5 * 2.5 / math.sqrt(of.sum()) + 0.02)


def test_eddingtons_integral_gives_the_known_distribution_functions():
    """Plummer's f ∝ E^(7/2); Hernquist's (1990, eq. 17)."""
    plummer = sphere(lambda r: (1 + r * r) ** -2.5)
    of = slice(60, -150)
    known = 24 * math.sqrt(2) / (7 * math.pi**3) * plummer.psi**3.5
    np.testing.assert_allclose(np.exp(plummer.log_f)[of], known[of], rtol=1e-5)
    hernquist = sphere(lambda r: 1 / (r * (1 + r) ** 3))
    q = np.sqrt(1 / (1 + hernquist.radius))
    known = 3 * np.arcsin(q) + q * np.sqrt(1 - q * q) * (1 - 2 * q * q) * (8 * q**4 - 8 * q * q - 3)
    known *= (1 - q * q) ** -2.5 / (8 * math.sqrt(2) * math.pi**3)
    np.testing.assert_allclose(np.exp(hernquist.log_f)[of], known[of], rtol=1e-4)
    assert hernquist.virial_radius == pytest.approx(3, rel=1e-4)


@pytest.mark.parametrize(
    ("W0", "tidal", "half"),
    [(3, 4.699, 0.8388), (5, 10.7, 0.8137), (6, 17.99, 0.8038), (7, 33.71, 0.8113), (9, 131.4, 0.9799)],
)
def test_kings_models_have_the_published_radii(W0, tidal, half):
    model = king_model(W0)
    assert model.radius[-1] == pytest.approx(tidal, rel=1e-3)
    assert np.interp(0.5, model.mass, model.radius) / model.virial_radius == pytest.approx(half, rel=2e-4)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("G", [1.0, 4.0])
def test_a_cluster_has_its_models_energy_exactly(name, G):
    bodies = made(name, 500, G=G, **OWN.get(name, {}) | ({"cut": 22.8} if name == "plummer" else {}))
    kinetic, potential = energies(bodies)
    assert kinetic.sum() == pytest.approx(G / 4, rel=1e-12)
    assert G * (potential * bodies.mass).sum() / 2 == pytest.approx(-G / 2, rel=1e-12)
    np.testing.assert_allclose(bodies.mass @ bodies.velocity, 0, atol=1e-14)


def test_a_scale_radius_and_a_mass_set_the_energy():
    bodies = made("hernquist", 300, mass=2.0, radius=0.5)
    kinetic, potential = energies(bodies)
    # W = −G M²/(6a) of Hernquist's sphere
    assert (potential * bodies.mass).sum() / 2 == pytest.approx(-4 / (6 * 0.5), rel=2e-4)
    assert kinetic.sum() == pytest.approx(2 / (6 * 0.5), rel=2e-4)
    assert made("plummer", 10).position.tobytes() != made("plummer", 10, rescale=False).position.tobytes()


def test_large_spheres_are_scaled_by_their_shells():
    """The difference to all pairs comes from the angles alone, about 1/N."""
    bodies = made("plummer", 4000, rescale=False)
    exact = potential_energy(bodies.mass, bodies.position)
    copies = ALL_PAIRS // 4000 + 1
    shells = potential_energy(np.full(4000 * copies, 0.25e-3 / copies), np.repeat(bodies.position, copies, axis=0))
    assert shells == pytest.approx(exact, rel=10 / 4000)


@pytest.mark.parametrize("name", ["hernquist", "king"])
def test_a_cluster_stays_as_it_is_over_four_crossing_times(name):
    """t_cr = 2√2 in Hénon units. N = 400: half of the bodies lie within r_h to √N/2 = 2.5 %, which is a radius within about
    5 %; a tenth to 7 % or 8 % in radius. Five times these, because two-body relaxation adds to them. The softening is a
    third of the smallest of the inner radii: it takes some of the potential of a cusp away, the kinetic energy with it."""
    initial = {"generator": name, "particles": 400, "seed": 3, **OWN.get(name, {})}
    scenario = Scenario.from_dict(
        {
            "initial": initial,
            "gravity": {"softening": "plummer", "length": 0.05},
            "integrator": {"dt": 1 / 24, "steps": 272},
            "engine": "cpu",
        }
    )
    simulation = Simulation(scenario)
    before = np.sort(from_the_centre(simulation.particles))
    simulation.run()
    ended = simulation.particles
    after = np.sort(from_the_centre(ended))
    assert simulation.time == pytest.approx(4 * 2 * math.sqrt(2), rel=2e-3)
    assert after[200] == pytest.approx(before[200], rel=0.25)
    assert after[40] == pytest.approx(before[40], rel=0.4)
    assert 0.5 * (ended.velocity**2).sum() / 400 == pytest.approx(0.25, rel=0.2)
    assert abs(simulation.energies.error) < 0.005


# --- Masses, segregation, binaries -----------------------------------------------------------------------------------


def integral(pieces, low, high, end):
    """∫ m^−α from low to end, continuous at the breaks, over the same up to high, with 2·10⁵ trapezia in ln m."""
    grid = np.geomspace(low, high, 200_001)
    height = np.ones_like(grid)
    for (start, slope), (_, before) in zip(pieces[1:], pieces, strict=False):
        height = np.where(grid > start, height * (grid / start) ** (before - slope), height)
    number = np.concatenate([[0], np.cumsum((grid ** (1 - pieces[0][1]) * height)[1:] * np.diff(np.log(grid)))])
    return np.interp(end, grid, number / number[-1])


@pytest.mark.parametrize("pieces", [SALPETER, KROUPA], ids=["salpeter", "kroupa"])
@pytest.mark.parametrize("low", [0.02, 0.1, 0.6])
def test_masses_follow_their_function(pieces, low):
    drawn = power_law(np.random.default_rng(1).random(20_000), pieces, low, 50.0)
    assert drawn.min() >= low and drawn.max() <= 50 * (1 + 1e-12)
    assert largest_gap(drawn, lambda m: integral(pieces, low, 50.0, m)) < 1.95


def test_the_masses_of_a_cluster_add_up_to_its_mass():
    bodies = made("plummer", 1000, masses="kroupa", mass=300.0)
    assert bodies.mass.sum() == pytest.approx(300) and bodies.mass.max() > 20 * np.median(bodies.mass)
    wide = made("plummer", 1000, masses={"function": "salpeter", "low": 1, "high": 2})
    assert wide.mass.max() < 2 * wide.mass.min()


def test_segregation_puts_heavy_stars_inside_and_keeps_the_density():
    plain, sorted_ = (made("plummer", 4000, masses="kroupa", segregation=s, cut=100) for s in (0.0, 1.0))
    for bodies, inside in ((plain, False), (sorted_, True)):
        radius = np.linalg.norm(bodies.position, axis=1)
        heavy = bodies.mass > np.quantile(bodies.mass, 0.95)
        assert (np.median(radius[heavy]) < 0.7 * np.median(radius)) == inside
        order = np.argsort(radius)  # half of the mass lies within 0.7686 all the same
        half = radius[order][np.searchsorted(np.cumsum(bodies.mass[order]), 0.5)]
        assert half == pytest.approx(0.7686, rel=0.12)


@pytest.mark.parametrize("stars", [1, 2, 7, 1003])
def test_with_the_fraction_1_all_stars_but_an_odd_one_are_in_pairs(stars):
    bodies = made("plummer", stars, binaries={"fraction": 1, "period": [1e-9, 1e-9]})
    pairs = stars // 2
    apart = np.linalg.norm(bodies.position[:pairs] - bodies.position[pairs : 2 * pairs], axis=1)
    assert bodies.count == stars and (apart < 1e-5).all()


def test_binaries_have_their_fraction_periods_and_eccentricities():
    """Per pair: a = the period's, thermal e has the distribution function e²; both members circle where one star stood."""
    bodies = made("plummer", 3000, binaries={"fraction": 0.5, "period": [1e-4, 1e-3]}, masses="salpeter")
    pairs = 1000
    assert bodies.count == 3000
    m1, m2 = bodies.mass[:pairs], bodies.mass[pairs : 2 * pairs]
    x = bodies.position[:pairs] - bodies.position[pairs : 2 * pairs]
    v = bodies.velocity[:pairs] - bodies.velocity[pairs : 2 * pairs]
    mu, r = m1 + m2, np.linalg.norm(x, axis=1)
    axis = 1 / (2 / r - (v**2).sum(axis=1) / mu)
    period = 2 * math.pi * np.sqrt(axis**3 / mu)
    e = np.linalg.norm(np.cross(v, np.cross(x, v)) / mu[:, None] - x / r[:, None], axis=1)
    assert largest_gap(np.log10(period), lambda p: np.clip(p + 4, 0, 1)) < 1.95
    assert largest_gap(e, lambda each: each**2) < 1.95
    centre = (m1[:, None] * bodies.position[:pairs] + m2[:, None] * bodies.position[pairs : 2 * pairs]) / mu[:, None]
    assert np.median(np.linalg.norm(centre, axis=1)) == pytest.approx(0.7686, rel=0.2)


# --- Formulas and mistakes -------------------------------------------------------------------------------------------


def test_a_formula_is_evaluated_and_nothing_else():
    r = np.array([0.5, 2.0])
    np.testing.assert_allclose(compiled("exp(-r)/r^2 + 2*pi", "r")(r), np.exp(-r) / r**2 + 2 * math.pi)
    np.testing.assert_allclose(compiled("-maximum(r, 1)", "r")(r), [-1, -2])
    for wrong in (
        "__import__('os')",
        "r.real",
        "lambda: 0",
        "r[0]",
        "open(r)",
        "x",
        "r(",
        "'a'",
        "1 if r else 2",
        "True",
    ):
        with pytest.raises(ValueError, match=r"formula|unknown|can't evaluate"):
            compiled(wrong, "r")


@pytest.mark.parametrize(
    ("generator", "own", "says"),
    [
        ("sphere", {"profile": "1/(r*(1+r)**2)"}, "initial.profile: the mass of this density is infinite"),
        ("sphere", {"profile": "(2+sin(5*r))*exp(-r)"}, "the density must fall outwards, and does not at r ="),
        ("sphere", {"profile": "r*exp(-r)"}, "no isotropic sphere has this density"),
        ("sphere", {"profile": "hernquist", "taper": 5e-324}, "initial.taper: must be at least 0.000001, got 5e-324"),
        ("sphere", {"profile": "1-r"}, "the density at r = .* is not a number, zero or more"),
        ("sphere", {"profile": "1/0"}, "the density at r = .* is not a number, zero or more"),
        ("sphere", {"profile": "exp()"}, r"initial.profile: exp\(\) takes 1 argument, got 0"),
        ("sphere", {"profile": "minimum(r)"}, r"initial.profile: minimum\(\) takes 2 arguments, got 1"),
        ("sphere", {"profile": 400 * "9"}, "initial.profile: can't evaluate '9"),
        ("sphere", {"profile": 400 * "-" + "r"}, "initial.profile: (is not a formula|this formula is nested too deep)"),
        ("sphere", {"profile": "r*[" + 400 * "-" + "r]"}, "initial.profile: (is not a formula|can't evaluate)"),
        ("sphere", {"profile": "ln(r)"}, "initial.profile: unknown function 'ln'"),
        ("king", {"W0": 40}, "initial.W0: must be at most 14, got 40"),
        ("plummer", {"mass": -1}, "initial.mass: must be greater than 0, got -1"),
        ("plummer", {"masses": "krupa"}, "initial.masses.function: unknown mass function 'krupa'"),
        ("plummer", {"masses": {"function": "kroupa", "high": 0.01}}, "masses.high: must be greater than low"),
        ("plummer", {"segregation": 2}, "initial.segregation: must be at most 1, got 2"),
        (
            "plummer",
            {"binaries": {"fraction": 0.1, "period": [2, 1]}},
            "period: must be the shortest before the longest",
        ),
        ("plummer", {"binaries": {"fraction": 0.1, "period": [1, 2], "eccentricity": 1}}, "eccentricity.*less than 1"),
        ("plummer", {"binaries": {"fraction": 0.1}}, "binaries.period: is missing"),
        ("plummer", {"rescale": 1}, "initial.rescale: must be a valid boolean, got 1"),
        ("hernquist", {"radus": 1}, r"initial.radus: unknown key \(did you mean 'radius'\?\)"),
    ],
)
def test_invalid_parameters_are_refused(generator, own, says):
    with pytest.raises(InputError, match=says):
        made(generator, 10, **own)
