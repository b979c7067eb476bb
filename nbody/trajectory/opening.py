"""Opens a file that may be anything: a recording of ours, damaged, somebody else's, or made to do harm.

What is refused: links that leave the file (soft, external), data kept in other files (external storage, virtual
datasets), and shapes that declare more than the file can hold. HDF5 follows all of these without asking.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np

from nbody import machine
from nbody.errors import InputError
from nbody.trajectory import layout
from nbody.trajectory.frame import OBSERVABLES

FILTER_GAIN = 1100
"""The most that HDF5's filters can shrink data (deflate, 1032 to 1), with a margin."""


@contextmanager
def one_line(path: object) -> Iterator[None]:
    """Turn what h5py raises about a bad file inside this block into one line."""
    try:
        yield
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, AttributeError, MemoryError) as error:
        reason = " ".join(str(error).split())[:150] or type(error).__name__
        raise InputError(f"{path}: is damaged, or was not written by nbody ({reason})") from error


def open_file(path: str | os.PathLike) -> h5py.File:
    """``path`` opened for reading, every dataset of :mod:`.layout` found sound.

    Raises:
        InputError: one line saying what ``path`` is instead, or where in it what is wrong.
    """
    _check_kind(path)
    with one_line(path):
        if not h5py.is_hdf5(os.fspath(path)):
            raise InputError(f"{path}: is not an HDF5 file; give a recording made by 'nbody run'")
        file = h5py.File(path, "r")
    try:
        with one_line(path):
            _check_layout(file, path)
    except BaseException:
        file.close()
        raise
    return file


def _check_kind(path: str | os.PathLike) -> None:
    try:
        status = Path(path).stat()
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)):
            pass
    except (OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError):
            raise InputError(f"{path}: there is no such file") from error
        if isinstance(error, IsADirectoryError):
            raise InputError(f"{path}: is a directory; give the name of a recording, such as output/run.h5") from error
        raise InputError(f"{path}: can't be opened ({getattr(error, 'strerror', None) or error})") from error
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path}: is not an ordinary file; give the name of a recording, such as output/run.h5")
    if status.st_size == 0:
        raise InputError(f"{path}: is empty; give a recording made by 'nbody run'")


def _check_layout(file: h5py.File, path: object) -> None:
    count = dataset(file, path, layout.MASS, "f", 1).shape[0]
    dataset(file, path, layout.ID, "iu", 1, (count,))
    for name in (layout.POSITION, layout.VELOCITY):
        dataset(file, path, name, "f", 3, (count, 3))
    dataset(file, path, layout.STEP, "iu", 1)
    dataset(file, path, layout.TIME, "f", 1)
    dataset(file, path, layout.CHECKSUMS, "u", 2, (3,))
    for name, width in OBSERVABLES.items():
        dataset(file, path, layout.observable(name), "f", 1 if width == 1 else 2, () if width == 1 else (width,))
    for name in (layout.SCENARIO, layout.RESOLVED):
        dataset(file, path, name, "SO", 0)
    if dataset(file, path, layout.COMMIT, "V", 1, (1,)).dtype != np.dtype(layout.COMMIT_DTYPE):
        raise InputError(f"{path}: /{layout.COMMIT}: is not a commit record")
    for name in layout.SLOTS:
        if name in file:
            dataset(file, path, name, "u", 1)
    if file[layout.NBODY].attrs.get(layout.DIMENSIONS) not in (2, 3):
        raise InputError(f"{path}: /{layout.NBODY}: says neither 2 nor 3 dimensions")


def member(file: h5py.File, path: object, name: str) -> h5py.HLObject:
    """The group or dataset ``name``, if every step on the way there is a hard link."""
    here: h5py.HLObject = file
    for part in name.split("/"):
        link = here.get(part, getlink=True) if isinstance(here, h5py.Group) else None
        if link is None:
            raise InputError(f"{path}: has no /{name}; it is HDF5, but not a recording made by 'nbody run'")
        if not isinstance(link, h5py.HardLink):
            raise InputError(f"{path}: /{name}: is a link that may lead elsewhere; nbody's recordings have none")
        here = here[part]
    return here


def dataset(file: h5py.File, path: object, name: str, kinds: str, rank: int, row: tuple[int, ...] = ()) -> h5py.Dataset:
    """The dataset ``name``, if its bytes are in this file, its dtype is one of ``kinds``, it has ``rank`` dimensions,
    of which the last are ``row``, and the file and the memory can hold what it declares."""
    found = member(file, path, name)
    where = f"{path}: /{name}:"
    if not isinstance(found, h5py.Dataset):
        raise InputError(f"{where} is not a dataset")
    if found.external or found.is_virtual:
        raise InputError(f"{where} keeps its data in other files; nbody's recordings do not")
    if found.dtype.kind not in kinds or found.ndim != rank or found.shape[rank - len(row) :] != row:
        raise InputError(f"{where} has shape {found.shape} and type {found.dtype}, which is not a recording's")
    stored = found.id.get_storage_size() * (FILTER_GAIN if found.chunks else 1)
    if found.dtype.kind != "O" and found.size * found.dtype.itemsize > min(stored, 2**62):
        raise InputError(f"{where} declares {found.shape}, more than the file holds; the file is damaged")
    if not found.chunks and stored > os.path.getsize(file.filename):
        raise InputError(f"{where} is longer than the file; the file is damaged")
    at_once = found.dtype.itemsize * int(np.prod(found.shape[1:] if rank > 1 else found.shape, dtype=float))
    if at_once > machine.memory_available():
        raise InputError(f"{where} needs {at_once / 1e9:.3g} GB of memory, more than is free")
    return found
