"""Child processes that run Python."""

import os
import subprocess
import sys
from typing import Any

from nbody.errors import last_line

ANSWER = "answer: "


def python(*arguments: str, **environment: str) -> dict[str, Any]:
    """What ``subprocess`` needs to start Python: ``args``, and ``env`` with additions to this process's environment.

    The child imports from where this process does, and not from the current folder (``-P``): a file ``nbody.py`` that
    lies there must not be executed.
    """
    paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
    return {"args": [sys.executable, "-P", *arguments], "env": os.environ | paths | environment}


def ask(code: str, timeout: float, without: tuple[str, ...] = (), **environment: str) -> tuple[list[str], str]:
    """The lines that Python code prints after ``answer: `` in a child process, which may crash; and why it failed, empty if
    it did not. ``timeout``: in seconds. The child gets no environment variable whose name begins as one of ``without``."""
    child = python("-c", code, **environment)
    child["env"] = {name: value for name, value in child["env"].items() if not name.startswith(without)}
    try:
        done = subprocess.run(**child, capture_output=True, text=True, errors="replace", timeout=timeout)
    except subprocess.TimeoutExpired:
        return [], f"no answer within {timeout:g} s"
    except OSError as error:
        return [], f"the child process did not start ({error.strerror})"
    answers = [line.removeprefix(ANSWER) for line in done.stdout.splitlines() if line.startswith(ANSWER)]
    failed = done.returncode != 0 or not answers
    return answers, last_line(done.stderr, f"the child process ended with {done.returncode}") if failed else ""
