"""The steps of :mod:`.hermite4` in one compiled loop, for a few bodies: with the sums of
:mod:`nbody.forces.direct.cpu_few`, and the bits of the steps that are made one by one."""

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from nbody import compute
from nbody.forces.direct.cpu_few import adding_jerks


@cache
def steps_for(softening: str, dimensions: int) -> Callable:
    """The kernel of a law."""
    add_jerks = adding_jerks(softening, dimensions)

    def make_steps(x, v, a, j, m, law, moment, limits, fixed, eta, before):
        """Make steps of all bodies.

        Args:
            x, v, a, j: (N, D) positions, velocities, accelerations and jerks, changed in place.
            law: G and the softening length squared.
            moment: the time, and the length of the next step.
            limits: the number of steps, and the time until.
            fixed: the time of step 0, the number of this step, and the length of all steps, or of the largest one.
            eta: of Aarseth's formula; 0 if all steps have one length.
            before: (4, N, D) gets x, v, a and j at the beginning of the last step.

        Returns:
            The number of steps made, the time, the length of the next step, the beginning and the length of the last one,
            and the length of a step that can't be made, with True if there is one.
        """
        (time, following), (steps, until), (origin, first, longest) = moment, limits, fixed
        G, length2 = law
        x0, v0, a0, j0, sums = before[0], before[1], before[2], before[3], np.empty((6, m.size))
        done, last = 0, (time, 0.0)
        while done < steps and time < until:
            begin, end = time, time + following
            h = until - time if end > until else following
            if not abs(h) < np.inf or time + h == time:
                return done, time, following, last, (h, True)
            real = x.dtype.type
            h1, h2, h3 = real(h), real(h * h / 2), real(math.pow(h, 3.0) / 6)
            half, twelfth = real(h / 2), real(h * h / 12)
            for i in range(m.size):
                for d in range(dimensions):
                    x0[i, d], v0[i, d], a0[i, d], j0[i, d] = x[i, d], v[i, d], a[i, d], j[i, d]
                    x[i, d] += v[i, d] * h1 + a[i, d] * h2 + j[i, d] * h3
                    v[i, d] += a[i, d] * h1 + j[i, d] * h2
            add_jerks(x, v, m, G, length2, sums)
            for i in range(m.size):
                for d in range(dimensions):
                    a[i, d], j[i, d] = sums[d, i], sums[3 + d, i]
                    v[i, d] = v0[i, d] + ((a0[i, d] + a[i, d]) * half + (j0[i, d] - j[i, d]) * twelfth)
                    x[i, d] = x0[i, d] + ((v0[i, d] + v[i, d]) * half + (a0[i, d] - a[i, d]) * twelfth)
            done += 1
            if eta == 0.0:
                time = origin + (first + done) * longest
                continue
            time, last = min(end, until), (begin, following)
            smallest = np.inf
            for i in range(m.size):
                size_a, size_j, size_s, size_c = 0.0, 0.0, 0.0, 0.0
                for d in range(dimensions):
                    before, after = np.float64(a0[i, d]), np.float64(a[i, d])
                    jerk, new = np.float64(j0[i, d]), np.float64(j[i, d])
                    crackle = (12 * (before - after) + 6 * h * (jerk + new)) / math.pow(h, 3.0)
                    snap = (-6 * (before - after) - h * (4 * jerk + 2 * new)) / (h * h) + h * crackle
                    size_a, size_j = size_a + after * after, size_j + new * new
                    size_s, size_c = size_s + snap * snap, size_c + crackle * crackle
                size_a, size_j, size_s, size_c = np.sqrt(size_a), np.sqrt(size_j), np.sqrt(size_s), np.sqrt(size_c)
                ratio = (size_a * size_s + size_j * size_j) / (size_j * size_c + size_s * size_s)
                if ratio < smallest:  # it is a NaN without a force
                    smallest = ratio
            following = min(longest, np.sqrt(eta * smallest))
        return done, time, following, last, (0.0, False)

    return compute.kernel("cpu")(make_steps)
