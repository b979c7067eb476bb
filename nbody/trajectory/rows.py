"""The rows of a dataset, one a frame, read and written where they lie in the file.

Reading goes past the HDF5 library, because a file that grows would need its caches dropped at every look, and HDF5
shares these between all who have the file open in one process. It also lets threads read at the same time.
"""

import os
from typing import Protocol

import h5py
import numpy as np

from nbody.trajectory import h5format

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
        length_at: the address of its first dimension.
        capacity: how many rows there is room for.
        end: the address where that room ends.
    """

    def __init__(self, fd: int, dataset: h5py.Dataset) -> None:
        """``fd`` is the file of ``dataset``. Raises UnknownFormat if it is stored in another way."""
        self.fd, self.dtype, self.shape = fd, dataset.dtype, dataset.shape[1:]
        if dataset.chunks or dataset.id.get_offset() is None:
            raise h5format.UnknownFormat("not contiguous")
        self.length_at = length_address(fd, dataset)
        self.offset: int = dataset.id.get_offset()
        self.row_bytes = self.dtype.itemsize * int(np.prod(self.shape, dtype=int))
        self.capacity = dataset.id.get_storage_size() // max(1, self.row_bytes)
        self.end = self.offset + dataset.id.get_storage_size()

    def length(self) -> int:
        """How many rows there are now."""
        return min(int.from_bytes(os.pread(self.fd, 8, self.length_at), "little"), self.capacity)

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

    def write(self, k: int, row: object) -> None:
        """Write row ``k``. Raises OSError."""
        write(self.fd, row, self.offset + k * self.row_bytes)


class Packed:
    """A dataset that another program has chunked or compressed (``h5repack``), read by HDF5. It does not grow."""

    def __init__(self, dataset: h5py.Dataset) -> None:
        self.dataset = dataset

    def length(self) -> int:
        """How many rows there are."""
        return len(self.dataset)

    def read(self, first: int, count: int) -> Array:
        """``count`` rows from row ``first``."""
        found = self.dataset[first : first + count]
        return np.ascontiguousarray(found, found.dtype.newbyteorder("="))


def rows_of(fd: int, dataset: h5py.Dataset) -> Rows:
    """The rows of ``dataset``, which is in the file ``fd``."""
    try:
        return Contiguous(fd, dataset)
    except h5format.UnknownFormat:
        return Packed(dataset)


def length_address(fd: int, dataset: h5py.Dataset) -> int:
    """The address of the first dimension of ``dataset``."""
    return h5format.length_address(fd, h5py.h5o.get_info(dataset.id).addr)


def write(fd: int, data: object, offset: int) -> None:
    """Write all the bytes of ``data`` at ``offset``. Raises OSError."""
    view = memoryview(data).cast("B")  # type: ignore[arg-type]
    while view.nbytes:
        done = os.pwrite(fd, view, offset)
        view, offset = view[done:], offset + done
