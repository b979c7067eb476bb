"""General relativity's 1PN terms of all bodies on all others: the equations of Einstein, Infeld and Hoffmann.

With d = x_j - x_i, r = |d|, μ = G m, and the Newtonian potentials U_i = Σ μ_k/r_ik and accelerations A, body i gets

    c² a_i = Σ_j μ_j/r³ { [v_i² + 2 v_j² - 4 v_i·v_j - 4 U_i - U_j - 3 (d·v_j)²/(2 r²) + d·A_j/2] d
                          - [d·(4 v_i - 3 v_j)] (v_i - v_j) } + 7/2 Σ_j μ_j A_j/r,

and the conserved energy is, besides Newton's and up to terms in 1/c⁴, Σ m_i e_i with

    c² e_i = 3 v_i⁴/8 + ½ Σ_j μ_j/r [3 v_i² - 7/2 v_i·v_j - (d·v_i)(d·v_j)/(2 r²)] + U_i²/2.

(Einstein, Infeld & Hoffmann 1938; Will 1993, section 6.2; the form of JPL's ephemerides, Newhall, Standish & Williams 1983.)
"""

import numpy as np
from numba import njit

STRICT: set[str] = set()
"""No fast mathematics, see :data:`.post_newtonian.STRICT`."""


@njit(error_model="numpy", fastmath=STRICT)
def potentials(x, m, G, found):
    """U of each body, (N,)."""
    for i in range(m.size):
        found[i] = 0.0
        for j in range(m.size):
            if j != i and m[j] > 0.0:
                dx, dy, dz = x[0, j] - x[0, i], x[1, j] - x[1, i], x[2, j] - x[2, i]
                found[i] += G * m[j] / np.sqrt(dx * dx + dy * dy + dz * dz)


@njit(error_model="numpy", fastmath=STRICT)
def add_mutual_forces(x, v, m, G, per_c2, work, a):
    """Add the terms to the Newtonian accelerations ``a`` of all bodies; (3, N) each, ``per_c2`` is 1/c², ``work`` (4 N,)."""
    n = m.size
    U, A = work[:n], work[n : 4 * n].reshape(3, n)
    potentials(x, m, G, U)
    for c in range(3):
        for i in range(n):
            A[c, i] = a[c, i]
    for i in range(n):
        vi2 = v[0, i] * v[0, i] + v[1, i] * v[1, i] + v[2, i] * v[2, i]
        for j in range(n):
            if j == i or m[j] == 0.0:
                continue
            dx, dy, dz = x[0, j] - x[0, i], x[1, j] - x[1, i], x[2, j] - x[2, i]
            u = 1.0 / np.sqrt(dx * dx + dy * dy + dz * dz)
            wx, wy, wz = v[0, i] - v[0, j], v[1, i] - v[1, j], v[2, i] - v[2, j]
            vj2 = v[0, j] * v[0, j] + v[1, j] * v[1, j] + v[2, j] * v[2, j]
            vij = v[0, i] * v[0, j] + v[1, i] * v[1, j] + v[2, i] * v[2, j]
            di, dj = dx * v[0, i] + dy * v[1, i] + dz * v[2, i], dx * v[0, j] + dy * v[1, j] + dz * v[2, j]
            dA = dx * A[0, j] + dy * A[1, j] + dz * A[2, j]
            along = vi2 + 2.0 * vj2 - 4.0 * vij - 4.0 * U[i] - U[j] - 1.5 * dj * dj * u * u + 0.5 * dA
            mu_u = per_c2 * G * m[j] * u
            f, across, on_A = mu_u * u * u, 3.0 * dj - 4.0 * di, 3.5 * mu_u
            a[0, i] += f * (along * dx + across * wx) + on_A * A[0, j]
            a[1, i] += f * (along * dy + across * wy) + on_A * A[1, j]
            a[2, i] += f * (along * dz + across * wz) + on_A * A[2, j]


@njit(error_model="numpy", fastmath=STRICT)
def add_mutual_energies(x, v, m, G, per_c2, phi):
    """Add e_i, the energy of each body per unit of its mass, to ``phi`` (N,)."""
    U = np.empty(m.size)
    potentials(x, m, G, U)
    for i in range(m.size):
        vi2 = v[0, i] * v[0, i] + v[1, i] * v[1, i] + v[2, i] * v[2, i]
        phi[i] += per_c2 * (0.375 * vi2 * vi2 + 0.5 * U[i] * U[i])
        for j in range(m.size):
            if j != i and m[j] > 0.0:
                r2 = di = dj = vij = 0.0
                for c in range(3):
                    d = x[c, j] - x[c, i]
                    r2, di, dj, vij = r2 + d * d, di + d * v[c, i], dj + d * v[c, j], vij + v[c, i] * v[c, j]
                phi[i] += 0.5 * per_c2 * G * m[j] / np.sqrt(r2) * (3.0 * vi2 - 3.5 * vij - 0.5 * di * dj / r2)
