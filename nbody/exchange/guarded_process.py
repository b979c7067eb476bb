"""The child process in which a library reads a file: ``python -m`` this module, FORMAT, PATH, FRAME, MEMORY.

Writes the bodies to standard output as an .npz; an error is one line on standard error.
"""

import io
import os
import sys
import warnings

import numpy as np

from nbody.errors import InputError
from nbody.registry import imported
from nbody.trajectory import sandbox

CPU_SECONDS = 60.0


def main(format: str, path: str, frame: str, memory: str) -> bytes:
    """The .npz of the bodies in the file at ``path``. ``format`` names a class, as in ``module:Class``."""
    sandbox.limit(int(memory))
    sandbox.allow(CPU_SECONDS)
    warnings.simplefilter("ignore")
    buffer = io.BytesIO()
    np.savez(buffer, **imported(format).parse(path, int(frame) if frame else None))
    return buffer.getvalue()


if __name__ == "__main__":
    answer, message = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(2), "w")
    for descriptor in (1, 2):  # where the library may print
        os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
    try:
        answer.write(main(*sys.argv[1:]))
        answer.close()
    except Exception as error:
        message.write(" ".join(str(error).split()) or type(error).__name__)
        message.close()
        sys.exit(InputError.exit_code if isinstance(error, InputError) else 1)
