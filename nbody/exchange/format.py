"""The interface of a file format."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import numpy as np

from nbody.errors import InputError
from nbody.install import install_extra
from nbody.memory import memory_available
from nbody.particles import Particles
from nbody.whole_file import Notify


def frame_number(frame: int | None, count: int, start: str = "") -> int:
    """``frame``, or the last one. Raises InputError, which begins with ``start``, if there are only ``count``."""
    k = count - 1 if frame is None else frame
    if not 0 <= k < count:
        raise InputError(f"{start}has no frame {k}; it holds {count}, counted from 0")
    return k


def require_memory(needed: int, start: str, remedy: str = "use a machine with more memory") -> None:
    """Raise InputError, which begins with ``start``, if less than ``needed`` bytes of memory are free."""
    if needed > memory_available():
        raise InputError(f"{start}may need {needed / 2**30:.1f} GiB of memory, more than is free; {remedy}")


def contents(path: Path, start: str) -> bytes:
    """The bytes of a file, if there is memory for them and for the bodies, in float64, that are made of them."""
    require_memory(3 * path.stat().st_size, start)
    return path.read_bytes()


@dataclass(frozen=True)
class RunConstants:
    """What a file may hold besides the bodies: the gravitational constant, the softening length (0: none; or the length of
    each species, by name), and how many centimetres, grams and centimetres per second the units of length, mass and
    velocity are (None: no units)."""

    G: float = 1.0
    softening: float | Mapping[str, float] = 0.0
    cgs: tuple[float, float, float] | None = None

    def softenings(self, particles: Particles) -> np.ndarray | float:
        """The softening length of each body, (N,), or one for all."""
        if not isinstance(self.softening, Mapping):
            return self.softening
        return np.array([self.softening[name] for name in particles.species_names])[particles.species]


class Format(ABC):
    """A file format. ``many`` is True if one file holds several moments; else each moment is a file."""

    suffixes: ClassVar[tuple[str, ...]] = ()
    """The suffixes of its files, the usual one first."""
    many: ClassVar[bool] = False
    package: ClassVar[str] = ""
    """The package that reads and writes it, if nbody does not itself."""
    opened_by: ClassVar[str] = ""
    """The Python that opens the file ``{path}`` in another program."""

    def __init__(self) -> None:
        if self.package and not find_spec(self.package):
            raise InputError(f"this format needs the package '{self.package}': {install_extra('exchange')}")

    def opening(self, path: Path, facts: RunConstants) -> str:
        """The Python that opens the file ``path`` in another program, with the units that it would not find itself."""
        return self.opened_by.format(path=path)

    @staticmethod
    def recognizes(start: bytes) -> bool:
        """True if a file with an unknown suffix, or none, that begins so is of this format."""
        return False

    @abstractmethod
    def write(self, path: Path, moments: Iterable[Particles], facts: RunConstants) -> None:
        """Write the moments (one, unless :attr:`many`) to ``path``, which does not exist. Raises OSError."""

    @abstractmethod
    def read(self, path: Path, frame: int | None, start: str, notify: Notify = lambda line: None) -> Particles:
        """The bodies in a file, which may be damaged or malicious; ``frame`` (the last by default) if :attr:`many`.
        Their time and step are 0, because they begin a run. ``notify`` gets a line about what is ignored. Raises InputError:
        one line that begins with ``start``."""
