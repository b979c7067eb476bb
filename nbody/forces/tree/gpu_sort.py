"""The stable radix sort of the keys, from NVIDIA's CCCL (its Python package ``cuda-cccl``, module ``cuda.compute``).

One H200, keys of 63 bits with indices of 32: 0.16 ms for 1M bodies, 1.4 ms for 16.7M. The library compiles its kernels in
each process, which takes 5 s; they are kept in the folder for caches instead.
"""

import contextlib
import hashlib
from typing import Any

import numpy as np

from nbody import compute
from nbody.compute import cache, cuda
from nbody.errors import DeviceError


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
        if compute.SIMULATED:
            return
        self._sort = _compiled(*self._rows[0])
        self._temporary = cuda.device_array(1, np.uint8)
        self(keys.shape[1])  # shows which row holds the result

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
        if count != self._count:
            self._count = count
            if (size := self._call(None)) > self._temporary.size:
                self._temporary = cuda.device_array(size, np.uint8)
        self._call(self._temporary)

    def _call(self, temporary: Any) -> int:
        from cuda.compute import DoubleBuffer

        keys, values = (DoubleBuffer(a, b) for a, b in zip(*self._rows, strict=True))
        size = self._sort(
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
        raise DeviceError(
            f"engine 'gpu-tree' needs the package cuda-cccl ({error}): pip install 'nbody[cu13]'"
        ) from error
    from importlib.metadata import version

    facts = compute.facts()
    what = f"{version('cuda-cccl')} {keys.dtype} {values.dtype} {facts.compute_capability} {facts.driver}"
    name = f"kernels/sort-{hashlib.sha256(what.encode()).hexdigest()[:32]}"
    pair = {
        "d_in_keys": library.DoubleBuffer(keys, keys), "d_out_keys": None,
        "d_in_values": library.DoubleBuffer(values, values), "d_out_values": None,
    }  # fmt: skip
    found = cache.load_bytes(name)
    if found is not None:
        try:
            return library.deserialize(found)
        except Exception:  # it belongs to another version of the library: compile again
            pass
    with cache.compiling(cache.kernels()):
        sort = library.make_radix_sort(**pair, order=library.SortOrder.ASCENDING)
    with contextlib.suppress(Exception):  # it is only a cache
        cache.keep_bytes(name, library.serialize(sort))
    return sort
