"""The first difference between two recordings, bit for bit."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbody.trajectory.reading.events import event_line
from nbody.trajectory.reading.frames import RecordedFrames
from nbody.trajectory.structure.layout import EVENT_DTYPE, events_as


@dataclass(frozen=True)
class Difference:
    """The first difference.

    Attributes:
        field: ``mass``, ``step``, ``position`` …, or ``frames`` if one recording has more frames than the other.
        values: the values in the two recordings.
        frame: counted from 0; None if the field has no frames.
        particle: its row, counted from 0; None if the field is not a particle's.
    """

    field: str
    values: tuple[object, object]
    frame: int | None = None
    particle: int | None = None

    def __str__(self) -> str:
        where = "" if self.frame is None else f"frame {self.frame}: "
        whose = "" if self.particle is None else f" of particle {self.particle}"
        return f"{where}{self.field}{whose}: {self.values[0]} and {self.values[1]}"


def first_difference(a: str | os.PathLike, b: str | os.PathLike) -> Difference | None:
    """The first difference between the frames of two recordings, or None if they are the same bits.

    Particles, then frame by frame: step, time, position, velocity, observables; then events. NaNs of the same bits are the
    same; 0.0 and -0.0 are not. The provenance is not compared.

    Raises:
        InputError: either is not a recording, or is damaged.
    """
    with RecordedFrames(a) as one, RecordedFrames(b) as two:
        return next(_differences(one, two), None)


def _differences(one: RecordedFrames, two: RecordedFrames) -> Iterator[Difference]:
    for field in ("dimensions", "mass", "id", "species", "radius"):
        yield from _compared(field, getattr(one, field), getattr(two, field))
    listed = ((", ".join(run.species_names), ", ".join(run.widths)) for run in (one, two))
    for field, left, right in zip(("species_names", "observables"), *listed, strict=True):
        if left != right:
            yield Difference(field, (left, right))
    for k in range(min(len(one), len(two))):
        here, there = one.frame(k), two.frame(k)
        for field in ("step", "time", "position", "velocity"):
            yield from _compared(field, getattr(here, field), getattr(there, field), k)
        for name, values in here.observables.items():
            for found in _compared(name, values, there.observables[name], k):
                yield Difference(name, found.values, k)  # a row of it is a component, not a particle
    if len(one) != len(two):
        yield Difference("frames", (len(one), len(two)))
    stored = [run.stored_events() for run in (one, two)]  # an earlier version has fewer columns
    names = [rows.dtype.names or () for rows in stored]
    shared = [(name, kind) for name, kind in EVENT_DTYPE[:-1] if name in names[0] and name in names[1]]
    events, others = (events_as(rows, shared) for rows in stored)
    for k in range(min(len(events), len(others))):
        if events[k].tobytes() != others[k].tobytes():
            yield Difference(f"event {k}", (event_line(events[k]), event_line(others[k])))
    if len(events) != len(others):
        yield Difference("number of events", (len(events), len(others)))


def _compared(field: str, left: Any, right: Any, frame: int | None = None) -> Iterator[Difference]:
    """The first row that differs."""
    one, two = np.atleast_1d(np.asarray(left)), np.atleast_1d(np.asarray(right))
    if one.shape != two.shape or one.dtype != two.dtype:
        yield Difference(field, (f"{one.shape} {one.dtype}", f"{two.shape} {two.dtype}"), frame)
    elif one.tobytes() != two.tobytes():
        bits = f"u{one.dtype.itemsize}"
        row = int(np.argmax((one.view(bits) != two.view(bits)).reshape(len(one), -1).any(axis=1)))
        yield Difference(field, (one[row], two[row]), frame, row if np.ndim(left) else None)
