"""Schemes and the motions that they make, for tests."""

from nbody.fields.added import AddedFields
from nbody.forces import ENGINES
from nbody.forces.layers import layered
from nbody.integrators import INTEGRATORS
from nbody.integrators.integrator import Motion
from nbody.law import Gravity
from nbody.state import Outputs


def moving(name, particles, dt=None, gravity=None, engine="reference", precision="float64", fields=None, **options):
    """A scheme and a motion that is ready for its first step."""
    scheme, motion = prepared(name, particles, dt, gravity, engine, precision, fields, **options)
    scheme.start(motion)
    return scheme, motion


def prepared(name, particles, dt=None, gravity=None, engine="reference", precision="float64", fields=None, **options):
    """A scheme and a motion, for a checkpoint to restore."""
    kind = INTEGRATORS.load(name)
    scheme = kind(dt, kind.Options(**options))
    law = gravity or Gravity(dimensions=particles.dimensions)
    added = AddedFields(fields, law.G) if fields else None
    machine = layered(ENGINES.load(engine)(law, precision), added) if added else ENGINES.load(engine)(law, precision)
    motion = Motion(machine, machine.load(particles))
    scheme.prepare(motion)
    return scheme, motion


def checkpoint(scheme, motion):
    """What a resume needs."""
    return motion.state.arrays(), scheme.arrays(), motion.state.clock.moment


def restore(scheme, motion, saved):
    """Go to the moment of a :func:`checkpoint`. Returns both."""
    motion.state.restore(saved[0])
    scheme.restore(saved[1])
    motion.state.clock.set(saved[2])
    return scheme, motion


def energy(motion):
    """The total energy now."""
    motion.evaluate(Outputs.POTENTIAL)
    return float(motion.state.frames.snapshot().wait().sums[:2].sum())
