"""Several GPUs of this machine for one run: whether they are there, whether they are worth using, and whether one fails."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from nbody.errors import InputError, RunFailed
from nbody.forces.engine import Engine
from nbody.parallel import team
from nbody.scenario import Scenario
from nbody.whole_file import Notify

if TYPE_CHECKING:
    from nbody.compute import GpuFailed


def notify_if_few(kind: type[Engine], gpus: Any, count: int, where: str, notify: Notify) -> None:
    """Give the user a line if several GPUs are asked for, and one of them computes because there are few bodies. Raises
    InputError: this machine has fewer GPUs, or they differ."""
    from nbody import compute

    if compute.why_unavailable():
        return  # the engine says so
    there, fewest = len(compute.devices_for(gpus, where)), kind.can.divided_from
    if count < fewest and there > 1:
        notify(f"gpus: one of {there} GPUs computes; from {fewest} bodies on it is worth dividing the work")


@contextmanager
def naming_failed(devices: Sequence[int], recording: Any) -> Iterator[None]:
    """Inside this block a failure of one of several GPUs ends the run with one line: which one, and how to go on if the
    recording has a checkpoint. Raises RunFailed: a GPU has failed."""
    try:
        yield
    except Exception as error:
        from nbody import compute

        if len(devices) < 2 or not (isinstance(error, compute.GpuFailed) or compute.is_of_driver(error)):
            raise
        failed = _failed(error, devices)
        others = [str(number) for number in devices if number != failed.number]
        if recording.can_go_on:
            gpus = ",".join(others) if len(others) > 1 else f"{others[0]},"
            raise RunFailed(f"{failed}; go on without it: nbody resume {recording.path} --gpus {gpus}") from error
        raise RunFailed(f"{failed}; there is no checkpoint yet, so run again without it") from error


def _failed(error: Exception, devices: Sequence[int]) -> "GpuFailed":
    """Which device an error is about. One that a wait reports may come from any: the devices are asked."""
    from nbody import compute

    if isinstance(error, compute.GpuFailed):
        return error
    try:
        compute.check(devices[1:])
    except compute.GpuFailed as found:
        return found
    return compute.failure(devices[0], error)


def with_those_there(scenario: Scenario, notify: Notify) -> Scenario:
    """A recorded scenario for this machine: with all of its GPUs, if those of the recording are not there, and with one for
    each rank. (The bits do not depend on their number.)"""
    gpus = scenario.engine.options.get("gpus")
    if gpus is None:
        return scenario
    if team().size > 1:
        return scenario.override(gpus=1)
    from nbody import compute

    if gpus == "all" or compute.why_unavailable():
        return scenario
    try:
        compute.devices_for(gpus)
    except InputError as error:
        notify(f"gpus: {error}; going on with those that are there")
        return scenario.override(gpus="all")
    return scenario
