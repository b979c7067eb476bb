"""What Python cannot say to the GPU: 128-bit moves, asynchronous copies, tensor cores.

Every one that touches memory works on (array, flat index) pairs, the array being C-contiguous of any shape and in any
memory, so that the same kernel runs in Numba's simulator, where plain assignments stand in. Flat indices also avoid
Numba's wrap-around of negative indices, two integer instructions an access.
"""

from typing import Any

import numpy as np

from nbody.gpu import SIMULATED

VECTOR_BYTES = 16
"""The widest access of one thread, and the alignment that it asks of an address."""


def vector_length(dtype: Any) -> int:
    """How many numbers of ``dtype`` one 128-bit access moves: 4 of float32, 2 of float64."""
    return VECTOR_BYTES // np.dtype(dtype).itemsize


if SIMULATED:
    from nbody.linalg.simulated_warp import mma_tf32, wait_for_team

    def _checked(index):
        if index < 0:
            raise IndexError(f"flat index {index} is negative")
        return int(index)

    def _get(array, index):
        return array.flat[_checked(index)]

    def _put(array, index, value):
        array.flat[_checked(index)] = value

    def _move(destination, i, source, j, length):
        if i % length or j % length:
            raise ValueError(f"an access to {length} numbers must be aligned")
        for word in range(length):
            _put(destination, i + word, _get(source, j + word))

    def move_vector(destination, i, source, j):
        """``destination[i:i + V] = source[j:j + V]`` in one 128-bit access; i and j are multiples of V."""
        _move(destination, i, source, j, vector_length(_get(source, j).dtype))

    def move_pair(destination, i, source, j):
        """``destination[i:i + 2] = source[j:j + 2]`` in one access; i and j are even."""
        _move(destination, i, source, j, 2)

    def copy_async(shared, i, offset, source, j, inside):
        """Start ``shared[i + offset] = source[j] if inside else 0`` without passing through a register."""
        _put(shared, i + offset, _get(source, j) if inside else 0)

    def copy_vector_async(shared, i, offset, source, j, inside):
        """As :func:`copy_async` for V numbers at once, past the first-level cache."""
        for word in range(vector_length(_get(shared, i).dtype)):
            _put(shared, i + offset + word, _get(source, j + word) if inside else 0)

    def commit_copies():
        """Close this thread's group of copies started since the last one."""

    def copies_waiter(groups):
        """A function that waits until at most ``groups`` of this thread's newest groups are still under way."""
        return lambda: None

    def round_tf32(x):
        """``x`` rounded to the 10 explicit mantissa bits of TF32, ties away from zero."""
        bits = np.float32(x).view(np.uint32)
        return x if x != x else ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)

    def head_tf32(x):
        """As :func:`round_tf32` in two instructions; some NaNs become zero, and survive in ``x - head_tf32(x)``."""
        return round_tf32(x)

else:
    from llvmlite import ir

    from nbody.gpu.intrinsics import intrinsic, types

    SHARED, GLOBAL = 3, 1  # NVVM's address spaces

    def _element(context, builder, array_type, array, index):
        """Pointer to element ``index`` of an array, or to its start, and LLVM's type of it."""
        data = context.make_array(array_type)(context, builder, array).data
        return builder.gep(data, [index]) if index else data, context.get_data_type(array_type.dtype)

    def address_of(context, builder, array_type, array, index, space, offset=None):
        """Address of an element in its memory space: 32 bits in shared memory, 64 in global.

        All arithmetic of a shared address has 32 bits: then the assembler makes constant differences part of the
        instruction, where 64 bits cost three more instructions a copy."""
        data, real = _element(context, builder, array_type, array, None)
        bits = ir.IntType(32 if space == SHARED else 64)
        start = builder.ptrtoint(builder.addrspacecast(data, ir.PointerType(real, addrspace=space)), bits)
        size = bits(np.dtype(str(array_type.dtype)).itemsize)
        place = builder.add(start, builder.mul(index, size))
        return builder.add(place, builder.mul(offset, size)) if offset else place

    def assembly(builder, result, operands, text, constraints, volatile=True):
        kinds = [operand.type for operand in operands]
        asm = ir.InlineAsm(ir.FunctionType(result, kinds), text, constraints, side_effect=volatile)
        return builder.call(asm, operands)

    def _mover(count):
        """An intrinsic (destination, i, source, j) that moves ``count`` numbers, or 16 bytes' worth, in one
        access."""

        def generate(context, builder, signature, arguments):
            to, i, of, j = arguments
            target, real = _element(context, builder, signature.args[0], to, i)
            origin, _ = _element(context, builder, signature.args[2], of, j)
            size = np.dtype(str(signature.args[2].dtype)).itemsize
            vector = ir.VectorType(real, count or VECTOR_BYTES // size).as_pointer()
            align = count * size or VECTOR_BYTES
            value = builder.load(builder.bitcast(origin, vector), align=align)
            builder.store(value, builder.bitcast(target, vector), align=align)
            return context.get_dummy_value()

        @intrinsic
        def move(typing_context, destination, i, source, j):
            return types.void(destination, types.uint64, source, types.uint64), generate

        return move

    move_vector, move_pair = _mover(0), _mover(2)

    def _async_copy(text, whole_vector):
        """An intrinsic (shared, i, offset, source, j, inside) that emits ``text`` with the bytes to copy and to read."""

        def generate(context, builder, signature, arguments):
            to, i, offset, of, j, inside = arguments
            size = VECTOR_BYTES if whole_vector else np.dtype(str(signature.args[0].dtype)).itemsize
            target = address_of(context, builder, signature.args[0], to, i, SHARED, offset)
            origin = address_of(context, builder, signature.args[3], of, j, GLOBAL)
            word = ir.IntType(32)
            read = builder.select(inside, word(size), word(0))
            assembly(builder, ir.VoidType(), [target, origin, read], text.format(size), "r,l,r")
            return context.get_dummy_value()

        @intrinsic
        def copy(typing_context, shared, i, offset, source, j, inside):
            return types.void(shared, types.uint32, types.uint32, source, types.uint64, types.boolean), generate

        return copy

    copy_async = _async_copy("cp.async.ca.shared.global [$0], [$1], {}, $2;", whole_vector=False)
    copy_vector_async = _async_copy("cp.async.cg.shared.global [$0], [$1], {}, $2;", whole_vector=True)

    def _statement(text):
        @intrinsic
        def statement(typing_context):
            def generate(context, builder, signature, arguments):
                assembly(builder, ir.VoidType(), [], text, "~{memory}")
                return context.get_dummy_value()

            return types.void(), generate

        return statement

    commit_copies = _statement("cp.async.commit_group;")

    def copies_waiter(groups):
        """A function that waits until at most ``groups`` of this thread's newest groups are still under way."""
        return _statement(f"cp.async.wait_group {groups};")

    @intrinsic
    def wait_for_team(typing_context, index, threads):
        """A barrier for ``threads`` of the block's threads, whole warps; ``index`` (1 to 15) tells barriers apart."""

        def generate(context, builder, signature, arguments):
            assembly(builder, ir.VoidType(), list(arguments), "bar.sync $0, $1;", "r,r,~{memory}")
            return context.get_dummy_value()

        return types.void(types.uint32, types.uint32), generate

    def _tf32_rounder(keep_nan):
        def generate(context, builder, signature, arguments):
            word = ir.IntType(32)
            bits = builder.bitcast(arguments[0], word)
            rounded = builder.and_(builder.add(bits, word(0x1000)), word(0xFFFFE000))
            if keep_nan:
                is_nan = builder.icmp_unsigned(">", builder.and_(bits, word(0x7FFFFFFF)), word(0x7F800000))
                rounded = builder.select(is_nan, bits, rounded)
            return builder.bitcast(rounded, ir.FloatType())

        @intrinsic
        def rounder(typing_context, x):
            return types.float32(types.float32), generate

        return rounder

    # PTX's cvt.rna.tf32 does what round_tf32 does, in seven instructions on Hopper.
    round_tf32, head_tf32 = _tf32_rounder(keep_nan=True), _tf32_rounder(keep_nan=False)

    @intrinsic
    def mma_tf32(typing_context, product, p, a, i, b, j):
        """``product[p:p + 4] += A·B`` for a warp: A (16, 8) from ``a[i:i + 4]``, B (8, 8) from ``b[j:j + 2]`` of its
        32 threads, in the layout of PTX's ``mma.sync.m16n8k8``."""
        signature = types.void(product, types.uint32, a, types.uint32, b, types.uint32)

        def generate(context, builder, signature, arguments):
            real, word = ir.FloatType(), ir.IntType(32)

            def pointers(position, count):
                kind, array, first = signature.args[position], arguments[position], arguments[position + 1]
                places = [builder.add(first, word(n)) for n in range(count)]
                return [_element(context, builder, kind, array, place)[0] for place in places]

            sums, factors = pointers(0, 4), pointers(2, 4) + pointers(4, 2)
            text = (
                "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                "{$0,$1,$2,$3}, {$4,$5,$6,$7}, {$8,$9}, {$10,$11,$12,$13};"
            )
            operands = [builder.bitcast(builder.load(factor), word) for factor in factors]
            operands += [builder.load(total) for total in sums]
            result = ir.LiteralStructType([real] * 4)
            constraints = "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"
            products = assembly(builder, result, operands, text, constraints, volatile=False)
            for n, total in enumerate(sums):
                builder.store(builder.extract_value(products, n), total)
            return context.get_dummy_value()

        return signature, generate
