"""``nbody info``: describes a recording, or the run that a scenario describes."""

import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nbody.cli.options import AsJson, RecordingOrScenario, is_recording
from nbody.cli.streams import Json, print_message, result, result_json
from nbody.errors import DeviceError, InputError
from nbody.scenario.quantities import shown_time

if TYPE_CHECKING:
    import numpy as np

    from nbody.integrators.facts import SchemeFacts
    from nbody.trajectory import Trajectory


def info(
    path: RecordingOrScenario,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check every frame of a recording against its checksums.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Describe a recording, a map, or the run that a scenario describes.

    For a recording: its bodies, frames and times, the energy error, whether
    it is complete, and how it was made. For a scenario: every value with the
    defaults filled in, the engine, and the memory and disk space that a run
    needs. Changes nothing.

    \b
    Examples:
      nbody info output/run.h5
      nbody info output/run.h5 --verify
      nbody info scenarios/disk.yaml --json
      nbody info plummer
    """
    from nbody.cli.info_page import lines
    from nbody.scenario.packaged import locate
    from nbody.trajectory.grid_file import is_map
    from nbody.trajectory.structure.opening import one_line

    path = locate(path, print_message)
    if is_map(path):
        return _map(path, as_json)
    recording = is_recording(path)
    if verify and not recording:
        raise InputError(f"{path}: --verify checks recordings, and this is a scenario; leave --verify out")
    # A correct checksum does not mean that the content can be trusted.
    with one_line(path) if recording else nullcontext():
        found = _recording(path, verify) if recording else _scenario(path)
        page = "" if as_json else "\n".join(lines(found))
    if as_json:
        result_json(found)
    else:
        result(page)
    return 1 if found.get("damaged") else 0


def _map(path: Path, as_json: bool) -> int:
    from nbody.cli.map import show_facts
    from nbody.maps.stability_map import StabilityMap

    show_facts(StabilityMap.load(path), as_json)
    return 0


def _scenario(path: Path) -> Json:
    """The facts about a scenario's run, in types that JSON has."""
    from nbody import memory
    from nbody.forces.resources import require_device
    from nbody.run.plan import plan
    from nbody.scenario import Scenario

    scenario = Scenario.load(path)
    planned = plan(scenario, measure=False)
    problem = ""
    try:
        require_device(planned.engine_kind, planned.engine_name)
    except DeviceError as error:
        problem = str(error)
    return {
        "file": str(path), "kind": "scenario",
        "scenario": planned.resolved() | {key: scenario.resolved()[key] for key in ("engine", "gravity")},
        "particles": planned.count, "systems": scenario.ensemble.count if scenario.ensemble else 0,
        "units": str(scenario.units or ""), "engine": planned.engine_name,
        "engine_reason": planned.engine_reason or "named by the scenario", "engine_problem": problem,
        **_scheme(scenario.resolved()), "frames": planned.frames, "memory_bytes": planned.memory,
        "memory_free": memory.memory_available(), "file_bytes": planned.file_bytes,
        "disk_free": shutil.disk_usage(".").free, "expected_s": planned.expected_seconds,
    }  # fmt: skip


def _recording(path: Path, verify: bool) -> Json:
    """The facts about a recording, in types that JSON has."""
    from nbody.particles import body_names
    from nbody.trajectory import Trajectory
    from nbody.trajectory.reading.systems import COLUMNS, number_of_systems, summary

    with Trajectory(path) as run:
        names = body_names(run)
        found = {
            "file": str(path), "kind": "recording",
            "status": run.status, "particles": run.count, "names": names, "dimensions": run.dimensions,
            "frames": len(run), "frames_planned": len(run) if run.complete else run.planned, "steps": _ends(run.step),
            "time": _ends(run.time), **_events(run, names), **_energy(run),
            "observables": {name: _ends(run.observable(name)) for name in run.widths if len(run) and name not in COLUMNS},
            "file_bytes": path.stat().st_size, **_scheme(run.resolved), **_pairs(path, run.resolved),
            "provenance": run.provenance, "units": str(run.units), "scenario": run.resolved,
        }  # fmt: skip
        if len(run) and number_of_systems(run.resolved):
            found["ensemble"] = summary(run)
        return found | ({"damaged": run.verify()} if verify else {})


def _ends(values: "np.ndarray") -> list[Any]:
    """The first and the last value of a column; empty if it is."""
    return values[[0, -1]].tolist() if len(values) else []


def _energy(run: "Trajectory") -> Json:
    """The energies of a recording and their errors."""
    from nbody.diagnostics.energy import relative_energy_error

    balance = run.energy_balance()
    errors = [relative_energy_error(float(value), float(balance[0])) for value in balance]
    return {
        "energy": _ends(run.observable("total_energy")),
        "energy_error": errors[-1] if errors else 0.0,
        "without_potential": run.without_potential,
        "energy_error_largest": max(errors, key=abs, default=0.0),
    }


SHOWN_EVENTS = 3  # the number of the last collisions that are listed


def _events(run: "Trajectory", names: dict[int, str]) -> Json:
    """The collisions, the events and the changes of a recording; empty if the run looked for none and had none."""
    import numpy as np

    from nbody.trajectory.reading.events import event_line
    from nbody.trajectory.structure.layout import ADDED, CHANGED, REMOVED

    rows, shown, kind = run.event_rows(), shown_time(run.units.symbol("time")), run.event_rows()["kind"]
    watched, changes, found = rows["event"] >= 0, np.isin(kind, (*ADDED, *REMOVED, *CHANGED)), Json()
    for name, asked, some in (
        ("collisions", run.resolved.get("collisions"), ~(watched | changes)),
        ("events", run.resolved.get("events") or watched.any(), watched),
        ("changes", changes.any(), changes),
    ):
        if asked:
            found[name] = int(some.sum())
            found[f"last_{name}"] = [event_line(row, *shown, names) for row in rows[some][-SHOWN_EVENTS:]]
    if "collisions" in found or "changes" in found:
        found["particles_left"] = int(run.left(-1).alive.sum()) if len(run) else run.count
    return found


def _pairs(path: Path, scenario: Json) -> Json:
    """The pairs that move by Kepler's solution, by the last checkpoint; empty if the scheme has none."""
    from nbody.run.stepper import OWN
    from nbody.trajectory import read_checkpoint

    if _scheme(scenario).get("step_lengths") != "individual":
        return {}
    try:
        numbers = read_checkpoint(path).state.get(OWN + "pairs")
    except InputError:  # no checkpoint
        numbers = None
    if numbers is None:
        return {}
    formed, dissolved = map(int, numbers)
    return {"pairs": {"joined": formed, "parted": dissolved, "present": formed - dissolved}}


def _scheme(scenario: Json) -> Json:
    """The facts about the scheme of a scenario with all values; empty if this version does not have the scheme."""
    from nbody.integrators import INTEGRATORS

    chosen = scenario.get("integrator")
    name = chosen.get("scheme") if isinstance(chosen, dict) else None
    if not isinstance(chosen, dict) or name not in INTEGRATORS:
        return {}
    facts: SchemeFacts = INTEGRATORS.load(str(name)).facts
    # A frame after so many blocks is a prediction; to one at a time all bodies make a step.
    lengths = "adaptive" if chosen.get("shared") else facts.lengths
    predicted = lengths == "individual" and chosen.get("end") is None
    return {
        "order": facts.order,
        "evaluations_per_step": facts.evaluations,
        "source": facts.source,
        "step_lengths": lengths if " or " not in lengths else "adaptive" if chosen.get("eta") else "fixed",
        "frames_are": "predicted" if predicted else "synchronized",
    }
