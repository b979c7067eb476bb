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
from pathlib import Path
from typing import Any

import numpy as np

from nbody.bench.forces.contestant import Contestant
from nbody.bench.forces.problems import Problem

PAIRS_BYTES = 1 << 30
"""The maximum size of an array of pairs in bytes; a library that stores such arrays computes a part of the rows at a time.
(Without this, JAX asked for 257 GiB at N = 262144.)"""


def rows_at_a_time(count: int) -> int:
    """The largest power of two of rows of ``count`` float32 pairs within :data:`PAIRS_BYTES`."""
    return 1 << max(0, (PAIRS_BYTES // (4 * count)).bit_length() - 1)


class Peer(Contestant):
    """A library's all-pairs forces on the current GPU. ``wait`` is the library's own."""

    backend = "gpu"

    def __init__(self, name: str, wait: Callable[[], Any]) -> None:
        from nbody import gpu

        super().__init__(name, "float32")
        self.device, self.wait = gpu.facts().name, wait  # type: ignore[method-assign]
        self.release()

    def load(self, problem: Problem) -> None:
        particles, law = problem.particles, problem.gravity
        assert particles.dimensions == 3 and law.softening == "plummer", "it knows no other law"
        self._law = (law.G, law.length2)
        self._take(particles.position.astype(np.float32), particles.mass.astype(np.float32))

    def release(self) -> None:
        self._bodies: Any = ()
        self._result: Any = None

    @abstractmethod
    def _take(self, position: np.ndarray, mass: np.ndarray) -> None:
        """Copy the bodies to the device."""


def array_forces(
    rsqrt: Callable, stack: Callable, rows: Sequence[Any], columns: Sequence[Any], mass: Any, G: Any, length2: Any
) -> Any:
    """Accelerations (n, 3) of bodies by a library's arrays of all pairs.

    Args:
        rsqrt, stack: the library's functions.
        rows, columns: x, y and z of the n bodies that are accelerated, and of the N that act.
        mass: (N,).
    """
    d = [x_j[None, :] - x_i[:, None] for x_i, x_j in zip(rows, columns, strict=True)]
    u = rsqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + length2)
    weight = G * mass[None, :] * (u * u * u)
    return stack([(weight * each).sum(1) for each in d], 1)


class ArrayPeer(Peer):
    """Whole-array expressions: ``put`` copies an array to the device, ``get`` a result back; ``forces`` is
    :func:`array_forces` with the library's functions. ``fused`` says that no array of pairs is kept."""

    def __init__(
        self, name: str, put: Callable, forces: Callable, get: Callable, wait: Callable, fused: bool = False
    ) -> None:
        super().__init__(name, wait)
        self._put, self._forces, self._get, self._fused = put, forces, get, fused

    def _take(self, position: np.ndarray, mass: np.ndarray) -> None:
        size = len(mass) if self._fused else rows_at_a_time(len(mass))
        columns = [self._put(np.ascontiguousarray(column)) for column in position.T]
        parts = [[column[k : k + size] for column in columns] for k in range(0, len(mass), size)]
        self._bodies = (parts, columns, self._put(mass))

    def evaluate(self) -> None:
        parts, *others = self._bodies
        self._result = [self._forces(rows, *others, *self._law) for rows in parts]

    def acceleration(self) -> np.ndarray:
        return np.concatenate([self._get(part) for part in self._result])


def torch_peer(compiled: bool) -> ArrayPeer:
    """PyTorch: the expressions run one by one, or fused by ``torch.compile``."""
    import torch

    def forces(*arguments: Any) -> Any:
        return array_forces(torch.rsqrt, torch.stack, *arguments)

    return ArrayPeer(
        "torch, compiled" if compiled else "torch, eager", lambda array: torch.tensor(array, device="cuda"),
        torch.compile(forces, dynamic=False) if compiled else forces, lambda part: part.cpu().numpy(),
        torch.cuda.synchronize, fused=compiled,
    )  # fmt: skip


class JaxPeer(ArrayPeer):
    """JAX: the expressions fused by XLA."""

    def __init__(self) -> None:
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # else JAX allocates most of the memory
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # errors are reported in the table, in one line
        import jax

        if jax.default_backend() != "gpu":
            raise ImportError("it is installed for the CPU only")

        def forces(*arguments: Any) -> Any:
            return array_forces(jax.lax.rsqrt, jax.numpy.stack, *arguments)

        wait = lambda: jax.block_until_ready(self._result)  # noqa: E731
        super().__init__("JAX", jax.device_put, jax.jit(forces), np.asarray, wait)

    def device_times(self, repeats: int) -> list[float]:
        # JAX uses streams that events on CUDA's default stream do not see: the host's clock counts, over as many calls as
        # take 20 ms.

        def of(calls: int) -> float:
            start = time.perf_counter()
            for _ in range(calls):
                self.evaluate()
            self.wait()
            return (time.perf_counter() - start) / calls

        calls = max(1, int(20e-3 / of(1)))
        return [of(calls) for _ in range(repeats)]


class CupyPeer(Peer):
    """CuPy: a raw CUDA C kernel with shared-memory tiles, ``tile.cu``."""

    def __init__(self) -> None:
        import cupy

        super().__init__("CuPy, raw kernel", cupy.cuda.runtime.deviceSynchronize)
        source = Path(__file__).with_name("tile.cu").read_text()
        self._cupy, self._kernel = cupy, cupy.RawKernel(source, "forces", options=("--use_fast_math",))

    def _take(self, position: np.ndarray, mass: np.ndarray) -> None:
        self._bodies = self._cupy.asarray(np.column_stack([position, mass]))
        self._result = self._cupy.empty_like(self._bodies)

    def evaluate(self) -> None:
        count, law = len(self._bodies), map(np.float32, self._law)
        self._kernel((-(-count // 256),), (256,), (self._bodies, self._result, np.int32(count), *law))

    def acceleration(self) -> np.ndarray:
        return self._result.get()[:, :3]


PEERS: dict[str, tuple[str, Callable[[], Peer]]] = {
    "torch, eager": ("torch", lambda: torch_peer(compiled=False)),
    "torch, compiled": ("torch", lambda: torch_peer(compiled=True)),
    "JAX": ("jax", JaxPeer),
    "CuPy, raw kernel": ("cupy", CupyPeer),
}
"""Every peer: the package that it needs, and how it is made."""


def installed() -> tuple[list[Peer], list[str]]:
    """The peers that can take part on this machine, and for each that can't its name and why, in one clause."""
    found: list[Peer] = []
    absent: list[str] = []
    for name, (package, make) in PEERS.items():
        try:
            if find_spec(package) is None:
                raise ImportError(f"{package} is not installed")
            found.append(make())
        except Exception as error:  # a library may fail in any way on this machine
            absent.append(f"{name} ({' '.join(str(error).split())[:120] or type(error).__name__})")
    return found, absent
