"""One attempt at a run of a sweep, in a process of its own: here, or within a job of a cluster."""

import signal
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from nbody.child import python
from nbody.errors import NBodyError
from nbody.run.signals import StopRequest
from nbody.trajectory import Trajectory


class Task(NamedTuple):
    """One run: its number, the values that differ (``KEY=VALUE``), and its recording."""

    number: int
    values: tuple[str, ...]
    path: Path


def attempt(
    task: Task,
    arguments: list[str],
    fresh: bool,
    environment: dict[str, str],
    stop: StopRequest,
    prepare: Callable[[], object] | None = None,
) -> int:
    """Resume a run, or begin it: if there is nothing to resume, or ``fresh``. Its process calls ``prepare`` first. Returns
    the exit code."""
    status = status_of(task.path)
    if status in ("complete", "running"):
        return 0
    go_on = ["resume", str(task.path)] if status in ("stopped", "killed") and not fresh else arguments
    command = python("-m", "nbody", *go_on, "--quiet", "--json", **environment)
    begun = partial(subprocess.Popen, **command, start_new_session=True, preexec_fn=prepare)
    return _process(log_of(task), begun, stop)


def _process(log: Path, begun: Callable[..., Any], stop: StopRequest) -> int:
    """Run a process with its output in a file, and return its exit code. A requested stop is passed on, once."""
    with log.open("w") as file:
        child = begun(stdout=file, stderr=file)
        passed_on = False
        while True:
            try:
                return child.wait(0.2)
            except subprocess.TimeoutExpired:
                if stop.requested and not passed_on:
                    passed_on = True
                    child.send_signal(signal.SIGINT)


def log_of(task: Task) -> Path:
    """The file with what the run printed."""
    return task.path.with_suffix(".log")


def status_of(path: Path) -> str:
    """The status of a recording (:attr:`Trajectory.status`); ``failed`` if there is none."""
    try:
        with Trajectory(path) as run:
            return run.status
    except NBodyError:
        return "failed"
