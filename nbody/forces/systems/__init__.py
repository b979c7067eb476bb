"""Forces within many small systems that do not act on each other: the engines of ensembles, on the CPU and on a GPU.

The N bodies are S systems of n bodies each, one after the other.
"""

from functools import cache

from nbody.forces.engine import Engine
from nbody.registry import imported

DEVICES = {"cpu": "nbody.forces.systems.cpu:CpuSystemsEngine", "gpu": "nbody.forces.systems.gpu:GpuSystemsEngine"}


@cache
def systems_engine(device: str, systems: int) -> type[Engine]:
    """The engine for a number of systems on a device, one of :data:`DEVICES`."""
    kind: type[Engine] = imported(DEVICES[device])
    return type(kind.__name__, (kind,), {"__doc__": kind.__doc__, "_systems": systems})
