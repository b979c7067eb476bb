"""Forces within many small systems that do not act on each other: the engines of ensembles, on the CPU and on a GPU.

The N bodies are S systems of n bodies each, one after the other.
"""

from nbody.forces.engine import Engine
from nbody.registry import imported

OF_DEVICE = {"cpu": "nbody.forces.systems.cpu:CpuSystemsEngine", "gpu": "nbody.forces.systems.gpu:GpuSystemsEngine"}


def systems_engine(device: str) -> type[Engine]:
    """The engine on a device, ``cpu`` or ``gpu``; its options are :class:`~nbody.forces.options.SystemsOptions`."""
    found: type[Engine] = imported(OF_DEVICE[device])
    return found
