"""Creates the file of a run: everything except the frames, with room for them.

The HDF5 library creates the structure in memory and never writes to the disk, because it does not report failed writes
reliably, and crashes on some. It allocates no storage for the datasets; this module addresses them after the structure and
writes their addresses into it. :func:`opening.write` writes all bytes and checks each write; then they are
read back.
"""

import contextlib
import getpass
import json
import os
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path

import h5py
import numpy as np
import numpy.typing as npt

from nbody import machine
from nbody.errors import InputError
from nbody.particles import Particles
from nbody.trajectory.structure import layout
from nbody.trajectory.structure.contents import UnknownFormat, pack_index
from nbody.trajectory.structure.h5format import END_OF_FILE_AT, STORAGE, describe, field_addresses
from nbody.trajectory.structure.header import RunHeader
from nbody.trajectory.structure.opening import Bytes, write

PAGE = 4096
READ_BACK_BLOCK = 2**24


class Skeleton:
    """The structure of a file in memory, and the values that never change.

    Attributes:
        file: the structure, without the datasets' bytes.
        values: names of datasets to their first bytes.
    """

    def __init__(self) -> None:
        access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
        access.set_fapl_core(2**16, False)  # in memory
        access.set_libver_bounds(h5py.h5f.LIBVER_EARLIEST, h5py.h5f.LIBVER_LATEST)  # see h5format.py
        self.file = h5py.File(h5py.h5f.create(b"skeleton", h5py.h5f.ACC_TRUNC, fapl=access))
        self.values: dict[str, np.ndarray] = {}
        self._reserved: list[str] = []

    def reserve(self, name: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> h5py.Dataset:
        """A contiguous dataset. Its bytes are reserved in the file, but not written."""
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_layout(h5py.h5d.CONTIGUOUS)
        creation.set_alloc_time(h5py.h5d.ALLOC_TIME_LATE)
        creation.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        links = h5py.h5p.create(h5py.h5p.LINK_CREATE)
        links.set_create_intermediate_group(True)
        kind = h5py.h5t.py_create(np.dtype(dtype), logical=True)
        space = h5py.h5s.create_simple(shape) if shape else h5py.h5s.create(h5py.h5s.SCALAR)
        h5py.h5d.create(self.file.id, name.encode(), kind, space, dcpl=creation, lcpl=links)
        self._reserved.append(name)
        return self.file[name]

    def constant(self, name: str, value: npt.ArrayLike, room: int = 0, empty: int = 0) -> None:
        """A dataset that never changes, with the checksum of its bytes; after it ``room`` for more rows, now ``empty``."""
        value = np.asarray(value)
        crc = np.uint32(zlib.crc32(np.ascontiguousarray(value)))
        if room:
            value = np.concatenate([value, np.full(room, empty, value.dtype)])
        self.values[name] = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        self.reserve(name, value.shape, value.dtype).attrs[layout.CRC] = crc

    def finish(self) -> tuple[bytes, dict[str, int], int, bytes]:
        """The structure; the address of each dataset; the end of the HDF5 file; the index that follows it. Raises
        UnknownFormat: this version of the HDF5 library creates structures in another format."""
        self.file.flush()
        image = bytearray(self.file.id.get_file_image())

        def read(at: int, count: int) -> bytes:
            return bytes(image[at : at + count])

        sizes = {name: self.file[name].size * self.file[name].dtype.itemsize for name in self._reserved}
        headers = {name: h5py.h5o.get_info(self.file[name].id).addr for name in (*self._reserved, *layout.VIEWS)}
        objects = describe(self.file, read)
        self.file.close()
        growing = layout.growing(json.loads(objects[layout.NBODY]["attributes"][layout.OBSERVABLES]))
        if image[:9] != b"\x89HDF\r\n\x1a\n\0" or any("length_at" not in objects[name] for name in growing):
            raise UnknownFormat("a superblock or an object header of another version")
        offsets, end = {}, _rounded_up(len(image), PAGE)
        for name in (name for name in self._reserved if sizes[name]):
            end = _rounded_up(end, PAGE if sizes[name] >= PAGE else 64)  # so a commit record lies within a page
            offsets[name], end = end, end + sizes[name]
        addresses = offsets | {view: offsets[source] for view, source in layout.VIEWS.items()}
        for name, offset in addresses.items():
            at, size = field_addresses(read, headers[name]).get(STORAGE), sizes[layout.VIEWS.get(name, name)]
            if at is None:
                raise UnknownFormat(f"the storage of /{name}")
            struct.pack_into("<QQ", image, at, offset, size)
            if name in objects:
                objects[name] |= {"offset": offset, "stored": size}
        struct.pack_into("<Q", image, END_OF_FILE_AT, end)
        return bytes(image), offsets, end, pack_index(objects, bytes(image))


def _rounded_up(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def create(path: Path, particles: Particles, header: RunHeader) -> None:
    """Write the file of a run to ``path``, which must not exist: everything except the frames, with room for them.

    Raises:
        OSError: a write failed, or did not reach the disk; the caller must remove the incomplete file.
        InputError: the installed HDF5 library creates structures in an unknown format.
    """
    skeleton = Skeleton()
    _nbody(skeleton, header, particles.dimensions)
    _h5md(skeleton, particles, header)
    _vtk(skeleton, particles.count + header.room, header)
    try:
        structure, offsets, end, index = skeleton.finish()
    except UnknownFormat as error:
        raise InputError(
            f"h5py {h5py.__version__} (HDF5 {h5py.version.hdf5_version}) makes files that this nbody can't record into "
            f"({error}); install 'h5py>=3.11,<4', or update nbody"
        ) from error
    parts: dict[int, Bytes] = {offsets[name]: value for name, value in skeleton.values.items() if name in offsets}
    parts |= {0: structure, end: index}
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        for offset, value in parts.items():
            write(fd, [value], offset)
        _read_back(fd, parts)
    finally:
        os.close(fd)


def _read_back(fd: int, parts: Mapping[int, Bytes]) -> None:
    """Raise OSError unless the disk returns the written bytes."""
    os.fsync(fd)
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)  # read from the disk, not from memory
    for offset, value in parts.items():
        view = memoryview(value).cast("B")
        for at in range(0, view.nbytes, READ_BACK_BLOCK):
            block = view[at : at + READ_BACK_BLOCK]
            if os.pread(fd, block.nbytes, offset + at) != bytes(block):  # (a memoryview compares byte by byte, slowly)
                raise OSError(5, "the disk does not return what was written")


def _text(text: str) -> np.ndarray:
    """A string of fixed length, UTF-8."""
    raw = text.encode()
    return np.array(raw, h5py.string_dtype("utf-8", max(1, len(raw))))


def _nbody(to: Skeleton, header: RunHeader, dimensions: int) -> None:
    """The scenario, the provenance, the checksums, the commit record and the checkpoint's two slots."""
    attributes = to.file.create_group(layout.NBODY).attrs
    attributes[layout.VERSION] = layout.FORMAT_VERSION
    attributes[layout.DIMENSIONS] = dimensions
    attributes[layout.OBSERVABLES] = json.dumps(dict(header.observables))
    to.constant(layout.SCENARIO, _text(header.scenario_text))
    to.constant(layout.RESOLVED, _text(header.resolved_json))
    provenance = to.file.create_group(layout.PROVENANCE).attrs
    for name, value in header.provenance.items():
        provenance[name] = value if isinstance(value, str | int | float) else json.dumps(value)
    to.reserve(layout.CHECKSUMS, (header.frames, 3), "<u4")
    commit = np.zeros(1, layout.COMMIT_DTYPE)
    commit["crc32"] = layout.commit_sum(commit)
    to.reserve(layout.COMMIT, (1,), commit.dtype)
    to.values[layout.COMMIT] = commit.view(np.uint8)
    for slot in layout.SLOTS:
        if header.state_bytes:
            to.reserve(slot, (header.state_bytes,), "u1")


def _h5md(to: Skeleton, particles: Particles, header: RunHeader) -> None:
    """The groups that H5MD asks for."""
    file, frames, room = to.file, header.frames, header.room
    file.create_group(layout.H5MD).attrs["version"] = np.array([1, 1], np.int32)
    author, creator = file.create_group(f"{layout.H5MD}/author"), file.create_group(f"{layout.H5MD}/creator")
    author.attrs["name"] = "unknown"
    with contextlib.suppress(Exception):  # a user id without a name, as in containers
        author.attrs["name"] = getpass.getuser()
    creator.attrs["name"], creator.attrs["version"] = "nbody", machine.version()
    box = file.create_group(layout.BOX)
    box.attrs["dimension"] = 3
    box.attrs["boundary"] = np.array([b"none"] * 3)
    to.constant(layout.MASS, particles.mass.astype("<f8"), room)
    to.constant(layout.ID, particles.id.astype("<i8"), room, empty=-1)
    if room:
        file[layout.ID].attrs[layout.BODIES] = particles.count
    to.constant(layout.SPECIES, particles.species.astype("<i4"), room)
    file[layout.SPECIES].attrs[layout.SPECIES_NAMES] = json.dumps(particles.species_names)
    if len(particles.radius):
        to.constant(layout.RADIUS, particles.radius.astype("<f8"), room)
    if header.events:
        to.reserve(layout.EVENTS, (header.events,), layout.EVENT_DTYPE)
    to.reserve(layout.STEP, (frames,), "<i8")
    to.reserve(layout.TIME, (frames,), "<f8")
    for name, width in header.observables.items():
        to.reserve(layout.observable(name), (frames,) if width == 1 else (frames, width), "<f8")
    for name in (layout.POSITION, layout.VELOCITY):
        to.reserve(name, (frames, particles.count + room, 3), np.dtype(header.dtype).newbyteorder("<"))
    file[layout.POSITION].attrs[layout.PLANNED] = frames
    for group in (f"{layout.PARTICLES}/velocity", *(f"observables/{name}" for name in header.observables)):
        for link in (layout.STEP, layout.TIME):
            file[group][os.path.basename(link)] = file[link]


def _vtk(to: Skeleton, count: int, header: RunHeader) -> None:
    """The VTKHDF view (PolyData, version 2.2, for ParaView ≥ 5.12): every particle is a vertex, each frame is a step. The
    datasets in :data:`layout.VIEWS` share the bytes of others."""
    root = to.file.create_group(layout.VTK)
    root.attrs["Version"] = np.array([2, 2], np.int64)
    root.attrs["Type"] = np.bytes_("PolyData")
    for view in layout.VIEWS:
        to.file.create_dataset(view, (header.frames * count, 3), np.dtype(header.dtype).newbyteorder("<"))
    to.constant(f"{layout.VTK}/NumberOfPoints", [count])
    for kind in ("Vertices", "Lines", "Polygons", "Strips"):
        cells = count if kind == "Vertices" else 0
        to.constant(f"{layout.VTK}/{kind}/NumberOfCells", [cells])
        to.constant(f"{layout.VTK}/{kind}/NumberOfConnectivityIds", [cells])
        to.constant(f"{layout.VTK}/{kind}/Offsets", np.arange(cells + 1))
        to.constant(f"{layout.VTK}/{kind}/Connectivity", np.arange(cells))
    frames, steps = header.frames, to.file.create_group(layout.VTK_STEPS)
    steps.attrs[layout.VTK_LENGTH] = np.int64(1)
    steps["Values"] = to.file[layout.TIME]
    to.constant(f"{layout.VTK_STEPS}/NumberOfParts", np.ones(frames, np.int64))
    to.constant(f"{layout.VTK_STEPS}/PartOffsets", np.zeros(frames, np.int64))  # all frames share one set of vertices
    to.constant(f"{layout.VTK_STEPS}/PointOffsets", count * np.arange(frames))
    steps["PointDataOffsets/velocity"] = steps["PointOffsets"]
    for name in ("CellOffsets", "ConnectivityIdOffsets"):
        to.constant(f"{layout.VTK_STEPS}/{name}", np.zeros((frames, 4), np.int64))
