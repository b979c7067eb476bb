"""Reads a user's own bodies: a frame of an earlier run (.h5), or a file of one of :data:`nbody.exchange.FORMATS`.

The files may come from anywhere and are not trusted: pickles are not read, declared sizes are compared with the file
and the free memory before anything is allocated, and an error names the line or the array.
"""

from dataclasses import replace
from pathlib import Path

from nbody.errors import InputError, printable
from nbody.exchange import read as read_format
from nbody.exchange import readable
from nbody.exchange.format import frame_number
from nbody.exchange.snapshot import first_of_snapshot
from nbody.input_file import open_regular
from nbody.particles import Particles
from nbody.trajectory.structure.opening import is_recording
from nbody.trajectory.writing.output_path import SUFFIXES
from nbody.whole_file import Notify


def find_bodies(path: Path, frame: int | None = None, where: str = "") -> None:
    """Raise an InputError, starting with ``where``, unless ``path`` is a recording or a file of a format, and readable."""
    path = first_of_snapshot(path)
    if not _is_recording(path, where):
        readable(path, frame, where)


def read_bodies(
    path: Path, dimensions: int, frame: int | None = None, where: str = "", notify: Notify = lambda line: None
) -> Particles:
    """Read the bodies in a file, as step 0 and time 0 of a new run.

    Args:
        path: a recording, a file of one of :data:`nbody.exchange.FORMATS`, or the base name of a split GADGET snapshot.
        dimensions: the run's dimensions, 2 or 3. In 3-D, 2-D bodies get z = 0; in 2-D, z and vz of 3-D bodies must be 0.
        frame: the frame, from 0, of a recording or a format with several; None for the last one.
        notify: gets a line about what is ignored.

    Raises:
        InputError: one line, beginning with ``where``, that names the file and the mistake in it.
    """
    path = first_of_snapshot(path)
    start = f"{where}{printable(path)}: "
    if _is_recording(path, where):
        particles = _read_frame(path, frame, where)
    else:
        particles = read_format(path, frame, where, notify)
    return _in_dimensions(particles.check(start), dimensions, start)


def _is_recording(path: Path, where: str) -> bool:
    """True for the suffixes of recordings; ``.hdf5`` may be GADGET's too. Raises InputError if the file can't be read."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        return False
    open_regular(path, where).close()
    return suffix != ".hdf5" or is_recording(path)


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
    if particles.dimensions == dimensions:
        return particles
    x, v = particles.in_space()
    if dimensions == 2 and (x[:, 2].any() or v[:, 2].any()):
        raise InputError(f"{start}the bodies have z and the run has 2 dimensions; write 'dimensions: 3' under gravity")
    return replace(particles, position=x[:, :dimensions], velocity=v[:, :dimensions])
