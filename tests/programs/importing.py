"""Import every module of nbody; what that changes in the process fails. Prints their number."""
# ruff: noqa: E401, E402, F401, I001  (what is imported, and when, is the matter)

import importlib, logging, os, pkgutil, signal, sys, warnings

# What the libraries do when they are imported is theirs.
import numba, numba.cuda, numba.cuda.dispatcher, numba.core.bytecode, numba.core.caching, numba.core.runtime
import h5py, matplotlib, numba.cuda.extending, numba.extending, numpy, pydantic, rich.console, typer, yaml
import vispy.app, vispy.scene, PIL.Image, scipy.integrate, scipy.interpolate, scipy.special, scipy.spatial
import numba.cuda.core.bytecode as cuda_bytecode

DOORS = [
    numba.core.bytecode.FunctionIdentity,
    cuda_bytecode.FunctionIdentity,
    numba.core.caching.FunctionCache,
    numba.core.dispatcher.Dispatcher,
    numba.cuda.dispatcher.CUDADispatcher,
    numba.cuda.dispatcher._Kernel,
    numba.cuda.codegen.CUDACodeLibrary,
    numba,
    numba.cuda,
    numba.core.config,
]

LEFT_OUT = {
    "nbody.compute.simulator.functions": "imported where Numba's simulator stands for a GPU, in tests alone",
    "nbody.linalg.simulated_warp": "the same",
}


def process():
    return {
        "warnings": list(warnings.filters),
        "showwarning": warnings.showwarning,
        "environment": dict(os.environ),
        "signals": [signal.getsignal(number) for number in signal.valid_signals()],
        "logging": [logging.root.level, list(logging.root.handlers), logging.getLogger("numba").level],
        "floating point": numpy.geterr(),
        "printing": numpy.get_printoptions(),
        "paths": list(sys.path),
        "hooks": [sys.excepthook, sys.displayhook, list(sys.meta_path)],
        "Numba": [{k: v for k, v in vars(door).items() if not k.startswith("__")} for door in DOORS],
        "number": str(numba.core.bytecode.FunctionIdentity._unique_ids),
    }


before = process()
import nbody

found = [one.name for one in pkgutil.walk_packages(nbody.__path__, "nbody.")]
names = [name for name in found if not name.endswith(".__main__")]  # programs
for name in names:
    if name not in LEFT_OUT:
        importlib.import_module(name)
after = process()
for what, value in before.items():
    assert after[what] == value, what

import gc

from nbody.compute.compiling.cpu_inner import InnerDispatcher
from nbody.compute.compiling.fingerprint import fingerprint

for each in gc.get_objects():
    if isinstance(each, InnerDispatcher):
        fingerprint(each.py_func)  # else every process would compile the kernels that call it
print(len(names))
