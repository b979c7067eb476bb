"""Reads a user's own bodies: a frame of an earlier run (.h5), or a file of one of :data:`nbody.exchange.FORMATS`.

The files may come from anywhere and are not trusted: pickles are not read, declared sizes are compared with the file
and the free memory before anything is allocated, and an error names the line or the array.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from nbody.errors import InputError, printable
from nbody.exchange import SUFFIXES
from nbody.exchange import read as read_format
from nbody.exchange.format import Notify, frame_number
from nbody.particles import Particles
from nbody.scenario.source import open_regular

KINDS = (".npz", ".csv", ".h5", *(suffix for suffix in SUFFIXES if suffix not in (".npz", ".csv")))
"""The suffixes of files that can contain bodies."""


def find_bodies(path: Path, frame: int | None = None, where: str = "") -> None:
    """Raise an InputError, starting with ``where``, unless ``path`` is a readable file with one of the :data:`KINDS`."""
    start = f"{where}{printable(path)}: "
    suffix = path.suffix.lower()
    if suffix not in KINDS:
        raise InputError(f"{start}bodies are read from {', '.join(KINDS)} files; save them as one of these")
    if frame is not None and suffix not in (".h5", ".bin"):
        raise InputError(f"{start}only a recording (.h5) has frames; remove 'frame'")
    open_regular(path, where).close()


def read_bodies(
    path: Path, dimensions: int, frame: int | None = None, where: str = "", notify: Notify = lambda line: None
) -> Particles:
    """Read the bodies in a file, as step 0 and time 0 of a new run.

    Args:
        path: a recording, or a file of one of :data:`nbody.exchange.FORMATS`.
        dimensions: the run's dimensions, 2 or 3. In 3-D, 2-D bodies get z = 0; in 2-D, z and vz of 3-D bodies must be 0.
        frame: the frame of a recording, from 0; None for the last one.
        notify: gets a line about what is ignored.

    Raises:
        InputError: one line, beginning with ``where``, that names the file and the mistake in it.
    """
    find_bodies(path, frame, where)
    start = f"{where}{printable(path)}: "
    if path.suffix.lower() == ".h5":
        particles = _read_frame(path, frame, where)
    else:
        particles = replace(read_format(path, frame, where, notify), time=0.0, step=0)
    return _in_dimensions(particles.check(start), dimensions, start)


def _read_frame(path: Path, frame: int | None, where: str) -> Particles:
    """One frame of a recording."""
    from nbody.trajectory import Trajectory

    try:
        with Trajectory(path) as run:
            k = frame_number(frame, len(run), f"{printable(path)}: ")
            return replace(run.particles(k), time=0.0, step=0)
    except InputError as error:
        raise InputError(f"{where}{error}") from None


def _in_dimensions(particles: Particles, dimensions: int, start: str) -> Particles:
    """Convert the bodies to the run's number of dimensions."""
    x, v = particles.position, particles.velocity
    if particles.dimensions == dimensions:
        return particles
    if particles.dimensions < dimensions:
        zero = np.zeros((particles.count, 1))
        return replace(particles, position=np.hstack([x, zero]), velocity=np.hstack([v, zero]))
    if x[:, 2].any() or v[:, 2].any():
        raise InputError(f"{start}the bodies have z and the run has 2 dimensions; write 'dimensions: 3' under gravity")
    return replace(particles, position=x[:, :2], velocity=v[:, :2])
