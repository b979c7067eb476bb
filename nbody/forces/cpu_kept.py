"""The kernels of the ``cpu`` engine are kept on disk once they are compiled, for all processes.

Numba's own way of doing that mixes kernels up, and what then computes is the wrong one, without a word:

- It numbers what a process compiles, 1, 2, 3, and names it by that. Two kernels of different processes may so have parts of
  the same name; and a third process that takes both from the disk lets one call the other's. (Forces by ``cutoff`` in 3-D,
  then by ``plummer`` in 2-D: 255 times too large.) Here each process counts from a number of its own.
- It keeps an index of a function's files. Two processes that compile at the same time both take the next free file, and the
  index then names one's file for the other's kernel. Here a file's number is made from what the kernel was compiled for; the
  worst that a race leaves is a kernel to be compiled once more.
"""

import hashlib
import itertools
import os
import uuid
from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import IndexDataCacheFile


def _count_from_somewhere() -> None:
    FunctionIdentity._unique_ids = itertools.count(uuid.uuid4().int >> 80)  # 48 bits: no two processes have the same


_count_from_somewhere()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_from_somewhere)


class KeyedCacheFile(IndexDataCacheFile):
    """Numba's index and files of one function, each file numbered by its key: signature, processor, code, constants."""

    def save(self, key: tuple, data: Any) -> None:
        """Keep what was compiled for a key."""
        index = self._load_index()
        index[key] = self._name(key)
        self._save_data(index[key], data)
        self._save_index(index)

    def load(self, key: tuple) -> Any:
        """What was compiled for a key; None if that is not there, or is from before the files had numbers of their own."""
        return super().load(key) if self._load_index().get(key) == self._name(key) else None

    def _name(self, key: tuple) -> str:
        return self._data_name(int(hashlib.sha256(repr(key).encode()).hexdigest()[:16], 16))


def kept(function: Callable, **options: Any) -> Callable:
    """The function compiled, and kept on disk; only in memory where no folder can be written to."""
    options |= {"nogil": True, "error_model": "numpy"}
    try:
        compiled = njit(function, cache=True, **options)
    except RuntimeError:
        return njit(function, **options)
    cache = compiled._cache
    cache._cache_file = KeyedCacheFile(
        cache.cache_path, cache._impl.filename_base, cache._impl.locator.get_source_stamp()
    )
    return compiled
