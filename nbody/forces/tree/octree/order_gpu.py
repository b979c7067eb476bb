"""The order of the bodies on the GPU: the box around them, their Morton keys, a sort, and the bodies in that order.

A few bodies far from all others would make the box so large that the digits of a key no longer tell the others apart. So
there are two boxes. The inner one is :data:`MARGIN` times as large as the extents of samples of the bodies, of some hundred
samples those among the smallest eighth, which outliers are not in; if all bodies are in it, it ends where they do. Bodies
outside are outliers. Their keys are digits of the box around all bodies, after a leading 1, so that outliers are sorted
behind the others and are a tree of their own.

The stable radix sort is from NVIDIA's CCCL (its Python package ``cuda-cccl``, module ``cuda.compute``). One H200, keys of 63
bits with indices of 32: 0.16 ms for 1M bodies, 1.4 ms for 16.7M. The library compiles its kernels in each process, which
takes 5 s; they are kept in the folder for caches instead. The first time a thread waits for the library, and other kernels
are compiled meanwhile.
"""

import contextlib
import hashlib
import math
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.compute.compiling.announce import compiling
from nbody.compute.compiling.cache import kernels, load_bytes, store_bytes
from nbody.compute.in_kernels.morton import key_for
from nbody.compute.in_kernels.reduction import block_reduction
from nbody.errors import DeviceError
from nbody.install import install_extra

LEVELS = 21
"""The deepest level: 21 digits of 3 bits fit a key of 63 bits."""

LOW, CELLS, LENGTH, MASS, ACCELERATION, POTENTIAL, ALL_LOW, ALL_CELLS, BOX = 0, 3, 4, 5, 6, 7, 8, 11, 12
"""Places in ``box``, float64, and its length: the lowest corner of the inner box (3 numbers), key cells per length; the
factors of lengths and masses (powers of 2 that make the inner box and the total mass about 1), and those of accelerations
and potentials, which undo them; the lowest corner of all bodies (3), and key cells per length there."""

MARGIN = 32.0
"""The extent of a sample of N/256 bodies, times this, is at least that of N bodies for densities that fall like r^-4.2 or
faster; and it costs 5 of the 21 levels where there are outliers."""

THREADS = 64 if compute.SIMULATED else 256
PARTS = THREADS
"""Blocks that find the bounds, each of a sample of the bodies."""


@cache
def bounds_kernels() -> tuple[Any, Any]:
    """``bounds(body, parts)``: the extent and mass of each block's bodies, (PARTS, 8); ``frame(parts, box, G, widest)``: the
    boxes, the inner one at least 1/``widest`` of the other one (with more, powers of coordinates would overflow)."""

    @compute.device_function
    def join(shared, t, other):
        """The extent and the mass of the bodies of two rows."""
        for k in range(3):
            shared[t, k] = min(shared[t, k], shared[other, k])
            shared[t, 3 + k] = max(shared[t, 3 + k], shared[other, 3 + k])
        shared[t, 6] += shared[other, 6]

    reduce = block_reduction(THREADS, join)

    @compute.device_function
    def power_of_two(x):
        """A power of 2 that makes x about 1; 1 if x is not a positive number."""
        if 0.0 < x < 1e300:
            _, exponent = math.frexp(x)
            return math.ldexp(1.0, -exponent)
        return 1.0

    @compute.kernel("gpu")
    def bounds(body, parts):
        shared = cuda.shared.array((THREADS, 7), np.float64)
        t, n = cuda.threadIdx.x, body.shape[0]
        values = cuda.local.array(7, np.float64)
        for k in range(3):
            values[k], values[3 + k] = math.inf, -math.inf
        values[6] = 0.0
        # a warp reads 32 neighbours, and those of a block are from everywhere: a sample
        first = ((t // 32) * cuda.gridDim.x + cuda.blockIdx.x) * 32 + t % 32
        for i in range(first, n, cuda.gridsize(1)):
            x, y, z, m = compute.row(body, i)
            values[0], values[3] = min(values[0], float(x)), max(values[3], float(x))
            values[1], values[4] = min(values[1], float(y)), max(values[4], float(y))
            values[2], values[5] = min(values[2], float(z)), max(values[5], float(z))
            values[6] += float(m)
        for k in range(7):
            shared[t, k] = values[k]
        reduce(shared, t)
        if t < 7:
            parts[cuda.blockIdx.x, t] = shared[0, t]

    @compute.kernel("gpu")
    def frame(parts, box, G, widest):
        shared = cuda.shared.array((THREADS, 7), np.float64)
        samples = cuda.shared.array((THREADS, 6), np.float32)
        middle = cuda.shared.array(6, np.float32)
        t, n = cuda.threadIdx.x, parts.shape[0]
        for k in range(7):
            shared[t, k] = parts[min(t, n - 1), k] if t < n or k < 6 else 0.0
        for k in range(6):
            samples[t, k] = shared[t, k]
        reduce(shared, t)
        eighth = (n - 1) // 8
        ranks = cuda.local.array(6, np.int32)
        for k in range(6):
            ranks[k] = 0
        for s in range(n):  # a quantile, by counting how many are less
            for k in range(6):
                if samples[s, k] < samples[t, k] or (samples[s, k] == samples[t, k] and s < t):
                    ranks[k] += 1
        for k in range(6):
            if t < n and ranks[k] == (eighth if k >= 3 else n - 1 - eighth):
                middle[k] = samples[t, k]
        cuda.syncthreads()
        if t == 0:
            half = full = size = 0.0
            for k in range(3):
                full = max(full, shared[0, 3 + k] - shared[0, k])
                half = max(half, 0.5 * (float(middle[3 + k]) - float(middle[k])))
            reach = max(MARGIN * half, full / widest) if half > 0.0 and n > 1 else math.inf
            for k in range(3):
                centre = 0.5 * (float(middle[3 + k]) + float(middle[k]))
                box[LOW + k] = max(shared[0, k], centre - reach)
                box[ALL_LOW + k] = shared[0, k]
                size = max(size, min(shared[0, 3 + k], centre + reach) - box[LOW + k])
            length, mass = power_of_two(size), power_of_two(shared[0, 6])
            box[CELLS] = (1 << LEVELS) / size if 0.0 < size < 1e300 else 0.0
            box[ALL_CELLS] = (1 << LEVELS) / full if 0.0 < full < 1e300 else 0.0
            box[LENGTH], box[MASS] = length, mass
            box[ACCELERATION], box[POTENTIAL] = G * length * length / mass, G * length / mass

    return bounds, frame


@cache
def key_kernel(dimensions: int, chosen: bool = False) -> Any:
    """``keys_of(body, rows, box, keys, index)``: the Morton key and the index of each body; if ``chosen``, of the bodies
    ``rows`` only."""

    key_of_cells = key_for(dimensions, compute.device_function)

    @compute.device_function
    def inside(x, low, cells):
        """True if the coordinate is in the box (but for rounding)."""
        return x >= low and (x - low) * cells < float((1 << LEVELS) + 1)

    @compute.device_function
    def digit(x, low, cells):
        return np.uint64(np.uint32(min(max((x - low) * cells, 0.0), float((1 << LEVELS) - 1))))

    @compute.kernel("gpu")
    def keys_of(body, rows, box, keys, index):
        k = cuda.grid(1)
        if k < keys.shape[0]:
            i = rows[k] if chosen else k
            x, y, z, _ = compute.row(body, i)
            x, y, z = float(x), float(y), float(z)
            at, cells, key = LOW, CELLS, np.uint64(0)
            scale = box[CELLS]
            if not (inside(x, box[LOW], scale) and inside(y, box[LOW + 1], scale) and inside(z, box[LOW + 2], scale)):
                at, cells, key = ALL_LOW, ALL_CELLS, np.uint64(1) << np.uint64(dimensions * LEVELS)
            scale = box[cells]
            cx, cy, cz = digit(x, box[at], scale), digit(y, box[at + 1], scale), digit(z, box[at + 2], scale)
            keys[k] = key | key_of_cells(cx, cy, cz)
            index[k] = i

    return keys_of


@cache
def gather_kernel(wide: type) -> Any:
    """``gather(body, rows, box, index, sorted)``: the bodies in the order ``rows``, with coordinates and masses in units of
    the box; and a copy of ``rows``, whose memory is used again. In float64 coordinates begin at the corner of the box; in
    float32 that would round them."""
    shifted = wide is np.float64

    @compute.kernel("gpu")
    def gather(body, rows, box, index, sorted_body):
        i = cuda.grid(1)
        if i < rows.shape[0]:
            row = rows[i]
            index[i] = row
            x, y, z, m = compute.row(body, row)
            length = wide(box[LENGTH])
            if shifted:
                x, y, z = x - box[LOW], y - box[LOW + 1], z - box[LOW + 2]
            compute.set_row(sorted_body, i, x * length, y * length, z * length, m * wide(box[MASS]))

    return gather


class Sort:
    """Sorts ``keys`` (uint64, (2, N)) and with them ``values`` (uint32, (2, N)), all or the first some: row 0 is the input,
    and both rows are overwritten. After a call, row ``result`` holds what is sorted.

    Args:
        bits: the keys are less than 2^bits.
    """

    def __init__(self, keys: Any, values: Any, bits: int, stream: Any) -> None:
        self._bits, self._count = bits, 0
        self._rows = [(keys[k], values[k]) for k in (0, 1)]
        self._stream = _Stream(stream)
        self.result = 0
        if not compute.SIMULATED:
            self._compiling = ThreadPoolExecutor(1).submit(_compiled, *self._rows[0])
            self._temporary = cuda.device_array(1, np.uint8)

    @staticmethod
    def bytes_needed(count: int) -> int:
        """About as many bytes as the library asks for."""
        return count // 4 + (1 << 20)

    def __call__(self, count: int) -> None:
        """Enqueue the sort of the first ``count`` on the stream. (It may be recorded in a graph after one that was not.)"""
        if compute.SIMULATED:
            keys, values = (array[:count].copy_to_host() for array in self._rows[0])
            order = np.argsort(keys, kind="stable")
            self._rows[0][0][:count].copy_to_device(keys[order])
            self._rows[0][1][:count].copy_to_device(values[order])
            return
        if compute.rehearsing():
            return
        if count != self._count:
            self._count = count
            if (size := self._call(None)) > self._temporary.size:
                self._temporary = cuda.device_array(size, np.uint8)
        self._call(self._temporary)

    def _call(self, temporary: Any) -> int:
        from cuda.compute import DoubleBuffer

        keys, values = (DoubleBuffer(a, b) for a, b in zip(*self._rows, strict=True))
        size = self._compiling.result()(
            temp_storage=temporary, d_in_keys=keys, d_out_keys=None, d_in_values=values, d_out_values=None,
            num_items=self._count, begin_bit=0, end_bit=self._bits, stream=self._stream,
        )  # fmt: skip
        self.result = int(keys.selector)
        return int(size)


class _Stream:
    """A Numba stream for other libraries."""

    def __init__(self, stream: Any) -> None:
        self._handle = int(stream.handle) if hasattr(stream, "handle") else 0

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle


def _compiled(keys: Any, values: Any) -> Any:
    """The library's sort for these types, from the folder for caches if it is there."""
    try:
        import cuda.compute as library
    except ImportError as error:
        text = f"engine 'gpu-tree' needs the package cuda-cccl ({error}): {install_extra('cu13')}"
        raise DeviceError(text) from error
    from importlib.metadata import version

    facts = compute.facts()
    what = f"{version('cuda-cccl')} {keys.dtype} {values.dtype} {facts.compute_capability} {facts.driver}"
    name = f"kernels/sort-{hashlib.sha256(what.encode()).hexdigest()[:32]}"
    pair = {
        "d_in_keys": library.DoubleBuffer(keys, keys), "d_out_keys": None,
        "d_in_values": library.DoubleBuffer(values, values), "d_out_values": None,
    }  # fmt: skip
    found = load_bytes(name)
    if found is not None:
        try:
            return library.deserialize(found)
        except Exception:  # it belongs to another version of the library: compile again
            pass
    with compiling(kernels()):
        sort = library.make_radix_sort(**pair, order=library.SortOrder.ASCENDING)
    with contextlib.suppress(Exception):  # it is only a cache
        store_bytes(name, library.serialize(sort))
    return sort
