"""The engine ``gpu-scheduled``: each pair once, with the kernel's instructions in the fastest order that was found.

The kernel is that of ``gpu-symmetric``; :mod:`nbody.forces.direct.gpu_pairs` explains what limits it. The orders of
:data:`~nbody.forces.scheduled.reorder.TUNINGS` are timed on the card. Of those that give the same bits as the compiler's
order for the particles of the run, the fastest is used. The compiler's order is one of the candidates. It is also used on a
card that is not a Hopper, for a softening whose loop contains unknown instructions, and for fewer than :data:`FEWEST`
particles.

One H200, 3-D, Plummer, float32, interactions per second: 2.51e12 at N = 20480 (``gpu-symmetric`` in the same minute:
2.46e12), 3.07e12 to 3.12e12 at 65536 (3.00e12), 3.35e12 at 262144 (3.18e12), 3.38e12 at 2^20 (3.21e12); with equal
masses 2.84e12, 3.56e12, 3.82e12 and 3.86e12 (2.59e12, 3.29e12, 3.52e12, 3.54e12).
"""

import functools
from typing import Any, ClassVar

import numpy as np

from nbody import cache, gpu
from nbody.forces.direct.gpu_engine import Shape
from nbody.forces.direct.gpu_pairs import build
from nbody.forces.direct.gpu_symmetric import Plan, SymmetricEngine
from nbody.forces.direct.gpu_triangle import Tiling
from nbody.forces.scheduled.orders import COMPILER, Orders
from nbody.forces.scheduled.reorder import TUNINGS
from nbody.particles import Particles
from nbody.state import Want
from nbody.state.device import DeviceState

KIND = "orders"
"""The kind of cache entry that holds the fastest orders; see :mod:`nbody.cache`."""

HOPPER = (9, 0)
"""The compute capability whose machine code this package can read."""

TIMED = 1 << 33
"""The approximate number of pairs for timing an order (at least one tile): about 5 ms on an H200."""

FEWEST = 16384
"""The fewest particles for which the timing can distinguish orders."""


@functools.cache
def scheduled_kernel(shape: Shape, tiling: Tiling, masses: str) -> Any:
    """The pair kernel. ``gpu-symmetric`` has another copy, whose machine code is never replaced."""
    return build(shape, tiling, masses)


class ScheduledEngine(SymmetricEngine):
    """``gpu-symmetric`` with reordered machine code. Experimental: see :mod:`nbody.forces.scheduled`."""

    name = "gpu-scheduled"
    precisions = ("float32",)
    softenings = helped = False
    pairs = staticmethod(scheduled_kernel)

    _ordered: ClassVar[set[tuple]] = set()
    """The kernels of this process whose order has been chosen."""

    def load(self, particles: Particles) -> DeviceState:
        """See :meth:`Engine.load`. The first time, chooses the order of the kernels' instructions."""
        state = super().load(particles)
        if (
            self.acting(state) == state.count >= FEWEST
            and not gpu.SIMULATED
            and gpu.facts().compute_capability == HOPPER
        ):
            for want in (Want.ACCELERATION, Want.ENERGY):
                self._choose_order(want, state)
        return state

    def _choose_order(self, want: Want, state: DeviceState) -> None:
        plan, shape = state.workspace, self.shape(want)
        which = shape, plan.tiling, plan.masses
        if which in self._ordered:
            return
        pairs = scheduled_kernel(*which)
        orders = Orders(pairs, lambda: self._launch_some(pairs, state), lambda: self._bits(want, state))
        card = f"{gpu.facts().name}, driver {gpu.facts().driver}"
        key = f"{card}, {len(TUNINGS)} orders, {orders.digest(COMPILER)}"
        try:
            if not orders.use_cached(cache.recall(KIND).get(key)):
                number = orders.fastest()
                cache.keep(KIND, key, [number, orders.digest(number)])
                orders.use(number)
        except BaseException:  # after Ctrl-C the process may continue, and must have the compiler's order
            orders.use(COMPILER)
            raise
        self._ordered.add(which)

    def _launch_some(self, pairs: Any, state: DeviceState) -> None:
        """Launch the kernel for the first runs of a state, about :data:`TIMED` pairs."""
        plan: Plan = state.workspace
        work, (launch, rows, columns, _) = plan.work, plan.parts[0].launches[0]
        units = max(1, TIMED // (plan.tiling.tile * plan.tiling.chunk))
        pairs[min(launch.blocks, -(-units * work.runs // work.units)), plan.tiling.chunk](
            state.body, rows, columns, self.shape().real(self.gravity.length2),
            np.int64(launch.first), np.int64(launch.run), np.int64(work.runs), *work.run_units,
        )  # fmt: skip

    def _bits(self, want: Want, state: DeviceState) -> bytes:
        """The bits of one evaluation."""
        self._compute(state, want)
        return b"".join(part.tobytes() for part in state.forces())
