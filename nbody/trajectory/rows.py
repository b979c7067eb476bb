"""The rows of a dataset, one a frame, read and written where they lie in the file.

Reading goes past the HDF5 library, because a file that grows would need its caches dropped at every look, and HDF5
shares these between all who have the file open in one process. It also lets threads read at the same time.
"""

import math
import os
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from nbody.trajectory import h5format
from nbody.trajectory.stranger import Stranger
from nbody.trajectory.structure import Found

Array = np.ndarray


class Rows(Protocol):
    """What a trajectory's reader asks of a dataset."""

    def length(self) -> int:
        """How many rows there are now."""

    def read(self, first: int, count: int) -> Array:
        """``count`` rows from row ``first``, (count, …), in the machine's byte order."""


class Contiguous:
    """A dataset whose rows lie one after the other.

    Attributes:
        offset: the address of row 0.
        row_bytes: the size of a row.
        capacity: how many rows there is room for.
        end: the address where that room ends.
    """

    def __init__(self, fd: int, dataset: Found) -> None:
        """``fd`` is the file of ``dataset``. Raises UnknownFormat if it is stored in another way."""
        if dataset.offset is None:
            raise h5format.UnknownFormat("not contiguous")
        self.fd, self.dtype, self.shape, self.offset = fd, dataset.dtype, dataset.shape[1:], dataset.offset
        self._length_at = h5format.length_address(fd, dataset.header)
        self.row_bytes = self.dtype.itemsize * math.prod(self.shape)
        self.capacity = dataset.stored // max(1, self.row_bytes)
        self.end = self.offset + dataset.stored

    def length(self) -> int:
        """How many rows there are now."""
        return min(int.from_bytes(os.pread(self.fd, 8, self._length_at), "little"), self.capacity)

    def read(self, first: int, count: int) -> Array:
        """``count`` rows from row ``first``. Raises OSError if the file has become shorter."""
        found = np.empty((count, *self.shape), self.dtype)
        view, at = memoryview(found.reshape(-1).view(np.uint8)), self.offset + first * self.row_bytes
        while view.nbytes:
            done = os.preadv(self.fd, [view], at)
            if not done:
                raise OSError("the file has become shorter")
            view, at = view[done:], at + done
        return found.astype(self.dtype.newbyteorder("="), copy=False)

    def write(self, k: int, *rows: object) -> None:
        """Write rows ``k``, ``k`` + 1 …: C-contiguous arrays or bytes, of a row or more each. Raises OSError."""
        write(self.fd, rows, self.offset + k * self.row_bytes)


class Packed:
    """A dataset that another program has chunked or compressed (``h5repack``), read by HDF5. It does not grow."""

    def __init__(self, stranger: Stranger, name: str, dataset: Found) -> None:
        self._stranger, self._name, self._dataset = stranger, name, dataset

    def length(self) -> int:
        """How many rows there are."""
        return self._dataset.shape[0]

    def read(self, first: int, count: int) -> Array:
        """``count`` rows from row ``first``."""
        data, dtype = self._stranger.read(self._name, first, count), self._dataset.dtype
        rows = np.frombuffer(data, dtype).reshape(count, *self._dataset.shape[1:])
        return rows.astype(dtype.newbyteorder("="))


def write(fd: int, parts: Sequence[object], offset: int) -> None:
    """Write all the bytes of ``parts``, one after the other, at ``offset``, by one system call if it takes them all:
    a thread that comes back from one waits for Python's other threads. Raises OSError."""
    views = [memoryview(part).cast("B") for part in parts]  # type: ignore[arg-type]
    while views:
        done = os.pwritev(fd, views, offset)
        offset += done
        while views and done >= views[0].nbytes:
            done -= views.pop(0).nbytes
        if done:
            views[0] = views[0][done:]
