"""GPU instructions without an equivalent in Python: 128-bit moves, asynchronous copies, tensor cores.

Functions that access memory take (array, flat index) pairs; the array is C-contiguous, of any shape and in any memory. So
the same kernel runs in Numba's simulator, where these functions are plain assignments. Flat indices also avoid Numba's
wrap-around of negative indices, two integer instructions per access.
"""

from typing import Any

import numpy as np

from nbody.compute import SIMULATED

AMPERE = 0
"""The depth for which :func:`mma_f64` multiplies 16x4 by 4x8 numbers with two instructions of compute capability 8."""
VECTOR_BYTES = 16
"""The widest access of one thread, and the required alignment of its address."""


def vector_length(dtype: Any) -> int:
    """Numbers of ``dtype`` per 128-bit access: 4 of float32, 2 of float64."""
    return VECTOR_BYTES // np.dtype(dtype).itemsize


if SIMULATED:
    from nbody.linalg.simulated_warp import mma_f64, mma_tf32, wait_for_team

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
        """As :func:`copy_async` for V numbers at once, bypassing the first-level cache."""
        for word in range(vector_length(_get(shared, i).dtype)):
            _put(shared, i + offset + word, _get(source, j + word) if inside else 0)

    def commit_copies():
        """Close the group of copies that this thread has started since the last call."""

    def copies_waiter(groups):
        """A function that waits until at most ``groups`` of this thread's newest groups are still in progress."""
        return lambda: None

    def round_tf32(x):
        """``x`` rounded to the 10 explicit mantissa bits of TF32, ties away from zero."""
        bits = np.float32(x).view(np.uint32)
        return x if x != x else ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)

    def head_tf32(x):
        """As :func:`round_tf32` in two instructions. Some NaNs become zero, but ``x - head_tf32(x)`` is still a NaN."""
        return round_tf32(x)

else:
    from llvmlite import ir

    from nbody.compute.in_kernels.intrinsics import intrinsic, types

    SHARED, GLOBAL = 3, 1  # NVVM's address spaces

    def _element(context, builder, array_type, array, index):
        """Pointer to element ``index`` of an array (None: its first element), and the element's LLVM type."""
        data = context.make_array(array_type)(context, builder, array).data
        return builder.gep(data, [index]) if index else data, context.get_data_type(array_type.dtype)

    def address_of(context, builder, array_type, array, index, space, offset=None):
        """Address of an element in its memory space: 32 bits in shared memory, 64 in global.

        Addresses in shared memory are computed with 32 bits, so that the assembler makes constant differences part of the
        instruction; 64 bits cost three more instructions per copy."""
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
        """An intrinsic (destination, i, source, j) that moves ``count`` numbers (0: 16 bytes) in one access."""

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
        """A function that waits until at most ``groups`` of this thread's newest groups are still in progress."""
        return _statement(f"cp.async.wait_group {groups};")

    @intrinsic
    def wait_for_team(typing_context, index, threads):
        """A barrier for ``threads`` threads of the block (whole warps); ``index`` (1 to 15) names the barrier."""

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

    # PTX's cvt.rna.tf32 is the same as round_tf32, but takes seven instructions on Hopper.
    round_tf32, head_tf32 = _tf32_rounder(keep_nan=True), _tf32_rounder(keep_nan=False)

    def _mma(text, real, convert, a_at, b_at, c_at):
        """An intrinsic (product, p, a, i, b, j) for the ``mma`` instruction ``text``. A thread holds its elements of A, B
        and the product at the offsets ``a_at``, ``b_at``, ``c_at`` from ``a[i]``, ``b[j]``, ``product[p]``. ``real``:
        LLVM's type of the product and the letter of its registers; ``convert``: the same for the factors."""
        (number, letter), (factor, factor_letter) = real, convert
        counts = len(c_at), len(a_at) + len(b_at)
        # The first of two instructions must not overwrite an input of the second.
        output = "=&" if text.count(";") > 1 else "="
        constraints = ",".join([output + letter] * counts[0] + [factor_letter] * counts[1] + [letter] * counts[0])

        def generate(context, builder, signature, arguments):
            def pointers(position, offsets):
                kind, array, first = signature.args[position], arguments[position], arguments[position + 1]
                places = [builder.add(first, first.type(offset)) for offset in offsets]
                return [_element(context, builder, kind, array, place)[0] for place in places]

            sums, factors = pointers(0, c_at), pointers(2, a_at) + pointers(4, b_at)
            operands = [builder.bitcast(builder.load(place), factor) for place in factors]
            operands += [builder.load(total) for total in sums]
            result = ir.LiteralStructType([number] * counts[0])
            products = assembly(builder, result, operands, text, constraints, volatile=False)
            for n, total in enumerate(sums):
                builder.store(builder.extract_value(products, n), total)
            return context.get_dummy_value()

        @intrinsic
        def mma(typing_context, product, p, a, i, b, j):
            return types.void(product, types.uint32, a, types.uint32, b, types.uint32), generate

        return mma

    mma_tf32 = _mma(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {$0,$1,$2,$3}, {$4,$5,$6,$7}, {$8,$9}, {$10,$11,$12,$13};",
        (ir.FloatType(), "f"), (ir.IntType(32), "r"), range(4), range(2), range(4),
    )  # fmt: skip

    def mma_f64(depth, a_at, b_at, c_at):
        """As :func:`nbody.linalg.simulated_warp.mma_f64`."""
        double = (ir.DoubleType(), "d")
        return _mma(_mma_f64_text(depth), double, double, a_at, b_at, c_at)

    def _mma_f64_text(depth):
        def registers(first, count):
            return "{" + ",".join(f"${n}" for n in range(first, first + count)) + "}"

        if depth == AMPERE:  # two products of 8x4 by 4x8
            half = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {{${0},${1}}}, {{${2}}}, {{$6}}, {{${3},${4}}};"
            return half.format(0, 1, 4, 7, 8) + " " + half.format(2, 3, 5, 9, 10)
        a, b = depth // 2, depth // 4
        operands = registers(0, 4), registers(4, a), registers(4 + a, b), registers(4 + a + b, 4)
        return f"mma.sync.aligned.m16n8k{depth}.row.col.f64.f64.f64.f64 {', '.join(operands)};"
