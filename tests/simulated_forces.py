"""Runs a GPU engine in Numba's simulator, in a process of its own: the simulator replaces the CUDA target at import.

    NUMBA_ENABLE_CUDASIM=1 python tests/simulated_forces.py IN.npz OUT.npz ENGINE SOFTENING LENGTH PRECISION [WARPS BODIES]

IN.npz holds position (N, D) and mass (N,); OUT.npz gets acceleration (N, D) and potential (N,). WARPS and BODIES are the
tiling of gpu-symmetric, whose own tiles are larger than what the simulator can work through.
"""

import sys

import numpy as np

from nbody.forces import accelerations, gpu_symmetric
from nbody.forces.gpu_triangle import Tiling

source, target, engine, softening, length, precision, *tiling = sys.argv[1:]
if tiling:
    gpu_symmetric.tiling_for = lambda *of: Tiling(*map(int, tiling))
with np.load(source) as bodies:
    acceleration, potential = accelerations(
        bodies["position"], bodies["mass"], softening=softening, length=float(length),
        engine=engine, precision=precision, potential=True,
    )  # fmt: skip
np.savez(target, acceleration=acceleration, potential=potential)
