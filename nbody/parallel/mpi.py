"""Ranks that work together through MPI.

Calls are non-blocking and polled, so signals are handled while a rank waits. If another rank does not arrive, the run ends
with an error that names it.

Values (:meth:`MpiTeam.allgather`, :meth:`MpiTeam.broadcast`) travel with a header that says whether a rank has failed. So
all ranks that prepare a run learn of an error on one of them, and end in the same way (:meth:`MpiTeam.agreed`). Rows of
forces have no header: an error there ends the run by :meth:`MpiTeam.abort`.
"""

import itertools
import os
import pickle
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import numpy as np

from nbody.errors import InputError, NBodyError, RunFailed, printable
from nbody.parallel.launcher import JobLaunch
from nbody.parallel.library import name_of, start_mpi
from nbody.parallel.team import Team

TIMEOUT_VARIABLE = "NBODY_RANK_PATIENCE"
TIMEOUT = 300.0
"""Seconds for which a rank waits for the forces of another one. All have the same work, so they differ by little."""

DECISION_FACTOR = 10
"""Times as long for decisions, before which rank 0 may read a large file or compile."""

SPIN, NAP, LONG_NAP = 1e-3, 1e-4, 1e-2
"""Seconds for which a rank tests without a pause, the pause between later tests, and that after a second."""

FLUSH_PAUSE = 0.2
"""Seconds before an abort, in which the launcher passes on what this rank has printed; MPICH's drops the rest."""

VALUE, FAILED, END = 0, 1, 2
"""What a rank is about to exchange: a value; its error; nothing, at the end of a block (:data:`END` and its depth)."""

CHUNK = 1 << 30
"""The most bytes of one message: MPI counts with 32 bits."""


class MpiTeam(Team):
    """The ranks of MPI's world.

    Args:
        launched: what the launcher says.

    Raises:
        InputError: mpi4py or an MPI library is missing, or MPI does not know the launcher.
    """

    def __init__(self, launched: JobLaunch) -> None:
        self._mpi = start_mpi(launched)
        self.library, world = name_of(self._mpi), self._mpi.COMM_WORLD
        self.launcher = launched.launcher
        self.rank, self.size = world.Get_rank(), world.Get_size()
        self._comm, self._side = world.Dup(), world.Dup()
        self._calls, self._notes, self._depth = 0, list[Any](), 0
        self._row_types: dict[int, Any] = {}
        self.timeout = _timeout()
        self._lost = False  # True in an exchange: a rank that leaves it before its end can exchange nothing any more
        self.hosts = self.allgather(socket.gethostname())

    @property
    def local_rank(self) -> int:
        """The number of this rank among those of its host, from 0."""
        return self.hosts[: self.rank].count(self.hosts[self.rank])

    # --- Values ---

    def broadcast(self, value: Any) -> Any:
        data = _pickled(value) if self.first else b""
        lengths = self._headers(data, VALUE)
        sent = np.frombuffer(data, np.uint8) if self.first else np.empty(int(lengths[0]), np.uint8)
        for begin in range(0, len(sent), CHUNK):
            part = sent[begin : begin + CHUNK]
            self._wait(self._comm.Ibcast([part, self._mpi.BYTE]), self.timeout * DECISION_FACTOR)
        self._lost = False
        return value if self.first else pickle.loads(sent.data)

    def allgather(self, value: Any, short_timeout: bool = False) -> list[Any]:
        data, limit = _pickled(value), self.timeout * (1 if short_timeout else DECISION_FACTOR)
        found = self._gathered(self._headers(data, VALUE, limit=limit), data, limit)
        self._lost = False
        return found

    @contextmanager
    def agreed(self) -> Iterator[None]:
        self._depth += 1
        try:
            yield
            self._headers(b"", END + self._depth)
            self._lost = False
        except BaseException as error:
            if self.is_common(error) or self._lost or self.in_collective:
                raise
            self._fail(error)
        finally:
            self._depth -= 1

    def _fail(self, error: BaseException) -> NoReturn:
        """Tell the other ranks, which are about to exchange values, that this one has failed; raise the error of the
        first rank that has."""
        if self.rank and not isinstance(error, NBodyError | OSError | MemoryError | KeyboardInterrupt):
            traceback.print_exception(error, file=sys.__stderr__)  # a defect of this program; rank 0 prints its own
        shipped = error if isinstance(error, NBodyError) else RunFailed(_described(error))
        self._headers(_pickled(shipped), FAILED, error)
        raise AssertionError("no rank has failed")

    def _headers(self, data: bytes, kind: int, own: BaseException | None = None, limit: float = 0.0) -> np.ndarray:
        """The lengths of what the ranks are about to exchange. Raises the error of the first rank that has failed; there it
        is the original one, ``own``."""
        found, self._lost, limit = np.zeros((self.size, 2), np.int64), True, limit or self.timeout * DECISION_FACTOR
        self._wait(self._comm.Iallgather(np.array([len(data), kind], np.int64), found), limit)
        lengths, kinds = np.ascontiguousarray(found.T)
        failed = np.flatnonzero(kinds == FAILED)
        error: Any = None
        if len(failed):
            first = int(failed[0])
            sent = data if kind == FAILED else b""
            shipped = self._gathered(np.where(kinds == FAILED, lengths, 0), sent, limit)[first]
            text = self.with_rank(first, str(shipped)) if first else str(shipped)
            error = own if first == self.rank else type(shipped)(text)
        elif len(set(kinds)) > 1:  # a rank was interrupted where a library does not tell
            error = RunFailed(self.with_rank(int(np.argmax(kinds)), "has ended before the others"))
        if error is not None:
            self.common_error, self._lost = error, False
            raise error
        return lengths

    def _gathered(self, lengths: np.ndarray, data: bytes, limit: float) -> list[Any]:
        """The pickled values of all ranks, which arrive within ``limit`` seconds; None where the length is 0."""
        ends = np.cumsum(lengths)
        received = np.empty(int(ends[-1]), np.uint8)
        layout = [received, lengths, ends - lengths, self._mpi.BYTE]
        sent = [np.frombuffer(data, np.uint8), self._mpi.BYTE]
        self._wait(self._comm.Iallgatherv(sent, layout), limit)
        spans = zip(ends - lengths, ends, strict=True)
        return [pickle.loads(received[a:b].tobytes()) if b > a else None for a, b in spans]

    # --- Rows ---

    def gather_rows(self, rows: np.ndarray, bounds: list[int]) -> None:
        assert rows.flags.c_contiguous
        counts = [last - first for first, last in itertools.pairwise(bounds)]
        layout = [rows, counts, list(bounds[:-1]), self._row_type(rows)]
        self._lost = True
        self._wait(self._comm.Iallgatherv(self._mpi.IN_PLACE, layout), self.timeout)
        self._lost = False

    def exchange(self, blocks: list[np.ndarray], found: list[np.ndarray] | None = None) -> list[np.ndarray]:
        own = blocks[self.rank]
        if found is None:
            found = [own if q == self.rank else np.empty_like(own, order="C") for q in range(self.size)]
        else:
            found[self.rank][...] = own
        kind, requests, self._lost = self._row_type(own), [], True
        for k in range(1, self.size):
            source = (self.rank - k) % self.size
            requests.append(self._comm.Irecv([found[source], len(found[source]), kind], source))
        for k in range(1, self.size):
            target = (self.rank + k) % self.size
            block = np.ascontiguousarray(blocks[target])
            requests.append(self._comm.Isend([block, len(block), self._row_type(block)], target))
        self._wait_all(requests)
        self._lost = False
        return found

    def _row_type(self, rows: np.ndarray) -> Any:
        """MPI's type of a row, so that counts are small numbers."""
        size = rows.itemsize * int(np.prod(rows.shape[1:], dtype=int))
        if size not in self._row_types:
            self._row_types[size] = self._mpi.BYTE.Create_contiguous(size).Commit()
        return self._row_types[size]

    # --- Waiting, and the end ---

    def wait(self, arrived: Callable[[], bool]) -> None:
        self._lost = True
        self._poll(arrived, self.timeout)
        self._lost = False

    def _wait(self, request: Any, limit: float) -> None:
        self._poll(request.Test, limit)

    def _wait_all(self, requests: list[Any]) -> None:
        self._poll(lambda: self._mpi.Request.Testall(requests), self.timeout)

    def _poll(self, arrived: Callable[[], bool], limit: float) -> None:
        """Return when a call has ended. Raises RunFailed after ``limit`` seconds, or if another rank has died."""
        self._calls += 1
        began, announced = time.perf_counter(), False
        while not self._tested(arrived):
            waited = time.perf_counter() - began
            if waited < SPIN:
                os.sched_yield()  # another rank may need this core to arrive
            else:
                time.sleep(NAP if waited < 1 else LONG_NAP)
            if waited > limit / 2 and not announced:
                announced = True
                self._announce()
            if waited > limit:
                raise RunFailed(
                    f"rank {self.rank} has waited {limit:g} s for {self._absent()}; {TIMEOUT_VARIABLE} sets the limit"
                )

    def _tested(self, arrived: Callable[[], bool]) -> bool:
        """One test of a call. Raises RunFailed if MPI reports an error: some find a dead rank before the launcher does."""
        try:
            return arrived()
        except self._mpi.Exception as error:
            raise RunFailed(
                "an exchange with another rank has failed: it was killed, or its host or network has failed; resume from "
                "the last checkpoint"
            ) from error

    def _announce(self) -> None:
        """Tell the others that this rank waits in this call, so that each of them can name the one that does not."""
        own = np.array([self._calls])
        self._notes += [self._side.Isend(own, q) for q in range(self.size) if q != self.rank]

    def _absent(self) -> str:
        """The ranks that do not wait."""
        absent = [str(q) for q in range(self.size) if q != self.rank and self._announced(q) != self._calls]
        return f"rank{'s' * (len(absent) > 1)} {', '.join(absent)}" if absent else "the others, which all wait too"

    def _announced(self, rank: int) -> int:
        """The last call in which a rank has said that it waits; 0 if there is none."""
        call = np.zeros(1, np.int64)
        while self._side.Iprobe(rank):
            self._side.Recv(call, rank)
        return int(call[0])

    def abort(self, code: int) -> NoReturn:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()
        time.sleep(FLUSH_PAUSE)
        self._mpi.COMM_WORLD.Abort(code)
        os._exit(code)

    def abort_after_a_crash(self) -> None:
        """Called at the end of the process: after an exception that nothing has caught, the others would wait for ever."""
        error = getattr(sys, "last_value", None)
        if error is not None and not self.is_common(error):
            self.abort(1)
        if not self._mpi.Is_finalized():
            for kind in self._row_types.values():
                kind.Free()  # some MPIs warn of what is left


def _timeout() -> float:
    text = os.environ.get(TIMEOUT_VARIABLE, "")
    try:
        seconds = float(text or TIMEOUT)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise InputError(f"{TIMEOUT_VARIABLE}={printable(text)[:20]}: must be a number of seconds greater than 0")
    return seconds


def _pickled(value: Any) -> bytes:
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def _described(error: BaseException) -> str:
    return "interrupted" if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"
