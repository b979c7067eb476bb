"""Functions that kernels on the CPU call by their addresses: such a kernel is compiled once, whatever it then calls."""

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def address_of(function: Any, signature: Any) -> int:
    """The address of a kernel without a result, compiled for a Numba signature. It is valid as long as the kernel exists."""
    compiled = function.get_compile_result(signature)
    address: int = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    return address


def calling(signature: Any) -> Any:
    """For kernels: ``call(address, arguments)`` calls such a function, and raises what it raises."""

    @intrinsic
    def call(context, address, arguments):
        def generate(context, builder, _, values):
            convention = context.call_conv
            function = convention.get_function_type(types.none, signature.args).as_pointer()
            pointer = builder.inttoptr(values[0], function)
            given = cgutils.unpack_tuple(builder, values[1])
            status, _ = convention.call_function(builder, pointer, types.none, signature.args, given)
            with cgutils.if_unlikely(builder, status.is_error):
                convention.return_status_propagate(builder, status)
            return context.get_dummy_value()

        return types.none(types.int64, types.Tuple(signature.args)), generate

    return call
