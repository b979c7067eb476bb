"""The events of a run: a table, each in words, and which bodies are left after them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from nbody.trajectory.reading.tables import Table
from nbody.trajectory.structure.layout import ADDED, CHANGED, EVENT_DTYPE, MERGER, REMOVED

Array = np.ndarray

RECORDED = {"bodies": 1, "collision_energy": 1}
"""What is recorded with each frame of a run with mergers: the number of bodies, and the energy that mergers have added."""

BOOKED = {"bodies": 1, "booked_energy": 1}
"""What is recorded if other changes add energy: what all changes have added, mergers too."""

NO_NAMES: Mapping[int, str] = MappingProxyType({})

OF_TWO = {
    "merger": "{id_2} merged into {id_1}",
    "contact": "{id_1} and {id_2} touched",
    "bounce": "{id_1} and {id_2} bounced",
    "distance": "{id_1} and {id_2} are {distance:.6g} apart",
    "closest": "{id_1} and {id_2} are closest, {distance:.6g} apart",
    "transit": "{id_1} in front of {id_2}",
    "pericentre": "{id_1} at its pericentre about {id_2}, at {distance:.6g}",
    "apocentre": "{id_1} at its apocentre about {id_2}, at {distance:.6g}",
}
WORDS = OF_TWO | {
    "escape": "{id_1} escapes",
    "crossing": "{id_1} crosses the plane",
    "function": "the function of event {event} is zero",
    "added": "{id_1} was added",
    "removed": "{id_1} was removed",
    "changed": "{id_1} was changed",
    "escaped": "{id_1} escaped",
    "fragment": "{id_1} is a fragment",
    "consumed": "{id_1} was consumed",
    "altered": "{id_1} was altered",
}
"""The kinds of events in words; of those of two bodies with their relative speed."""


def no_events() -> Array:
    """No rows."""
    return np.zeros(0, EVENT_DTYPE)


def event_table(rows: Array) -> Table:
    """Columns by name, (M,) each: ``time``, ``step``, ``kind``, ``id_1``, ``id_2`` … of rows (M,) of
    :data:`layout.EVENT_DTYPE`, without the checksum."""
    columns = {name: rows[name] for name, *_ in EVENT_DTYPE if name != "crc32"}
    return Table(columns | {"kind": rows["kind"].astype(str)}, text=lambda: "\n".join(map(event_line, rows)))


def event_line(row: np.void, time_factor: float = 1.0, unit: str = "", names: Mapping[int, str] = NO_NAMES) -> str:
    """One event in words; ``names``: of bodies, by their ids."""
    kind = row["kind"].decode()
    values = {name: row[name] for name in row.dtype.names or ()}
    values |= {key: names.get(int(row[key]), row[key]) for key in ("id_1", "id_2")}
    what = WORDS.get(kind, kind + " of {id_1}").format(**values)
    speed = f", relative speed {row['speed']:.4g}" if kind in OF_TWO and row["id_2"] >= 0 else ""
    return f"t = {time_factor * row['time']:.9g} {unit}".rstrip() + f": {what}{speed}"


class Left(NamedTuple):
    """The bodies after some events: a mask (N,) of those that are left, the masses (N,) (0 of the others), and the radii
    (N,), empty if the bodies have none."""

    alive: Array
    mass: Array
    radius: Array


def left_after(rows: Array, step: int, id: Array, mass: Array, radius: Array) -> Left:
    """The bodies after a step. ``rows``: all events; ``id``, ``mass`` and ``radius``: those with which bodies appeared."""
    kind, done = rows["kind"], rows["step"] <= step
    alive = np.ones(len(id), bool)
    if not np.isin(kind, (MERGER, *ADDED, *REMOVED, *CHANGED)).any():
        return Left(alive, mass, radius)
    order = np.argsort(id, kind="stable")

    def slots(name: str, chosen: Array) -> Array:
        found: Array = order[np.searchsorted(id, rows[name][chosen], sorter=order)]
        return found

    merger, changed = kind == MERGER, np.isin(kind, CHANGED)
    alive[slots("id_1", np.isin(kind, ADDED) & ~done)] = False
    alive[slots("id_1", np.isin(kind, REMOVED) & done)] = False
    alive[slots("id_2", merger & done)] = False
    mass, radius, last = mass.copy(), radius.copy(), (merger | changed) & done  # of one body the last one counts
    now, into = rows[last], slots("id_1", last)
    mass[into] = np.where(merger[last], now["mass_1"] + now["mass_2"], now["mass_2"])
    mass[~alive] = 0.0
    if len(radius):
        radius[into] = np.where(merger[last], np.cbrt(now["radius_1"] ** 3 + now["radius_2"] ** 3), now["radius_2"])
    return Left(alive, mass, radius)
