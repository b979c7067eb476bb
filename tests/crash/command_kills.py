"""``nbody run`` and ``nbody resume``, killed at random moments, and what a user does next: ``nbody info``, h5py, and
``nbody resume`` to the end, whose file is compared bit for bit with that of a run that was never interrupted.

    python tests/crash/command_kills.py [KILLS] [--engine E] [--particles N] [--steps N] [--workers W] [--seconds S]
"""

import contextlib
import os
import random
import signal
import time
from collections import Counter

import commands
from commands import Bench

from nbody.errors import InputError
from nbody.trajectory import Trajectory


def kill(bench: Bench, child: int, before: int, seen: Counter) -> tuple[int, int]:
    """Kill ``child``: now and then while it starts, mostly while it records. Returns how many frames there were just
    before, and its exit code. ``before``: when the file was changed before the child began."""
    if random.random() < 0.15:
        bench.wait_for_file(child, before, random.uniform(0, bench.starting))
    elif bench.wait_for_file(child, before):
        time.sleep(random.uniform(0, bench.recording))
    frames = 0
    if not before:  # (a resumed run drops the frames after its checkpoint, before it records them again)
        with contextlib.suppress(InputError), Trajectory(bench.path) as run:
            frames = len(run)
    os.kill(child, signal.SIGKILL)
    code = commands.ended(child)
    assert code in (0, -signal.SIGKILL), bench.said()
    seen["kills"] += code != 0
    return frames, code


def trial(bench: Bench, seen: Counter) -> None:
    """One run, killed and resumed, and sometimes the resumed run again, until it ends; then compared."""
    frames, code = kill(bench, bench.begin_run(), 0, seen)
    while code:
        before = bench.changed()
        if not before:
            assert not frames
            seen["before the file appeared"] += 1
            child = bench.begin_run()
        else:
            assert bench.look(frames)["status"] in ("killed", "complete")
            seen["resumed"] += 1
            child = bench.begin("resume", bench.path)
        if random.random() < 0.3:
            frames, code = kill(bench, child, before, seen)
        else:
            code = commands.ended(child)
            assert code == 0, bench.said()
    bench.compare()
    seen["ended with the same bits"] += 1


if __name__ == "__main__":
    commands.script(trial, "kills", count=1000)
