"""Tipsy's standard format (Quinn & Katz): a header and one record per body, in big-endian float32."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from nbody.errors import InputError
from nbody.exchange.format import Format, RunConstants, contents
from nbody.particles import Particles
from nbody.whole_file import Notify

HEADER = np.dtype([("time", ">f8"), ("bodies", ">i4"), ("dimensions", ">i4"), ("gas", ">i4"), ("dark", ">i4"),
                   ("stars", ">i4"), ("padding", ">i4")])  # fmt: skip
DARK = np.dtype([("mass", ">f4"), ("position", ">f4", 3), ("velocity", ">f4", 3), ("eps", ">f4"), ("potential", ">f4")])
GAS = np.dtype([("mass", ">f4"), ("position", ">f4", 3), ("velocity", ">f4", 3), ("other", ">f4", 5)])
STARS = np.dtype([("mass", ">f4"), ("position", ">f4", 3), ("velocity", ">f4", 3), ("other", ">f4", 4)])
"""The records of dark matter (all bodies that are exported), gas and stars."""


class TipsyFormat(Format):
    """Every body is a dark-matter particle. Numbers are rounded to float32; the ids are lost."""

    suffixes = (".tipsy", ".std")
    opened_by = "pynbody.load('{path}')"

    def write(self, path: Path, moments: Iterable[Particles], facts: RunConstants) -> None:
        (particles,) = moments
        n = particles.count
        rows = np.zeros(n, DARK)
        rows["mass"], rows["eps"] = particles.mass, facts.softenings(particles)
        rows["position"], rows["velocity"] = particles.in_space()
        header = np.array([(particles.time, n, 3, 0, n, 0, 0)], HEADER)
        path.write_bytes(header.tobytes() + rows.tobytes())

    def read(self, path: Path, frame: int | None, start: str, notify: Notify = lambda line: None) -> Particles:
        data = contents(path, start)
        header = np.frombuffer(data, HEADER, 1)[0] if len(data) >= HEADER.itemsize else np.zeros(1, HEADER)[0]
        counts = [int(header[name]) for name in ("gas", "dark", "stars")]
        size = HEADER.itemsize + sum(n * kind.itemsize for n, kind in zip(counts, (GAS, DARK, STARS), strict=True))
        if min(counts) < 0 or size != len(data) or sum(counts) == 0 or header["dimensions"] not in (2, 3):
            raise InputError(f"{start}is not a Tipsy file in the standard (big-endian) format")
        at, parts = HEADER.itemsize, []
        for n, kind in zip(counts, (GAS, DARK, STARS), strict=True):
            parts.append(np.frombuffer(data, kind, n, at))
            at += n * kind.itemsize
        mass, x, v = (np.concatenate([part[name] for part in parts]) for name in ("mass", "position", "velocity"))
        return Particles(mass, x, v)
