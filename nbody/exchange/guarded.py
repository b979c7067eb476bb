"""Formats that other programs' libraries read: in a child process, with limits of memory and time
(:mod:`nbody.guarded_child`)."""

import io
import os
from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from nbody.errors import InputError, printable
from nbody.exchange.arrays import read_arrays
from nbody.exchange.format import Format
from nbody.guarded_child import GuardedReader, LibraryFailed
from nbody.particles import Particles
from nbody.whole_file import Notify

CPU_SECONDS = 60.0


class GuardedFormat(Format):
    """A format whose :meth:`parse` runs in the child process."""

    library: ClassVar[str]
    """What reads it, as in ``REBOUND``."""
    kind: ClassVar[str]
    """What a file of this format is, as in ``a Simulationarchive of REBOUND``."""

    @staticmethod
    @abstractmethod
    def parse(path: str, frame: int | None) -> dict[str, np.ndarray]:
        """The arrays of :data:`nbody.exchange.arrays.SHAPES`. Raises InputError for a file that is not used as it should be;
        any other error is one of the file."""

    def answer(self, path: str, frame: int | None) -> tuple[dict[str, Any], bytes]:
        """In the child: the arrays as an .npz."""
        buffer = io.BytesIO()
        np.savez(buffer, **self.parse(path, frame))  # type: ignore[arg-type]
        return {}, buffer.getvalue()

    def read(self, path: Path, frame: int | None, start: str, notify: Notify = lambda line: None) -> Particles:
        reader = GuardedReader(self.library, f"{type(self).__module__}:{type(self).__name__}", CPU_SECONDS)
        try:
            _, data = reader.ask(os.path.abspath(path), frame)
        except LibraryFailed as error:
            reason = printable(error)
            line = reason[:500] if error.input_error else f"is not {self.kind}, or is damaged ({reason[:150]})"
            raise InputError(start + line) from None
        finally:
            reader.close()
        return read_arrays(io.BytesIO(data), start)
