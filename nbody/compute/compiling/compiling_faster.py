"""What makes Numba compile faster, to the same code: the types of a call are found once, passes that have nothing to do are
left out, a GPU's kernel gets each function that it calls once, and no garbage is collected."""

import contextlib
import gc
from collections.abc import Iterator
from functools import cache
from types import CodeType
from typing import Any

UNUSED = {
    "AnnotateTypes", "DumpParforDiagnostics", "FindLiterallyCalls", "InlineClosureLikes", "IRLegalization",
    "LiteralPropagationSubPipelinePass", "LiteralUnroll", "MakeFunctionToJitFunction", "NoPythonSupportedFeatureValidation",
    "NopythonRewrites", "WithLifting",
}  # fmt: skip
"""The compiler's passes for array expressions, closures, ``with`` and messages: an eighth of the time on the CPU, a sixth on
a GPU."""

NEEDED_BY = {"literal_unroll", "literally", "print"}
"""The functions whose calls need one of these passes."""


def needed(passes: list[Any], function: Any, allocates: bool = False) -> list[Any]:
    """Of Numba's passes those that a Python function needs; all if it has a closure, or calls one of :data:`NEEDED_BY`. One
    that ``allocates`` arrays needs ``IRLegalization``, which finds where they are freed."""
    code = function.__code__
    if NEEDED_BY.intersection(code.co_names) or any(isinstance(each, CodeType) for each in code.co_consts):
        return passes
    unused = UNUSED - {"IRLegalization"} if allocates else UNUSED
    return [each for each in passes if each[0].__name__ not in unused]


@contextlib.contextmanager
def compiling_faster(function_type: Any, compiler: Any = None) -> Iterator[None]:
    """Inside this block Numba compiles the same code in less time.

    It finds the types of a call once for the same arguments. It would search all definitions of an operator each time that
    it occurs: a fifth of the time that the walk of a tree takes on the CPU, and half on the GPU. And it makes a million
    objects that it still needs, among which garbage is searched for in a tenth of the time.

    Args:
        function_type: ``Function`` of Numba's types for the processor.
        compiler: that of a GPU, which leaves out unused passes; None on the CPU.
    """
    from unittest.mock import patch  # takes 12 ms, which programs that find their kernels in the cache do not need

    find, known, collects = function_type.get_call_type, dict[tuple, Any](), gc.isenabled()

    def find_once(called: Any, context: Any, types: tuple, named: dict[str, Any]) -> Any:
        key = called, tuple(types), tuple(named.items())  # a list, from the loops of threads
        if key not in known:
            known[key] = find(called, context, types, named)
        return known[key]

    gc.disable()
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(patch.object(function_type, "get_call_type", find_once))
            if compiler:
                from numba.cuda.codegen import CUDACodeLibrary
                from numba.cuda.core import base

                fewer = _fewer_passes(compiler.define_pipelines)
                stack.enter_context(patch.object(compiler, "define_pipelines", fewer))
                stack.enter_context(patch.object(CUDACodeLibrary, "modules", property(_modules)))
                stack.enter_context(patch.object(base, "_has_loc", cache(base._has_loc)))
            yield
    finally:
        if collects:
            gc.enable()


def _modules(library: Any) -> list[Any]:
    """The modules of a library and of those that it links, each once. (Numba has a function's as often as there are paths of
    calls to it: 98 modules instead of 56 for the walk of a tree.)"""
    linked = (module for each in library._linking_libraries for module in each.modules)
    return list(dict.fromkeys((library._module, *linked)))


def _fewer_passes(define: Any) -> Any:
    def define_pipelines(compiler: Any) -> list[Any]:
        (manager,) = define(compiler)
        manager.passes[:] = needed(manager.passes, compiler.state.func_id.func)
        manager.finalize()
        return [manager]

    return define_pipelines
