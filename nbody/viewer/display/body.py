"""The facts about the chosen body, their panel, and the ring around it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw

from nbody.viewer.display.text import ACCENT, BRIGHT, DIM, SMALL, table
from nbody.viewer.sources.frames import Array, ShownMoment
from nbody.viewer.sources.source import Source

MOST = 100_000  # the most bodies for which the potential is summed: so many take 5 ms (an AMD EPYC)
NARROW = 210  # the least width of the panel: a fixed one, else the edge moves when the numbers change
RING, RING_WIDTH = 11, 1.6  # radius and width of the ring, in pixels at scale 1
SMOOTH = 4  # the factor by which the ring is drawn larger, and then reduced, for smooth edges
RING_SHADES = 8  # the number of steps in which the ring of a collision fades


@dataclass(frozen=True, eq=False)
class BodyFacts:
    """A body: ``species`` is empty if the run has only one; ``position`` and ``velocity`` are (D,) float64.

    Attributes:
        specific_energy: ½ v² + φ, the energy per unit mass, and ``potential`` φ; NaN if not known (some bodies are not
            shown, or the law is not recorded).
        orbit: a, e and inclination about the bodies before it, at the latest frame; empty if these are not a star, or a
            binary star, with more than half of the mass, or not all bodies are shown.
        units: the symbols of the units of mass, length, velocity, energy and energy per mass, by these names.
    """

    id: int
    species: str
    mass: float
    position: Array
    velocity: Array
    kinetic_energy: float
    specific_energy: float
    potential: float
    orbit: str = ""
    units: Mapping[str, str] = field(default_factory=dict)


def facts(source: Source, moment: ShownMoment, row: int) -> BodyFacts:
    """The facts about the body that is row ``row`` of the moment's arrays."""
    bodies, body = source.catalogue, source.shown.body(row)
    dimensions, symbol = bodies.dimensions, bodies.units.symbol
    position = moment.positions(row)[:dimensions] * source.length_unit
    velocity = moment.velocities(row)[:dimensions] * source.speed_unit
    masses = moment.first.mass
    mass, half_square = float(masses[body]), 0.5 * float(velocity @ velocity)
    phi = np.nan
    if bodies.gravity is not None and source.shown.count == bodies.count <= MOST:
        from nbody.forces.reference import direct_sum

        positions = moment.positions()[:, :dimensions] * source.length_unit
        with np.errstate(all="ignore"):  # bodies at infinity
            sums = direct_sum(positions, masses, bodies.gravity, np.array([row]), bodies.softening2)
            phi = float(sums[1][0])
    species = bodies.species_names[int(bodies.species[body])] if len(bodies.species_names) > 1 else ""
    energies = mass * half_square, half_square + phi, phi
    units = {quantity: symbol(quantity) for quantity in ("mass", "length", "velocity", "energy")}
    units["energy per mass"] = f"({units['velocity']})²" if units["velocity"] else ""
    orbit = _orbit(source, moment, row) if np.isfinite(phi) else ""
    return BodyFacts(int(bodies.id[body]), species, mass, position, velocity, *energies, orbit, units)


def _orbit(source: Source, moment: ShownMoment, row: int) -> str:
    """The orbit of a body, if it has one about a star; see :class:`BodyFacts`."""
    from nbody.diagnostics.orbits import orbits
    from nbody.errors import InputError
    from nbody.particles import Particles

    mass, bodies, now = np.asarray(moment.first.mass, float), source.catalogue, moment.first
    D = bodies.dimensions
    if row == 0 or bodies.gravity is None or not 2 * mass[:2].sum() > mass.sum():
        return ""
    x, v = now.position[:, :D] * source.length_unit, now.velocity[:, :D] * source.speed_unit
    try:
        found = orbits(Particles(mass, x, v), bodies.gravity.G, bodies=[row])
    except InputError:
        return ""
    length = f" {bodies.units.symbol('length')}".rstrip()
    return f"a {_number(found.a[0])}{length}, e {_number(found.e[0])}, i {_number(found.inc[0])}°"


def body_panel(found: BodyFacts, followed: bool, scale: float) -> Array:
    """What is known of a body, in two columns."""
    rows = tuple((name, f"{value} {found.units.get(unit, '')}") for name, value, unit in _rows(found) if value)
    energy = found.specific_energy
    bound = "" if np.isnan(energy) else ", bound" if energy < 0 else ", unbound"
    title = f"body {found.id}{bound}" + (", followed" if followed else "")
    return table(((title, rows),), scale, size=SMALL, least=NARROW, colours=(DIM, BRIGHT))


def _rows(facts: BodyFacts) -> list[tuple[str, str, str]]:
    """Name, value and quantity of its unit; values that are not known are empty."""
    return [
        ("species", facts.species, ""),
        ("mass", _number(facts.mass), "mass"),
        ("position", _vector(facts.position), "length"),
        ("velocity", _vector(facts.velocity), "velocity"),
        ("speed", _number(float(np.linalg.norm(facts.velocity))), "velocity"),
        ("½ m v²", _number(facts.kinetic_energy), "energy"),
        ("φ", _number(facts.potential), "energy per mass"),
        ("½ v² + φ", _number(facts.specific_energy), "energy per mass"),
        ("orbit", facts.orbit, ""),
    ]


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.4g}".replace("-", "−")


def _vector(values: Array) -> str:
    return ",  ".join("NaN" if np.isnan(x) else f"{x:.4g}".replace("-", "−") for x in values)


@lru_cache(maxsize=2 * RING_SHADES)
def faded_ring(scale: float, shade: int) -> Array:
    """The :func:`ring`, less opaque: ``shade`` goes from 0 to :data:`RING_SHADES`."""
    image = ring(scale).copy()
    image[..., 3] = image[..., 3] * shade // RING_SHADES
    return image


@lru_cache(maxsize=4)
def ring(scale: float) -> Array:
    """A ring with a dark edge, so that it is seen on a dark and on a bright ground."""
    radius, width = RING * scale * SMOOTH, RING_WIDTH * scale * SMOOTH
    side = 2 * round(RING * scale + 3 * RING_WIDTH * scale) + 1
    image = Image.new("RGBA", (side * SMOOTH, side * SMOOTH), (*ACCENT[:3], 0))
    draw, middle = ImageDraw.Draw(image), side * SMOOTH / 2

    def circle(radius: float, width: float, colour) -> None:
        box = (middle - radius, middle - radius, middle + radius, middle + radius)
        draw.ellipse(box, outline=colour, width=max(round(width), 1))

    circle(radius + width, 3 * width, (6, 8, 14, 150))
    circle(radius, width, ACCENT)
    return np.asarray(image.resize((side, side), Image.Resampling.BOX))
