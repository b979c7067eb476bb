"""Exports frames of a recording to files that other programs read."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from nbody.errors import InputError
from nbody.exchange import format_of
from nbody.exchange.format import Facts
from nbody.law import LAWS
from nbody.trajectory import Trajectory
from nbody.trajectory.output_path import FileKind, as_input_error, check_output, replacing

EXPORT = FileKind("file of bodies", "", "give another name", b"", "bodies.csv")


def export(
    run: Trajectory,
    path: Path,
    frames: Sequence[int] | None = None,
    name: str | None = None,
    overwrite: bool = False,
    notify: Callable[[str], object] = lambda line: None,
) -> list[Path]:
    """Write frames of a recording to ``path``, in the format ``name`` (by default that of the suffix).

    Args:
        frames: their numbers, counted from the end if negative; by default the last one.
        overwrite: replace an existing file instead of keeping it under a numbered name.
        notify: gets a line if an older file is renamed.

    Returns:
        the files: one, or one per frame (``bodies_000.csv``, …) if the format holds one moment per file.

    Raises:
        InputError: no such format or frame, a missing package, or a path that can't be written.
    """
    form = format_of(path, name)
    numbers = [len(run) - 1] if frames is None else [_index(run, frame) for frame in frames]
    facts = facts_of(run)
    if form.many or len(numbers) == 1:
        groups = [(path, numbers)]
    else:
        digits = max(3, len(str(len(run) - 1)))
        groups = [(path.with_name(f"{path.stem}_{k:0{digits}}{path.suffix}"), [k]) for k in numbers]
    for target, group in groups:
        with _replacing(target, overwrite, notify) as part:
            form.write(part, (run.particles(k) for k in group), facts)
    return [target for target, _ in groups]


def facts_of(run: Trajectory) -> Facts:
    """What a file may hold besides the bodies."""
    gravity = run.resolved.get("gravity", {})
    law = gravity.get("softening", "none")
    length = gravity.get("length", 0.0) if law in LAWS and LAWS.load(law).has_length else 0.0
    softening = dict(length) if isinstance(length, Mapping) else float(length)
    units, cgs = getattr(run, "units", None), None
    if units is not None and units.mass:
        from astropy.units import Unit

        sizes = (units.length, "cm"), (units.mass, "g"), (units.velocity, "cm/s")
        length, mass, velocity = (float(Unit(symbol).to(base)) for symbol, base in sizes)
        cgs = length, mass, velocity
    return Facts(float(gravity.get("G", 1.0)), softening, cgs)


def _index(run: Trajectory, frame: int) -> int:
    try:
        return run.index(frame)
    except IndexError as error:
        raise InputError(str(error)) from None


@contextlib.contextmanager
def _replacing(path: Path, overwrite: bool, notify: Callable[[str], object]) -> Iterator[Path]:
    """A path to write to, which gets the name ``path`` at the end; nothing is left of it after an error."""
    target = check_output(path, EXPORT)
    with as_input_error(target, EXPORT):
        target.parent.mkdir(exist_ok=True)
    with replacing(target, EXPORT, overwrite, notify) as part:
        yield part
