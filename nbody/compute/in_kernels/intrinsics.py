"""Functions for kernels: a reciprocal square root, 128-bit loads, shuffles, and arithmetic that fast-math does not
reorder."""

from llvmlite import ir
from numba.cuda import libdevice, types
from numba.cuda.extending import intrinsic

try:
    from numba.cuda.extending import overload
except ImportError:  # without numba-cuda: kernels are listed and described, and run in the simulator
    from numba.extending import overload

from nbody.compute.gpu.device import FAST, cuda

ALL_LANES = 0xFFFFFFFF


def device_function(function):
    """Compile ``function`` as a device function, which kernels may call."""
    return cuda.jit(device=True, **FAST)(function)


def exact_function(function):
    """Compile ``function`` as a device function without fast mathematics."""
    return cuda.jit(device=True)(function)


@device_function
def shuffle(value, lane):
    """The value of another lane of the warp. All threads of the warp must call it."""
    return cuda.shfl_sync(ALL_LANES, value, lane)


@device_function
def ballot(predicate):
    """A bit for each lane of the warp, 1 where ``predicate`` is true. All threads of the warp must call it."""
    return cuda.ballot_sync(ALL_LANES, predicate)


@device_function
def sync_threads():
    """Wait for all threads of the block; in device functions, where the simulator does not know ``cuda``."""
    cuda.syncthreads()


@device_function
def sync_warp():
    """Wait for all threads of the warp; they then see what the others wrote to shared memory."""
    cuda.syncwarp(ALL_LANES)


@device_function
def lane():
    """The number of this thread in its warp, in blocks whose x is a multiple of 32."""
    return cuda.threadIdx.x & 31


@device_function
def count_ones(x):
    """The number of bits that are 1."""
    return cuda.popc(x)


@device_function
def leading_zeros(x):
    """The number of zero bits before the first 1 of a 64-bit number."""
    return cuda.clz(x)


def rsqrt(x):
    """1/√x in the precision of ``x``. In float32: infinity at 0, one MUFU.RSQ (``1/math.sqrt`` would be two instructions).
    In float64: NaN at 0, one MUFU.RSQ64H and five float64 instructions."""
    raise NotImplementedError("for kernels only")


@intrinsic
def _rsqrt_seed(typing_context, x):
    """1/√x in float64 from one MUFU.RSQ64H: relative error 2e-7 over the whole range of float64."""

    def codegen(context, builder, signature, arguments):
        number = ir.DoubleType()
        assembly = ir.InlineAsm(ir.FunctionType(number, [number]), "rsqrt.approx.ftz.f64 $0, $1;", "=d,d", False)
        return builder.call(assembly, arguments)

    return types.float64(types.float64), codegen


@overload(rsqrt, target="cuda")
def _rsqrt_in_a_kernel(x):
    if x == types.float32:
        return lambda x: libdevice.rsqrtf(x)

    def refined(x):
        """The seed and one step of Halley's method, which triples the correct digits. (0 gives NaN, not infinity.)"""
        y = _rsqrt_seed(x)
        error = 1.0 - x * y * y
        return y + y * error * (0.5 + 0.375 * error)

    return refined


def add(a, b):
    """a + b, rounded once. Fast-math simplifies (a + b) - a to b, but does not simplify this function."""
    raise NotImplementedError("for kernels only")


def subtract(a, b):
    """a - b, rounded once; see :func:`add`."""
    raise NotImplementedError("for kernels only")


def multiply(a, b):
    """a · b, rounded once; fast-math would multiply in any order. See :func:`add`."""
    raise NotImplementedError("for kernels only")


def multiply_add(a, b, c):
    """a · b + c, rounded once. Fast-math may round a product that two sums share separately in one kernel and not in
    another; this function gives the same bits in both."""
    raise NotImplementedError("for kernels only")


@overload(add, target="cuda")
def _add_in_a_kernel(a, b):
    return (lambda a, b: libdevice.fadd_rn(a, b)) if a == types.float32 else (lambda a, b: libdevice.dadd_rn(a, b))


@overload(subtract, target="cuda")
def _subtract_in_a_kernel(a, b):
    if a == types.float32:
        return lambda a, b: libdevice.fadd_rn(a, -b)
    return lambda a, b: libdevice.dadd_rn(a, -b)


@overload(multiply, target="cuda")
def _multiply_in_a_kernel(a, b):
    return (lambda a, b: libdevice.fmul_rn(a, b)) if a == types.float32 else (lambda a, b: libdevice.dmul_rn(a, b))


@overload(multiply_add, target="cuda")
def _multiply_add_in_a_kernel(a, b, c):
    if a == types.float32:
        return lambda a, b, c: libdevice.fmaf_rn(a, b, c)
    return lambda a, b, c: libdevice.fma_rn(a, b, c)


def is_nan(x):
    """True for a NaN; in fast-math kernels, ``x != x`` is always false."""
    raise NotImplementedError("for kernels only")


@overload(is_nan, target="cuda")
def _is_nan_in_a_kernel(x):
    return (lambda x: libdevice.isnanf(x) != 0) if x == types.float32 else (lambda x: libdevice.isnand(x) != 0)


@intrinsic
def row(typing_context, array, i):
    """Row i of a C-contiguous (N, 4) array as four numbers, by one 128-bit load (two in float64)."""
    signature = types.UniTuple(array.dtype, 4)(array, i)

    def codegen(context, builder, signature, arguments):
        array_type, _ = signature.args
        rows = ir.VectorType(context.get_data_type(array_type.dtype), 4).as_pointer()
        data = context.make_array(array_type)(context, builder, arguments[0]).data
        load = builder.load(builder.gep(builder.bitcast(data, rows), [arguments[1]]))  # 4 i may need more than 32 bits
        load.align = 16
        numbers = [builder.extract_element(load, ir.Constant(ir.IntType(32), k)) for k in range(4)]
        return context.make_tuple(builder, signature.return_type, numbers)

    return signature, codegen


@intrinsic
def set_row(typing_context, array, i, a, b, c, d):
    """Set row i of a C-contiguous (N, 4) array, by one 128-bit store (two in float64)."""
    signature = types.void(array, i, a, b, c, d)

    def codegen(context, builder, signature, arguments):
        array_type = signature.args[0]
        rows = ir.VectorType(context.get_data_type(array_type.dtype), 4)
        data = context.make_array(array_type)(context, builder, arguments[0]).data
        vector = ir.Constant(rows, ir.Undefined)
        for k in range(4):
            value = context.cast(builder, arguments[2 + k], signature.args[2 + k], array_type.dtype)
            vector = builder.insert_element(vector, value, ir.Constant(ir.IntType(32), k))
        place = builder.gep(builder.bitcast(data, rows.as_pointer()), [arguments[1]])  # 4 i may need more than 32 bits
        builder.store(vector, place).align = 16
        return context.get_dummy_value()

    return signature, codegen
