"""The plan of an ensemble: what it may be, and the engine for it."""

from typing import Any

from nbody.errors import InputError
from nbody.forces import ENGINES
from nbody.forces.choose import check_name
from nbody.forces.engine import Engine
from nbody.forces.systems import systems_engine
from nbody.initial.ensemble import check_bodies
from nbody.integrators.integrator import Integrator, unsupported
from nbody.run.schedule import Schedule, TimeSchedule
from nbody.scenario import FromArrays, Scenario
from nbody.trajectory.layout import SYSTEM_COLUMNS as COLUMNS


def engine_of_systems(
    scenario: Scenario, integrator: Integrator, asked: dict[str, Any]
) -> tuple[str, str, type[Engine]]:
    """The name of the engine, why it was chosen (empty if the user named it), and its class. ``asked``: see
    :func:`~nbody.run.supported.asked_of_run`.

    The schemes compute the forces; the engine adds the energies of frames, in float64 on every device.
    """
    written, systems = scenario.engine.name, asked["systems"]
    entry = ENGINES.get(check_name(written, scenario.where("engine")).partition(":")[0])
    if written == "auto":
        from nbody import compute

        on_gpu, missing = (
            systems_engine("gpu", systems),
            compute.why_unavailable() or "the simulator" * compute.SIMULATED,
        )
        why = (
            f"no GPU: {missing}"
            if missing
            else unsupported(type(integrator), on_gpu, scenario.gravity, "float64", **asked)
        )
        if not why:
            return "gpu", "one lane of a warp per planet", on_gpu
        return "cpu", why.partition("; choose")[0], systems_engine("cpu", systems)
    if written != "gpu" and (entry is None or entry.variants or entry.package or "tree" in entry.tags):
        where = scenario.where("engine", "ensemble")
        raise InputError(f"{where}an ensemble runs on engine cpu or gpu, not on '{written}'")
    device = "gpu" if entry is None or "gpu" in entry.tags else "cpu"
    return device, "", systems_engine(device, systems)


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
    if integrator.facts.adaptive and not isinstance(schedule, TimeSchedule):
        raise InputError(
            f"{scenario.where('integrator.steps', 'integrator.scheme', 'ensemble')}"
            "each system makes its own steps; write 'end: TIME' instead of 'steps'"
        )


def widths(scenario: Scenario) -> dict[str, int]:
    """The observables that an ensemble records, with a number per system."""
    return dict.fromkeys(COLUMNS, scenario.ensemble.count) if scenario.ensemble else {}
