"""The engine's own state, kept so that a run goes on with the same bits.

A recorded frame is not enough: it is in the recording's precision, and lacks the accelerations and flags that the next
step begins with. A checkpoint holds the state's arrays bit for bit, and the caller's facts (step, engine, scenario …).

The file has two slots, written in turn, so that one of them is whole at every moment. They are in the run's own file
and not beside it: a recording that is moved, renamed or kept under a number stays resumable. A slot holds::

    magic (8 bytes)  sequence (uint64)  length (uint64)  crc32 of what follows (uint32)
    length of the JSON (uint32)  JSON {"meta": …, "frames": …, "arrays": [{name, dtype, shape}, …]}  the arrays' bytes
"""

import json
import os
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbody.errors import InputError
from nbody.trajectory import layout
from nbody.trajectory.opening import OpenFile, one_line
from nbody.trajectory.structure import DATASET

Array = np.ndarray
MAGIC = b"nbodyck1"
HEAD = struct.Struct("<8sQQI")
META_ROOM = 2**16
"""By how much the JSON may grow from the first checkpoint to the last."""


@dataclass(frozen=True)
class Checkpoint:
    """Attributes:
    state: the engine's arrays by name, any numeric dtype and shape.
    meta: the caller's facts: plain types.
    frames: how many frames had been recorded, at least one.
    sequence: 1 for a file's first checkpoint, and so on.
    """

    state: Mapping[str, Array]
    meta: Mapping[str, Any]
    frames: int
    sequence: int


def state_bytes(state: Mapping[str, Array], meta: Mapping[str, Any]) -> int:
    """The room for checkpoints such as this one, for :class:`~nbody.trajectory.header.RunHeader`; the JSON may grow by
    64 KiB."""
    return len(pack(Checkpoint(state, meta, 0, 0))) + META_ROOM


def state_bytes_foreseen(particles: int, dtype: str) -> int:
    """The same for a state that is not made yet: at most twelve numbers a particle (see :mod:`nbody.state.device`)."""
    return particles * 12 * np.dtype(dtype).itemsize + META_ROOM


def pack(checkpoint: Checkpoint) -> bytes:
    """The bytes of a slot."""
    arrays = {name: np.asarray(array) for name, array in checkpoint.state.items()}
    listed = [{"name": name, "dtype": a.dtype.str, "shape": a.shape} for name, a in arrays.items()]
    facts = json.dumps({"meta": dict(checkpoint.meta), "frames": checkpoint.frames, "arrays": listed}).encode()
    body = b"".join([struct.pack("<I", len(facts)), facts, *(array.tobytes() for array in arrays.values())])
    return HEAD.pack(MAGIC, checkpoint.sequence, len(body), zlib.crc32(body)) + body


def unpack(slot: bytes) -> Checkpoint | None:
    """What is in a slot; None if it was never written, was being written at a crash, or is damaged."""
    magic, sequence, length, crc = HEAD.unpack_from(slot)
    body = memoryview(slot)[HEAD.size : HEAD.size + length]
    if magic != MAGIC or len(body) != length or zlib.crc32(body) != crc:
        return None
    size = struct.unpack_from("<I", body)[0]
    facts = json.loads(bytes(body[4 : 4 + size]))
    state, at = {}, 4 + size
    for entry in facts["arrays"]:
        dtype = np.dtype(entry["dtype"])
        count = int(np.prod(entry["shape"], dtype=int))
        state[entry["name"]] = np.frombuffer(body, dtype, count, at).reshape(entry["shape"]).copy()
        at += count * dtype.itemsize
    return Checkpoint(state, facts["meta"], int(facts["frames"]), sequence)


def newest(file: OpenFile) -> Checkpoint | None:
    """The newest whole checkpoint in an open file."""
    slots = [file.rows(name) for name in layout.SLOTS if file.found[name].kind == DATASET]
    slots.sort(key=lambda slot: HEAD.unpack(slot.read(0, HEAD.size).tobytes())[1], reverse=True)
    return next((found for slot in slots if (found := unpack(slot.read(0, slot.length()).tobytes()))), None)


def read_checkpoint(path: str | os.PathLike) -> Checkpoint:
    """The newest whole checkpoint in ``path``.

    Raises:
        InputError: not a recording, or one without a whole checkpoint.
    """
    with OpenFile(path) as file, one_line(path):
        found = newest(file)
    if found is None:
        raise InputError(f"{path}: holds no checkpoint to go on from; run its scenario again (nbody run)")
    return found
