"""GADGET's HDF5 snapshots (Springel, Pakmor, Zier & Reinecke 2021), which yt and pynbody read."""

import io
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from nbody import machine
from nbody.child import python
from nbody.errors import InputError, printable
from nbody.exchange.arrays import read_arrays
from nbody.exchange.format import Facts, Format, Notify
from nbody.particles import Particles

TYPES = {"gas": 0, "halo": 1, "disc": 2, "disk": 2, "bulge": 3, "stars": 4, "star": 4}
"""The particle type that GADGET has for a component."""
HALO = 1
UNITS = "UnitLength_in_cm", "UnitMass_in_g", "UnitVelocity_in_cm_per_s"


class GadgetFormat(Format):
    """The bodies are particles of type 1 (halo), or of the type that has their species' name. Numbers are in the run's
    units; /Units says what these are if the scenario does. There is no cosmology."""

    opened_by = "yt.load('{path}')"

    def opening(self, path: Path, facts: Facts) -> str:
        # yt does not read /Units: without ``unit_base`` it takes kpc, 1e10 Msun and km/s.
        if facts.cgs is None:
            return super().opening(path, facts)
        return f"yt.load('{path}', unit_base={dict(zip(UNITS, facts.cgs, strict=True))})"

    def write(self, path: Path, moments: Iterable[Particles], facts: Facts) -> None:
        import h5py

        for particles in moments:
            kinds = np.array([TYPES.get(name.lower(), HALO) for name in particles.species_names])[particles.species]
            counts = np.bincount(kinds, minlength=6).astype(np.uint32)
            with h5py.File(path, "w") as file:
                header = file.create_group("Header").attrs
                header["NumPart_ThisFile"], header["NumPart_Total"] = counts, counts
                header["NumPart_Total_HighWord"] = np.zeros(6, np.uint32)
                header["MassTable"] = np.zeros(6)
                header["NumFilesPerSnapshot"] = np.int32(1)
                header["Time"], header["Redshift"], header["BoxSize"] = particles.time, 0.0, 0.0
                header["Omega0"], header["OmegaLambda"], header["HubbleParam"] = 0.0, 0.0, 1.0
                for flag in ("Sfr", "Cooling", "StellarAge", "Metals", "Feedback", "DoublePrecision"):
                    header[f"Flag_{flag}"] = np.int32(flag == "DoublePrecision")
                if facts.cgs is not None:
                    units = file.create_group("Units").attrs
                    for name, size in zip(UNITS, facts.cgs, strict=True):
                        units[name] = size
                for kind in np.flatnonzero(counts):
                    _write_type(file.create_group(f"PartType{kind}"), particles, kinds == kind)

    def read(self, path: Path, frame: int | None, start: str, notify: Notify = lambda line: None) -> Particles:
        # The HDF5 library, which may crash on a damaged file, reads it in a child process.
        memory = max(2**30, machine.memory_available() // 2)
        arguments = "-m", "nbody.exchange.gadget_process", os.path.abspath(path), str(memory)
        environment = {"HDF5_PLUGIN_PRELOAD": "::", "OPENBLAS_NUM_THREADS": "1"}
        child = subprocess.run(**python(*arguments, **environment), capture_output=True, check=False)
        if child.returncode:
            said = child.stderr.decode(errors="replace").strip().splitlines()
            reason = printable(said[-1])[:150] if said else "the HDF5 library crashed on it"
            raise InputError(f"{start}is not a snapshot in GADGET's HDF5 format ({reason})")
        return read_arrays(io.BytesIO(child.stdout), start)


def _write_type(group, particles: Particles, rows: np.ndarray) -> None:
    x, v = np.zeros((2, int(rows.sum()), 3))
    x[:, : particles.dimensions], v[:, : particles.dimensions] = particles.position[rows], particles.velocity[rows]
    group["Coordinates"], group["Velocities"], group["Masses"] = x, v, particles.mass[rows]
    group["ParticleIDs"] = particles.id[rows].astype(np.uint64)
