"""Exports frames of a recording to files that other programs read."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from nbody.errors import InputError
from nbody.exchange import format_of
from nbody.exchange.format import RunConstants
from nbody.law import LAWS
from nbody.output_file import FileKind, as_input_error, checked_path, new_file
from nbody.particles import body_names
from nbody.scenario.packaged import SUFFIXES as SCENARIOS
from nbody.trajectory import Trajectory
from nbody.trajectory.reading.events import event_table
from nbody.trajectory.structure.opening import is_recording, one_line
from nbody.whole_file import Notify

Array = np.ndarray

ELEMENTS = ("a", "P", "q", "e", "inc", "Omega", "omega", "pomega", "f", "M", "E", "l", "T")
"""The orbital elements of an exported table; see :class:`~nbody.diagnostics.orbits.Elements`."""

EXPORT = FileKind("file of bodies", "", "give another name", b"", "bodies.csv")


def export(
    run: Trajectory,
    path: Path,
    frames: Sequence[int] | None = None,
    name: str | None = None,
    overwrite: bool = False,
    notify: Notify = lambda line: None,
) -> list[Path]:
    """Write frames of a recording to ``path``, in the format ``name`` (by default that of the suffix).

    Args:
        frames: their numbers, counted from the end if negative; by default the last one.
        overwrite: replace an existing file; else it keeps a numbered name, and ``notify`` gets a line.

    Returns:
        the files: one, or one per frame (``bodies_000.csv``, …) if the format holds one moment per file.

    Raises:
        InputError: no such format or frame, a missing package, or a path that can't be written, or is that of a recording
            or a scenario.
        RunFailed: the disk is full, or fails.
    """
    form, numbers = format_of(path, name), _numbers(run, frames)
    facts = facts_of(run)
    if form.many or len(numbers) == 1:
        groups = [(path, numbers)]
    else:
        digits = max(3, len(str(len(run) - 1)))
        groups = [(path.with_name(f"{path.stem}_{k:0{digits}}{path.suffix}"), [k]) for k in numbers]
    for target, _ in groups:
        _check(target, run)
    for target, group in groups:
        with new_file(target, EXPORT, overwrite, notify) as draft:
            form.write(draft, (run.particles(k) for k in group), facts)
    return [target for target, _ in groups]


def export_elements(
    run: Trajectory,
    path: Path,
    frames: Sequence[int] | None = None,
    about: int | str = "inner",
    overwrite: bool = False,
    notify: Notify = lambda line: None,
) -> Path:
    """Write the orbital elements of frames of a recording to one .csv file: the columns of :data:`ELEMENTS` after ``time``
    and ``id``, angles in degrees, a row per body and frame; no row of a body that is not there.

    Args:
        frames, overwrite, notify: as in :func:`export`.
        about: the focus, as in :func:`nbody.orbits`.

    Raises:
        InputError: as :func:`export`; another suffix, or a focus without orbits.
    """
    found = run.orbits(about, None, _numbers(run, frames))
    time, id = (np.broadcast_to(each, found.a.shape) for each in (found.time, found.id))
    columns = {"time": time, "id": id} | {name: getattr(found, name) for name in ELEMENTS}
    there = found.a == found.a
    return _table(run, path, {name: each[there] for name, each in columns.items()}, overwrite, notify)


def export_events(run: Trajectory, path: Path, overwrite: bool = False, notify: Notify = lambda line: None) -> Path:
    """Write the events, collisions and changes of a recording to one .csv file, the columns of
    :attr:`~nbody.Trajectory.events`; if bodies have names, these in ``name_1`` and ``name_2``. Raises InputError as
    :func:`export`; another suffix."""
    columns, names = event_table(run.event_rows()), body_names(run)
    named = {f"name_{k}": np.array([names.get(id, "") for id in columns[f"id_{k}"].tolist()]) for k in "12" if names}
    return _table(run, path, {**columns, **named}, overwrite, notify)


def _table(run: Trajectory, path: Path, columns: Mapping[str, Array], overwrite: bool, notify: Notify) -> Path:
    """Write columns of the same length to a .csv file. Raises InputError as :func:`export`; another suffix."""
    if path.suffix.lower() != ".csv":
        raise InputError(f"{path}: elements and events are written to .csv files; give it a name that ends in .csv")
    _check(path, run)
    with new_file(path, EXPORT, overwrite, notify) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(columns)
        table.writerows(zip(*(each.tolist() for each in columns.values()), strict=True))
    return path


def _numbers(run: Trajectory, frames: Sequence[int] | None) -> list[int]:
    """The frames counted from the start; by default the last one. Raises InputError if there is none."""
    if not len(run):
        raise InputError(f"{run.path}: has no frame yet; export it when the run has begun")
    if frames is not None and not len(frames):
        raise InputError(f"{run.path}: no frame is chosen; give the number of one, from 0 to {len(run) - 1}")
    return [len(run) - 1] if frames is None else [run.index(frame) for frame in frames]


def facts_of(run: Trajectory) -> RunConstants:
    """What a file may hold besides the bodies. Raises InputError if the recording does not say it."""
    with one_line(run.path):
        gravity = run.resolved.get("gravity", {})
        law = gravity.get("softening", "none")
        length = gravity.get("length", 0.0) if law in LAWS and LAWS.load(law).has_length else 0.0
        softening = dict(length) if isinstance(length, Mapping) else float(length)
        units, cgs = run.units, None
        if units.mass:
            from astropy.units import Unit

            sizes = (units.length, "cm"), (units.mass, "g"), (units.velocity, "cm/s")
            length, mass, velocity = (float(Unit(symbol).to(base)) for symbol, base in sizes)
            cgs = length, mass, velocity
        return RunConstants(float(gravity.get("G", 1.0)), softening, cgs)


def _check(path: Path, run: Trajectory) -> None:
    """Make the folder of an export. Raises InputError for a recording, a scenario, or a path that can't be written."""
    target = checked_path(path, EXPORT, [run.path])
    for what, found in (("scenario", target.suffix.lower() in SCENARIOS), ("recording", is_recording(target))):
        if found:
            raise InputError(f"{path}: is the name of a {what}; {EXPORT.remedy}")
    with as_input_error(path, EXPORT):
        target.parent.mkdir(exist_ok=True)
