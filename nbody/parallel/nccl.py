"""NCCL: rows of ranks with a GPU each go from device to device, over NVLink or the network.

NCCL sends messages and sums nothing: the order of a sum is that of its segments (:mod:`nbody.parallel.segments`), so the
bits are the same as through host memory. Calls do not block and are polled with the team's time limit, since NCCL may not
notice that another rank has died. For the same reason a communicator is never closed: that waits for the others, too.
"""

import os
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, NoReturn

from nbody.compute import SIMULATED
from nbody.errors import RunFailed
from nbody.parallel.team import Team

SWITCH = "NBODY_NCCL"
"""``NBODY_NCCL=0`` leaves NCCL out."""

BYTE = 0
"""NCCL's number of a type of one byte."""


class Message(NamedTuple):
    """A part of the device's memory that goes to a rank, or comes from it: its address and its bytes."""

    address: int
    size: int
    rank: int


def version() -> tuple[str, str]:
    """The version of the NCCL library that this process can load, such as ``2.28.9``; or an empty one, and why."""
    if os.environ.get(SWITCH) == "0":
        return "", f"{SWITCH}=0"
    if SIMULATED:
        return "", "Numba's simulator computes"
    try:
        from nccl.bindings import nccl

        number = nccl.get_version()
    except ImportError:
        return "", "nccl4py is not installed"
    except (RuntimeError, OSError) as error:  # NCCL itself is another package
        return "", " ".join(str(error).split())[:100]
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}", ""


@cache
def connected(team: Team) -> "Nccl | None":
    """The NCCL of a team; None if one of its ranks lacks it, or has another version. All ranks call this together, each with
    its device current."""
    found = {each for each, _ in team.allgather(version())}
    return Nccl(team) if len(found) == 1 and found != {""} else None


class Nccl:
    """The ranks of a team, connected by NCCL.

    Attributes:
        name: NCCL with its version.

    Raises:
        RunFailed: NCCL reports an error, or a rank does not answer.
    """

    def __init__(self, team: Team) -> None:
        from nccl.bindings import nccl

        self._team, self._nccl, self.name = team, nccl, f"NCCL {version()[0]}"
        try:
            unique_id = nccl.UniqueId.from_buffer(team.broadcast(bytes(nccl.get_unique_id()) if team.first else None))
            config = nccl.Config()
            config.blocking = 0
            self._comm = nccl.comm_init_rank_config(team.size, unique_id.ptr, team.rank, config.ptr)
        except nccl.NCCLError as error:
            self._fail(error)
        team.wait(self._is_idle)

    def send(self, sent: Sequence[Message], received: Sequence[Message], stream: int) -> None:
        """Exchange messages when ``stream`` reaches this point; returns before. The messages between two ranks have the same
        order and sizes on both."""
        try:
            self._nccl.group_start()
            for address, size, rank in sent:
                self._nccl.send(address, size, BYTE, rank, self._comm, stream)
            for address, size, rank in received:
                self._nccl.recv(address, size, BYTE, rank, self._comm, stream)
            self._nccl.group_end()
        except self._nccl.NCCLError as error:
            self._fail(error)
        self._team.wait(self._is_idle)  # then the stream has the work

    def check(self) -> None:
        """Raise RunFailed if NCCL has found an error."""
        self._is_idle()

    def _is_idle(self) -> bool:
        """True if NCCL has made all calls."""
        result, codes = self._nccl.comm_get_async_error(self._comm), self._nccl.Result
        if result not in (codes.Success, codes.InProgress):
            self._fail(f"{self._nccl.get_error_string(result)} {self._nccl.get_last_error(self._comm)}")
        return result == codes.Success

    def _fail(self, error: object) -> NoReturn:
        reason = " ".join(str(error).split())[:200]
        raise RunFailed(f"{self.name} has failed ({reason}); with {SWITCH}=0 rows go through host memory") from None
