"""Where the lines about a run go when a program does not say: in a notebook they are printed."""

import sys
from collections.abc import Callable


def default_notify() -> Callable[[str], None]:
    """``print`` in a notebook; elsewhere a function that drops the line."""
    return print if in_notebook() else lambda line: None


def in_notebook() -> bool:
    """True if this program is the kernel of a notebook (and not of IPython in a terminal)."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and "IPKernelApp" in getattr(shell, "config", {})
