"""The orders of one compiled kernel: build them, compare them with the compiler's, time them, and load one."""

import hashlib
from collections.abc import Callable
from typing import Any

from nbody import gpu
from nbody.forces.scheduled.instruction import kernels
from nbody.forces.scheduled.reorder import TUNINGS, reordered

COMPILER = -1
"""The number of the compiler's order; the others are indices of :data:`TUNINGS`."""

REPEATS = 3
"""Timings per order; the shortest counts."""

_REPLACED: list[dict] = []
"""Kernels that were replaced. They stay loaded, since graphs that have recorded them still run them."""


def replace_machine_code(kernel: Any, cubin: bytes) -> None:
    """Replace the machine code of a compiled kernel. Graphs that have recorded the kernel still run the old code."""
    from cuda.core import ObjectCode

    library = kernel._codelibrary
    _REPLACED.append(dict(library._cufunc_cache))
    library._cubin_cache = dict.fromkeys(library._cubin_cache, ObjectCode.from_cubin(cubin))
    library._cufunc_cache.clear()
    kernel.bind()


class Orders:
    """The orders of one kernel.

    Args:
        pairs: the kernel.
        work: launches it once; orders are timed with this.
        outcome: returns the bits of an evaluation. An order whose bits differ from the compiler's is not used.
    """

    def __init__(self, pairs: Any, work: Callable[[], None], outcome: Callable[[], bytes]) -> None:
        self._work, self._outcome = work, outcome
        self._work()  # compiles
        self._compiled = list(pairs.overloads.values())
        self._codes: dict[int, list[bytes] | None] = {
            COMPILER: [gpu.machine_code(compiled) for compiled in self._compiled]
        }
        self._loaded: int | None = COMPILER  # None while one is being replaced by another

    def codes(self, number: int) -> list[bytes] | None:
        """The machine code in an order; None if the kernel cannot be reordered."""
        if number not in self._codes:
            before = self._codes[COMPILER] or []
            after = [new for code in before if (new := reordered(code, TUNINGS[number])) is not None]
            self._codes[number] = after if len(after) == len(before) else None
        return self._codes[number]

    def digest(self, number: int) -> str:
        """A digest of the instructions of an order. (The rest of the machine code contains the kernel's name, which
        depends on what the process has compiled before.)"""
        parts = [
            code[part.start : part.start + part.size] for code in self.codes(number) or [] for part in kernels(code)
        ]
        return hashlib.sha256(b"".join(parts)).hexdigest()[:24]

    def use(self, number: int) -> bool:
        """Load an order. False if the kernel cannot be reordered."""
        codes = self.codes(number)
        if codes is None:
            return False
        if number != self._loaded:
            gpu.cuda.synchronize()  # code that is running must not be unloaded
            self._loaded = None
            for compiled, code in zip(self._compiled, codes, strict=True):
                replace_machine_code(compiled, code)
            self._loaded = number
        return True

    def use_cached(self, entry: Any) -> bool:
        """Load the order of a cache entry: its number, and the digest of the instructions whose results were compared with
        the compiler's on a card. False if the digest of the instructions is different now."""
        match entry:
            case [int(number), digest] if COMPILER <= number < len(TUNINGS):
                return self.digest(number) == digest and self.use(number)
        return False

    def fastest(self) -> int:
        """The number of the fastest order among those that give the same bits as the compiler's."""
        times = {number: self._milliseconds() for number in (COMPILER, *range(len(TUNINGS))) if self.use(number)}
        self.use(COMPILER)
        expected = self._outcome()
        by_time = sorted(times, key=lambda number: times[number])
        equal = (number for number in by_time if self.use(number) and self._outcome() == expected)
        return next(equal, COMPILER)

    def _milliseconds(self) -> float:
        return min(gpu.milliseconds(self._work, 1, 2) for _ in range(REPEATS))
