"""``python -m nbody.lessons [NAME ...]``: draw the lessons' figures into :data:`~nbody.lessons.FOLDER`, in two minutes."""

import os
import sys

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"  # before Numba is imported: the figures are made from recorded kernels

from nbody.errors import NBodyError
from nbody.lessons import FIGURES, draw

try:
    for name in sys.argv[1:] or FIGURES:
        print(draw(name))
except NBodyError as error:
    print(f"error: {error}", file=sys.stderr)
    sys.exit(error.exit_code)
