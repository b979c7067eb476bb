"""The child process in which the HDF5 library reads a GADGET snapshot: ``python -m`` this module, PATH, MEMORY.

Writes the bodies to standard output as an .npz; an error is one line on standard error.
"""

import io
import resource
import signal
import sys

import h5py
import numpy as np

CPU_SECONDS = 60.0
"""Of processor time; the kernel ends the process after it."""

NAMES = ("gas", "halo", "disc", "bulge", "stars", "boundary")


def main(path: str, memory: int) -> None:
    """Read the snapshot at ``path`` within ``memory`` bytes."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    with h5py.File(path, "r", locking=False) as file:
        if int(file["Header"].attrs.get("NumFilesPerSnapshot", 1)) != 1:
            raise ValueError("it is one of several files of a snapshot; join them first")
        table = np.asarray(file["Header"].attrs.get("MassTable", np.zeros(6)), np.float64)
        kinds = [kind for kind in range(6) if f"PartType{kind}" in file]
        parts = [_read_type(file[f"PartType{kind}"], float(table[kind])) for kind in kinds]
    if not parts:
        raise ValueError("it has no PartType0 … PartType5")
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if len(kinds) > 1:
        arrays["species"] = np.repeat(np.arange(len(kinds)), [len(part["mass"]) for part in parts])
        arrays["species_names"] = np.array([NAMES[kind] for kind in kinds])
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    sys.stdout.buffer.write(buffer.getbuffer())


def _read_type(group: h5py.Group, mass: float) -> dict[str, np.ndarray]:
    for name in ("Coordinates", "Velocities", "ParticleIDs"):
        if name not in group:
            raise ValueError(f"{group.name} has no {name}")
    found = {
        "position": group["Coordinates"][()].astype(np.float64),
        "velocity": group["Velocities"][()].astype(np.float64),
        "id": group["ParticleIDs"][()].astype(np.int64),
    }
    masses = group["Masses"][()] if "Masses" in group else np.full(len(found["id"]), mass)
    return found | {"mass": masses.astype(np.float64)}


if __name__ == "__main__":
    try:
        main(sys.argv[1], int(sys.argv[2]))
    except Exception as error:  # whatever the library finds: the parent makes one line of it
        sys.exit(" ".join(str(error).split()) or type(error).__name__)
