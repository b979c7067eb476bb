"""Several processes in one force evaluation, each with a GPU: every rank has all bodies, computes its part, and gets what
the others have computed, from their devices by NCCL if all ranks have it, else through host memory."""

import itertools
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from nbody import compute
from nbody.compute import cuda
from nbody.forces.engine import Engine
from nbody.parallel import Team
from nbody.parallel.nccl import Message, Nccl, connected
from nbody.state.partition import ForceTransport

DIVIDED_FROM_RANKS = {"float32": 98304, "mixed": 98304, "float64": 65536}
"""Bodies from which on ranks divide the forces, by precision; below, every rank computes all. (A step of 65536 bodies, two
H200s with NCCL and one alone: in float32 1.73 and 1.33 ms, in float64 1.84 and 3.35 ms.)"""


def fewest_for_ranks(engine: Engine) -> int:
    """The fewest bodies with mass for which ranks with a GPU each divide the work of an engine."""
    return max(engine.can.divided_from, DIVIDED_FROM_RANKS[engine.precision])


class Ranks(ForceTransport):
    """The ranks that divide the force evaluations of a state, which no graph can record."""

    def __init__(self, team: Team) -> None:
        self._team, self.number = team, team.rank
        self.size = self.ranks = team.size
        self._pinned: dict[tuple, np.ndarray] = {}
        self._pending: list[tuple[Any, Any]] = []  # events before and after an exchange

    @property
    def nccl(self) -> Nccl | None:
        """None if rows go through host memory. (Connected at the first exchange: a GPU with two ranks is found before.)"""
        return connected(self._team)

    def complete(self, array: Any, bounds: Sequence[int], stream: Any) -> None:
        spans, own = list(itertools.pairwise(bounds)), self.number
        if self.nccl:
            begin, row = compute.address(array), array.strides[0]
            parts = [Message(begin + first * row, (last - first) * row, q) for q, (first, last) in enumerate(spans)]
            others = [part for part in parts if part.rank != own]
            self._send([parts[own]._replace(rank=other.rank) for other in others], others, stream)
            return
        rows = array[bounds[0] : bounds[-1]]
        host = self._host(rows.shape, rows.dtype)
        first, last = (row - bounds[0] for row in spans[own])
        if last > first:
            rows[first:last].copy_to_host(host[first:last], stream)
        compute.wait_for(compute.mark(stream))
        self._team.gather_rows(host, [each - bounds[0] for each in bounds])
        rows.copy_to_device(host, stream)

    def exchange(
        self, nodes: Any, counts: Sequence[int], components: int, buffer: Any, bounds: Sequence[int], stream: Any
    ) -> Any:
        shape = sum(counts), components, buffer.shape[2]
        found = buffer.reshape(buffer.size)[: math.prod(shape)].reshape(*shape)
        exchange = self._exchange_directly if self.nccl else self._exchange_through_host
        exchange(nodes, counts, found, list(itertools.pairwise(bounds)), stream)
        return found

    def _exchange_directly(self, nodes: Any, counts: Sequence[int], found: Any, spans: list, stream: Any) -> None:
        (_, components, rows), size = found.shape, found.dtype.itemsize
        sums = _lines(nodes, counts[self.number], components)
        senders = [p for p, count in enumerate(counts) for _ in range(count * components)]
        self._send(
            [Message(a + first * size, (last - first) * size, q) for q, (first, last) in enumerate(spans) for a in sums],
            [Message(a, rows * size, p) for a, p in zip(_lines(found, sum(counts), components), senders, strict=True)],
            stream,
        )

    def _exchange_through_host(self, nodes: Any, counts: Sequence[int], found: Any, spans: list, stream: Any) -> None:
        own = self._host((counts[self.number], *nodes.shape[1:]), nodes.dtype)
        nodes[: len(own)].copy_to_host(own, stream)
        compute.wait_for(compute.mark(stream))
        blocks, components = [], found.shape[1]
        for q, (first, last) in enumerate(spans):
            blocks.append(self._host((len(own), components, last - first), own.dtype, q))
            blocks[q][...] = own[:, :components, first:last]
        host = self._host(found.shape, found.dtype)
        starts = [0, *itertools.accumulate(counts)]
        self._team.exchange(blocks, [host[first:last] for first, last in itertools.pairwise(starts)])
        found.copy_to_device(host, stream)

    def _send(self, sent: list[Message], received: list[Message], stream: Any) -> None:
        assert self.nccl is not None
        computed = compute.mark(stream)
        self.nccl.send(
            [part for part in sent if part.size],
            [part for part in received if part.size],
            int(getattr(stream, "handle", 0)),
        )
        self._pending.append((computed, compute.mark(stream)))

    def wait(self) -> None:
        # Raises RunFailed if another rank does not answer: a computation may take as long as it needs, an exchange may not.
        while self._pending:
            computed, arrived = self._pending.pop(0)
            compute.wait_for(computed)
            self._team.wait(partial(self._has_arrived, arrived))

    def _has_arrived(self, event: Any) -> bool:
        assert self.nccl is not None
        self.nccl.check()
        return compute.is_done(event)

    def _host(self, shape: tuple[int, ...], dtype: np.dtype, use: int = -1) -> np.ndarray:
        """Memory of the host that is used again: new memory is slower."""
        key = shape, np.dtype(dtype), use
        if key not in self._pinned:
            self._pinned[key] = cuda.pinned_array(shape, dtype)
        return self._pinned[key]


def _lines(array: Any, nodes: int, components: int) -> list[int]:
    """The addresses of the first components of the first nodes."""
    begin, (node, line, _) = compute.address(array), array.strides
    return [begin + k * node + c * line for k in range(nodes) for c in range(components)]
