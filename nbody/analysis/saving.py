"""The file of a figure: PNG, PDF or SVG, whole or not at all; an older file keeps a numbered name."""

from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from nbody.analysis.figure import DPI
from nbody.errors import InputError
from nbody.figures import RC
from nbody.output_file import FileKind, checked_path, new_file
from nbody.whole_file import Notify

SIGNATURES = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}

DATE = {".pdf": "CreationDate", ".svg": "Date"}
"""Metadata left out, so that the same data give the same file."""

FIGURE = FileKind("figure", "", "give another name", b"", "output/run-energy.png")

MOST_NAMES = 3


def default_path(runs: Sequence[Path], plots: Sequence[str]) -> Path:
    """``output/run-energy.png``: beside the first run, named after the runs and the plots."""
    stems = [run.stem for run in runs]
    if len(stems) > MOST_NAMES:
        stems = [stems[0], "and", str(len(stems) - 1), "more"]
    shown = (plots or ["overview"]) if len(plots) <= MOST_NAMES else ["plots"]
    return runs[0].with_name("-".join([*stems, *shown]) + ".png")


def check_figure(path: Path, overwrite: bool = False, runs: Sequence[Path] = ()) -> Path:
    """``path``, if a figure of ``runs`` can be written there. Raises InputError if not (see :func:`checked_path`)."""
    if path.suffix.lower() not in SIGNATURES:
        raise InputError(f"{path}: figures are .png, .pdf or .svg; give it a name that ends in one of these")
    signature = SIGNATURES[path.suffix.lower()] if overwrite else b""  # any older file is kept, renamed
    target = checked_path(path, replace(FIGURE, signature=signature), runs)
    if not target.parent.is_dir():
        raise InputError(f"{path}: there is no folder {target.parent}; make it first")
    return path


def save_figure(figure: Figure, path: Path, overwrite: bool = False, notify: Notify = lambda line: None) -> None:
    """Write ``figure`` in the format of the name's suffix. Raises InputError or RunFailed if it can't be written."""
    suffix, drawn = path.suffix.lower(), BytesIO()  # to a full disk, matplotlib's PDF fails with other errors
    with rc_context(RC):
        figure.savefig(drawn, format=suffix[1:], dpi=DPI, metadata={DATE[suffix]: None} if suffix in DATE else None)
    with new_file(path, FIGURE, overwrite, notify) as draft:
        draft.write_bytes(drawn.getbuffer())
