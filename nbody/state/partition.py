"""How the force evaluations of a state on a GPU are divided, and who computes the parts: its own device alone; several of
this process (:mod:`nbody.forces.transports.gpus`); or one of each rank (:mod:`nbody.forces.transports.ranks`)."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any


class Worker:
    """A device in an evaluation, and the arrays that it reads and writes.

    Attributes:
        number: which part of the work it computes.
        stream: where its kernels are launched.
        body, acceleration: (N, 4) each, see :mod:`nbody.state.device`.
        length2: the ε² of all bodies, a number, or of each, (N,).
        part: what else the engine keeps on the device.
    """

    def __init__(self, number: int, stream: Any, body: Any, acceleration: Any, length2: Any, part: Any = None) -> None:
        self.number, self.stream, self.part = number, stream, part
        self.body, self.acceleration, self.length2 = body, acceleration, length2

    def current(self) -> contextlib.AbstractContextManager[None]:
        """Make the device current inside a ``with`` block."""
        return contextlib.nullcontext()

    def join(self, stream: Any) -> None:
        """Let another stream wait for all work of this device that is queued."""

    def send_results(self) -> None:
        """Copy the results to the first device, if they are elsewhere, when :attr:`stream` reaches this point."""

    def send_rows(self, acceleration: Any, rows: slice) -> None:
        """Copy some rows of the accelerations to the first device's, if they are elsewhere."""


class ForceTransport:
    """One device computes all.

    Attributes:
        size: the number of parts.
        number: which of them the device of the state computes.
        helpers: the other devices of this process.
        ranks: the number of processes.
    """

    size = ranks = 1
    number = 0
    helpers: Sequence[Any] = ()

    def compute(self, report: Callable[[int], None], first: Worker, pieces: Callable[[Worker], Iterator[int]]) -> None:
        """Launch the work of all devices of this process, a piece of each in turn. ``pieces(worker)`` launches a piece
        before each number of interactions that it yields, which ``report`` gets; ``first`` is the device of the state."""
        workers = [first, *self._begin(first)]
        running = [(worker, pieces(worker)) for worker in workers]
        while running:
            interactions = 0
            for worker, launching in list(running):
                with worker.current():
                    launched = next(launching, None)
                if launched is None:
                    running.remove((worker, launching))
                else:
                    interactions += launched
            if interactions:
                report(interactions)
        self._end(first.stream)

    def complete(self, array: Any, bounds: Sequence[int], stream: Any) -> None:
        """Complete the rows of a device array in every process when ``stream`` reaches this point: part p has computed the
        rows [bounds[p], bounds[p + 1])."""

    def exchange(
        self, nodes: Any, counts: Sequence[int], components: int, buffer: Any, bounds: Sequence[int], stream: Any
    ) -> Any:
        """Send each process the sums of its rows when ``stream`` reaches this point.

        Args:
            nodes: (S, 4, N) on the device; the first ``counts[number]`` have the sums of this part.
            components: C, how many of the 4 are needed.
            buffer: (M, 4, R) on the device, for M = Σ counts nodes of the R rows of this process.
            bounds: process p has the rows [bounds[p], bounds[p + 1]).

        Returns:
            The nodes of all parts, (M, C, R), in this buffer, where those of one process are already.
        """
        return buffer

    def wait(self) -> None:
        """Return when the device has what other processes send."""

    def _begin(self, first: Worker) -> Sequence[Worker]:
        """Let the helpers copy what the first device has when its stream reaches this point."""
        return ()

    def _end(self, stream: Any) -> None:
        """Let ``stream`` wait for the helpers."""


ONE_DEVICE = ForceTransport()


@dataclass
class WorkPartition:
    """How the force evaluations of a state on a GPU are divided.

    Attributes:
        count: the number of bodies.
        acting: how many of them exert forces, the first ones; the others have no mass.
        interactions: those of an evaluation, in an engine that computes fewer than all pairs.
        transport: who computes the parts of an evaluation. No graph can record several ranks.
    """

    count: int
    acting: int
    interactions: int | None = None
    transport: ForceTransport = ONE_DEVICE

    @property
    def pairs(self) -> int:
        """Interactions per force evaluation."""
        return self.interactions or self.count * self.acting
