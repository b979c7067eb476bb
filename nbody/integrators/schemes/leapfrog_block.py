"""Leapfrog with individual block steps, for galaxies whose centre is much denser than the rest.

A body makes steps of dt/2^k, with the smallest k for which the step is at most √(2 η ε/|a|), ε being its softening length
(Springel 2005). Within a step of length dt all bodies drift to the end of the shortest step that is under way; only those
whose step ends there get new forces, a kick over half of the step that ends and one over half of the next. A step may
become longer only where a step of the longer length begins, so after dt all bodies are at the same time.

If all bodies choose dt, this is ``leapfrog``, bit for bit. Variable steps are not symplectic: over very many dynamical times
the energy drifts, more slowly for a smaller η.
"""

from collections.abc import Hashable, Sequence
from typing import Annotated, Any, Protocol

from pydantic import Field

from nbody.forces.engine import Engine
from nbody.integrators.facts import SchemeFacts, SchemeReport, WorkingBytes
from nbody.integrators.integrator import FixedStep, Motion
from nbody.integrators.schemes.leapfrog_block_steps import TICKS
from nbody.registry import imported
from nbody.scenario.values import Group, Positive
from nbody.state import Outputs
from nbody.state.moves import MoveKind

LENGTHS = {
    "cpu": "nbody.integrators.schemes.leapfrog_block_cpu:HostLengths",
    "gpu": "nbody.integrators.schemes.leapfrog_block_gpu:DeviceLengths",
}


def working_bytes(engine: type[Engine], particles: int, precision: str) -> WorkingBytes:
    """Those of the lengths and ends of steps, and of the rows of a block."""
    return WorkingBytes(3 * 8 * particles)


class StepLengths(Protocol):
    """The lengths of the steps of a state's bodies, and the ticks at which they end; where the state is."""

    state: Any

    def begin(self) -> None:
        """Begin a step of dt: all bodies choose a length, and are kicked over half of it."""

    def next_block(self) -> tuple[int, Any]:
        """The tick at which the next steps end, and the bodies that make them, an array where the state is."""

    def end(self, rows: Any, now: int) -> None:
        """End the steps of some bodies, with a kick over half of them; and begin their next ones, unless dt is over."""


class LeapfrogBlock(FixedStep):
    """Forces on the bodies whose steps end only; ``dt`` is the largest step. With engines that compute these."""

    class Options(Group):
        """The options of the scheme.

        Attributes:
            eta: accuracy of the steps: √(2 η ε/|a|) with the softening length ε, in powers of two of ``dt``.
        """

        eta: Annotated[Positive, Field(le=10.0)] = 0.025

    _options: Options

    facts = SchemeFacts(
        order=2, source="Springel 2005", lengths="individual", targets=True, leaves=Outputs.ACCELERATION, softened=True,
        memory=working_bytes,
    )  # fmt: skip

    _steps = _single = 0
    """Steps of dt, and of single bodies, made so far."""

    _lengths: StepLengths | None = None

    def start(self, motion: Motion) -> None:
        self._lengths = None  # they depend on dt

    def _make(self, motion: Motion, steps: int, every: int = 1, packings: Sequence[Any] = ()) -> None:
        for step in range(1, steps + 1):
            is_frame = bool(packings) and step % every == 0
            self._step(motion, motion.state.frames.outputs if is_frame else Outputs.ACCELERATION)
            packing = packings[step // every - 1] if is_frame else None
            motion.state.moves.make([(MoveKind.END, None), *([(MoveKind.PACK, packing)] if packing else [])])

    def _step(self, motion: Motion, outputs: Outputs) -> None:
        state: Any = motion.state
        motion.evaluate()
        lengths, now = self._lengths_of(motion), 0
        lengths.begin()
        while now < TICKS:
            block, rows = lengths.next_block()
            state.moves.drift(self.dt * ((block - now) / TICKS))
            now = block
            if now == TICKS:
                motion.evaluate(outputs)
            else:
                motion.engine.evaluate(state, Outputs.ACCELERATION, rows)
            lengths.end(rows, now)
            self._single += rows.shape[0]
        self._steps += 1

    def _lengths_of(self, motion: Motion) -> StepLengths:
        """The lengths of the steps of a state's bodies, where the state is."""
        if self._lengths is None or self._lengths.state is not motion.state:  # it is another one after mergers
            kind = imported(LENGTHS[motion.engine.can.device])
            lengths: StepLengths = kind(motion, self.dt, self._options.eta)
            self._lengths = lengths
        return self._lengths

    def _key(self, every: int) -> Hashable:
        return None

    def _bodies_per_step(self, motion: Motion) -> float:
        return self._single / self._steps if self._steps else float(motion.state.count)

    def report(self, motion: Motion) -> SchemeReport:
        (engine, state), bodies = motion, self._bodies_per_step(motion)
        partition, message = getattr(state, "partition", None), ""  # what several GPUs do not divide
        if partition and partition.transport.helpers:
            message = "gpus: only the first GPU computed the forces on some bodies; all divided those on all bodies"
        elif partition and partition.transport.ranks > 1:
            message = "every rank computed the forces on some bodies; the GPUs divided those on all bodies"
        return SchemeReport(bodies / state.count * engine.work(state), bodies, self._single, message=message)
