"""Ranks pretended in one process, so that divided work can be tested without MPI: a thread per rank, of which one runs at a
time, until all have arrived at the same exchange."""

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from nbody.parallel import Team


class Meeting:
    """What the ranks of a pretended team have in common: who may run, and what they have brought."""

    def __init__(self, size: int) -> None:
        self.turn = threading.Condition()
        self.running, self.brought = 0, [None] * size
        self.error: BaseException | None = None

    def pass_on(self, rank: int) -> None:
        """Let the next rank run until it arrives here, and wait for the next turn."""
        with self.turn:
            self.running = (rank + 1) % len(self.brought)
            self.turn.notify_all()
            self.wait(rank)

    def wait(self, rank: int) -> None:
        """Wait for this rank's turn; called with ``turn`` held."""
        if not self.turn.wait_for(lambda: self.running == rank or self.error, timeout=600) or self.error:
            raise RuntimeError(f"rank {rank} waits for the others")


class Pretended(Team):
    """One rank of a pretended team."""

    def __init__(self, rank: int, size: int, meeting: Meeting) -> None:
        self.rank, self.size, self._meeting = rank, size, meeting

    def allgather(self, value: Any, short_timeout: bool = False) -> list[Any]:
        self._meeting.brought[self.rank] = value
        self._meeting.pass_on(self.rank)  # all have brought theirs when this rank runs again
        found = list(self._meeting.brought)
        self._meeting.pass_on(self.rank)  # all have taken theirs
        return found

    def broadcast(self, value: Any) -> Any:
        return self.allgather(value)[0]

    def gather_rows(self, rows: np.ndarray, bounds: list[int]) -> None:
        """Rows that a rank has not computed must come from the others."""
        assert rows.flags.c_contiguous and bounds[0] == 0 and bounds[-1] == len(rows)
        own = slice(bounds[self.rank], bounds[self.rank + 1])
        for p, part in enumerate(self.allgather(rows[own].copy())):
            rows[bounds[p] : bounds[p + 1]] = part

    def exchange(self, blocks: list[np.ndarray], found: list[np.ndarray] | None = None) -> list[np.ndarray]:
        received = [sent[self.rank].copy() for sent in self.allgather(blocks)]
        if found is None:
            assert all(block.shape == blocks[self.rank].shape for block in received)
            return received
        for place, block in zip(found, received, strict=True):
            assert place.flags.c_contiguous and place.shape == block.shape
            place[...] = block
        return found


class Copies:
    """:class:`nbody.parallel.nccl.Nccl` of a pretended team: messages are copies in this process's memory."""

    def __init__(self, team: Team) -> None:
        self._team = team

    def send(self, sent: list, received: list, stream: int) -> None:
        brought = self._team.allgather([(part.rank, ctypes.string_at(part.address, part.size)) for part in sent])
        own = [[data for rank, data in theirs if rank == self._team.rank] for theirs in brought]
        for address, size, rank in received:
            data = own[rank].pop(0)
            assert len(data) == size
            ctypes.memmove(address, data, size)
        assert not any(own)

    def check(self) -> None:
        pass


def run_ranks(size: int, function: Callable[[Team], Any]) -> list[Any]:
    """What ``function(team)`` returns on each of ``size`` ranks."""
    meeting, found = Meeting(size), [None] * size

    def run(rank: int) -> None:
        try:
            with meeting.turn:
                meeting.wait(rank)
            found[rank] = function(Pretended(rank, size, meeting))
            with meeting.turn:
                meeting.running = (rank + 1) % size
                meeting.turn.notify_all()
        except BaseException as error:
            with meeting.turn:
                meeting.error = meeting.error or error
                meeting.turn.notify_all()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if meeting.error:
        raise meeting.error
    return found
