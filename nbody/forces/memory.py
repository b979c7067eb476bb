"""Do so many particles fit the memory that an engine works in, and how many would?"""

from nbody import machine
from nbody.errors import DeviceError, InputError
from nbody.forces.engine import Engine
from nbody.state import Column, bytes_in_transit

BODY_BYTES = 8 * 8
"""Bytes of the computer's memory that a particle's initial conditions take, whatever the engine. (While they are made
it is up to 160, less than with a checkpoint.)"""

CHECKPOINT_COPIES = 3
"""Copies of the state in the computer's memory while a checkpoint is written: the arrays, their bytes, and all joined."""


def block_rows(count: int, row_bytes: int, budget: int, most: int | None = None) -> int:
    """Rows of a matrix of ``count`` rows to hold at a time: as many as a budget (bytes) has room for, one at least,
    ``most`` at most; a multiple of 8 where there are so many. (What is free at the moment has no say in it: another
    number of rows may round sums otherwise, and a run made again must have the same bits.)"""
    rows = min(count, max(1, budget // row_bytes), most or count)
    return rows if rows < 8 or rows in (count, most) else rows // 8 * 8


def needs(engine: type[Engine], particles: int, precision: str, added: tuple[Column, ...] = ()) -> dict[str, int]:
    """Bytes that a run takes of ``memory``, and of ``GPU memory`` where the engine works there. ``added``: the columns
    that the integrator adds to the state."""
    kept = engine.state_type.checkpoint_arrays(particles, 3, precision, added).values()
    host = particles * BODY_BYTES + CHECKPOINT_COPIES * sum(array.nbytes for array in kept)
    host += bytes_in_transit(particles, precision)
    engine_bytes = engine.bytes_needed(particles, precision) + sum(c.bytes(particles, 3, precision) for c in added)
    if engine.device == "gpu":
        return {"memory": host, "GPU memory": engine_bytes}
    return {"memory": host + engine_bytes}


def free(place: str) -> int:
    """Bytes free of ``memory`` or of ``GPU memory``. Raises DeviceError for the latter where there is no GPU."""
    if place == "GPU memory":
        from nbody import gpu

        return gpu.facts().memory_free
    return machine.memory_available()


def fits(engine: type[Engine], particles: int, precision: str) -> bool:
    """True if a run of so many particles fits what is free now."""
    return all(needed <= free(place) for place, needed in needs(engine, particles, precision).items())


def check_fits(
    engine: type[Engine], particles: int, precision: str, where: str = "", added: tuple[Column, ...] = ()
) -> None:
    """Nothing, if a run of so many particles fits.

    Raises:
        InputError: it does not fit the computer's memory; the line begins with ``where`` and has the numbers.
        DeviceError: it does not fit the GPU's.
    """
    for place, needed in needs(engine, particles, precision, added).items():
        if needed > (available := free(place)):
            kind = DeviceError if place == "GPU memory" else InputError
            raise kind(
                f"{where}{particles} particles need {needed / 2**30:.3g} GiB of {place} and "
                f"{available / 2**30:.3g} GiB are free; use fewer particles"
            )


def largest(engine: type[Engine], precision: str) -> int:
    """The most particles of which a run fits now, to three digits or better."""
    low, high = 0, 1
    while fits(engine, high, precision):
        low, high = high, 2 * high
    while high - low > max(1, low // 1000):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(engine, middle, precision) else (low, middle)
    return low
