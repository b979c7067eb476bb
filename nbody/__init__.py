"""nbody: gravity between particles, on a GPU or a CPU.

    import nbody

    particles = nbody.plummer(4096, seed=1)
    simulation = nbody.Simulation(particles, dt=0.01, softening=0.02, output="output/plummer.h5")
    simulation.run(steps=100)
    simulation.integrate(until=2.0)  # goes on, and records into the same file
    simulation.copy().integrate(until=1.5)  # a copy has no file; here it goes back in time
    with nbody.Trajectory("output/plummer.h5") as run:
        print(run.time[-1], run.position[-1].shape, run.observables)

    scenario = nbody.Scenario.load("plummer").override(steps=100)  # or from YAML
    run = nbody.simulate(scenario)

    nbody.show("output/plummer.h5")  # in a notebook
    nbody.orbits(nbody.planets(bodies=[{"m": 1}, {"m": 1e-3, "a": 1, "e": 0.1}])).e  # elements of the planets

    spring = nbody.force(lambda x, y, z: (-x, -y, -z))  # a force of your own: nbody/PLUGINS.md
    simulation = nbody.Simulation(particles, dt=0.01, fields=[spring, nbody.fields.NFW(mass=1.0, a=20.0)])

    a = nbody.accelerations(position, mass, G=1.0, softening="plummer", length=0.01)
    phi = nbody.potential(position, mass, at=points)  # at points that are no bodies
    a = nbody.accelerations(position, mass, accuracy=1e-3)  # by a tree, where that is faster
    tree = nbody.Tree(position, mass, accuracy=1e-4)  # to ask again: tree.accelerations(at=points)

Every generator is a function here: ``nbody.plummer``, ``nbody.king`` … Each name is imported when it is first used, so that
``import nbody`` is fast.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from nbody.lazy import names_of

if TYPE_CHECKING:
    from nbody.analysis.figure import plot as plot
    from nbody.diagnostics.orbits import orbits as orbits
    from nbody.diagnostics.structure import column_density as column_density
    from nbody.fields.function import force as force
    from nbody.forces.api import accelerations as accelerations
    from nbody.forces.api import potential as potential
    from nbody.forces.api import tidal_tensor as tidal_tensor
    from nbody.forces.reusable_tree import Tree as Tree
    from nbody.maps.make import map as map
    from nbody.particles import Particles as Particles
    from nbody.run.resume import rerun as rerun
    from nbody.run.resume import resume as resume
    from nbody.run.simulate import simulate as simulate
    from nbody.run.simulation import Simulation as Simulation
    from nbody.run.transition import tangent as tangent
    from nbody.scenario import Scenario as Scenario
    from nbody.trajectory import Trajectory as Trajectory
    from nbody.viewer.notebook import show as show

__all__, _imported = names_of(
    __name__,
    {
        "analysis.figure": "plot",
        "diagnostics.orbits": "orbits",
        "diagnostics.structure": "column_density",
        "fields.function": "force",
        "forces.api": "accelerations potential tidal_tensor",
        "forces.reusable_tree": "Tree",
        "maps.make": "map",
        "particles": "Particles",
        "run.resume": "rerun resume",
        "run.simulate": "simulate",
        "run.simulation": "Simulation",
        "run.transition": "tangent",
        "scenario": "Scenario",
        "trajectory": "Trajectory",
        "viewer.notebook": "show",
    },
)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from nbody.machine import version

        return version()
    if not name.startswith("_") and name not in __all__:
        if find_spec(f"nbody.{name}"):  # nbody.fields.NFW(…) without another import
            return import_module(f"nbody.{name}")
        from nbody.initial import GENERATORS

        if name in GENERATORS:
            from nbody.initial.functions import function

            return function(name)
        from nbody.errors import did_you_mean

        raise AttributeError(f"module 'nbody' has no attribute '{name}'{did_you_mean(name, __dir__())}")
    return _imported(name)


def __dir__() -> list[str]:
    from nbody.initial import GENERATORS

    return [*__all__, *GENERATORS, "__version__"]
