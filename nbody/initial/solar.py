"""The Solar System from published ephemerides, in astronomical units and solar masses."""

import math
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import PrivateAttr

from nbody.initial.generator import FixedGenerator, centred
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.quantities import DIMENSIONS
from nbody.scenario.source import ScenarioText

GAUSS2 = 0.01720209895**2
"""G in au, days and solar masses: the square of Gauss's constant, 2.9591220828559e-4."""

OBLIQUITY = math.radians(84381.448 / 3600)
"""Between the equator and the ecliptic of J2000 (IAU 1976)."""

DE405_EPOCH = 2440400.5
"""Julian ephemeris date (TDB) of the table below: 1969 June 28, 0 h."""

DE405 = """
Mercury  +0.3572602064472754  -0.0915490424305184  -0.0859810399869404
         +0.0033678456621938  +0.0248893428422493  +0.0129440715867960
Venus    +0.6082494331856039  -0.3491324431959005  -0.1955443457854069
         +0.0109524201099088  +0.0156125067398625  +0.0063288764517467
EMB      +0.1160149091391665  -0.9266055536403852  -0.4018062776069879
         +0.0168116200522023  +0.0017431316879820  +0.0007559737671361
Mars     -0.1146885824390927  -1.3283665308334880  -0.6061551894193808
         +0.0144820048079447  +0.0002372854923607  -0.0002837498361024
Jupiter  -5.3842094069921451  -0.8312476561610838  -0.2250947570335498
         +0.0010923632912185  -0.0065232941911923  -0.0028230122672194
Saturn   +7.8898899338228166  +4.5957107269260122  +1.5584315167250895
         -0.0032172034910937  +0.0043306322335557  +0.0019264174637995
Uranus  -18.2699008149782607  -1.1627115802190469  -0.2503695407425549
         +0.0002215401656274  -0.0037676535582462  -0.0016532438049224
Neptune -16.0595450919244627 -23.9429482908794995  -9.4004227803540061
         +0.0026431227915766  -0.0015034920807588  -0.0006812710048723
Pluto   -30.4878221121555448  -0.8732454301967293  +8.9112969841847551
         +0.0003225621959332  -0.0031487479275516  -0.0010801779315937
Moon     -0.0008081773279115  -0.0019946300016204  -0.0010872626608381
         +0.0006010848166591  -0.0001674454606152  -0.0000855621449740
"""
"""x, y, z in au, and below them vx, vy, vz in au/day, equatorial, J2000 (ICRF). The planets and the barycentre of Earth and
Moon (EMB) are relative to the Sun, the Moon to the Earth. Source: Standish 1998, JPL IOM 312.F-98-048, table IV: the
state with which the integration of the ephemeris DE405 began."""

SUN_OVER_MASS = {
    "Mercury": 6023600.0, "Venus": 408523.71, "EMB": 328900.561400, "Mars": 3098708.0, "Jupiter": 1047.3486,
    "Saturn": 3497.898, "Uranus": 22902.98, "Neptune": 19412.24, "Pluto": 135200000.0,
}  # fmt: skip
"""The Sun's mass divided by the planet's, with its moons (DE405)."""

EARTH_OVER_MOON = 81.30056

OUTER = """
Sun 1.00000597682 0 0 0 0 0 0
Jupiter 0.000954786104043 -3.5023653 -3.8169847 -1.5507963 0.00565429 -0.00412490 -0.00190589
Saturn 0.000285583733151 9.0755314 -3.0458353 -1.6483708 0.00168318 0.00483525 0.00192462
Uranus 0.0000437273164546 8.3101420 -16.2901086 -7.2521278 0.00354178 0.00137102 0.00055029
Neptune 0.0000517759138449 11.4707666 -25.7294829 -10.8169456 0.00288930 0.00114527 0.00039677
Pluto 7.692307692307693e-9 -15.5387357 -25.2225594 -3.1902382 0.00276725 -0.00170702 -0.00136504
"""
"""Mass, position, velocity on 1994 September 5, 0 h (Hairer, Lubich & Wanner, Geometric Numerical Integration, I.2.4)."""


def de405() -> tuple[list[str], np.ndarray, np.ndarray]:
    """Names, masses (11,) and states (11, 6) of the Sun, the planets, Pluto and the Moon, relative to the Sun."""
    cells = DE405.split()
    rows = [cells[k : k + 7] for k in range(0, len(cells), 7)]
    state = {row[0]: np.array([float(cell) for cell in row[1:]]) for row in rows}
    mass = {name: 1 / ratio for name, ratio in SUN_OVER_MASS.items()}
    both, moon = mass.pop("EMB"), state.pop("Moon")
    mass["Earth"], mass["Moon"] = (both * each / (1 + EARTH_OVER_MOON) for each in (EARTH_OVER_MOON, 1))
    state["Earth"] = state.pop("EMB") - moon / (1 + EARTH_OVER_MOON)
    state["Moon"] = state["Earth"] + moon
    mass["Sun"], state["Sun"] = 1.0, np.zeros(6)
    names = ["Sun", "Mercury", "Venus", "Earth", "Moon", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune", "Pluto"]
    return names, np.array([mass[name] for name in names]), np.array([state[name] for name in names])


class Ephemeris(FixedGenerator):
    """Bodies from a table in au and solar masses. They are converted to the scenario's units, if it has any."""

    dimensions = (3,)

    _au: float = PrivateAttr(1.0)
    _sun: float = PrivateAttr(1.0)

    def model_post_init(self, source: Any) -> None:
        """Keep the sizes of an au and of the Sun's mass in the units of ``source``, the validation's context."""
        if isinstance(source, ScenarioText) and source.scale:
            self._au = source.scale.number("1 au", DIMENSIONS["length"])
            self._sun = source.scale.number("1 Msun", DIMENSIONS["mass"])

    def _bodies(self, names: list[str], mass: np.ndarray, state: np.ndarray, gravity: Gravity, unit: float) -> Particles:
        """Each body is a species. Velocities per day become those of the run's unit of time, which follows from its G."""
        flow = math.sqrt(gravity.G * self._sun / self._au / unit)
        return centred(
            Particles(
                self._sun * mass, self._au * state[:, :3], flow * state[:, 3:],
                species=np.arange(len(names)), species_names=tuple(names),
            )
        )  # fmt: skip


class SolarSystem(Ephemeris):
    """The Sun, the planets, Pluto and the Moon at JED 2440400.5 (1969 June 28), the first state of JPL's DE405, around
    their centre of mass. Without ``units``, lengths are in au and masses in solar masses; the unit of time follows from G
    (2.9591220828559e-4 for days, 39.476926421 for years of 365.25 days).

    Attributes:
        frame: ``ecliptic`` or ``equatorial``, both of J2000.
    """

    frame: Literal["ecliptic", "equatorial"] = "ecliptic"

    bodies_made: ClassVar[int] = 11

    def generate(self, count: int, gravity: Gravity, rng: np.random.Generator) -> Particles:
        names, mass, state = de405()
        if self.frame == "ecliptic":
            c, s = math.cos(OBLIQUITY), math.sin(OBLIQUITY)
            turn = np.array([[1, 0, 0], [0, c, s], [0, -s, c]])
            state = (state.reshape(-1, 2, 1, 3) * turn).sum(axis=-1).reshape(-1, 6)
        return self._bodies(names, mass, state, gravity, GAUSS2)


class OuterSolarSystem(Ephemeris):
    """The Sun (with the mass of the inner planets), Jupiter, Saturn, Uranus, Neptune and Pluto on 1994 September 5: the
    problem of Hairer, Lubich & Wanner (Geometric Numerical Integration, I.2.4), equatorial, in au and solar masses. Their
    time is in days, with G = 2.95912208286e-4."""

    bodies_made: ClassVar[int] = 6

    def generate(self, count: int, gravity: Gravity, rng: np.random.Generator) -> Particles:
        rows = [line.split() for line in OUTER.split("\n") if line]
        numbers = np.array([[float(cell) for cell in row[1:]] for row in rows])
        return self._bodies([row[0] for row in rows], numbers[:, 0], numbers[:, 1:], gravity, 2.95912208286e-4)
