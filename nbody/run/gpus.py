"""Several GPUs of this machine for one run: which engines divide their work among them, and from how many bodies on."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from nbody.errors import InputError, RunFailed
from nbody.forces.options import GpuOptions
from nbody.forces.problem import Problem
from nbody.forces.registry import AUTOMATIC, ENGINES
from nbody.parallel import team
from nbody.scenario import Scenario
from nbody.scenario.fields import validated
from nbody.scenario.groups import EngineChoice

if TYPE_CHECKING:
    from nbody.gpu import GpuFailed

Notify = Callable[[str], None]

DIVIDES = "gpu-symmetric"
"""The fastest engine of direct sums whose work several GPUs divide."""


class Chosen(NamedTuple):
    """The engine of a run, why ``auto`` has chosen it, its options as written, and the precision of the run."""

    name: str
    why: str
    options: EngineChoice
    precision: str


def with_gpus(scenario: Scenario, chosen: Chosen, count: int, notify: Notify) -> Chosen:
    """The engine for the GPUs that a scenario asks for: ``auto`` takes one that divides its work.

    Raises:
        InputError: the engine that the scenario names computes on one device, or there are fewer GPUs.
    """
    options = chosen.options.options
    if "gpus" not in options:
        return chosen
    from nbody import gpu

    where = scenario.where("engine.gpus")
    gpus = validated(GpuOptions, {"gpus": options["gpus"]}, scenario.source, ("engine",)).gpus
    kind: Any = ENGINES.load(chosen.name)
    alone = chosen._replace(options=_without_gpus(chosen.options))
    if gpus in (None, 1):
        return alone
    if team().size > 1:
        raise InputError(f"{where}each rank has one GPU; start as many ranks as there are GPUs, and leave gpus out")
    auto = chosen.options.name in AUTOMATIC
    if kind.supports(Problem(scenario.gravity, chosen.precision, count, gpus=2)):
        able = "gpu-tree" if kind.can.is_tree else DIVIDES
        remedy = "leave gpus out" + ("" if auto else f", or use 'nbody run' with --engine {able} or auto")
        why = f" ({chosen.why})" if auto else ""
        raise InputError(f"{where}engine '{chosen.name}' computes on one device{why}; {remedy}")
    if gpu.why_unavailable():
        return chosen  # the engine says so
    there = len(gpu.devices_for(gpus, where))
    if count < kind.can.divided_from and there > 1:
        notify(
            f"gpus: one of {there} GPUs computes; from {kind.can.divided_from} bodies on it is worth dividing the work"
        )
    elif auto and not kind.can.is_tree and chosen.name != DIVIDES:
        return chosen._replace(name=DIVIDES, why="it divides its work")
    return chosen


@contextmanager
def naming_failed(devices: Sequence[int], recording: Any) -> Iterator[None]:
    """Inside this block a failure of one of several GPUs ends the run with one line: which one, and how to go on if the
    recording has a checkpoint.

    Raises:
        RunFailed: a GPU has failed.
    """
    try:
        yield
    except Exception as error:
        from nbody import gpu

        if len(devices) < 2 or not (isinstance(error, gpu.GpuFailed) or gpu.is_of_driver(error)):
            raise
        failed = _failed(error, devices)
        others = [str(number) for number in devices if number != failed.number]
        if recording.can_go_on:
            gpus = ",".join(others) if len(others) > 1 else f"{others[0]},"
            raise RunFailed(f"{failed}; go on without it: nbody resume {recording.path} --gpus {gpus}") from error
        raise RunFailed(f"{failed}; there is no checkpoint yet, so run again without it") from error


def _failed(error: Exception, devices: Sequence[int]) -> "GpuFailed":
    """Which device an error is about. One that a wait reports may come from any: the devices are asked."""
    from nbody import gpu

    if isinstance(error, gpu.GpuFailed):
        return error
    try:
        gpu.check(devices[1:])
    except gpu.GpuFailed as found:
        return found
    return gpu.failure(devices[0], error)


def _without_gpus(written: EngineChoice) -> EngineChoice:
    return EngineChoice(name=written.name, **{key: v for key, v in written.options.items() if key != "gpus"})


def with_those_there(scenario: Scenario, notify: Notify) -> Scenario:
    """A recorded scenario for this machine: with all of its GPUs, if those of the recording are not there, and with one for
    each rank. (The bits do not depend on their number.)"""
    gpus = scenario.engine.options.get("gpus")
    if gpus is None:
        return scenario
    if team().size > 1:
        return scenario.override(gpus=1)
    from nbody import gpu

    if gpus == "all" or gpu.why_unavailable():
        return scenario
    try:
        gpu.devices_for(gpus)
    except InputError as error:
        notify(f"gpus: {error}; going on with those that are there")
        return scenario.override(gpus="all")
    return scenario
