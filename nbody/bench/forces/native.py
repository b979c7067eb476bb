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

import numpy as np

from nbody import machine
from nbody.bench.forces.competitor import Competitor
from nbody.bench.forces.problems import ForceProblem
from nbody.forces.direct.cpu_tiles import aligned_zeros

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
    """Why :class:`NativeCompetitor` can't take part on this machine, in one clause; empty if it can."""
    return _compiled()[1]


class NativeCompetitor(Competitor):
    """All pairs in C with AVX-512 intrinsics, four bodies per pass: 3-D, float32, Plummer softening."""

    def __init__(self, threads: int) -> None:
        super().__init__(NAME, "float32")
        self.threads = threads
        self.release()

    def release(self) -> None:
        self._body = self._acceleration = np.empty((0, 0), np.float32)
        self._problem: ForceProblem | None = None

    def load(self, problem: ForceProblem) -> None:
        # The bodies are padded to whole vectors with bodies without mass.
        particles = problem.particles
        assert particles.dimensions == 3 and problem.gravity.softening == "plummer", "it knows no other law"
        self._problem = problem
        self._body = aligned_zeros((4, LANES * -(-particles.count // LANES)), np.dtype(np.float32))
        self._body[:3, : particles.count] = particles.position.T
        self._body[3, : particles.count] = particles.mass
        self._acceleration = np.empty((particles.count, 3), np.float32)

    def evaluate(self) -> None:
        library, reason = _compiled()
        assert library is not None and self._problem is not None, reason or "load a problem first"
        law, (count, padded) = self._problem.gravity, (len(self._acceleration), self._body.shape[1])
        library.accelerations(count, padded, *self._body, law.G, law.length, self._acceleration, self.threads)

    def acceleration(self) -> np.ndarray:
        return self._acceleration
