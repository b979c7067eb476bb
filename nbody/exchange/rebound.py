"""A Simulationarchive of REBOUND (Rein & Tamayo 2017), written and read by REBOUND itself."""

import errno
import os
from collections.abc import Iterable
from ctypes import byref
from pathlib import Path

import numpy as np

from nbody.errors import InputError
from nbody.exchange.format import RunConstants, frame_number
from nbody.exchange.guarded import GuardedFormat
from nbody.particles import Particles


class ReboundFormat(GuardedFormat):
    """One snapshot per moment. Units: G is that of the run. The ids and species are lost."""

    suffixes = (".bin",)
    many = True
    package = "rebound"
    opened_by = "rebound.Simulationarchive('{path}')"
    library, kind = "REBOUND", "a Simulationarchive of REBOUND"

    def write(self, path: Path, moments: Iterable[Particles], facts: RunConstants) -> None:
        import rebound

        if not isinstance(facts.softening, float):
            raise InputError(f"{path.name}: REBOUND has one softening length, and this run has one per species")
        simulation = None
        for particles in moments:
            x, v = particles.in_space()
            if simulation is None:
                simulation = rebound.Simulation()
                simulation.G, simulation.softening = facts.G, facts.softening
            if particles.count != simulation.N:  # at first, and after a merger
                del simulation.particles
                for _ in range(particles.count):
                    simulation.add(m=0.0)
            simulation.t = particles.time
            simulation.set_serialized_particle_data(m=particles.mass, xyz=x, vxvyvz=v)
            rebound.clibrebound.reb_simulation_save_to_file(byref(simulation), os.fsencode(path))
        try:  # REBOUND does not say that the disk is full
            last = self.read(path, None, "")
            whole = np.array_equal(last.position, x) and np.array_equal(last.velocity, v)
        except InputError:
            whole = False
        if not whole:
            raise OSError(errno.EIO, "REBOUND could not write all of it; is the disk full?")

    @staticmethod
    def parse(path: str, frame: int | None) -> dict[str, np.ndarray]:
        import rebound

        data = Path(path).read_bytes()  # by path REBOUND opens names in ASCII only
        archive = rebound.Simulationarchive(data)
        simulation = archive[frame_number(frame, len(archive))]
        mass, (x, v) = np.zeros(simulation.N), np.zeros((2, simulation.N, 3))
        simulation.serialize_particle_data(m=mass, xyz=x, vxvyvz=v)
        return {"mass": mass, "position": x, "velocity": v}
