"""The hand-written competitor: avx512.c, compiled on this machine.

It uses C and vector intrinsics with the usual algorithm (each pair is computed from both sides), with the same law,
precision and number of threads as the ``cpu`` engine, which is compared with it.
"""

import ctypes
import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from nbody import machine
from nbody.forces.direct.cpu_tiles import aligned_zeros
from nbody.forces.engine import Engine
from nbody.forces.problem import Abilities
from nbody.particles import Particles
from nbody.state import Outputs
from nbody.state.host import HostState

SOURCE = Path(__file__).with_name("avx512.c")
NAME = "C, AVX-512"
FLAGS = ("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC")
LANES = 16

FLOATS = np.ctypeslib.ndpointer(np.float32, flags="C_CONTIGUOUS")


@cache
def _compiled() -> tuple[ctypes.CDLL | None, str]:
    """The library, or the reason why there is none."""
    if machine.simd_level() != "AVX-512":
        return None, f"this processor has {machine.simd_level()}, not AVX-512"
    try:
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder, "avx512.so")
            command: list = [os.environ.get("CC", "cc"), *FLAGS, SOURCE, "-o", library]
            subprocess.run(command, capture_output=True, text=True, check=True)
            loaded = ctypes.CDLL(str(library))  # stays loaded when its file is gone
    except (OSError, subprocess.CalledProcessError) as error:
        reason = (getattr(error, "stderr", "") or str(error)).strip().splitlines()[0]
        return None, f"no C compiler (cc) that makes it: {reason}"
    size, real = ctypes.c_long, ctypes.c_float
    loaded.accelerations.argtypes = [size, size, FLOATS, FLOATS, FLOATS, FLOATS, real, real, FLOATS, ctypes.c_int]
    loaded.accelerations.restype = None
    return loaded, ""


def why_unavailable() -> str:
    """Why :class:`NativeEngine` can't take part on this machine, in one clause; empty if it can."""
    return _compiled()[1]


class NativeEngine(Engine):
    """All pairs in C with AVX-512 intrinsics, four bodies per pass, on all cores."""

    can = Abilities(precisions=("float32",), outputs=Outputs.ACCELERATION)
    state_type = HostState

    def _prepare(self, state: Any, particles: Particles) -> None:
        # The bodies, which do not move here, are padded to whole vectors with bodies without mass.
        assert particles.dimensions == 3 and self.gravity.softening == "plummer", "it knows no other law"
        state.workspace = aligned_zeros((4, LANES * -(-particles.count // LANES)), np.dtype(np.float32))
        state.workspace[:3, : particles.count] = particles.position.T
        state.workspace[3, : particles.count] = particles.mass

    def _compute(self, state: Any, outputs: Outputs) -> None:
        library, reason = _compiled()
        assert library is not None, reason
        body, law = state.workspace, self.gravity
        library.accelerations(state.count, body.shape[1], *body, law.G, law.length, state.acceleration, machine.cores())
