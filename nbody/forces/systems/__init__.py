"""Forces within many small systems that do not act on each other: the engines of ensembles, on the CPU and on a GPU.

The N bodies are S systems of n bodies each, one after the other.
"""

from pydantic import PrivateAttr

from nbody.forces.engine import Engine
from nbody.registry import imported
from nbody.scenario.values import Group

DEVICES = {"cpu": "nbody.forces.systems.cpu:CpuSystemsEngine", "gpu": "nbody.forces.systems.gpu:GpuSystemsEngine"}


class SystemsOptions(Group):
    """The number of systems, which is a key of the ensemble instead of the engine."""

    _systems: int = PrivateAttr(default=1)

    def of(self, systems: int) -> "SystemsOptions":
        """These options for a number of systems."""
        found = self.model_copy()
        found._systems = systems
        return found

    def bodies(self, count: int) -> int:
        """n, the bodies per system, of a number of bodies."""
        return count // self._systems


def systems_engine(device: str) -> type[Engine]:
    """The engine on a device, one of :data:`DEVICES`; its options are :class:`SystemsOptions`."""
    kind: type[Engine] = imported(DEVICES[device])
    return kind
