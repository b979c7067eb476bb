"""Addresses that a thread carries from slab to slab, where indices would be turned into addresses anew each time.

An address counts bytes. In Numba's simulator it counts from the start of its array, so that the same kernels run there.
"""

import numpy as np

from nbody.gpu import SIMULATED
from nbody.linalg.intrinsics import VECTOR_BYTES, vector_length

if SIMULATED:
    from nbody.linalg.intrinsics import _get

    def global_address(array, index):
        """Address of element ``index`` of an array in global memory; 64 bits."""
        return np.uint64(index * array.itemsize)

    def shared_address(array, index):
        """Address of element ``index`` of an array in shared memory; 32 bits."""
        return np.uint32(index * array.itemsize)

    def array_at(array, address):
        """What lies in shared memory from ``address`` on, as an array of the kind of ``array``, which is there."""
        return array.reshape(-1)[int(address) // array.itemsize :]

    def advanced(address, count, stride):
        """``address + count * stride`` for an address in global memory, a count and a stride of 32 bits."""
        return np.uint64(int(address) + int(count) * int(stride))

    def copy_from(shared, offset, source, address, ahead, wanted, inside):
        """Start to copy the number at ``address + ahead``, which is in ``source``, to ``shared[offset]``, or zero if it
        is not ``inside``; do nothing unless ``wanted``."""
        if wanted:
            shared[offset] = _get(source, (int(address) + ahead) // source.itemsize) if inside else 0

    def copy_vector_from(shared, offset, source, address, ahead, wanted, inside):
        """As :func:`copy_from` for V numbers at once, past the first-level cache."""
        for word in range(vector_length(source.dtype)):
            copy_from(shared, offset + word, source, address, ahead + word * source.itemsize, wanted, inside)

else:
    from llvmlite import ir

    from nbody.gpu.intrinsics import intrinsic, types
    from nbody.linalg.intrinsics import GLOBAL, SHARED, address_of, assembly

    def _taker_of_addresses(space, kind):
        @intrinsic
        def take(typing_context, array, index):
            def generate(context, builder, signature, arguments):
                start, place = arguments
                return address_of(context, builder, signature.args[0], start, place, space)

            return kind(array, kind), generate

        return take

    global_address = _taker_of_addresses(GLOBAL, types.uint64)
    shared_address = _taker_of_addresses(SHARED, types.uint32)

    @intrinsic
    def array_at(typing_context, array, address):
        def generate(context, builder, signature, arguments):
            view = context.make_array(signature.args[0])(context, builder, arguments[0])
            real = context.get_data_type(signature.args[0].dtype)
            start = builder.inttoptr(arguments[1], ir.PointerType(real, addrspace=SHARED))
            view.data = builder.addrspacecast(start, view.data.type)
            return view._getvalue()

        return array(array, types.uint32), generate

    # From these two the assembler makes one IMAD.WIDE; of a mad.wide it makes a product and two additions with carry.
    _ADVANCE = (
        "{ .reg .b32 low, high; mov.b64 {low, high}, $1; mad.lo.cc.u32 low, $2, $3, low; "
        "madc.hi.u32 high, $2, $3, high; mov.b64 $0, {low, high}; }"
    )

    @intrinsic
    def advanced(typing_context, address, count, stride):
        def generate(context, builder, signature, arguments):
            return assembly(builder, ir.IntType(64), list(arguments), _ADVANCE, "=l,l,r,r", volatile=False)

        return types.uint64(types.uint64, types.uint32, types.uint32), generate

    def _copy_from(text, whole_vector):
        def generate(context, builder, signature, arguments):
            to, offset, _, address, ahead, wanted, inside = arguments
            size = VECTOR_BYTES if whole_vector else np.dtype(str(signature.args[0].dtype)).itemsize
            target = address_of(context, builder, signature.args[0], to, offset, SHARED)
            word = ir.IntType(32)
            read = builder.select(inside, word(size), word(0))
            operands = [target, builder.add(address, ahead), read, builder.zext(wanted, word)]
            assembly(builder, ir.VoidType(), operands, text.format(size), "r,l,r,r")
            return context.get_dummy_value()

        @intrinsic
        def copy(typing_context, shared, offset, source, address, ahead, wanted, inside):
            place, flag = types.uint64, types.boolean
            return types.void(shared, types.uint32, source, place, place, flag, flag), generate

        return copy

    # A predicate of their own: around a branch the copies would not be in one block with the arithmetic.
    _COPY = "{{ .reg .pred p; setp.ne.u32 p, $3, 0; @p cp.async.%s.shared.global [$0], [$1], {}, $2; }}"
    copy_from = _copy_from(_COPY % "ca", whole_vector=False)
    copy_vector_from = _copy_from(_COPY % "cg", whole_vector=True)
