"""The process in which the HDF5 library looks at a file that may be made to harm it: ``python -m`` this, PATH, MEMORY.

It takes no more memory than it was given and no more than :data:`CPU_SECONDS` for an answer, or the kernel ends it.
It speaks JSON, a line each way: asked for ``["find", NAME]`` it answers what the name stands for, asked for ``["read",
NAME, FIRST, COUNT]`` with the number of bytes, which follow. An error is ``{"error": …}``. It imports nothing of nbody.
"""

import contextlib
import json
import os
import resource
import signal
import sys
from typing import Any

import h5py
import numpy as np

CPU_SECONDS = 10.0
"""Of the processor's time, for each answer (the first one opens the file)."""


def serve(path: str, memory: int) -> None:
    """Answer what is asked on standard input, until it ends."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    file: h5py.File | None = None
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)  # SIGPROF ends the process, wherever in the library it is
        data = b""
        try:
            if file is None:
                file = h5py.File(path, "r")
            what, name, *numbers = json.loads(line)
            if what == "find":
                answer = find(file, name)
            else:
                data = read(file[name], *numbers)
                answer = {"bytes": len(data)}
        except Exception as error:
            answer, data = {"error": f"{type(error).__name__}: {error}"}, b""
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n" + data)
        sys.stdout.buffer.flush()


def find(file: h5py.File, name: str) -> dict[str, Any]:
    """What ``name`` stands for, as :class:`~nbody.trajectory.structure.Found` says it; links are not followed."""
    here: Any = file
    for part in name.split("/"):
        link = here.get(part, getlink=True) if isinstance(here, h5py.Group) else None
        if not isinstance(link, h5py.HardLink):
            return {"kind": "missing" if link is None else "link"}
        here = here[part]
    attributes = {key: plain(here.attrs[key]) for key in here.attrs}
    if not isinstance(here, h5py.Dataset):
        return {"kind": "group", "attributes": attributes}
    if here.external or here.is_virtual:
        return {"kind": "elsewhere"}
    return {
        "kind": "dataset",
        "attributes": attributes,
        "dtype": stated(here.dtype),
        "shape": here.shape,
        "stored": here.id.get_storage_size(),
        "filtered": bool(here.chunks),
    }


def stated(dtype: np.dtype) -> Any:
    """``dtype`` as JSON has it and :class:`numpy.dtype` takes it. (Its ``descr`` may hold notes of h5py.)"""
    if not dtype.fields:
        return dtype.str
    columns = [(name, dtype[name].str, dtype.fields[name][1]) for name in dtype.fields]
    names, formats, offsets = zip(*columns, strict=True)
    return {"names": names, "formats": formats, "offsets": offsets, "itemsize": dtype.itemsize}


def read(dataset: h5py.Dataset, first: int, count: int) -> bytes:
    """The bytes of so many rows; of all, if it has none."""
    return np.asarray(dataset[first : first + count] if dataset.shape else dataset[()], dataset.dtype).tobytes()


def plain(value: Any) -> Any:
    """An attribute as JSON has it."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str | int | float) else str(value)


if __name__ == "__main__":
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # whatever the library has to say of itself
    with contextlib.suppress(BrokenPipeError):
        serve(sys.argv[1], int(sys.argv[2]))
