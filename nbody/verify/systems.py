"""Cases of many bodies: clusters, discs, the lecture."""

import math
from collections.abc import Iterator

import numpy as np

from nbody.initial import make_particles
from nbody.scenario import Scenario
from nbody.verify.check import Check, simulated


def plummer(engine: str) -> Iterator[Check]:
    """The sample's radii scatter: σ of a quantile p is √(p(1 − p)/N) over the density there. Then half a crossing time."""
    n = 20_000
    values = {"initial": {"generator": "plummer", "particles": n}, "integrator": {"dt": 1, "steps": 0}}
    radius = np.sort(np.linalg.norm(make_particles(Scenario.from_dict(values)).position, axis=1))
    source = "Aarseth, Hénon & Wielen 1974"
    for p, expected in ((0.1, 0.308678), (0.5, 0.768571), (0.9, 2.183670)):
        a = 3 * math.pi / 16
        density = 3 * a**2 * expected**2 / (expected**2 + a**2) ** 2.5  # dM/dr
        sigma = math.sqrt(p * (1 - p) / n) / density
        yield Check(f"radius of {p:.0%} of the mass", expected, float(radius[int(p * n)]), 4 * sigma, source)
    initial = {"generator": "plummer", "particles": 1024}
    run = simulated(engine, initial, {"softening": "plummer", "length": 1e-4}, {"dt": 1 / 512, "steps": 256})
    yield Check("energy", -0.25, run.energies.initial, 1e-6, "Hénon 1971; Heggie & Mathieu 1986")
    yield Check("energy at t = 0.5", -0.25, run.energies.latest, 1e-4, "conservation of energy")
    kinetic = 0.5 * float((run.start.mass[:, None] * run.end.velocity**2).sum())
    yield Check("kinetic energy at t = 0.5", 0.25, kinetic, 5 * 0.25 * math.sqrt(2 / 3 / 1024), "the virial theorem")


def king(engine: str) -> Iterator[Check]:
    """Nothing moves: the models are solved."""
    from nbody.initial.spheres import king_model

    for W0, tidal, half in ((3, 4.699, 0.8388), (6, 17.99, 0.8038), (9, 131.4, 0.9799)):
        model = king_model(W0)
        found = float(np.interp(0.5, model.mass, model.radius)) / model.virial_radius
        yield Check(f"W0 = {W0}: r_t/r_c", tidal, float(model.radius[-1]), 5e-4 * tidal, "King 1966")
        yield Check(f"W0 = {W0}: r_h/r_v", half, found, 1e-4, "King 1966")


def exponential_disk(engine: str) -> Iterator[Check]:
    """Nothing moves: the largest circular velocity, and where."""
    from nbody.initial.exponential_disk import rotation_of_disc

    x = np.linspace(1, 4, 30_001)
    v = np.sqrt(rotation_of_disc(x))
    yield Check("largest v_c, G = M = R_d = 1", 0.62213, float(v.max()), 1e-5, "Freeman 1970")
    yield Check("where, in R_d", 2.150, float(x[v.argmax()]), 1e-3, "Freeman 1970")


def cold_collapse(engine: str) -> Iterator[Check]:
    """Before shells cross, every radius is r/r₀ = s with t/t_ff = (2/π)(acos √s + √(s(1 − s))). The bodies' own
    clumping, √N of them in each part, disturbs this by a few per cent."""
    s = 0.5
    free_fall = math.pi / 2 * math.sqrt(2.4**3 / 2)
    end = free_fall * 2 / math.pi * (math.acos(math.sqrt(s)) + math.sqrt(s * (1 - s)))
    initial = {"generator": "cold_collapse", "particles": 2000}
    run = simulated(engine, initial, {"softening": "plummer", "length": 0.02}, {"dt": end / 200, "steps": 200})
    before, after = (np.median(np.linalg.norm(x, axis=1)) for x in (run.start.position, run.end.position))
    yield Check("free-fall time", 4.12973, free_fall, 1e-5, "π/2 √(R³/2GM)")
    yield Check(f"median radius at t = {end:.3f}, of the first", s, float(after / before), 0.03, "the cycloid of free fall")


def lecture(engine: str) -> Iterator[Check]:
    """The rounding of N sums of N forces, which cancel in pairs; G m is 10."""
    gravity = {"G": 10.0, "dimensions": 2, "softening": "cutoff", "length": 0.01}
    run = simulated(
        engine, {"generator": "lecture", "particles": 1024}, gravity, {"scheme": "taylor", "dt": 0.001, "steps": 10}
    )
    x0, v0 = run.start.position.mean(axis=0), run.start.velocity.mean(axis=0)
    for k, axis in enumerate("xy"):
        expected = float(x0[k] + 0.01 * v0[k])
        got = float(run.end.position[:, k].mean())
        yield Check(f"mean {axis} after 10 steps: x0 + 10 τ v0", expected, got, 1e-11, "Newton's third law")
