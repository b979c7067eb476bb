"""A run whose frames anyone can compute, that forgets nothing only if its checkpoints are exact: what the crash tests
record, kill and resume."""

import os
import struct
from pathlib import Path

import h5py
import numpy as np

from nbody.errors import InputError
from nbody.particles import Particles
from nbody.trajectory import Frame, RunHeader, Trajectory, TrajectoryWriter, read_checkpoint, state_bytes

COUNT, CHECKPOINT_EVERY = 500, 7  # 500 × 3 float32: a frame's rows span pages


def start() -> dict[str, np.ndarray]:
    """The state at step 0."""
    rng = np.random.default_rng(11)
    return {"x": rng.uniform(-1, 1, (COUNT, 3)), "k": np.array(0), "flag": np.array([True])}


def step(state: dict[str, np.ndarray]) -> None:
    """A chaotic map: one lost bit of x and all later frames are others."""
    state["x"][...] = 1.0 - 1.9 * state["x"] ** 2
    state["k"] += 1


def frame(state: dict[str, np.ndarray]) -> Frame:
    """The state as it is recorded, in float32."""
    x, k = state["x"].astype("f4"), int(state["k"])
    return Frame(k, 0.5 * k, x, -x, {"total_energy": float(k), "momentum": state["x"][0]})


def record(path: Path, frames: int, acknowledge=lambda count: None) -> None:
    """Record a run of ``frames`` frames, in groups of one to three, or go on with the one at ``path`` if it has a
    checkpoint."""
    state = start()
    try:
        checkpoint = read_checkpoint(path)
    except InputError:
        particles = Particles(np.ones(COUNT), state["x"], -state["x"])
        writer = TrajectoryWriter(path, particles, RunHeader(frames, state_bytes=state_bytes(state, {})), overwrite=True)
        writer.append(frame(state))
    else:
        writer = TrajectoryWriter.reopen(path, checkpoint)
        state = {name: np.array(array) for name, array in checkpoint.state.items()}
    with writer:
        while writer.frames < frames:
            if writer.frames % CHECKPOINT_EVERY == 1:
                writer.checkpoint(state, {"frames": writer.frames})
            before_checkpoint = (1 - writer.frames) % CHECKPOINT_EVERY or CHECKPOINT_EVERY
            group = []
            for _ in range(min(1 + writer.frames % 3, before_checkpoint, frames - writer.frames)):
                step(state)
                group.append(frame(state))
            writer.append_many(group)
            acknowledge(writer.frames)


def expected(frames: int) -> np.ndarray:
    """The positions of every frame, (frames, N, 3) float32."""
    state, found = start(), []
    for _ in range(frames):
        found.append(state["x"].astype("f4"))
        step(state)
    return np.array(found)


def check(path: Path, truth: np.ndarray) -> int:
    """Assert that any program can open ``path`` and that every frame in it is whole and true. Returns their number."""
    with h5py.File(path, "r") as file:
        position = file["particles/trajectory/position/value"]
        frames = len(position)
        for name in ("position/time", "position/step", "velocity/value"):
            assert len(file[f"particles/trajectory/{name}"]) >= frames
        assert (position[:] == truth[:frames]).all()
        assert len(file["VTKHDF/Points"]) >= frames * COUNT
    with Trajectory(path) as run:
        assert len(run) == frames and run.verify() == []
        assert (run.step == np.arange(frames)).all()
    return frames


def record_in_child(path: Path, frames: int) -> tuple[int, int]:
    """:func:`record` in a forked process. Returns its id, and the pipe in which it acknowledges each frame."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    status = 1
    try:
        from nbody.trajectory.writing import background

        background.SYNC_SECONDS = 0.01
        record(path, frames, lambda count: os.write(writing, struct.pack("<I", count)))
        status = 0
    finally:
        os._exit(status)


def last_acknowledged(pipe: int) -> int:
    """The last number in the pipe; 0 if there is none."""
    data = b""
    while block := os.read(pipe, 65536):
        data += block
    os.close(pipe)
    return struct.unpack_from("<I", data, len(data) - 4)[0] if data else 0
