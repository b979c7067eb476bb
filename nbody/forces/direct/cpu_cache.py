"""The kernels of the ``cpu`` engine are kept on disk once they are compiled, for all processes.

Numba's own way of doing that may load the wrong kernel, which then computes wrong forces without an error:

- It names what a process compiles by numbers, 1, 2, 3. Functions that different processes compiled may so have the same
  name; a third process that loads both from the disk lets one kernel call the other's function. (Forces by ``cutoff`` in
  3-D, then by ``plummer`` in 2-D: 255 times too large.) Here our kernels, and what is compiled for them, are numbered from
  a random 48-bit number per process. The user's own functions keep their numbers.
- It keeps an index of a function's files. Two processes that compile at the same time both take the next free file, and the
  index then names one's file for the other's kernel. Here there is no index: a file's name is made from everything that its
  kernel was compiled from and for.

A damaged file is ignored: it begins with the hash of the rest. A disk that cannot be written to ends no run.
"""

import contextlib
import hashlib
import itertools
import os
import pickle
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from numba import config, njit
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime import rtsys

SETTINGS = (
    "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "USING_SVML", "LLVM_REFPRUNE_PASS",
)  # fmt: skip
"""What Numba compiles by beside a function's own options, each a NUMBA_... in the environment."""

HASH = hashlib.sha256
HASH_BYTES = HASH().digest_size


@cache
def _numbers(process: int) -> Iterator[int]:
    """The numbers of what a process compiles for our kernels; no two processes have one in common."""
    return itertools.count(uuid.uuid4().int >> 80)


@contextlib.contextmanager
def _numbered_apart() -> Iterator[None]:
    """While our kernel is compiled, Numba takes its numbers from ours. (Numba compiles one function at a time: it holds its
    compiler lock. A forked child has another process id, and so other numbers.)"""
    theirs, FunctionIdentity._unique_ids = FunctionIdentity._unique_ids, _numbers(os.getpid())
    try:
        yield
    finally:
        FunctionIdentity._unique_ids = theirs


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

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The kernel for these types, ready to call; None if it must be compiled.

        Numba would first import its implementations of everything that can be compiled, which takes 0.35 s, and which
        the compiler does anyway if it is needed. A compiled kernel needs Numba's memory management alone.
        """
        rtsys.initialize(target_context)
        return self._load_overload(sig, target_context)

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
    compile_now = compiled._compiler.compile

    def compile_apart(*types: Any) -> Any:
        with _numbered_apart():
            return compile_now(*types)

    compiled._compiler.compile = compile_apart
    with contextlib.suppress(RuntimeError):
        compiled._cache = KernelCache(function, _in_order(options))
    return compiled


def _in_order(options: dict[str, Any]) -> str:
    """Options in an order that is the same in every process."""
    return repr([(name, sorted(value) if isinstance(value, set) else value) for name, value in sorted(options.items())])
