"""The kernel of ``gpu-symmetric``: the loops of a warp over its rows and columns, and what limits their speed.

Issue slots per pair, that is per two interactions (float32, 3-D, counted in the machine code for sm_90): 3 subtractions, 3
multiply-adds for r², 1 reciprocal square root, 4 multiplications for its cube and the masses, 6 multiply-adds for the two
sums, and with 18 bodies per thread 0.4 for the shuffles and 0.1 for the loop counter: 17.5 in total. Two interactions of
``gpu-unrolled`` take 27.5. With these slots alone an H200 would compute 3.8e12 interactions/s.

The rest of the time is lost to conflicts of register banks. There are two banks, each delivers one number per clock, and a
multiply-add of three different numbers takes two clocks, unless one of them is in the operand cache, which holds operands
of the warp's last instruction. The six multiply-adds of the sums are of this kind. The assembler chooses their order, and
2.9 of them wait for a bank: 20.4 clocks per pair; measured are 21.2. (For 500 variants of this loop the measured time is
1.0 to 1.07 times slots plus waits.) An order with almost no waits takes 20.0. The banks
are the reason for three choices:

- few warps (:func:`resident_warps`), since the operand cache is lost when the scheduler changes to another warp;
- only the columns are loaded by 128 bits. A row loaded like this would have its x, y and z in the same banks as the
  column's, and each subtraction would take two clocks (predicted from the machine code: 3 clocks more per pair);
- the order of the sums, of the products in ``weigh``, and of the parts in ``difference`` (all in
  :mod:`nbody.forces.direct.gpu_interaction`) has the fewest waits of 250 variants: 3 % (float32) and 5 % (mixed) faster than
  the natural order.
"""

from functools import cache
from typing import Any

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.forces.direct.gpu_interaction import interaction, loading, passing_on
from nbody.forces.direct.gpu_triangle import LANES, PairTiling, first_unit, units_before
from nbody.forces.gpu_engine import Shape
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.state import Outputs

REDUCE_EVERY = 1024
"""A row's sum in registers is added to its total after this number n of columns: errors grow with √n + √(N/n), not √N.
(A column's sum covers one tile; :func:`~nbody.forces.direct.gpu_pair_sums.sum_kernel` adds these sums in float64.)"""


def resident_warps(bodies: int) -> int:
    """Warps per multiprocessor for a kernel with ``bodies`` bodies per thread: three for each of the four schedulers, with
    168 registers per thread, or two, with 255. More warps are slower: a scheduler that changes warps loses the operand
    cache. H200, N = 262144, 8 bodies per thread: 2.60e12 interactions/s with 20 warps, 2.81e12 with 16, 2.86e12 with
    12."""
    return 12 if bodies <= 14 else 8


def masses_of(particles: Particles, gravity: Gravity, real: type = np.float32) -> str:
    """How the kernel weights a pair:

    - ``equal``: all masses are equal; no weights, the sums are multiplied by the mass at the end.
    - ``product``: by m_i m_j (first by one, then by the other), and the sums are divided by the body's own mass at the
      end: the two forces of a pair are equal and opposite to the last bit.
    - ``separate``: by m_j for i and by m_i for j. Used if a mass is zero, or if m_i m_j / distance³ of the farthest pair or
      the sum over the closest pairs might leave the range of ``real``.
    """
    smallest, largest = particles.mass.min(), particles.mass.max()
    if smallest == largest:
        return "equal"
    margin = 1e8  # the bodies may spread to some 400 times their extent
    range_ = np.finfo(real)
    with np.errstate(over="ignore", divide="ignore"):
        far = max(np.ptp(particles.position, axis=0).max(), 1e-30)
        near = gravity.shortest if gravity.length2 else 1e-6 * far
        weakest = min(smallest, smallest**2) / far**3
        strongest = particles.count * max(largest, largest**2) / np.float64(near) ** 3
        fits = weakest > margin * float(range_.tiny) and strongest < float(range_.max) / margin
        if gravity.G:  # the sums are multiplied by G/m
            fits = fits and range_.tiny < gravity.G / largest and gravity.G / smallest < range_.max
    return "product" if fits else "separate"


@cache
def build(shape: Shape, tiling: PairTiling, masses: str) -> Any:
    """The pair kernel for a law, a precision, 2 or 3 dimensions, a tiling and a result of :func:`masses_of`.

    It is ``kernel(body, rows, columns, length2, first, run, runs, quotient, remainder)``, in blocks of ``tiling.chunk``
    threads: body (N, 4) and rows (blocks + tiles, 4, ``tiling.tile``) in the state's dtype, columns (tiles, 4, W) and
    length2 in the pairs', a number or, if each body has a softening length, (N,). The blocks compute the runs from ``run``
    on, of ``runs``; ``first`` is the tile in which these begin, and body ``first`` · T the first of the columns; quotient
    and remainder as in :attr:`~nbody.forces.direct.gpu_triangle.PairWork.run_units`.
    """
    real, potential, mixed, per_species = shape.real, shape.potential, shape.mixed, shape.per_species
    energy = shape.outputs == Outputs.ENERGY
    warps, bodies, chunk_size, tile_size = *tiling, tiling.chunk, tiling.tile
    wide = np.float64 if mixed else real
    reduce_every = chunk_size if mixed else REDUCE_EVERY
    # In 2-D the small kernel has registers for 16 warps anyway. With the energy it must be limited to them (126 registers
    # instead of 140 for the lecture's disc, without spilling): both kernels are launched with the same number of blocks.
    roomy = energy and shape.flat and real is np.float32 and not mixed and bodies <= 10
    resident = 16 if roomy else resident_warps(bodies)
    row_sums, column_sums = 4 if potential else 3, 4 if shape.outputs == Outputs.POTENTIAL else 3
    load, pass_on = loading(shape, masses), passing_on(shape, masses)
    interact, interact_with_self = (interaction(shape, bodies, masses, with_itself) for with_itself in (False, True))
    before, first_of = compute.device_function(units_before), compute.device_function(first_unit)

    @compute.kernel("gpu", **compute.bounded(chunk_size, resident // warps))
    def accelerate_pairs(body, rows, columns, length2, first, run, runs, quotient, remainder):
        tile_j = cuda.shared.array((chunk_size, 4), real, alignment=16)  # x y z m of the chunk's columns
        low = cuda.shared.array((3, chunk_size if mixed or per_species else 1), real)
        sums_j = cuda.shared.array((4, chunk_size), real)  # the sums of the columns of the chunk
        total = cuda.shared.array((4, tile_size), wide)  # the sums of the rows
        row, sums_i = cuda.local.array((7, bodies), real), cuda.local.array((4, bodies), real)  # the rows, in registers
        t = cuda.threadIdx.x
        lane, warp = t % LANES, t // LANES
        chunks = (body.shape[0] + chunk_size - 1) // chunk_size
        unit = first_of(run + cuda.blockIdx.x, runs, quotient, remainder)
        stop = first_of(run + cuda.blockIdx.x + 1, runs, quotient, remainder)
        tile = first
        while unit < stop:
            while before(tile + 1, chunks, bodies) <= unit:
                tile += 1
            for k in range(bodies):
                i = tile * tile_size + k * chunk_size + t
                row[0, k], row[1, k], row[2, k], row[3, k], row[4, k], row[5, k], row[6, k] = load(body, length2, i)
                for c in range(4):
                    sums_i[c, k] = real(0)
                    total[c, k * chunk_size + t] = wide(0)
            chunk = tile * bodies + unit - before(tile, chunks, bodies)
            end = min(chunks, chunk + stop - unit)
            unit += end - chunk
            while chunk < end:
                j = chunk * chunk_size + t
                tile_j[t, 0], tile_j[t, 1], tile_j[t, 2], tile_j[t, 3], p, q, r = load(body, length2, j)
                if mixed:
                    low[0, t], low[1, t], low[2, t] = p, q, r
                if per_species:
                    low[0, t] = p
                for c in range(4):
                    sums_j[c, t] = real(0)
                cuda.syncthreads()
                for shift in range(warps):
                    j_local = (warp + shift) % warps * LANES + lane
                    if mixed:
                        p, q, r = low[0, j_local], low[1, j_local], low[2, j_local]
                    if per_species:
                        p = low[0, j_local]
                    column = tile_j[j_local, 0], tile_j[j_local, 1], tile_j[j_local, 2], tile_j[j_local, 3], p, q, r
                    sums = sums_j[0, j_local], sums_j[1, j_local], sums_j[2, j_local], sums_j[3, j_local]
                    passed, every = np.uint32(0), np.uint32(LANES)  # columns; a Python int would have 64 bits
                    if potential and shift == 0 and chunk < (tile + 1) * bodies:
                        sums = interact_with_self(row, sums_i, column, sums, length2, chunk - tile * bodies)
                        column, sums = pass_on(column, sums, (lane + 1) % LANES)
                        passed = np.uint32(passed + np.uint32(1))
                    while passed != every:
                        sums = interact(row, sums_i, column, sums, length2, 0)
                        column, sums = pass_on(column, sums, (lane + 1) % LANES)
                        passed = np.uint32(passed + np.uint32(1))
                    sums_j[0, j_local], sums_j[1, j_local], sums_j[2, j_local], sums_j[3, j_local] = sums
                    cuda.syncthreads()
                if chunk >= (tile + 1) * bodies and j < body.shape[0]:
                    for c in range(column_sums):
                        columns[tile - first, c, j - first * tile_size] = sums_j[c, t]
                chunk += 1
                if energy and chunk == min(end, (tile + 1) * bodies):  # the tile's own pairs are counted twice
                    for k in range(bodies):
                        sums_i[3, k] *= real(0.5)
                        total[3, k * chunk_size + t] *= wide(0.5)
                if chunk == end or chunk * chunk_size % reduce_every == 0:
                    for k in range(bodies):
                        for c in range(row_sums):
                            total[c, k * chunk_size + t] += sums_i[c, k]
                            sums_i[c, k] = real(0)
            for k in range(bodies):
                for c in range(row_sums):
                    rows[cuda.blockIdx.x + tile - first, c, k * chunk_size + t] = total[c, k * chunk_size + t]

    return accelerate_pairs
