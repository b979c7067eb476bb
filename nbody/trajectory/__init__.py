"""The file of a run: one HDF5 file that other tools open, written so that a crash at any moment leaves it whole.

====================== ====================================================================================
 :mod:`.layout`        every name inside the file
 :mod:`.records`       what a run hands over: a header, and frames with their observables
 :mod:`.output_path`   checks of the path and the disk space, and the numbered name of an older file
 :mod:`.lock`          one writer at a time
 :mod:`.skeleton`      makes the whole file, with room for every frame, once
 :mod:`.h5format`      the few fields of the HDF5 format that recording changes
 :mod:`.contents`      what a file holds: its index
 :mod:`.foreign_file`  what a file without an index holds, read by the HDF5 library in a process of its own:
 :mod:`.hdf5_process`  this one
 :mod:`.opening`       opens a file that may be anything, or says in one line why not
 :mod:`.rows`          the rows of a dataset, read and written where they lie
 :mod:`.framefile`     puts frames into the room and raises the count
 :mod:`.background`    threads for checksums, and for waiting until the disk has what was written
 :mod:`.writer`        ``TrajectoryWriter``: skeleton and frames under one lock
 :mod:`.checkpoint`    the engine's own state, to resume with the same bits
 :mod:`.reopening`     resumes a recording, in place or in a larger copy
 :mod:`.reader`        ``Trajectory``: frames by index, during the run or after
 :mod:`.verify`        checks every frame against its checksums
 :mod:`.difference`    the first frame, field and particle in which two recordings differ
 :mod:`.provenance`    how a recording came about
====================== ====================================================================================

Why three ways to know a file (h5py 3.16, an AMD EPYC). h5py makes the structure, in memory. The index at a file's end makes
opening it 0.8 ms; the child process with h5py takes 160 to 250, and starting a process is not possible everywhere (MPI). The
child process is for all other files: read in this process, 46 of 16 000 damaged ones crashed or hung the library.

Names are loaded when they are used, so that importing the package does not import h5py (0.2 s).
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "Frame": "records",
    "RunHeader": "records",
    "TrajectoryWriter": "writer",
    "Trajectory": "reader",
    "Checkpoint": "checkpoint",
    "read_checkpoint": "checkpoint",
    "state_bytes": "checkpoint",
    "first_difference": "difference",
    "check_output": "output_path",
    "check_space": "output_path",
    "required_bytes": "records",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
