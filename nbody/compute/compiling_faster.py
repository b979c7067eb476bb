"""What makes Numba compile faster: the types of a call are found once, and no garbage is collected."""

import contextlib
import gc
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def compiling_faster(function_type: Any) -> Iterator[None]:
    """Inside this block Numba compiles the same code in less time.

    It finds the types of a call once for the same arguments. It would search all definitions of an operator each time that
    it occurs: a fifth of the time that the walk of a tree takes on the CPU, and half on the GPU. And it makes a million
    objects that it still needs, among which garbage is searched for in a tenth of the time.

    Args:
        function_type: ``Function`` of Numba's types for the processor.
    """
    find, known, collects = function_type.get_call_type, dict[tuple, Any](), gc.isenabled()

    def find_once(called: Any, context: Any, types: tuple, named: dict[str, Any]) -> Any:
        key = called, tuple(types), tuple(named.items())  # a list, from the loops of threads
        if key not in known:
            known[key] = find(called, context, types, named)
        return known[key]

    function_type.get_call_type = find_once
    gc.disable()
    try:
        yield
    finally:
        function_type.get_call_type = find
        if collects:
            gc.enable()
