"""The kernels of the ``cpu`` engine are kept on disk once they are compiled, for all processes.

Numba's own way of doing that mixes kernels up, and what then computes is the wrong one, without a word:

- It numbers what a process compiles, 1, 2, 3, and names it by that. Two kernels of different processes may so have parts of
  the same name; and a third process that takes both from the disk lets one call the other's. (Forces by ``cutoff`` in 3-D,
  then by ``plummer`` in 2-D: 255 times too large.) Here each process counts from a number of its own.
- It keeps an index of a function's files. Two processes that compile at the same time both take the next free file, and the
  index then names one's file for the other's kernel. Here there is no index: a file's name is made from all that its kernel
  was compiled from and for.

A file that is damaged is as good as none: it begins with the hash of the rest. Nor does a run end because none can be
written.
"""

import contextlib
import hashlib
import itertools
import os
import pickle
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import config, njit
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import FunctionCache, IndexDataCacheFile

SETTINGS = (
    "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "USING_SVML", "LLVM_REFPRUNE_PASS",
)  # fmt: skip
"""What Numba compiles by beside a function's own options, each a NUMBA_... in the environment."""

HASH = hashlib.sha256
HASH_BYTES = HASH().digest_size


def _count_from_somewhere() -> None:
    FunctionIdentity._unique_ids = itertools.count(uuid.uuid4().int >> 80)  # 48 bits: no two processes have the same


_count_from_somewhere()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_from_somewhere)


class KernelFiles(IndexDataCacheFile):
    """The files of one function's kernels.

    A name is made from Numba's version and :data:`SETTINGS`, the stamp of the function's source, the ``options`` it is
    compiled with, and Numba's key: signature, processor, code and constants.
    """

    def __init__(self, folder: str, base: str, stamp: Any, options: str) -> None:
        super().__init__(folder, base, stamp)
        self._options = options

    def save(self, key: tuple, data: Any) -> None:
        """Keep what was compiled for a key."""
        kept = self._dump(data)
        with self._open_for_write(self._path(key)) as file:
            file.write(HASH(kept).digest() + kept)

    def load(self, key: tuple) -> Any:
        """What was compiled for a key; None if that is not there, whole."""
        try:
            found = Path(self._path(key)).read_bytes()
        except OSError:
            return None
        digest, kept = found[:HASH_BYTES], found[HASH_BYTES:]
        return pickle.loads(kept) if HASH(kept).digest() == digest else None

    def _path(self, key: tuple) -> str:
        settings = [str(getattr(config, name, None)) for name in SETTINGS]
        whole = repr((self._version, settings, self._source_stamp, self._options, key))
        return self._data_path(self._data_name(int(HASH(whole.encode()).hexdigest()[:16], 16)))


class KernelCache(FunctionCache):
    """What one function was compiled to, as a compiled function asks for it."""

    def __init__(self, function: Callable, options: str) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = KernelFiles(self.cache_path, self._impl.filename_base, stamp, options)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep it, unless the disk takes no more."""
        try:
            super().save_overload(sig, data)
        except OSError:
            pass
        except RuntimeError as error:
            if "no compiled object" not in str(error):
                raise
            raise KeyboardInterrupt from None  # it came while LLVM called back, which swallows it


def kept(function: Callable, **options: Any) -> Callable:
    """The function compiled, and kept on disk; only in memory where no folder can be written to."""
    options |= {"nogil": True, "error_model": "numpy"}
    compiled = njit(function, **options)
    with contextlib.suppress(RuntimeError):
        compiled._cache = KernelCache(function, _told(options))
    return compiled


def _told(options: dict[str, Any]) -> str:
    """Options in an order that is the same in every process."""
    return repr([(name, sorted(value) if isinstance(value, set) else value) for name, value in sorted(options.items())])
