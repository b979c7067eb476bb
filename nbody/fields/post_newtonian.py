"""General relativity's first correction (1PN) to the attraction of a central body, with its reaction on that body.

Each body i moves relative to the heaviest body s by the Lagrangian of a test particle in Schwarzschild's metric, harmonic
coordinates, to order 1/c². With the separation r, the velocity v, μ = G (m_s + m_i) and the reduced mass
w = m_s m_i/(m_s + m_i),

    L_i = w/c² (v⁴/8 + 3 μ v²/(2r) - μ²/(2r²)),

    f_i = w/c² { [μ²/r⁴ - 3 μ v²/(2 r³)] r + [3 μ (r·v)/r³ - v·A] v - [v²/2 + 3 μ/r] A },

where A is the Newtonian acceleration of i relative to s by all bodies. Body i gets f_i and body s gets -f_i, so momentum
Σ m v is conserved; so is the energy with Σ w/c² (3 v⁴/8 + 3 μ v²/(2r) + μ²/(2r²)), up to terms in 1/c⁴. An ellipse turns by
6πμ/(c² a (1 - e²)) per period, for any ratio of the two masses. Terms of order m_i m_j/c² between other bodies are left out.
(Einstein, Infeld & Hoffmann 1938; Anderson et al. 1975; with A = -μ r/r³, f_i is Anderson's formula.)
"""

import math
from typing import Literal, Self

import numpy as np
from numba import njit
from pydantic import model_validator

from nbody.fields.field import MUTUAL, POST_NEWTONIAN, Array, VelocityField
from nbody.fields.light import LIGHT, SpeedOfLight
from nbody.fields.mutual_relativity import add_mutual_energies, add_mutual_forces


class PostNewtonian(VelocityField, validate_default=True):
    """The 1PN term of the heaviest body, or of all bodies.

    Attributes:
        c: the speed of light. In a scenario with units it is known.
        by: ``heaviest``: the term of the heaviest body; ``all``: the terms of all bodies on all others
            (:mod:`nbody.fields.mutual_relativity`), for a few bodies and ``ias15``. Momentum Σ m v is then kept up to 1/c².
    """

    c: SpeedOfLight = LIGHT  # type: ignore[assignment]
    by: Literal["heaviest", "all"] = "heaviest"

    @property
    def kind(self) -> str:
        return MUTUAL if self.by == "all" else POST_NEWTONIAN

    @model_validator(mode="after")
    def _representable(self) -> Self:
        if not 0 < self.strength() < math.inf:
            raise OverflowError
        return self

    def strength(self) -> float:
        return 1.0 / self.c**2

    def add(
        self, position: Array, velocity: Array, mass: Array, G: float, systems: int = 1, *,
        acceleration: Array | None = None, potential: Array | None = None, factor: float = 1.0,
    ) -> None:  # fmt: skip
        count, D = position.shape
        n, law, mutual = count // systems, (G, self.strength()), self.kind == MUTUAL
        x, v, a = found = np.zeros((3, systems, 3, n))
        given = position, velocity, position if acceleration is None else acceleration
        for rows, values in zip(found, given, strict=True):
            rows[:, :D] = values.reshape(systems, n, D).transpose(0, 2, 1)
        m, phi, work = mass.astype(np.float64).reshape(systems, n), np.zeros((systems, n)), np.empty(4 * n)
        for s in range(systems):
            if potential is not None:
                (add_mutual_energies if mutual else add_energies)(x[s], v[s], m[s], *law, phi[s])
            elif mutual:
                add_mutual_forces(x[s], v[s], m[s], *law, work, a[s])
            else:
                add_forces(x[s], v[s], m[s], *law, a[s])
        if potential is not None:
            potential += factor * phi.ravel()
        if acceleration is not None:
            acceleration[...] = a[:, :D].transpose(0, 2, 1).reshape(count, D)


STRICT: set[str] = set()
"""No fast mathematics, not even fused multiply-adds: which products the compiler fuses may depend on what it has inlined
where, and then a function would give other bits in another kernel. It costs the map 14 %: 1.51e6 steps per second of the
outer solar system instead of 1.76e6 on one EPYC core."""


@njit(error_model="numpy", fastmath=STRICT)
def heaviest(m):
    """The index of the largest mass, the first of equal ones."""
    s = 0
    for i in range(1, m.size):
        if m[i] > m[s]:
            s = i
    return s


@njit(error_model="numpy", fastmath=STRICT)
def add_forces(x, v, m, G, per_c2, a):
    """Add f_i/m_i to the Newtonian accelerations ``a`` of all bodies; (3, N) each, ``per_c2`` is 1/c²."""
    s = heaviest(m)
    ax, ay, az = a[0, s], a[1, s], a[2, s]
    back_x, back_y, back_z = 0.0, 0.0, 0.0
    for i in range(m.size):
        mu = G * (m[s] + m[i])
        if i == s or mu == 0.0:
            continue
        rx, ry, rz = x[0, i] - x[0, s], x[1, i] - x[1, s], x[2, i] - x[2, s]
        vx, vy, vz = v[0, i] - v[0, s], v[1, i] - v[1, s], v[2, i] - v[2, s]
        Ax, Ay, Az = a[0, i] - ax, a[1, i] - ay, a[2, i] - az
        u = 1.0 / np.sqrt(rx * rx + ry * ry + rz * rz)
        v2 = vx * vx + vy * vy + vz * vz
        mu_u, mu_u3 = mu * u, mu * u * u * u
        share = per_c2 * m[s] / (m[s] + m[i])
        on_r = share * mu_u3 * (mu_u - 1.5 * v2)
        on_v = share * (3.0 * mu_u3 * (rx * vx + ry * vy + rz * vz) - (vx * Ax + vy * Ay + vz * Az))
        on_A = share * (0.5 * v2 + 3.0 * mu_u)
        fx = on_r * rx + on_v * vx - on_A * Ax
        fy = on_r * ry + on_v * vy - on_A * Ay
        fz = on_r * rz + on_v * vz - on_A * Az
        a[0, i] += fx
        a[1, i] += fy
        a[2, i] += fz
        ratio = m[i] / m[s]
        back_x += ratio * fx
        back_y += ratio * fy
        back_z += ratio * fz
    a[0, s] -= back_x
    a[1, s] -= back_y
    a[2, s] -= back_z


@njit(error_model="numpy", fastmath=STRICT)
def add_energies(x, v, m, G, per_c2, phi):
    """Add the energy of each body per unit of its mass to ``phi`` (N,)."""
    s = heaviest(m)
    for i in range(m.size):
        mu = G * (m[s] + m[i])
        if i == s or mu == 0.0:
            continue
        r2, v2 = 0.0, 0.0
        for c in range(3):
            r2 += (x[c, i] - x[c, s]) ** 2
            v2 += (v[c, i] - v[c, s]) ** 2
        mu_u = mu / np.sqrt(r2)
        share = per_c2 * m[s] / (m[s] + m[i])
        phi[i] += share * (0.375 * v2 * v2 + 1.5 * mu_u * v2 + 0.5 * mu_u * mu_u)
