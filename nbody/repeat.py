"""Go on with a recording where it stopped, or make it again from its first frame."""

import json
from pathlib import Path

from nbody.errors import InputError
from nbody.recorder import Energies
from nbody.scenario import Scenario
from nbody.simulation import Notify, Simulation
from nbody.trajectory import Trajectory, read_checkpoint


def resume(path: Path, steps: int | None = None, every: int | None = None, notify: Notify = print) -> Simulation:
    """The simulation that goes on with the recording at ``path``, ready to :meth:`~Simulation.run`.

    It starts from the newest checkpoint and ends with the same bits as a run that was never interrupted, if what
    :meth:`Simulation.scope` names is the same; if not, ``notify`` gets a line that says so. Frames after the
    checkpoint are recorded again.

    Args:
        path: the recording; it is continued in place.
        steps: how many steps the whole run shall have; by default what was planned.
        every: another number of steps between frames, from here on.

    Raises:
        InputError: not a recording, no checkpoint in it, or fewer steps than it has.
        DeviceError: its engine needs a GPU, and there is none.
    """
    checkpoint = read_checkpoint(path)
    with Trajectory(path) as run:
        recorded_every = int(checkpoint.meta["every"])
        scenario = _scenario(run, checkpoint.meta["engine"]).override(steps=steps, every=every)
        simulation = Simulation(scenario, path, notify=notify, particles=run.particles(0))
        step, kept = int(checkpoint.meta["step"]), min(checkpoint.frames, len(run))
        # A frame off the schedule marked the end of a run, or an interruption; a longer run does not have it.
        if run.step[kept - 1] % recorded_every and scenario.integrator.steps > step:
            kept -= 1
        energy = run.observable("total_energy")
        simulation.energies = Energies(float(energy[0]), float(energy[kept - 1]))
    simulation.state.restore(dict(checkpoint.state))
    simulation.step, simulation.continued, simulation.kept = step, checkpoint, kept
    if scenario.integrator.steps < step:
        raise InputError(
            f"--steps: the run has made {step} steps already; give a larger number than that, got "
            f"{scenario.integrator.steps}"
        )
    _compare_scope(checkpoint.meta["scope"], simulation.scope(), notify)
    return simulation


def rerun(path: Path, output: Path, overwrite: bool = False, notify: Notify = print) -> Simulation:
    """The simulation that makes the recording at ``path`` again, from its first frame, into ``output``.

    Raises:
        InputError: not a recording, or ``output`` is the same file.
    """
    if output.resolve() == path.resolve():
        raise InputError(f"{output}: is the recording itself; give another --output")
    with Trajectory(path) as run:
        stored = run.stored_provenance
        scenario = _scenario(run, str(stored["engine"]))
        start = run.particles(0)
        simulation = Simulation(scenario, output, overwrite, notify, particles=start)
    _compare_scope({key: str(stored.get(key, "")) for key in simulation.scope()}, simulation.scope(), notify)
    return simulation


def _scenario(run: Trajectory, engine: str) -> Scenario:
    """The scenario that a recording says it was made from, with the engine that ``auto`` stood for."""
    values = json.loads(json.dumps(run.resolved)) | {"engine": engine}
    return Scenario.from_dict(values)


def _compare_scope(recorded: dict[str, str], now: dict[str, str], notify: Notify) -> None:
    changed = [f"{key} {recorded.get(key)} -> {now[key]}" for key in now if recorded.get(key) != now[key]]
    if changed:
        notify(f"warning: the bits may differ from those of an uninterrupted run: {'; '.join(changed)}")
