"""The events of a recording as a table, and which bodies are left after them."""

from typing import NamedTuple

import numpy as np

from nbody.trajectory.layout import EVENT_DTYPE, MERGER
from nbody.trajectory.table import ColumnTable

Array = np.ndarray


RECORDED = {"bodies": 1, "collision_energy": 1}
"""What is recorded with each frame: the number of bodies, and the energy that mergers have added so far."""


def no_events() -> Array:
    """No rows."""
    return np.zeros(0, EVENT_DTYPE)


class EventTable(ColumnTable):
    """Columns by name, (M,) each: ``time``, ``step``, ``kind``, ``id_1``, ``id_2`` …

    Args:
        rows: (M,) of :data:`~nbody.trajectory.layout.EVENT_DTYPE`.
    """

    def __init__(self, rows: Array) -> None:
        self._rows = rows
        columns = {name: rows[name] for name, *_ in EVENT_DTYPE if name != "crc32"}
        self._columns = columns | {"kind": rows["kind"].astype(str)}

    def line(self, k: int, time_factor: float = 1.0, unit: str = "") -> str:
        """Event ``k`` in words."""
        row = self._rows[k]
        first, second = row["id_1"], row["id_2"]
        what = f"{second} merged into {first}" if row["kind"] == MERGER else f"{first} and {second} touched"
        return f"t = {time_factor * row['time']:.9g} {unit}".rstrip() + f": {what}, relative speed {row['speed']:.4g}"

    def __repr__(self) -> str:
        return "\n".join(self.line(k) for k in range(len(self._rows)))


class Left(NamedTuple):
    """The bodies after some events: a mask (N,) of those that are left, the masses (N,) (0 of the others), and the radii
    (N,), empty if the bodies have none."""

    alive: Array
    mass: Array
    radius: Array


def left_after(rows: Array, id: Array, mass: Array, radius: Array) -> Left:
    """The bodies after these events. ``id``, ``mass`` and ``radius`` are those of the first frame."""
    mergers = rows[rows["kind"] == MERGER]
    alive = np.ones(len(id), bool)
    if not len(mergers):
        return Left(alive, mass, radius)
    mass, radius = mass.copy(), radius.copy()
    order = np.argsort(id, kind="stable")
    into, gone = (order[np.searchsorted(id, mergers[name], sorter=order)] for name in ("id_1", "id_2"))
    alive[gone] = False
    mass[into] = mergers["mass_1"] + mergers["mass_2"]  # the last one counts
    mass[gone] = 0.0
    if len(radius):
        radius[into] = np.cbrt(mergers["radius_1"] ** 3 + mergers["radius_2"] ** 3)
    return Left(alive, mass, radius)
