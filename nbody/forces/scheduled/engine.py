"""Each pair once, with the kernel's machine code in an order that does not wait for register banks.

The kernel is that of ``gpu-symmetric``; :mod:`nbody.forces.direct.gpu_pairs` says what bounds it. The assembler's order of
the loop lets multiply-adds wait for operands that they could share. Here the loop is put into other orders, which
:mod:`nbody.gpu.sass` shows to do the same. They are timed on the card, and the fastest is kept that comes to the bits of
the assembler's order there; that may be this order itself. So it does not matter to a run which it is.

On a card that is not a Hopper, for a softening whose loop has instructions that are not known there, and until a kernel
meets :data:`FEWEST` bodies, the assembler's order stays.

One H200, 3-D, Plummer, float32, interactions/s: 2.51e12 at N = 20480 (``gpu-symmetric`` in the same minute: 2.46e12),
3.07e12 to 3.12e12 at 65536 (3.00e12), 3.35e12 at 262144 (3.18e12), 3.38e12 at 2^20 (3.21e12); with equal masses 2.84e12,
3.56e12, 3.82e12 and 3.86e12 (2.59e12, 3.29e12, 3.52e12, 3.54e12). At 20480 with the energy's sum 2.34e12 (2.26e12), with
equal masses 2.65e12 (2.54e12), the lecture's disc 2.70e12 (2.61e12).
"""

import functools
import hashlib
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from nbody import cache, gpu
from nbody.forces.direct.gpu_engine import Shape
from nbody.forces.direct.gpu_pairs import build
from nbody.forces.direct.gpu_symmetric import Plan, SymmetricEngine
from nbody.forces.direct.gpu_triangle import Panel, Tiling, units_before
from nbody.gpu.sass import PAIR_TUNINGS, kernels, with_pairs_scheduled
from nbody.particles import Particles
from nbody.state import Want
from nbody.state.device import DeviceState

KIND = "orders"
"""What the fastest orders are kept as; see :mod:`nbody.cache`."""

HOPPER = (9, 0)

TIMED = 1 << 33
"""Pairs that an order is timed with, about, and a tile at least: some 5 ms on an H200."""

FEWEST = 16384
"""Bodies that it takes to tell one order from another; for fewer the assembler's is as good."""

REPEATS = 3
"""Timings, of which the shortest counts."""

ASSEMBLER = -1
"""Stands for the assembler's order among the numbers of :data:`~nbody.gpu.sass.PAIR_TUNINGS`."""


@functools.cache
def scheduled_kernel(shape: Shape, tiling: Tiling, masses: str) -> Any:
    """The kernel of the pairs, one that ``gpu-symmetric`` does not use: its machine code is replaced."""
    return build(shape, tiling, masses)


class ScheduledEngine(SymmetricEngine):
    """Each pair once, and the kernel's instructions in the fastest order that is found."""

    name = "gpu-scheduled"
    precisions = ("float32",)
    pairs = staticmethod(scheduled_kernel)

    _ordered: ClassVar[set[tuple]] = set()
    """The kernels of this process that have their order."""

    @classmethod
    def is_of_its_own(cls) -> bool:
        """See :meth:`Engine.is_of_its_own`: on other cards than a Hopper it is ``gpu-symmetric``, compiled once more."""
        return not gpu.SIMULATED and gpu.facts().compute_capability == HOPPER

    def load(self, particles: Particles) -> DeviceState:
        """See :meth:`Engine.load`. The first time, finds the order of the kernels' instructions."""
        state = super().load(particles)
        if self.is_of_its_own() and state.count >= FEWEST:
            for potential in (Want.ACCELERATION, Want.ENERGY):
                self._order(potential, state)
        return state

    def _order(self, want: Want, state: DeviceState) -> None:
        plan, shape = state.workspace, self.shape(want)
        which = shape, plan.tiling, plan.masses
        if which in self._ordered:
            return
        pairs = scheduled_kernel(*which)
        kernel = _Orders(pairs, lambda: self._launch_some(pairs, state), lambda: self._bits(want, state))
        card = f"{gpu.facts().name}, driver {gpu.facts().driver}"
        key = f"{card}, {len(PAIR_TUNINGS)} orders, {kernel.digest(ASSEMBLER)}"
        try:
            if not kernel.use_again(cache.recall(KIND).get(key)):
                number = kernel.fastest()
                cache.keep(KIND, key, [number, kernel.digest(number)])
                kernel.use(number)
        except BaseException:  # Ctrl-C: who comes next must find the assembler's order
            kernel.use(ASSEMBLER)
            raise
        self._ordered.add(which)

    def _launch_some(self, pairs: Any, state: DeviceState) -> None:
        """Let the kernel work on the first tiles of a state, some :data:`TIMED` pairs."""
        plan: Plan = state.workspace
        panel, (chunks, bodies) = plan.panels[0], (-(-state.count // plan.tiling.chunk), plan.tiling.bodies)
        last = panel.first + 1
        while last < panel.last and units_before(last, chunks, bodies) * plan.tiling.tile * plan.tiling.chunk < TIMED:
            last += 1
        units = units_before(last, chunks, bodies) - units_before(panel.first, chunks, bodies)
        some = Panel(panel.first, last, min(panel.blocks, units), units)
        pairs[some.blocks, plan.tiling.chunk](
            state.body, plan.buffers.rows, plan.buffers.columns, self.shape().real(self.gravity.length2),
            np.int64(some.first), np.int64(some.last), *some.shares,
        )  # fmt: skip

    def _bits(self, want: Want, state: DeviceState) -> bytes:
        """What one evaluation comes to."""
        self._compute(state, want)
        return b"".join(part.tobytes() for part in state.forces())


class _Orders:
    """The orders of one kernel.

    Args:
        pairs: the kernel.
        work: what an order is timed with.
        outcome: the bits that it comes to; an order with others than the assembler's is not taken. (None is known that has:
            this is for a card, or an assembler, of which nothing was seen.)
    """

    def __init__(self, pairs: Any, work: Callable[[], None], outcome: Callable[[], bytes]) -> None:
        self._work, self._outcome = work, outcome
        self._work()  # compiles
        self._compiled = list(pairs.overloads.values())
        self._codes: dict[int, list[bytes] | None] = {
            ASSEMBLER: [gpu.machine_code(compiled) for compiled in self._compiled]
        }
        self._now: int | None = ASSEMBLER  # None while one takes the place of another

    def codes(self, number: int) -> list[bytes] | None:
        """The machine code in the order of a number, if there is one."""
        if number not in self._codes:
            before = self._codes[ASSEMBLER] or []
            after = [anew for code in before if (anew := with_pairs_scheduled(code, PAIR_TUNINGS[number])) is not None]
            self._codes[number] = after if len(after) == len(before) else None
        return self._codes[number]

    def digest(self, number: int) -> str:
        """What tells the instructions in the order of a number from others. (The rest of the machine code has the kernel's
        name, which counts what a process has compiled.)"""
        parts = [
            code[part.start : part.start + part.size] for code in self.codes(number) or [] for part in kernels(code)
        ]
        return hashlib.sha256(b"".join(parts)).hexdigest()[:24]

    def use(self, number: int) -> bool:
        """Give the kernel an order, if there is one of that number."""
        codes = self.codes(number)
        if codes is None:
            return False
        if number != self._now:
            gpu.cuda.synchronize()  # what runs is not unloaded
            self._now = None
            for compiled, code in zip(self._compiled, codes, strict=True):
                gpu.replace_machine_code(compiled, code)
            self._now = number
        return True

    def use_again(self, kept: Any) -> bool:
        """Give the kernel the order that was kept: its number, and the digest of what it was then, which was compared with
        the assembler's on a card."""
        match kept:
            case [int(number), digest] if ASSEMBLER <= number < len(PAIR_TUNINGS):
                return self.digest(number) == digest and self.use(number)
        return False

    def fastest(self) -> int:
        """The number of the order in which the kernel is the fastest, of those that come to the assembler's bits."""
        times = {number: self._milliseconds() for number in (ASSEMBLER, *range(len(PAIR_TUNINGS))) if self.use(number)}
        self.use(ASSEMBLER)
        expected = self._outcome()
        by_time = sorted(times, key=lambda number: times[number])
        right = (number for number in by_time if self.use(number) and self._outcome() == expected)
        return next(right, ASSEMBLER)

    def _milliseconds(self) -> float:
        return min(gpu.milliseconds(self._work, 1, 2) for _ in range(REPEATS))
