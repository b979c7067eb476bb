"""The engine's state, stored so that a run can be resumed with the same bits.

A recorded frame is not enough: it is in the recording's precision, and lacks the accelerations and flags with which the next
step begins. A checkpoint holds arrays of any names, shapes and dtypes bit for bit, and the caller's facts (step, engine,
scenario …) as JSON.

The file has two slots, written alternately, so that one of them is always whole. They are inside the recording, so that it
can be moved or renamed and still be resumed. A slot holds::

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
from nbody.trajectory.structure import layout
from nbody.trajectory.structure.contents import DATASET, parse_json
from nbody.trajectory.structure.opening import Bytes, OpenFile, one_line

Array = np.ndarray
MAGIC = b"nbodyck1"
HEAD = struct.Struct("<8sQQI")
LAST = 2**62
"""The largest number of a checkpoint."""

META_ROOM = 2**16
"""The most bytes by which the JSON may grow from the first checkpoint to the last."""


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run between two steps.

    Attributes:
        state: arrays by name, of any numeric dtype and shape.
        meta: the caller's facts, in plain types.
        frames: how many frames had been recorded, at least one.
        sequence: 1 for a file's first checkpoint, and so on.
    """

    state: Mapping[str, Array]
    meta: Mapping[str, Any]
    frames: int
    sequence: int


def require_like(state: Mapping[str, Array], own: Mapping[str, Array]) -> None:
    """Raise ValueError if an array of a checkpoint has not the dtype and shape of the one with its name in ``own``, from the
    run that goes on. (A correct checksum does not mean that the content can be trusted.)"""
    for name in state.keys() & own.keys():
        found, expected = state[name], own[name]
        if (found.dtype, found.shape) != (expected.dtype, expected.shape):
            stated, needed = (f"{each.dtype} {each.shape}" for each in (found, expected))
            raise ValueError(f"the checkpoint's {name} is {stated}, and the run has {needed}")


def state_bytes(state: Mapping[str, Array], meta: Mapping[str, Any]) -> int:
    """Bytes to reserve for checkpoints like this one, for :class:`RunHeader`; the JSON may grow
    by 64 KiB. Only shapes and dtypes matter: ``np.broadcast_to(np.float32(0), (n, 3))`` can represent a later array."""
    facts = _facts(Checkpoint(state, meta, 0, 0))
    return HEAD.size + 4 + len(facts) + sum(np.asarray(array).nbytes for array in state.values()) + META_ROOM


def pack(checkpoint: Checkpoint) -> list[Bytes]:
    """The bytes of a slot, in parts that follow one another; the arrays are not copied."""
    facts = _facts(checkpoint)
    arrays = [np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in checkpoint.state.values()]
    parts: list[Bytes] = [struct.pack("<I", len(facts)), facts, *(array for array in arrays if array.size)]
    crc = 0
    for part in parts:
        crc = zlib.crc32(part, crc)
    return [HEAD.pack(MAGIC, checkpoint.sequence, sum(map(len, parts)), crc), *parts]


def _facts(checkpoint: Checkpoint) -> bytes:
    arrays = {name: np.asarray(array) for name, array in checkpoint.state.items()}
    listed = [{"name": name, "dtype": a.dtype.str, "shape": a.shape} for name, a in arrays.items()]
    return json.dumps({"meta": dict(checkpoint.meta), "frames": checkpoint.frames, "arrays": listed}).encode()


def unpack(slot: bytes) -> Checkpoint | None:
    """The checkpoint in a slot; None if it was never written, was being written at a crash, or is damaged."""
    magic, sequence, length, crc = HEAD.unpack_from(slot)
    body = memoryview(slot)[HEAD.size : HEAD.size + length]
    if magic != MAGIC or len(body) != length or zlib.crc32(body) != crc or sequence > LAST:
        return None
    size = struct.unpack_from("<I", body)[0]
    facts = parse_json(bytes(body[4 : 4 + size]))
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
    """The newest whole checkpoint in ``path``. Raises InputError: not a recording, or one without a whole checkpoint."""
    with OpenFile(path) as file, one_line(path):
        found = newest(file)
    if found is None:
        raise InputError(f"{path}: holds no checkpoint to go on from; run its scenario again (nbody run)")
    return found
