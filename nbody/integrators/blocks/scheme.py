"""Hermite integrators with individual block time steps.

Each body has its own step, the common unit divided by a power of two, so that many steps end at the same time and form a
block. Times are integers: two bodies are in the same block exactly if their numbers are equal. The common unit divides the
time between frames; so at each frame all bodies are at the same time, and its energy has no error of prediction.
"""

import math
from importlib import import_module
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field, StrictBool

from nbody.errors import InputError, RunFailed
from nbody.forces.engine import Engine
from nbody.forces.problem import Problem
from nbody.integrators.blocks.formulas import ETA, FOREVER, TICKS, first_steps
from nbody.integrators.blocks.memory import bytes_to_exchange, bytes_to_help, working_bytes
from nbody.integrators.blocks.pairs import LOOK
from nbody.integrators.encounter import nearest_pair
from nbody.integrators.integrator import Integrator, Motion
from nbody.scenario.fields import Group, NotNegative, Positive
from nbody.state import Column, Want

SMALLEST = 40
"""The smallest step is the largest one divided by 2 to this power."""

SHORT = 1e-4
"""A stretch shorter than this share of the shortest step that accuracy asks for leaves mostly rounding errors in the higher
derivatives, which are differences over a step. They are evaluated again after it."""


class BlockHermite(Integrator):
    """The base class of both orders; ``dt``, if given, is the largest step.

    The columns ``derivatives`` and ``ticks`` hold the bodies at their own times. The state's positions and velocities are
    predicted from them to one time, for frames and viewers, and never fed back.
    """

    class Options(Group):
        """``eta``: accuracy of the steps; by default 0.01 for order 4 and 0.5 for order 6, as in the literature.
        ``shared``: all bodies make the shortest step. ``pairs``: two bodies that the others perturb by a smaller part than
        this of the force between them move on Kepler's orbit (see ``pairs.py``); 0: none do."""

        eta: Annotated[Positive | None, Field(le=10.0)] = None
        shared: StrictBool = False
        pairs: Annotated[NotNegative, Field(le=1e-3)] = 1e-6

    adaptive = True
    lengths = "individual"
    own_forces = True
    columns = (
        Column("derivatives", 18), Column("ticks", 2, dtype="int64"), Column("wanted_step", 0),
    )  # fmt: skip
    order: ClassVar[int]

    def __init__(self, dt: float | None, options: Group | None = None) -> None:
        super().__init__(dt, options)
        self.eta: float = self.options.eta or ETA[self.order]  # type: ignore[attr-defined]
        self._begin = self._end = 0.0  # of the present stretch between two frames
        self._now = self._unit = TICKS
        self.single: int = 0
        self._blocks: Any = None
        self._made = 0, 0  # blocks, and steps of single bodies, since then
        self._short = self._contacts = False

    @classmethod
    def divides_over_ranks(cls, engine: type[Engine]) -> bool:
        # Ranks divide the forces on large blocks.
        return engine.device == "cpu"

    @classmethod
    def supports(cls, engine: type[Engine], problem: Problem) -> str:
        offered = ("float64", "mixed") if cls.order == 4 and engine.device == "gpu" else ("float64",)
        if problem.precision in offered:
            return super().supports(engine, problem)
        return f"this scheme computes in {' or '.join(offered)} on the {engine.device.upper()}"

    @classmethod
    def working_bytes(cls, engine: type[Engine], particles: int, precision: str) -> int:
        return working_bytes(engine.device, particles, precision)

    @classmethod
    def bytes_to_help(cls, engine: type[Engine], particles: int, precision: str) -> int:
        return bytes_to_help(particles, precision)

    @classmethod
    def bytes_to_exchange(cls, engine: type[Engine], particles: int, precision: str) -> int:
        return bytes_to_exchange(particles, precision)

    def prepare(self, motion: Motion) -> None:
        super().prepare(motion)
        kind = import_module(f"nbody.integrators.blocks.{motion.engine.device}")
        shared: bool = self.options.shared  # type: ignore[attr-defined]
        threshold: float = self.options.pairs  # type: ignore[attr-defined]
        self._blocks = kind.Blocks(motion, self.order, self.eta, shared, 0.0 if shared or self._contacts else threshold)

    def start(self, motion: Motion) -> None:
        # Evaluates the first accelerations, jerks and snaps.
        self._blocks.set_wanted(first_steps(self.order, self.eta, self._blocks.first_derivatives()))
        self._now, self._begin, self._end = TICKS, motion.state.time, motion.state.time

    def advance(self, motion: Motion, steps: int, until: float = math.inf) -> None:
        # A step is a block.
        state = motion.state
        while steps and state.time < until:
            if self._now == TICKS:
                self._new_stretch(motion, until)
            end = TICKS if until >= self._end else int((until - self._begin) / self._tick)
            blocks, failed = self._make_blocks(motion, steps, end)
            steps -= blocks
            if failed >= 0 and not self._short:
                raise self._too_short(motion, failed)
            cut = steps > 0 and end < TICKS  # an earlier call planned a longer stretch
            if cut:
                self._blocks.step_to(end)
                steps -= self._make_blocks(motion, 1, end)[0]
                state.time = until
            if cut or (self._short and self._now == TICKS):
                self._present(motion)
                self.start(motion)
        self._present(motion)

    def expect_contacts(self) -> None:
        # No pair moves on Kepler's orbit, since its bodies may touch there.
        self._contacts = True

    def synchronize(self, motion: Motion) -> None:
        if self._now < TICKS:  # else a frame is due, where they do
            self._blocks.step_to(self._now)
            self._make_blocks(motion, 1, self._now)
            self._present(motion)

    def _make_blocks(self, motion: Motion, steps: int, end: int) -> tuple[int, int]:
        """Make up to ``steps`` blocks, none beyond ``end`` (in ticks). Returns their number, and a body whose step would be
        too short, or -1."""
        state, tick, made, failed = motion.state, self._tick, 0, -1
        while made < steps and failed < 0:
            most = min(steps - made, LOOK - state.step % LOOK)
            blocks, now, single, failed = self._blocks.advance(tick, end, self._unit, self._smallest(), most)
            made, state.step, self.single = made + blocks, state.step + blocks, self.single + single
            self._made = self._made[0] + blocks, self._made[1] + single
            if blocks:
                self._now = now
                state.time = self._end if now == TICKS else self._begin + now * tick
            if blocks < most or now == TICKS:  # the next stretch begins with a look
                break
            if state.step % LOOK == 0:
                self._blocks.look(tick, self._unit)
        return made, failed

    @property
    def _tick(self) -> float:
        """The length of a tick in the present stretch."""
        return (self._end - self._begin) / TICKS

    def _new_stretch(self, motion: Motion, until: float) -> None:
        """Begin a stretch until the next frame: all bodies are at the same time."""
        state, before = motion.state, self._tick
        length = self.dt if math.isinf(until) else until - state.time
        if math.isinf(length):
            raise InputError("integrator.dt is missing; give the largest step, or 'end: TIME' instead of 'steps'")
        self._begin, self._end, self._now = state.time, state.time + length if math.isinf(until) else until, 0
        self._unit = TICKS
        while self._unit * (length / TICKS) > self.dt:
            self._unit >>= 1
        shortest = self._blocks.shortest_wanted()
        self._short = shortest < FOREVER and self._end - self._begin < SHORT * shortest
        failed = self._blocks.new_stretch(before, self._tick, self._unit, self._smallest())
        if failed >= 0:
            raise self._too_short(motion, failed)

    def _smallest(self) -> int:
        return max(1, self._unit >> SMALLEST)

    def _too_short(self, motion: Motion, i: int) -> RunFailed:
        self._present(motion)
        return RunFailed(
            f"step {motion.state.step}: particle {i} (counted from 0) needs a step below the smallest one at time "
            f"{motion.state.time:g}{nearest_pair(motion, i)}; give a softening, or a larger integrator.eta"
        )

    def _present(self, motion: Motion) -> None:
        """Predict all bodies to the present time."""
        self._blocks.present(self._now, self._tick)
        motion.state.invalidate()

    def work(self, motion: Motion, steps: int, want: Want = Want.ACCELERATION) -> int:
        # The engine computes only the energies of recorded frames.
        return motion.engine.work(motion.state, want) if want is not Want.ACCELERATION else 0

    def pairs_per_step(self, motion: Motion) -> float:
        # All bodies act on those of a block.
        blocks, single = self._made
        return single * motion.state.count / max(1, blocks)

    def remark(self) -> str:
        # The number of GPUs, if it is not that of the scenario.
        return self._blocks.remark if self._blocks else ""

    def arrays(self) -> dict[str, np.ndarray]:
        """The present stretch between two frames, and the pairs that joined and parted so far."""
        return {
            "stretch": np.array([self._begin, self._end]),
            "clock": np.array([self._now, self._unit, self.single], np.int64),
            "pairs": np.array([self._blocks.pairs.joined, self._blocks.pairs.parted] if self._blocks else [0, 0]),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self._begin, self._end = map(float, arrays["stretch"])
        self._now, self._unit, self.single = map(int, arrays["clock"])
        self._blocks.restored()
        self._blocks.pairs.joined, self._blocks.pairs.parted = map(int, arrays.get("pairs", (0, 0)))


class Hermite4Block(BlockHermite):
    """Order 4: one pass over the pairs gives acceleration and jerk."""

    order = 4
    source = "Makino & Aarseth 1992"


class Hermite6Block(BlockHermite):
    """Order 6, with the snap: larger steps, the better choice. In float64 only: its steps depend on the fifth derivative of
    the acceleration, in which the noise of float32 forces grows without limit."""

    order = 6
    source = "Nitadori & Makino 2008"
