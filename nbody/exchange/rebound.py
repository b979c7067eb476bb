"""A Simulationarchive of REBOUND (Rein & Tamayo 2017), written and read by REBOUND itself."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from nbody.errors import InputError, printable
from nbody.exchange.format import Facts, Format, Notify
from nbody.particles import Particles


class ReboundFormat(Format):
    """One snapshot per moment. Units: G is that of the run. The ids and species are lost."""

    many = True
    package = "rebound"
    opened_by = "rebound.Simulationarchive('{path}')"

    def write(self, path: Path, moments: Iterable[Particles], facts: Facts) -> None:
        import rebound

        if not isinstance(facts.softening, float):
            raise InputError(f"{path.name}: REBOUND has one softening length, and this run has one per species")
        simulation = None
        for particles in moments:
            x, v = np.zeros((2, particles.count, 3))
            x[:, : particles.dimensions], v[:, : particles.dimensions] = particles.position, particles.velocity
            if simulation is None:
                simulation = rebound.Simulation()
                simulation.G, simulation.softening = facts.G, facts.softening
                for _ in range(particles.count):
                    simulation.add(m=0.0)
            simulation.t = particles.time
            simulation.set_serialized_particle_data(m=particles.mass, xyz=x, vxvyvz=v)
            simulation.save_to_file(str(path))

    def read(self, path: Path, frame: int | None, start: str, notify: Notify = lambda line: None) -> Particles:
        import warnings

        import rebound

        try:
            with warnings.catch_warnings(action="ignore"):
                archive = rebound.Simulationarchive(str(path))
        except Exception as error:  # whatever REBOUND finds wrong
            reason = printable(" ".join(str(error).split()))[:100]
            raise InputError(f"{start}is not a Simulationarchive of REBOUND ({reason})") from None
        k = len(archive) - 1 if frame is None else frame
        if not 0 <= k < len(archive):
            raise InputError(f"{start}has no frame {k}; it holds {len(archive)}, counted from 0")
        simulation = archive[k]
        mass, (x, v) = np.zeros(simulation.N), np.zeros((2, simulation.N, 3))
        simulation.serialize_particle_data(m=mass, xyz=x, vxvyvz=v)
        return Particles(mass, x, v, time=float(simulation.t))
