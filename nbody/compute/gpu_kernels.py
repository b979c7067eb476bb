"""A cache on disk for compiled kernels: a second run loads in milliseconds what took seconds to compile.

The name of a kernel's file is a hash of everything that its machine code depends on: the code that it uses
(:mod:`nbody.compute.fingerprint`), the types of its arguments, its options, the device, the driver, and the versions of
Numba and of NVIDIA's compilers. The file begins with a hash of its content and repeats these dependencies. So a file that is
damaged, or belongs to anything else, is ignored, and the kernel is compiled again. A cubin is complete: none of its
functions is linked with those of another kernel.
"""

import functools
import os
import pickle
import sys
import warnings
from collections.abc import Callable
from importlib import metadata
from typing import Any

from numba.cuda.core.caching import NullCache

from nbody.compute import cache
from nbody.compute.device import SIMULATED, cuda, facts
from nbody.compute.fingerprint import Unknown, fingerprint

COMPILERS = ("nvidia-nvvm", "nvidia-nvjitlink", "nvidia-cuda-nvcc-cu12", "nvidia-nvjitlink-cu12")
"""The packages of the compiler and the linker, for CUDA 13 and 12."""

LEFT_OUT = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS"}
"""Numba's settings that do not affect the machine code."""


def gpu_kernel(function: Callable, **options: Any) -> Any:
    """The kernel of a function: ``cuda.jit``, with a cache on disk."""
    compiled = cuda.jit(**options)(function)
    if SIMULATED:
        return compiled
    compiled._cache = KernelCache(function, compiled.targetoptions)
    configure = type(compiled).configure.__wrapped__

    @functools.lru_cache(maxsize=128)
    def quietly(*launch: Any) -> Any:
        with warnings.catch_warnings():  # few blocks are intended, for small N or an incomplete last tile
            warnings.simplefilter("ignore")
            return configure(compiled, *launch)

    compiled.configure = quietly
    compile_now = compiled.compile

    def announced(signature: Any) -> Any:
        with cache.compiling(cache.kernels()):
            return compile_now(signature)

    compiled.compile = announced
    return compiled


class KernelCache(NullCache):
    """The cached kernels of one function, one for each list of argument types, with the interface of Numba's cache."""

    def __init__(self, function: Callable, options: dict[str, Any]) -> None:
        self._function, self._options = function, options

    def load_overload(self, types: Any, target: Any) -> Any:
        """The kernel for these types, ready to launch; None if it must be compiled."""
        from numba.cuda.dispatcher import _Kernel

        dependencies = _dependencies(self._function, types, self._options)
        found = cache.load_bytes(cache.kernel_name(self._function, dependencies)) if dependencies else None
        if found is None:
            return None
        try:
            stored, state = pickle.loads(found)
            return _Kernel._rebuild(**state) if stored == dependencies else None
        except Exception:  # a library changed without a new version
            return None

    def save_overload(self, types: Any, compiled: Any) -> None:
        """Cache a compiled kernel, if possible."""
        from numba.cuda.serialize import dumps

        dependencies = _dependencies(self._function, types, self._options)
        if not dependencies or compiled.launch_config_sensitive:
            return
        try:
            data = dumps((dependencies, compiled._reduce_states()))
        except Exception:  # it is linked with files, or refers to an array on the device
            return
        cache.keep_bytes(cache.kernel_name(self._function, dependencies), data)


def _dependencies(function: Any, types: Any, options: dict[str, Any]) -> str:
    """Everything that a kernel's machine code depends on; empty if that cannot be described."""
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
