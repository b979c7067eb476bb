"""Hermite integrators with individual block time steps.

Each body has its own step, the largest step divided by a power of two, so that many steps end at the same time and form a
block. Times are integers: two bodies are in the same block exactly if their numbers are equal. After 64 of the largest steps
all bodies are at the same time, and a new *stretch* begins, with a largest step of its own: ``dt``, or without it a power of
two of about eight times the median of the steps that accuracy asks for.

The steps do not depend on when the bodies are looked at. At a time within a block all bodies make a step to it, forward from
the end of their last one, with the error of a step of the scheme; it is not kept.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
from pydantic import Field, StrictBool

from nbody.errors import RunFailed
from nbody.fields.field import POSITIONS, VELOCITIES, VelocityField
from nbody.fields.field import Field as ExternalField
from nbody.forces.engine import Engine
from nbody.forces.problem import Problem, Refusal
from nbody.integrators.adaptive import nearest_pair
from nbody.integrators.collisions.span import Span, Watcher
from nbody.integrators.facts import SchemeFacts, SchemeReport
from nbody.integrators.integrator import Integrator, Motion
from nbody.integrators.solvers.blocks.formulas import ETA, FOREVER, ROWS, TICKS, first_steps
from nbody.integrators.solvers.blocks.memory import working_arrays
from nbody.integrators.solvers.blocks.pairs import BLOCKS_PER_SEARCH
from nbody.law import Gravity
from nbody.registry import imported
from nbody.scenario.values import Group, NotNegative, Positive
from nbody.state import Column

SMALLEST = 40
"""The smallest step is the largest one divided by 2 to this power."""

UNITS = 64
"""Largest steps in a stretch."""

LARGEST = 8.0
"""The largest step without ``dt``, in units of the median of the steps that accuracy asks for. (Before the first step these
are a tenth of what they are later.)"""


def _facts(order: int, source: str, etas: tuple[float, ...], *on_gpus: str) -> SchemeFacts:
    return SchemeFacts(
        order, source, lengths="individual", adaptive=True, own_forces=True, memory=working_arrays,
        precisions={"cpu": ("float64",), "gpu": on_gpus}, accuracies={"eta": etas}, fields=(POSITIONS, VELOCITIES),
        columns=(Column("derivatives", ROWS), Column("ticks", 2, dtype="int64"), Column("wanted_step", 0)),
    )  # fmt: skip


LOOPS = "nbody.integrators.solvers.blocks."
BLOCKS = {"cpu": f"{LOOPS}cpu:HostBlocks", "gpu": f"{LOOPS}gpu:DeviceBlocks"}


class BlockHermite(Integrator):
    """The base class of both orders; ``dt``, if given, is the largest step.

    The columns ``derivatives`` and ``ticks`` hold the bodies at their own times. The state's positions and velocities are
    predicted from them to one time, for frames and viewers, and never fed back.
    """

    class Options(Group):
        """The options of the scheme.

        Attributes:
            eta: accuracy of the steps; by default 0.01 for order 4 and 0.5 for order 6, as in the literature.
            shared: all bodies make the shortest step.
            pairs: two bodies that the others perturb by a smaller part than this of the force between them move on Kepler's
                orbit; 0: none do.
        """

        eta: Annotated[Positive | None, Field(le=10.0)] = None
        shared: StrictBool = False
        pairs: Annotated[NotNegative, Field(le=1e-3)] = 1e-6

    _options: Options

    def __init__(self, dt: float | None, options: Group | None = None) -> None:
        super().__init__(dt, options)
        self._eta: float = self._options.eta or ETA[self.facts.order]
        self._begin = self._end = 0.0  # of the present stretch
        self._now, self._unit = TICKS, TICKS // UNITS  # the time reached, and the largest step, in ticks
        self._begun = False  # the next block is counted, and the bodies are shown within it
        self._single = 0  # steps of single bodies made so far
        self._blocks: Any = None
        self._made = 0, 0  # blocks, and steps of single bodies, since then

    @classmethod
    def supports(cls, engine: type[Engine] | Engine, problem: Problem) -> str:
        # On the CPU ranks divide the forces on large blocks.
        return super().supports(engine, problem._replace(ranks=1) if engine.can.device == "cpu" else problem)

    @classmethod
    def _misses(cls, fields: Sequence[ExternalField | VelocityField], law: Gravity) -> str:
        for field in fields:
            if isinstance(field, ExternalField) and any(part.bodies is not None for part in field.parts()):
                reason = f"this scheme knows fields with a fixed centre, and {field.title} acts about a body"
                return Refusal(reason, "fields", "remove 'fields'" if len(fields) == 1 else "remove one of them")
        return super()._misses(fields, law)

    def prepare(self, motion: Motion, contacts: bool = False) -> None:
        # Where bodies may touch, no pair moves on Kepler's orbit.
        super().prepare(motion, contacts)
        motion.state.clock.synchronize = partial(self._synchronize, motion)
        kind = imported(BLOCKS[motion.engine.can.device])
        shared: bool = self._options.shared
        threshold: float = self._options.pairs
        self._blocks = kind(motion, self.facts.order, self._eta, shared, 0.0 if shared or contacts else threshold)

    def start(self, motion: Motion) -> None:
        # Evaluates the first accelerations, jerks and snaps.
        self._blocks.begin(motion.state.clock.time)
        self._blocks.set_column("required", first_steps(self.facts.order, self._eta, self._blocks.first_derivatives()))
        self._now, self._begin, self._end = TICKS, motion.state.clock.time, motion.state.clock.time
        self._begun = False

    def _return(self, motion: Motion, until: float) -> int:
        # The block is still to be made.
        begun, self._begun = self._begun, False
        motion.state.clock.count(-begun, self._reached)
        if begun:
            self._show(motion, self._now)
        return int(begun)

    def _advance(self, motion: Motion, steps: int, until: float) -> None:
        # A step is a block.
        clock, at = motion.state.clock, float(self._now)
        if until < clock.time:
            at = max(self._now - int(self._blocks.column("step").min()), 0.0, (until - self._begin) / (self._tick or 1.0))
            clock.count(0, max(until, self._begin + at * self._tick))
        while steps and clock.time < until:
            if self._now == TICKS:
                self._new_stretch(motion)
            at = (until - self._begin) / self._tick if until < self._end else float(TICKS)
            steps -= self._make_blocks(motion, steps, int(at))
            clock.count(0, min(clock.time, until))  # ticks are shorter than the rounding of times
            if not steps or clock.time >= until:
                at = self._now
            elif until < self._end:
                self._begun = True
                clock.count(1, until, within=True)
                break
        self._show(motion, at)

    def _advance_to_contact(self, motion: Motion, steps: int, until: float, watcher: Watcher) -> Span | None:
        span = super()._advance_to_contact(motion, steps, until, watcher)
        if span and watcher.changes:
            motion.state.clock.synchronize()
        return span

    def _synchronize(self, motion: Motion) -> None:
        # Bodies that are shown within a block have made a step to that time.
        if self._now < TICKS and not self._begun:
            self._step_all(self._now)
            self._show(motion, self._now)

    def _make_blocks(self, motion: Motion, steps: int, end: int) -> int:
        """Make up to ``steps`` blocks, none beyond ``end`` (in ticks). Returns their number."""
        state, tick, made, failed = motion.state, self._tick, 0, -1
        while made < steps and failed < 0:
            most = min(steps - made, BLOCKS_PER_SEARCH - state.clock.step % BLOCKS_PER_SEARCH)
            blocks, now, singles, failed = self._blocks.advance(tick, end, self._unit, self._smallest(), most)
            made, self._single = made + blocks, self._single + singles
            self._made = self._made[0] + blocks, self._made[1] + singles
            if blocks:
                self._now = now
                state.clock.count(blocks, self._reached)
            if blocks < most or now == TICKS:  # the next stretch begins with a search
                break
            if state.clock.step % BLOCKS_PER_SEARCH == 0:
                self._blocks.search_pairs(tick, self._unit)
        if failed >= 0:
            raise self._too_short(motion, failed)
        return made

    @property
    def _tick(self) -> float:
        """The length of a tick in the present stretch."""
        return (self._end - self._begin) / TICKS

    @property
    def _reached(self) -> float:
        """The time of the last block."""
        return self._end if self._now == TICKS else self._begin + self._now * self._tick

    def _new_stretch(self, motion: Motion) -> None:
        """Begin a stretch: all bodies are at the same time."""
        before, largest, required = self._tick, self.dt, self._blocks.column("required")
        if math.isinf(largest):
            some = required[(required > 0) & (required < FOREVER)]
            usual = float(np.median(some)) if len(some) else (self._end - self._begin) or 1.0
            largest = 2.0 ** math.floor(math.log2(LARGEST * usual))
        self._begin, self._end, self._now = self._end, self._end + UNITS * largest, 0
        self._unit = TICKS // UNITS
        if not self._begin < self._end < math.inf:
            raise self._too_short(motion, int(np.argmin(required)))
        self._blocks.begin(self._begin)
        failed = self._blocks.new_stretch(before, self._tick, self._unit, self._smallest())
        if failed >= 0:
            raise self._too_short(motion, failed)

    def _smallest(self) -> int:
        return max(1, self._unit >> SMALLEST)

    def _too_short(self, motion: Motion, i: int) -> RunFailed:
        self._show(motion, self._now)
        return RunFailed(
            f"step {motion.state.clock.step}: particle {i} (counted from 0) needs a step below the smallest one at time "
            f"{motion.state.clock.time:g}{nearest_pair(motion, i)}; give a softening, or a larger integrator.eta"
        )

    def _show(self, motion: Motion, at: float) -> None:
        """Let the state be the bodies at a time in ticks: at the end of a block predicted, else after a step of all bodies
        to this time, forward or back, which is not kept."""
        blocks, end = self._blocks, int(at)
        if end == self._now:
            blocks.present(at, self._tick)
        else:
            with blocks.trial_steps():
                self._step_all(end)
                blocks.present(at, self._tick)
        motion.state.invalidate()

    def _step_all(self, end: int) -> None:
        """Let all bodies make a step to a time in ticks. Such steps may be short, and the next ones too short."""
        self._blocks.step_to(end)
        self._blocks.advance(self._tick, end, self._unit, self._smallest(), 1)

    def report(self, motion: Motion) -> SchemeReport:
        # All bodies act on those of a block. The message: the number of GPUs, if it is not that of the scenario.
        (blocks, single), count = self._made, motion.state.count
        message = self._blocks.message if self._blocks else ""
        return SchemeReport(single * count / max(1, blocks), float(count), self._single, message=message)

    def arrays(self) -> dict[str, np.ndarray]:
        """The present stretch, the moment in it, and the pairs that formed and dissolved so far."""
        return {
            "stretch": np.array([self._begin, self._end]),
            "clock": np.array([self._now, self._unit, self._single], np.int64),
            "begun": np.array([self._begun]),
            "pairs": np.array([self._blocks.pairs.formed, self._blocks.pairs.dissolved] if self._blocks else [0, 0]),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self._begin, self._end = map(float, arrays["stretch"])
        self._now, self._unit, self._single = map(int, arrays["clock"])
        self._begun = bool(arrays.get("begun", [False])[0])  # not from nbody 0.2
        within = self._begin < self._end if self._now < TICKS else self._begin <= self._end
        if not (0 <= self._now <= TICKS and 0 < self._unit <= TICKS and within and math.isfinite(self._end - self._begin)):
            raise ValueError("the stretch has no such time")
        self._blocks.begin(self._begin)
        self._blocks.restored(self._now)
        self._blocks.pairs.formed, self._blocks.pairs.dissolved = map(int, arrays.get("pairs", (0, 0)))


class Hermite4Block(BlockHermite):
    """Order 4: one pass over the pairs gives acceleration and jerk."""

    facts = _facts(4, "Makino & Aarseth 1992", (0.04, 0.01, 0.0025), "float64", "mixed")


class Hermite6Block(BlockHermite):
    """Order 6, with the snap: larger steps, the better choice. In float64 only: its steps depend on the fifth derivative of
    the acceleration, in which the noise of float32 forces grows without limit."""

    facts = _facts(6, "Nitadori & Makino 2008", (1.0, 0.5, 0.25), "float64")
