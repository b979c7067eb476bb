"""The ``cpu`` engine: Numba, SIMD, each pair once, all cores. The kernel is in :mod:`nbody.forces.direct.cpu_pairs`."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import config, get_num_threads

from nbody.errors import DeviceError
from nbody.forces.direct.cpu_pairs import gravitate_for, missing_factor
from nbody.forces.direct.cpu_rows import SUMS, components, rows_for
from nbody.forces.direct.cpu_species import sums_by_length
from nbody.forces.direct.cpu_tiles import (
    MOST_SHARES,
    Shares,
    Tiles,
    Units,
    add_shares,
    pack,
    unpack,
)
from nbody.forces.engine import Engine
from nbody.forces.problem import Abilities
from nbody.law import LAWS, Gravity
from nbody.parallel.shares import add_over_ranks, cover, share_count, worth_dividing
from nbody.particles import Particles
from nbody.scenario.fields import Group
from nbody.state import State, Want
from nbody.state.host import HostState

EXTENT = {"float32": 20, "float64": 60}
"""The kernel's unit of length makes the farthest coordinate nearly 2 to this power, its unit of mass makes the largest mass
nearly 1. Both are powers of two, so the scaling rounds nothing, and metres and kilograms, whose squares would overflow
float32, are as good as other units. In float64 the squares must be in the range of float32, in which the root is
estimated."""

NEAREST = {"float32": -42, "float64": -60}
"""Bodies closer than 2 to this power, in that unit, count as coincident and exert no force on each other: the inverse cube
of their distance would overflow. This is 2e-19 of the farthest coordinate in float32, and 8e-37 in float64."""


FEWEST_MASSLESS = 1 / 4
"""From this fraction of bodies without mass on they are left out of the pairs. With a fraction f, the pairs of the others
and the rows of these are 1 - f² of all pairs."""


class Division(NamedTuple):
    """The bodies of a state (their indices) with and without mass, if many have none: the workspace of the state."""

    massive: np.ndarray
    massless: np.ndarray

    @classmethod
    def of(cls, mass: np.ndarray) -> "Division | None":
        """None if there are few bodies without mass."""
        massless = np.flatnonzero(mass == 0)
        return cls(np.flatnonzero(mass != 0), massless) if len(massless) >= FEWEST_MASSLESS * len(mass) else None


class CpuEngine(Engine):
    """Each pair once, with the vector units of all cores.

    Interactions per second (N² per force evaluation) at N = 20480 on two Zen 4 cores with AVX-512:

    ================================================  =======  =======
    what                                              float32  float64
    ================================================  =======  =======
    forces, 3-D, ``plummer``                           12.0e9    4.5e9
    forces, 2-D, ``cutoff``                            15.0e9    5.1e9
    the potential, 3-D, ``plummer``                    21.3e9    6.7e9
    forces in C with AVX-512, each pair twice           9.3e9
    ================================================  =======  =======

    The relative error of a force in Plummer's sphere is 9e-8 (median) and 1.5e-6 (largest) in float32, 1.5e-16 and
    2.4e-15 in float64.

    If species have softening lengths, each body sums over the others of each length (``cpu_species``): each pair twice.
    Bodies without mass exert no force. If there are many, only the bodies with mass are summed over: N_massive · N
    interactions.
    """

    can = Abilities(
        outputs=Want.POTENTIAL | Want.JERK, targets=True, species=True, ranks=True, own_units=True,
        auto_range=range(1, 1 << 62),
    )  # fmt: skip
    potential_pass = "separate"
    state_type = HostState

    def __init__(self, gravity: Gravity, precision: str = "float32", options: Group | None = None) -> None:
        super().__init__(gravity, precision, options)
        self._tiles: Tiles | None = None
        self._made_for: tuple[int, Shares] | None = None  # the number of bodies in the tiles, and the shares

    @classmethod
    def require_device(cls) -> None:
        """Raise a DeviceError if NUMBA_DISABLE_JIT is set (these kernels do not run as plain Python), or if Numba cannot
        start its threads (an unknown or missing threading layer)."""
        if config.DISABLE_JIT:
            raise DeviceError(
                "the engine 'cpu' is compiled, and NUMBA_DISABLE_JIT forbids it; unset that variable, or use "
                "--engine reference"
            )
        try:
            get_num_threads()  # starts them
        except (ValueError, RuntimeError, ImportError) as error:
            reason = " ".join(str(error).split())[:100]
            raise DeviceError(
                f"the engine 'cpu' can't start Numba's threads ({reason}); unset NUMBA_NUM_THREADS and "
                "NUMBA_THREADING_LAYER, or use --engine reference"
            ) from error

    def load(self, particles: Particles) -> HostState:
        state = HostState(particles, self.dtype)
        state.workspace = Division.of(state.mass)
        self.soften(state, particles)
        return state

    def acting(self, state: State) -> int:
        return len(state.workspace.massive) if state.workspace else state.count

    def _compute(self, state: State, want: Want) -> None:
        if Want.JERK in want:
            self._compute_targets(state, Want.JERK, np.arange(state.count))
        else:
            self._run(state, potential=False)
        if Want.ENERGY in want:
            self._compute_potential(state, want)

    def _compute_potential(self, state: State, want: Want) -> None:
        self._run(state, potential=True)

    def _compute_targets(self, state: State, want: Want, targets: np.ndarray) -> None:
        assert isinstance(state, HostState)
        _, units = self._scaled(state)
        speed = _exponent(state.velocity) if Want.JERK in want else 0
        sums = self._row_sums(state, want, targets, speed)
        d = state.dimensions
        state.acceleration[targets] = sums[:, :d] * self.dtype.type(units.acceleration)
        if Want.JERK in want:
            factor = units.acceleration * units.position * 2.0**speed
            state.jerk[targets] = sums[:, 3 : 3 + d] * self.dtype.type(factor)
        if Want.ENERGY in want:
            state.potential[targets] = sums[:, 6] * self.dtype.type(units.potential)
            mark_coincident(state, self.gravity, units, NEAREST[self.precision], targets)

    def _row_sums(self, state: HostState, want: Want, targets: np.ndarray, speed: int = 0) -> np.ndarray:
        """The sums (T, 7) over the bodies with mass for each target, in the kernel's units; that of velocity is 2^speed."""
        length2, units = self._scaled(state)
        law, divided = LAWS.load(self.gravity.softening).name, state.workspace
        x, v, mass = (
            components(state.position, units.position),
            components(state.velocity, _ldexp(1.0, -speed)),
            state.mass,
        )
        if self.gravity.per_species:
            return self._sums_by_length(state, rows_for(law, want), targets, x, v)
        rows = targets
        if divided:  # the kernel takes the first bodies for sources, as many as there are masses
            order = np.concatenate(divided)
            place = np.empty_like(order)
            place[order] = np.arange(len(order))
            # (x[:, order] would have the numbers of a body side by side, which costs eight tenths of the speed.)
            x, v = (np.take(each, order, axis=1) for each in (x, v))
            mass, rows = mass[divided.massive], place[targets]
        team = worth_dividing(self.team, len(rows) * len(mass))
        own = slice(*team.share(len(rows)))
        sums = np.empty((len(rows), SUMS), self.dtype)
        rows_for(law, want)(rows[own], x, v, mass * self.dtype.type(units.mass), length2, sums[own])
        state.report(len(rows) * len(mass))
        team.gather_rows(sums, team.bounds(len(rows)))
        return sums

    def _sums_by_length(
        self, state: HostState, kernel: Callable, targets: np.ndarray, x: np.ndarray, v: np.ndarray
    ) -> np.ndarray:
        """:meth:`_row_sums` if species have softening lengths."""
        _, units = self._scaled(state)
        sources = state.workspace.massive if state.workspace else np.arange(state.count)
        with np.errstate(over="ignore", under="ignore"):
            softening2 = np.ldexp(state.softening2, 2 * (math.frexp(units.position)[1] - 1))
        softening2 = np.maximum(softening2, self.dtype.type(_ldexp(1.0, 2 * NEAREST[self.precision])))
        mass = state.mass * self.dtype.type(units.mass)
        team = worth_dividing(self.team, len(targets) * len(sources))
        own = slice(*team.share(len(targets)))
        sums = np.empty((len(targets), SUMS), self.dtype)
        sums[own] = sums_by_length(kernel, targets[own], sources, x, v, mass, softening2, state.report)
        team.gather_rows(sums, team.bounds(len(targets)))
        return sums

    def _run(self, state: State, potential: bool) -> None:
        """The accelerations of all bodies, or the potential."""
        assert isinstance(state, HostState)
        divided = state.workspace
        if self.gravity.per_species:
            self._run_rows(state, potential, np.arange(state.count))
        elif divided is None:
            self._run_pairs(state, potential, state.position, state.mass, state.acceleration, state.potential)
        else:
            massive, massless = divided
            a, phi = state.acceleration[massive], state.potential[massive]
            if len(massive):
                self._run_pairs(state, potential, state.position[massive], state.mass[massive], a, phi)
            self._run_rows(state, potential, massless)
            if potential:
                state.potential[massive] = phi
            else:
                state.acceleration[massive] = a
        if potential:
            mark_coincident(state, self.gravity, self._scaled(state)[1], NEAREST[self.precision])

    def _run_rows(self, state: HostState, potential: bool, targets: np.ndarray) -> None:
        """The accelerations of some bodies, or the potential, row by row."""
        sums = self._row_sums(state, Want.POTENTIAL if potential else Want.ACCELERATION, targets)
        _, units = self._scaled(state)
        if potential:
            state.potential[targets] = sums[:, 6] * self.dtype.type(units.potential)
        else:
            state.acceleration[targets] = sums[:, : state.dimensions] * self.dtype.type(units.acceleration)

    def _run_pairs(
        self, state: HostState, potential: bool, position: np.ndarray, mass: np.ndarray, acceleration: np.ndarray,
        phi: np.ndarray,
    ) -> None:  # fmt: skip
        """Each pair of the bodies with these positions and masses once, to ``acceleration`` or to ``phi``."""
        count = len(mass)
        team = worth_dividing(self.team, count**2)
        number, _, _ = Tiles.shape(count, self.dtype)
        shares = share_count(number, MOST_SHARES)
        own = Shares(*team.share(shares), shares)
        if self._tiles is None or self._made_for != (count, own):
            self._made_for = count, own
            self._tiles = Tiles.allocate(count, self.dtype, own)
        tiles = self._tiles
        law = LAWS.load(self.gravity.softening).name
        gravitate = gravitate_for(law, position.shape[1], potential)
        length2, units = self._scaled(state)
        pack(position, mass, units, tiles)
        rounds = list(tiles.rounds(own))
        for first, last in rounds:
            gravitate(count, first, last, own, length2, tiles)
            state.report(count**2 * (last - first) // rounds[-1][1])
        add_shares(own, tiles)
        bounds = [own.tile(share, number) for share in team.bounds(shares)]
        size = -(-count // number)
        slot = 0
        if team.size > 1:
            slot = own.last - own.first
            nodes = [first - own.first for first, _ in cover(own.first, own.last)]
            kept = slice(3, 4) if potential else slice(position.shape[1])
            sums = tiles.sums_j[:, :, kept, :size]
            total = add_over_ranks(team, shares, sums[:, nodes].swapaxes(0, 1), bounds)
            sums[bounds[team.rank] : bounds[team.rank + 1], slot] = total
        unpack(bounds[team.rank], bounds[team.rank + 1], slot, tiles, units, potential, acceleration, phi)
        team.gather_rows(phi if potential else acceleration, [min(count, size * bound) for bound in bounds])

    def _scaled(self, state: HostState) -> tuple[Any, Units]:
        """The softening length squared in the kernel's units, and these units."""
        length = _exponent(state.position) - EXTENT[self.precision]
        mass = _exponent(state.mass)
        real, G = self.dtype.type, self.gravity.G
        length2 = max(_ldexp(self.gravity.length2, -2 * length), _ldexp(1.0, 2 * NEAREST[self.precision]))
        units = Units(
            position=_ldexp(1.0, -length),
            mass=_ldexp(1.0, -mass),
            acceleration=_ldexp(G * missing_factor(real), mass - 2 * length),
            potential=_ldexp(G, mass - length),
        )
        return real(length2), units

    @classmethod
    def bytes_needed(cls, particles: int, precision: str) -> int:
        return super().bytes_needed(particles, precision) + Tiles.bytes_needed(particles, np.dtype(precision))


def mark_coincident(
    state: Any, gravity: Gravity, units: Units, nearest: int, targets: np.ndarray | slice = slice(None)
) -> None:
    """Make the potential of bodies in the same place minus infinity, if there is no softening: the kernels take
    2^``nearest`` for their distance. ``state`` is anything with position, mass and potential."""
    if gravity.length2 or not units.potential:
        return
    least = float(state.mass[state.mass > 0].min(initial=np.inf)) * units.mass * units.potential
    if float(state.potential[targets].min()) > -0.5 * _ldexp(least, -nearest):
        return
    _, place = np.unique(state.position + 0.0, axis=0, return_inverse=True)  # + 0.0: -0 is 0
    massive = state.mass > 0
    others = np.bincount(place.ravel(), massive)[place.ravel()] - massive
    state.potential[targets] = np.where(others[targets] > 0, -np.inf, state.potential[targets])


def _exponent(values: np.ndarray) -> int:
    """e with max |values| in [2^(e-1), 2^e); 0 if all values are zero or one is not finite."""
    largest = max(float(values.max()), -float(values.min()))
    return math.frexp(largest)[1] if 0 < largest < math.inf else 0


def _ldexp(number: float, power: int) -> float:
    """``number`` times 2 to the power ``power``; infinity beyond float64's range."""
    try:
        return math.ldexp(number, power)
    except OverflowError:
        return math.inf
