"""Cases of planets over many orbits: stability, secular motion, resonance, and passages of the star."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from nbody.run.simulation import Simulation
from nbody.scenario import Scenario
from nbody.trajectory import Trajectory
from nbody.verify.check import Check, Group

YEARS = {"G": 4 * math.pi**2, "dimensions": 3}
STAR = {"m": 1}


def planets(bodies: Sequence[Group], integrator: Group, output: Path | None = None, **more: object) -> Simulation:
    """A simulation of a star and these planets, with lengths in au and times in years, recorded in ``output``."""
    initial = {"generator": "planets", "bodies": [STAR, *bodies]}
    values = {"initial": initial, "gravity": YEARS, "integrator": integrator, "precision": "float64", "engine": "cpu"}
    return Simulation(Scenario.from_dict(values | more), output)


def stability(engine: str) -> Iterator[Check]:
    """Three planets far from each other, in 1000 orbits of the first one. Neighbouring orbits part as the time."""
    bodies = [{"m": 1e-4, "a": 1.6**k, "e": 0.02, "M": 100 * k} for k in range(3)]
    integrator = {"scheme": "wisdom_holman", "dt": 0.05, "end": 1000}
    with TemporaryDirectory() as folder:
        file = Path(folder) / "run.h5"
        planets(bodies, integrator, file, record={"dt": 1000, "observables": ["megno"]}).run()
        with Trajectory(file) as run:
            megno = float(run.observable("megno")[-1])
    yield Check("MEGNO of a regular system", 2.0, megno, 0.1, "Cincotta & Simó 2000")


def kozai(engine: str) -> Iterator[Check]:
    """A planet at 5 au from its star, and a companion of the star's mass 50 au away, whose circle is inclined by 65°."""
    inclination = math.radians(65)
    planet = {"m": 0, "a": 5, "e": 0.05, "inc": 65, "omega": 60}
    companion = {"field": "companion", "about": 0, "on": 1, "mass": 1, "distance": 50}
    run = planets([planet], {"scheme": "ias15", "end": 8000}, fields=[companion])
    e, kept = [], []
    for time in np.arange(20, 8001, 20):
        run.integrate(float(time))
        orbit = run.orbits()
        e.append(orbit.e[0])
        kept.append(math.sqrt(1 - orbit.e[0] ** 2) * math.cos(math.radians(orbit.inc[0])))
    largest = math.sqrt(1 - 5 / 3 * math.cos(inclination) ** 2)
    yield Check("largest eccentricity", largest, max(e), 0.03, "Innanen et al. 1997: sqrt(1 - 5/3 cos² i)")
    yield Check("sqrt(1 - e²) cos i", math.cos(inclination), float(np.mean(kept)), 0.02, "Kozai 1962; Lidov 1962")


def capture(engine: str) -> Iterator[Check]:
    """A planet that a disc moves inward, from a period 2.8 times that of the inner one, in 1000 years."""
    inner, outer = {"m": 1e-4, "a": 1, "e": 0.01, "M": 40}, {"m": 3e-4, "a": 2, "e": 0.01, "M": 200}
    disc: list[Group] = [
        {"field": "migration", "on": 1, "tau_e": 400},
        {"field": "migration", "on": 2, "tau_a": 4000, "tau_e": 100},
    ]
    run = planets([inner, outer], {"scheme": "ias15", "end": 1200}, fields=disc)
    ratios = []
    for time in np.arange(1100, 1201, 1):
        run.integrate(float(time))
        P = run.orbits().P
        ratios.append(P[1] / P[0])
    yield Check("ratio of the periods", 2.0, float(np.mean(ratios)), 0.02, "Lee & Peale 2002")


def star_passage(engine: str) -> Iterator[Check]:
    """A planet of e = 0.99, which passes its star within a twentieth of a step of hybrid, beside a Jupiter: 32 orbits."""
    bodies = [{"m": 1e-3, "a": 1, "e": 0.99, "M": 180}, {"m": 3e-4, "a": 5.2, "omega": 90}]
    run = planets(bodies, {"scheme": "hybrid", "dt": 0.2 / (2 * math.pi), "steps": 1000})
    run.run()
    yield Check("relative energy error", 0.0, run.energies.error, 1e-3, "Lu, Hernandez & Rein 2024: TRACE")
