"""Kernels on a GPU: what they take of Numba besides ``cuda.jit``.

A file has a cubin, which is complete: none of its functions is linked with those of another kernel.
"""

import functools
import os
import pickle
import sys
import warnings
from importlib import metadata
from importlib.util import find_spec
from types import FunctionType, SimpleNamespace
from typing import Any

from nbody.compute.compiling.announce import compiling
from nbody.compute.compiling.compiling_faster import compiling_faster
from nbody.compute.compiling.kernel_cache import KernelCache
from nbody.compute.compiling.precompile import note
from nbody.compute.gpu.device import SIMULATED, cuda, facts

COMPILERS = ("nvidia-nvvm", "nvidia-nvjitlink", "nvidia-cuda-nvcc-cu12", "nvidia-nvjitlink-cu12")
"""The packages of the compiler and the linker, for CUDA 13 and 12."""

LEFT_OUT = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING"}
"""Numba's settings that do not affect the machine code."""


def gpu_kernel(function: FunctionType, **options: Any) -> Any:
    """The kernel of a function: ``cuda.jit``, with a cache on disk."""
    compiled = cuda.jit(**options)(function)
    if SIMULATED or find_spec("numba_cuda") is None:  # it can be listed and described
        return compiled
    from numba.cuda.compiler import CUDACompiler
    from numba.cuda.core.compiler_lock import global_compiler_lock
    from numba.cuda.types import Function

    compiled._cache = kernels = GpuKernelCache(function, options)  # instead of ``cuda.jit(cache=True)``
    configure = type(compiled).configure.__wrapped__

    @functools.lru_cache(maxsize=128)
    def quietly(*launch: Any) -> Any:
        with warnings.catch_warnings():  # few blocks are intended, for small N or an incomplete last tile
            warnings.simplefilter("ignore")
            return configure(compiled, *launch)

    compiled.configure = quietly
    compile_now, launch = compiled.compile, compiled.call

    def compile_faster(types: Any) -> Any:
        with (
            compiling(kernels.cache_path if kernels.name(types) else ""),
            global_compiler_lock,
            kernels.by_one_process(types),
            compiling_faster(Function, CUDACompiler),
        ):
            return compile_now(types)

    compiled.compile = compile_faster

    def launch_or_note(arguments: tuple, *configuration: Any) -> None:
        if not note(compiled, arguments):
            launch(arguments, *configuration)

    compiled.call = launch_or_note
    return compiled


class GpuKernelCache(KernelCache):
    """The cached kernels of a function on a GPU."""

    device = "gpu"

    @staticmethod
    def machine() -> tuple:
        return _toolchain()

    @staticmethod
    def packed(compiled: Any) -> bytes | None:
        from numba.cuda.serialize import dumps

        if compiled.launch_config_sensitive:
            return None
        try:
            return dumps(compiled._reduce_states())
        except Exception:  # it is linked with files, or refers to an array on the device
            return None

    @staticmethod
    def unpacked(data: bytes, context: Any) -> Any:
        from numba.cuda.dispatcher import _Kernel

        return _Kernel._rebuild(**pickle.loads(data))


def compile_without_device(machine: tuple) -> None:
    """From now on this process compiles kernels for the device of another one, whose :meth:`GpuKernelCache.machine` this is,
    without opening it: a context would take 0.5 GB of its memory, and half a second or more if several processes ask."""
    from numba.cuda import dispatcher
    from numba.cuda.cudadrv import devices

    device = SimpleNamespace(compute_capability=machine[1])
    devices.get_context = lambda *_: SimpleNamespace(device=device)
    dispatcher.get_current_device = lambda: device
    dispatcher._Kernel.bind = lambda compiled: compiled._codelibrary.get_cubin()  # it would load the kernel, too
    GpuKernelCache.machine = staticmethod(lambda: machine)  # type: ignore[method-assign]


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
