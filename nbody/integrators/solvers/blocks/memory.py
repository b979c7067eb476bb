"""The memory of the working arrays of block steps."""

from nbody.forces.engine import Engine
from nbody.integrators.facts import WorkingBytes
from nbody.integrators.solvers.blocks.formulas import ROWS

FEWEST_SUMS = 32 * 9 * 4096
"""Partial sums on a GPU, for few bodies: nine sums of 32 bodies per block of threads that its multiprocessors hold."""

PARTS = 8
"""The parts into which the sums over many bodies are divided on a GPU, and the most devices that can share them."""

NODE = 12
"""Numbers per sum of a body that devices exchange: nine, and three more so that they write whole sectors of 32 bytes."""

PARTS_FROM = {False: 32768, True: 131072}
"""The fewest bodies for which the sums are divided into parts, in float64 (False) and in mixed precision (True)."""


def parts_for(count: int, mixed: bool) -> int:
    """The parts of the sums over a number of bodies: one if several devices would wait for each other longer than they
    compute."""
    return PARTS if count >= PARTS_FROM[mixed] else 1


def rows_per_body(mixed: bool) -> int:
    """Rows of four numbers per body of the prediction on a GPU: position and mass, the rest of the position if mixed,
    velocity, acceleration. So a row is one load."""
    return 4 if mixed else 3


def working_bytes(device: str, particles: int, precision: str) -> int:
    """Bytes of the working arrays on a device, ``cpu`` or ``gpu``: the prediction, the sums, the list of a block, the masses
    and the limits of pairs."""
    if device == "cpu":
        return 8 * particles * (9 + 9 + 1 + 2)
    mixed = precision == "mixed"
    sums = max(9 * (particles + 31) * parts_for(particles, mixed), FEWEST_SUMS)
    return particles * (4 * rows_per_body(mixed) * (4 if mixed else 8) + 3 * 8) + 8 * sums


def bytes_to_help(particles: int, precision: str) -> int:
    """Bytes on each other GPU: copies of the bodies, the working arrays, and the exchanged sums."""
    exchanged = bytes_to_exchange(particles, precision)
    return exchanged and working_bytes("gpu", particles, precision) + 8 * particles * (ROWS + 2 + 1) + exchanged


def bytes_to_exchange(particles: int, precision: str) -> int:
    """The most bytes on each of several GPUs, the first one too, for the sums that they exchange."""
    parts = parts_for(particles, precision == "mixed")
    return 0 if parts == 1 else 8 * particles * 2 * parts * NODE


def working_arrays(engine: type[Engine], particles: int, precision: str) -> WorkingBytes:
    """The memory of block steps with an engine."""
    copies = 8 * particles * (ROWS + 2 + 3)  # of the bodies, while they are shown within a step
    first = working_bytes(engine.can.device, particles, precision) + copies
    return WorkingBytes(first, bytes_to_help(particles, precision), bytes_to_exchange(particles, precision))
