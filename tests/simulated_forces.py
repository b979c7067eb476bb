"""Runs a GPU engine in Numba's simulator, in a process of its own: the simulator replaces the CUDA target at import.

    NUMBA_ENABLE_CUDASIM=1 python tests/simulated_forces.py IN.npz OUT.npz ENGINE SOFTENING LENGTH PRECISION

IN.npz holds position (N, D) and mass (N,); OUT.npz gets acceleration (N, D) and potential (N,).
"""

import sys

import numpy as np

from nbody.forces import accelerations

source, target, engine, softening, length, precision = sys.argv[1:]
with np.load(source) as bodies:
    acceleration, potential = accelerations(
        bodies["position"], bodies["mass"], softening=softening, length=float(length),
        engine=engine, precision=precision, potential=True,
    )  # fmt: skip
np.savez(target, acceleration=acceleration, potential=potential)
