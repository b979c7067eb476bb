"""What a precision loses of the numbers that a user gave, and ``precision: auto``: the lowest one that loses nothing."""

from collections.abc import Iterator

import numpy as np

from nbody.errors import InputError
from nbody.forces.problem import PRECISIONS
from nbody.forces.range import check_range, farthest
from nbody.forces.registry import ENGINES
from nbody.given import KeyProblem
from nbody.integrators.integrator import Integrator
from nbody.particles import Particles
from nbody.scenario import Scenario
from nbody.scenario.groups import check_precision

RESOLUTION = 100
"""Softening lengths and radii should be at least this many times the spacing of float32 numbers at the farthest particle."""

STEPS = 100_000
"""Bodies should be at least this many times the spacing of float32 numbers away from their centre: 17 bits of 24."""

SAMPLE = 4096
"""The bodies of a species of which the spacing is measured."""

MASS_RATIO = 1e6
"""At larger ratios of masses float32 sums lose the forces of light bodies on heavy ones: 24 bits are 1.7e7."""

NEARER = "move the origin to the bodies, or "


def lost_in_float32(scenario: Scenario, particles: Particles) -> Iterator[tuple[str, str]]:
    """What float32 loses of the bodies, one clause each; with what helps besides another precision, ending in "or "."""
    spacing = float(np.spacing(np.float32(np.abs(particles.position).max())))
    apart = f"in float32 positions are {spacing:.1e} apart at the farthest particle, and"
    if scenario.gravity.length2 and scenario.gravity.shortest < RESOLUTION * spacing:
        yield f"{apart} the softening length is only {scenario.gravity.shortest:g}", NEARER
    if scenario.collisions is not None:
        from nbody.integrators.collisions.radii import radii

        radius = radii(scenario, particles)
        if (smallest := float(radius[radius > 0].min())) < RESOLUTION * spacing:
            yield f"{apart} a radius is only {smallest:g}", NEARER
    if displaced := _displaced(particles):
        yield displaced, NEARER
    masses = particles.mass[particles.mass > 0]
    if masses.max() > MASS_RATIO * masses.min():
        ratio = masses.max() / masses.min()
        yield f"the masses differ by a factor of {ratio:.1e}, more than float32 sums can keep", ""


def _displaced(particles: Particles) -> str:
    """The clause about bodies, or a species, that are far from the origin and near each other; empty if none are."""
    names = particles.species_names
    kinds = [(f"the species '{name}'", particles.species == k) for k, name in enumerate(names) if len(names) > 1]
    for who, which in [("the bodies", np.ones(particles.count, bool)), *kinds]:
        rows = np.flatnonzero(which)
        x = particles.position[rows[:: -(-len(rows) // SAMPLE) or 1]]
        if len(x) < 2:
            continue
        size = float(_median(np.linalg.norm(x - _median(x), axis=1)))
        spacing = float(_median(np.spacing(np.abs(x).max(axis=1).astype(np.float32))))
        if 0 < size < STEPS * spacing:
            return f"in float32 positions are {spacing:.1e} apart, and {who} only {size:.2g} from their centre (median)"
    return ""


def _median(values: np.ndarray) -> np.ndarray:
    """``np.median(values, axis=0)``, which imports ``numpy.ma`` in 11 ms."""
    in_order, count = np.sort(values, axis=0), len(values)
    found: np.ndarray = 0.5 * (in_order[(count - 1) // 2] + in_order[count // 2])
    return found


def automatic_precisions(scenario: Scenario, scheme: Integrator, particles: Particles) -> tuple[tuple[str, ...], str]:
    """The precisions that keep what the user gave and in which the scheme computes, the lowest first; and why no lower one
    does, or why the lowest may be taken."""
    own = [each for offered in scheme.facts.precisions.values() for each in offered] or PRECISIONS
    able = tuple(each for each in PRECISIONS if each in own)
    why = "positions, masses and lengths keep their digits in it"
    if able[0] != PRECISIONS[0]:
        why = f"scheme '{scenario.integrator.scheme}' computes in it"
    for k, precision in enumerate(able[:-1]):
        lost = _out_of_range(scenario, scheme, particles, precision)
        if not lost and precision == "float32":
            lost = next((clause for clause, _ in lost_in_float32(scenario, particles)), "")
        if not lost:
            return able[k:], why
        why = lost
    return able[-1:], why


def _out_of_range(scenario: Scenario, scheme: Integrator, particles: Particles, precision: str) -> str:
    """Why numbers of a run are beyond a precision, with engines that keep the scenario's units; empty if they are not."""
    keeps_units, gravity = ENGINES.load("reference"), scenario.gravity
    dt = np.inf if scheme.facts.adaptive else abs(scheme.dt)
    try:
        check_precision(gravity, scenario.integrator, precision)
        check_range(keeps_units, gravity, precision, particles, "", dt, scheme.facts.power_of_dt)
    except (InputError, KeyProblem) as error:
        return str(error).partition(";")[0]
    extent = float(np.ptp(particles.position, axis=0).max())
    far = extent > farthest(keeps_units, precision)
    return f"the bodies are {extent:.1e} apart, whose inverse cube is zero in {precision}" if far else ""
