"""The file of a run: one HDF5 file that other tools can open, and that stays valid after a crash at any moment.

========================== ===================================================================================
 :mod:`.lock`                the lock of the one process that writes
 :mod:`.structure.layout`    every name inside the file
 :mod:`.structure.header`    the data at the start of a recording, and the size of its file
 :mod:`.structure.contents`  the contents of a file: its index
 :mod:`.structure.opening`   opens any file, or raises an error of one line; reads and writes rows
 :mod:`.structure.h5format`  what the HDF5 library finds in a file, and the few fields that recording changes
-------------------------- -----------------------------------------------------------------------------------
 :mod:`.writing.writer`      ``TrajectoryWriter``: skeleton and frames under one lock
 :mod:`.writing.output_path` the output: checks of path and disk space
 :mod:`.writing.skeleton`    creates the whole file, with room for every frame
 :mod:`.writing.framefile`   writes frames into their room and raises their number; continues a recording
 :mod:`.writing.background`  threads for checksums, and for waiting until the disk confirms the writes
 :mod:`.writing.checkpoint`  the engine's state, to resume with the same bits
-------------------------- -----------------------------------------------------------------------------------
 :mod:`.reading.reader`      ``Trajectory``: a recording as Python and notebooks use it
 :mod:`.reading.frames`      the frames of a recording as arrays (``column``), during the run or after it
 :mod:`.reading.tables`      columns by name; ``events`` and ``systems`` make such tables
 :mod:`.reading.notebook`    a recording in a line, and as a notebook shows it
 :mod:`.reading.difference`  the first frame, field and particle in which two recordings differ
========================== ===================================================================================

There are three ways to read a file's structure (h5py 3.16, an AMD EPYC). h5py creates the structure, in memory. With the
index at the end of a file, opening takes 0.8 ms; a child process with h5py takes 160 to 250 ms, and cannot be started
everywhere (MPI). The child process is used for all other files: in this process, 46 of 16 000 damaged files crashed or hung
the library.

Names are imported at first use, so that importing the package does not import h5py (0.2 s).
"""

from typing import TYPE_CHECKING

from nbody.lazy import names_of

if TYPE_CHECKING:
    from nbody.state.frames import Frame as Frame
    from nbody.trajectory.reading.difference import first_difference as first_difference
    from nbody.trajectory.reading.reader import Trajectory as Trajectory
    from nbody.trajectory.structure.header import RunHeader as RunHeader
    from nbody.trajectory.structure.header import required_bytes as required_bytes
    from nbody.trajectory.writing.checkpoint import Checkpoint as Checkpoint
    from nbody.trajectory.writing.checkpoint import read_checkpoint as read_checkpoint
    from nbody.trajectory.writing.checkpoint import state_bytes as state_bytes
    from nbody.trajectory.writing.output_path import check_output as check_output
    from nbody.trajectory.writing.output_path import check_space as check_space
    from nbody.trajectory.writing.writer import TrajectoryWriter as TrajectoryWriter

__all__, __getattr__ = names_of(
    __name__,
    {
        "structure.header": "RunHeader required_bytes",
        "writing.writer": "Frame TrajectoryWriter",
        "reading.reader": "Trajectory",
        "writing.checkpoint": "Checkpoint read_checkpoint state_bytes",
        "reading.difference": "first_difference",
        "writing.output_path": "check_output check_space",
    },
)
