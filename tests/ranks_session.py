"""What ranks do in :mod:`test_ranks`: ``mpirun -n 3 python ranks_session.py CASES FOLDER``; rank k writes ``k.json``."""

import errno
import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
from stepping import after_steps

from nbody.errors import InputError, NBodyError
from nbody.parallel import team


def values(ranks, folder):
    """What each rank has after exchanges of values and rows."""
    said = [ranks.broadcast({"from": ranks.rank}), ranks.allgather(ranks.rank**2)]
    bounds = ranks.bounds(1001)
    first, last = ranks.own_range(1001)
    rows = np.zeros((1001, 3))
    rows[first:last] = np.arange(first, last)[:, None]
    ranks.gather_rows(rows, bounds)
    blocks = [np.full((q + 2, 3), 10 * ranks.rank + q, np.float32) for q in range(ranks.size)]
    found = ranks.exchange(blocks)
    of_senders = [np.zeros((p + 1, 2)) for p in range(ranks.size)]  # as many rows as the sender wants
    ranks.exchange([np.full((ranks.rank + 1, 2), 10.0 * ranks.rank + q) for q in range(ranks.size)], of_senders)
    assert all((block == 10 * p + ranks.rank).all() for p, block in enumerate(of_senders))
    return [*said, bool((rows == np.arange(1001)[:, None]).all()), [[len(b), float(b[0, 0])] for b in found]]


def failures(ranks, folder):
    """The errors that all ranks get: of the first rank that fails, in the middle of exchanges of values too."""
    messages = []
    for failing in ([1], [0, 2], [0, 1, 2]):
        try:
            with ranks.agreed():
                if ranks.rank in failing:
                    raise InputError("this value is wrong")
                ranks.broadcast("a value of rank 0")
        except InputError as error:
            messages.append(str(error))
    return messages


def dividing(ranks, folder):
    """Two steps each of runs whose forces are divided; their files."""
    shared = {"particles": 3000, "steps": 2, "every": 1}
    runs = {"leapfrog": {}, "blocks": {"integrator": "hermite4_block"}}
    runs["tree"] = {"engine": "cpu-tree", "precision": "float32", "particles": 6000}
    for name, own in runs.items():
        small(folder / f"{name}.h5", **shared | own).run()
    return [str(folder / f"{name}.h5") for name in runs]


def wrong_states(ranks, folder):
    """One rank computes wrongly: the run ends before a checkpoint has the wrong state."""
    simulation = small(folder / "wrong.h5")

    def spoil(made):
        simulation.state.position[7, 0] += 1e-9 * (ranks.rank == 2)

    after_steps(simulation, spoil)
    return failed(simulation)


def full_disk(ranks, folder):
    """The disk of rank 0 is full before frame 3."""
    from nbody.trajectory.writing.framefile import FrameFile

    write = FrameFile.write_frames

    def fill(file, k, frames):
        if k + len(frames) > 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(file, k, frames)

    FrameFile.write_frames = fill
    try:
        return failed(small(folder / "full.h5", steps=400))
    finally:
        FrameFile.write_frames = write


def going_on(ranks, folder):
    """A run in three parts, which a callback ends early, and its energies on every rank."""
    simulation = small(folder / "parts.h5")
    simulation.run(7)
    simulation.run(callback=lambda bodies: bodies.step < 11)
    simulation.run()
    return [simulation.frames, simulation.steps_made, simulation.energies.latest, simulation.summary.frames]


def changing(ranks, folder):
    """A run whose bodies are added, changed and removed, by calls, by a callback, and by what escapes."""
    return changed(folder / "changed.h5")


def changed(path):
    """Make it; returns the ids that are left, and an error."""
    run = small(path, assignments=["escape.radius=1.5", "escape.every=3"])
    run.run(4)
    run.add(mass=0.01, position=[[1, 0, 0], [0, 1, 0]], velocity=[[0, 0.5, 0], [0.5, 0, 0]])
    run.particles.mass[3] *= 2
    run.run(4, callback=lambda now: run.remove(now.id[7]), every=2)
    run.run()
    try:
        run.remove(9999)
    except InputError as error:
        return run.particles.id.tolist(), str(error)


def simulated(ranks, folder):
    """The number of frames of a temporary recording."""
    import nbody

    with nbody.simulate(nbody.Scenario.load(folder / "small.yaml")) as run:
        found = len(run)
        ranks.allgather(None)  # rank 0 removes the file
    return found


def stopped(ranks, folder):
    """Rank 1 stops in its tracks; the others wait for its rows."""
    if ranks.rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    ranks.gather_rows(np.zeros((30, 3)), ranks.bounds(30))


def stopped_in_an_evaluation(ranks, folder):
    """The same, and the others wait for a value that belongs to an evaluation."""
    if ranks.rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    ranks.allgather(1, short_timeout=True)


def stopped_elsewhere(ranks, folder):
    """The same, and the others wait for something else than MPI (NCCL)."""
    if ranks.rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    ranks.wait(lambda: False)


def small(path, **options):
    from nbody import Scenario, Simulation

    return Simulation(Scenario.load(path.parent / "small.yaml").override(**options), path)


def failed(simulation):
    try:
        simulation.run()
    except NBodyError as error:
        return str(error)


if __name__ == "__main__":
    ranks, folder = team(), Path(sys.argv[2])
    ranks.allgather(None)  # all are there
    found = {name: globals()[name](ranks, folder) for name in sys.argv[1].split(",")}
    (folder / f"{ranks.rank}.json").write_text(json.dumps(found))
