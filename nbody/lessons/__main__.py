"""``python -m nbody.lessons [NAME ...]``: draw the lessons' figures into ``.github/lessons``, in about a minute."""

import os
import sys

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"  # before Numba is imported: the figures are made from recorded kernels

from nbody.lessons import FIGURES, FOLDER
from nbody.lessons.style import save

if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or FIGURES:
        save(FIGURES.load(name)(), FOLDER / f"{name}.png")
        print(FOLDER / f"{name}.png")
