"""The plan of an ensemble: what it may be, and the engine for it."""

from typing import Any

from nbody.errors import InputError
from nbody.forces import ENGINES
from nbody.forces.engine import Engine
from nbody.initial.ensemble import check_bodies
from nbody.integrators import INTEGRATORS
from nbody.integrators.integrator import Integrator, unsupported
from nbody.registry import imported
from nbody.run.schedule import Schedule, TimeSchedule
from nbody.scenario import FromArrays, Scenario
from nbody.trajectory.systems import COLUMNS

ENGINE = {device: f"nbody.forces.systems.{device}:SystemsEngine" for device in ("cpu", "gpu")}


def scheme_of_systems(scenario: Scenario, kind: type[Integrator]) -> Any:
    """The class that moves the systems of an ensemble by a scheme. Raises InputError if there is none."""
    if not kind.for_ensembles:
        able = " or ".join(name for name in INTEGRATORS if INTEGRATORS.load(name).for_ensembles)
        raise InputError(
            f"{scenario.where('integrator.scheme', 'ensemble')}"
            f"scheme '{scenario.integrator.scheme}' moves one system; an ensemble "
            f"takes {able}"
        )
    return imported(kind.for_ensembles)


def engine_of_systems(scenario: Scenario, integrator: Integrator) -> tuple[str, str, type[Engine]]:
    """The name of the engine, why it was chosen (empty if the user named it), and its class."""
    written = scenario.engine.name
    if written == "auto":
        from nbody import gpu

        reason = gpu.why_unavailable()
        on_gpu: type[Engine] = imported(ENGINE["gpu"])
        if reason or gpu.SIMULATED:
            return "cpu", f"no GPU: {reason or 'the simulator'}", imported(ENGINE["cpu"])
        if unsupported(type(integrator), on_gpu, scenario.gravity, "float64"):
            return "cpu", f"scheme '{scenario.integrator.scheme}' works on the CPU", imported(ENGINE["cpu"])
        return "gpu", "one lane of a warp per planet", on_gpu
    if written != "gpu":
        ENGINES.check(written, scenario.where("engine"))
    # The schemes compute the forces; the engine adds the energies of frames, in float64 on every device.
    name = "gpu" if written.startswith("gpu") else "cpu" if written == "reference" else written
    if name not in ENGINE:
        raise InputError(
            f"{scenario.where('engine', 'ensemble')}an ensemble runs on engine cpu or gpu, not on '{written}'"
        )
    return name, "", imported(ENGINE[name])


def check_ensemble(scenario: Scenario, integrator: Integrator, bodies: int, schedule: Schedule) -> None:
    """Raise an InputError if the keys of a scenario do not fit an ensemble. ``bodies``: of all systems."""
    ensemble = scenario.ensemble
    assert ensemble is not None
    if bodies % ensemble.count:
        raise InputError(
            f"{scenario.where('ensemble.systems')}{bodies} bodies can't be {ensemble.count} systems of the same number of "
            "bodies"
        )
    check_bodies(scenario, bodies // ensemble.count)
    if ensemble.vary is not None and isinstance(scenario.initial, FromArrays):
        raise InputError(
            f"{scenario.where('ensemble.vary')}the bodies were given as arrays, so nothing varies; remove it"
        )
    if scenario.record.observables:
        raise InputError(
            f"{scenario.where('record.observables', 'ensemble')}"
            "an ensemble records energy, time, steps, status and closest approach of "
            "each system; remove 'observables'"
        )
    if scenario.fields:
        raise InputError(
            f"{scenario.where('fields', 'ensemble')}the systems of an ensemble have no external fields; remove 'fields'"
        )
    if scenario.collisions is not None:
        raise InputError(
            f"{scenario.where('collisions', 'ensemble')}the systems of an ensemble have no collisions; remove 'collisions'"
        )
    if integrator.adaptive and not isinstance(schedule, TimeSchedule):
        raise InputError(
            f"{scenario.where('integrator.steps', 'integrator.scheme', 'ensemble')}"
            "each system makes its own steps; write 'end: TIME' instead of 'steps'"
        )


def widths(scenario: Scenario) -> dict[str, int]:
    """The observables that an ensemble records, with a number per system."""
    return dict.fromkeys(COLUMNS, scenario.ensemble.count) if scenario.ensemble else {}
