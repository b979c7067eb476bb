"""How the kernels of the CPU tree are compiled, for a variant, and their parallel loops, in which threads call a function.

``prange`` would compile the body of a loop once more, as a function of its own with wrappers. Threads of Python would
compete with those of Numba, which spin for some milliseconds after each parallel loop (1e5 bodies on two Zen 4 cores: 4 ms
of 24). The bits do not depend on the number of threads where no two numbers write to the same place.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import config, get_num_threads, set_num_threads, types
from numba.core import cgutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, DefaultPassBuilder
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic

from nbody import compute
from nbody.forces.direct.cpu_roots import FAST, compile_for_vectors, roots
from nbody.forces.tree.expansions.formulas import Basis
from nbody.forces.tree.expansions.text import Text
from nbody.forces.tree.options import is_softened

SHORT = 1 << 15
"""The most bodies for which one thread orders them and adds up moments. These are some thirty short loops; one ends when
all threads have arrived: beside another program, when each has had its turn. (10 000 bodies, two cores, beside direct sums:
22.6 instead of 4.4 steps/s; alone 140 instead of 150.)"""

WORD, BYTES = ir.IntType(64), ir.IntType(8).as_pointer()


def kernel(function: Callable | None = None, **options: Any) -> Any:
    """Compile a function that Python calls, and cache it on disk. It allocates no arrays, so references to them are not
    counted."""
    made = compute.kernel("cpu", _nrt=False, **options)
    return made if function is None else made(function)


def inner(function: Callable | None = None, calls: bool = False, **options: Any) -> Any:
    """Compile a function that only kernels call: without machine code of its own, nor what Python would need to call it. One
    that mainly ``calls`` others is optimized in the kernel only, so that these are not optimized at each level."""
    if function is None:
        return lambda function: inner(function, calls, **options)
    if config.DISABLE_JIT:
        return function
    options |= {"nopython": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return (CallerDispatcher if calls else InnerDispatcher)(function, targetoptions=options)


UNUSED = {
    "AnnotateTypes", "DumpParforDiagnostics", "FindLiterallyCalls", "InlineClosureLikes", "IRLegalization",
    "LiteralPropagationSubPipelinePass", "LiteralUnroll", "MakeFunctionToJitFunction", "NoPythonSupportedFeatureValidation",
    "NopythonRewrites", "WithLifting",
}  # fmt: skip
"""The compiler's passes for what inner functions do not have (array expressions, closures, ``with``), and for messages: an
eighth of the time, for the same code."""


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
        """Numba's passes, without :data:`UNUSED`."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.passes = [each for each in manager.passes if each[0].__name__ not in UNUSED]
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


class CallerDispatcher(InnerDispatcher):
    """An inner function that calls others."""

    compiler = CallerCompiler


@contextmanager
def one_thread_for_few(count: int) -> Iterator[None]:
    """Inside this block one thread makes the parallel loops, if there are few bodies."""
    threads = get_num_threads()
    set_num_threads(1 if count <= SHORT else threads)
    try:
        yield
    finally:
        set_num_threads(threads)


@intrinsic
def for_each(typing_context, function, count, few, arguments):
    """``function(k, *arguments)`` for k = 0 … count - 1, without results: divided among Numba's threads, or by this thread
    alone for less than ``few`` numbers."""
    signature = function.get_call_type(typing_context, (types.int64, *arguments.types), {})

    def generate(context, builder, _, values):
        get_num_threads()  # starts the threads: LLVM must know the functions below, or it ends the process
        compiled = function.dispatcher.get_compile_result(signature)
        context.add_linking_libs([compiled.library])
        _, total, least, given = values
        get_threads = cgutils.get_or_insert_function(builder.module, ir.FunctionType(WORD, []), "get_num_threads")
        threads = builder.select(builder.icmp_signed("<", total, least), WORD(1), builder.call(get_threads, []))
        data = cgutils.alloca_once_value(builder, cgutils.make_anonymous_struct(builder, [total, threads, given]))
        thread = _thread(context, builder.module, compiled, signature, data.type)
        # The pool adds the number of a thread times the step to the address where its argument begins: 0.
        begin = cgutils.alloca_once_value(builder, ir.Constant(BYTES, None))
        number, step = cgutils.alloca_once_value(builder, threads), cgutils.alloca_once_value(builder, WORD(1))
        places = [begin, number, step, builder.bitcast(data, BYTES)]
        with builder.if_else(builder.icmp_signed("==", threads, WORD(1))) as (one, several):
            with one:
                builder.call(thread, places)
            with several:
                kind = ir.FunctionType(ir.VoidType(), [BYTES] * 5 + [WORD] * 3)
                pool = cgutils.get_or_insert_function(builder.module, kind, "numba_parallel_for")
                addresses = [builder.bitcast(each, BYTES) for each in (thread, *places)]
                builder.call(pool, [*addresses, WORD(0), WORD(1), threads])
        return context.get_dummy_value()

    return types.void(function, types.int64, types.int64, arguments), generate


def _thread(context, module, compiled, signature, data_type):
    """The LLVM function of a thread, ``thread(arguments, dimensions, steps, data)``, as Numba's pool calls it: for the
    numbers of as many threads as ``dimensions`` says, from the first argument on."""
    kind = ir.FunctionType(ir.VoidType(), [BYTES.as_pointer(), WORD.as_pointer(), WORD.as_pointer(), BYTES])
    thread = ir.Function(module, kind, module.get_unique_name("for_each"))
    thread.linkage = "internal"
    builder = ir.IRBuilder(thread.append_basic_block())
    data = builder.load(builder.bitcast(thread.args[3], data_type))
    total, threads, given = (builder.extract_value(data, k) for k in range(3))
    first = builder.ptrtoint(builder.load(thread.args[0]), WORD)
    after = builder.add(first, builder.load(thread.args[1]))
    begin, end = (builder.sdiv(builder.mul(each, total), threads) for each in (first, after))
    given = cgutils.unpack_tuple(builder, given)
    with cgutils.for_range_slice(builder, begin, end, WORD(1)) as (k, _):
        context.call_internal_no_propagate(builder, compiled.fndesc, signature, [k, *given])
    builder.ret_void()
    return thread


class Variant(NamedTuple):
    """What kernels are made for; ``law`` is the name of a :class:`~nbody.law.Law`."""

    order: int
    dimensions: int
    law: str
    precision: str
    potential: bool

    @property
    def basis(self) -> Basis:
        """The expansions."""
        return Basis(self.order, self.dimensions, is_softened(self.law), self.potential)

    @property
    def of_cells(self) -> "Variant":
        """That of the moments and of the criterion: the potential has the same, and laws other than Plummer's have
        Newton's."""
        return self._replace(potential=False, law="plummer" if is_softened(self.law) else "none")

    @property
    def real(self) -> type:
        """The type of the kernel's numbers."""
        return np.float32 if self.precision == "float32" else np.float64

    @property
    def degree(self) -> int:
        """The highest moments of M2P: the quadrupole up to order 5. For higher orders as accurate as M2L: sparse targets
        would take very long lists of direct sums."""
        return min(2, self.order - 1) if self.order <= 5 else self.order - 1


def compiled(text: Text, variant: Variant, called: str, **known: Any) -> Callable:
    """The compiled function ``called`` that a text defines. It knows ``compile_for_vectors``, ``rsqrt``, ``sqrt``, ``zero``,
    and what is ``known`` besides."""
    real = variant.real
    known |= {
        "rsqrt": roots(real).rsqrt,
        "sqrt": math.sqrt,
        "zero": real(0),
        "compile_for_vectors": compile_for_vectors,
    }
    compiled: Callable = inner(fastmath=FAST)(text.function(called, real, **known))
    return compiled
