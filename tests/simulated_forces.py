"""Runs a GPU engine in Numba's simulator, in a process of its own: the simulator replaces the CUDA target at import.

    NUMBA_ENABLE_CUDASIM=1 python tests/simulated_forces.py IN.npz OUT.npz ENGINE SOFTENING LENGTH PRECISION [WARPS BODIES]

IN.npz holds position (N, D) and mass (N,); OUT.npz gets acceleration (N, D), potential (N,), and of an evaluation that is
asked for the energy only ``energy`` and ``acceleration_with_energy`` (N, D). WARPS and BODIES are the
tiling of gpu-symmetric, whose own tiles are larger than what the simulator can work through.
"""

import sys

import numpy as np

from nbody.forces import ENGINES, accelerations
from nbody.forces.direct import gpu_symmetric
from nbody.forces.direct.gpu_triangle import Tiling
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.state import Want

source, target, engine, softening, length, precision, *tiling = sys.argv[1:]
if tiling:
    gpu_symmetric.tiling_for = lambda *of: Tiling(*map(int, tiling))
with np.load(source) as bodies:
    position, mass = bodies["position"], bodies["mass"]
found = {}
found["acceleration"], found["potential"] = accelerations(
    position, mass, softening=softening, length=float(length), engine=engine, precision=precision, potential=True
)
made = ENGINES.load(engine)(Gravity(1.0, position.shape[1], softening, float(length)), precision)
state = made.load(Particles(mass, position, np.zeros_like(position)))
made.evaluate(state, Want.ENERGY)
found["acceleration_with_energy"], found["energy"] = state.forces()[0], state.snapshot().wait().sums[1]
np.savez(target, **found)
