"""A compiled kernel: its PTX and machine code, the registers and memory that it uses, and its launches.

Tests inspect kernels on every machine, with or without a card; the benchmark counts their instructions.
"""

import contextlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from nbody.compute.compiling.compiling_faster import compiling_faster
from nbody.compute.gpu.device import cuda
from nbody.errors import DeviceError


@dataclass(frozen=True)
class Resources:
    """What a compiled kernel uses: registers per thread, bytes of shared memory per block, bytes of local memory (spills
    and arrays that do not fit into registers) per thread."""

    registers: int
    shared: int
    local: int


def ptx(kernel: Any, signature: tuple, compute_capability: tuple[int, int] = (9, 0)) -> str:
    """The PTX of a ``cuda.jit`` kernel for a list of Numba argument types; needs NVVM (extra ``cu13``), no GPU."""
    from types import SimpleNamespace
    from unittest.mock import patch

    from numba.cuda import dispatcher
    from numba.cuda.compiler import CUDACompiler
    from numba.cuda.types import Function

    # Device functions query the current device while they compile; this object replaces it.
    device = SimpleNamespace(compute_capability=compute_capability)
    options = {
        name: kernel.targetoptions[name]
        for name in ("fastmath", "launch_bounds")
        if kernel.targetoptions.get(name) is not None
    }
    with patch.object(dispatcher, "get_current_device", lambda: device), compiling_faster(Function, CUDACompiler):
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
    """The resources of a kernel whose PTX is assembled for a device; see :func:`assembled`."""
    _, log = assembled(code, compute_capability, max_registers)
    found = re.search(r"used (\d+) registers.*?(\d+) stack, (\d+) bytes smem.*?(\d+) bytes lmem", log)
    if found is None:
        raise DeviceError(f"nvJitLink's report cannot be parsed: {log[-200:]!r}")
    registers, stack, shared, local = map(int, found.groups())
    return Resources(registers, shared, max(local, stack))


def machine_code(kernel: Any) -> bytes:
    """The machine code (a cubin) of a compiled kernel, for the current device."""
    code = kernel._codelibrary.get_cubin()
    return getattr(code, "code", code)


class Launch(NamedTuple):
    """A kernel that was launched, compiled for its arguments, and the number of threads in all its blocks."""

    kernel: Any
    threads: int


@contextlib.contextmanager
def launches() -> Iterator[list[Launch]]:
    """A list of the kernels launched inside this ``with`` block, in order, without replays of graphs."""
    from unittest.mock import patch

    from numba.cuda.dispatcher import _Kernel

    seen: list[Launch] = []
    launch = _Kernel.launch

    def noted(kernel, args, griddim, blockdim, stream=0, sharedmem=0):
        seen.append(Launch(kernel, math.prod(griddim) * math.prod(blockdim)))
        launch(kernel, args, griddim, blockdim, stream, sharedmem)

    with patch.object(_Kernel, "launch", noted):
        yield seen
