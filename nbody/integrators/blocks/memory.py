"""The memory of the working arrays of block steps."""

FEWEST_SUMS = 32 * 9 * 4096
"""Partial sums on a GPU, for few bodies: nine sums of 32 bodies per block of threads that its multiprocessors hold."""


def rows_per_body(mixed: bool) -> int:
    """Rows of four numbers per body of the prediction on a GPU: position and mass, the rest of the position if mixed,
    velocity, acceleration. So a row is one load."""
    return 4 if mixed else 3


def working_bytes(device: str, particles: int, precision: str) -> int:
    """Bytes of the working arrays on a device, ``cpu`` or ``gpu``: the prediction, the sums, the list of a block, the masses
    and the limits of pairs."""
    if device == "cpu":
        return 8 * particles * (9 + 9 + 1 + 2)
    prediction = 4 * rows_per_body(precision == "mixed") * (4 if precision == "mixed" else 8)
    return particles * (prediction + 3 * 8) + 8 * max(9 * (particles + 31), FEWEST_SUMS)
