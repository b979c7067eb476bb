"""The card that is measured: is there one, and what its float pipes can do at most."""

import numpy as np

from nbody.errors import DeviceError


def require_gpu(option: str) -> None:
    """Raise a DeviceError, which names the option that asks for a GPU, if there is none to measure."""
    reason = no_gpu()
    if reason:
        raise DeviceError(
            f"{option}: there is no NVIDIA GPU to measure here ({reason}); "
            "measure the CPU with 'nbody bench --cpu', or see 'nbody doctor'"
        )


def no_gpu() -> str:
    """Why no GPU can be measured; empty if one can. (The speed of a simulated one means nothing.)"""
    from nbody import gpu

    return "kernels are simulated: NUMBA_ENABLE_CUDASIM is set" if gpu.SIMULATED else gpu.why_unavailable()


def float_peak(dtype: np.dtype) -> float | None:
    """FLOP/s of the card's float pipes: float64 has half as many lanes on the chips made for computing, else 1/64. None
    without a card."""
    from nbody import gpu

    if no_gpu():
        return None
    facts = gpu.facts()
    full = facts.compute_capability in ((6, 0), (7, 0), (8, 0), (9, 0), (10, 0))
    return facts.peak_float32 * (1.0 if dtype == np.float32 else 0.5 if full else 1 / 64)
