"""GADGET's HDF5 snapshots (Springel, Pakmor, Zier & Reinecke 2021), which yt and pynbody read."""

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from nbody.exchange.format import RunConstants
from nbody.exchange.guarded import GuardedFormat
from nbody.exchange.snapshot import SPECIES, parts_of_snapshot, refuse_cosmology, say_gas, types_of
from nbody.particles import Particles
from nbody.whole_file import Notify

UNITS = "UnitLength_in_cm", "UnitMass_in_g", "UnitVelocity_in_cm_per_s"


class GadgetFormat(GuardedFormat):
    """The bodies are particles of type 1 (halo), or of the type that has their species' name. Numbers are in the run's
    units; /Units says what these are if the scenario does. There is no cosmology."""

    suffixes = (".hdf5",)
    opened_by = "yt.load('{path}')"
    library, kind = "the HDF5 library", "a snapshot in GADGET's HDF5 format"

    def opening(self, path: Path, facts: RunConstants) -> str:
        # yt does not read /Units: without ``unit_base`` it takes kpc, 1e10 Msun and km/s.
        if facts.cgs is None:
            return super().opening(path, facts)
        return f"yt.load('{path}', unit_base={dict(zip(UNITS, facts.cgs, strict=True))})"

    def write(self, path: Path, moments: Iterable[Particles], facts: RunConstants) -> None:
        import h5py

        (particles,) = moments
        kinds = types_of(particles)
        counts = np.bincount(kinds, minlength=6).astype(np.uint32)
        whole = io.BytesIO()  # on a full disk the HDF5 library fails later, and again when it is closed
        with h5py.File(whole, "w") as file:
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
                group, some = file.create_group(f"PartType{kind}"), particles.rows(kinds == kind)
                group["Coordinates"], group["Velocities"] = some.in_space()
                group["Masses"], group["ParticleIDs"] = some.mass, some.id.astype(np.uint64)
        path.write_bytes(whole.getbuffer())

    @staticmethod
    def parse(path: str, frame: int | None) -> dict[str, np.ndarray]:
        import h5py

        parts: list[tuple[int, dict[str, np.ndarray]]] = []
        waiting, first = [Path(path)], True
        while waiting:
            with h5py.File(waiting.pop(0), "r", locking=False) as file:
                header = _member(file, "Header").attrs
                if first:
                    waiting = parts_of_snapshot(Path(path), int(header.get("NumFilesPerSnapshot", 1)), "")
                    first = False
                physics = dict(_member(file, "Parameters").attrs) if "Parameters" in file else {}
                physics |= dict(header)
                numbers = (float(physics.get(name, 0.0)) for name in ("Time", "Redshift", "BoxSize", "Omega0"))
                refuse_cosmology("", *numbers)
                table = _real(np.asarray(header.get("MassTable", np.zeros(6))), "MassTable")
                kinds = [kind for kind in range(6) if file.get(f"PartType{kind}", getlink=True)]
                parts += [(kind, _read_type(_member(file, f"PartType{kind}"), float(table[kind]))) for kind in kinds]
        if not parts:
            raise ValueError("it has no PartType0 … PartType5")
        parts.sort(key=lambda part: part[0])
        arrays = {name: np.concatenate([part[name] for _, part in parts]) for name in parts[0][1]}
        found = sorted({kind for kind, _ in parts})
        if len(found) > 1 or found == [0]:
            each = [found.index(kind) for kind, _ in parts]
            arrays["species"] = np.repeat(each, [len(part["mass"]) for _, part in parts])
            arrays["species_names"] = np.array([SPECIES[kind] for kind in found])
        return arrays

    def read(self, path: Path, frame: int | None, start: str, notify: Notify = lambda line: None) -> Particles:
        found = super().read(path, frame, start, notify)
        say_gas(found, start, notify)
        return found


def _member(group: Any, name: str) -> Any:
    """The group or dataset ``name`` of a group, if its data are in this file. Raises ValueError."""
    import h5py

    link = group.get(name, getlink=True)
    if not isinstance(link, h5py.HardLink):
        raise ValueError(f"{group.name} has no {name}" if link is None else f"{name} is a link that may lead elsewhere")
    found = group[name]
    if isinstance(found, h5py.Dataset) and (found.external or found.is_virtual):
        raise ValueError(f"{name} keeps its data in other files")
    return found


def _real(values: np.ndarray, name: str) -> np.ndarray:
    """The values in float64. Raises ValueError if they are not real numbers."""
    if values.dtype.kind not in "iuf":
        raise ValueError(f"{name} holds {values.dtype}, and no real numbers")
    return values.astype(np.float64)


def _read_type(group: Any, mass: float) -> dict[str, np.ndarray]:
    """The bodies of one type; ``mass`` is that of each, if there are no Masses."""
    found = {
        "position": _real(_member(group, "Coordinates")[()], "Coordinates"),
        "velocity": _real(_member(group, "Velocities")[()], "Velocities"),
        "id": _member(group, "ParticleIDs")[()],
    }
    if found["id"].dtype.kind not in "iu":
        raise ValueError(f"ParticleIDs holds {found['id'].dtype}, and no whole numbers")
    masses = _member(group, "Masses")[()] if group.get("Masses", getlink=True) else np.full(len(found["id"]), mass)
    return found | {"mass": _real(masses, "Masses")}
