"""The systems of an ensemble's recording: a table with a row per system, and the bodies of one."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from nbody.errors import InputError, counted, printable
from nbody.given import converted, whole
from nbody.particles import Particles
from nbody.trajectory.reading.frames import RecordedFrames
from nbody.trajectory.reading.tables import Table
from nbody.trajectory.structure.layout import SYSTEM
from nbody.trajectory.structure.layout import SYSTEM_COLUMNS as COLUMNS
from nbody.trajectory.structure.layout import SYSTEM_STATUS as STATUS
from nbody.trajectory.structure.opening import one_line

Array = np.ndarray

UNFINISHED = "unfinished"
"""In place of ``done`` if the run was interrupted, or is still running: the column ``time`` says what was reached."""

QUANTILES = (0.1, 0.5, 0.9, 1.0)
SAME = {"G", "event_rows", "index", "name", "position", "units", "velocity", "without_potential"}
"""What a system has of the recording: of positions and velocities its own; an ensemble has no events."""


def number_of_systems(resolved: Mapping[str, Any]) -> int:
    """The number of systems of the scenario of a recording; 0 if it is no ensemble."""
    ensemble = resolved.get("ensemble")
    count = ensemble.get("systems") if isinstance(ensemble, Mapping) else None
    return count if isinstance(count, int) and count > 0 else 0


def system_table(run: RecordedFrames) -> Table:
    """The columns of :attr:`~nbody.trajectory.Trajectory.systems`, (S,) each. Raises InputError: the recording is no
    ensemble, or has no frame."""
    from nbody.scenario.ensemble import Ensemble

    count = number_of_systems(run.resolved)
    if not count or any(run.widths.get(name) != count for name in COLUMNS) or not len(run):
        raise InputError(f"{printable(run.path)}: holds no ensemble with a frame; see 'ensemble' in a scenario")
    more = [k for k, width in run.widths.items() if k.startswith(SYSTEM) and k not in COLUMNS and width == count]
    energy, *last = (run.observable(name) for name in COLUMNS)
    time, steps, closest, status = (values[-1] for values in last)
    names = (STATUS[0] if run.complete else UNFINISHED, *STATUS[1:])
    scale = np.where(energy[0] == 0, 1.0, np.abs(energy[0]))
    initial, varied = run.resolved.get("initial", {}), {}
    with one_line(run.path):
        if "source" not in initial:
            varied = Ensemble.model_validate(run.resolved["ensemble"]).values(int(initial.get("seed", 0)))
    return Table(
        {
            "status": np.array(names)[np.clip(status, 0, len(STATUS) - 1).astype(int)],
            "time": time,
            "steps": steps.astype(np.int64),
            "closest_approach": closest,
            "energy_error": (energy[-1] - energy[0]) / scale,
            **{name.removeprefix(SYSTEM): run.observable(name)[-1] for name in more},
            **{path: np.array(values) for path, values in varied.items()},
        }
    )


def summary(run: RecordedFrames) -> dict[str, Any]:
    """The number of systems with each status, quantiles of the absolute energy errors of those that nothing else has ended,
    and the least and the greatest time that a system has reached, in types that JSON has."""
    table = system_table(run)
    whole = np.isin(table["status"], (STATUS[0], UNFINISHED))
    errors, count = np.abs(table["energy_error"][whole]), len(whole)
    return {
        "systems": count,
        "bodies": run.count // count,
        "status": {name: int(found) for name in (UNFINISHED, *STATUS) if (found := np.sum(table["status"] == name))},
        "energy_error": {f"{q:g}": float(np.quantile(errors, q)) for q in QUANTILES if len(errors)},
        "steps": int(table["steps"].sum()),
        "time": [float(table["time"].min()), float(table["time"].max())],
        "closest_approach": float(table["closest_approach"].min()),
    }


class System:
    """One system of an ensemble, as a recording: ``position`` and ``velocity`` of all frames, (T, n, D); ``mass``, ``id``
    and ``species`` of its bodies, (n,); ``time`` (T,), at which an ended system stands still."""

    def __init__(self, run: RecordedFrames, number: int) -> None:
        count = number_of_systems(run.resolved)
        number = converted(f"{printable(run.path)}: system: ", whole, number)
        if not 0 <= number < count:
            raise InputError(f"{printable(run.path)}: there is no system {number}; it has {count}, counted from 0")
        self.number, self.count = number, run.count // count
        self._run, self._rows = run, slice(number * self.count, (number + 1) * self.count)
        self.path, self.resolved, self.step, self.widths = run.path, run.resolved, run.step, run.widths
        self.mass, self.id, self.species = (each[self._rows] for each in (run.mass, run.id, run.species))
        self.species_names, self.time = run.species_names, run.observable("system_time")[:, number]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._run, name) if name in SAME else object.__getattribute__(self, name)
        return found[:, self._rows] if name in ("position", "velocity") else found

    def __len__(self) -> int:
        return len(self.time)

    def particles(self, frame: int) -> Particles:
        """Its bodies at a frame."""
        return self._run.particles(frame).rows(np.arange(self._run.count)[self._rows])

    def left(self, frame: int) -> "System":
        """What has the masses at a frame: no body leaves an ensemble."""
        return self

    def observable(self, name: str) -> Array:
        """An observable of the system, (T,). Raises InputError: it is none, or that of all systems."""
        return self._run.observable(SYSTEM + name.removeprefix("total_"))[:, self.number]

    def energy_balance(self) -> Array:
        """(T,) the total energy; NaNs if a force has no potential."""
        return self.observable("total_energy") + (np.nan if self.without_potential else 0.0)

    def __repr__(self) -> str:
        return f"<system {self.number}: {len(self.mass)} bodies, {counted(len(self.time), 'frame')}>"
