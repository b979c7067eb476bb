"""The only access to ``numba.cuda``: the properties of the device, launches, graphs, and the intrinsics of kernels.

Kernel files import :data:`cuda` and :func:`kernel` from here, and nothing directly from Numba's CUDA target: if that target
changes, only this room changes.

Names are imported at first use: ``numba.cuda`` takes 0.4 s to import, and the check for a driver does not need it.
"""

from nbody.compute.gpu.driver import SIMULATED, available, require, why_unavailable
from nbody.lazy import names_of

_LATER, __getattr__ = names_of(
    __name__,
    {
        "compiling.compiled": "Launch Resources assembled launches machine_code ptx resources",
        "gpu.device": (
            "DeviceProperties FAST address blocks_at_most bounded cuda facts multiprocessor_limits out_of_memory "
            "resident_blocks threads_per_multiprocessor use_device uuid version_in"
        ),
        "gpu.direct_launch": "DirectLaunch allow_shared current_device",
        "gpu.failures": "GpuFailed check is_of_driver failure",
        "gpu.graph": "Graph is_recording milliseconds times",
        "compiling.kernels": "kernel",
        "compiling.precompile": "Call compile_missing compile_together rehearsing",
        "gpu.peers": "Fork Gpus Helper bandwidth connect device_count devices_for on",
        "gpu.waiting": "is_done mark wait_for",
        "simulator.functions" if SIMULATED else "in_kernels.intrinsics": (
            "add ballot count_ones device_function exact_function is_nan lane leading_zeros multiply multiply_add row rsqrt "
            "set_row shuffle subtract sync_threads sync_warp"
        ),
    },
)
__all__ = ["SIMULATED", "available", "require", "why_unavailable", *_LATER]
