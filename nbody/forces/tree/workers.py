"""The threads of parallel loops as workers: each calls one compiled function, which divides the work itself.

Threads of Python would compete with those of Numba, which spin for some milliseconds after each parallel loop (1e5 bodies on
two Zen 4 cores: 4 ms of 24). A parallel loop around the function would compile it twice (22 s instead of 13 s), so the loop
calls it by its address.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import get_num_threads, prange, set_num_threads, typeof, types
from numba.core import cgutils
from numba.extending import intrinsic

from nbody import compute
from nbody.forces.tree.walk_memory import TreeView

SHORT = 1 << 15
"""The most bodies for which one thread orders them and adds up moments. These are some thirty short loops; one ends when
all threads have arrived: beside another program, when each has had its turn. (10 000 bodies, two cores, beside direct sums:
22.6 instead of 4.4 steps/s; alone 140 instead of 150.)"""


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
def call_at(typing_context, address, arguments):
    """Call the compiled function at an address, which takes these arguments and returns a boolean."""

    def generate(context, builder, signature, values):
        kinds, convention = signature.args[1].types, context.call_conv
        pointer = convention.get_function_type(types.boolean, kinds).as_pointer()
        function = builder.inttoptr(values[0], pointer)
        given = cgutils.unpack_tuple(builder, values[1])
        return convention.call_function(builder, function, types.boolean, kinds, given)[1]

    return types.boolean(address, arguments), generate


def run(function: Any, *arguments: Any) -> bool:
    """Call ``function(w, …)`` for each worker w, in a thread each; whether all return True.

    Args:
        function: one of :func:`~nbody.forces.tree.descent.descend_for`; ``arguments`` are the others that it takes.
    """
    key = (function, _layout(arguments))
    if key not in _addresses:
        kinds = (types.int64, *map(typeof, arguments))
        function.compile(kinds)
        compiled = function.overloads[kinds]
        _addresses[key] = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    sources, targets, *rest = arguments
    return bool(start(_addresses[key], *sources, *targets, *rest))


def _layout(value: Any) -> Any:
    """What the Numba type of an argument follows from. (Numba takes half a millisecond for the types of all arguments.)"""
    if isinstance(value, tuple):
        return tuple(map(_layout, value))
    return (value.dtype.char, value.ndim, value.flags.num) if isinstance(value, np.ndarray) else type(value)


_addresses: dict[Any, int] = {}
"""Of the machine code of functions, by function and types; an address is that of this process."""


def _start(
    address, bodies, cells, fields, target_bodies, target_cells, target_fields,
    last, counter, tasks, same, rules, group, few, memory, result,
):  # fmt: skip
    """(Numba's parallel loops know no tuples of tuples.)"""
    failed = 0
    for w in prange(len(memory.counts)):
        sources, targets = TreeView(bodies, cells, fields), TreeView(target_bodies, target_cells, target_fields)
        given = (np.int64(w), sources, targets, last, counter, tasks, same, rules, group, few, memory, result)
        if not call_at(address, given):
            failed += 1
    return failed == 0


start = compute.kernel("cpu", parallel=True)(_start)
