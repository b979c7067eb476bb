"""What an engine needs of this machine: a GPU, or a compiler and threads; and memory. Whether a run fits, and the most
particles that fit."""

from nbody import compute, memory
from nbody.errors import DeviceError, InputError
from nbody.forces.engine import Engine
from nbody.forces.problem import Problem
from nbody.law import Gravity
from nbody.parallel import launch
from nbody.state import Column, bytes_in_transit, bytes_of

BODY_BYTES = 8 * 8
"""Bytes of host memory per particle for the initial conditions, with any engine. (While they are generated it is up to 160,
which is less than with a checkpoint.)"""

CHECKPOINT_COPIES = 3
"""Copies of the state in host memory while a checkpoint is written: the arrays, their bytes, and the joined bytes."""


def block_rows(count: int, row_bytes: int, budget: int, most: int | None = None) -> int:
    """Rows of a matrix of ``count`` rows to store at a time: as many as fit ``budget`` bytes, at least one, at most
    ``most``; a multiple of 8 if there are 8 or more. (It does not depend on the free memory: sums over another number of
    rows may round differently, and a repeated run must give the same bits.)"""
    rows = min(count, max(1, budget // row_bytes), most or count)
    return rows if rows < 8 or rows in (count, most) else rows // 8 * 8


def needs(engine: type[Engine], problem: Problem, added: tuple[Column, ...] = (), working: int = 0) -> dict[str, int]:
    """Bytes of ``memory``, and of ``GPU memory`` if the engine uses a GPU, that a run needs. ``added``: the columns that the
    integrator adds to the state; ``working``: the bytes of its working arrays."""
    particles, precision = problem.particles, problem.precision
    saved = (column for column in (*engine.state_type.COLUMNS, *added) if column.saved)
    host = particles * BODY_BYTES + CHECKPOINT_COPIES * bytes_of(saved, particles, 3, precision)
    host += bytes_in_transit(particles, precision)
    own = engine.memory(problem).own + working + bytes_of(added, particles, 3, precision)
    if engine.can.device == "cpu":
        return {"memory": host + own}
    return {"memory": host, "GPU memory": own}


def free(place: str) -> int:
    """Free bytes of ``memory`` or of ``GPU memory``. Raises DeviceError for the latter if there is no GPU."""
    if place == "GPU memory":
        return compute.facts().memory_free
    return memory.memory_available()


def _has(place: str, needed: int) -> bool:
    return (place == "memory" and needed <= memory.ALWAYS_FREE) or needed <= free(place)


def fits(engine: type[Engine], problem: Problem) -> bool:
    """True if a run fits the memory that is free now."""
    return all(_has(place, needed) for place, needed in needs(engine, problem).items())


def check_fits(
    engine: type[Engine], problem: Problem, where: str = "", added: tuple[Column, ...] = (), working: int = 0
) -> None:
    """Check that a run fits the memory that is free now; the arguments are those of :func:`needs`.

    Raises:
        InputError: it does not fit the host memory; the message begins with ``where`` and has the numbers.
        DeviceError: it does not fit the GPU memory.
    """
    for place, needed in needs(engine, problem, added, working).items():
        if not _has(place, needed):
            kind = DeviceError if place == "GPU memory" else InputError
            raise kind(
                f"{where}{problem.particles} particles need {needed / 2**30:.3g} GiB of {place} and "
                f"{free(place) / 2**30:.3g} GiB are free; use fewer particles"
            )


def largest(engine: type[Engine], precision: str) -> int:
    """The most particles whose run fits the free memory, to three digits or better."""
    low, high = 0, 1
    asked = Problem(Gravity(), precision)
    while fits(engine, asked._replace(particles=high)):
        low, high = high, 2 * high
    while high - low > max(1, low // 1000):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(engine, asked._replace(particles=middle)) else (low, middle)
    return low


def require_device(kind: type[Engine], name: str) -> None:
    """Raise a DeviceError if this machine lacks what an engine, called ``name``, computes on. (There always is a CPU.)"""
    if kind.can.device == "gpu":
        remedy = "start as many ranks per host as it has GPUs, or " if launch() else ""
        compute.require(f"engine '{name}'", f"{remedy}use --engine cpu")
    elif kind.can.compiled:
        require_compiler(name)


def require_compiler(name: str) -> None:
    """Raise a DeviceError if NUMBA_DISABLE_JIT is set (the CPU's kernels do not run as plain Python), or if Numba cannot
    start its threads (an unknown or missing threading layer)."""
    from numba import config, get_num_threads

    if config.DISABLE_JIT:
        raise DeviceError(
            f"the engine '{name}' is compiled, and NUMBA_DISABLE_JIT forbids it; unset that variable, or use "
            "--engine reference"
        )
    try:
        get_num_threads()  # starts them
    except (ValueError, RuntimeError, ImportError) as error:
        reason = " ".join(str(error).split())[:100]
        raise DeviceError(
            f"the engine '{name}' can't start Numba's threads ({reason}); unset NUMBA_NUM_THREADS and "
            "NUMBA_THREADING_LAYER, or use --engine reference"
        ) from error
