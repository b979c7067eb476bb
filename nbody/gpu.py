"""The only door to ``numba.cuda``: is there a device, what can it do, and the intrinsics that kernels share.

Kernel files import :data:`cuda` from here and nothing else of Numba's CUDA target, so that a change of that target is
a change of this file. Importing it costs 0.6 s; commands that need no GPU do not import it.
"""

import contextlib
import math
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from nbody.errors import DeviceError

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
"""True when kernels run in Numba's simulator on the CPU: for tests of arithmetic at small N only."""

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from numba import cuda

# The small launches of a small N, or of a last ragged tile, are meant; Numba's hint about them would reach users.
warnings.filterwarnings("ignore", message=".*Grid size")

FAST = {"fastmath": True}
"""Compile flags of every kernel: contraction to FMA, approximate reciprocals, flush of denormals."""


def bounded(threads: int, resident: int) -> dict[str, Any]:
    """:data:`FAST`, and registers so few that ``resident`` blocks of ``threads`` threads share a multiprocessor."""
    return FAST if SIMULATED else {**FAST, "launch_bounds": (threads, resident)}


# --- Is there a device, and what is it? -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Facts:
    """What is known of the current device; clocks in Hz, memory in bytes."""

    name: str
    compute_capability: tuple[int, int]
    multiprocessors: int
    clock: float
    memory_total: int
    memory_free: int
    driver: str

    @property
    def lanes_float32(self) -> int:
        """Float32 operations that a multiprocessor starts a clock: 128, and 64 on 7.x and 8.0."""
        return 64 if self.compute_capability in ((7, 0), (7, 5), (8, 0)) else 128

    @property
    def lanes_float64(self) -> int:
        """Float64 operations that a multiprocessor starts a clock: half as many on the chips made for computing, else
        two."""
        computing = ((6, 0), (7, 0), (8, 0), (9, 0), (10, 0))
        return self.lanes_float32 // 2 if self.compute_capability in computing else 2

    @property
    def peak_float32(self) -> float:
        """Float32 rate in FLOP/s, a multiply-add counted as two."""
        return 2.0 * self.lanes_float32 * self.multiprocessors * self.clock

    @property
    def peak_float64(self) -> float:
        """Float64 rate in FLOP/s, without tensor cores."""
        return 2.0 * self.lanes_float64 * self.multiprocessors * self.clock


@cache
def why_unavailable() -> str:
    """The reason why no GPU can be used, in one clause; empty if one can."""
    if SIMULATED:
        return ""
    try:
        cuda.current_context()
    except Exception as error:
        # Numba's message begins with a heading and ends with advice; the sentence between them is the reason.
        text = " ".join(str(error).split()).removeprefix("Error at driver init: ")
        return text.split(". ")[0].strip(" .:")[:200] or type(error).__name__
    return ""


def available() -> bool:
    """True if kernels can run here (on a device, or in the simulator)."""
    return not why_unavailable()


def require(what: str) -> None:
    """Raise a :class:`DeviceError` naming ``what`` needs the GPU, unless there is one."""
    reason = why_unavailable()
    if reason:
        raise DeviceError(
            f"{what} needs an NVIDIA GPU, and none can be used here ({reason}); use --engine cpu, or see 'nbody doctor'"
        )


def facts() -> Facts:
    """The current device's facts. Raises DeviceError when there is none."""
    require("this")
    if SIMULATED:
        return Facts("Numba CUDA simulator", (9, 0), 1, 1e9, 2**31, 2**31, "none")
    device = cuda.get_current_device()
    free, total = cuda.current_context().get_memory_info()
    name = device.name.decode() if isinstance(device.name, bytes) else str(device.name)
    return Facts(
        name,
        tuple(device.compute_capability),
        device.MULTIPROCESSOR_COUNT,
        device.CLOCK_RATE * 1e3,
        int(total),
        int(free),
        _driver_version(),
    )


def _driver_version() -> str:
    """The driver's version as NVIDIA writes it (580.95.05), or the CUDA version it supports where that is not told."""
    with contextlib.suppress(OSError, IndexError), open("/proc/driver/nvidia/version") as file:
        return version_in(file.readline())
    return "CUDA " + ".".join(map(str, cuda.cudadrv.driver.get_version()))


def version_in(line: str) -> str:
    """The driver's version in what it says of itself: ``… Kernel Module  580.95.05  …``, or, of the open one, ``… Open
    Kernel Module for x86_64  580.159.04  …``. Raises IndexError if there is none."""
    return re.findall(r"\b\d+(?:\.\d+)+\b", line)[0]


def resident_blocks(kernel: Any, arguments: tuple, threads: int) -> int:
    """How many blocks of so many threads of a kernel the device holds at a time, for arguments of these types."""
    if SIMULATED:
        return 3  # any number will do
    signature = tuple(kernel.typeof_pyval(argument) for argument in arguments)
    return kernel.compile(signature).max_cooperative_grid_blocks(threads)


@contextlib.contextmanager
def out_of_memory(what: str, needed: int) -> Iterator[None]:
    """Turn the driver's out-of-memory error inside this block into one line: ``needed`` bytes beside the free ones."""
    try:
        yield
    except Exception as error:
        if "MEMORY" not in str(error).upper():
            raise
        raise DeviceError(
            f"{what} needs {needed / 2**30:.2f} GiB of GPU memory and {facts().memory_free / 2**30:.2f} "
            "GiB are free; use fewer particles, or close other programs on the card"
        ) from error


class Graph:
    """The kernel launches of ``work()`` on a stream, recorded once and replayed by one call each.

    A launch from Python costs some ten microseconds of processor time, a replay of all of them two or three: at small
    N that is the difference between waiting for Python and waiting for the GPU. ``work`` must launch on ``stream``
    alone, allocate nothing, copy nothing to the host, and have been run before (so that its kernels are compiled).
    """

    def __init__(self, stream: Any, work: Callable[[], Any]) -> None:
        from cuda.bindings import driver

        self._driver, self._stream = driver, int(stream.handle)
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        self._call(driver.cuStreamBeginCapture, self._stream, mode)
        try:
            work()
        finally:
            graph = self._call(driver.cuStreamEndCapture, self._stream)
        self._graph = self._call(driver.cuGraphInstantiate, graph, 0)
        self._call(driver.cuGraphDestroy, graph)

    def replay(self) -> None:
        """Launch all of it again, on the same stream."""
        self._call(self._driver.cuGraphLaunch, self._graph, self._stream)

    def _call(self, function: Callable, *arguments: Any) -> Any:
        status, *result = function(*arguments)
        if status != self._driver.CUresult.CUDA_SUCCESS:
            raise DeviceError(f"CUDA: {function.__name__} failed with {status.name}")
        return result[0] if result else None

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # the driver may be gone when the process ends
            self._driver.cuGraphExecDestroy(self._graph)


# --- Time -----------------------------------------------------------------------------------------------------------


def milliseconds(work: Callable[[], Any], repeats: int = 5, inner: int = 1, stream: Any = 0) -> float:
    """Median time of ``work()`` by CUDA events on its stream, in ms, over ``repeats`` measurements of ``inner`` calls
    each, after one warm-up (which also compiles)."""
    work()
    cuda.synchronize()
    times = []
    for _ in range(repeats):
        start, stop = cuda.event(), cuda.event()
        start.record(stream)
        for _ in range(inner):
            work()
        stop.record(stream)
        stop.synchronize()
        times.append(cuda.event_elapsed_time(start, stop) / inner)
    return float(np.median(times))


# --- Launches: what the benchmark looks at ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Launch:
    """A kernel, compiled for its arguments, with the grid and the block of one launch."""

    kernel: Any
    grid: tuple[int, ...]
    block: tuple[int, ...]
    dynamic_shared: int = 0

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return math.prod(self.grid)

    @property
    def threads(self) -> int:
        """Threads a block."""
        return math.prod(self.block)

    def resources(self) -> "Resources":
        """What the kernel uses."""
        kernel = self.kernel
        return Resources(kernel.regs_per_thread, kernel.shared_mem_per_block, kernel.local_mem_per_thread)

    def resident(self) -> int:
        """Blocks that the card holds at a time."""
        return self.kernel.max_cooperative_grid_blocks(self.threads, self.dynamic_shared)

    def cubin(self) -> bytes:
        """The machine code that runs."""
        code = self.kernel._codelibrary.get_cubin(cc=facts().compute_capability)
        return getattr(code, "code", code)

    def ptx(self) -> str:
        """What the machine code was made from."""
        return self.kernel.inspect_asm(facts().compute_capability)


@contextlib.contextmanager
def launches() -> Iterator[list[Launch]]:
    """A list of the kernels that are launched inside this block, in order; replayed graphs are not seen."""
    from unittest.mock import patch

    from numba.cuda.dispatcher import _Kernel

    seen: list[Launch] = []
    launch = _Kernel.launch

    def noted(kernel, args, griddim, blockdim, stream=0, sharedmem=0):
        seen.append(Launch(kernel, tuple(griddim), tuple(blockdim), sharedmem))
        launch(kernel, args, griddim, blockdim, stream, sharedmem)

    with patch.object(_Kernel, "launch", noted):
        yield seen


def uuid() -> str:
    """The current device's name that is like no other's, as NVIDIA's management library knows it."""
    return cuda.get_current_device().uuid


def threads_a_multiprocessor() -> int:
    """Threads that a multiprocessor of the current device holds at most."""
    return cuda.get_current_device().MAX_THREADS_PER_MULTIPROCESSOR


# --- Compiled form: what the tests of every machine look at ----------------------------------------------------------


@dataclass(frozen=True)
class Resources:
    """What a compiled kernel uses: registers a thread, bytes of shared memory a block, bytes of local memory (spills
    and arrays that found no registers) a thread."""

    registers: int
    shared: int
    local: int


def ptx(kernel: Any, signature: tuple, compute_capability: tuple[int, int] = (9, 0)) -> str:
    """The PTX of a ``cuda.jit`` kernel for a list of Numba argument types; needs NVVM (extra ``cu13``), no GPU."""
    from types import SimpleNamespace
    from unittest.mock import patch

    from numba.cuda import dispatcher

    # Device functions ask for the current device while they compile; stand in for it.
    device = SimpleNamespace(compute_capability=compute_capability)
    options = {
        name: kernel.targetoptions[name]
        for name in ("fastmath", "launch_bounds")
        if kernel.targetoptions.get(name) is not None
    }
    with patch.object(dispatcher, "get_current_device", lambda: device):
        code, _ = cuda.compile_ptx(kernel.py_func, signature, cc=compute_capability, **options)
    return code


def assembled(
    code: str, compute_capability: tuple[int, int] = (9, 0), max_registers: int | None = None
) -> tuple[bytes, str]:
    """The machine code (a cubin) of a kernel's PTX, and the assembler's report; needs nvJitLink (extra ``cu13``), no
    GPU."""
    from cuda.core import Linker, LinkerOptions, ObjectCode

    arch = "sm_{}{}".format(*compute_capability)
    linker = Linker(
        ObjectCode.from_ptx(code.encode()),
        options=LinkerOptions(arch=arch, verbose=True, max_register_count=max_registers),
    )
    return linker.link("cubin").code, linker.get_info_log()


def resources(code: str, compute_capability: tuple[int, int] = (9, 0), max_registers: int | None = None) -> Resources:
    """What a kernel's PTX needs once it is assembled for a device; see :func:`assembled`."""
    _, log = assembled(code, compute_capability, max_registers)
    found = re.search(r"used (\d+) registers.*?(\d+) stack, (\d+) bytes smem.*?(\d+) bytes lmem", log)
    if found is None:
        raise DeviceError(f"nvJitLink's report is not understood: {log[-200:]!r}")
    registers, stack, shared, local = map(int, found.groups())
    return Resources(registers, shared, max(local, stack))


# --- Intrinsics -----------------------------------------------------------------------------------------------------

if SIMULATED:
    import threading

    from numba.cuda.simulator.kernelapi import FakeCUDAModule, FakeCUDAShared

    def _shared_array(self, shape, dtype, alignment=None):
        """One array for each line of a kernel that asks for it. (The simulator's own refuses an alignment, and now and
        then gives two threads two arrays.)"""
        asking = sys._getframe(1)
        place = asking.f_code.co_filename, asking.f_lineno
        return self._allocations.setdefault(place, np.empty(shape, dtype))

    FakeCUDAShared.array = _shared_array

    _board: dict[tuple[int, int], Any] = {}  # what each thread of a block has put up for the others of its warp

    def _exchange(value, source):
        """The value of lane ``source`` of this thread's warp. All threads of the block must take part."""
        thread: Any = threading.current_thread()
        x, y = thread.threadIdx.x, thread.threadIdx.y
        _board[x, y] = value
        thread.syncthreads()
        found = _board[x - x % 32 + source, y]
        thread.syncthreads()
        return found

    # The simulator has no shuffles.
    FakeCUDAModule.shfl_sync = lambda self, mask, value, lane: _exchange(value, lane % 32)
    FakeCUDAModule.shfl_xor_sync = lambda self, mask, value, bits: _exchange(value, self.laneid ^ bits)

    def device_function(function):
        """Let kernels call ``function``."""
        return function

    def rsqrt(x):
        """1/√x in the precision of ``x``; infinity at 0, as the hardware has it."""
        real = np.float32 if isinstance(x, np.float32) else np.float64
        return real(1.0 / math.sqrt(x)) if x > 0 else real(math.inf)

    def row(array, i):
        """Row i of an (N, 4) array as four numbers."""
        return array[i, 0], array[i, 1], array[i, 2], array[i, 3]

    def add(a, b):
        """a + b."""
        return a + b

    def subtract(a, b):
        """a - b."""
        return a - b

    def multiply(a, b):
        """a · b."""
        return a * b

    def multiply_add(a, b, c):
        """a · b + c."""
        return a * b + c
else:
    from llvmlite import ir
    from numba.cuda import libdevice, types
    from numba.cuda.extending import intrinsic, overload

    def device_function(function):
        """Let kernels call ``function``."""
        return cuda.jit(device=True, **FAST)(function)

    def rsqrt(x):
        """1/√x in the precision of ``x``; infinity at 0 in float32. One MUFU.RSQ there (``1/math.sqrt`` would be two);
        in float64 one MUFU.RSQ64H and five float64 instructions."""
        raise NotImplementedError("for kernels only")

    @intrinsic
    def _rsqrt_seed(typing_context, x):
        """1/√x in float64 from one MUFU.RSQ64H: 2e-7 right, over float64's whole range."""

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
            """The seed and one step of Halley's method, which triples its digits. (0 gives NaN, not infinity.)"""
            y = _rsqrt_seed(x)
            error = 1.0 - x * y * y
            return y + y * error * (0.5 + 0.375 * error)

        return refined

    def add(a, b):
        """a + b, rounded there and then: fast-math, to which (a + b) - a is b, may not look through it."""
        raise NotImplementedError("for kernels only")

    def subtract(a, b):
        """a - b, rounded there and then; see :func:`add`."""
        raise NotImplementedError("for kernels only")

    def multiply(a, b):
        """a · b, rounded there and then, where fast-math would multiply in any order; see :func:`add`."""
        raise NotImplementedError("for kernels only")

    def multiply_add(a, b, c):
        """a · b + c, rounded once. A product that fast-math has for two sums it may round twice in one kernel and once in
        another, as registers go; this gives the same bits in both."""
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

    @intrinsic
    def row(typing_context, array, i):
        """Row i of a C-contiguous (N, 4) array as four numbers, by one 128-bit load (two in float64)."""
        signature = types.UniTuple(array.dtype, 4)(array, i)

        def codegen(context, builder, signature, arguments):
            array_type, _ = signature.args
            number = context.get_data_type(array_type.dtype)
            data = context.make_array(array_type)(context, builder, arguments[0]).data
            first = builder.gep(data, [builder.mul(arguments[1], ir.Constant(arguments[1].type, 4))])
            load = builder.load(builder.bitcast(first, ir.VectorType(number, 4).as_pointer()))
            load.align = 16
            numbers = [builder.extract_element(load, ir.Constant(ir.IntType(32), k)) for k in range(4)]
            return context.make_tuple(builder, signature.return_type, numbers)

        return signature, codegen
