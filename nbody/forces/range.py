"""The range of the arithmetic: the numbers that a run forms of its bodies, and whether its precision can hold them.

Each is a product of powers of a few symbols. One below the smallest normal number loses its digits, or becomes zero: a run
would go on without gravity, and its energy would be conserved. One beyond the largest is an infinity.
"""

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from nbody.errors import InputError
from nbody.law import LAWS, Gravity
from nbody.particles import Particles

if TYPE_CHECKING:
    from nbody.forces.engine import Engine

Powers = dict[str, float]
"""The power of each symbol: G; m, the largest mass; x and v, the largest coordinate and velocity; r, the distance of a
typical pair; e, the softening length; dt, the time step."""

BODY: dict[str, Powers] = {
    "the largest mass": {"m": 1},
    "the largest position": {"x": 1},
    "the largest velocity": {"v": 1},
}
"""What every kernel reads, in the precision of a pair."""

STATE: dict[str, Powers] = {
    "a typical acceleration, G m/r²": {"G": 1, "m": 1, "r": -2},
    "a typical potential, G m/r": {"G": 1, "m": 1, "r": -1},
    "a typical kick, G m dt/r²": {"G": 1, "m": 1, "r": -2, "dt": 1},
    "the largest drift, v dt": {"v": 1, "dt": 1},
}
"""What an evaluation leaves in the state, and what its moves form: in the precision of the state."""

PAIR: dict[str, Powers] = {
    "G": {"G": 1},
    "G m": {"G": 1, "m": 1},
    "the softening length squared": {"e": 2},
    "a typical distance squared, r²": {"r": 2},
    "the inverse cube of a typical distance, 1/r³": {"r": -3},
    "m/r³ of a typical pair": {"m": 1, "r": -3},
    "m/r² of a typical pair": {"m": 1, "r": -2},
}
"""What a kernel forms of a pair, in the precision of a pair; an engine with ``own_units`` does not."""

SELF: Powers = {"m": 1, "e": -3}
"""The factor of the force of a body on itself with Plummer's softening. Times the distance, zero, it must not be a NaN."""

JERK: Powers = {"G": 1, "m": 1, "v": 1, "r": -3}

ENERGY: dict[str, Powers] = {
    "the largest kinetic energy, m v²": {"m": 1, "v": 2},
    "a typical potential energy, G m²/r": {"G": 1, "m": 2, "r": -1},
    "the largest angular momentum, m x v": {"m": 1, "x": 1, "v": 1},
}
"""Sums in float64 whatever the precision; too large ones only do harm."""


MOST_FACTORS, LEAST_RANGE = 6, 37
"""The most symbols of a product above; the decimal logarithm that every precision holds. (For few bodies the checks take as
long as the rest of this module.)"""


def check_range(
    engine: "type[Engine] | Engine", gravity: Gravity, precision: str, particles: Particles, where: str = "",
    dt: float = math.inf, power: int = 1,
) -> dict[str, float]:  # fmt: skip
    """Raise an InputError, which begins with ``where``, if a number that the run forms is out of range. Returns the
    :func:`symbols`.

    Args:
        dt: the time step; infinite if there is none of a fixed length.
        power: the highest power of it that is formed.
    """
    state = np.dtype(np.float32 if precision == "float32" else np.float64)
    pair = np.dtype(np.float64 if precision == "float64" else np.float32)
    logs = symbols(gravity, particles, dt)
    if max(MOST_FACTORS, power) * max(map(abs, logs.values())) < LEAST_RANGE:
        return logs
    powers_of_dt = {f"the time step to the power of {k}": {"dt": float(k)} for k in range(1, power + 1)}
    jerk = {"a typical jerk, G m v/r³": JERK} if power > 2 else {}
    for name, powers in BODY.items():
        _require(name, powers, logs, pair, where, precision)
    for name, powers in (STATE | powers_of_dt | jerk).items():
        _require(name, powers, logs, state, where, precision)
    for name, powers in ENERGY.items():
        _require(name, powers, logs, np.dtype(np.float64), where, precision, too_small=False)
    if engine.can.own_units:
        return logs
    for name, powers in PAIR.items():
        _require(name, powers, logs, state if name in ("G", "G m") else pair, where, precision)
    if LAWS.load(gravity.softening).needs_length:
        _require("m/ε³, ε the softening length", SELF, logs, pair, where, precision, too_small=False)
    return logs


def farthest(engine: "type[Engine]", precision: str) -> float:
    """At larger distances an engine takes 1/r³ for zero: it is below 1.2e-38, the smallest float32 that kernels do not flush
    to zero."""
    return math.inf if precision == "float64" or engine.can.own_units else 2e12


def symbols(gravity: Gravity, particles: Particles, dt: float = math.inf) -> dict[str, float]:
    """The decimal logarithms of the symbols of :data:`Powers` and of M, the total mass; without those that are zero, or
    that do not exist."""
    mass, position, velocity = (
        float(np.abs(each).max()) for each in (particles.mass, particles.position, particles.velocity)
    )
    weights, length = particles.mass / mass, math.sqrt(gravity.length2)
    total, typical = float(weights.sum()), 0.0
    if particles.count > 1:
        scale = position or 1.0  # so that no square overflows or vanishes
        typical = max(_typical_distance(particles.position, weights / total, scale), length)
    known = {"G": gravity.G, "m": mass, "x": position, "v": velocity, "e": length, "r": typical, "dt": dt}
    logs = {symbol: math.log10(value) for symbol, value in known.items() if 0 < value < math.inf}
    return logs | {"M": logs["m"] + math.log10(total)}


def _require(
    name: str, powers: Powers, logs: dict[str, float], real: np.dtype, where: str, precision: str,
    too_small: bool = True,
) -> None:  # fmt: skip
    if any(symbol not in logs for symbol in powers):
        return
    log, (low, high) = sum(power * logs[symbol] for symbol, power in powers.items()), _limits(real)
    if log > high or (too_small and log < low):
        exponent, limits = math.floor(log), np.finfo(real)
        fix = "; use other units" + (", or take --precision float64" if precision != "float64" else "")
        raise InputError(
            f"{where}{name}, {10 ** (log - exponent):.1f}e{exponent:+03d}, is beyond {real.name}, "
            f"{limits.tiny:.1e} to {limits.max:.1e}{fix}"
        )


@cache
def _limits(real: np.dtype) -> tuple[float, float]:
    """The decimal logarithms of the smallest normal number and of the largest one."""
    return math.log10(float(np.finfo(real).tiny)), math.log10(float(np.finfo(real).max))


SAMPLE = 4096
"""The bodies whose distances stand for all: every (N/4096)th."""


def _typical_distance(x: np.ndarray, weights: np.ndarray, scale: float) -> float:
    """Twice the median distance from the centre of mass; of bodies most of which are there, the largest distance.
    ``scale``: the largest coordinate."""
    centre = weights @ x / scale

    def distances(every: int) -> np.ndarray:
        distance = x[::every] / scale - centre
        return np.sqrt(np.einsum("ij,ij->i", distance, distance))

    sample = np.sort(distances(max(len(x) // SAMPLE, 1)))
    typical = sample[(len(sample) - 1) // 2] + sample[len(sample) // 2] or distances(1).max()
    return min(scale * float(typical), np.finfo(float).max)
