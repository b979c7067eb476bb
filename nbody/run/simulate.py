"""``nbody.simulate``: a whole run in one call."""

import os
import tempfile
from pathlib import Path
from typing import Any

from nbody.errors import InputError
from nbody.parallel import team
from nbody.particles import Particles
from nbody.run.simulation import Simulation
from nbody.scenario import Scenario
from nbody.trajectory import Trajectory


def simulate(
    scenario: Scenario | Particles | str | Path,
    until: float | str | Path | None = None,
    steps: int | None = None,
    output: str | Path | None = None,
    **values: Any,
) -> Trajectory:
    """Run particles, or a scenario, and return the open recording. ::

        run = nbody.simulate(nbody.plummer(1024), until=10.0, dt=0.01, softening=0.05, every=10)

    Args:
        scenario: what to simulate, as for :class:`Simulation`.
        until: the time at which the run ends, or the output (as for Simulation); or
        steps: the number of steps. A scenario may have its own end.
        output: the file; by default a temporary file, which is removed when the trajectory is closed. If several processes
            make the run (``mpirun``), the first one writes it and all open it; if they are on several hosts, give a file in
            a folder that all hosts see.
        values: the other arguments of :class:`Simulation`.

    Raises:
        InputError: as :class:`Simulation`.
        RunFailed: a number in the state is not finite, or the file can't be written.
    """
    if isinstance(until, str | os.PathLike):
        if output is not None:
            raise InputError(f"simulate: until: must be a time, got {until!r}")
        until, output = None, until
    if until is not None and steps is not None:
        raise InputError("simulate: give 'until' (a time) or 'steps', not both")
    folder = None if output is not None else tempfile.TemporaryDirectory(prefix="nbody-", ignore_cleanup_errors=True)
    path = team().broadcast(Path(folder.name) / "run.h5" if folder else output)
    simulation = Simulation(scenario, path, **values)
    if until is None:
        simulation.run(steps)
    else:
        simulation.integrate(until)
    assert path is not None
    with team().agreed():
        trajectory = Trajectory(path)
    trajectory.temporary = folder
    return trajectory
