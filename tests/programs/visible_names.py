"""What is visible of kernels is called by their files, and nothing else is."""

from llvmlite.binding import Linkage
from numba import njit

from nbody.compute import kernel
from nbody.forces.api import accelerations
from nbody.forces.direct import cpu_few, cpu_pairs, cpu_tiles

once = njit(lambda x: cpu_few._rsqrt(x) + 1)
once(2.0)  # outside of kernels, before them
accelerations([[float(k), 0, 0] for k in range(100)], [1.0] * 100, engine="cpu", softening="cutoff", potential=True)
using = kernel("cpu")(lambda x: once(x))
using(2.0)
for made in (cpu_pairs.gravitate_for("cutoff", 3, False, "float64"), cpu_tiles.pack, using):
    (name,) = {each.split("-")[1] for each in [made._cache.name(types) for types in made.overloads]}
    for one in made.overloads.values():
        module = one.library._final_module
        for each in (*module.functions, *module.global_variables):
            local = each.is_declaration or each.linkage in (Linkage.internal, Linkage.private)
            assert local or name in each.name, (each.name, each.linkage)
