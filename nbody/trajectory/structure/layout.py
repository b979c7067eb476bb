"""Every name inside the file of a run.

The layout is H5MD (de Buyl, Colberg and Höfling 2014) with a VTKHDF view of the same bytes.

Shapes: T frames, N particles. Position and velocity always have three columns, which MDAnalysis and VTK need; a run in two
dimensions stores z = 0, and the attribute ``dimensions`` of ``/nbody``. Nothing is compressed: lossless filters gain only 5
to 13 % on such data, and to a contiguous array a frame can be added without changing any index.

Order of the bytes: the structure (all HDF5 metadata, without gaps), the bytes of the datasets, and after the end of the HDF5
file the index (see :mod:`.contents`).
"""

import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from nbody.particles import Particles

Array = np.ndarray

FORMAT_VERSION = 2
"""Raised when an older program can no longer read a new file. Version 1 had no index, no checksum of the commit record
and a fixed list of observables."""

H5MD = "h5md"

PARTICLES = "particles/trajectory"
BOX = f"{PARTICLES}/box"
STEP = f"{PARTICLES}/position/step"  # (T,) int64; hard-linked wherever H5MD asks for a step
TIME = f"{PARTICLES}/position/time"  # (T,) float64, likewise
POSITION = f"{PARTICLES}/position/value"  # (T, N, 3) float32 or float64
PLANNED = "frames_planned"  # attribute of POSITION: how many frames there is room for
VELOCITY = f"{PARTICLES}/velocity/value"  # (T, N, 3)
MASS = f"{PARTICLES}/mass"  # (N,) float64
ID = f"{PARTICLES}/id"  # (N,) int64
BODIES = "bodies"  # attribute of ID: the rows of bodies there; the others, if there is room for more, are in the events
SPECIES = f"{PARTICLES}/species"  # (N,) int32, an index into the names; int8 zeros in files of nbody 0.1
RADIUS = f"{PARTICLES}/radius"  # (N,) float64 of the first frame; only if the bodies have radii
SPECIES_NAMES = "names"  # attribute of SPECIES: JSON, a list of names; files of nbody 0.1 have none


def observable(name: str) -> str:
    """Where the values of an observable are: (T,) or (T, width) float64."""
    return f"observables/{name}/value"


NBODY = "nbody"
VERSION = "format_version"  # attribute of /nbody; files without it are version 1
DIMENSIONS = "dimensions"  # attribute of /nbody: 2 or 3
OBSERVABLES = "observables"  # attribute of /nbody: JSON, name to width, in the order in which their checksum is taken
SCENARIO = f"{NBODY}/scenario"  # the YAML as the user wrote it
RESOLVED = f"{NBODY}/resolved"  # JSON, every default filled in
PROVENANCE = f"{NBODY}/provenance"  # its attributes: program version, engine, device, precision, command line, …
CRC = "crc32"  # attribute of the datasets that never change: zlib.crc32 of their bytes
CHECKSUMS = f"{NBODY}/crc32"  # (T, 3) uint32: of a frame's position, velocity, and all its other numbers
COMMIT = f"{NBODY}/commit"  # the state of the recording, for the writer that resumes it
SLOTS = (f"{NBODY}/checkpoint/0", f"{NBODY}/checkpoint/1")  # (B,) uint8 each; see checkpoint.py

COMMIT_DTYPE = [("frames", "<i8"), ("synced", "<i8"), ("status", "S16"), ("wall_s", "<f8"), ("crc32", "<u4")]
"""The number of whole frames; how many of them the disk has confirmed; running, stopped or complete; wall time so far in
seconds; zlib.crc32 of the previous fields (not in version 1)."""
RUNNING, STOPPED, COMPLETE = "running", "stopped", "complete"

EVENTS = "events"  # (M,) of EVENT_DTYPE, in order of time; only in runs that look for collisions or events
EVENT_DTYPE = [
    ("time", "<f8"), ("step", "<i8"), ("kind", "S16"), ("event", "<i8"), ("id_1", "<i8"), ("id_2", "<i8"),
    ("mass_1", "<f8"), ("mass_2", "<f8"), ("radius_1", "<f8"), ("radius_2", "<f8"), ("x", "<f8"), ("y", "<f8"),
    ("z", "<f8"), ("vx", "<f8"), ("vy", "<f8"), ("vz", "<f8"), ("speed", "<f8"), ("distance", "<f8"),
    ("energy_change", "<f8"), ("crc32", "<u4"),
]  # fmt: skip
"""Something happens to one body or two: the time; the step in which it happened; its kind; which of the run's ``events`` it
is, counted from 0, or -1 for a collision; the ids (-1: none), masses and radii of the bodies before it; position and
velocity of body 1; its speed and distance relative to body 2; what it adds to the total energy; zlib.crc32 of the previous
fields. Collisions are of the kind ``contact``, ``bounce``, or ``merger`` of body 2 into body 1; position and velocity are
then those of the centre of mass of both.

Or a body is :data:`ADDED`, :data:`REMOVED` or :data:`CHANGED` between two steps: the step is the first one whose frame shows
it, so after 50 steps it is 51; its id (``id_2`` of an added one: its species), mass and radius before (1) and after it (2),
position and velocity after it. The first row of a change has all the energy."""
EARLIER_EVENT_DTYPE = [
    (name, "S8" if name == "kind" else kind) for name, kind in EVENT_DTYPE if name not in ("event", "distance")
]
"""That of nbody 0.2."""
MERGER, CONTACT, BOUNCE = b"merger", b"contact", b"bounce"
COLLISIONS = (CONTACT, BOUNCE, MERGER)
ADDED = (b"added", b"fragment")
REMOVED = (b"removed", b"consumed", b"escaped")
CHANGED = (b"changed", b"altered")
"""Each by a user's call, or by a collision with an outcome of the user's own; ``escaped``: beyond ``escape.radius``."""
BY_CALL = (ADDED[0], REMOVED[0], CHANGED[0])
ESCAPED = REMOVED[2]
BOOKED = (*BY_CALL, ESCAPED)
"""What is booked as ``booked_energy``, which includes the ``collision_energy``."""


def event_rows(kind: bytes, bodies: Particles, of: Array | None = None) -> Array:
    """Rows of :data:`EVENT_DTYPE` of bodies that are added, removed or changed; ``of``: ``id_2``, by default -1."""
    found = np.zeros(bodies.count, EVENT_DTYPE)
    found["kind"], found["id_1"], found["id_2"] = kind, bodies.id, -1 if of is None else of
    found["event"] = -1
    found["mass_2"] = bodies.mass
    if len(bodies.radius):
        found["radius_2"] = bodies.radius
    for name, values in zip(("", "v"), bodies.in_space(), strict=True):
        for axis, column in zip("xyz", values.T, strict=True):
            found[name + axis] = column
    found["speed"] = np.linalg.norm(bodies.velocity, axis=1)
    return found


SYSTEM = "system_"
"""The beginning of the names of an ensemble's observables, (T, S) each: :data:`SYSTEM_COLUMNS`, and those that a scenario
names."""

SYSTEM_COLUMNS = ("system_energy", "system_time", "system_steps", "system_closest", "system_status")
"""The observables of an ensemble, (T, S) each: total energy; the time and the number of steps reached; the shortest distance
of two bodies so far, at the ends of steps; and an index into :data:`SYSTEM_STATUS`."""

SYSTEM_STATUS = ("done", "close encounter", "collision", "not finite")
"""What has ended a system. ``done``: the end of the run. ``collision``: a time step became too small to be made."""

VTK = "VTKHDF"
VTK_POINTS = f"{VTK}/Points"  # (T N, 3): the bytes of POSITION
VTK_VELOCITY = f"{VTK}/PointData/velocity"  # (T N, 3): the bytes of VELOCITY
VTK_STEPS = f"{VTK}/Steps"  # its attribute NSteps is the number of frames
VTK_LENGTH = "NSteps"
VIEWS = {VTK_POINTS: POSITION, VTK_VELOCITY: VELOCITY}
"""Datasets that share the bytes of another dataset, and that dataset."""


class Stored(NamedTuple):
    """What a dataset holds: NumPy's kinds of its type, and its shape; ``N`` is the number of bodies, None any number."""

    kinds: str
    shape: tuple[int | str | None, ...]


CONSTANTS = {
    SCENARIO: Stored("S", ()),
    RESOLVED: Stored("S", ()),
    MASS: Stored("f", (None,)),
    ID: Stored("iu", ("N",)),
    SPECIES: Stored("iu", ("N",)),
    RADIUS: Stored("f", ("N",)),
}
"""The datasets that never change."""

OTHERS = {COMMIT: Stored("V", (1,)), EVENTS: Stored("V", (None,))} | dict.fromkeys(SLOTS, Stored("u", (None,)))
"""The datasets that change, but not with each frame."""

OPTIONAL = (SPECIES, RADIUS, EVENTS, *SLOTS, *VIEWS, VTK_STEPS)
"""Names that may be missing: a file can be read without species, without checkpoints and without its VTKHDF view. (The
index of a file of nbody 0.1 does not list the species.)"""


def rows_per_frame(observables: Mapping[str, int]) -> dict[str, Stored]:
    """The datasets with one row per frame, without those that share another dataset's bytes."""
    numbers = {observable(n): Stored("f", (None,) if width == 1 else (None, width)) for n, width in observables.items()}
    vectors = Stored("f", (None, "N", 3))
    first = {TIME: Stored("f", (None,)), STEP: Stored("iu", (None,))}
    return first | numbers | {CHECKSUMS: Stored("u", (None, 3)), VELOCITY: vectors, POSITION: vectors}


def growing(observables: Mapping[str, int]) -> tuple[str, ...]:
    """Everything whose length grows with each frame, in the order in which the lengths are raised: positions after all
    other datasets, because H5MD readers take the number of frames from them, and VTK's number last. The length of a dataset
    is its first dimension; that of :data:`VTK_STEPS` is the attribute :data:`VTK_LENGTH`."""
    return (*list(rows_per_frame(observables))[:-1], *VIEWS, POSITION, VTK_STEPS)


def names(observables: Mapping[str, int]) -> tuple[str, ...]:
    """Everything that is read from a recording with these observables, in the order of the index."""
    return (NBODY, PROVENANCE, *CONSTANTS, *OTHERS, *growing(observables))


def commit_sum(commit: Array) -> int:
    """The checksum that a commit record should have."""
    return zlib.crc32(commit.tobytes()[: commit.dtype.fields["crc32"][1]])  # type: ignore[index]


def is_whole(commit: Array) -> bool:
    """False if a commit record is damaged. (In version 1 this can't be detected.)"""
    return "crc32" not in (commit.dtype.names or ()) or int(commit["crc32"][0]) == commit_sum(commit)


def events_as(rows: Array, dtype: Any = EVENT_DTYPE) -> Array:
    """Rows of events in the form of this version, or of an earlier one's file; what they lack is -1 or NaN."""
    found: Array = np.zeros(len(rows), dtype)
    for name in found.dtype.names or ():
        known = name in (rows.dtype.names or ())
        found[name] = rows[name] if known else -1 if name == "event" else np.nan
    return found


def with_sums(events: Array) -> Array:
    """The events with their checksums."""
    found = events.copy()
    for k in range(len(found)):
        found["crc32"][k] = zlib.crc32(found[k].tobytes()[: -found.dtype["crc32"].itemsize])
    return found
