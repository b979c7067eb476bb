"""Formats that other programs' libraries read. They read a file in a child process (:mod:`.guarded_process`), with limits of
memory and time: a damaged file may crash the library, or keep it busy for ever."""

import io
import os
import subprocess
from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

import numpy as np

from nbody.errors import InputError, printable
from nbody.exchange.arrays import read_arrays
from nbody.exchange.format import Format, Notify
from nbody.particles import Particles
from nbody.trajectory import sandbox

LONGEST_WAIT = 600.0
"""In seconds, for a child that uses no processor time."""


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

    def read(self, path: Path, frame: int | None, start: str, notify: Notify = lambda line: None) -> Particles:
        format = f"{type(self).__module__}:{type(self).__name__}"
        arguments = format, os.path.abspath(path), "" if frame is None else frame, sandbox.memory_limit()
        with sandbox.start("nbody.exchange.guarded_process", *arguments, stderr=subprocess.PIPE) as process:
            try:
                data, said = process.communicate(timeout=LONGEST_WAIT)
            except BaseException as error:
                process.kill()
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                raise InputError(f"{start}{self.library} does not finish reading it") from None
        if not process.returncode:
            return read_arrays(io.BytesIO(data), start)
        lines = said.decode(errors="replace").strip().splitlines()
        reason = printable(lines[-1])[:150] if lines else sandbox.why_it_ended(process.returncode, self.library)
        if process.returncode == InputError.exit_code:
            raise InputError(f"{start}{reason}")
        raise InputError(f"{start}is not {self.kind}, or is damaged ({reason})")
