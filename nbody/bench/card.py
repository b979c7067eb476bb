"""Checks whether there is a GPU to measure."""

from nbody.errors import DeviceError


def no_gpu() -> str:
    """The reason why no GPU can be measured; empty if one can. (The speed of a simulated GPU means nothing.)"""
    from nbody import compute

    return "kernels are simulated: NUMBA_ENABLE_CUDASIM is set" if compute.SIMULATED else compute.why_unavailable()


def require_gpu(what: str, instead: str = "measure the CPU with 'nbody bench --cpu'") -> None:
    """Raise a DeviceError if there is no GPU to measure. It says that ``what`` needs one, and what works ``instead``."""
    if reason := no_gpu():
        raise DeviceError(f"{what}: there is no NVIDIA GPU to measure here ({reason}); {instead}, or see 'nbody doctor'")
