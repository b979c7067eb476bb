"""The density around each body on the GPU: its nearest neighbours, by tiles of bodies that are near each other.

    keys ─ sort ─► tiles of 128 bodies along a Morton curve ─► a box around each tile ─► neighbours

A block of threads searches the neighbours of the bodies of one tile. It skips every tile whose box is farther away than the
neighbours that were found before. The order along the curve affects the speed only: ties are decided by the number of the
body, so the result has the same bits for any order. :func:`nbody.diagnostics.local_density` defines what is computed.
"""

import math
from functools import cache
from typing import Any

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.compute.gpu.gpu_sort import padded, sort
from nbody.compute.in_kernels.morton import key_for
from nbody.compute.in_kernels.reduction import block_reduction, keep_largest
from nbody.diagnostics.structure import NEIGHBOURS
from nbody.particles import Particles

TILE = 128
"""Bodies per tile, and threads per block."""

SLACK = 1.0 - 1e-6
"""The factor of the squared distance of a box: its rounding must not hide a body."""

NONE = np.uint64(0xFFFFFFFFFFFFFFFF)


class DeviceDensity:
    """Computes the local density of all bodies of a state on the device.

    Args:
        particles: the bodies at the start, more than NEIGHBOURS. They set the scale of the keys, which affects the speed
            only.
        dtype: float32 or float64, that of the state.
    """

    def __init__(self, particles: Particles, dtype: np.dtype) -> None:
        count, centre = particles.count, np.zeros(3)
        centre[: particles.dimensions] = np.median(particles.position, axis=0)
        spread = float(np.median(np.abs(particles.position - centre[: particles.dimensions])))
        # A power of two rounds nothing; in SI units the squares of distances would overflow float32.
        self._scale = 2.0 ** round(np.log2(spread)) if spread > 0 and np.isfinite(spread) else 1.0
        self._centre = tuple(centre)
        self._tiles = -(-count // TILE)
        self._kernels = build(np.dtype(dtype), particles.dimensions)
        with compute.out_of_memory(f"the neighbours of {count} particles", padded(count) * 8 + count * 40):
            self._keys = cuda.device_array(padded(count), np.uint64)
            self._sorted_bodies = cuda.device_array((count, 4), dtype)
            self._boxes = cuda.device_array((self._tiles, 2, 3), dtype)

    def launch(self, position: Any, body: Any, density: Any, stream: Any) -> None:
        """Compute ``density`` (N,) float64 from ``position`` (N, 3) and the masses of ``body`` (N, 4), on the device."""
        make_keys, gather, make_boxes, search = self._kernels
        make_keys[-(-len(self._keys) // TILE), TILE, stream](position, *self._centre, 1 / self._scale, self._keys)
        sort(self._keys, stream)
        gather[self._tiles, TILE, stream](position, body, self._keys, 1 / self._scale, self._sorted_bodies)
        make_boxes[-(-3 * self._tiles // TILE), TILE, stream](self._sorted_bodies, self._boxes)
        search[self._tiles, TILE, stream](self._sorted_bodies, self._keys, self._boxes, self._scale, body, density)


@cache
def build(dtype: np.dtype, dimensions: int) -> tuple[Any, Any, Any, Any]:
    """The kernels for positions in ``dtype``, 2-D or 3-D: keys, sorted copies, boxes and neighbours."""
    real = dtype.type
    factor = np.pi if dimensions == 2 else 4 / 3 * np.pi
    key_of = key_for(dimensions, compute.exact_function)

    @compute.exact_function
    def cell_of(x, centre, inverse_scale):
        """The index of a coordinate on its axis, 0 to 1023: bodies far out are crowded together."""
        s = (np.float64(x) - centre) * inverse_scale
        u = s / (1.0 + abs(s)) if abs(s) < 1e30 else 0.0
        return np.uint64(min(max(512.0 * (1.0 + u), 0.0), 1023.0))

    @compute.kernel("gpu")
    def make_keys(position, cx, cy, cz, inverse_scale, keys):
        """The Morton key of each body's cell, above the body's number; ``keys`` (padded) uint64 end with :data:`NONE`."""
        i = cuda.grid(1)
        if i >= keys.shape[0]:
            return
        key = NONE
        if i < position.shape[0]:
            x = cell_of(position[i, 0], cx, inverse_scale)
            y = cell_of(position[i, 1], cy, inverse_scale)
            z = cell_of(position[i, 2], cz, inverse_scale)
            key = (key_of(x, y, z) << np.uint64(32)) | np.uint64(i)
        keys[i] = key

    @compute.kernel("gpu")
    def gather(position, body, keys, inverse_scale, sorted_bodies):
        """The scaled positions and the masses in the order of the keys, (N, 4)."""
        q = cuda.grid(1)
        if q < sorted_bodies.shape[0]:
            i = np.int64(keys[q] & np.uint64(0xFFFFFFFF))
            for k in range(3):
                sorted_bodies[q, k] = position[i, k] * real(inverse_scale)
            sorted_bodies[q, 3] = body[i, 3]

    @compute.kernel("gpu")
    def make_boxes(sorted_bodies, boxes):
        """The lowest and the highest coordinates of each tile, (T, 2, 3): a thread per tile and axis."""
        thread = cuda.grid(1)
        tile, k = thread // 3, thread % 3
        if tile >= boxes.shape[0]:
            return
        low = high = sorted_bodies[tile * TILE, k]
        for q in range(tile * TILE + 1, min((tile + 1) * TILE, sorted_bodies.shape[0])):
            low, high = min(low, sorted_bodies[q, k]), max(high, sorted_bodies[q, k])
        boxes[tile, 0, k], boxes[tile, 1, k] = low, high

    return make_keys, gather, make_boxes, _build_search(real, dimensions, factor)


def _build_search(real: type, dimensions: int, factor: float) -> Any:
    """The kernel that searches the neighbours: one tile of bodies per block."""
    last, reduce_to_largest = NEIGHBOURS - 1, block_reduction(TILE, keep_largest)

    @compute.exact_function
    def gap2(low_a, high_a, low_b, high_b):
        """The squared distance of two intervals."""
        gap = max(max(low_b - high_a, low_a - high_b), real(0))
        return gap * gap

    @compute.exact_function
    def insert_nearer(tile, ids, size, x, y, z, own, distance2, nearest):
        """Insert those of the first ``size`` bodies of a tile in shared memory that are near enough to (x, y, z) into the
        lists of the nearest ones, which are sorted by distance, then by number. ``own`` is left out."""
        for s in range(size):
            dx, dy, dz = tile[s, 0] - x, tile[s, 1] - y, tile[s, 2] - z
            d2 = dx * dx + dy * dy + dz * dz
            closer = d2 < distance2[last] or (d2 == distance2[last] and ids[s] < nearest[last])
            if closer and ids[s] != own:
                distance2[last], nearest[last] = d2, ids[s]
                for k in range(last):
                    a, b = last - 1 - k, last - k
                    closer = distance2[b] < distance2[a]
                    if closer or (distance2[b] == distance2[a] and nearest[b] < nearest[a]):
                        distance2[a], distance2[b] = distance2[b], distance2[a]
                        nearest[a], nearest[b] = nearest[b], nearest[a]

    @compute.kernel("gpu")
    def search(sorted_bodies, keys, boxes, scale, body, density):
        """The density (N,) float64 around each body of a tile, a thread per body: from the tile itself, then from each tile
        whose box is near enough to that of the own one, 128 boxes at a time."""
        tile = cuda.shared.array((TILE, 3), real)
        ids = cuda.shared.array(TILE, np.uint32)
        farthest = cuda.shared.array(TILE, real)
        is_near = cuda.shared.array(TILE, np.int32)
        distance2, nearest = cuda.local.array(NEIGHBOURS, real), cuda.local.array(NEIGHBOURS, np.uint32)
        t, own_tile = cuda.threadIdx.x, cuda.blockIdx.x
        count, tiles = sorted_bodies.shape[0], boxes.shape[0]
        q = min(own_tile * TILE + t, count - 1)  # threads past the end repeat the last body
        x, y, z = sorted_bodies[q, 0], sorted_bodies[q, 1], sorted_bodies[q, 2]
        own = np.uint32(keys[q] & np.uint64(0xFFFFFFFF))
        for k in range(NEIGHBOURS):
            distance2[k], nearest[k] = real(np.inf), np.uint32(0xFFFFFFFF)
        tile[t, 0], tile[t, 1], tile[t, 2], ids[t] = x, y, z, own
        cuda.syncthreads()
        insert_nearer(tile, ids, min(TILE, count - own_tile * TILE), x, y, z, own, distance2, nearest)
        groups = (tiles + TILE - 1) // TILE
        for turn in range(groups):
            group = (own_tile // TILE + turn) % groups  # the own tile's group first: it has the nearest tiles
            farthest[t] = distance2[last]
            reduce_to_largest(farthest, t)
            other = group * TILE + t
            close = other < tiles and other != own_tile
            if close:
                d2 = real(0)
                for k in range(3):
                    d2 += gap2(boxes[own_tile, 0, k], boxes[own_tile, 1, k], boxes[other, 0, k], boxes[other, 1, k])
                close = d2 * real(SLACK) <= farthest[0]
            is_near[t] = 1 if close else 0
            cuda.syncthreads()
            for s in range(TILE):
                if is_near[s]:
                    other = group * TILE + s
                    j = min(other * TILE + t, count - 1)
                    tile[t, 0], tile[t, 1], tile[t, 2] = sorted_bodies[j, 0], sorted_bodies[j, 1], sorted_bodies[j, 2]
                    ids[t] = np.uint32(keys[j] & np.uint64(0xFFFFFFFF))
                    cuda.syncthreads()
                    d2 = gap2(x, x, boxes[other, 0, 0], boxes[other, 1, 0])
                    d2 += gap2(y, y, boxes[other, 0, 1], boxes[other, 1, 1])
                    d2 += gap2(z, z, boxes[other, 0, 2], boxes[other, 1, 2])
                    if d2 * real(SLACK) <= distance2[last]:
                        insert_nearer(tile, ids, min(TILE, count - other * TILE), x, y, z, own, distance2, nearest)
                    cuda.syncthreads()
        if own_tile * TILE + t < count:
            mass = 0.0
            for k in range(last):  # neither the body itself nor the last neighbour counts
                if nearest[k] != np.uint32(0xFFFFFFFF):
                    mass += np.float64(body[nearest[k], 3])
            r = math.sqrt(np.float64(distance2[last])) * scale
            volume = factor * r * r if dimensions == 2 else factor * r * r * r
            density[own] = mass / volume if volume > 0.0 else np.inf

    return search
