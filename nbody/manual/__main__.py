"""``python -m nbody.manual FOLDER``: build the manual; with ``--strict`` warnings are errors."""

import sys
from pathlib import Path

from nbody.manual.build import build

print(build(Path(sys.argv[1]), "--strict" in sys.argv[2:]))
