"""The competitors on a GPU: the same formula, written as users of other libraries would write it.

Each is the straightforward best of its library: whole-array expressions in PyTorch, as they are and compiled, and in
JAX; the lecture's tile kernel in CUDA C through CuPy. All compute

    a_i = G Σ_j m_j (x_j - x_i) (|x_j - x_i|² + ε²)^(-3/2)        float32, 3-D

The libraries are imported only here, and only when they are asked for.
"""

import os
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from nbody.bench.forces.contestant import Contestant
from nbody.bench.forces.problems import Problem

PAIRS_BYTES = 1 << 30
"""Most bytes of an array of pairs, where a library keeps such arrays: rows are then taken in turns. (JAX asked for 257 GiB
at N = 262144 without.)"""


def rows_a_turn(count: int) -> int:
    """The largest power of two of rows of ``count`` float32 pairs within :data:`PAIRS_BYTES`."""
    return 1 << max(0, (PAIRS_BYTES // (4 * count)).bit_length() - 1)


class Peer(Contestant):
    """A library's all-pairs forces on the current GPU."""

    backend = "gpu"

    def __init__(self, name: str) -> None:
        from nbody import gpu

        super().__init__(name, "float32")
        self.device = gpu.facts().name
        self.release()

    def load(self, problem: Problem) -> None:
        """See :meth:`Contestant.load`."""
        particles, law = problem.particles, problem.gravity
        assert particles.dimensions == 3 and law.softening == "plummer", "it knows no other law"
        self._law = (law.G, law.length2)
        self._take(particles.position.astype(np.float32), particles.mass.astype(np.float32))

    def release(self) -> None:
        """See :meth:`Contestant.release`."""
        self._bodies: tuple[Any, ...] = ()
        self._result: Any = None

    @abstractmethod
    def _take(self, position: np.ndarray, mass: np.ndarray) -> None:
        """Bring the bodies to the device."""


def array_forces(
    rsqrt: Callable, stack: Callable, rows: Sequence[Any], columns: Sequence[Any], mass: Any, G: Any, length2: Any
) -> Any:
    """Accelerations (n, 3) of bodies by a library's arrays of all pairs.

    Args:
        rsqrt, stack: the library's functions.
        rows, columns: x, y and z of the n bodies that are accelerated, and of the N that act.
        mass: (N,).
    """
    d = [acting[None, :] - felt[:, None] for felt, acting in zip(rows, columns, strict=True)]
    u = rsqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + length2)
    weight = G * mass[None, :] * (u * u * u)
    return stack([(weight * each).sum(1) for each in d], 1)


class TorchPeer(Peer):
    """PyTorch: whole-array expressions, run one by one, or fused by ``torch.compile``."""

    def __init__(self, compiled: bool) -> None:
        super().__init__("torch, compiled" if compiled else "torch, eager")
        import torch

        def forces(*arguments: Any) -> Any:
            return array_forces(torch.rsqrt, torch.stack, *arguments)

        self._torch, self._compiled = torch, compiled
        self._forces = torch.compile(forces, dynamic=False) if compiled else forces

    def _take(self, position: np.ndarray, mass: np.ndarray) -> None:
        self._bodies = tuple(self._torch.tensor(array, device="cuda") for array in (*position.T, mass))

    def evaluate(self) -> None:
        """See :meth:`Contestant.evaluate`."""
        *columns, mass = self._bodies
        count = len(mass)
        size = count if self._compiled else rows_a_turn(count)
        parts = [
            self._forces([column[k : k + size] for column in columns], columns, mass, *self._law)
            for k in range(0, count, size)
        ]
        self._result = self._torch.cat(parts)

    def wait(self) -> None:
        """See :meth:`Contestant.wait`."""
        self._torch.cuda.synchronize()

    def acceleration(self) -> np.ndarray:
        """See :meth:`Contestant.acceleration`."""
        return self._result.cpu().numpy()


class JaxPeer(Peer):
    """JAX: the same expressions, fused by XLA."""

    def __init__(self) -> None:
        super().__init__("JAX")
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # else it takes most of the card's memory
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # what goes wrong is said in the table, in one line
        import jax

        if jax.default_backend() != "gpu":
            raise ImportError("it is installed for the CPU only")

        def forces(*arguments: Any) -> Any:
            return array_forces(jax.lax.rsqrt, jax.numpy.stack, *arguments)

        self._jax, self._forces = jax, jax.jit(forces)

    def _take(self, position: np.ndarray, mass: np.ndarray) -> None:
        put, size = self._jax.device_put, rows_a_turn(len(mass))
        columns = [put(np.ascontiguousarray(column)) for column in position.T]
        turns = [[put(column[k : k + size]) for column in columns] for k in range(0, len(mass), size)]
        self._bodies = (turns, columns, put(mass), *map(np.float32, self._law))

    def evaluate(self) -> None:
        """See :meth:`Contestant.evaluate`."""
        turns, *others = self._bodies
        self._result = [self._forces(rows, *others) for rows in turns]

    def wait(self) -> None:
        """See :meth:`Contestant.wait`."""
        self._jax.block_until_ready(self._result)

    def device_times(self, repeats: int) -> list[float]:
        """See :meth:`Contestant.device_times`. JAX has streams of its own, which events on CUDA's default stream do not see,
        so the host's clock counts, over as many calls as take 20 ms."""

        def of(calls: int) -> float:
            start = time.perf_counter()
            for _ in range(calls):
                self.evaluate()
            self.wait()
            return (time.perf_counter() - start) / calls

        calls = max(1, int(20e-3 / of(1)))
        return [of(calls) for _ in range(repeats)]

    def acceleration(self) -> np.ndarray:
        """See :meth:`Contestant.acceleration`."""
        return np.concatenate(self._result)


TILE_KERNEL = r"""
extern "C" __global__ void forces(const float4* body, float4* acceleration, int n, float G, float length2) {
    __shared__ float4 tile[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    float4 at = body[min(i, n - 1)];
    float ax = 0, ay = 0, az = 0;
    for (int first = 0; first < n; first += 256) {
        int j = first + threadIdx.x;
        tile[threadIdx.x] = j < n ? body[j] : make_float4(0, 0, 0, 0);
        __syncthreads();
        #pragma unroll 32
        for (int s = 0; s < 256; s++) {
            float dx = tile[s].x - at.x, dy = tile[s].y - at.y, dz = tile[s].z - at.z;
            float u = rsqrtf(dx * dx + dy * dy + dz * dz + length2), f = tile[s].w * u * u * u;
            ax += f * dx; ay += f * dy; az += f * dz;
        }
        __syncthreads();
    }
    if (i < n) acceleration[i] = make_float4(G * ax, G * ay, G * az, 0);
}
"""
"""The lecture's second kernel (Nyland, Harris & Prins 2007) in CUDA C."""


class CupyPeer(Peer):
    """CuPy: a raw CUDA C kernel with shared-memory tiles."""

    def __init__(self) -> None:
        super().__init__("CuPy, raw kernel")
        import cupy

        self._cupy = cupy
        self._kernel = cupy.RawKernel(TILE_KERNEL, "forces", options=("--use_fast_math",))

    def _take(self, position: np.ndarray, mass: np.ndarray) -> None:
        body = self._cupy.asarray(np.column_stack([position, mass]))
        self._bodies, self._result = (body,), self._cupy.empty_like(body)

    def evaluate(self) -> None:
        """See :meth:`Contestant.evaluate`."""
        (body,) = self._bodies
        count, (G, length2) = len(body), map(np.float32, self._law)
        self._kernel((-(-count // 256),), (256,), (body, self._result, np.int32(count), G, length2))

    def wait(self) -> None:
        """See :meth:`Contestant.wait`."""
        self._cupy.cuda.runtime.deviceSynchronize()

    def acceleration(self) -> np.ndarray:
        """See :meth:`Contestant.acceleration`."""
        return self._result.get()[:, :3]


PEERS: dict[str, tuple[str, Callable[[], Peer]]] = {
    "torch, eager": ("torch", lambda: TorchPeer(compiled=False)),
    "torch, compiled": ("torch", lambda: TorchPeer(compiled=True)),
    "JAX": ("jax", JaxPeer),
    "CuPy, raw kernel": ("cupy", CupyPeer),
}
"""Every peer: the package that it needs, and how it is made."""


def installed() -> tuple[list[Peer], list[str]]:
    """The peers that can take part on this machine, and for each that can't its name and why, in one clause."""
    found: list[Peer] = []
    absent: list[str] = []
    for name, (package, make) in PEERS.items():
        if find_spec(package) is None:
            absent.append(f"{name} ({package} is not installed)")
            continue
        try:
            found.append(make())
        except Exception as error:  # whatever a library finds wrong with this machine
            absent.append(f"{name} ({' '.join(str(error).split())[:120] or type(error).__name__})")
    return found, absent
