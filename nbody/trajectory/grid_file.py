"""The file of a map: HDF5 with named arrays and texts, which other tools open. It is written whole, each time.

Its last eight bytes, behind the end of the HDF5 file, say that it is one. The HDF5 library reads it in a child process
(:mod:`nbody.guarded_child`)."""

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from nbody.errors import InputError, printable
from nbody.guarded_child import GuardedReader
from nbody.input_file import open_regular
from nbody.output_file import FileKind
from nbody.trajectory.structure.opening import LIBRARY_SECONDS, MAP_END, SIGNATURE, one_line

MAP = FileKind("map", "", "give another --output", SIGNATURE, "output/map.h5")


def is_map(path: str | os.PathLike) -> bool:
    """True if a file is a map, by its last bytes."""
    try:
        with open_regular(Path(path)) as file:
            file.seek(-min(len(MAP_END), file.seek(0, os.SEEK_END)), os.SEEK_END)
            return file.read() == MAP_END
    except InputError:
        return False


def write_map(draft: Path, arrays: Mapping[str, np.ndarray], texts: Mapping[str, str]) -> None:
    """Write a new file with datasets; a name may have folders: ``values/megno``. ``texts``: as text datasets; one whose name
    ends in ``@unit`` is an attribute of a dataset. Raises OSError."""
    import h5py

    with h5py.File(draft, "w") as file:
        for name, values in arrays.items():
            file[name] = values
        for name, text in texts.items():
            dataset, at, attribute = name.partition("@")
            (file[dataset].attrs if at else file)[attribute or name] = text
    with open(draft, "ab") as end:
        end.write(MAP_END)


def read_map(path: str | os.PathLike) -> dict[str, Any]:
    """Arrays and texts by name. Raises InputError: the file is no map, or damaged."""
    if not is_map(path):
        open_regular(Path(path)).close()
        raise InputError(f"{printable(path)}: is no map; give a file made by 'nbody map'")
    reader = GuardedReader("the HDF5 library", f"{__name__}:MapReader", LIBRARY_SECONDS, os.path.abspath(path))
    try:
        with one_line(printable(path)):
            _, data = reader.ask()
            with np.load(io.BytesIO(data)) as found:
                return {name: found[name] if found[name].shape else str(found[name]) for name in found.files}
    finally:
        reader.close()


class MapReader:
    """The :class:`~nbody.guarded_child.FileReader` of maps."""

    def __init__(self, path: str) -> None:
        self._path = path

    def answer(self) -> tuple[dict[str, Any], bytes]:
        import h5py

        found = dict[str, Any]()
        buffer = io.BytesIO()
        with h5py.File(self._path, "r", locking=False) as file:

            def take(name: str, node: object) -> None:
                if isinstance(node, h5py.Dataset) and not (node.external or node.is_virtual):
                    found[name] = node.asstr()[()] if h5py.check_string_dtype(node.dtype) else node[()]

            file.visititems(take)
        np.savez(buffer, **found)
        return {}, buffer.getvalue()
