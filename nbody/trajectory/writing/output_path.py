"""Where a run records: checks of the path and the disk space."""

import os
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from nbody.errors import InputError
from nbody.number_format import size
from nbody.output_file import FileKind, checked_path, resolved
from nbody.trajectory.lock import writing_process

SUFFIXES = (".h5", ".hdf5", ".h5md", ".hdf", ".vtkhdf")
"""The names of new recordings end in one of these."""

RECORDING = FileKind("recording", "", "give another --output", b"\x89HDF", "output/run.h5")
RESUMED = replace(RECORDING, remedy="copy the recording to another folder, and resume it there")


def check_output(path: str | os.PathLike, kind: FileKind = RECORDING, inputs: Iterable[str | os.PathLike] = ()) -> Path:
    """:func:`~nbody.output_file.checked_path` of a recording; an InputError too if another run is writing it."""
    target = checked_path(path, kind, inputs)
    if writer := writing_process(target):
        raise InputError(f"{path}: is being written by {writer}; wait for it, or {kind.remedy}")
    return target


def check_suffix(path: str | os.PathLike, kind: FileKind = RECORDING) -> None:
    """Raise an InputError if the name of a new file of this kind does not say that it is HDF5."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise InputError(
            f"{path}: a {kind.what} is an HDF5 file; give a name that ends in .h5 ('nbody export' and "
            "'nbody plot' make other files of it)"
        )


def check_space(path: str | os.PathLike, needed: int, what: str = "the run", kind: FileKind = RECORDING) -> None:
    """Raise an InputError with the numbers if ``needed`` bytes are not free where ``path`` will be."""
    folder = resolved(path, f"{path}", kind.remedy).parent
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise InputError(
            f"{path}: {what} needs {size(needed)} and {size(free)} are free on that disk; record fewer frames "
            f"(--every), or {kind.remedy}"
        )


def sync_folder(folder: Path) -> None:
    """Return when the disk has confirmed the names in ``folder``. (Does nothing for a folder that can't be read.)"""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
