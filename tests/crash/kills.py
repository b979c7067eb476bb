"""SIGKILL at random moments, resuming each time: ``python tests/crash/kills.py [KILLS]``."""

import os
import random
import select
import signal
import sys
import tempfile
import time
from pathlib import Path

import chaos

from nbody.trajectory import Trajectory
from nbody.trajectory.reading.difference import first_difference

FRAMES = 400


def kill_and_resume(folder: Path, kills: int, seed: int = 1) -> dict[str, int]:
    """Kill runs until ``kills`` have hit, resuming each; every run that ends is compared with one never interrupted.

    Asserts that each file opens, that every frame in it is whole, that no acknowledged frame is lost, and that what
    ended has the same bits. Returns counts of what was seen.
    """
    random.seed(seed)
    chaos.record(folder / "whole.h5", FRAMES)
    truth, path = chaos.expected(FRAMES), folder / "run.h5"
    seen = dict.fromkeys(("kills", "before the file appeared", "runs that ended", "frames acknowledged"), 0)
    while seen["kills"] < kills:
        child, pipe = chaos.record_in_child(path, FRAMES)
        if random.random() < 0.8:
            select.select([pipe], [], [], 60.0)  # until it records
        time.sleep(random.uniform(0, 0.04))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        acknowledged = chaos.last_acknowledged(pipe)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        seen["kills"] += os.WIFSIGNALED(status)
        seen["frames acknowledged"] += acknowledged
        if not path.exists():
            assert not acknowledged
            seen["before the file appeared"] += 1
            continue
        assert chaos.check(path, truth) >= acknowledged
        with Trajectory(path) as run:
            ended = run.complete
        if ended:
            assert first_difference(path, folder / "whole.h5") is None
            seen["runs that ended"] += 1
            path.unlink()
    chaos.record(path, FRAMES)
    assert first_difference(path, folder / "whole.h5") is None
    return seen


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        began = time.perf_counter()
        print(kill_and_resume(Path(name), int([*sys.argv, "1000"][1])), f"{time.perf_counter() - began:.0f} s")
