"""Read a recording while it is written, until it is complete; prints the frames seen and the looks."""

import json
import sys

import h5py
import numpy as np

from nbody.trajectory import Trajectory

path, seen, polls = sys.argv[1], 0, 0
with Trajectory(path) as run:
    while True:
        done = run.complete  # before the look: what is complete then is all there is
        frames = run.refresh()
        assert frames >= seen and len(run.time) == frames
        for k in range(max(0, frames - 2), frames):
            assert run.step[k] == 10 * k and run.frame(k).observables["kinetic_energy"] == k
            assert (np.rint(run.position[k] - run.position[0]) == k).all()
        with h5py.File(path) as file:  # as any other program would
            position = file["particles/trajectory/position/value"]
            assert len(position) >= frames and len(file["particles/trajectory/position/time"]) >= len(position)
        seen, polls = frames, polls + 1
        if done:
            break
    assert run.verify() == []
print(json.dumps([seen, polls]))
