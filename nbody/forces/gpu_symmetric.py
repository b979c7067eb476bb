"""Each pair once: by Newton's third law, one reciprocal square root serves both bodies of a pair.

A warp keeps 32 × BODIES bodies in registers, with their sums: the rows. 32 other bodies, the columns, pass by: in turn r
lane l meets column (l + r) mod 32. Their positions come from shared memory, one 128-bit load for BODIES pairs; their sums
travel from lane to lane by shuffles, three for BODIES pairs. After 32 turns every row has met every column and each
column's sum is back in its lane. The warps of a block take turns at the columns of a chunk, so that no two add to one sum
at a time. Which block works on what is the matter of :mod:`nbody.forces.gpu_triangle`.

Issue slots of a pair, two interactions (float32, 3-D, 8 bodies a thread): 3 subtractions, 3 multiply-adds for r², 1
reciprocal square root, 2 multiplications for its cube, 2 for the masses, 6 multiply-adds for the two sums; 0.5 for the
load and the shuffles, 0.75 for counting: 18.25, where two interactions of ``gpu-unrolled`` take 27.5.

A register bank gives one number a clock, so a multiply-add that reads three registers waits, unless one of them was an
operand of the instruction before it. That costs two more clocks a pair, and it is why the forms of ``masses`` differ by
more than their multiplications: "product" feeds one and the same number to both sums.
"""

from functools import cache
from typing import Any

import numpy as np

from nbody import gpu
from nbody.forces.gpu_engine import GpuEngine, Shape
from nbody.forces.gpu_triangle import (
    LANES,
    SLICES,
    Buffers,
    Tiling,
    build_sum,
    bytes_of_buffers,
    panels,
    units_before,
)
from nbody.gpu import cuda
from nbody.particles import Particles
from nbody.state.device import DeviceState

ALL = 0xFFFFFFFF
FOLD = 1024
"""Columns after which a row's sum in registers is added to its total, so that rounding errors grow with √1024, not √N."""


def masses_of(particles: Particles) -> str:
    """How the kernel weights a pair:

    - ``equal``: not at all; the sums are multiplied by the one mass in the end.
    - ``product``: by m_i m_j, and the sums are divided by the body's own mass in the end: sums of forces, equal and
      opposite to the last bit.
    - ``separate``: by m_j for i and by m_i for j; where a mass is zero, or so large or small that the product might leave
      float32's range.
    """
    smallest, largest = particles.mass.min(), particles.mass.max()
    if smallest == largest:
        return "equal"
    return "product" if smallest > 1e-12 and largest < 1e12 else "separate"


def build(shape: Shape, tiling: Tiling, masses: str) -> Any:
    """The kernel of the pairs, for a law, a precision, 2 or 3 dimensions, a tiling and a form of :func:`masses_of`."""
    law, real, flat, potential = shape.law, shape.real, shape.flat, shape.potential
    warps, bodies, chunk_size, tile_size = *tiling, tiling.chunk, tiling.tile
    twice = 2 * chunk_size
    nowhere = real(1e19) if real is np.float32 else real(1e153)  # 1/distance³ is zero
    before = gpu.device_function(units_before)

    @gpu.device_function
    def weigh(f, mi, mj):
        """The pair's factor f as i and as j feel it."""
        if masses == "equal":
            return f, f
        if masses == "product":
            f = f * mi * mj
            return f, f
        return f * mj, f * mi

    @gpu.device_function
    def load(body, i):
        """Body i; past the end one without mass, out of reach."""
        if i < body.shape[0]:
            return body[i, 0], body[i, 1], body[i, 2], body[i, 3]
        return nowhere, real(0), real(0), real(0)

    @cuda.jit(launch_bounds=chunk_size, **gpu.FAST)
    def accelerate_pairs(body, rows, columns, length2, first, last):
        near = cuda.shared.array((twice, 4), real, alignment=16)  # each 32 columns twice in a row: l + r needs no mod
        pull = cuda.shared.array((4, chunk_size), real)  # what the columns of the chunk felt so far
        total = cuda.shared.array((4, tile_size), real)  # what the rows felt so far
        x, y, z, m = (cuda.local.array(bodies, real), cuda.local.array(bodies, real),
                      cuda.local.array(bodies, real), cuda.local.array(bodies, real))  # fmt: skip
        ax, ay, az, phi = (cuda.local.array(bodies, real), cuda.local.array(bodies, real),
                           cuda.local.array(bodies, real), cuda.local.array(bodies, real))  # fmt: skip
        t = cuda.threadIdx.x
        lane, warp = t % LANES, t // LANES
        following = (lane + 1) % LANES
        chunks = (body.shape[0] + chunk_size - 1) // chunk_size
        start = before(first, chunks, bodies)
        units = before(last, chunks, bodies) - start
        unit = start + cuda.blockIdx.x * units // cuda.gridDim.x
        stop = start + (cuda.blockIdx.x + 1) * units // cuda.gridDim.x
        tile = first
        while unit < stop:
            while before(tile + 1, chunks, bodies) <= unit:
                tile += 1
            for k in range(bodies):
                x[k], y[k], z[k], m[k] = load(body, tile * tile_size + k * chunk_size + t)
                ax[k] = ay[k] = az[k] = phi[k] = real(0)
                for c in range(4):
                    total[c, k * chunk_size + t] = real(0)
            chunk = tile * bodies + unit - before(tile, chunks, bodies)
            end = min(chunks, chunk + stop - unit)
            unit += end - chunk
            while chunk < end:
                j = chunk * chunk_size + t
                slot = t + warp * LANES
                near[slot, 0], near[slot, 1], near[slot, 2], near[slot, 3] = load(body, j)
                for c in range(4):
                    near[slot + LANES, c] = near[slot, c]
                    pull[c, t] = real(0)
                cuda.syncthreads()
                for shift in range(warps):
                    group = (warp + shift) % warps
                    mine = group * LANES + lane
                    bx, by, bz, bphi = pull[0, mine], pull[1, mine], pull[2, mine], pull[3, mine]
                    s = np.uint32(group * 2 * LANES + lane)  # unsigned: a signed index may count from the end
                    last_turn = np.uint32(s + np.uint32(LANES))
                    while s != last_turn:
                        xj, yj, zj, mj = near[s, 0], near[s, 1], near[s, 2], near[s, 3]
                        for k in range(bodies):
                            dx, dy, dz = xj - x[k], yj - y[k], zj - z[k]
                            f, u = law(dx, dy, dz, length2)
                            fi, fj = weigh(f, m[k], mj)
                            ax[k] += fi * dx
                            bx -= fj * dx
                            by -= fj * dy
                            ay[k] += fi * dy
                            if not flat:
                                az[k] += fi * dz
                                bz -= fj * dz
                            if potential:
                                i = tile * tile_size + k * chunk_size + t
                                if i != chunk * chunk_size + group * LANES + s % LANES:
                                    phi[k] -= u * mj
                                    bphi -= u * m[k]
                        bx, by = cuda.shfl_sync(ALL, bx, following), cuda.shfl_sync(ALL, by, following)
                        if not flat:
                            bz = cuda.shfl_sync(ALL, bz, following)
                        if potential:
                            bphi = cuda.shfl_sync(ALL, bphi, following)
                        s = np.uint32(s + np.uint32(1))
                    pull[0, mine], pull[1, mine], pull[2, mine], pull[3, mine] = bx, by, bz, bphi
                    cuda.syncthreads()
                if chunk >= (tile + 1) * bodies and j < body.shape[0]:
                    for c in range(4):
                        columns[tile - first, j, c] = pull[c, t]
                chunk += 1
                if chunk == end or chunk * chunk_size % FOLD == 0:
                    for k in range(bodies):
                        at = k * chunk_size + t
                        total[0, at] += ax[k]
                        total[1, at] += ay[k]
                        total[2, at] += az[k]
                        total[3, at] += phi[k]
                        ax[k] = ay[k] = az[k] = phi[k] = real(0)
            for k in range(bodies):
                at = k * chunk_size + t
                for c in range(4):
                    rows[cuda.blockIdx.x + tile - first, at, c] = total[c, at]

    return accelerate_pairs


@cache
def pairs_kernel(shape: Shape, tiling: Tiling, masses: str) -> Any:
    """:func:`build`, kept for the rest of the process."""
    return build(shape, tiling, masses)


@cache
def sum_kernel(tiling: Tiling, masses: str, potential: bool) -> Any:
    """:func:`~nbody.forces.gpu_triangle.build_sum`, kept for the rest of the process."""
    return build_sum(tiling, masses, potential)


def tiling_for(count: int, precision: str) -> Tiling:
    """The tiling that was fastest on an H200: few warps a block share the work of a small N more evenly, many need fewer
    partial sums."""
    bodies = 8 if precision == "float32" else 4
    return Tiling(1 if count <= 32768 else 2 if count <= 131072 else 4, bodies)


class SymmetricEngine(GpuEngine):
    """Each pair once: Newton's third law, bodies in registers, sums that travel by shuffles."""

    name = "gpu-symmetric"
    build = staticmethod(build)

    def load(self, particles: Particles) -> DeviceState:
        """See :meth:`Engine.load`. Chooses how pairs are weighted, and takes memory for the partial sums."""
        state = super().load(particles)
        self.masses = masses_of(particles)
        self.tiling = tiling_for(state.count, self.precision)
        self.work = panels(state.count, self.tiling, self.dtype.itemsize, self._resident_blocks())
        self.buffers = Buffers(state.count, self.tiling, self.dtype, self.work)
        return state

    def _resident_blocks(self) -> int:
        """Blocks of the kernel that fit on the card at a time: one wave of them shares the work out evenly."""
        body, sums = np.empty((1, 4), self.dtype), np.empty((1, 1, 4), self.dtype)
        arguments = (body, sums, sums, self.dtype.type(0), np.int64(0), np.int64(0))
        kernel = pairs_kernel(self.shape(False), self.tiling, self.masses)
        return gpu.resident_blocks(kernel, arguments, self.tiling.chunk)

    def kernel(self, potential: bool, count: int) -> Any:
        """The kernel of the pairs and the one that adds their partial sums."""
        pairs = pairs_kernel(self.shape(potential), self.tiling, self.masses)
        return pairs, sum_kernel(self.tiling, self.masses, potential)

    def launch(self, kernel: Any, state: DeviceState, G: Any, length2: Any) -> None:
        """See :meth:`GpuEngine.launch`."""
        pairs, add = kernel
        rows, columns, threads = self.buffers.rows, self.buffers.columns, self.tiling.chunk
        sum_blocks = -(-4 * state.count // LANES)
        for panel in self.work:
            first, last, blocks = np.int64(panel.first), np.int64(panel.last), np.int64(panel.blocks)
            pairs[panel.blocks, threads, state.stream](state.body, rows, columns, length2, first, last)
            add[sum_blocks, (LANES, SLICES), state.stream](
                state.body, rows, columns, state.acceleration, G, first, last, blocks
            )

    @classmethod
    def bytes_needed(cls, particles: int, precision: str) -> int:
        """See :meth:`Engine.bytes_needed`: the state and the partial sums."""
        return super().bytes_needed(particles, precision) + bytes_of_buffers(
            particles, 4 if precision == "float32" else 8
        )
