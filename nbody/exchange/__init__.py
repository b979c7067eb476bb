"""Files of bodies that other programs read and write. ``FORMATS`` lists the formats; each has one file here.

To add a format, write a file with a subclass of :class:`~nbody.exchange.format.Format`, and add a line to ``FORMATS``.
"""

from pathlib import Path

from nbody.errors import InputError, printable
from nbody.exchange.format import Format
from nbody.input_file import open_regular
from nbody.particles import Particles
from nbody.registry import Entry, Registry
from nbody.whole_file import Notify

FORMATS = Registry(
    "format",
    {
        "csv": Entry("nbody.exchange.table:CsvFormat", "a table of comma-separated values: spreadsheets, pandas"),
        "npz": Entry("nbody.exchange.arrays:NpzFormat", "NumPy arrays"),
        "gadget": Entry("nbody.exchange.gadget:GadgetFormat", "GADGET-HDF5: yt, pynbody, GADGET-4"),
        "gadget-binary": Entry("nbody.exchange.gadget_binary:GadgetBinary", "GADGET-1 and 2, in float32: pynbody, yt"),
        "tipsy": Entry("nbody.exchange.tipsy:TipsyFormat", "Tipsy, in float32: pynbody, ChaNGa, PKDGRAV"),
        "nemo": Entry("nbody.exchange.nemo:NemoFormat", "NEMO's snapshots: unsio, and the programs of NEMO"),
        "rebound": Entry("nbody.exchange.rebound:ReboundFormat", "a Simulationarchive of REBOUND"),
    },
)
"""Every format that 'nbody export' writes, and ``initial: {file: …}`` reads."""


def suffixes() -> dict[str, str]:
    """The format of each suffix; those of other packages too."""
    found: dict[str, str] = {}
    for name in (*FORMATS, *FORMATS.plugins):
        found = dict.fromkeys(FORMATS.load(name).suffixes, name) | found
    return dict(sorted(found.items()))


def format_of(path: Path, name: str | None = None, where: str = "") -> Format:
    """The format of a file: ``name``, or that of its suffix. Raises InputError: there is no such format; or a package is
    missing."""
    if name is None:
        name, start = suffixes().get(path.suffix.lower()), f"{where}{printable(path)}: "
        if name is None and path.suffix.lower() == ".h5":
            raise InputError(f"{start}.h5 is the suffix of nbody's own recordings; for GADGET-HDF5 write .hdf5")
        if name is None:
            raise InputError(f"{start}no format has this suffix; the suffixes are {', '.join(suffixes())}")
    found: Format = FORMATS.load(name, where)()
    return found


def readable(path: Path, frame: int | None = None, where: str = "") -> Format:
    """The format of an ordinary file that can be opened. Raises InputError, also if it has no frames and one is given."""
    name = None
    if path.suffix.lower() not in suffixes() and (name := _recognized(path)) is None:
        known = ", ".join([".h5", *suffixes()])
        raise InputError(f"{where}{printable(path)}: bodies are read from {known} files; save them as one of these")
    form = format_of(path, name, where)
    if frame is not None and not form.many:
        raise InputError(f"{where}{printable(path)}: this format has no frames; remove 'frame'")
    open_regular(path, where).close()
    return form


def _recognized(path: Path) -> str | None:
    """The format of a file by its first bytes; None if none recognizes it."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        start = file.read(16)
    return next((name for name in FORMATS if FORMATS.load(name).recognizes(start)), None)


def read(path: Path, frame: int | None = None, where: str = "", notify: Notify = lambda line: None) -> Particles:
    """The bodies in a file of one of the formats; ``frame`` (the last by default) if the format holds several moments.
    ``notify`` gets a line about what is ignored. Raises InputError, which begins with ``where``."""
    return readable(path, frame, where).read(path, frame, f"{where}{printable(path)}: ", notify)
