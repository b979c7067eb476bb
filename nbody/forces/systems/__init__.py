"""Forces within many small systems that do not act on each other: the engines of ensembles, on the CPU and on a GPU.

The N bodies are S systems of n bodies each, one after the other.
"""

from nbody.forces.engine import Engine


def systems_engine(device: str) -> type[Engine]:
    """The engine on a device, ``cpu`` or ``gpu``; its options are :class:`~nbody.forces.options.SystemsOptions`."""
    if device == "gpu":
        from nbody.forces.systems.gpu import GpuSystemsEngine

        return GpuSystemsEngine
    from nbody.forces.systems.cpu import CpuSystemsEngine

    return CpuSystemsEngine
