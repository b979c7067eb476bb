"""Child processes that run Python."""

import os
import sys
from typing import Any


def python(*arguments: str, **environment: str) -> dict[str, Any]:
    """What ``subprocess`` needs to start Python: ``args``, and ``env`` with additions to this process's environment.

    The child imports from where this process does, and not from the current folder (``-P``): a file ``nbody.py`` that
    lies there must not be executed.
    """
    paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
    return {"args": [sys.executable, "-P", *arguments], "env": os.environ | paths | environment}
