"""``nbody run`` and ``nbody resume``, killed at random moments, and what a user does next: ``nbody info``, h5py, and
``nbody resume`` to the end, whose file is compared bit for bit with that of a run that was never interrupted.

    python tests/crash/command_kills.py [KILLS] [--engine E] [--particles N] [--steps N] [--workers W]

Each command is a fork of this process, which has everything imported and on a CPU the kernels loaded: so it takes
0.1 s instead of 2. On a GPU each has to make its own context and kernels (CUDA does not survive a fork): give it
several workers.
"""

import argparse
import contextlib
import gc
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

os.environ.setdefault("NUMBA_NUM_THREADS", "1")  # no threads that a fork would lose

import h5py

from nbody.cli import main
from nbody.errors import InputError
from nbody.repeat import resume as _imported_before_the_fork  # noqa: F401
from nbody.trajectory import Trajectory, first_difference

SCENARIO = """
initial: {{generator: plummer, particles: {particles}, seed: 5}}
gravity: {{softening: plummer, length: 0.05}}
integrator: {{dt: 0.001, steps: {steps}}}
engine: {engine}
record: {{every: 10}}
checkpoint: {{minutes: 0.0005}}
"""
POSITION, TIME = "particles/trajectory/position/value", "particles/trajectory/position/time"


def begin(*arguments: object, said: Path) -> int:
    """Start ``nbody ARGUMENTS`` in a forked process, with everything that it says in ``said``. Returns its id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        log = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        code = main([str(argument) for argument in arguments])
        sys.stdout.flush()
    finally:
        os._exit(code)


def ended(child: int) -> int:
    """The exit code of ``child``; minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_at_a_random_moment(child: int, path: Path, seconds: tuple[float, float], seen: Counter) -> tuple[int, int]:
    """Kill ``child``, which records to ``path``: now and then while it starts, mostly while it records. Returns how
    many frames there were just before, and its exit code. ``seconds``: of its start, and of its recording."""
    starting, recording = seconds
    moment = time.perf_counter() + random.uniform(0, starting)
    early = random.random() < 0.15
    before = path.stat().st_mtime_ns if path.exists() else 0
    while not (early and time.perf_counter() > moment) and not os.waitid(
        os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG
    ):
        if path.exists() and path.stat().st_mtime_ns != before:
            time.sleep(random.uniform(0, recording))
            break
        time.sleep(0.0005)
    frames = 0
    with contextlib.suppress(InputError), Trajectory(path) as run:  # it may be replaced at this very moment
        frames = len(run)
    os.kill(child, signal.SIGKILL)
    code = ended(child)
    assert code in (0, -signal.SIGKILL), (path.parent / "said").read_text()
    seen["kills"] += code != 0
    return (0 if early and path.exists() and not before else frames), code


def look(path: Path, at_least: int) -> dict:
    """What ``nbody info`` says of ``path``, with every frame verified; h5py must open it too."""
    said = path.with_name("info")
    assert ended(begin("info", path, "--verify", "--json", said=said)) == 0, said.read_text()
    found = json.loads(said.read_text())
    with h5py.File(path) as file:
        assert len(file[POSITION]) == found["frames"] <= len(file[TIME])
    assert not found["damaged"] and found["frames"] >= at_least, (found, at_least)
    return found


def trial(folder: Path, seconds: tuple[float, float], seen: Counter) -> None:
    """One run, killed and resumed, and sometimes the resumed run again, until it ends; then compared."""
    path, said = folder / "run.h5", folder / "said"
    child = begin("run", folder / "run.yaml", "--quiet", "-o", path, said=said)
    frames, code = kill_at_a_random_moment(child, path, seconds, seen)
    while code:
        if not path.exists():
            assert not frames
            seen["before the file appeared"] += 1
            child = begin("run", folder / "run.yaml", "--quiet", "-o", path, said=said)
        else:
            found = look(path, frames)
            assert found["status"] in ("killed", "complete"), found["status"]
            seen["resumed"] += 1
            child = begin("resume", path, said=said)
        if random.random() < 0.3:
            frames, code = kill_at_a_random_moment(child, path, seconds, seen)
        else:
            code = ended(child)
            assert code == 0, said.read_text()
    assert look(path, 1)["status"] == "complete"
    assert (difference := first_difference(folder.parent / "whole.h5", path)) is None, difference
    seen["ended with the same bits"] += 1
    path.unlink()
    left = sorted(set(os.listdir(folder)) - {"run.yaml", "said", "info"})
    assert not left, left


def work(folder: Path, kills: int, seed: int, seconds: tuple[float, float]) -> Counter:
    """Trials until so many kills have hit."""
    random.seed(seed)
    seen: Counter = Counter()
    folder.mkdir()
    (folder / "run.yaml").write_text((folder.parent / "run.yaml").read_text())
    while seen["kills"] < kills:
        trial(folder, seconds, seen)
    return seen


def share(folder: Path, kills: int, workers: int, seconds: tuple[float, float], seed: int) -> Counter:
    """:func:`work` by so many processes at a time."""
    children = []
    for k in range(workers):
        child = os.fork()
        if not child:
            code = 1
            try:
                seen = work(folder / f"worker{k}", -(-kills // workers), seed + k, seconds)
                (folder / f"seen{k}").write_text(json.dumps(seen))
                code = 0
            except BaseException as error:
                print(f"worker {k}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            finally:
                os._exit(code)
        children.append(child)
    codes = [ended(child) for child in children]
    found = [Counter(json.loads((folder / f"seen{k}").read_text())) for k, code in enumerate(codes) if not code]
    total = sum(found, Counter())
    total["workers that found something wrong"] = len(codes) - len(found)
    return total


def kill_commands(folder: Path, kills: int, options: argparse.Namespace) -> Counter:
    """Kill ``kills`` commands. Returns counts of what was seen."""
    (folder / "run.yaml").write_text(SCENARIO.format(**vars(options)))
    whole, said = folder / "whole.h5", folder / "said"
    arguments = ("run", folder / "run.yaml", "--quiet", "--overwrite", "-o", whole)
    if not options.engine.startswith("gpu"):
        with open(said, "w") as log, contextlib.redirect_stdout(log):
            assert main([str(argument) for argument in arguments]) == 0  # in this process: now it has the kernels
    gc.freeze()  # so that collections in the forks do not copy this process's memory
    begun, appeared = time.perf_counter(), 0.0
    whole.unlink(missing_ok=True)
    child = begin(*arguments, said=said)
    while not appeared and time.perf_counter() - begun < 120:
        appeared = whole.exists() and time.perf_counter() - begun
    assert ended(child) == 0, said.read_text()
    seconds = appeared, time.perf_counter() - begun - appeared
    print(f"a run takes {seconds[0]:.3f} s until its file is there, and {seconds[1]:.3f} s more", flush=True)
    return share(folder, kills, options.workers, seconds, options.seed)


def parse(arguments: list[str]) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kills", type=int, nargs="?", default=1000)
    parser.add_argument("--engine", default="cpu")
    parser.add_argument("--particles", type=int, default=64)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    chosen = parse(sys.argv[1:])
    with tempfile.TemporaryDirectory() as name:
        began = time.perf_counter()
        counts = kill_commands(Path(name), chosen.kills, chosen)
        print(f"{chosen.engine}: {dict(counts)}, {time.perf_counter() - began:.0f} s")
    sys.exit(bool(counts["workers that found something wrong"]))
