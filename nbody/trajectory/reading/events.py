"""The events of a run: a table, each in words, and which bodies are left after mergers."""

from typing import NamedTuple

import numpy as np

from nbody.trajectory.reading.tables import Table
from nbody.trajectory.structure.layout import EVENT_DTYPE, MERGER

Array = np.ndarray

RECORDED = {"bodies": 1, "collision_energy": 1}
"""What is recorded with each frame: the number of bodies, and the energy that mergers have added so far."""


WORDS = {
    "merger": "{id_2} merged into {id_1}",
    "contact": "{id_1} and {id_2} touched",
    "distance": "{id_1} and {id_2} are {distance:.6g} apart",
    "closest": "{id_1} and {id_2} are closest, {distance:.6g} apart",
    "escape": "{id_1} escapes",
    "transit": "{id_1} in front of {id_2}",
    "pericentre": "{id_1} at its pericentre about {id_2}, at {distance:.6g}",
    "apocentre": "{id_1} at its apocentre about {id_2}, at {distance:.6g}",
    "crossing": "{id_1} crosses the plane",
    "function": "function of event {event} is zero",
}
"""The kinds of events in words."""


def no_events() -> Array:
    """No rows."""
    return np.zeros(0, EVENT_DTYPE)


def event_table(rows: Array) -> Table:
    """Columns by name, (M,) each: ``time``, ``step``, ``kind``, ``id_1``, ``id_2`` … of rows (M,) of
    :data:`layout.EVENT_DTYPE`, without the checksum."""
    columns = {name: rows[name] for name, *_ in EVENT_DTYPE if name != "crc32"}
    return Table(columns | {"kind": rows["kind"].astype(str)}, text=lambda: "\n".join(map(event_line, rows)))


def event_line(row: np.void, time_factor: float = 1.0, unit: str = "") -> str:
    """One event in words."""
    kind = row["kind"].decode()
    what = WORDS.get(kind, kind + " of body {id_1}").format(**{name: row[name] for name in row.dtype.names})
    speed = f", relative speed {row['speed']:.4g}" if row["id_2"] >= 0 else ""
    return f"t = {time_factor * row['time']:.9g} {unit}".rstrip() + f": {what}{speed}"


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
