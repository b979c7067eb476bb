"""Opens any file: a recording, a damaged file, a file of another program, or a malicious file; and reads and writes the rows
of its datasets, one per frame, at their addresses.

The HDF5 library never reads a file in this process (see :mod:`.contents`). Links that leave the file (soft, external), data
stored in other files (external storage, virtual datasets), and shapes larger than the file or the memory are refused.

Rows are read without the library too: for a growing file its caches, which all readers in one process share, would have to
be cleared before every read. So threads can also read at the same time.
"""

import errno
import math
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from nbody import memory
from nbody.errors import InputError, printable
from nbody.guarded_child import GuardedReader
from nbody.input_file import open_descriptor
from nbody.trajectory.structure import layout
from nbody.trajectory.structure.contents import (
    DATASET,
    ELSEWHERE,
    LINK,
    MISSING,
    Contents,
    Found,
    UnknownFormat,
    read_index,
)

Array = np.ndarray
Bytes = bytes | Array

SIGNATURE, MAP_END = b"\x89HDF\r\n\x1a\n", b"nbodymap"  # the first bytes of HDF5, and the last ones of a map
LIBRARY_SECONDS = 10.0
"""Of processor time, for each answer of the library in its child process (the first one opens the file)."""

FILTER_GAIN = 1100
"""The most that HDF5's filters can shrink data (deflate, 1032 to 1), with a margin."""


@contextmanager
def one_line(path: object) -> Iterator[None]:
    """Turn the errors of reading a bad file inside this ``with`` block into one line."""
    try:
        yield
    except (
        OSError, RuntimeError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError, MemoryError,
        struct.error, UnknownFormat,
    ) as error:  # fmt: skip
        reason = printable(" ".join(str(error).split()))[:150] or type(error).__name__
        raise InputError(f"{path}: is damaged, or was not written by nbody ({reason})") from error


class DatasetRows:
    """A dataset without chunks, written by nbody or another program: its rows are contiguous.

    Attributes:
        offset: the address of row 0.
        row_bytes: the size of a row.
        capacity: the number of rows that it has room for.
    """

    def __init__(self, fd: int, dataset: Found) -> None:
        """``fd`` is the file of ``dataset``, whose ``offset`` is not None."""
        assert dataset.offset is not None
        self.fd, self.dtype, self.offset = fd, dataset.dtype, dataset.offset
        self.shape = dataset.shape[1:]
        self.row_bytes = self.dtype.itemsize * math.prod(self.shape)
        self.capacity = dataset.stored // max(1, self.row_bytes)
        self._length, self._length_at = dataset.shape[0], dataset.length_at

    def length(self) -> int:
        """The present number of rows."""
        if self._length_at is not None:
            self._length = int.from_bytes(os.pread(self.fd, 8, self._length_at), "little")
        return min(self._length, self.capacity)

    def read(self, first: int, count: int) -> Array:
        """``count`` rows from row ``first``: (count, …), in the machine's byte order. Raises OSError if the file has
        become shorter."""
        return self._read(np.empty((count, *self.shape), self.dtype), self.offset + first * self.row_bytes)

    def part(self, k: int, start: int, count: int) -> Array:
        """Entries ``start`` to ``start`` + ``count`` of row ``k``: (count, …). Raises as :meth:`read`."""
        at = self.offset + k * self.row_bytes + start * (self.row_bytes // self.shape[0])
        return self._read(np.empty((count, *self.shape[1:]), self.dtype), at)

    def _read(self, found: Array, at: int) -> Array:
        """Fill ``found`` with the bytes at address ``at``."""
        view = memoryview(found.reshape(-1).view(np.uint8))
        while view.nbytes:
            done = os.preadv(self.fd, [view], at)
            if not done:
                raise OSError("the file has become shorter")
            view, at = view[done:], at + done
        return found.astype(self.dtype.newbyteorder("="), copy=False)

    def write(self, k: int, *rows: Bytes) -> None:
        """Write rows ``k``, ``k`` + 1 …: C-contiguous arrays or bytes, each of one or more rows. Raises OSError."""
        write(self.fd, rows, self.offset + k * self.row_bytes)


class LibraryRows:
    """A dataset that another program has chunked or compressed (``h5repack``), read by HDF5. It does not grow."""

    def __init__(self, library: GuardedReader, name: str, dataset: Found) -> None:
        self._library, self._name, self._dataset = library, name, dataset

    def length(self) -> int:
        return self._dataset.shape[0]

    def read(self, first: int, count: int) -> Array:
        (_, data), dtype = self._library.ask("read", self._name, first, count), self._dataset.dtype
        rows = np.frombuffer(data, dtype).reshape(count, *self._dataset.shape[1:])
        return rows.astype(dtype.newbyteorder("="))

    def part(self, k: int, start: int, count: int) -> Array:
        return self.read(k, 1)[0, start : start + count]


def write(fd: int, parts: Sequence[Bytes], offset: int) -> None:
    """Write all bytes of ``parts``, one after the other, at ``offset``, with one system call if possible: after each call a
    thread waits for Python's other threads. Raises OSError."""
    views = [memoryview(part).cast("B") for part in parts]
    views = [view for view in views if view.nbytes]
    while views:
        done = os.pwritev(fd, views, offset)
        if not done:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        offset += done
        while views and done >= views[0].nbytes:
            done -= views.pop(0).nbytes
        if done:
            views[0] = views[0][done:]


class OpenFile:
    """A recording, open, with everything in it checked.

    Attributes:
        path: the file's name.
        fd: its descriptor.
        found: the objects for the names of :func:`layout.names`. (Slots may be missing.)
        observables: name to numbers per frame.
    """

    def __init__(self, path: str | os.PathLike, writable: bool = False) -> None:
        """Raises InputError: one line with the fault and its place in the file."""
        self.path = path
        self.fd = _open(path, writable)
        self._library: GuardedReader | None = None
        try:
            with one_line(path):
                contents = self._contents()
                self.found, self.observables = contents.found, contents.observables
                _check(contents, path, os.fstat(self.fd).st_size)
        except BaseException:
            self.close()
            raise

    def _contents(self) -> Contents:
        objects = read_index(self.fd)
        if objects is not None:
            return Contents.of(objects, self.path)
        reader, path = "nbody.trajectory.structure.h5format:LibraryFile", os.path.abspath(os.fspath(self.path))
        self._library = GuardedReader("the HDF5 library", reader, LIBRARY_SECONDS, path)
        contents = Contents.of(self._library.ask("describe")[0], self.path)
        if all(found.offset is not None for found in contents.found.values() if found.kind == DATASET):
            self._library.close()
            self._library = None
        return contents

    def rows(self, name: str) -> DatasetRows | LibraryRows:
        found = self.found[name]
        if found.offset is not None:
            return DatasetRows(self.fd, found)
        if self._library is None:
            raise ValueError(f"/{name} has no bytes")
        return LibraryRows(self._library, name, found)

    def value(self, name: str) -> Array:
        """All of a dataset whose shape does not change."""
        found = self.found[name]
        if found.shape:
            return self.rows(name).read(0, found.shape[0])
        if found.offset is None:
            return self.rows(name).read(0, 1)[0]
        return np.frombuffer(os.pread(self.fd, found.dtype.itemsize, found.offset), found.dtype)[0]

    def text(self, name: str) -> str:
        """A dataset that is one text."""
        return bytes(self.value(name)).decode()

    def close(self) -> None:
        os.close(self.fd)
        if self._library:
            self._library.close()

    def __enter__(self) -> "OpenFile":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def is_recording(path: str | os.PathLike) -> bool:
    """True if a file can be opened as a recording, whatever its name."""
    try:
        OpenFile(path).close()
    except InputError:
        return False
    return True


def _open(path: str | os.PathLike, writable: bool) -> int:
    """Open a regular file that begins with HDF5's signature."""
    fd = open_descriptor(path, writable=writable)
    try:
        size = os.fstat(fd).st_size
        if size == 0:
            raise InputError(f"{path}: is empty; give a recording made by 'nbody run'")
        if all(os.pread(fd, 8, at) != SIGNATURE for at in (0, *(2**k for k in range(9, size.bit_length())))):
            raise InputError(f"{path}: is not an HDF5 file; give a recording made by 'nbody run'")
        if os.pread(fd, len(MAP_END), max(size - len(MAP_END), 0)) == MAP_END:
            raise InputError(f"{path}: is a map, not a recording; nbody.map reads it, and 'nbody plot' draws it")
    except BaseException:
        os.close(fd)
        raise
    return fd


def _check(contents: Contents, path: str | os.PathLike, size: int) -> None:
    """Raise InputError unless all objects exist and have the right types and shapes."""
    found = contents.found
    for name, entry in found.items():
        if entry.kind == LINK:
            raise InputError(f"{path}: /{name}: is a link that may lead elsewhere; nbody's recordings have none")
        if entry.kind == MISSING and name not in layout.OPTIONAL:
            raise InputError(f"{path}: has no /{name}; it is HDF5, but not a recording made by 'nbody run'")
    available = memory.memory_available()  # 0.6 ms
    for name, stored in (layout.CONSTANTS | layout.rows_per_frame(contents.observables) | layout.OTHERS).items():
        if found[name].kind != MISSING:
            _check_dataset(found[name], f"{path}: /{name}:", stored, found[layout.MASS].shape, (size, available))
    if found[layout.EVENTS].kind != MISSING and found[layout.EVENTS].dtype not in map(
        np.dtype, (layout.EVENT_DTYPE, layout.EARLIER_EVENT_DTYPE)
    ):
        raise InputError(f"{path}: /{layout.EVENTS}: is not a table of events")
    if found[layout.COMMIT].dtype not in (np.dtype(layout.COMMIT_DTYPE), np.dtype(layout.COMMIT_DTYPE[:-1])):
        raise InputError(f"{path}: /{layout.COMMIT}: is not a commit record")
    if found[layout.NBODY].attributes.get(layout.DIMENSIONS) not in (2, 3):
        raise InputError(f"{path}: /{layout.NBODY}: says neither 2 nor 3 dimensions")


def _check_dataset(found: Found, where: str, stored: layout.Stored, bodies: tuple[int, ...], room: tuple[int, int]) -> None:
    """Raise InputError unless its bytes are in this file, its type and shape are those of ``stored`` for ``bodies`` (N,),
    and what it declares fits into ``room``: the bytes of the file and of the free memory."""
    size, available = room
    if found.kind == ELSEWHERE:
        raise InputError(f"{where} keeps its data in other files; nbody's recordings do not")
    if found.kind != DATASET:
        raise InputError(f"{where} is not a dataset")
    shape, itemsize = found.shape, found.dtype.itemsize
    numbers = [bodies[0] if length == "N" else length for length in stored.shape]
    fits = len(shape) == len(numbers) and all(n in (None, length) for n, length in zip(numbers, shape, strict=True))
    if found.dtype.kind not in stored.kinds or not fits:
        raise InputError(f"{where} has shape {shape} and type {found.dtype}, which is not a recording's")
    if itemsize * math.prod(shape) > found.stored * (FILTER_GAIN if found.filtered else 1):
        raise InputError(f"{where} declares {shape}, more than the file holds; the file is damaged")
    if found.stored + (found.offset or 0) > size:
        raise InputError(f"{where} is longer than the file; the file is damaged")
    at_once = itemsize * math.prod(shape[1:] if len(shape) > 1 else shape)
    if at_once > available:
        raise InputError(f"{where} needs {at_once / 1e9:.3g} GB of memory, more than is free")
