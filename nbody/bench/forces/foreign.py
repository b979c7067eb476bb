"""Competitors that are no engines of nbody: C with vector intrinsics, compiled on this machine, beside the ``cpu`` engine;
and pytreegrav, if it is installed, beside trees."""

import ctypes
import math
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from nbody import machine
from nbody.bench.forces.competitor import Competitor
from nbody.bench.forces.problems import CLUSTER
from nbody.forces.direct.cpu_tiles import aligned_zeros
from nbody.forces.engine import Engine, ForceError
from nbody.forces.problem import Abilities, Problem
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.scenario.values import Group
from nbody.state import Outputs
from nbody.state.host import HostState

SOURCE = Path(__file__).with_name("avx512.c")
NAME = "C, AVX-512"
FLAGS = ("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC")
LANES = 16

FLOATS = np.ctypeslib.ndpointer(np.float32, flags="C_CONTIGUOUS")


@cache
def compiled() -> tuple[ctypes.CDLL | None, str]:
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


class NativeEngine(Engine):
    """All pairs in C with AVX-512 intrinsics, each computed twice, four bodies per pass, on all cores. Its law, precision
    and number of threads are those of the ``cpu`` engine, which is compared with it."""

    can = Abilities(precisions=("float32",), outputs=Outputs.ACCELERATION)
    state_type = HostState

    @classmethod
    def supports(cls, problem: Problem) -> str:
        law = problem.gravity
        own = law.dimensions == 3 and law.softening == "plummer"
        return super().supports(problem) or ("" if own else "it knows Plummer's law in 3 dimensions alone")

    def _prepare(self, state: Any, particles: Particles) -> None:
        # The bodies, which do not move here, are padded to whole vectors with bodies without mass.
        state.workspace = aligned_zeros((4, LANES * -(-particles.count // LANES)), np.dtype(np.float32))
        state.workspace[:3, : particles.count] = particles.position.T
        state.workspace[3, : particles.count] = particles.mass

    def _compute(self, state: Any, outputs: Outputs) -> None:
        library, reason = compiled()
        assert library is not None, reason
        body, law = state.workspace, self.gravity
        library.accelerations(state.count, body.shape[1], *body, law.G, law.length, state.acceleration, machine.cores())


class PytreegravEngine(Engine):
    """pytreegrav: quadrupoles, on all cores. Its softening is a spline of compact support, and it states no error."""

    class Options(Group):
        """Its opening angle."""

        theta: float = 0.7

    can = Abilities(precisions=("float64",), outputs=Outputs.ACCELERATION, growth=1)
    state_type = HostState
    _options: Options

    def error(self, particles: Particles, targets: Any = None) -> ForceError:
        return ForceError(math.inf, math.inf)

    def _compute(self, state: Any, outputs: Outputs) -> None:
        import pytreegrav  # type: ignore[import-not-found]

        support = np.full(state.count, 2.8 * self.gravity.shortest)
        more = {"theta": self._options.theta, "parallel": True, "method": "tree", "quadrupole": True}
        state.acceleration[...] = pytreegrav.Accel(state.position, state.mass, support, **more)


def competitors(engines: Sequence[str], precisions: Sequence[str], on: Sequence[str]) -> Iterator[Competitor | str]:
    """The competitors of the engines that a user has named, or of all; a clause for each that can't be measured here."""
    if not engines and "cpu" in on and (not precisions or "float32" in precisions):
        if reason := compiled()[1]:
            yield f"{NAME} ({reason})"
        else:
            yield Competitor(NAME, NativeEngine, "float32", threads=machine.cores())
    if "cpu-tree" in engines:
        if find_spec("pytreegrav") is None:
            yield "pytreegrav (not installed)"
            return
        law = Gravity(1.0, 3, "spline", CLUSTER.shortest)
        for theta in (0.7, 0.4):
            options = PytreegravEngine.Options(theta=theta)
            name = f"pytreegrav, theta {theta:g}"
            yield Competitor(name, PytreegravEngine, "float64", options, machine.cores(), law)
