"""Pictures of a simulation on Numba's simulated GPU hold the bodies of each step."""

import numpy as np
import test_live as tests

tests.SCENARIO = tests.SCENARIO.override(particles=40, engine="gpu-tiled", precision="float32")
for budget in (100, 15):
    run = tests.LiveRun(tests.SCENARIO)
    source, run.pace.playing = tests.Live(run), False
    source.shown.thin_out(budget)
    clock = tests.LiveClock(source)
    assert len(source.moment(0).first.position) == source.shown.count == min(budget, 40)
    rows = [source.shown.body(row) for row in range(source.shown.count)]
    for _ in range(6):  # more than there are slots
        tests.stepped(source, clock, 1)
        frame, (position, velocity) = source.moment(0).first, run.simulation.state.values("position", "velocity")
        assert np.array_equal(frame.position, position[rows]) and np.array_equal(frame.velocity, velocity[rows])
        assert source.speeds[1] > 0
    assert "copied through the host" in source.caption(0).note
    run.close()
