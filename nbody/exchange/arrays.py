"""NumPy arrays in an .npz file."""

import math
import warnings
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import numpy as np

from nbody.errors import InputError, printable
from nbody.exchange.format import Format, RunConstants, require_memory
from nbody.input_file import open_regular
from nbody.particles import Particles
from nbody.whole_file import Notify

SHAPES = {
    "mass": "(N,)", "position": "(N, 2) or (N, 3)", "velocity": "(N, 2) or (N, 3)", "id": "(N,)", "species": "(N,)",
    "species_names": "(S,)", "radius": "(N,)",
}  # fmt: skip
"""The arrays of the file, each of any real dtype and byte order."""

OPTIONAL = ("id", "species", "species_names", "radius")
WHOLE = ("id", "species")
TEXT = ("species_names",)


class NpzFormat(Format):
    """The arrays of :data:`SHAPES`, and ``time`` and ``step``."""

    suffixes = (".npz",)
    opened_by = "numpy.load('{path}')"

    def write(self, path: Path, moments: Iterable[Particles], facts: RunConstants) -> None:
        (one,) = moments
        arrays = {"mass": one.mass, "position": one.position, "velocity": one.velocity, "id": one.id}
        if len(one.species_names) > 1:
            arrays |= {"species": one.species, "species_names": np.array(one.species_names)}
        if len(one.radius):
            arrays["radius"] = one.radius
        with path.open("wb") as file:
            np.savez(file, **arrays, time=one.time, step=one.step, G=facts.G)  # type: ignore[arg-type]

    def read(self, path: Path, frame: int | None, start: str, notify: Notify = lambda line: None) -> Particles:
        with open_regular(path) as file:
            return read_arrays(file, start)


def read_arrays(file: BinaryIO, start: str) -> Particles:
    """Read the bodies in an .npz file. Raises InputError: one line that begins with ``start`` and names the array."""
    try:
        # A header is parsed as Python, which may warn of what it finds.
        with zipfile.ZipFile(file) as archive, warnings.catch_warnings(action="ignore"):
            held = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
            if missing := [name for name in SHAPES if name not in (*held, *OPTIONAL)]:
                found = f"'{missing[0]}' (it holds: {printable(', '.join(held))[:100] or 'none'})"
                how = "np.savez(path, mass=…, position=…, velocity=…)"
                raise InputError(f"{start}has no array {found}; save it with {how}")
            mass, position, velocity = (_read_array(archive, name, start) for name in ("mass", "position", "velocity"))
            given = {name: _read_array(archive, name, start) for name in OPTIONAL if name in held}
    except InputError:
        raise
    except Exception as error:  # of zipfile, of a codec (zlib, lzma), of Python's tokenizer: whatever damage leads to
        reason = printable(error)[:100] or type(error).__name__
        raise InputError(f"{start}is damaged or no .npz file ({reason}); save it again with np.savez") from None
    try:
        return Particles(mass, position, velocity, **given)  # type: ignore[arg-type]
    except InputError as error:
        raise InputError(f"{start}{str(error).removeprefix('particles: ')}") from None


def _read_array(archive: zipfile.ZipFile, name: str, start: str) -> np.ndarray:
    """Read one array as float64 (:data:`WHOLE`: int64; :data:`TEXT`: text), after checking its declared type and size.

    ``np.load`` allocates the size in the header before it reads the file: 12 TB if the header says so."""
    start = f"{start}{name} "
    member = archive.getinfo(f"{name}.npy")
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran_order, dtype = header(file)
        others = ("U", "text") if name in TEXT else ("iuf", "real numbers")
        kinds, needed = ("iu", "whole numbers") if name in WHOLE else others
        if dtype.kind not in kinds:
            raise InputError(f"{start}is an array of {printable(dtype)[:40]}; it must hold {needed}")
        rank = 2 if name in ("position", "velocity") else 1
        if len(shape) != rank or any(isinstance(length, bool) for length in shape):
            raise InputError(f"{start}has the shape {shape}; it must be {SHAPES[name]}")
        size = math.prod(shape) * dtype.itemsize
        if not 0 <= size <= member.file_size:
            raise InputError(f"{start}declares {size} bytes and the file holds {member.file_size}; save it again")
        require_memory(3 * size, start, "use fewer bodies")  # the bytes, their float64 copy, and the check's work
        data = np.frombuffer(file.read(size), dtype)
    array = data.reshape(shape, order="F" if fortran_order else "C")
    if name in TEXT:
        return array
    if name in WHOLE and size and array.max() > np.iinfo(np.int64).max:
        raise InputError(f"{start}holds {array.max()}; ids go up to 2^63 - 1")
    with np.errstate(over="ignore"):  # a long double beyond 1.8e308 becomes inf, which Particles.check names
        return array.astype(np.int64 if name in WHOLE else np.float64)
