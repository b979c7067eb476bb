"""What GADGET's snapshots in HDF5 and in binary files have in common."""

from pathlib import Path

import numpy as np

from nbody.errors import InputError, counted, printable
from nbody.input_file import open_regular
from nbody.particles import Particles
from nbody.whole_file import Notify

TYPES = {"gas": 0, "halo": 1, "disc": 2, "disk": 2, "bulge": 3, "stars": 4, "star": 4}
"""The particle type that GADGET has for a component."""
HALO = 1
SPECIES = ("gas", "halo", "disc", "bulge", "stars", "boundary")
"""The species of each type."""

MOST_FILES = 4096
"""The most files of a snapshot."""


def types_of(particles: Particles) -> np.ndarray:
    """The type of each body, (N,): that with its species' name, or halo."""
    kinds: np.ndarray = np.array([TYPES.get(name.lower(), HALO) for name in particles.species_names])[particles.species]
    return kinds


def refuse_cosmology(start: str, time: float, redshift: float, box: float, omega0: float) -> None:
    """Raise an InputError, which begins with ``start``, for a snapshot in comoving coordinates: a box with matter, whose
    time is the scale factor 1/(1 + z)."""
    if box > 0 and omega0 > 0 and redshift > -1 and abs(time * (1 + redshift) - 1) < 1e-4:
        raise InputError(
            f"{start}is a cosmological snapshot (redshift {redshift:.4g}, periodic box {box:g}, Omega0 {omega0:g}), and "
            "nbody computes isolated bodies in physical coordinates; cut out an object and convert it first"
        )


def say_gas(particles: Particles, start: str, notify: Notify) -> None:
    """A line about gas, if there is some."""
    if "gas" in particles.species_names:
        gas = int((particles.species == particles.species_names.index("gas")).sum())
        notify(f"{start}{counted(gas, 'particle')} of gas will move as stars do: nbody computes gravity alone")


def first_of_snapshot(path: Path) -> Path:
    """The first file of a snapshot of several that is given by its base name, as ``snap.0.hdf5`` by ``snap.hdf5`` or
    ``snap``; the path itself if it is a file, or if there is no such snapshot."""
    suffixes = (path.suffix,) if path.suffix in (".hdf5", ".gadget") else ("", ".hdf5", ".gadget")
    firsts = [path.with_name(f"{path.name.removesuffix(suffix)}.0{suffix}") for suffix in suffixes if path.name]
    return path if path.exists() else next((each for each in firsts if each.is_file()), path)


def parts_of_snapshot(path: Path, files: int, start: str) -> list[Path]:
    """The other files of a snapshot of several: ``name.1`` … beside ``name.0``, or ``name.1.hdf5`` … Raises InputError: the
    name has no number, or one of them is missing."""
    if files <= 1:
        return []
    suffix = path.suffix if path.suffix in (".hdf5", ".gadget") else ""
    name, dot, number = path.name.removesuffix(suffix).rpartition(".")
    if not (dot and number.isdecimal() and files <= MOST_FILES):
        raise InputError(f"{start}is one of {files} files of a snapshot; name the first one, as in snapshot.0{suffix}")
    others = [path.with_name(f"{name}.{k}{suffix}") for k in range(files) if k != int(number)]
    for each in others:
        if not each.exists():
            raise InputError(f"{start}is one of {files} files of a snapshot, and {printable(each.name)} is missing")
        open_regular(each, start).close()
    return others
