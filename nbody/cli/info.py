"""``nbody info``: what a recording holds, or what a scenario would run."""

import json
import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from nbody.cli.completion import RECORDINGS, recordings_and_scenarios


def info(
    path: Annotated[
        Path,
        typer.Argument(
            help="A recording (.h5), or a scenario: a .yaml, or the name of one that comes with nbody.",
            show_default=False,
            autocompletion=recordings_and_scenarios,
        ),
    ],
    verify: Annotated[
        bool, typer.Option("--verify", help="Check every frame of a recording against its checksums.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")] = False,
) -> int:
    """Say what a recording holds, or what a scenario would run.

    For a recording: its bodies, frames and times, the energy error, whether
    it is complete, and how it was made. For a scenario: every value with the
    defaults filled in, the engine, and the memory and disk that a run needs.
    Nothing is changed.

    Examples:

      nbody info output/run.h5

      nbody info output/run.h5 --verify

      nbody info scenarios/disk.yaml --json

      nbody info plummer
    """
    from nbody.cli.progress import say
    from nbody.errors import InputError
    from nbody.scenario.packaged import locate

    path = locate(path, say)
    if not _is_recording(path):
        if verify:
            raise InputError(f"{path}: --verify checks recordings, and this is a scenario; leave --verify out")
        found = _scenario(path)
    else:
        found = _recording(path, verify)
    if as_json:
        print(json.dumps(found))
    else:
        from nbody.cli.info_page import lines

        print("\n".join(lines(found)))
    return 1 if found.get("damaged") else 0


def _is_recording(path: Path) -> bool:
    """True for a file that is, or is named like, HDF5."""
    from nbody.scenario.source import open_regular

    if path.suffix in RECORDINGS:
        return True
    with open_regular(path) as file:
        return file.read(4) == b"\x89HDF"


def _scenario(path: Path) -> dict[str, Any]:
    """What a scenario would run, in plain types."""
    from nbody import machine
    from nbody.errors import DeviceError
    from nbody.forces import ENGINES, resolve
    from nbody.forces.memory import needs
    from nbody.initial import check_initial, make_particles, resolved_initial
    from nbody.run.schedule import Schedule
    from nbody.scenario import FromFile, Scenario
    from nbody.trajectory import RunHeader, required_bytes, state_bytes_foreseen

    scenario = Scenario.load(path)
    check_initial(scenario)
    initial, precision = scenario.initial, scenario.precision
    count = make_particles(scenario).count if isinstance(initial, FromFile) else initial.particles
    resolved = scenario.resolved() | {"initial": resolved_initial(scenario)}
    engine, why = resolve(scenario.engine, precision, count, scenario.where("engine"), measure=False)
    kind = ENGINES.load(engine)
    kind.require_precision(precision, scenario.where("precision"))
    problem = ""
    try:
        kind.require_device()
    except DeviceError as error:
        problem = str(error)
    frames = 1 + Schedule(scenario.record.every, scenario.integrator.steps).count_after(0)
    dtype = "float32" if precision == "float32" else "float64"
    room = state_bytes_foreseen(count, dtype)
    header = RunHeader(frames, dtype, scenario.text, resolved, state_bytes=room)
    return {
        "file": str(path),
        "kind": "scenario",
        "scenario": resolved,
        "particles": count,
        "engine": engine,
        "engine_reason": why or "named by the scenario",
        "engine_problem": problem,
        "frames": frames,
        "memory_bytes": needs(kind, count, precision),
        "memory_free": machine.memory_available(),
        "file_bytes": required_bytes(count, header),
        "disk_free": shutil.disk_usage(".").free,
    }


def _recording(path: Path, verify: bool) -> dict[str, Any]:
    """What a recording holds, in plain types."""
    from nbody.run.diagnostics import relative_energy_error
    from nbody.trajectory import Trajectory

    with Trajectory(path) as run:
        energy = run.observable("total_energy")
        errors = [relative_energy_error(float(value), float(energy[0])) for value in energy]
        found = {
            "file": str(path),
            "kind": "recording",
            "status": run.status,
            "particles": run.count,
            "dimensions": run.dimensions,
            "frames": len(run),
            "frames_planned": run.planned,
            "steps": [int(run.step[k]) for k in (0, -1)] if len(run) else [],
            "time": [float(run.time[k]) for k in (0, -1)] if len(run) else [],
            "energy": [float(energy[k]) for k in (0, -1)] if len(run) else [],
            "energy_error": errors[-1] if len(run) else 0.0,
            "energy_error_largest": max(errors, key=abs, default=0.0),
            "file_bytes": path.stat().st_size,
            "provenance": run.provenance,
            "scenario": run.resolved,
        }
        return found | ({"damaged": run.verify()} if verify else {})
