"""Kernels on the CPU: what they take of Numba besides ``njit``."""

import contextlib
import pickle
import sys
import uuid
from collections.abc import Iterator
from functools import cache
from types import FunctionType
from typing import Any

import llvmlite
import numba
import numpy as np
from llvmlite.binding import Linkage
from numba import config, njit
from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.core.types import Function

from nbody.compute.compiling.announce import compiling
from nbody.compute.compiling.compiling_faster import compiling_faster
from nbody.compute.compiling.kernel_cache import KernelCache
from nbody.compute.compiling.precompile import note
from nbody.errors import DeviceError

SETTINGS = (
    "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "USING_SVML", "LLVM_REFPRUNE_PASS",
)  # fmt: skip
"""Numba's settings that affect the compiled code besides a function's options, each a NUMBA_... in the environment."""


def cpu_kernel(function: FunctionType, **options: Any) -> Any:
    """The kernel of a function: ``numba.njit``, with a cache on disk."""
    options |= {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    compiled = njit(function, **options)
    if config.DISABLE_JIT:
        return _refused
    compiled._cache = kernels = CpuKernelCache(function, options)  # instead of ``njit(cache=True)``
    compile_now = compiled._compiler.compile

    def compile_enclosed(types: Any, result: Any) -> Any:
        name = kernels.name(types)
        folder = kernels.cache_path if name else ""
        with compiling(folder), global_compiler_lock, _enclosed(function, name), compiling_faster(Function):
            return compile_now(types, result)

    compiled._compiler.compile = compile_enclosed
    compile_or_load = compiled.compile

    def compile_once(types: Any) -> Any:
        with global_compiler_lock, kernels.by_one_process(types):
            return compile_or_load(types)

    compiled.compile = compile_once
    compile_and_call = compiled._compile_for_args

    def compile_or_note(*arguments: Any) -> Any:
        return _do_nothing if note(compiled, arguments) else compile_and_call(*arguments)

    compiled._compile_for_args = compile_or_note  # what Numba calls where there is no kernel yet
    return compiled


def _do_nothing(*arguments: Any) -> None:
    """Stands for a kernel in a rehearsal."""


def _refused(*arguments: Any) -> None:
    """Stands for every kernel where Numba does not compile: most of them do not run as plain Python."""
    raise DeviceError(
        "this needs compiled code, and NUMBA_DISABLE_JIT forbids it; unset that variable, or use --engine reference and "
        "--integrator leapfrog"
    )


@contextlib.contextmanager
def _enclosed(function: FunctionType, name: str) -> Iterator[None]:
    """What a kernel is compiled in, so that it has the same bits, and clashes with no other, in every process that loads it.

    Numba names a function by its number in the process that compiles it, and a process runs the first function of a name
    that it meets: one kernel would call another's function. (Observed: forces 255 times too large with ``cutoff`` in 3-D,
    then ``plummer`` in 2-D.) So a kernel is named by its file, and of all that it is linked with nothing is visible outside:
    no functions, which would otherwise be the originals where a process has compiled them, and may be optimized
    differently, and no environments (constants of these functions).
    """
    plain, optimize = function.__qualname__, CPUCodeLibrary._optimize_final_module
    mark = name.rpartition("-")[2] or uuid.uuid4().hex

    def optimize_and_enclose(library: Any) -> None:
        optimize(library)
        module = library._final_module
        if not any(mark in each.name and each.linkage == Linkage.external for each in module.functions):
            return  # a function that the kernel is linked with
        for each in module.functions:
            if each.linkage in (Linkage.linkonce_odr, Linkage.weak_odr):  # called; loops of threads
                each.linkage = Linkage.internal
        for each in module.global_variables:
            if each.linkage == Linkage.common and mark not in each.name:
                each.linkage = Linkage.internal

    function.__qualname__ = f"{plain}_{mark}"
    CPUCodeLibrary._optimize_final_module = optimize_and_enclose
    try:
        yield
    finally:
        function.__qualname__ = plain
        CPUCodeLibrary._optimize_final_module = optimize


class CpuKernelCache(KernelCache):
    """The cached kernels of a function on the CPU."""

    device = "cpu"

    @staticmethod
    def machine() -> tuple:
        versions = sys.version, numba.__version__, llvmlite.__version__, np.__version__
        return versions, _processor(), [str(getattr(config, name, None)) for name in SETTINGS]

    @staticmethod
    def packed(compiled: Any) -> bytes | None:
        if compiled.library.has_dynamic_globals:  # addresses of this process
            return None
        try:
            *own, _ = compiled._reduce()
        except RuntimeError as error:
            if "no compiled object" not in str(error):
                raise
            raise KeyboardInterrupt from None  # Ctrl-C during a callback from LLVM, which ignores exceptions
        return dumps((*own, ()))  # without the environments of other functions: they are enclosed

    @staticmethod
    def unpacked(data: bytes, context: Any) -> Any:
        # Numba's method would first import the implementations of everything that Numba can compile, which takes 0.35 s. A
        # compiled kernel needs only Numba's memory management; the compiler imports the rest itself.
        rtsys.initialize(context)
        return CompileResult._rebuild(context, *pickle.loads(data))


@cache
def _processor() -> tuple[str, ...]:
    """The processor, with its features that Numba compiles for."""
    return cpu_target.target_context.codegen().magic_tuple()
