"""The particles during a run: in host memory, or on a GPU from the first step to the last.

================ ====================================================================================================
 :mod:`.state`    ``State``: named :mod:`.columns` (positions, velocities, accelerations …) and what belongs to them
 :mod:`.clock`    the steps, the time, and which results are current
 :mod:`.moves`    kick, drift and the course's Taylor drift, of which schemes consist; steps that are repeated
 :mod:`.frames`   the frames that are recorded, with the :mod:`.sums` that give energies and momenta
 :mod:`.outputs`  what a force evaluation computes; :mod:`.progress`, how far it is
 :mod:`.host`     all of this in host memory
 :mod:`.device`   all of this on a GPU: :mod:`.device_moves`; :mod:`.replay`, steps as CUDA graphs, with their
                  :mod:`.graph_time`; :mod:`.staging`, frames on their way to the host; :mod:`.device_progress`;
                  :mod:`.partition`, the devices that divide an evaluation
================ ====================================================================================================

Only snapshots and columns that are requested are copied from a GPU to the host.
"""

from nbody.state.clock import Moment, StateClock
from nbody.state.columns import Column, bytes_of, checkpoint_arrays
from nbody.state.frames import (
    BLOCKS,
    Frame,
    Slots,
    StateFrames,
    bytes_in_transit,
    device_blocks,
    frame_bytes,
    frames_per_block,
    itemsize,
)
from nbody.state.moves import StateMoves
from nbody.state.outputs import Outputs
from nbody.state.progress import ForceProgress
from nbody.state.state import State

__all__ = [
    "BLOCKS", "Column", "ForceProgress", "Frame", "Moment", "Outputs", "Slots", "State", "StateClock", "StateFrames",
    "StateMoves", "bytes_in_transit", "bytes_of", "checkpoint_arrays", "device_blocks", "frame_bytes",
    "frames_per_block", "itemsize",
]  # fmt: skip
