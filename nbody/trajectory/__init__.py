"""The file of a run: one HDF5 file that other tools can open, and that stays valid after a crash at any moment.

====================== ====================================================================================
 :mod:`.layout`        every name inside the file
 :mod:`.records`       the data of a run: a header, and frames with their observables
 :mod:`.output_path`   checks of the path and the disk space, and the numbered name of an older file
 :mod:`.lock`          one writer at a time
 :mod:`.skeleton`      creates the whole file, with room for every frame
 :mod:`.h5format`      the few fields of the HDF5 format that recording changes
 :mod:`.contents`      the contents of a file: its index
 :mod:`.foreign_file`  the contents of a file without an index, read by the HDF5 library in a child process
 :mod:`.sandbox`       child processes with limits of memory and time
 :mod:`.hdf5_process`  the program of that child process
 :mod:`.opening`       opens any file, or raises an error of one line
 :mod:`.rows`          reads and writes the rows of a dataset without the HDF5 library
 :mod:`.framefile`     writes frames into their room and raises their number
 :mod:`.background`    threads for checksums, and for waiting until the disk confirms the writes
 :mod:`.writer`        ``TrajectoryWriter``: skeleton and frames under one lock
 :mod:`.checkpoint`    the engine's state, to resume with the same bits
 :mod:`.reopening`     resumes a recording, in place or in a larger copy
 :mod:`.reader`        ``Trajectory``: frames by index, during the run or after
 :mod:`.events`        the collisions of a run: a table, and the bodies that are left
 :mod:`.notebook`      a recording in a line, and as a notebook shows it
 :mod:`.verify`        checks every frame against its checksums
 :mod:`.difference`    the first frame, field and particle in which two recordings differ
 :mod:`.provenance`    the origin of a recording: program, machine, command line
====================== ====================================================================================

There are three ways to read a file's structure (h5py 3.16, an AMD EPYC). h5py creates the structure, in memory. With the
index at the end of a file, opening takes 0.8 ms; a child process with h5py takes 160 to 250 ms, and cannot be started
everywhere (MPI). The child process is used for all other files: in this process, 46 of 16 000 damaged files crashed or hung
the library.

Names are imported at first use, so that importing the package does not import h5py (0.2 s).
"""

from typing import TYPE_CHECKING

from nbody.lazy import names_of

if TYPE_CHECKING:
    from nbody.trajectory.checkpoint import Checkpoint as Checkpoint
    from nbody.trajectory.checkpoint import read_checkpoint as read_checkpoint
    from nbody.trajectory.checkpoint import state_bytes as state_bytes
    from nbody.trajectory.difference import first_difference as first_difference
    from nbody.trajectory.output_path import check_output as check_output
    from nbody.trajectory.output_path import check_space as check_space
    from nbody.trajectory.reader import Trajectory as Trajectory
    from nbody.trajectory.records import Frame as Frame
    from nbody.trajectory.records import RunHeader as RunHeader
    from nbody.trajectory.records import required_bytes as required_bytes
    from nbody.trajectory.writer import TrajectoryWriter as TrajectoryWriter

__all__, __getattr__ = names_of(
    __name__,
    {
        "records": "Frame RunHeader required_bytes",
        "writer": "TrajectoryWriter",
        "reader": "Trajectory",
        "checkpoint": "Checkpoint read_checkpoint state_bytes",
        "difference": "first_difference",
        "output_path": "check_output check_space",
    },
)
