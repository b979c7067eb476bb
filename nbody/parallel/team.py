"""The ranks of a run. Every rank holds the whole state and makes the same moves; only the forces are divided.

A rank must never take a branch that the others do not take. So what depends on a clock, a cache, a file or a signal is
decided by rank 0 (:meth:`Team.broadcast`) or from the values of all (:meth:`Team.allgather`).
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn

import numpy as np


def bounds(count: int, parts: int, multiple: int = 1) -> list[int]:
    """The first of ``count`` items of each part, and ``count``; parts are multiples of a number, as equal as possible."""
    groups = -(-count // multiple)
    return [min(count, groups * part // parts * multiple) for part in range(parts + 1)]


class Team(ABC):
    """The processes that compute one run together.

    Attributes:
        rank: the number of this process, from 0.
        size: the number of processes.
        hosts: the name of each rank's host.
        library: the name and the version of what connects them.
        in_collective: True while the ranks exchange rows, so that an error of one of them must end all.
        common_error: the error that all ranks raise, after :meth:`raise_on_all` or an exchange of values.
    """

    rank: int = 0
    size: int = 1
    hosts: list[str]
    library: str = ""
    in_collective: bool = False
    common_error: BaseException | None = None

    @property
    def first(self) -> bool:
        """True on rank 0, which alone writes files and messages."""
        return self.rank == 0

    def own_range(self, count: int) -> tuple[int, int]:
        """The part [first, last) of ``count`` equal pieces that belongs to this rank."""
        first, last = self.bounds(count)[self.rank : self.rank + 2]
        return first, last

    def bounds(self, count: int) -> list[int]:
        """The first piece of each rank, and ``count``: rank p has the pieces [bounds[p], bounds[p + 1])."""
        return bounds(count, self.size)

    def agreed(self) -> AbstractContextManager[None]:
        """A block that all ranks leave, or in which all raise the error of the first rank that failed. Inside it they may
        exchange values, but not rows, unless :attr:`in_collective` is True."""
        return nullcontext()

    def raise_on_all(self, error: BaseException) -> NoReturn:
        """Raise an error that every rank raises after the same step, so that they can go on together."""
        self.in_collective, self.common_error = False, error
        raise error

    def is_common(self, error: BaseException | None) -> bool:
        """True if all ranks raise this error, or that for which it stands."""
        return error is not None and (error is self.common_error or self.is_common(error.__context__))

    def provenance(self) -> dict[str, Any]:
        """What a recording says about the ranks; nothing about one."""
        if self.size == 1:
            return {}
        return {"ranks": self.size, "mpi": self.library, "hosts": {host: self.hosts.count(host) for host in self.hosts}}

    def with_rank(self, rank: int, line: str) -> str:
        """A line with the rank that it is about, if there are several."""
        return line if self.size == 1 else f"rank {rank} ({self.hosts[rank]}): {line}"

    def abort(self, code: int) -> NoReturn:
        """End all ranks now. Whatever is to be said or closed comes before."""
        raise SystemExit(code)

    def wait(self, arrived: Callable[[], bool]) -> None:
        """Return when ``arrived()`` is true, for what ranks exchange in another way; all ranks wait together. Ranks of MPI
        raise RunFailed after their time limit."""
        while not arrived():
            time.sleep(1e-4)

    @abstractmethod
    def broadcast(self, value: Any) -> Any:
        """Return the value of rank 0 on every rank. Raises the error of a rank that has failed."""

    @abstractmethod
    def allgather(self, value: Any, short_timeout: bool = False) -> list[Any]:
        """Return the values of all ranks, on every rank. ``short_timeout``: they are part of an evaluation, for which all
        ranks take about the same time, so that a rank waits no longer than for rows. Raises the error of a rank that has
        failed."""

    @abstractmethod
    def gather_rows(self, rows: np.ndarray, bounds: list[int]) -> None:
        """Complete ``rows`` on every rank, in place: rank p has filled the rows [bounds[p], bounds[p + 1])."""

    @abstractmethod
    def exchange(self, blocks: list[np.ndarray], found: list[np.ndarray] | None = None) -> list[np.ndarray]:
        """Send ``blocks[q]`` to rank q, and return what each rank has sent to this one. The block from rank p goes to
        ``found[p]``, a contiguous array; without ``found`` it has the shape of ``blocks[rank]`` on every rank."""


class Alone(Team):
    """One process."""

    def broadcast(self, value: Any) -> Any:
        return value

    def allgather(self, value: Any, short_timeout: bool = False) -> list[Any]:
        return [value]

    def gather_rows(self, rows: np.ndarray, bounds: list[int]) -> None:
        pass

    def exchange(self, blocks: list[np.ndarray], found: list[np.ndarray] | None = None) -> list[np.ndarray]:
        if found is None:
            return blocks
        found[0][...] = blocks[0]
        return found


ALONE = Alone()
"""The team of a run in one process."""
