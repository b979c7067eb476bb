"""Interrupt 500 waits for a recorder, or as many as are hit within a minute; prints how many there were."""

import random
import signal
import time

import numpy as np

from nbody import Particles, Simulation
from nbody.run.measured import Measured
from nbody.run.recorder import Recorder
from nbody.state import Frame
from nbody.state.sums import SUMS

x, end, trials = np.zeros((4, 3)), time.monotonic() + 60, 0
bodies = Particles(np.ones(4), np.eye(4, 3), np.zeros((4, 3)))
setup = Simulation(bodies, dt=1.0, engine="reference", precision="float64").setup
signal.signal(signal.SIGALRM, signal.default_int_handler)
random.seed(1)
while trials < 500 and time.monotonic() < end:
    try:
        with Recorder(None, Measured(setup)) as recorder:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0003, 0.0015))
            for step in range(10**9):
                recorder.record(Frame(step, 0.0, x, x, sums=np.zeros(SUMS)))
    except KeyboardInterrupt:
        trials += 1
print(trials)
