"""Small scenarios and recordings, for the tests of what reads them."""

import numpy as np

from nbody.particles import Particles
from nbody.trajectory import Frame, RunHeader, TrajectoryWriter


def plummer_text(particles, steps, dt=0.0078125, seed=5, **keys):
    """A scenario of a softened sphere; ``keys``: the others, in YAML."""
    more = "".join(f"{key}: {value}\n" for key, value in keys.items())
    return (
        f"initial: {{generator: plummer, particles: {particles}, seed: {seed}}}\n"
        "gravity: {softening: plummer, length: 0.05}\n"
        f"integrator: {{scheme: leapfrog, dt: {dt}, steps: {steps}}}\n{more}"
    )


def cloud(count, frames=1, dimensions=3, seed=1):
    """Normally distributed bodies, different in every frame: (position, velocity) pairs."""
    rng = np.random.default_rng(seed)
    return [tuple(rng.standard_normal((2, count, dimensions))) for _ in range(frames)]


def append(writer, k, position, velocity, time=None, dtype="f4"):
    """Record frame ``k``, 0.1 after the one before if there is no ``time``; its energy is -2 + k/100."""
    numbers = {"total_energy": -2.0 + k / 100, "virial_ratio": 0.5 + k / 10}
    time = 0.1 * k if time is None else time
    writer.append(Frame(k, time, np.asarray(position, dtype), np.asarray(velocity, dtype), numbers))


def record(path, frames, planned=None, *, mass=None, resolved=None, times=None, dtype="float32", **columns):
    """A recording of (position, velocity) pairs; its writer if more frames are ``planned``."""
    first = [np.asarray(each, float) for each in frames[0]]
    mass = np.ones(len(first[0])) if mass is None else np.asarray(mass, float)
    header = RunHeader(planned or len(frames), dtype, resolved=resolved or {"name": "test"})
    writer = TrajectoryWriter(path, Particles(mass, *first, **columns), header)
    for k, frame in enumerate(frames):
        append(writer, k, *frame, None if times is None else times[k], dtype)
    if planned:
        return writer
    writer.close()
    return path
