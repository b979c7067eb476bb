"""Parallel loops of kernels on the CPU, in which threads call a function.

With ``prange`` the body of each loop would be compiled a second time, as a separate function. Threads of Python would
compete with those of Numba, which spin for some milliseconds after each parallel loop (1e5 bodies on two Zen 4 cores: 4 ms
of 24). The bits do not depend on the number of threads where no two numbers write to the same place.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from llvmlite import ir
from numba import get_num_threads, set_num_threads, types
from numba.core import cgutils
from numba.extending import intrinsic

SHORT = 1 << 15
"""The most bodies for which one thread orders them and adds up moments. These are some thirty short loops; one ends when
all threads have arrived: beside another program, when each has had its turn. (10 000 bodies, two cores, beside direct sums:
22.6 instead of 4.4 steps/s; alone 140 instead of 150.)"""

WORD, BYTES = ir.IntType(64), ir.IntType(8).as_pointer()


@contextmanager
def threads(number: int) -> Iterator[None]:
    """A context in which ``number`` threads run the parallel loops."""
    before = get_num_threads()
    set_num_threads(number)
    try:
        yield
    finally:
        set_num_threads(before)


def one_thread_for_few(count: int) -> AbstractContextManager[None]:
    """A block in which one thread makes the parallel loops, if there are few bodies."""
    return threads(1) if count <= SHORT else nullcontext()


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


@intrinsic
def next_number(typing_context, counter):
    """The first number of an int64 array, which grows by one: different for every caller."""
    if not (isinstance(counter, types.Array) and counter.dtype == types.int64):
        return None

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.atomic_rmw("add", array.data, ir.Constant(ir.IntType(64), 1), "seq_cst")

    return types.int64(counter), generate
