"""The child process in which the HDF5 library reads a file that may crash it: ``python -m`` this module, PATH, MEMORY.

The kernel ends it if it uses more than MEMORY, or more than :data:`CPU_SECONDS` per answer. Questions and answers are JSON,
one line each. The answer to ``["describe"]`` is the contents of the file (:func:`describe`); the answer to ``["read", NAME,
FIRST, COUNT]`` is the number of bytes, followed by the bytes. An error is ``{"error": …}``.
"""

import contextlib
import json
import os
import sys
from typing import Any

import h5py
import numpy as np

from nbody.trajectory import h5format, layout, sandbox
from nbody.trajectory.contents import DATASET, ELSEWHERE, GROUP, LINK, MISSING
from nbody.trajectory.records import OBSERVABLES

CPU_SECONDS = 10.0
"""Of processor time, for each answer (the first one opens the file)."""


def serve(path: str, memory: int) -> None:
    """Answer the questions on standard input, until it ends."""
    sandbox.limit(memory)
    file: h5py.File | None = None
    raw = open(path, "rb", buffering=0)  # noqa: SIM115 (until the process ends)
    for line in sys.stdin:
        sandbox.allow(CPU_SECONDS)
        data = b""
        try:
            if file is None:
                file = h5py.File(path, "r", locking=False)  # cluster file systems have no locks
            what, *arguments = json.loads(line)
            if what == "describe":
                answer = describe(file, lambda at, count: os.pread(raw.fileno(), count, at))
            else:
                name, first, count = arguments
                data = read(file[name], first, count)
                answer = {"bytes": len(data)}
        except Exception as error:
            answer, data = {"error": f"{type(error).__name__}: {error}"}, b""
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n" + data)
        sys.stdout.buffer.flush()


def describe(file: h5py.File, read_bytes: h5format.Read) -> dict[str, Any]:
    """The object for every name of :func:`nbody.trajectory.layout.names`, as plain types: the fields of
    :class:`nbody.trajectory.contents.Found`. ``read_bytes`` reads the file's bytes."""
    listed = _find(file, layout.NBODY).get("attributes", {}).get(layout.OBSERVABLES)
    observables = json.loads(listed) if listed else OBSERVABLES
    found = {name: _find(file, name) for name in layout.names(observables)}
    for name in (*layout.growing(observables), layout.EVENTS):
        if found[name]["kind"] not in (GROUP, DATASET):  # a link is not followed
            continue
        with contextlib.suppress(h5format.UnknownFormat, KeyError):  # then it can be read, but not recorded into
            header = h5py.h5o.get_info(file[name].id).addr
            found[name]["length_at"] = h5format.field_addresses(read_bytes, header)[h5format.LENGTH]
    return found


def _find(file: h5py.File, name: str) -> dict[str, Any]:
    """The object called ``name``. Links are not followed."""
    here: Any = file
    for part in name.split("/"):
        link = here.get(part, getlink=True) if isinstance(here, h5py.Group) else None
        if not isinstance(link, h5py.HardLink):
            return {"kind": MISSING if link is None else LINK}
        here = here[part]
    attributes = {key: plain(here.attrs[key]) for key in here.attrs}
    if not isinstance(here, h5py.Dataset):
        return {"kind": GROUP, "attributes": attributes}
    if here.external or here.is_virtual:
        return {"kind": ELSEWHERE}
    return {
        "kind": DATASET,
        "attributes": attributes,
        "dtype": stated(here.dtype),
        "shape": here.shape,
        "stored": here.id.get_storage_size(),
        "filtered": bool(here.chunks),
        "offset": here.id.get_offset() if _is_plain(here) else None,
    }


def _is_plain(dataset: h5py.Dataset) -> bool:
    """True if the bytes in the file are contiguous rows of NumPy's dtype."""
    contiguous = dataset.id.get_create_plist().get_layout() == h5py.h5d.CONTIGUOUS
    return contiguous and h5py.h5t.py_create(dataset.dtype, logical=True) == dataset.id.get_type()


def stated(dtype: np.dtype) -> Any:
    """``dtype`` in plain types that :class:`numpy.dtype` takes. (Its ``descr`` may hold h5py's metadata.)"""
    if not dtype.fields:
        return dtype.str
    columns = [(name, dtype[name].str, dtype.fields[name][1]) for name in dtype.fields]
    names, formats, offsets = zip(*columns, strict=True)
    return {"names": names, "formats": formats, "offsets": offsets, "itemsize": dtype.itemsize}


def read(dataset: h5py.Dataset, first: int, count: int) -> bytes:
    """The bytes of ``count`` rows from row ``first``; of a scalar, its own."""
    return np.asarray(dataset[first : first + count] if dataset.shape else dataset[()], dataset.dtype).tobytes()


def plain(value: Any) -> Any:
    """An attribute in plain types: numbers, text, lists."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str | int | float) else str(value)


if __name__ == "__main__":
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the library prints its errors there
    with contextlib.suppress(BrokenPipeError):
        serve(sys.argv[1], int(sys.argv[2]))
