"""The quantities that colours show: a number per body. The registry is ``look.COLOURS``."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nbody.compute.in_kernels.cpu_threads import threads
from nbody.compute.in_kernels.morton import key_for
from nbody.diagnostics.structure import local_density
from nbody.law.gravity import Gravity
from nbody.particles import Particles
from nbody.scenario.quantities import Units
from nbody.state import Outputs
from nbody.viewer.sources.frames import Array, ShownFrame, drawn
from nbody.viewer.sources.samples import CATEGORIES, LINEAR, LOGARITHMIC
from nbody.viewer.sources.source import Source

NEIGHBOURS_UP_TO = 30_000
"""Bodies up to which neighbours are searched (1e5 would take 1 s per frame on one core); more are counted in cells, which
takes 0.1 s for 1e5 and 1 s for 1e6."""

DIRECT_UP_TO = 4096
"""Bodies up to which the potential is a direct sum: 0.3 to 0.5 s on one core."""

LEVELS, LEAST = 20, 16  # halvings of the cell of all bodies along each axis; the fewest bodies in the cell of a body

Around = tuple[ShownFrame, ShownFrame] | None
"""The frames before and after a frame (one of them is the frame itself at the ends of the run); None if there is one."""


@dataclass(frozen=True)
class ColourQuantity:
    """A quantity that colours can show.

    Attributes:
        label: its name in the legend.
        scale: :data:`LOGARITHMIC`, :data:`LINEAR` or :data:`CATEGORIES`.
        compute: (shown,) values of a source at a frame, in units of ``unit``; reads no file, so that a thread can call it.
            None: the shader computes the speed.
        unit: the picture's unit of the quantity, in the scenario's.
        symbol: the unit's symbol for the legend.
        constant: the values are the same in every frame.
        neighbours: it needs the frames before and after.
        check: raises InputError, which begins with the name, if it can't be shown for a source.
        samples: frames that determine the ends of the scale.
    """

    label: str
    scale: str
    compute: Callable[[Source, ShownFrame, Around], Array] | None
    unit: Callable[[Source], float] = lambda source: 1.0
    symbol: Callable[[Units], str] = lambda units: ""
    constant: bool = False
    neighbours: bool = False
    check: Callable[[str, Source], None] = lambda name, source: None
    samples: int = 5

    def around(self, source: Source, frame: ShownFrame) -> Around:
        """The frames that :attr:`compute` needs besides ``frame``."""
        if not self.neighbours:
            return None
        k = source.place(frame.number)
        pasts = map(source.past, range(k - 1, k + 2))
        found = [past.on_host() for past in pasts if past is not None]
        return (found[0], found[-1]) if found and found[-1].time > found[0].time else None


def shown_mass(source: Source, frame: ShownFrame) -> Array:
    """The masses (shown,), as if the bodies that are not shown were spread over the others."""
    return source.shown.of(frame.mass) * (source.catalogue.count / source.shown.count)


def column(name: str) -> Callable[[Source, ShownFrame, Around], Array]:
    """What computes a column of the catalogue."""
    return lambda source, frame, around: source.shown.of(getattr(source.catalogue, name)).astype(np.float32)


def energy_error(source: Source, frame: ShownFrame, around: Around) -> Array:
    """|E - E₀|/|E₀| of the frame, the same for all bodies."""
    return np.full(source.shown.count, abs(frame.energy_error), np.float32)


def acceleration(source: Source, frame: ShownFrame, around: Around) -> Array:
    """|Δv/Δt| between the frames before and after; NaN if there is one frame only."""
    if around is None:
        return np.full(source.shown.count, np.nan, np.float32)
    before, after = around
    return np.linalg.norm(after.velocity - before.velocity, axis=1) / np.float32(after.time - before.time)


def relative_speed(source: Source, frame: ShownFrame, around: Around) -> Array:
    """|v - v_c| with the velocity v_c of the centre of mass; the mean velocity if no body has mass."""
    velocity = frame.velocity.astype(np.float64)
    finite = np.isfinite(velocity).all(axis=1)
    if not finite.any():
        return np.full(len(velocity), np.nan)
    mass = shown_mass(source, frame)[finite]
    mean = np.average(velocity[finite], axis=0, weights=mass if mass.any() else None)
    relative: Array = np.linalg.norm(velocity - mean, axis=1)
    return relative


def density(source: Source, frame: ShownFrame, around: Around = None) -> Array:
    """The mass density around each body: within its sixth neighbour, or, for many bodies, in its cell."""
    position, mass = frame.position[:, : source.catalogue.dimensions], shown_mass(source, frame)
    if len(position) > NEIGHBOURS_UP_TO:
        return grid_density(position, mass)
    position = position.astype(np.float64)
    return local_density(Particles(mass, position, np.zeros_like(position))).astype(np.float32)


def grid_density(position: Array, mass: Array) -> Array:
    """The density in the cell around each body, (N,) float32: its mass / its volume. The cells are smaller where there are
    more bodies: each has at least :data:`LEAST` of them, and none of its halves along all axes around the body has."""
    out = np.zeros(len(position), np.float32)
    known = np.flatnonzero(drawn(position))
    if len(known) < LEAST:
        return out
    position, dimensions = position[known].astype(np.float64), position.shape[1]
    corner, side = position.min(axis=0), float(np.ptp(position, axis=0).max()) * 1.0001 or 1.0
    cells = ((position - corner) * (2**LEVELS / side)).astype(np.uint64).T
    key = key_for(dimensions, compile=lambda function: function)(cells[0], cells[1], cells[-1]).astype(np.int64)
    order = np.argsort(key)
    key, mass, rows = key[order], mass[known][order], known[order]
    for level in range(LEVELS + 1):  # from the smallest cells to the one that contains all
        cell = key >> (dimensions * level)
        begin = np.flatnonzero(np.diff(cell, prepend=-1))
        count = np.diff(begin, append=len(key))
        volume = (side * 2.0 ** (level - LEVELS)) ** dimensions
        density = np.repeat(np.add.reduceat(mass, begin) / volume, count)
        first = np.repeat(count >= LEAST, count) & (out[rows] == 0)
        out[rows[first]] = density[first]
    return out


def potential(source: Source, frame: ShownFrame, around: Around = None) -> Array:
    """The depth of the potential well at each body, -φ, with the law of the run: a direct sum, or for many bodies that of a
    tree (median relative error 3e-5, 2.5 µs per body on one core); 0 for bodies that are not drawn."""
    from nbody.forces.reference import direct_sum
    from nbody.forces.reusable_tree import Tree

    rows = np.flatnonzero(drawn(frame.position))
    position, unit = frame.position[rows, : source.catalogue.dimensions].astype(np.float64), source.length_unit
    mass, law, each = shown_mass(source, frame)[rows], _law(source), source.catalogue.softening2
    softening2 = None if each is None else source.shown.of(each)[rows]
    out = np.zeros(len(frame.position))
    if len(rows) <= DIRECT_UP_TO:
        out[rows] = -direct_sum(unit * position, mass, law, None, softening2)[1] if len(rows) else 0.0
        return out
    # In the picture's unit of length and with a mass of 1, so that all numbers are in the range of float32.
    total, length = mass.sum() or 1.0, np.asarray(law.length if softening2 is None else np.sqrt(softening2)) / unit
    with threads(1):  # Numba's threads may belong to the run, and serve one caller at a time
        tree = Tree(position, mass / total, softening=law.softening, length=length, precision="float32")
        out[rows] = tree.potential() * (-law.G * total / unit)
    return out


def check_potential(name: str, source: Source) -> None:
    """Raise InputError if the tree does not have the law of the run."""
    from nbody.forces.choose import choose
    from nbody.forces.problem import Problem

    if source.shown.count > DIRECT_UP_TO:
        problem = Problem(_law(source), "float32", source.shown.count, Outputs.POTENTIAL)
        choose("cpu-tree", problem, where=f"--color {name}: ")


def _law(source: Source) -> Gravity:
    return source.catalogue.gravity or Gravity(dimensions=source.catalogue.dimensions)


SPEED = ColourQuantity("speed", LOGARITHMIC, None, lambda source: source.speed_unit, lambda units: units.symbol("velocity"))
RELATIVE_SPEED = ColourQuantity(
    "speed relative to the centre of mass", LOGARITHMIC, relative_speed, SPEED.unit, SPEED.symbol
)
ACCELERATION = ColourQuantity(
    "acceleration", LOGARITHMIC, acceleration, lambda source: source.speed_unit**2 / source.length_unit,
    lambda units: units.symbol("acceleration"), neighbours=True,
)  # fmt: skip
DENSITY = ColourQuantity(
    "density", LOGARITHMIC, density,
    lambda source: source.length_unit ** -source.catalogue.dimensions, lambda units: units.symbol("density"), samples=3,
)  # fmt: skip
POTENTIAL = ColourQuantity(
    "−potential", LOGARITHMIC, potential,
    symbol=lambda units: f"({units.symbol('velocity')})²" if units.symbol("velocity") else "", samples=3,
    check=check_potential,
)  # fmt: skip
SPECIES = ColourQuantity("species", CATEGORIES, column("species"), constant=True)
ID = ColourQuantity("id", LINEAR, column("id"), constant=True)
MASS = ColourQuantity("mass", LOGARITHMIC, column("mass"), symbol=lambda units: units.symbol("mass"), constant=True)
ENERGY_ERROR = ColourQuantity("|energy error|", LOGARITHMIC, energy_error, samples=64)
