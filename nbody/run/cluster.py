"""One attempt at a run of a sweep, in a process of its own: here, or within a job that submitit submits to Slurm.

submitit and not Dask: a run is one long command, not a graph of short functions. A Slurm job per run waits in the cluster's
queue with the resources of one run, goes on when the sweep or its node is lost, and is found again by its number. Dask's
workers are jobs that hold a connection to a scheduler in the sweep's process, and end with it.
"""

import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nbody import install
from nbody.child import python
from nbody.errors import InputError, NBodyError, did_you_mean, printable
from nbody.run.signals import StopRequest
from nbody.trajectory import Trajectory
from nbody.whole_file import whole_file

CLUSTERS = ("slurm", "local")
TASKS = ("nodes", "ntasks", "n", "N", "array", "a")
"""Options of sbatch that would start several processes; ``ntasks`` also as ``ntasks-per-node`` and the like."""

WARNINGS = (signal.SIGUSR2, signal.SIGTERM)
"""What a job gets before its time limit, and at its limit or when it is cancelled."""

POLL_SECONDS = 1.0
CANCEL_SECONDS = 60.0
"""How long a cancelled job is waited for."""


class Task(NamedTuple):
    """One run: its number, the values that differ (``KEY=VALUE``), and its recording."""

    number: int
    values: tuple[str, ...]
    path: Path

    @property
    def log(self) -> Path:
        """The file with what the run printed."""
        return self.path.with_suffix(".log")

    @property
    def note(self) -> Path:
        """The file with the number of the run's job on the cluster, while that waits or runs."""
        return self.path.with_suffix(".job")


def attempt(
    task: Task,
    arguments: list[str],
    fresh: bool,
    environment: dict[str, str],
    stop: StopRequest,
    prepare: Callable[[], object] | None = None,
) -> int:
    """Resume a run, or begin it: if there is nothing to resume, or ``fresh``. Its process calls ``prepare`` first, and a
    requested stop is passed on to it. Returns the exit code."""
    status = status_of(task.path)
    if status in ("complete", "running"):
        return 0
    go_on = ["resume", str(task.path)] if status in ("stopped", "killed") and not fresh else arguments
    command = python("-m", "nbody", *go_on, "--quiet", "--json", **environment)
    with task.log.open("w") as log:
        child = subprocess.Popen(**command, stdout=log, stderr=log, start_new_session=True, preexec_fn=prepare)
        passed_on = False
        while True:
            try:
                return child.wait(0.2)
            except subprocess.TimeoutExpired:
                if stop.requested and not passed_on:
                    passed_on = True
                    child.send_signal(signal.SIGINT)


def status_of(path: Path) -> str:
    """The status of a recording (:attr:`Trajectory.status`); ``failed`` if there is none."""
    try:
        with Trajectory(path) as run:
            return run.status
    except NBodyError:
        return "failed"


# --- Jobs ---


def job(task: Task, arguments: list[str], fresh: bool) -> int:
    """One attempt at a run, within a job. The cluster's warning before the time limit stops the run with a checkpoint."""
    stop = StopRequest()

    def ask(number: int, frame: Any) -> None:
        stop.requested = True  # however often: SIGUSR2 comes before the time limit, SIGTERM at the limit

    for number in (*WARNINGS, signal.SIGINT):
        signal.signal(number, ask)
    return attempt(task, arguments, fresh, {}, stop, _ignore_warnings)


def _ignore_warnings() -> None:
    """Slurm sends its signals to all processes of a job, and the job passes one on to its run."""
    for number in WARNINGS:
        signal.signal(number, signal.SIG_IGN)


class Cluster:
    """Where jobs are submitted.

    Args:
        name: ``slurm``; ``local``, without a cluster: jobs are processes of this machine, as for tests.
        options: ``KEY=VALUE`` of ``sbatch``, long names without dashes in front: ``time=2:00:00``, ``gpus-per-node=1``.
        folder: where submitit writes its files. All nodes must see it.

    Raises:
        InputError: submitit or Slurm is missing, or an option is wrong.
    """

    def __init__(self, name: str, options: Sequence[str], folder: Path) -> None:
        if name not in CLUSTERS:
            raise InputError(f"--cluster: unknown cluster {name!a}{did_you_mean(name, CLUSTERS)}; use slurm or local")
        try:
            import submitit
        except ImportError:
            raise InputError(f"--cluster needs submitit; install it with: {install.install_extra('cluster')}") from None
        pairs = dict(option.partition("=")[::2] for option in options)
        if not all(key and value for key, value in pairs.items()):
            raise InputError("--cluster-option: must be KEY=VALUE, as in partition=gpu or time=2:00:00")
        pairs = {key.replace("_", "-"): value for key, value in pairs.items()}
        if several := [key for key, value in pairs.items() if value != "1" and (key in TASKS or key.startswith("ntasks"))]:
            raise InputError(f"--cluster-option {several[0]}: each run of a sweep is one process; leave it out")
        if name == "slurm" and "time" not in pairs:
            raise InputError("--cluster slurm needs the time limit of a job: --cluster-option time=2:00:00")
        if name == "slurm" and not shutil.which("srun"):
            raise InputError(
                "--cluster slurm: there is no Slurm here ('srun' is not found); leave --cluster out to run on this machine, "
                "or start the sweep on a machine that submits jobs"
            )
        setup = ["export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK"] if "cpus-per-task" in pairs else []
        try:
            of_python = {f"{name}_python": shlex.join([sys.executable, "-P"])}  # see nbody/child.py
            self._executor = submitit.AutoExecutor(folder.absolute(), cluster=name, **of_python)
            self._executor.update_parameters(
                name="nbody", local_timeout_min=10**6, slurm_additional_parameters=pairs, slurm_setup=setup
            )
        except RuntimeError as error:
            raise InputError(f"--cluster {name}: {error}") from None
        self._folder, self._lock = folder.absolute(), threading.Lock()

    def attempt(self, task: Task, arguments: list[str], fresh: bool, environment: Any, stop: StopRequest) -> int:
        """:func:`attempt` as a job: the one that an earlier sweep submitted, or a new one. Returns the
        exit code, 1 if the job was lost. A requested stop cancels the job. Raises InputError: no job could be submitted."""
        note = task.note
        with self._lock:  # submitit's objects are not made for threads
            if note.exists():
                made = self._executor._executor.job_class(self._folder, note.read_text())
            else:
                try:
                    made = self._executor.submit(job, task, arguments, fresh)
                except RuntimeError as error:
                    reason = str(error).strip().splitlines()[-1]
                    raise InputError(f"--cluster: the job was refused: {printable(reason)}") from None
                with whole_file(note) as draft:
                    draft.write_text(made.job_id)
        cancelled = 0.0
        while not self._done(made, cancelled):
            if stop.requested and not cancelled:
                cancelled = time.monotonic()
                with self._lock:
                    made.cancel(check=False)
            time.sleep(POLL_SECONDS)
        note.unlink(missing_ok=True)
        if cancelled:
            return 130
        return 1 if made.exception() else int(made.result())

    def _done(self, made: Any, cancelled: float) -> bool:
        if cancelled and time.monotonic() > cancelled + CANCEL_SECONDS:
            return True  # without Slurm's accounting the end of a job is unknown
        with self._lock:
            return bool(made.done(force_check=bool(cancelled)))
