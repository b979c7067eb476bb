"""A process that compiles kernels for another one, see :mod:`nbody.compute.compiling.precompile`.

It imports the modules that its arguments name, reads jobs, writes a byte when it is ready for one, and ends with its
standard input, or if no job comes for a minute.
"""

import contextlib
import gc
import importlib
import os
import pickle
import signal
import sys

from nbody.compute.compiling.kernels import kernel
from nbody.compute.compiling.precompile import IDLE


def main() -> None:
    """Compile until there are no more jobs. The process is short: no garbage is searched for."""
    gc.disable()
    jobs = sys.stdin.buffer
    ready = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what a library prints is not an answer
    with contextlib.suppress(EOFError, KeyboardInterrupt, BrokenPipeError):
        with contextlib.suppress(Exception):  # the kernels' own errors are raised where they are called
            prepare(sys.argv[1:])
        while True:
            ready.write(b".")
            signal.alarm(IDLE)
            device, machine, function, options, name, types = pickle.loads(pickle.load(jobs))
            signal.alarm(0)
            if device == "gpu":
                from nbody.compute.compiling.gpu_kernels import compile_without_device

                compile_without_device(machine)
            made = kernel(device, **options)(function)
            if made._cache.name(types) == name:
                made.compile(types)


def prepare(modules: list[str]) -> None:
    """Import modules, and what Numba imports when it compiles its first kernel: for a GPU 2 s and 1 s."""
    for module in modules:
        importlib.import_module(module)
        if "numba.cuda" in sys.modules:
            from nbody.compute import cuda

            cuda.compile_ptx(lambda: None, (), cc=(9, 0))
        else:
            from numba import njit

            njit(lambda: None).compile(())


if __name__ == "__main__":
    main()
