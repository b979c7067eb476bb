"""Several GPUs of this machine for one run: which engines divide their work among them, and from how many bodies on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nbody.errors import InputError
from nbody.forces import AUTOMATIC, ENGINES
from nbody.forces.direct.gpu_options import GpuOptions
from nbody.scenario import Scenario
from nbody.scenario.fields import validated
from nbody.scenario.groups import EngineChoice

Notify = Callable[[str], None]

DIVIDES = "gpu-symmetric"
"""The fastest engine whose work several GPUs divide."""


@dataclass(frozen=True)
class Chosen:
    """An engine, why ``auto`` has chosen it, and its options as written."""

    name: str
    why: str
    written: EngineChoice


def with_gpus(scenario: Scenario, chosen: Chosen, count: int, notify: Notify) -> Chosen:
    """The engine for the GPUs that a scenario asks for: ``auto`` takes one that divides its work.

    Raises:
        InputError: the engine that the scenario names computes on one device, or there are fewer GPUs.
    """
    options, where = chosen.written.options, scenario.where("engine.gpus")
    if "gpus" not in options:
        return chosen
    from nbody import gpu
    from nbody.forces.direct.gpu_triangle import DIVIDED  # imports Numba

    gpus = validated(GpuOptions, {"gpus": options["gpus"]}, scenario.source, ("engine",)).gpus
    kind: Any = ENGINES.load(chosen.name)
    alone = Chosen(chosen.name, chosen.why, _without_gpus(chosen.written))
    if gpus in (None, 1):
        return alone
    auto = chosen.written.name in AUTOMATIC
    if auto and kind.device == "gpu" and kind.approximate:
        notify(f"gpus: one GPU computes, since engine '{chosen.name}' does not divide its work")
        return alone
    if not getattr(kind, "helped", False):
        why = f" ({chosen.why})" if auto else f"; choose --engine {DIVIDES} or auto"
        raise InputError(f"{where}engine '{chosen.name}' computes on one device{why}; or leave gpus out")
    if gpu.why_unavailable():
        return chosen  # the engine says so
    there = len(gpu.devices_for(gpus, where))
    if count < DIVIDED and there > 1:
        notify(f"gpus: one of {there} GPUs computes; from {DIVIDED} bodies on it is worth dividing the work")
    elif auto and chosen.name != DIVIDES:
        return Chosen(DIVIDES, "it divides its work", chosen.written)
    return chosen


def _without_gpus(written: EngineChoice) -> EngineChoice:
    return EngineChoice(name=written.name, **{key: v for key, v in written.options.items() if key != "gpus"})


def with_those_there(scenario: Scenario, notify: Notify) -> Scenario:
    """A recorded scenario for this machine: with all of its GPUs, if those of the recording are not there. (The bits do not
    depend on their number.)"""
    gpus = scenario.engine.options.get("gpus")
    from nbody import gpu

    if gpus in (None, "all") or gpu.why_unavailable():
        return scenario
    try:
        gpu.devices_for(gpus)
    except InputError as error:
        notify(f"gpus: {error}; going on with those that are there")
        return scenario.override(gpus="all")
    return scenario
