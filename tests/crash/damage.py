"""Flipped bits and a full disk: ``python tests/crash/damage.py [FLIPS]``."""

import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import chaos
import numpy as np

from nbody.errors import InputError, RunFailed
from nbody.particles import Particles
from nbody.trajectory import RunHeader, Trajectory, TrajectoryWriter
from nbody.trajectory.writing.framefile import FrameFile

FRAMES = 6


def flip_bits(folder: Path, flips: int, seed: int = 3) -> int:
    """Flip one bit of a recorded frame, ``flips`` times; assert that ``verify`` names just that frame, and that reading
    a position or velocity whose bit it was refuses. Returns how many were reported."""
    random.seed(seed)
    path = folder / "run.h5"
    chaos.record(path, FRAMES)
    file = FrameFile(path)
    names = list(file.rows)
    weights = [file.rows[name].row_bytes for name in names]
    reported = 0
    for _ in range(flips):
        rows = file.rows[random.choice([*random.choices(names, weights), random.choice(names)])]
        frame, byte = random.randrange(FRAMES), random.randrange(rows.row_bytes)
        at = rows.offset + frame * rows.row_bytes + byte
        was = os.pread(file.fd, 1, at)
        os.pwrite(file.fd, bytes([was[0] ^ 1 << random.randrange(8)]), at)
        with Trajectory(path) as run:
            found = run.verify()
        assert found and all(line.startswith(f"frame {frame}:") for line in found), found
        reported += 1
        os.pwrite(file.fd, was, at)
    file.close()
    with Trajectory(path) as run:
        assert run.verify() == []
    return reported


@contextmanager
def small_disk(folder: Path, size: int):
    """A file system of ``size`` bytes at ``folder``. Raises OSError where this user may not mount one."""
    folder.mkdir(exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        raise OSError(mounted.stderr.decode())
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def fill_disks(folder: Path, sizes: int, spread: int = 20_000) -> dict[str, int]:
    """Record on ``sizes`` disks, each ``spread`` bytes larger than the last, with and without the room set aside
    beforehand; assert that it ends in one clear line and that what was recorded is whole. Returns how the runs ended.
    """
    truth = chaos.expected(100)
    ends: dict[str, int] = {}
    for k in range(sizes):
        for reserve in (True, False):
            with small_disk(folder / "disk", 200_000 + spread * k) as disk:
                end = _record_until_full(disk / "run.h5", truth, reserve)
            ends[end] = ends.get(end, 0) + 1
    return ends


def _record_until_full(path: Path, truth: np.ndarray, reserve: bool) -> str:
    state = chaos.start()
    patches = (
        ()
        if reserve
        else (mock.patch.object(FrameFile, "reserve"), mock.patch("nbody.trajectory.writing.output_path.check_space"))
    )
    try:
        for patch in patches:
            patch.start()
        with TrajectoryWriter(path, Particles(np.ones(chaos.COUNT), state["x"], state["x"]), RunHeader(100)) as writer:
            for _ in range(25):
                group = []
                for _ in range(4):
                    group.append(chaos.frame(state))
                    chaos.step(state)
                writer.append_many(group)
    except InputError as error:
        assert "\n" not in str(error) and not os.listdir(path.parent), os.listdir(path.parent)
        return "refused before it began"
    except RunFailed as error:
        assert "\n" not in str(error) and "No space left" in str(error)
        if not path.exists():
            assert not os.listdir(path.parent)
            return "failed before the first frame"
        assert chaos.check(path, truth) >= 1
        return "failed in between, the frames whole"
    finally:
        mock.patch.stopall()
    assert chaos.check(path, truth) == 100
    return "fitted"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        began = time.perf_counter()
        print(flip_bits(Path(name), int([*sys.argv, "1000"][1])), "flipped bits, all reported")
        try:
            print(fill_disks(Path(name), 100))
        except OSError as error:
            print("no disk of a chosen size can be mounted here:", error)
        print(f"{time.perf_counter() - began:.0f} s")
