"""Errors that a user can act on: one line each, naming what, where and the fix.

Everything that is the user's to mend is an :class:`NBodyError`; the command line prints its one line and exits with
``exit_code``. Anything else that escapes is a defect of this program and keeps its traceback.
"""

from collections.abc import Callable, Iterable
from difflib import get_close_matches


class NBodyError(Exception):
    """An error with a message for the user. ``exit_code`` is what the command line exits with."""

    exit_code = 2


class InputError(NBodyError):
    """Something the user gave (a file, an option, an array) is wrong; nothing was changed on disk."""


class DeviceError(NBodyError):
    """The device asked for is missing, too small, or refuses to work."""


class RunFailed(NBodyError):
    """A run that had begun can't go on (a NaN appeared, the disk is full); the frames before it stay readable."""

    exit_code = 1


def printable(text: object) -> str:
    """A path or a foreign text on one line: each character that a terminal would obey, or can't show, as its escape."""
    text = str(text)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shortened(text: str, most: int) -> str:
    """``text``, with its middle left out if it has more than ``most`` characters: a name 1 MB long is shown to nobody."""
    return text if len(text) <= most else f"{text[: most // 2]}…{text[len(text) + 1 + most // 2 - most :]}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`` (did you mean 'x'?)`` for the known name nearest to ``name``, or nothing when none is near."""
    near = get_close_matches(str(name), list(known), n=1, cutoff=0.5)
    return f" (did you mean '{near[0]}'?)" if near else ""


def unknown(
    kind: str, name: object, known: Iterable[str], where: str = "", mark: Callable[[str], str] = lambda name: ""
) -> InputError:
    """The error for a name that is not in a registry: the nearest name and the whole list, each name with its mark."""
    names = list(known)
    listed = ", ".join(each + mark(each) for each in names)
    return InputError(f"{where}unknown {kind} '{name}'{did_you_mean(str(name), names)}; one of: {listed}")
