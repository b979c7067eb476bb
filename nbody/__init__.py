"""nbody: gravity between particles, on a GPU or a CPU.

    import nbody

    scenario = nbody.Scenario.load("scenarios/plummer.yaml").override(steps=100)
    summary = nbody.Simulation(scenario, output="output/plummer.h5").run()
    with nbody.Trajectory("output/plummer.h5") as run:
        print(run.time[-1], run.position[-1].shape, summary.energy_error)

    a = nbody.accelerations(position, mass, G=1.0, softening="plummer", length=0.01)

Each name is imported when it is first used, so that ``import nbody`` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nbody.analysis.figure import plot
    from nbody.forces import accelerations
    from nbody.particles import Particles
    from nbody.run.simulation import Simulation
    from nbody.scenario import Scenario
    from nbody.trajectory import Trajectory

__all__ = ["Particles", "Scenario", "Simulation", "Trajectory", "accelerations", "plot"]

_HOMES = {
    "Particles": "nbody.particles",
    "Scenario": "nbody.scenario",
    "Simulation": "nbody.run.simulation",
    "Trajectory": "nbody.trajectory",
    "accelerations": "nbody.forces",
    "plot": "nbody.analysis.figure",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'nbody' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
