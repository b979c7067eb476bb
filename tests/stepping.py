"""What happens between the steps of a run: signals, and what a test does to the state."""

import os
import signal
import sys

from nbody.run.loop import Loop


def after_steps(simulation, do, at_most=sys.maxsize):
    """Call ``do(made)`` whenever the simulation has made some steps, at most so many at once."""

    class Followed(Loop):
        def advance(self, most):
            made = super().advance(min(most, at_most))
            do(made)
            return made

    simulation.loop = Followed


def interrupt_at(simulation, step, at_most=sys.maxsize):
    """Send this process SIGINT, as by Ctrl-C, when the simulation has made ``step``."""
    after_steps(simulation, lambda made: simulation.steps_made >= step and os.kill(os.getpid(), signal.SIGINT), at_most)
