"""Kernels, kept on disk once they are compiled: a second run loads in milliseconds what took seconds to compile.

A kernel's file is found by a hash of everything that its machine code depends on: what it is made of
(:mod:`nbody.gpu.fingerprint`), the types of its arguments, its options, the device, the driver, and the versions of Numba
and of NVIDIA's compilers. The file begins with a hash of its content and repeats what it was made for. So a file that is
damaged, or made for anything else, is as good as none, and the kernel is compiled again. A cubin is complete: none of its
functions is linked with those of another kernel.
"""

import functools
import hashlib
import os
import pickle
import re
import sys
import warnings
from collections.abc import Callable
from importlib import metadata
from typing import Any

from numba.cuda.core.caching import NullCache

from nbody import cache
from nbody.gpu.device import SIMULATED, cuda, facts
from nbody.gpu.fingerprint import Unknown, fingerprint

COMPILERS = ("nvidia-nvvm", "nvidia-nvjitlink", "nvidia-cuda-nvcc-cu12", "nvidia-nvjitlink-cu12")
"""The packages of the compiler and the linker, for CUDA 13 and 12."""

LEFT_OUT = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS"}
"""Settings of Numba that no machine code depends on."""


def kernel(function: Callable | None = None, **options: Any) -> Any:
    """``cuda.jit`` for a kernel that is kept on disk, and that may be launched with few blocks without a warning.

    Use as ``@kernel`` or ``@kernel(fastmath=True)``.
    """
    if function is None:
        return functools.partial(kernel, **options)
    compiled = cuda.jit(**options)(function)
    if SIMULATED:
        return compiled
    compiled._cache = KernelCache(function, compiled.targetoptions)
    configure = type(compiled).configure.__wrapped__

    @functools.lru_cache(maxsize=128)
    def quietly(*launch: Any) -> Any:
        with warnings.catch_warnings():  # the few blocks of a small N, or of a last ragged tile, are meant
            warnings.simplefilter("ignore")
            return configure(compiled, *launch)

    compiled.configure = quietly
    return compiled


class KernelCache(NullCache):
    """One function's kernels, one for each list of argument types: where Numba looks before it compiles."""

    def __init__(self, function: Callable, options: dict[str, Any]) -> None:
        self._function, self._options = function, options

    def load_overload(self, types: Any, target: Any) -> Any:
        """The kernel for these types, ready to launch; None if it must be compiled."""
        from numba.cuda.dispatcher import _Kernel

        made_for = _made_for(self._function, types, self._options)
        found = cache.load_bytes(_name(self._function, made_for)) if made_for else None
        if found is None:
            return None
        try:
            stored, state = pickle.loads(found)
            return _Kernel._rebuild(**state) if stored == made_for else None
        except Exception:  # a library has changed, and its version has not
            return None

    def save_overload(self, types: Any, compiled: Any) -> None:
        """Keep a kernel that has just been compiled, if that can be done."""
        from numba.cuda.serialize import dumps

        made_for = _made_for(self._function, types, self._options)
        if not made_for or compiled.launch_config_sensitive:
            return
        try:
            data = dumps((made_for, compiled._reduce_states()))
        except Exception:  # it is linked with files, or refers to an array on the device
            return
        cache.keep_bytes(_name(self._function, made_for), data)


def _name(function: Callable, made_for: str) -> str:
    """The name of a kernel's file in the folder for caches."""
    plain = re.sub(r"\W", "", function.__name__)
    return f"kernels/{plain}-{hashlib.sha256(made_for.encode()).hexdigest()[:32]}"


def _made_for(function: Any, types: Any, options: dict[str, Any]) -> str:
    """Everything that a kernel's machine code depends on; empty if that cannot be told."""
    try:
        return repr((_toolchain(), fingerprint(function), repr(types), sorted(options.items(), key=str)))
    except (Unknown, ValueError, RecursionError):  # ValueError: a variable that has no value yet
        return ""


@functools.cache
def _toolchain() -> tuple:
    """The device, the driver, the compilers and their settings."""
    import llvmlite
    import numba
    import numba_cuda
    import numpy

    card = facts()
    settings = sorted(
        (name, value)
        for name, value in os.environ.items()
        if (name.startswith("NUMBA_") and name not in LEFT_OUT) or name in ("CUDA_HOME", "CUDA_PATH")
    )
    versions = sys.version, *(package.__version__ for package in (numba, numba_cuda, llvmlite, numpy))
    return card.name, card.compute_capability, card.driver, versions, tuple(map(_version, COMPILERS)), tuple(settings)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
