"""A process that compiles kernels for another one, see :mod:`nbody.compute.precompile`.

It reads jobs, writes a byte when it is ready for one, and ends with its standard input.
"""

import contextlib
import gc
import os
import pickle
import sys

from nbody.compute.kernels import kernel


def main() -> None:
    """Compile until there are no more jobs."""
    gc.disable()  # a tenth of the time
    jobs = sys.stdin.buffer
    ready = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what a library prints is not an answer
    with contextlib.suppress(EOFError, KeyboardInterrupt, BrokenPipeError):
        while True:
            ready.write(b".")
            device, function, options, name, types = pickle.loads(pickle.load(jobs))
            made = kernel(device, **options)(function)
            if made._cache.name(types) == name:
                made.compile(types)


if __name__ == "__main__":
    main()
