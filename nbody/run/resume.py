"""Continues a recorded run from its last checkpoint, or repeats it from its first frame."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from nbody.diagnostics.energy import Energies
from nbody.errors import InputError, printable, unknown
from nbody.fields.given import with_functions
from nbody.given import path_text
from nbody.parallel import team
from nbody.particles import Particles
from nbody.run.gpus import with_those_there
from nbody.run.measured import Start
from nbody.run.observers import Observer
from nbody.run.output import with_schedule
from nbody.run.plan import plan
from nbody.run.schedule import FOREVER, directed, same_time, time_given, whole_steps
from nbody.run.simulation import Simulation
from nbody.run.stepper import Stepper
from nbody.scenario import Scenario
from nbody.state import Moment
from nbody.trajectory import Trajectory, read_checkpoint
from nbody.trajectory.structure.layout import BY_CALL
from nbody.trajectory.structure.opening import one_line
from nbody.whole_file import Notify

Outcome = Callable[[Particles], Particles | None] | None
GIVEN = ("fields", "on_collision", "events")


def resume(
    path: str | Path,
    steps: int | None = None,
    every: int | None = None,
    notify: Notify = print,
    end: float | str | None = None,
    gpus: int | str | None = None,
    **given: Any,
) -> Simulation:
    """The simulation that continues the recording at ``path``, ready to :meth:`~Simulation.run`.

    It starts from the newest checkpoint. If everything that :meth:`Setup.scope` names is the same, the result has the
    same bits as that of a run that was never interrupted; if not, ``notify`` gets a line that says so. Frames after the
    checkpoint are recorded again.

    Args:
        path: the recording; it is continued in place.
        steps: the number of steps of the whole run; by default as planned.
        every: a new number of steps between frames, from here on.
        end: the time at which the run ends.
        gpus: other GPUs than those of the run, with the same bits: their number, ``all``, or which ones (``"0,2"``).
        given: functions of a Python program, which the file does not hold: ``on_collision``, that of a run with
            ``collisions: {rule: function}``; ``events``, those of the run if some are functions or call one, in the same
            order; ``fields``, the forces of the run (:func:`nbody.force`), whose source is in the file and never executed.

    Raises:
        InputError: not a recording, no checkpoint in it, or an end before its last frame.
        DeviceError: its engine needs a GPU, and there is none.
    """
    for name in given.keys() - GIVEN:
        raise unknown("keyword", name, GIVEN, "resume: ")
    path = Path(path_text(path))
    with team().agreed():
        changes = {"steps": steps, "every": every, "end": end, "gpus": gpus}
        fields = given.pop("fields", None)
        found = team().broadcast(_resumed(path, changes, notify, fields) if team().first else None)
    scenario, particles, start, scope, event_functions = found
    simulation = Simulation(scenario, path, notify=notify, particles=particles, start=start, **given)
    if given.get("events") is None and event_functions:
        notify("warning: events of this run are functions, or call one, and are not in the file: give resume(events=…)")
    _compare_scope(scope, simulation.setup.scope(), simulation.setup.notify)
    return simulation


def _resumed(
    path: Path, changes: dict[str, Any], notify: Notify, fields: object
) -> tuple[Scenario, Particles, Start, dict[str, str], bool]:
    """The scenario with ``changes``, the bodies of the first frame, the checkpoint, what the bits depended on, and whether a
    Python program has given functions as events. Raises InputError as :func:`resume`."""
    checkpoint = read_checkpoint(path)
    with one_line(path):  # a correct checksum does not mean that the content can be trusted
        facts = checkpoint.meta
        step, scope = int(facts["step"]), dict(facts["scope"])
        regular = facts["regular"] if "regular" in facts else step % int(facts["every"]) == 0
    with Trajectory(path) as run:
        particles, stored = _start(run), _scenario(run, facts.get("schedule"))
        functions = bool(run.stored_provenance.get("event_functions"))
        if "origin" in facts and changes["end"] is not None:  # after a turn it may be on either side
            more = time_given("--end: ", changes["end"], stored) - facts["time"]
            more = whole_steps("--end: ", more, float(stored.integrator.dt or 1), facts["time"])
            changes = changes | {"end": None, "steps": step + max(0, more)}
        scenario = with_functions(stored.override(**changes), fields, notify)
        if changes["gpus"] is None:
            scenario = with_those_there(scenario, notify)
        sign = -1 if directed(stored, particles.time, lambda line: None)[1] else 1
        # Files of nbody 0.1 do not contain the time.
        time = float(facts["time"] if "time" in facts else particles.time + step * (stored.integrator.dt or 0.0))
        with one_line(path):
            # (If nothing new was asked, frames after the planned end are those of further calls, before their checkpoint.)
            asked = "origin" not in facts and (changes["steps"], changes["end"]) != (None, None)
            latest = (int(run.step[-1]), float(run.time[-1])) if asked else (step, time)
        _check_end(scenario, *max((step, time), latest), sign)
        planned = plan(scenario, particles, measure=False)
        moment = Moment(step, time, float(facts.get("origin", math.nan)), bool(facts.get("within")))
        longer = not planned.schedule.ended(moment)
        with one_line(path):
            # (Not simply checkpoint.frames: if a resumed run was killed before its first checkpoint, the last of these
            # frames may have been replaced by another one.)
            times = run.time[:]
            frames = min(checkpoint.frames, len(times))
            while frames > 1 and sign * (times[frames - 1] - time) > 0:
                frames -= 1
            # A frame at the checkpoint's time that is not on the schedule was the end of a run, or an interruption; a
            # longer run does not have it. (Earlier frames may be off the schedule too, if ``every`` was different then.)
            ends = bool(run.time[frames - 1] == time) and not regular and frames > 1
            frames -= ends and longer
            if (again := int(np.sum(sign * (times[frames:] - time) > 0))) and longer:
                notify(f"going on from step {step}, the last checkpoint: the {again} frames after it are made again")
            energies = Energies.of(run.energy_balance()[:frames], conserved=not run.without_potential)
            events = int(facts.get("events", 0))
            start = Start(moment, checkpoint.state, events, frames, energies, checkpoint, path, ends and not longer)
    return scenario, particles, start, scope, functions


def _check_end(scenario: Scenario, step: int, time: float, sign: int) -> None:
    """Refuse an end before what the run has made, before the schedule asks whether it is a whole number of steps."""
    last, end = scenario.integrator.steps, scenario.integrator.end
    option, given, made = ("--end", end, time) if last is None else ("--steps", last, float(step))
    sign = sign if last is None else 1
    if given is not None and sign * (made - given) > 0 and not same_time(made, given):
        more = "more" if sign > 0 else "less"
        raise InputError(
            f"{option}: the run has made {step} steps already, to t = {time:g}; give {more} than {made:g}, got {given:g}"
        )


def rerun(
    path: str | Path,
    output: str | Path,
    overwrite: bool = False,
    notify: Notify = print,
    gpus: int | str | None = None,
    fields: object = None,
    on_collision: Outcome = None,
    events: Any = None,
) -> Simulation:
    """The simulation that repeats the recording at ``path``, from its first frame to its last, and records it in
    ``output``; changes of the bodies that a program made are made again. (A run that was stopped has fewer frames than were
    planned.) ``gpus``, ``fields``, ``on_collision``, ``events``: as of :func:`resume`. If events call functions, changes of
    the bodies are left to these.
    Raises InputError: not a recording, ``output`` is the same file, or its events are functions and are not given."""
    path, output = Path(path_text(path)), Path(path_text(output))
    with team().agreed():
        found = team().broadcast(_repeated(path, output, notify, gpus) if team().first else None)
    scenario, particles, stored, changes = found
    if events is None and stored.get("event_functions"):
        raise InputError(
            f"{path}: events of this run are functions, or call one, and are not in the file; in Python, give "
            "nbody.rerun(path, output, events=[…]), those of the run in the same order"
        )
    scenario = with_functions(scenario, fields, notify)
    given = {} if events is None else {"events": events}
    simulation = Simulation(
        scenario, output, overwrite, notify, particles=particles, repeats=True, on_collision=on_collision, **given
    )
    scheme = simulation.stepper.integrator
    if simulation.steps_made and (scheme.facts.columns or scheme.arrays()):
        simulation.setup.notify(
            f"warning: the recording begins at step {simulation.steps_made}, and '{scenario.integrator.scheme}' needs "
            "numbers of earlier steps, which are not in the file: the bits may differ"
        )
    scope = simulation.setup.scope()
    _compare_scope({key: str(stored.get(key, "")) for key in scope}, scope, simulation.setup.notify)
    if len(changes) and any(event.call for event in simulation.setup.events):
        simulation.setup.notify("changes of the bodies in the recording are left to the functions that events call")
    elif len(changes):
        simulation.observers.append(ChangesAgain(simulation.stepper, changes))
    return simulation


class ChangesAgain(Observer):
    """Makes the changes of the bodies again that a program has made, and of which a recording has these ``rows``."""

    def __init__(self, stepper: Stepper, rows: np.ndarray) -> None:
        super().__init__(stepper)
        begins = np.ones(len(rows), bool)  # of calls: their first row has the energy
        begins[1:] = (rows["kind"][1:] != rows["kind"][:-1]) | (rows["step"][1:] != rows["step"][:-1])
        first = np.unique(rows["id_1"], return_index=True)[1]
        begins |= (rows["energy_change"] != 0) | ~np.isin(np.arange(len(rows)), first)
        self._calls = np.split(rows, np.flatnonzero(begins)[1:])

    def next(self, until: float) -> tuple[int, float]:
        now = self._stepper.moment
        if not self._calls:
            return FOREVER, until
        row = self._calls[0][0]
        if not self._stepper.integrator.facts.adaptive:
            return int(row["step"]) - 1 - now.step, until
        return FOREVER, until if same_time(float(row["time"]), until) else min(float(row["time"]), until)

    def look(self) -> bool:
        now = self._stepper.moment
        while self._calls and self._calls[0]["step"][0] == now.step + 1 and same_time(self._calls[0]["time"][0], now.time):
            self._stepper.apply(self._calls.pop(0).copy())
        return True


def _repeated(
    path: Path, output: Path, notify: Notify, gpus: int | str | None
) -> tuple[Scenario, Particles, dict[str, Any], np.ndarray]:
    """The scenario, the bodies and the provenance of the recording at ``path``. Raises InputError as :func:`rerun`."""
    if output.resolve() == path.resolve():
        raise InputError(f"{output}: is the recording itself; give another --output")
    with Trajectory(path) as run:
        scenario = _scenario(run)
        scenario = with_those_there(scenario, notify) if gpus is None else scenario.override(gpus=gpus)
        chosen = scenario.integrator
        with one_line(path):
            made, reached, lengths = int(run.step[-1]), float(run.time[-1]), np.diff(run.time[:])
        if (lengths > 0).any() and (lengths < 0).any():
            raise InputError(f"{path}: a Python program moved this run back and forth in time; run that program again")
        scenario = scenario.override(**({"end": reached} if chosen.steps is None else {"steps": made}))
        rows = run.event_rows()
        return scenario, _start(run), run.stored_provenance, rows[np.isin(rows["kind"], BY_CALL)]


def _scenario(run: Trajectory, schedule: dict[str, float] | None = None) -> Scenario:
    """The scenario stored in a recording; to the end of a ``schedule`` of its last checkpoint, if that is the later one."""
    scenario = Scenario.from_dict(json.loads(json.dumps(run.resolved)))
    if schedule is None:
        return scenario
    steps, end = scenario.integrator.steps, scenario.integrator.end
    with one_line(run.path):
        if "steps" in schedule and steps is not None:
            return scenario.override(steps=max(steps, int(schedule["steps"])))
        if "end" in schedule and end is not None:
            begin = float(run.time[0])
            return scenario.override(end=max(end, float(schedule["end"]), key=lambda time: abs(time - begin)))
        return Scenario.from_dict(json.loads(json.dumps(with_schedule(run.resolved, schedule))))


def _start(run: Trajectory) -> Particles:
    """The bodies of the first frame."""
    with one_line(run.path):
        return run.particles(0).check(f"{run.path}: frame 0: ")


def _compare_scope(recorded: dict[str, str], now: dict[str, str], notify: Notify) -> None:
    before = {key: recorded.get(key) or "not recorded" for key in now}
    changed = [f"{key} {printable(before[key])} -> {now[key]}" for key in now if recorded.get(key) != now[key]]
    if changed:
        notify(f"warning: the bits may differ from those of an uninterrupted run: {'; '.join(changed)}")
