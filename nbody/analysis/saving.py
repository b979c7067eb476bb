"""The file of a figure: PNG, PDF or SVG, whole or not at all; an older file keeps a numbered name."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from matplotlib import rc_context

from nbody.analysis.figure import DPI
from nbody.errors import InputError
from nbody.figures import RC
from nbody.trajectory.output_path import FileKind, check_output, keep_older_file

SIGNATURES = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}

DATE = {".pdf": "CreationDate", ".svg": "Date"}
"""Metadata left out, so that the same data give the same file."""

MOST_NAMES = 3


def default_path(runs: Sequence[Path], plots: Sequence[str]) -> Path:
    """``output/run-energy.png``: beside the first run, named after the runs and the plots."""
    stems = [run.stem for run in runs]
    if len(stems) > MOST_NAMES:
        stems = [stems[0], "and", str(len(stems) - 1), "more"]
    shown = (plots or ["overview"]) if len(plots) <= MOST_NAMES else ["plots"]
    return runs[0].with_name("-".join([*stems, *shown]) + ".png")


def check_figure(path: Path, overwrite: bool = False) -> Path:
    """``path``, if a figure can be written there. Raises InputError if not (see :func:`check_output`)."""
    if path.suffix.lower() not in SIGNATURES:
        raise InputError(f"--out {path}: figures are .png, .pdf or .svg; give it a name that ends in one of these")
    signature = SIGNATURES[path.suffix.lower()] if overwrite else b""  # any older file is kept, renamed
    kind = FileKind("figure", "--out ", "give another --out", signature, "output/run-energy.png")
    target = check_output(path, kind)
    if not target.parent.is_dir():
        raise InputError(f"--out {path}: there is no folder {target.parent}; make it first")
    return path


def save_figure(
    figure: Any, path: Path, overwrite: bool = False, notify: Callable[[str], object] = lambda line: None
) -> None:
    """Write ``figure`` in the format of the name's suffix. Raises InputError if it can't be written."""
    path, suffix = path.resolve(), path.suffix.lower()  # a link stays a link; its target is replaced
    part = path.with_name(f".{path.name}.part")
    try:
        with rc_context(RC):
            figure.savefig(part, format=suffix[1:], dpi=DPI, metadata={DATE[suffix]: None} if suffix in DATE else None)
        if not overwrite:
            keep_older_file(path, notify)
        os.replace(part, path)
    except OSError as error:
        raise InputError(f"--out {path}: can't be written ({error.strerror or error}); give another --out") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
