"""The rows of a dataset, one per frame, read and written at their addresses in the file.

Reads bypass the HDF5 library: for a growing file its caches, which all readers in one process share, would have to be
cleared before every read. So threads can also read at the same time.
"""

import errno
import math
import os
from collections.abc import Sequence

import numpy as np

from nbody.trajectory.contents import Found
from nbody.trajectory.foreign_file import ForeignFile

Array = np.ndarray


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

    def write(self, k: int, *rows: object) -> None:
        """Write rows ``k``, ``k`` + 1 …: C-contiguous arrays or bytes, each of one or more rows. Raises OSError."""
        write(self.fd, rows, self.offset + k * self.row_bytes)


class ForeignRows:
    """A dataset that another program has chunked or compressed (``h5repack``), read by HDF5. It does not grow."""

    def __init__(self, file: ForeignFile, name: str, dataset: Found) -> None:
        self._file, self._name, self._dataset = file, name, dataset

    def length(self) -> int:
        """How many rows there are."""
        return self._dataset.shape[0]

    def read(self, first: int, count: int) -> Array:
        """``count`` rows from row ``first``."""
        data, dtype = self._file.read(self._name, first, count), self._dataset.dtype
        rows = np.frombuffer(data, dtype).reshape(count, *self._dataset.shape[1:])
        return rows.astype(dtype.newbyteorder("="))

    def part(self, k: int, start: int, count: int) -> Array:
        """Entries ``start`` to ``start`` + ``count`` of row ``k``: (count, …)."""
        return self.read(k, 1)[0, start : start + count]


def write(fd: int, parts: Sequence[object], offset: int) -> None:
    """Write all bytes of ``parts``, one after the other, at ``offset``, with one system call if possible: after each call a
    thread waits for Python's other threads. Raises OSError."""
    views = [memoryview(part).cast("B") for part in parts]  # type: ignore[arg-type]
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
