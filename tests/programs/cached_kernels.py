"""Forces by kernels of the cache: loads and compilations of each, and bits of another."""

import hashlib

import numpy as np

from nbody.forces.api import accelerations
from nbody.forces.direct import cpu_pairs, cpu_rows
from nbody.forces.reference import direct_sum
from nbody.law import Gravity
from nbody.state import Outputs

position, mass = np.random.default_rng(2).standard_normal((300, 3)), np.full(300, 1 / 300)
for softening, length in (("plummer", 0.2), ("cutoff", 0.5)):
    right, _ = direct_sum(position, mass, Gravity(softening=softening, length=length))
    a = accelerations(position, mass, softening=softening, length=length, engine="cpu")
    assert abs(a - right).max() < 1e-12, softening
    stats = cpu_pairs.gravitate_for(softening, 3, False, "float64").stats
    print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
rows = cpu_rows.rows_for("plummer", Outputs.JERK, "float32")
sums = np.zeros((50, cpu_rows.SUMS), np.float32)
x, v = np.random.default_rng(3).standard_normal((2, 3, 50)).astype("f4")
rows(np.arange(50), x, v, np.ones(50, "f4"), np.float32(0.01), sums)
print(hashlib.sha256(sums.tobytes()).hexdigest())
