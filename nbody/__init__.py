"""nbody: gravity between particles, on a GPU or a CPU.

    import nbody

    particles = nbody.plummer(4096, seed=1)
    simulation = nbody.Simulation(particles, dt=0.01, softening=0.02, output="output/plummer.h5")
    simulation.run(steps=100)
    simulation.integrate(until=2.0)  # goes on, and records into the same file
    with nbody.Trajectory("output/plummer.h5") as run:
        print(run.time[-1], run.position[-1].shape, run.observables)

    scenario = nbody.Scenario.load("plummer").override(steps=100)  # or from YAML
    run = nbody.simulate(scenario)

    nbody.show("output/plummer.h5")  # in a notebook

    a = nbody.accelerations(position, mass, G=1.0, softening="plummer", length=0.01)
    phi = nbody.potential(position, mass, at=points)  # at points that are no bodies
    a = nbody.accelerations(position, mass, accuracy=1e-3)  # by a tree, where that is faster
    tree = nbody.Tree(position, mass, accuracy=1e-4)  # to ask again: tree.accelerations(at=points)

Every generator is a function here: ``nbody.plummer``, ``nbody.disk`` … Each name is imported when it is first used, so that
``import nbody`` is fast.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nbody.analysis.figure import plot
    from nbody.forces import accelerations, potential
    from nbody.forces.kept_tree import Tree
    from nbody.particles import Particles
    from nbody.run.simulate import simulate
    from nbody.run.simulation import Simulation
    from nbody.scenario import Scenario
    from nbody.trajectory import Trajectory
    from nbody.viewer.notebook import show

__all__ = [
    "Particles",
    "Scenario",
    "Simulation",
    "Trajectory",
    "Tree",
    "accelerations",
    "plot",
    "potential",
    "show",
    "simulate",
]

_HOMES = {
    "Particles": "nbody.particles",
    "Scenario": "nbody.scenario",
    "Simulation": "nbody.run.simulation",
    "Trajectory": "nbody.trajectory",
    "Tree": "nbody.forces.kept_tree",
    "accelerations": "nbody.forces",
    "plot": "nbody.analysis.figure",
    "potential": "nbody.forces",
    "show": "nbody.viewer.notebook",
    "simulate": "nbody.run.simulate",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "__version__":
        from nbody.machine import version

        return version()
    if not name.startswith("_") and find_spec(f"nbody.{name}") is None:  # 'from nbody import machine' asks here first
        from nbody.initial import GENERATORS

        if name in GENERATORS:
            from nbody.initial.functions import function

            return function(name)
    raise AttributeError(f"module 'nbody' has no attribute '{name}'")


def __dir__() -> list[str]:
    from nbody.initial import GENERATORS

    return [*__all__, *GENERATORS, "__version__"]
