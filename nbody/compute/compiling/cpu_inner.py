"""Kernels on the CPU that allocate no arrays, and the functions that only kernels call."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from numba import config
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, DefaultPassBuilder
from numba.core.registry import CPUDispatcher

from nbody import compute
from nbody.compute.compiling.compiling_faster import needed


def kernel(function: Callable | None = None, **options: Any) -> Any:
    """Compile a function that Python calls, and cache it on disk. It allocates no arrays, so references to them are not
    counted."""
    made = compute.kernel("cpu", _nrt=False, **options)
    return made if function is None else made(function)


def inner(function: Callable | None = None, calls: bool = False, **options: Any) -> Any:
    """Compile a function that only kernels call. It is compiled as a part of each kernel, so Python
    can't call it. A function that mainly ``calls`` others is optimized in the kernel only."""
    if function is None:
        return lambda function: inner(function, calls, **options)
    if config.DISABLE_JIT:
        return function
    options |= {"nopython": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return (CallerDispatcher if calls else InnerDispatcher)(function, targetoptions=options)


class InnerLibrary(JITCodeLibrary):
    """The LLVM code of an inner function, which kernels link."""

    @property
    def codegen(self) -> Any:
        """Numba's, but that the function has no environment (for exceptions)."""
        return SimpleNamespace(set_env=lambda name, environment: None)

    def get_pointer_to_function(self, name: str) -> int:
        """No address: Python can't call the function."""
        self._ensure_finalized()
        return 0

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class CallerLibrary(InnerLibrary):
    """The same, not optimized."""

    def _optimize_final_module(self) -> None:
        pass


class InnerCompiler(Compiler):
    """Numba's compiler with an :class:`InnerLibrary`."""

    library: type[InnerLibrary] = InnerLibrary

    def __init__(self, typing_context: Any, context: Any, *rest: Any) -> None:
        super().__init__(typing_context, context, *rest)
        self.state.library = self.library(context.codegen(), "inner")

    def define_pipelines(self) -> list[Any]:
        """Those of Numba's passes that are :func:`~nbody.compute.compiling.compiling_faster.needed`."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.passes = needed(manager.passes, self.state.func_id.func, self.state.flags.nrt)
        manager.finalize()
        return [manager]


class CallerCompiler(InnerCompiler):
    """Numba's compiler with a :class:`CallerLibrary`."""

    library = CallerLibrary


class InnerDispatcher(CPUDispatcher):
    """An inner function. (As a class, so that it is the same where another process compiles a kernel that calls it.)"""

    compiler: type[InnerCompiler] = InnerCompiler

    def __init__(self, py_func: Any, locals: Any = None, targetoptions: Any = None) -> None:
        super().__init__(py_func, locals, targetoptions, self.compiler)

    def __call__(self, *arguments: Any) -> Any:
        raise TypeError(f"only kernels can call '{self.py_func.__name__}'")  # instead of a jump to no address


class CallerDispatcher(InnerDispatcher):
    """An inner function that calls others."""

    compiler = CallerCompiler
