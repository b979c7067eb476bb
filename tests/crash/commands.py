"""Starts ``nbody`` commands quickly, so that many can be killed, interrupted and looked at.

Each command is a fork of this process, which has everything imported and on a CPU the kernels loaded: so it takes
0.1 s instead of 2. On a GPU each has to make its own context and kernels (CUDA does not survive a fork): give it
several workers.
"""

import argparse
import contextlib
import gc
import json
import math
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("NUMBA_NUM_THREADS", "1")  # no threads that a fork would lose

import h5py

from nbody.cli import main
from nbody.forces import ENGINES
from nbody.run.resume import resume as _imported_before_the_fork  # noqa: F401
from nbody.trajectory import first_difference

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and so would the runs

SCENARIO = """
initial: {{generator: plummer, particles: {particles}, seed: 5}}
gravity: {{softening: plummer, length: 0.05}}
integrator: {{dt: 0.001, steps: {steps}}}
engine: {engine}
record: {{every: 10}}
checkpoint: {{minutes: 0.0005}}
"""
POSITION, TIME = "particles/trajectory/position/value", "particles/trajectory/position/time"


@dataclass
class Bench:
    """Where the commands run: a folder with ``run.yaml``, beside that of ``whole.h5``, a run that nobody disturbed.

    ``starting`` and ``recording``: how many seconds that run took until its file was there, and from then on. ``until``:
    when to begin nothing new.
    """

    folder: Path
    starting: float
    recording: float
    until: float = math.inf

    def in_time(self) -> bool:
        """True while there is time for more."""
        return time.perf_counter() < self.until

    @property
    def path(self) -> Path:
        """The recording."""
        return self.folder / "run.h5"

    def said(self) -> str:
        """What the latest command had to say."""
        return (self.folder / "said").read_text()

    def begin(self, *arguments: object) -> int:
        """Start ``nbody ARGUMENTS``. Returns the id of its process."""
        return begin(*arguments, said=self.folder / "said")

    def begin_run(self) -> int:
        """Start ``nbody run``."""
        return self.begin("run", self.folder / "run.yaml", "--quiet", "-o", self.path)

    def wait_for_file(self, child: int, before: int = 0, seconds: float = 60.0) -> bool:
        """Wait until the file is there (if it was: has another time than ``before``), ``child`` has ended, or so many
        seconds have passed. Returns whether the first is so."""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end and not os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG):
            if self.changed() != before:
                return True
            time.sleep(0.0005)
        return False

    def changed(self) -> int:
        """When the file was last written to; 0 if there is none."""
        return self.path.stat().st_mtime_ns if self.path.exists() else 0

    def look(self, at_least: int = 1) -> dict:
        """What ``nbody info`` says of the recording, with every frame verified; h5py must open it too."""
        assert ended(begin("info", self.path, "--verify", "--json", said=self.folder / "info")) == 0
        found = json.loads((self.folder / "info").read_text())
        with h5py.File(self.path) as file:
            assert len(file[POSITION]) == found["frames"] <= len(file[TIME])
        assert not found["damaged"] and found["frames"] >= at_least, (found, at_least)
        return found

    def compare(self) -> None:
        """Assert that the recording is whole and has the bits of the one that nobody disturbed; remove it."""
        assert self.look()["status"] == "complete"
        assert (difference := first_difference(self.folder.parent / "whole.h5", self.path)) is None, difference
        self.path.unlink()
        left = sorted(set(os.listdir(self.folder)) - {"run.yaml", "said", "info"})
        assert not left, left


def begin(*arguments: object, said: Path) -> int:
    """Start ``nbody ARGUMENTS`` in a forked process, with everything that it says in ``said``. Returns its id."""
    child = os.fork()
    if child:
        return child
    code, begun = 1, False
    try:
        log = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        begun = True
        code = main([str(argument) for argument in arguments])
        sys.stdout.flush()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and not begun:
            code = 130  # there is no command yet to answer it
        else:
            traceback.print_exc()
    finally:
        os._exit(code)


def ended(child: int) -> int:
    """The exit code of ``child``; minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def undisturbed(folder: Path, options: argparse.Namespace) -> tuple[float, float]:
    """Make ``run.yaml`` and ``whole.h5``. Returns the seconds of its start and of its recording."""
    (folder / "run.yaml").write_text(SCENARIO.format(**vars(options)))
    whole, said = folder / "whole.h5", folder / "said"
    arguments = ("run", folder / "run.yaml", "--quiet", "--overwrite", "-o", whole)
    if not options.engine.startswith("gpu"):
        with open(said, "w") as log, contextlib.redirect_stdout(log):
            assert main([str(argument) for argument in arguments]) == 0  # in this process: now it has the kernels
        whole.unlink()
    else:
        ENGINES.load(options.engine)
    gc.freeze()  # so that collections in the forks do not copy this process's memory
    begun = time.perf_counter()
    bench = Bench(folder, 0, 0)
    child = begin(*arguments, said=said)
    while not whole.exists() and not os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG):
        time.sleep(0.0005)
    appeared = time.perf_counter() - begun
    assert ended(child) == 0, bench.said()
    return appeared, time.perf_counter() - begun - appeared


def in_parallel(folder: Path, options: argparse.Namespace, work: Callable[[Bench, int], Counter]) -> Counter:
    """``work(bench, count)`` in so many processes, sharing out ``options.count``. Returns the sum of what they saw; of
    what begins with ``slowest``, the largest."""
    until = time.perf_counter() + options.seconds
    starting, recording = undisturbed(folder, options)
    print(f"a run takes {starting:.3f} s until its file is there, and {recording:.3f} s more", flush=True)
    children = []
    for k in range(options.workers):
        child = os.fork()
        if not child:
            code = 1
            try:
                random.seed(options.seed + k)
                bench = Bench(folder / f"worker{k}", starting, recording, until)
                bench.folder.mkdir()
                (bench.folder / "run.yaml").write_text((folder / "run.yaml").read_text())
                (folder / f"seen{k}").write_text(json.dumps(work(bench, -(-options.count // options.workers))))
                code = 0
            except BaseException as error:
                traceback.print_exception(error)
                sys.stderr.flush()
            finally:
                os._exit(code)
        children.append(child)
    codes = [ended(child) for child in children]
    found = [Counter(json.loads((folder / f"seen{k}").read_text())) for k, code in enumerate(codes) if not code]
    total = sum(found, Counter())
    for key in filter(lambda key: key.startswith("slowest"), total):
        total[key] = max(seen[key] for seen in found)
    total["workers that found something wrong"] = len(codes) - len(found)
    return total


def script(trial: Callable[[Bench, Counter], None], counted: str, count: int) -> None:
    """The main function of a script: trials :func:`in_parallel` until so many of what is ``counted`` were seen, or the time
    is up; with the options of its command line. Prints what was seen."""

    def work(bench: Bench, most: int) -> Counter:
        seen: Counter = Counter()
        while seen[counted] < most and bench.in_time():
            trial(bench, seen)
        return seen

    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int, nargs="?", default=count)
    parser.add_argument("--engine", default="cpu")
    parser.add_argument("--particles", type=int, default=64)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin nothing new after these")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        began = time.perf_counter()
        counts = in_parallel(Path(name), options, work)
        print(f"{options.engine}: {dict(counts)}, {time.perf_counter() - began:.0f} s")
    sys.exit(bool(counts["workers that found something wrong"]))
