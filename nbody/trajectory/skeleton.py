"""Makes the file of a run: everything in it but the frames, and room for these."""

import contextlib
import getpass
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from nbody import machine
from nbody.particles import Particles
from nbody.trajectory import layout
from nbody.trajectory.frame import OBSERVABLES
from nbody.trajectory.header import RunHeader
from nbody.trajectory.verify import checksum

METADATA_BLOCK = 2**17
"""All object headers lie together at the front of the file, ahead of the frames."""


def create(path: Path, particles: Particles, header: RunHeader) -> None:
    """Write the skeleton to ``path``, which must not exist. Its datasets say one frame (HDF5 refuses empty contiguous
    ones); they have room for ``header.frames``, and nothing has been written there.

    Raises OSError; what was written so far is then left for the caller to remove.
    """
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_libver_bounds(h5py.h5f.LIBVER_EARLIEST, h5py.h5f.LIBVER_LATEST)  # see h5format.py
    access.set_meta_block_size(METADATA_BLOCK)
    access.set_alignment(4096, 4096)
    with h5py.File(h5py.h5f.create(os.fsencode(path), h5py.h5f.ACC_EXCL, fapl=access)) as file:
        _nbody(file, header, particles.dimensions)
        _h5md(file, particles, header.frames)
        _vtk(file, len(particles.mass), header)
        shape = (header.frames, len(particles.mass), 3)
        room(file, layout.POSITION, shape, header.dtype)
        room(file, layout.VELOCITY, shape, header.dtype)
        file[layout.POSITION].attrs[layout.PLANNED] = header.frames
        for group in ("velocity", *(f"/observables/{name}" for name in OBSERVABLES)):
            for link in (layout.STEP, layout.TIME):
                file[f"/{layout.PARTICLES}"][group][os.path.basename(link)] = file[link]


def room(file: h5py.File, name: str, shape: tuple[int, ...], dtype: Any) -> h5py.Dataset:
    """A contiguous dataset whose bytes have a place in the file from now on, and are not written."""
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_layout(h5py.h5d.CONTIGUOUS)
    creation.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    creation.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    links = h5py.h5p.create(h5py.h5p.LINK_CREATE)
    links.set_create_intermediate_group(True)
    kind = h5py.h5t.py_create(np.dtype(dtype), logical=True)
    h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple(shape), dcpl=creation, lcpl=links)
    return file[name]


def constant(file: h5py.File, name: str, value: Any) -> None:
    """A dataset that never changes, with the checksum of its bytes."""
    dataset = file.create_dataset(name, data=value)
    dataset.attrs[layout.CRC] = np.uint32(checksum(value, dataset.dtype))


def _text(text: str) -> np.ndarray:
    """A string of fixed length, UTF-8."""
    raw = text.encode()
    return np.array(raw, h5py.string_dtype("utf-8", max(1, len(raw))))


def _nbody(file: h5py.File, header: RunHeader, dimensions: int) -> None:
    """The scenario, the provenance, the checksums, the commit record and the checkpoint's two slots."""
    file.create_group(layout.NBODY).attrs[layout.DIMENSIONS] = dimensions
    constant(file, layout.SCENARIO, _text(header.scenario_text))
    constant(file, layout.RESOLVED, _text(header.resolved_json))
    _attributes(file.create_group(layout.PROVENANCE), header.provenance)
    room(file, layout.CHECKSUMS, (header.frames, 3), "<u4")
    room(file, layout.COMMIT, (1,), np.dtype(layout.COMMIT_DTYPE))
    for slot in layout.SLOTS:
        if header.state_bytes:
            room(file, slot, (header.state_bytes,), "u1")


def _attributes(group: h5py.Group, values: Mapping[str, Any]) -> None:
    """Numbers and text as attributes; lists and dictionaries as JSON text."""
    for name, value in values.items():
        plain = isinstance(value, str | int | float)
        group.attrs[name] = value if plain else json.dumps(value)


def _h5md(file: h5py.File, particles: Particles, frames: int) -> None:
    """The groups that H5MD asks for, and what does not change in time."""
    file.create_group(layout.H5MD).attrs["version"] = np.array([1, 1], np.int32)
    author, creator = file.create_group(f"{layout.H5MD}/author"), file.create_group(f"{layout.H5MD}/creator")
    author.attrs["name"] = "unknown"
    with contextlib.suppress(Exception):  # a user id without a name, as in containers
        author.attrs["name"] = getpass.getuser()
    creator.attrs["name"], creator.attrs["version"] = "nbody", machine.version()
    box = file.create_group(layout.BOX)
    box.attrs["dimension"] = 3
    box.attrs["boundary"] = np.array([b"none"] * 3)
    constant(file, layout.MASS, particles.mass.astype("<f8"))
    constant(file, layout.ID, particles.id.astype("<i8"))
    constant(file, layout.SPECIES, np.zeros(len(particles.mass), np.int8))
    room(file, layout.STEP, (frames,), "<i8")
    room(file, layout.TIME, (frames,), "<f8")
    file.create_group(f"{layout.PARTICLES}/velocity")
    for name, width in OBSERVABLES.items():
        room(file, layout.observable(name), (frames,) if width == 1 else (frames, width), "<f8")


def _vtk(file: h5py.File, count: int, header: RunHeader) -> None:
    """The VTKHDF view (PolyData, version 2.2, as ParaView ≥ 5.12 reads it): every particle a vertex, each frame a
    step. ``Points`` and the velocity get no bytes of their own: framefile.py points them at the H5MD arrays."""
    root = file.create_group(layout.VTK)
    root.attrs["Version"] = np.array([2, 2], np.int64)
    root.attrs["Type"] = np.bytes_("PolyData")
    for name in (layout.VTK_POINTS, layout.VTK_VELOCITY):
        file.create_dataset(name, (header.frames * count, 3), np.dtype(header.dtype).newbyteorder("<"))
    root["NumberOfPoints"] = np.array([count])
    for kind in ("Vertices", "Lines", "Polygons", "Strips"):
        cells = count if kind == "Vertices" else 0
        root[f"{kind}/NumberOfCells"] = np.array([cells])
        root[f"{kind}/NumberOfConnectivityIds"] = np.array([cells])
        root[f"{kind}/Offsets"] = np.arange(cells + 1)
        root[f"{kind}/Connectivity"] = np.arange(cells)
    steps = file.create_group(layout.VTK_STEPS)
    steps.attrs["NSteps"] = np.int64(1)
    steps["Values"] = file[layout.TIME]
    steps["NumberOfParts"] = np.ones(header.frames, np.int64)
    steps["PartOffsets"] = np.zeros(header.frames, np.int64)  # every frame shares the one set of vertices
    steps["PointOffsets"] = count * np.arange(header.frames)
    steps["PointDataOffsets/velocity"] = steps["PointOffsets"]
    for name in ("CellOffsets", "ConnectivityIdOffsets"):
        steps[name] = np.zeros((header.frames, 4), np.int64)
