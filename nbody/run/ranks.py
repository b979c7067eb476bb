"""What the ranks of a run must have in common: the program, the scenario, the plan, the kind of machine, and the state."""

import hashlib
import json
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from nbody import machine
from nbody.errors import InputError, RunFailed, counted
from nbody.forces.engine import Engine
from nbody.parallel import Team
from nbody.parallel.launcher import ALONE_VARIABLE
from nbody.particles import Particles
from nbody.run.plan import Plan
from nbody.scenario import Scenario
from nbody.state import State

if TYPE_CHECKING:
    from nbody.state.device import DeviceState


def require_same_run(ranks: Team, scenario: Scenario, particles: Particles | None) -> None:
    """Raise an InputError on all ranks if they have different programs or scenarios."""
    if ranks.size == 1:
        return
    program = {"nbody": machine.version(), "source code": _source_digest(), **machine.package_versions()}
    _require_same(ranks, program, "install the same on all hosts")
    text = json.dumps(scenario.resolved(), sort_keys=True, default=str)
    run = {key: json.dumps(value, sort_keys=True, default=str) for key, value in json.loads(text).items()}
    arrays = [] if particles is None else [particles.mass, particles.position, particles.velocity, particles.id]
    run["bodies"] = f"{_checksum(arrays):08x}"
    _require_same(ranks, run, f"all ranks make one run together; for independent runs side by side set {ALONE_VARIABLE}=1")


def shared_plan(ranks: Team, make: Callable[[], Plan]) -> Plan:
    """Rank 0's plan on every rank: it may depend on what rank 0 has measured or read. Raises InputError: there are more
    ranks than bodies."""
    planned: Plan = ranks.broadcast(make() if ranks.first else None)
    if planned.count < ranks.size:
        raise InputError(
            f"{planned.scenario.where('initial.particles')}{counted(planned.count, 'body', 'bodies')} can't be divided "
            f"among {ranks.size} ranks; start fewer"
        )
    return planned


def require_same_machines(ranks: Team, engine: Engine, scope: Callable[[], dict[str, str]]) -> None:
    """Raise an InputError on all ranks if their bits may differ, or if two of them have the same GPU."""
    if ranks.size == 1:
        return
    _require_same(ranks, scope(), "the bits of a run are those of one kind of machine; choose like hosts")
    if engine.can.device != "gpu":
        return
    from nbody import compute

    card = compute.facts()
    kind = {"card": card.name, "multiprocessors": str(card.multiprocessors), "GiB": str(card.memory_total >> 30)}
    _require_same(ranks, kind, "the bits of a run are those of one kind of card")
    cards = ranks.allgather((ranks.hosts[ranks.rank], compute.uuid()))
    for rank, card in enumerate(cards):
        if (other := cards.index(card)) < rank and not compute.SIMULATED:
            raise InputError(
                f"ranks {other} and {rank} have the same GPU of host {card[0]}; start as many ranks per host as it has GPUs"
            )


def undivided(ranks: Team, engine: Engine, state: State) -> str:
    """A line if ranks with a GPU each compute the same forces, since there are few bodies; else nothing."""
    if ranks.size == 1 or engine.can.device != "gpu" or cast("DeviceState", state).partition.transport.ranks > 1:
        return ""
    from nbody.forces.transports.ranks import fewest_for_ranks

    fewest = fewest_for_ranks(engine)
    return (
        f"ranks: each of them computes all forces; from {fewest} bodies on it is worth dividing the work (several GPUs of "
        "one host: --gpus)"
    )


class Decision(NamedTuple):
    """What a run does until its next progress event.

    Attributes:
        steps: how many steps it makes at most.
        checkpoint: it stores a checkpoint first.
        stop: it stops instead.
        error: what the recording could not do.
    """

    steps: int
    checkpoint: bool
    stop: bool
    error: BaseException | None


def agreed(ranks: Team, own: Decision) -> Decision:
    """The decision on which all ranks agree, the only one of a loop that they share. Rank 0 has the clock and the file, and
    any of them may have got a signal. Raises the error of the recording."""
    if ranks.size == 1:
        return own
    found: list[Decision] = ranks.allgather(own)
    if found[0].error is not None:
        ranks.raise_on_all(found[0].error)
    return found[0]._replace(stop=any(each.stop for each in found))


def require_same_state(ranks: Team, step: int, arrays: Callable[[], Mapping[str, np.ndarray]]) -> None:
    """Raise RunFailed on all ranks if their states have different bits: one of them has computed wrongly."""
    if ranks.size == 1:
        return
    found = ranks.allgather(_checksum(arrays().values()))
    wrong = [rank for rank in range(ranks.size) if found[rank] != found[0]]
    if wrong:
        named = ", ".join(f"{rank} ({ranks.hosts[rank]})" for rank in wrong)
        error = RunFailed(
            f"step {step}: the states of rank 0 ({ranks.hosts[0]}) and of rank {named} differ: a memory or a processor has "
            "failed, or the program has a defect. The frames so far are kept; resume from the last checkpoint"
        )
        ranks.raise_on_all(error)


def _require_same(ranks: Team, own: dict[str, str], remedy: str) -> None:
    found = ranks.allgather(own)
    for rank in range(1, ranks.size):
        keys = [key for key in {**found[0], **found[rank]} if found[rank].get(key) != found[0].get(key)]
        if keys:
            differ = "; ".join(f"{key} {found[0].get(key)} and {found[rank].get(key)}" for key in keys)
            raise InputError(f"rank 0 ({ranks.hosts[0]}) and rank {rank} ({ranks.hosts[rank]}) differ in {differ}; {remedy}")


def _source_digest() -> str:
    """A digest of the package's source files."""
    found, root = hashlib.sha256(), machine.ROOT / "nbody"
    for path in sorted(Path(root).rglob("*.py")):
        found.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:12]


def _checksum(arrays) -> int:
    found = 0
    for array in arrays:
        found = zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8), found)
    return found
