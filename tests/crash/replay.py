"""Every write of a run, replayed: a crash after each of them, page splits included, and power cuts that lose any part
of what the disk had not confirmed: ``python tests/crash/replay.py [POWER_CUTS]``."""

import os
import random
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

import chaos

from nbody.trajectory import Trajectory, TrajectoryWriter, read_checkpoint
from nbody.trajectory.reading.difference import first_difference

FRAMES, PAGE = 20, 4096
SYNCED = None
"""What the log has where the disk confirmed everything before."""


@contextmanager
def logged(log: list, path: Path):
    """Within this block, writes to the file at ``path`` are appended to ``log`` as (offset, bytes), page by page."""
    pwritev, fdatasync = os.pwritev, os.fdatasync

    def is_it(fd: int) -> bool:
        return path.exists() and os.path.samestat(os.fstat(fd), path.stat())

    def log_write(fd, parts, offset):
        if is_it(fd):
            raw, at = b"".join(parts), 0
            while at < len(raw):
                end = min(len(raw), at + PAGE - (offset + at) % PAGE)
                log.append((offset + at, raw[at:end]))
                at = end
        return pwritev(fd, parts, offset)

    def log_sync(fd):
        fdatasync(fd)
        if is_it(fd):
            log.append(SYNCED)

    with mock.patch("os.pwritev", log_write), mock.patch("os.fdatasync", log_sync):
        yield


def log_of_a_run(folder: Path, frames: int = FRAMES) -> tuple[Path, list]:
    """A run that breaks off, goes on from its last checkpoint and ends. Returns the file as it first appeared, and all
    writes since."""
    path, base, log = folder / "run.h5", folder / "base.h5", []
    publish = TrajectoryWriter._publish

    def publish_and_copy(writer: TrajectoryWriter) -> None:
        publish(writer)
        shutil.copyfile(path, base)

    with ExitStack() as stack:
        stack.enter_context(logged(log, path))
        stack.enter_context(mock.patch.object(TrajectoryWriter, "_publish", publish_and_copy))

        def break_off(count: int) -> None:
            if count >= frames // 2:  # some frames after a checkpoint
                raise KeyboardInterrupt

        try:
            chaos.record(path, frames, break_off)
        except KeyboardInterrupt:
            chaos.record(path, frames)
    assert not list(folder.glob("*.lock"))
    return base, log


def replay_every_write(folder: Path, frames: int = FRAMES) -> int:
    """Assert that the file is good after each single write. Returns how many states were checked."""
    truth = chaos.expected(frames)
    base, log = log_of_a_run(folder, frames)
    states = 0
    with open(base, "r+b", buffering=0) as file:
        for offset, raw in filter(None, log):
            os.pwrite(file.fileno(), raw, offset)
            chaos.check(base, truth)
            states += 1
    assert first_difference(base, folder / "run.h5") is None
    return states


def replay_second_crashes(folder: Path, frames: int = FRAMES, writes: int = 16) -> int:
    """Assert that the file is good after a crash behind each single write, and another behind each of the first
    ``writes`` of the run that goes on with it, by which it drops frames. Returns how many
    states were checked: those that a write changed."""
    truth = chaos.expected(frames)
    base, log = log_of_a_run(folder, frames)
    going_on, twice, states = folder / "going_on.h5", folder / "twice.h5", 0
    with open(base, "r+b", buffering=0) as file:
        for offset, raw in filter(None, log):
            os.pwrite(file.fileno(), raw, offset)
            shutil.copyfile(base, going_on)
            shutil.copyfile(base, twice)
            second: list = []
            with logged(second, going_on):
                chaos.record(going_on, frames)
            with open(twice, "r+b", buffering=0) as crashed:
                for at, again in list(filter(None, second))[:writes]:
                    if os.pread(crashed.fileno(), len(again), at) != again:
                        os.pwrite(crashed.fileno(), again, at)
                        chaos.check(twice, truth)
                        states += 1
    return states


def cut_the_power(folder: Path, cuts: int, seed: int = 2) -> int:
    """Assert that after each of ``cuts`` power cuts the confirmed frames are whole and the run can be resumed to the
    same bits. A cut loses any of the pages written since the last confirmation. Returns the number of lost pages."""
    random.seed(seed)
    truth = chaos.expected(FRAMES)
    base, log = log_of_a_run(folder)
    after, lost = folder / "after.h5", 0
    for _ in range(cuts):
        moment = random.randrange(len(log) + 1)
        confirmed = max((k for k in range(moment) if log[k] is SYNCED), default=0)
        keep = random.choice((0.0, 0.1, 0.5, 0.9))
        shutil.copyfile(base, after)
        with open(after, "r+b", buffering=0) as file:
            for k in range(moment):
                if log[k] is not SYNCED and (k < confirmed or random.random() < keep):
                    os.pwrite(file.fileno(), log[k][1], log[k][0])
                else:
                    lost += log[k] is not SYNCED
        with Trajectory(after) as run:
            synced = int(run._commit()["synced"][0])
            frames = max(1, min(synced, len(run)))
            assert len(run) >= min(synced, 1)
            assert all((run.position[k] == truth[k]).all() for k in range(frames))
        if _has_checkpoint(log, confirmed):
            checkpoint = read_checkpoint(after)
            with Trajectory(after) as run:
                assert len(run) >= checkpoint.frames
                assert all((run.position[k] == truth[k]).all() for k in range(checkpoint.frames))
        chaos.record(after, FRAMES)
        assert first_difference(after, folder / "run.h5") is None
    return lost


def _has_checkpoint(log: list, confirmed: int) -> bool:
    return any(entry is not SYNCED and b"nbodyck1" in entry[1] for entry in log[:confirmed])


if __name__ == "__main__":
    for what, work in (
        ("states after a single write, all good", replay_every_write),
        ("states after two of them, all good", replay_second_crashes),
        ("pages lost in power cuts", lambda folder: cut_the_power(folder, int([*sys.argv, "1500"][1]))),
    ):
        with tempfile.TemporaryDirectory() as name:
            began = time.perf_counter()
            print(work(Path(name)), what, f"{time.perf_counter() - began:.0f} s")
