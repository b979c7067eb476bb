"""Sweeps: one scenario many times with other values, in processes side by side.

A run of a sweep is ``nbody run SCENARIO --set KEY=VALUE …`` in a separate process: if one crashes, the others go on. The
recordings are the only state. So a sweep that was killed goes on when it is started again: complete runs are left as they
are, others are resumed from their checkpoints. On a cluster each run is a job (:mod:`nbody.run.cluster`).
"""

import csv
import itertools
import json
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from nbody import machine
from nbody.diagnostics.energy import relative_energy_error
from nbody.errors import DeviceError, InputError, NBodyError, not_written, printable
from nbody.given import converted
from nbody.run.cluster import Cluster, Task, attempt, status_of
from nbody.run.output import with_schedule
from nbody.run.plan import Plan, plan
from nbody.run.schedule import written
from nbody.run.signals import StopRequest, stop_on_signals
from nbody.scenario import Scenario
from nbody.scenario.ensemble import range_of
from nbody.scenario.yaml_reader import read_assignment
from nbody.trajectory import Trajectory
from nbody.trajectory.structure.contents import parse_json
from nbody.trajectory.structure.opening import one_line
from nbody.whole_file import Notify, whole_file

INTERRUPTED = 130
"""The exit code of a run that a signal stopped."""

ATTEMPTS = 3
"""How often a run that fails is started before the sweep goes on without it."""

MOST, MOST_JOBS = 100_000, 256
"""The most runs of a sweep, and of those how many are in a cluster's queue at the same time by default."""

Row = dict[str, Any]
"""One run in the table: its number, the varied values, ``status``, ``steps``, ``time``, ``energy_error``, ``wall_s`` and
``file``."""


@dataclass
class Sweep:
    """A scenario, and the values that vary.

    Attributes:
        scenario: a file, or the name of a scenario that comes with nbody.
        varied: ``KEY=VALUES``; all combinations are run. VALUES is a list with commas or a range
            (:func:`~nbody.scenario.ensemble.range_of`): 1..64, 0.1..0.5:9, 1e-3..1:4:log.
        fixed: ``KEY=VALUE`` for all runs.
        folder: where the recordings and ``table.csv`` are written.
        jobs: runs at the same time; by default one per GPU, or one per core; on a cluster at most :data:`MOST_JOBS`.
        cluster: where the runs are made, if not here.
    """

    scenario: Path
    varied: Sequence[str]
    fixed: Sequence[str]
    folder: Path
    jobs: int | None = None
    cluster: Cluster | None = None
    tasks: list[Task] = field(init=False)

    def __post_init__(self) -> None:
        if self.jobs is not None and self.jobs < 1:
            raise InputError(f"--jobs: must be at least 1, got {self.jobs}")
        if self.folder.suffix in (".h5", ".hdf5"):
            raise InputError(f"--output: {printable(self.folder)}: a sweep writes a folder of recordings; name a folder")
        varied = list(map(_varied, self.varied))
        fixed, keys = [value.partition("=")[0] for value in self.fixed], [key for key, _ in varied]
        for key in keys:
            if keys.count(key) > 1:
                raise InputError(f"--vary {key}: is given twice; write all its values in one list")
            if key in fixed:
                raise InputError(f"--set {key}: it varies; leave out one of both")
        lists = [[f"{key}={value}" for value in values] for key, values in varied]
        count = 1
        for each in lists:
            count *= len(each)
        if count > MOST:
            raise InputError(f"--vary: {count} runs; at most {MOST}")
        combined = enumerate(itertools.product(*lists), 1)
        width = len(str(count))
        self.tasks = [Task(k, values, self.folder / f"{k:0{width}}.h5") for k, values in combined]

    def check(self) -> None:
        """Raise an InputError if the scenario with the values of a run is wrong, or the folder holds another sweep, or files
        of others that have the names of this one's."""
        begun, foreign = Scenario.load(self.scenario, self.fixed), []
        for task in self.tasks:
            try:
                planned = plan(begun.override(task.values, by="--vary"), measure=False)
            except DeviceError:  # the nodes may have what this machine lacks
                if not self.cluster:
                    raise
            else:
                foreign += [] if _is_free(task.path, planned) else [task.path]
        try:
            self._claim({"scenario": begun.to_yaml(), "varied": list(self.varied)}, foreign)
        except (OSError, ValueError) as error:
            raise not_written(self.folder, error, "choose another --output") from None

    def _claim(self, written: dict[str, Any], foreign: list[Path]) -> None:
        """Make the folder, with a file that says whose it is. Raises InputError if it is another sweep's, has ``foreign``
        recordings, or is no sweep's and has files with the names of this one's."""
        record = self.folder / "sweep.json"
        self.folder.mkdir(parents=True, exist_ok=True)
        if text := record.read_text() if record.exists() else "":
            if parse_json(text) != written:
                raise InputError(f"{printable(self.folder)}: this folder holds another sweep; choose another --output")
        else:
            names = self._table, *(each for task in self.tasks for each in (task.log, task.note))
            foreign = [*foreign, *filter(os.path.lexists, names)]
        for path in foreign:
            raise InputError(f"{printable(path)}: was not made by this sweep; move it, or choose another --output")
        if not text:
            with whole_file(record) as draft:
                draft.write_text(json.dumps(written))

    @property
    def _table(self) -> Path:
        return self.folder / "table.csv"

    def run(self, notify: Notify) -> bool:
        """Make the runs that are not complete. ``notify`` gets one line per run. Returns False if a signal stopped it."""
        slots = self._slots()
        with stop_on_signals() as stop, ThreadPoolExecutor(slots.qsize()) as pool:
            start = self.cluster.attempt if self.cluster else attempt
            made = [pool.submit(_made, task, self._arguments(task), start, slots, stop) for task in self.tasks]
            refused = []
            for done, future in enumerate(as_completed(made), 1):
                refused += [error] if (error := future.exception()) else []
                if not stop.requested:
                    notify(f"{done} of {len(made)}: {error or future.result()}")
        if len(refused) == len(made):
            raise refused[0]
        return not stop.requested

    def table(self) -> list[Row]:
        """The rows of all runs, from their recordings; also written to ``table.csv``."""
        rows = [_row(task) for task in self.tasks]
        try:
            with whole_file(self._table) as draft, draft.open("w", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]))
                writer.writeheader()
                writer.writerows(rows)
        except OSError as error:
            raise not_written(self._table, error, "the recordings are kept; the same command goes on") from error
        return rows

    def _arguments(self, task: Task) -> list[str]:
        settings = [part for value in (*self.fixed, *task.values) for part in ("--set", value)]
        return ["run", str(self.scenario), *settings, "-o", str(task.path)]

    def _slots(self) -> "SimpleQueue[dict[str, str]]":
        """The environment of each place where a run can be made: a GPU, or some cores."""
        from nbody import compute

        slots: SimpleQueue[dict[str, str]] = SimpleQueue()
        if self.cluster:
            for _ in range(min(self.jobs or MOST_JOBS, len(self.tasks))):
                slots.put({})
            return slots
        first = plan(Scenario.load(self.scenario, (*self.fixed, *self.tasks[0].values)), measure=False)
        cards = _cards() if first.engine_kind.can.device == "gpu" and not compute.SIMULATED else []
        cores = machine.cores()
        jobs = min(self.jobs or len(cards) or cores, len(self.tasks))
        for k in range(jobs):
            own_cores = {"NUMBA_NUM_THREADS": str(max(1, cores // jobs))}
            slots.put({"CUDA_VISIBLE_DEVICES": cards[k % len(cards)]} if cards else own_cores)
        return slots


def _varied(text: str) -> tuple[str, list[str]]:
    """The key and the values of ``KEY=VALUES``. Raises InputError."""
    key, _, listed = text.partition("=")
    if not listed.strip():
        raise InputError(f"--vary: must be KEY=VALUES, as in initial.seed=1..64 or gravity.length=0.01,0.02, got {text!a}")
    values = [each.strip() for each in re.split(r",(?![^\[{]*[\]}])", listed)]
    if (numbers := converted(f"--vary {key}: ", lambda text: range_of(text, MOST), listed)) is not None:
        values = list(map(str, numbers))
    for value in values:
        read_assignment(f"{key}={value}", "--vary")
    return key, values


def _cards() -> list[str]:
    """The GPUs, as CUDA_VISIBLE_DEVICES names them."""
    from nbody.compute import cuda

    given, count = os.environ.get("CUDA_VISIBLE_DEVICES", ""), len(cuda.gpus)
    names = given.split(",") if given else map(str, range(count))
    return [name.strip() for name in names][:count]  # numbers or UUIDs; CUDA ignores all behind the first wrong one


def _made(
    task: Task, arguments: list[str], start: Callable[..., int], slots: "SimpleQueue[dict[str, str]]", stop: StopRequest
) -> str:
    """Make a run, with further attempts if it fails. Returns a line about it."""
    environment, attempts, code = slots.get(), 0, 0
    try:
        while attempts < ATTEMPTS and code != InputError.exit_code:
            status = status_of(task.path)
            if stop.requested or status == "complete" or (status == "running" and not task.note.exists()):
                return f"{task.path}: {status}"
            before = _facts(task.path).get("steps", 0)
            code = start(task, arguments, 0 < attempts == ATTEMPTS - 1, environment, stop)
            if code != INTERRUPTED or _facts(task.path).get("steps", 0) <= before:  # a job's time limit is no failure
                attempts += 1
        status = status_of(task.path)
        return f"{task.path}: {status}" + ("" if status == "complete" else f": {_reason(task)}")
    except OSError as error:
        raise not_written(task.log, error, "the same command goes on") from error
    finally:
        slots.put(environment)


def _is_free(path: Path, planned: Plan) -> bool:
    """False if the file at ``path`` is a recording of something else than is planned. (Engine and precision may be chosen
    where a run is made.)"""
    try:
        with Trajectory(path) as run:
            found = run.resolved
    except NBodyError:  # none there; or damaged, and then it keeps a numbered name
        return True
    expected: Row = json.loads(json.dumps(with_schedule(planned.resolved(), written(planned.schedule))))
    chosen = {"engine": None, "precision": None}
    return found | chosen == expected | chosen


def _reason(task: Task) -> str:
    """The last line that a run printed; a value that varies was given by ``--vary``, not by ``--set``."""
    lines = task.log.read_text(errors="replace").strip().splitlines() if task.log.exists() else []
    line = lines[-1].removeprefix("error: ") if lines else "it printed nothing"
    for key in (value.partition("=")[0] for value in task.values):
        line = line.replace(f"--set {key}:", f"--vary {key}:")
    return line


def _row(task: Task) -> Row:
    row: Row = {"run": task.number, **dict(value.split("=", 1) for value in task.values)}
    begun = task.log.exists() or task.note.exists()
    status = "failed" if begun else "not started"
    empty: Row = {"status": status, **dict.fromkeys(("steps", "time", "energy_error", "wall_s"))}
    return {**row, **empty, **_facts(task.path), "file": str(task.path)}


def _facts(path: Path) -> Row:
    """What the table says about a recording; nothing if there is none."""
    try:
        with Trajectory(path) as run, one_line(path):
            energy = run.energy_balance()
            return {
                "status": run.status, "steps": int(run.step[-1]), "time": float(run.time[-1]),
                "energy_error": relative_energy_error(float(energy[-1]), float(energy[0])),
                "wall_s": round(run.provenance["wall_s"], 3),
            }  # fmt: skip
    except NBodyError:
        return {}
