"""What this machine must have for an engine to compute: a GPU, or a compiler and threads."""

from nbody import compute
from nbody.errors import DeviceError
from nbody.forces.engine import Engine
from nbody.parallel import launch


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
