"""Pictures of a simulation from a GPU's memory and through the host are the same; 'skip:' where there is no interop."""
# ruff: noqa: E402  (what draws is chosen before the first import of VisPy)

import os
import sys
import time

import numpy as np

os.environ.setdefault("EGL_PLATFORM", "surfaceless")
from nbody.viewer import backends

backends.use_screenless()
from nbody.errors import DeviceError
from nbody.run.live import LiveRun
from nbody.scenario import Scenario
from nbody.viewer.gl.studio import Studio
from nbody.viewer.sources import device_frames
from nbody.viewer.sources.live import Live


def refuse():
    raise DeviceError("switched off")


scenario = Scenario.from_dict(
    {
        "initial": {"generator": "plummer", "particles": 3000},
        "gravity": {"softening": "plummer", "length": 0.05},
        "integrator": {"dt": 0.01, "steps": 100},
        "engine": "gpu-tiled",
        "precision": "float32",
        "record": {"every": 10},
    }
)
real, pictures = device_frames.SharedBuffers, []
for make in (real, refuse):
    device_frames.SharedBuffers = make
    run = LiveRun(scenario)
    source, run.pace.playing = Live(run), False
    with Studio(source, (320, 240)) as studio:
        for step in range(1, 7):
            run.pace.step(1)
            end = time.monotonic() + 60
            while not (source.refresh() and source.caption(source.frames - 1).step == step):
                assert time.monotonic() < end
                time.sleep(0.001)
            studio.draw(source.frames - 1, with_hud=False)
        pictures.append(studio.read())
        note, frame, state = (
            source.caption(source.frames - 1).note,
            source.moment(source.frames - 1).first,
            run.simulation.state,
        )
        position, velocity = state.values("position", "velocity")
        assert np.array_equal(frame.position, position) and np.array_equal(frame.velocity, velocity)
    run.close()
    if make is real and "interop" not in note:
        print("skip:", note)
        sys.exit()
    assert make is real or "switched off" in note
assert pictures[0].max() > 60 and np.array_equal(*pictures)
