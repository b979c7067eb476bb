"""The plan of an ensemble: what it may be, and the engine for it."""

from nbody.errors import InputError
from nbody.forces import ENGINES
from nbody.forces.engine import Engine
from nbody.forces.systems import DEVICES, systems_engine
from nbody.initial.ensemble import check_bodies
from nbody.integrators.integrator import Integrator, unsupported
from nbody.run.schedule import Schedule, TimeSchedule
from nbody.scenario import FromArrays, Scenario
from nbody.trajectory.systems import COLUMNS


def engine_of_systems(scenario: Scenario, integrator: Integrator) -> tuple[str, str, type[Engine]]:
    """The name of the engine, why it was chosen (empty if the user named it), and its class."""
    assert scenario.ensemble is not None
    written, count = scenario.engine.name, scenario.ensemble.count
    if written == "auto":
        from nbody import gpu

        reason = gpu.why_unavailable()
        on_gpu = systems_engine("gpu", count)
        if reason or gpu.SIMULATED:
            return "cpu", f"no GPU: {reason or 'the simulator'}", systems_engine("cpu", count)
        if unsupported(type(integrator), on_gpu, scenario.gravity, "float64"):
            return "cpu", f"scheme '{scenario.integrator.scheme}' works on the CPU", systems_engine("cpu", count)
        return "gpu", "one lane of a warp per planet", on_gpu
    if written != "gpu":
        ENGINES.check(written, scenario.where("engine"))
    # The schemes compute the forces; the engine adds the energies of frames, in float64 on every device.
    name = "gpu" if written.startswith("gpu") else "cpu" if written == "reference" else written
    if name not in DEVICES:
        raise InputError(
            f"{scenario.where('engine', 'ensemble')}an ensemble runs on engine cpu or gpu, not on '{written}'"
        )
    return name, "", systems_engine(name, count)


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
