"""The ``cpu`` engine: Numba, SIMD, each pair once, all cores. The kernel is in :mod:`nbody.forces.direct.cpu_pairs`."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbody.forces.compute_units import NEAREST, ComputeUnits, exponent, mark_coincident, power_of_two
from nbody.forces.direct.cpu_few import few_kernels
from nbody.forces.direct.cpu_pairs import gravitate_for, missing_factor
from nbody.forces.direct.cpu_rows import SUMS, components, rows_for, sums_by_length
from nbody.forces.direct.cpu_tiles import MOST_SEGMENTS, Segments, Tiles, add_segments, pack, unpack
from nbody.forces.engine import Engine, Memory
from nbody.forces.layers.sorted import acting
from nbody.forces.problem import Abilities, Problem
from nbody.law import LAWS
from nbody.parallel import Team
from nbody.parallel.segments import add_over_ranks, cover, segment_count, worth_dividing
from nbody.particles import Particles
from nbody.state import Outputs, State
from nbody.state.host import HostState

EXTENT = {"float32": 20, "float64": 60}
"""The kernel's unit of length makes the farthest coordinate nearly 2 to this power, its unit of mass makes the largest mass
nearly 1. Both are powers of two, so the scaling rounds nothing, and metres and kilograms, whose squares would overflow
float32, are as good as other units. In float64 the squares must be in the range of float32, in which the root is
estimated."""


FEW = 64
"""Up to so many bodies the sums are plain loops in float64. (64 bodies: 14 µs instead of 60 on one core; 96: even.)"""


@dataclass
class PairWorkspace:
    """What the engine keeps for a state: how many bodies act, and the tiles of their pairs.

    Attributes:
        acting: M: the bodies after the first M have no mass, and are many; N if there are few, or no others.
    """

    acting: int
    _tiles: Tiles | None = None
    _made_for: tuple[int, Segments] | None = None

    def tiles_for(self, count: int, dtype: np.dtype, segments: Segments) -> Tiles:
        """Tiles for ``count`` bodies and some segments, made at the first call."""
        if self._tiles is None or self._made_for != (count, segments):
            self._tiles, self._made_for = Tiles.allocate(count, dtype, segments), (count, segments)
        return self._tiles


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

    If species have softening lengths, each body sums over the others of each length (``cpu_rows``): each pair twice.
    Bodies without mass that come last are left out of the pairs if they are many (:mod:`nbody.forces.layers.massless`).
    """

    can = Abilities(
        compiled=True, outputs=Outputs.POTENTIAL | Outputs.JERK, potential="separate", targets=True, species=True,
        ranks=True, massless=True, own_units=True, few=FEW, systems=True, auto_range=range(1, 1 << 62),
    )  # fmt: skip
    state_type = HostState

    def _prepare(self, state: State, particles: Particles) -> None:
        assert isinstance(state, HostState)
        state.workspace = PairWorkspace(acting(state.mass))

    def _work_per_evaluation(self, state: State) -> int:
        return state.count * int(state.workspace.acting)

    def _rehearse(self, state: State, outputs: Outputs) -> None:
        if self._is_few(state) or self.gravity.per_species or Outputs.JERK in outputs:
            return
        x = np.arange(2.0 * state.dimensions).reshape(2, -1)
        two = self.load(Particles(np.ones(2), x, x))  # a kernel that is compiled already would write
        assert isinstance(two, HostState)
        self._run_pairs(two, False, 2)
        if Outputs.ENERGY in outputs:
            self._run_pairs(two, True, 2)

    def _compute(self, state: State, outputs: Outputs) -> None:
        assert isinstance(state, HostState)
        if Outputs.JERK not in outputs:
            self._run(state, potential=False)
        elif self._is_few(state):
            self._run_few(state, Outputs.JERK)
        else:
            self._run_rows(state, Outputs.JERK, np.arange(state.count))
        if Outputs.ENERGY in outputs:
            self._compute_potential(state, outputs)

    def _compute_potential(self, state: State, outputs: Outputs) -> None:
        self._run(state, potential=True)

    def _compute_targets(self, state: State, outputs: Outputs, targets: np.ndarray) -> None:
        assert isinstance(state, HostState)
        self._run_rows(state, outputs, targets)
        if Outputs.ENERGY in outputs:
            mark_coincident(state, self.gravity, self._scaled(state)[1], NEAREST[self.precision], targets)

    def _run_rows(self, state: HostState, outputs: Outputs, targets: np.ndarray, accelerations: bool = True) -> None:
        """The ``outputs`` for some bodies, row by row; perhaps without accelerations."""
        _, units = self._scaled(state)
        speed = exponent(state.velocity) if Outputs.JERK in outputs else 0
        sums, d, real = self._row_sums(state, outputs, targets, speed), state.dimensions, self._dtype.type
        if accelerations:
            state.acceleration[targets] = sums[:, :d] * real(units.acceleration)
        if Outputs.JERK in outputs:
            factor = units.acceleration * units.position * 2.0**speed
            [jerk] = state.values("jerk", copy=False)
            jerk[targets] = sums[:, 3 : 3 + d] * real(factor)
        if Outputs.ENERGY in outputs:
            state.potential[targets] = sums[:, 6] * real(units.potential)

    def _row_sums(self, state: HostState, outputs: Outputs, targets: np.ndarray, speed: int = 0) -> np.ndarray:
        """The sums (T, 7) over the bodies that act for each target, in the kernel's units; that of velocity is 2^speed."""
        length2, units = self._scaled(state)
        kernel = rows_for(LAWS.load(self.gravity.softening).name, outputs, self.precision)
        x, v = components(state.position, units.position), components(state.velocity, power_of_two(1.0, -speed))
        mass = (state.mass * self._dtype.type(units.mass))[: state.workspace.acting]
        team = worth_dividing(self._team, len(targets) * len(mass))
        own = slice(*team.own_range(len(targets)))
        sums = np.empty((len(targets), SUMS), self._dtype)
        if self.gravity.per_species:
            softening2 = self._scaled_lengths(state, units)
            sums[own] = sums_by_length(kernel, targets[own], x, v, mass, softening2, state.progress.report)
        else:
            kernel(targets[own], x, v, mass, length2, sums[own])
            state.progress.report(len(targets) * len(mass))
        team.gather_rows(sums, team.bounds(len(targets)))
        return sums

    def _scaled_lengths(self, state: HostState, units: ComputeUnits) -> np.ndarray:
        """The softening length squared of each body in the kernel's units."""
        with np.errstate(over="ignore", under="ignore"):
            softening2 = state.column("softening2")
            softening2 = np.ldexp(softening2, 2 * (math.frexp(units.position)[1] - 1))
        found: np.ndarray = np.maximum(softening2, self._dtype.type(power_of_two(1.0, 2 * NEAREST[self.precision])))
        return found

    def _run(self, state: State, potential: bool) -> None:
        """The accelerations of all bodies, or the potential: pairs of those that act, and the rows of the others."""
        assert isinstance(state, HostState)
        if self._is_few(state):
            self._run_few(state, Outputs.POTENTIAL if potential else Outputs.ACCELERATION)
            return
        first = 0 if self.gravity.per_species else int(state.workspace.acting)
        if first:
            self._run_pairs(state, potential, first)
        if first < state.count:
            outputs = Outputs.POTENTIAL if potential else Outputs.ACCELERATION
            self._run_rows(state, outputs, np.arange(first, state.count), not potential)
        if potential:
            mark_coincident(state, self.gravity, self._scaled(state)[1], NEAREST[self.precision])

    def _is_few(self, state: State) -> bool:
        return state.count <= FEW and not self.gravity.per_species

    def _run_few(self, state: State, outputs: Outputs) -> None:
        """The accelerations of few bodies, these with the jerk, or the potential."""
        assert isinstance(state, HostState)
        kernels, law = few_kernels(self.gravity.softening, state.dimensions), (self.gravity.G, self.gravity.length2)
        if outputs is Outputs.JERK:
            [jerk] = state.values("jerk", copy=False)
            kernels.jerks(state.position, state.velocity, state.mass, *law, state.acceleration, jerk)
        elif outputs is Outputs.POTENTIAL:
            kernels.potentials(state.position, state.mass, *law, state.potential)
        else:
            kernels.accelerations(state.position, state.mass, *law, state.acceleration)
        state.progress.report(self._work_per_evaluation(state))

    def _run_pairs(self, state: HostState, potential: bool, count: int) -> None:
        """Each pair of the first ``count`` bodies once."""
        position, mass = state.position[:count], state.mass[:count]
        acceleration, phi = state.acceleration[:count], state.potential[:count]
        team = worth_dividing(self._team, count**2)
        number, _, _ = Tiles.shape(count, self._dtype)
        segments = segment_count(number, MOST_SEGMENTS)
        own = Segments(*team.own_range(segments), segments)
        tiles = state.workspace.tiles_for(count, self._dtype, own)
        law = LAWS.load(self.gravity.softening).name
        gravitate = gravitate_for(law, position.shape[1], potential, self.precision)
        length2, units = self._scaled(state)
        pack(position, mass, units, tiles)
        rounds = list(tiles.rounds(own))
        for first, last in rounds:
            gravitate(count, first, last, own, length2, tiles)
            state.progress.report(count**2 * (last - first) // rounds[-1][1])
        add_segments(own, tiles)
        bounds = [own.tile(segment, number) for segment in team.bounds(segments)]
        size, slot = -(-count // number), 0
        if team.size > 1:
            slot = own.last - own.first
            kept = slice(3, 4) if potential else slice(position.shape[1])
            _add_over_ranks(team, own, tiles.sums_j[:, :, kept, :size], bounds)
        unpack(bounds[team.rank], bounds[team.rank + 1], slot, tiles, units, potential, acceleration, phi)
        team.gather_rows(phi if potential else acceleration, [min(count, size * bound) for bound in bounds])

    def _scaled(self, state: HostState) -> tuple[Any, ComputeUnits]:
        """The softening length squared in the kernel's units, and these units."""
        real, length = self._dtype.type, exponent(state.position) - EXTENT[self.precision]
        units = ComputeUnits.of(length, exponent(state.mass), self.gravity.G, missing_factor(real))
        length2 = power_of_two(self.gravity.length2, -2 * length)
        return real(max(length2, power_of_two(1.0, 2 * NEAREST[self.precision]))), units

    @classmethod
    def memory(cls, problem: Problem) -> Memory:
        tiles = Tiles.bytes_needed(problem.particles, np.dtype(problem.precision))
        return Memory(super().memory(problem).own + tiles)


def _add_over_ranks(team: Team, own: Segments, sums: np.ndarray, bounds: list[int]) -> None:
    """Write the sums over the segments of all ranks into the slot after those of this rank, for its tiles."""
    nodes = [first - own.first for first, _ in cover(own.first, own.last)]
    total = add_over_ranks(team, own.number, sums[:, nodes].swapaxes(0, 1), bounds)
    sums[bounds[team.rank] : bounds[team.rank + 1], own.last - own.first] = total
