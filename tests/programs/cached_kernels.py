"""Forces by kernels of the cache: loads and compilations of each, and bits of another.

What is visible of kernels that this process compiles is called by their files, and nothing else is.
"""

import hashlib

import numpy as np
from llvmlite.binding import Linkage
from numba import njit

from nbody.compute import kernel
from nbody.forces.api import accelerations
from nbody.forces.direct import cpu_few, cpu_rows
from nbody.forces.reference import direct_sum
from nbody.law import Gravity
from nbody.state import Outputs

once = njit(lambda x: cpu_few._rsqrt(x) + 1)
once(2.0)  # outside of kernels, before them
position, mass, made = np.random.default_rng(2).standard_normal((50, 3)), np.full(50, 1 / 50), []
for softening, length in (("plummer", 0.2), ("cutoff", 0.5)):
    right, _ = direct_sum(position, mass, Gravity(softening=softening, length=length))
    a = accelerations(position, mass, softening=softening, length=length, engine="cpu")
    assert abs(a - right).max() < 1e-12, softening
    made.append(cpu_few.few_kernels(softening, 3).accelerations)
    print(sum(made[-1].stats.cache_hits.values()), sum(made[-1].stats.cache_misses.values()))
rows = cpu_rows.rows_for("plummer", Outputs.JERK, "float32")
sums = np.zeros((50, cpu_rows.SUMS), np.float32)
x, v = np.random.default_rng(3).standard_normal((2, 3, 50)).astype("f4")
rows(np.arange(50), x, v, np.ones(50, "f4"), np.float32(0.01), sums)
print(hashlib.sha256(sums.tobytes()).hexdigest())

using = kernel("cpu")(lambda x: once(x))
using(2.0)
for each in (*made, rows, using):
    (name,) = {file.split("-")[1] for file in [each._cache.name(types) for types in each.overloads]}
    for one in each.overloads.values() if each.stats.cache_misses else ():
        module = one.library._final_module
        for what in (*module.functions, *module.global_variables):
            local = what.is_declaration or what.linkage in (Linkage.internal, Linkage.private)
            assert local or name in what.name, (what.name, what.linkage)
