"""The only access to ``numba.cuda``: the properties of the device, launches, graphs, and the intrinsics of kernels.

Kernel files import :data:`cuda` and :func:`kernel` from here, and nothing directly from Numba's CUDA target: if that target
changes, only this room changes.

Names are imported at first use: ``numba.cuda`` takes 0.4 s to import, and the check for a driver does not need it.
"""

from nbody.compute.driver import SIMULATED, available, require, why_unavailable
from nbody.lazy import names_of

_LATER, __getattr__ = names_of(
    __name__,
    {
        "compiled": "Launch Resources assembled launches machine_code ptx resources",
        "device": (
            "DeviceProperties FAST address blocks_at_most bounded cuda facts multiprocessor_limits out_of_memory "
            "resident_blocks threads_per_multiprocessor use_device uuid version_in"
        ),
        "direct_launch": "DirectLaunch allow_shared current_device",
        "failures": "GpuFailed check is_of_driver failure",
        "graph": "Graph is_recording milliseconds times",
        "kernels": "kernel",
        "precompile": "Call compile_missing compile_together rehearsing",
        "peers": "Fork Gpus Helper bandwidth connect device_count devices_for on",
        "waiting": "is_done mark wait_for",
        "simulator.functions" if SIMULATED else "intrinsics": (
            "add ballot count_ones device_function exact_function is_nan lane leading_zeros multiply multiply_add row rsqrt "
            "set_row shuffle subtract sync_warp"
        ),
    },
)
__all__ = ["SIMULATED", "available", "require", "why_unavailable", *_LATER]
