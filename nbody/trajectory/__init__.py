"""The file of a run: one HDF5 file that other tools open, written so that a crash at any moment leaves it whole.

=====================  ====================================================================================
 :mod:`.layout`        every name inside the file, in one place
 :mod:`.frame`         a recorded moment, and which observables it carries
 :mod:`.header`        what a run says of itself before its first frame
 :mod:`.place`         where the file goes: checks of path and space, numbered names, the writer's lock
 :mod:`.skeleton`      makes the whole file, with room for every frame, once
 :mod:`.h5format`      the three fields of the HDF5 format that recording changes
 :mod:`.structure`     what a file of ours holds, read without the HDF5 library
 :mod:`.stranger`      what any other file holds, read by the HDF5 library in a process of its own,
 :mod:`.hdf5_process`  namely this one
 :mod:`.rows`          the rows of a dataset, read and written where they lie
 :mod:`.framefile`     puts frames into the room and raises the count
 :mod:`.writer`        ``TrajectoryWriter``: skeleton and frames under one lock
 :mod:`.syncing`       waits for the disk every few seconds, in the background
 :mod:`.checkpoint`    the engine's own state, for going on with the same bits
 :mod:`.reopening`     goes on with a recording, in place or in a larger copy
 :mod:`.opening`       opens a file that may be anything, or says in one line why not
 :mod:`.reader`        ``Trajectory``: frames by index, while the run goes on or after
 :mod:`.verify`        checks every frame against its checksums
 :mod:`.difference`    the first frame, field and particle in which two recordings differ
 :mod:`.provenance`    what a recording says of how it came about
=====================  ====================================================================================

Names are loaded when they are used, so that importing the package does not import h5py (0.2 s).
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "Frame": "frame",
    "RunHeader": "header",
    "TrajectoryWriter": "writer",
    "Trajectory": "reader",
    "Checkpoint": "checkpoint",
    "read_checkpoint": "checkpoint",
    "state_bytes": "checkpoint",
    "state_bytes_foreseen": "checkpoint",
    "first_difference": "difference",
    "check_output": "place",
    "check_space": "place",
    "required_bytes": "header",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
