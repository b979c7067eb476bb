"""Errors for the user, one line each: what is wrong, where, and how to fix it. Each is an :class:`NBodyError`: the command
line prints its line and exits with ``exit_code``. Any other exception is a defect, and keeps its traceback."""

import errno
import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import PurePath

command_line = False  # True in the command line, whose lines name its options

OPTION = re.compile(r"""(?x)((?<!\w)'.*?'(?!\w)|nbody\ [a-z]+\ .*\ --.*)|(?<![^\s(])--(?:set\ (?=\w)|(about|accuracy
    |background|bodies|color|dt|end|engine|event|every|exposure|frame|G|gpus|integrator|map|model|output|overwrite|particles
    |precision|quantity|resonance|seed|sizes?|softening|species|steps|stop-when|trail-frames|trails|x|y)(?![\w-]|[./]\w))""")


def worded(line: str) -> str:
    """A line for the user: outside the command line ``--dt`` becomes the argument ``dt``, except in quotes and commands."""
    return line if command_line else OPTION.sub(lambda each: each[1] or (each[2] or "").replace("-", "_"), line)


class NBodyError(Exception):
    """An error with a message for the user. ``exit_code`` is the exit code of the command line."""

    exit_code = 2

    def __str__(self) -> str:
        return worded(super().__str__())


class InputError(NBodyError):
    """A file, an option or an array from the user is wrong; nothing was changed on disk."""


class NoBodies(InputError, AttributeError):
    """A simulation without bodies lacks this attribute: ``hasattr`` says so."""


class DeviceError(NBodyError):
    """The requested device is missing, too small, or does not work."""


class RunFailed(NBodyError):
    """A run failed after its start (a NaN appeared, the disk is full); the frames before the failure stay readable."""

    exit_code = 1


def not_written(where: object, error: OSError | ValueError, remedy: str) -> NBodyError:
    """The error for a file that can't be written: a :class:`RunFailed` if the disk is full or fails."""
    number, reason = getattr(error, "errno", None), getattr(error, "strerror", None) or error
    failed = RunFailed if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO) else InputError
    return failed(f"{printable(where)}: can't be written ({reason}); {remedy}")


def printable(text: object) -> str:
    """A path or a foreign text on one line: each character that a terminal would obey, or can't show, as its escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def shortened(text: str, most: int) -> str:
    """``text``, with its middle replaced by ``…`` if it has more than ``most`` characters."""
    return text if len(text) <= most else f"{text[: most // 2]}…{text[len(text) + 1 + most // 2 - most :]}"


def last_line(text: object, otherwise: str) -> str:
    """The last line of an error, printable and short; ``otherwise`` if it is empty."""
    return shortened(printable((str(text).strip().splitlines() or [otherwise])[-1].strip()), 150)


def counted(number: int, one: str, several: str = "") -> str:
    """A number of things: ``1 body``, ``2 bodies``. The plural ends in s unless it is given."""
    return f"{number} {one if number == 1 else several or f'{one}s'}"


def did_you_mean(name: str, known: Iterable[str], meant: Mapping[str, str] | None = None) -> str:
    """`` (did you mean 'x'?)``: what ``meant`` has for ``name``, a word of other programs, else the nearest known name;
    empty if none is near. Case is ignored; names of files are compared without their endings."""
    names = {_compared(each): each for each in reversed(list(known)) if each[:1] != "_"}
    plain = _compared(str(name))
    close = get_close_matches(plain, names, n=1, cutoff=0.61)
    near = (meant or {}).get(plain) or (names[close[0]] if close else "")
    return f" (did you mean '{near}'?)" if near else ""


def _compared(name: str) -> str:
    stem = PurePath(name).stem if name.endswith((".h5", ".hdf5", ".yaml", ".yml")) else name.partition(":")[0]
    return stem.lstrip("-").lower()


def refuse_attribute(owner: object, name: str, what: str) -> None:
    """Raise an InputError unless an object in a user's hand has an attribute: what is set under a wrong name would be lost.
    Names that begin with an underscore are free, and so are classes that a user derives."""
    known = {*dir(type(owner)), *vars(owner), *getattr(type(owner), "__dataclass_fields__", ())}
    own = type(owner).__module__.partition(".")[0] == __name__.partition(".")[0]
    if own and name[:1] != "_" and name not in known:
        raise InputError(f"{what}.{name} can't be set: there is no such attribute{did_you_mean(name, known)}")


def unknown(
    kind: str, name: object, known: Iterable[str], where: str = "", mark: Callable[[str], str] = lambda name: "",
    meant: Mapping[str, str] | None = None,
) -> InputError:  # fmt: skip
    """The error for an unknown name: it proposes one as :func:`did_you_mean`, and lists the known names with marks."""
    names = list(known)
    listed = ", ".join(each + mark(each) for each in names)
    return InputError(f"{where}unknown {kind} '{name}'{did_you_mean(str(name), names, meant)}; one of: {listed}")
