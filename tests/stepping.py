"""What happens between the steps of a run: signals, and what a test does to the state."""

import os
import signal
import sys

import pytest

from nbody.run.observers import Observer


def after_steps(simulation, do, at_most=sys.maxsize):
    """Call ``do(made)`` whenever the simulation has made some steps, at most so many at once."""

    class Followed(Observer):
        made = simulation.steps_made

        def next(self, until):
            return at_most, until

        def look(self):
            self.made, made = simulation.steps_made, simulation.steps_made - self.made
            do(made)
            return True

    simulation.observers.append(Followed(simulation.stepper))


def interrupt_at(simulation, step, at_most=sys.maxsize):
    """Send this process SIGINT, as by Ctrl-C, when the simulation has made ``step``."""
    after_steps(simulation, lambda made: simulation.steps_made >= step and os.kill(os.getpid(), signal.SIGINT), at_most)


def interrupted(run, *arguments, **values):
    """Call a method of a simulation that is ended by a signal, and return the simulation's summary."""
    with pytest.raises(KeyboardInterrupt, match="interrupted at step"):
        run(*arguments, **values)
    assert run.__self__.summary.interrupted
    return run.__self__.summary
