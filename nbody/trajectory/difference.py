"""The first difference between two recordings, bit for bit."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbody.trajectory.events import event_line
from nbody.trajectory.reader import Trajectory

Array = np.ndarray


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
    with Trajectory(a) as one, Trajectory(b) as two:
        for field in ("dimensions", "mass", "id", "species", "radius"):
            found = _compare(field, getattr(one, field), getattr(two, field), None)
            if found:
                return found
        if one.species_names != two.species_names:
            return Difference("species_names", (", ".join(one.species_names), ", ".join(two.species_names)))
        if list(one.widths) != list(two.widths):
            return Difference("observables", (", ".join(one.widths), ", ".join(two.widths)))
        for k in range(min(len(one), len(two))):
            found = _compare_frames(one, two, k)
            if found:
                return found
        if len(one) != len(two):
            return Difference("frames", (len(one), len(two)))
        return _compare_events(one, two)


def _compare_frames(one: Trajectory, two: Trajectory, k: int) -> Difference | None:
    left, right = one.frame(k), two.frame(k)
    for field in ("step", "time", "position", "velocity"):
        found = _compare(field, getattr(left, field), getattr(right, field), k)
        if found:
            return found
    for name in left.observables:
        found = _compare(name, left.observables[name], right.observables[name], k)
        if found:
            return Difference(name, found.values, k)  # a row of it is a component, not a particle
    return None


def _compare_events(one: Trajectory, two: Trajectory) -> Difference | None:
    left, right = one.event_rows(), two.event_rows()
    for k in range(min(len(left), len(right))):
        if left[k].tobytes() != right[k].tobytes():
            return Difference(f"event {k}", (event_line(left[k]), event_line(right[k])))
    if len(left) != len(right):
        return Difference("number of events", (len(left), len(right)))
    return None


def _compare(field: str, left: Any, right: Any, frame: int | None) -> Difference | None:
    one, two = np.atleast_1d(np.asarray(left)), np.atleast_1d(np.asarray(right))
    if one.shape != two.shape or one.dtype != two.dtype:
        return Difference(field, (f"{one.shape} {one.dtype}", f"{two.shape} {two.dtype}"), frame)
    if one.tobytes() == two.tobytes():
        return None
    bits = f"u{one.dtype.itemsize}"
    rows = (one.view(bits) != two.view(bits)).reshape(len(one), -1).any(axis=1)
    row = int(np.argmax(rows))
    if np.ndim(left) == 0:
        return Difference(field, (one[0], two[0]), frame)
    return Difference(field, (one[row], two[row]), frame, row)
