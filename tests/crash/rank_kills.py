"""Several ranks of ``nbody run`` and ``nbody resume``: one of them or the launcher is killed, or gets a signal, at a random
moment; another number of ranks continues, until the file has the bits of a run of one process.

    python tests/crash/rank_kills.py [KILLS] [--seed S]
"""

import argparse
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from os import kill
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from test_ranks import SCENARIO, ended, launch, processes

from nbody import Scenario, Simulation, Trajectory
from nbody.errors import InputError
from nbody.trajectory import first_difference

LONGEST = 6.0
"""Seconds after the start within which something happens: while ranks import, prepare, compute, or end."""


def disturb(job, seen: Counter) -> None:
    """Kill or signal the launcher, or one of its ranks, if it has not ended."""
    after = random.uniform(0.2, LONGEST)
    time.sleep(after)
    ids = processes(job)
    what, number = random.choice(
        [("a rank", signal.SIGKILL)] * 3
        + [("a rank", signal.SIGTERM), ("a rank", signal.SIGINT), ("mpirun", signal.SIGINT)]
        + [("mpirun", signal.SIGTERM), ("mpirun", signal.SIGKILL)]
    )
    event = f"{signal.Signals(number).name} to {what}"
    try:
        kill(job.pid if what == "mpirun" else random.choice(ids), number)
    except (ProcessLookupError, IndexError):  # the ranks have not begun, or have ended
        job.communicate(timeout=100)
        return
    try:
        code = ended(job, ids)
    except BaseException:
        print(f"{event} after {after:.2f} s:", *job.communicate(), sep="\n", flush=True)
        raise
    seen[f"{event}: {code}"] += 1


def trial(folder: Path, seen: Counter) -> None:
    """One run, disturbed and continued until it is complete; then compared."""
    path, status = folder / "run.h5", ""
    while status != "complete":
        count = random.randint(2, 3)
        if path.exists():
            job = launch(count, "-m", "nbody", "resume", path, "--quiet")
        else:
            job = launch(count, "-m", "nbody", "run", folder / "long.yaml", "-o", path, "--quiet")
        disturb(job, seen)
        with suppress(InputError), Trajectory(path) as run:
            status = run.status
            assert run.verify() == [] and status in ("complete", "stopped", "killed"), status
            seen[f"left {status}"] += 1
    assert (difference := first_difference(folder / "whole.h5", path)) is None, difference
    path.unlink()
    left = {each.name for each in folder.iterdir()} - {"whole.h5", "long.yaml"}
    assert not left, left
    seen["compared"] += 1


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("kills", type=int, nargs="?", default=100)
    options.add_argument("--seed", type=int, default=int(time.time()))
    chosen = options.parse_args()
    random.seed(chosen.seed)
    print(f"seed {chosen.seed}", flush=True)
    seen: Counter = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = SCENARIO.replace("steps: 20", "steps: 6000").replace("every: 4", "every: 40")
        (folder / "long.yaml").write_text(text + "checkpoint: {minutes: 0.005}\n")
        Simulation(Scenario.load(folder / "long.yaml"), folder / "whole.h5").run()
        while sum(count for event, count in seen.items() if " to " in event) < chosen.kills:
            trial(folder, seen)
    print("\n".join(f"{count:4} {event}" for event, count in sorted(seen.items())))
