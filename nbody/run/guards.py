"""Checks for numerical problems: before a run, one line of advice for each; during it, for numbers that are not finite."""

import math

import numpy as np

from nbody.errors import InputError, RunFailed
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.state import Snapshot

RESOLUTION = 100
"""The softening length should be at least this many times the spacing of float32 numbers at the farthest particle."""

FARTHEST = 2e12
"""At larger distances 1/r³ is below 1.2e-38, the smallest float32 that kernels do not flush to zero."""

MASS_RATIO = 1e6
"""At larger ratios of masses float32 sums lose the forces of light bodies on heavy ones: 24 bits are 1.7e7."""


def doubts(gravity: Gravity, precision: str, particles: Particles) -> list[str]:
    """Possible numerical problems with these bodies in this precision, one line each.

    Raises:
        InputError: two bodies in the same place (in this precision) and no softening: their energy is infinite; or a
            number beyond the precision's range.
    """
    stored = np.float32 if precision == "float32" else np.float64
    of_a_pair = np.float64 if precision == "float64" else np.float32
    _refuse_out_of_range(particles, of_a_pair)
    if gravity.length2 == 0:
        _refuse_coincident(particles.position.astype(stored))
    found = []
    if stored is np.float32:
        spacing = float(np.spacing(np.float32(np.abs(particles.position).max())))
        if gravity.length2 and gravity.length < RESOLUTION * spacing:
            found.append(
                f"in float32 positions are {spacing:.1e} apart at the farthest particle, and the softening length is "
                f"only {gravity.length:g}; move the bodies nearer to the origin, or take --precision float64"
            )
    if of_a_pair is np.float32:
        extent = float(np.ptp(particles.position, axis=0).max())
        if extent > FARTHEST:
            found.append(
                f"the bodies are {extent:.1e} apart, and in {precision} a GPU takes 1/distance³ beyond {FARTHEST:g} for "
                "zero; use larger units, or take --precision float64"
            )
    if stored is np.float32:
        masses = particles.mass[particles.mass > 0]
        if masses.max() > MASS_RATIO * masses.min():
            found.append(
                f"the masses differ by a factor of {masses.max() / masses.min():.1e}, more than float32 sums can keep; "
                "take --precision float64"
            )
    return found


def _refuse_out_of_range(particles: Particles, real: type) -> None:
    for name in ("mass", "position", "velocity"):
        largest = float(np.abs(getattr(particles, name)).max())
        if largest > float(np.finfo(real).max):
            raise InputError(
                f"the largest {name}, {largest:.1e}, is beyond {np.dtype(real).name}; use other units, or take "
                "--precision float64"
            )


def _refuse_coincident(position: np.ndarray) -> None:
    order = np.lexsort(position.T)
    rows = position[order]
    same = (rows[1:] == rows[:-1]).all(axis=1)
    if same.any():
        k = int(np.argmax(same))
        first, second = sorted((int(order[k]), int(order[k + 1])))
        raise InputError(
            f"particles {first} and {second} (counted from 0) are in the same place, and there is no softening: their "
            "energy is infinite; move one, or add a softening (gravity: {softening: plummer, length: …})"
        )


def check_finite(step: int, snapshot: Snapshot) -> None:
    """Raise RunFailed if a number of the state is a NaN or an infinity, with the step, the particle and the likely
    cause."""
    if all(map(math.isfinite, snapshot.sums.tolist())):  # for eight numbers four times as fast as NumPy
        return
    what = "the potential"
    for name in ("position", "velocity"):
        values = getattr(snapshot, name)
        sound = np.isfinite(values).all(axis=1)
        if not sound.all():
            what = f"the {name} of particle {int(np.argmin(sound))}"
            break
    raise RunFailed(
        f"step {step}: {what} is no longer a finite number; likely a close encounter without softening, or a time "
        "step too large (try a smaller --dt, or softening: plummer). The frames before this step are kept"
    )
