"""The file of a run: one HDF5 file that other tools can open, and that stays valid after a crash at any moment.

================== ===================================================================================
 :mod:`.layout`      every name inside the file, and the data of a run: a header, and frames
 :mod:`.contents`    the contents of a file: its index
 :mod:`.opening`     opens any file, or raises an error of one line; reads and writes rows
 :mod:`.sandbox`     child processes, with limits of memory and time, in which libraries read files
 :mod:`.h5format`    what the HDF5 library finds in a file, and the few fields that recording changes
------------------ -----------------------------------------------------------------------------------
 :mod:`.writer`      ``TrajectoryWriter``: skeleton and frames under one lock
 :mod:`.output_path` the output: checks of path and disk space, and the writer's lock
 :mod:`.skeleton`    creates the whole file, with room for every frame
 :mod:`.framefile`   writes frames into their room and raises their number; continues a recording
 :mod:`.background`  threads for checksums, and for waiting until the disk confirms the writes
 :mod:`.checkpoint`  the engine's state, to resume with the same bits
------------------ -----------------------------------------------------------------------------------
 :mod:`.reader`      ``Trajectory``: a recording as Python and notebooks use it
 :mod:`.frames`      the frames of a recording as arrays (:mod:`.column`), during the run or after it
 :mod:`.tables`      columns by name; :mod:`.events` and :mod:`.systems` make such tables
 :mod:`.notebook`    a recording in a line, and as a notebook shows it
 :mod:`.difference`  the first frame, field and particle in which two recordings differ
================== ===================================================================================

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
    from nbody.trajectory.layout import Frame as Frame
    from nbody.trajectory.layout import RunHeader as RunHeader
    from nbody.trajectory.layout import required_bytes as required_bytes
    from nbody.trajectory.output_path import check_output as check_output
    from nbody.trajectory.output_path import check_space as check_space
    from nbody.trajectory.reader import Trajectory as Trajectory
    from nbody.trajectory.writer import TrajectoryWriter as TrajectoryWriter

__all__, __getattr__ = names_of(
    __name__,
    {
        "layout": "Frame RunHeader required_bytes",
        "writer": "TrajectoryWriter",
        "reader": "Trajectory",
        "checkpoint": "Checkpoint read_checkpoint state_bytes",
        "difference": "first_difference",
        "output_path": "check_output check_space",
    },
)
