"""Disc galaxies have the density, the rotation and the Q that they claim, and stay discs; two of them meet as asked."""

import math

import numpy as np
import pytest
from samples import largest_gap, made

from nbody.errors import InputError
from nbody.initial import make_particles
from nbody.initial.exponential_disk import ExponentialDisk, Spheroid, rotation_of_disc
from nbody.initial.galaxy_collision import GalaxyCollision
from nbody.initial.softened_forces import levels, rotation_of_thick_disc, softened_mass
from nbody.law import Gravity
from nbody.run.simulation import Simulation
from nbody.scenario import Scenario

HALO = {"mass": 5.0, "radius": 3.0, "share": 0.4, "cut": 8.0}
BULGE = {"mass": 0.2, "radius": 0.2, "share": 0.1}


def cylinder(bodies, of=None):
    """R, z, and the velocities outwards, around and up, of the bodies of one species."""
    rows = slice(None) if of is None else bodies.species == bodies.species_names.index(of)
    x, v = bodies.position[rows], bodies.velocity[rows]
    R = np.hypot(x[:, 0], x[:, 1])
    out = (x[:, 0] * v[:, 0] + x[:, 1] * v[:, 1]) / R
    around = (x[:, 0] * v[:, 1] - x[:, 1] * v[:, 0]) / R
    return R, x[:, 2], out, around, v[:, 2]


def test_the_rotation_curve_is_freemans():
    x = np.linspace(0.1, 8, 20_000)
    v = np.sqrt(rotation_of_disc(x))
    assert v.max() == pytest.approx(0.62213, abs=1e-5) and x[v.argmax()] == pytest.approx(2.150, abs=1e-3)


def test_the_disc_is_exponential_in_the_plane_and_sech2_above_it():
    R, z, *_ = cylinder(made("exponential_disk", 20_000, height=0.2))
    inside = 1 - 8 * math.exp(-7)
    assert largest_gap(R, lambda r: np.minimum((1 - (1 + r) * np.exp(-r)) / inside, 1)) < 1.95
    assert largest_gap(z, lambda each: 0.5 * (1 + np.tanh(each / 0.2))) < 1.95
    assert np.median(R) == pytest.approx(1.67835, rel=0.02)


@pytest.mark.parametrize("Q", [1.0, 1.5])
def test_the_disc_has_the_q_that_was_asked(Q):
    """Q = σ_R κ/(3.36 G Σ) from the bodies' own dispersion and counts in rings; only κ is the model's. σ of a dispersion of
    n bodies is σ/√2n, and the cut of the velocities at 3σ takes 1.3 % away."""
    bodies = made("exponential_disk", 60_000, Q=Q, halo=HALO, bulge=BULGE)
    R, _, out, around, _ = cylinder(bodies, "disc")
    model = ExponentialDisk(Q=Q, halo=Spheroid(**HALO), bulge=Spheroid(**BULGE))
    curve = model.curve(1.0)
    mass = bodies.mass[0]
    for low, high in ((1.0, 1.2), (1.6, 1.8), (2.4, 2.7), (3.5, 3.9)):
        ring = (low < R) & (high > R)
        density = mass * ring.sum() / (math.pi * (high**2 - low**2))
        kappa = np.interp((low + high) / 2, curve.radius, curve.kappa)
        found = out[ring].std() * kappa / (3.36 * density)
        assert found == pytest.approx(Q, rel=5 / math.sqrt(ring.sum()) + 0.03)
        mean = np.interp((low + high) / 2, curve.radius, curve.mean)
        assert around[ring].mean() == pytest.approx(mean, rel=0.02)
        assert mean < np.interp((low + high) / 2, curve.radius, curve.circular)  # asymmetric drift


def test_bulge_and_halo_are_hernquists():
    bodies = made("exponential_disk", 20_000, halo=HALO, bulge=BULGE)
    assert bodies.species_names == ("disc", "bulge", "halo")
    assert np.bincount(bodies.species).tolist() == [10_000, 2_000, 8_000]
    radius = np.linalg.norm(bodies.position[bodies.species == 2], axis=1)
    whole = (24 / 27) ** 2
    assert largest_gap(radius, lambda r: np.minimum((r / (r + 3)) ** 2 / whole, 1)) < 1.95
    assert bodies.mass[bodies.species == 2].sum() == pytest.approx(5 * (8 / 9) ** 2)


def test_a_warm_disc_in_a_halo_stays_a_disc():
    """Two rotations at the half-mass radius (period 12) of 2500 bodies: the radii of the disc's mass stay, it does not
    puff up, and its rotation stays ordered. Softening takes some of the force in the middle away, and the halo's few
    heavy bodies heat the disc: a fifth is allowed."""
    values = {
        "initial": {
            "generator": "exponential_disk", "particles": 2500, "Q": 1.5, "halo": HALO | {"share": 0.5}, "seed": 2,
        },
        "gravity": {"softening": "plummer", "length": 0.08},
        "integrator": {"dt": 0.12, "steps": 200},
        "engine": "cpu",
    }  # fmt: skip
    simulation = Simulation(Scenario.from_dict(values))
    bodies = simulation.particles
    before = cylinder(bodies, "disc")
    simulation.run()
    ended = simulation.state.frames.snapshot()
    bodies.position, bodies.velocity = (np.asarray(each, float) for each in (ended.position, ended.velocity))
    after = cylinder(bodies, "disc")
    for share in (0.25, 0.5, 0.75):
        assert np.quantile(after[0], share) == pytest.approx(np.quantile(before[0], share), rel=0.2)
    assert np.median(np.abs(after[1] - np.median(after[1]))) < 0.3
    assert np.median(after[3]) > 2 * after[2].std()
    assert abs(simulation.energies.error) < 2e-3


STABLE = {
    "generator": "exponential_disk", "Q": 1.5, "height": 0.15, "equilibrium": "softened", "seed": 1,
    "bulge": {"mass": 0.2, "radius": 0.25, "share": 0.05, "cut": 10},
    "halo": {"mass": 5.0, "radius": 3.0, "share": 0.7, "taper": 2.0},
}  # fmt: skip
"""The galaxy of scenarios/disc_galaxy.yaml."""
LENGTHS = {"disc": 0.1, "bulge": 0.1, "halo": 0.4}


def stable_galaxy(count, steps, dt=0.1, **own):
    """The simulation of the stable galaxy; a rotation at two scale lengths takes 10.9."""
    return Simulation(
        Scenario.from_dict(
            {
                "initial": STABLE | {"particles": count} | own,
                "gravity": {"softening": "plummer", "length": LENGTHS},
                "integrator": {"dt": dt, "steps": steps},
                "engine": "cpu",
                "precision": "float32",
                "record": {"every": max(1, steps)},
            }
        )
    )


def amplitude(bodies, R, low=0.5, high=3.0):
    """|<exp(2iφ)>| of the disc's bodies between two radii: 1/√n from noise alone, about 1/2 in a bar."""
    x = bodies.position[bodies.species == 0][(low < R) & (high > R)]
    return abs(np.exp(2j * np.arctan2(x[:, 1], x[:, 0])).mean())


def test_a_galaxy_with_softened_forces_begins_in_equilibrium():
    """900 disc bodies, two rotations: the quartiles of R (each uncertain by 3 %) stay, and no bar grows (noise: 0.04).
    The disc that was set up for Newton's force on a thin disc expands by a fifth in the middle within one."""
    found = {}
    for kind, steps in (("softened", 109), ("thin", 54)):
        simulation = stable_galaxy(3600, steps, 0.2, equilibrium=kind)
        before = cylinder(simulation.particles, "disc")
        simulation.run()
        bodies = simulation.particles
        after = cylinder(bodies, "disc")
        found[kind] = np.quantile(after[0], (0.25, 0.5, 0.75)) / np.quantile(before[0], (0.25, 0.5, 0.75))
        if kind == "softened":
            assert amplitude(bodies, after[0]) < 0.15
            assert np.median(after[3]) == pytest.approx(np.median(before[3]), rel=0.05)
            assert np.median(np.abs(after[1])) < 1.5 * np.median(np.abs(before[1]))
    np.testing.assert_allclose(found["softened"], 1, atol=0.09)
    assert found["thin"][0] > 1.1


@pytest.mark.campaign
def test_a_disc_is_stable_over_ten_rotations():
    """Bulge, halo and a disc with Q = 1.5, 20000 bodies, ten rotations at two scale lengths (period 10.9); a minute on two
    cores. The disc is submaximal, v_max/√(GM/R_d) = 1.17: above 1.1 no bar grows (Efstathiou, Lake & Negroponte 1982).
    Only the noise of the bodies heats it: what this adds to σ² is proportional to 1/N and to time (8000 bodies: Q = 2.5
    in the end, so 20000 bodies: √(1.5² + 4·8/20) = 2.0)."""
    simulation = stable_galaxy(20_000, 1090)
    model = ExponentialDisk(**{key: each for key, each in STABLE.items() if key not in ("generator", "seed")})
    curve = model.curve(1.0, model.lengths(Gravity(softening="plummer", length=LENGTHS)))
    assert curve.circular.max() > 1.1
    ends = []
    for steps in (0, 1090):
        simulation.run(steps=steps)
        bodies = simulation.particles
        R, z, out, around, _ = cylinder(bodies, "disc")
        assert amplitude(bodies, R) < 0.1
        counts, edges = np.histogram(R, np.linspace(1, 4, 7))
        density = np.log(counts / np.diff(edges**2))
        slope = np.polyfit((edges[1:] + edges[:-1]) / 2, density, 1, w=np.sqrt(counts))[0]
        ring = (R > 1.7) & (R < 2.3)
        mass = bodies.mass[0] * ring.sum() / (math.pi * (2.3**2 - 1.7**2))
        Q = out[ring].std() * np.interp(2, curve.radius, curve.kappa) / (3.36 * mass)
        ends.append([*np.quantile(R, (0.25, 0.5, 0.75)), -1 / slope, around[ring].mean(), z[ring].std(), Q])
    before, after = np.array(ends)
    np.testing.assert_allclose(after[:3], before[:3], rtol=0.06)
    assert before[3] == pytest.approx(1, rel=0.05) and after[3] == pytest.approx(before[3], rel=0.1)
    assert after[4] == pytest.approx(before[4], rel=0.05)
    assert after[5] < 1.6 * before[5]
    assert before[6] == pytest.approx(1.5, rel=0.08) and 1.4 < after[6] < 2.4
    assert abs(simulation.energies.error) < 1e-4


def test_a_thick_softened_disc_rotates_as_its_forces_say():
    """Against the sum over 400 000 bodies of the disc, at points spread over its height; their noise is below 1 %."""
    height, length = 0.2, 0.15
    bodies = made("exponential_disk", 400_000, height=height, cut=20)
    x, y, z = bodies.position.T
    for R in (0.5, 1.0, 2.0, 4.0):
        pull = [((R - x) * ((R - x) ** 2 + y * y + (z - h) ** 2 + length**2) ** -1.5).mean() for h in levels(height)[::4]]
        assert rotation_of_thick_disc(np.array([R, 2 * R]), height, length)[0] == pytest.approx(R * np.mean(pull), rel=0.02)
    x = np.geomspace(0.1, 8, 100)
    np.testing.assert_allclose(rotation_of_thick_disc(x, 1e-6, 0.0), rotation_of_disc(x), rtol=2e-3)


def test_a_softened_sphere_attracts_as_its_shells_do():
    """Against a sum over 400 000 shells of the same mass, Hernquist's r = √u/(1 − √u)."""
    sphere = Spheroid(mass=1.0, radius=1.0)
    share = (np.arange(400_000) + 0.5) / 400_000
    s, length = 1 / (share**-0.5 - 1), 0.3
    for r in (0.05, 0.5, 3.0):
        a, b = np.hypot(r + s, length), np.hypot(r - s, length)
        expected = (((a - b) - r * ((r + s) / a - (r - s) / b)) / (2 * s)).mean()
        assert softened_mass(np.array([r]), sphere.within, length)[0] == pytest.approx(expected, rel=2e-3)
    assert softened_mass(np.array([2.0]), sphere.within, 0.0)[0] == pytest.approx(4 / 9)


def test_a_halo_may_end_without_an_edge():
    bodies = made("exponential_disk", 20_000, halo=HALO | {"taper": 2.0, "share": 0.8, "cut": 30.0})
    radius = np.linalg.norm(bodies.position[bodies.species == 1], axis=1) / 3.0
    assert bodies.mass[bodies.species == 1].sum() == pytest.approx(5.0, rel=1e-6)  # 'mass' is that of the tapered sphere
    x = np.geomspace(1e-5, 12, 200_000)
    density = np.exp(-((x / 2) ** 2)) / (x * (1 + x) ** 3)
    mass = np.cumsum(density * x**2 * np.gradient(x))
    assert largest_gap(radius, lambda r: np.interp(r, x, mass / mass[-1])) < 1.95


# --- Two galaxies ----------------------------------------------------------------------------------------------------


def groups(bodies):
    """Mass, position and velocity of the centre of mass of each galaxy."""
    for which in ("first", "second"):
        rows = np.isin(bodies.species, [k for k, name in enumerate(bodies.species_names) if name.startswith(which)])
        m = bodies.mass[rows]
        yield m.sum(), m @ bodies.position[rows] / m.sum(), m @ bodies.velocity[rows] / m.sum()


@pytest.mark.parametrize(("e", "ratio"), [(1.0, 1.0), (0.6, 0.25), (1.3, 1.0)])
def test_the_galaxies_are_on_the_orbit_that_was_asked(e, ratio):
    own = {"pericentre": 2.0, "eccentricity": e, "separation": 7.0, "mass_ratio": ratio}
    bodies = made("galaxy_collision", 4000, **own)
    (m1, x1, v1), (m2, x2, v2) = groups(bodies)
    assert m2 / m1 == pytest.approx(ratio)
    x, v, mu = x2 - x1, v2 - v1, m1 + m2
    h = np.cross(x, v)
    found = np.cross(v, h) / mu - x / np.linalg.norm(x)
    assert np.linalg.norm(x) == pytest.approx(7) and x @ v < 0  # they approach
    assert np.linalg.norm(found) == pytest.approx(e, rel=1e-6)
    assert h @ h / mu / (1 + e) == pytest.approx(2.0, rel=1e-6)
    np.testing.assert_allclose(found / e, [1, 0, 0], atol=1e-6)
    np.testing.assert_allclose(m1 * v1 + m2 * v2, 0, atol=1e-12)


def test_the_discs_have_their_inclinations():
    own = {"inclinations": [30, 120], "arguments": [0, 90], "halo": None}
    bodies = made("galaxy_collision", 4000, **own)
    assert bodies.species_names == ("first disc", "second disc")
    for k, (inclination, argument) in enumerate(((30, 0), (120, 90))):
        rows = bodies.species == k
        x, v = (each[rows] - each[rows].mean(axis=0) for each in (bodies.position, bodies.velocity))
        spin = np.cross(x, v).sum(axis=0)
        spin /= np.linalg.norm(spin)
        assert spin[2] == pytest.approx(math.cos(math.radians(inclination)), abs=0.01)
        node = np.array([-spin[1], spin[0], 0]) / math.sin(math.radians(inclination))
        towards = [math.cos(math.radians(argument)), -math.sin(math.radians(argument)), 0]
        np.testing.assert_allclose(node, towards, atol=0.02)  # the pericentre is on the x axis, ω from the node


def test_a_second_galaxy_with_less_mass_is_smaller():
    small = GalaxyCollision(mass_ratio=0.25).galaxies[1]
    assert (small.mass, small.radius, small.halo.mass, small.halo.radius) == (0.25, 0.5, 1.0, 1.5)


@pytest.mark.parametrize(
    ("generator", "own", "says"),
    [
        ("exponential_disk", {"Q": -1}, "initial.Q: must be at least 0, got -1"),
        ("exponential_disk", {"halo": HALO | {"share": 0.5}, "bulge": BULGE | {"share": 0.5}},
         "initial.particles: bulge and halo have 1 of the bodies; their shares must leave some to the disc"),
        ("exponential_disk", {"halo": {"radius": 1}}, "initial.halo.mass: is missing"),
        ("galaxy_collision", {"separation": 1}, r"initial.separation: must be at least the pericentre \(2\), got 1"),
        ("galaxy_collision", {"eccentricity": 0.5, "separation": 9}, "must be at most the apocentre"),
        ("galaxy_collision", {"inclinations": 3}, "initial.inclinations: must be a list of two angles"),
        ("galaxy_collision", {"mass_ratio": 0}, "initial.mass_ratio: must be greater than 0"),
    ],
)  # fmt: skip
def test_invalid_galaxies_are_refused(generator, own, says):
    with pytest.raises(InputError, match=says):
        made(generator, 10, **own)


def test_a_bulge_without_an_equilibrium_is_named():
    bulge = {"mass": 0.001, "radius": 0.01}
    initial = {"generator": "exponential_disk", "particles": 300, "equilibrium": "softened", "bulge": bulge}
    gravity = {"softening": "plummer", "length": 1.0}
    scenario = Scenario.from_dict({"initial": initial, "gravity": gravity, "integrator": {"dt": 0.01, "steps": 1}})
    with pytest.raises(InputError, match=r"^initial\.bulge: no isotropic sphere has this density"):
        make_particles(scenario)
