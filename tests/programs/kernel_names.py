"""Names of a function that this process and its child compile for the cache; a user's functions keep their numbers."""

import os

from numba import njit, types

from nbody.compute.cpu_kernels import cpu_kernel


def twice(x):
    return x + x


def compiled(make):
    function = make(twice)
    function.compile((types.int64,))
    (made,) = function.overloads.values()
    return made.fndesc


child = os.fork()
if child:
    os.waitpid(child, 0)
before, ours, after = compiled(njit), compiled(cpu_kernel), compiled(njit)
assert after.uid == before.uid + 1, "a user's functions keep their numbers"
print(ours.mangled_name, flush=True)
