"""Importing nbody changes nothing in the user's process."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

CODE = """
import importlib, logging, os, pkgutil, signal, sys, warnings

# What the libraries do when they are imported is theirs.
import numba, numba.cuda, numba.cuda.dispatcher, numba.core.bytecode, numba.core.caching, numba.core.runtime
import h5py, matplotlib, numba.cuda.extending, numba.extending, numpy, pydantic, rich.console, typer, yaml
import vispy.app, vispy.scene, PIL.Image, scipy.integrate, scipy.interpolate, scipy.special, scipy.spatial
import numba.cuda.core.bytecode as cuda_bytecode

import scipy.integrate, scipy.interpolate, scipy.special  # SciPy itself adds warning filters when it is imported
DOORS = [
    numba.core.bytecode.FunctionIdentity, cuda_bytecode.FunctionIdentity, numba.core.caching.FunctionCache,
    numba.core.dispatcher.Dispatcher, numba.cuda.dispatcher.CUDADispatcher, numba.cuda.dispatcher._Kernel,
    numba.cuda.codegen.CUDACodeLibrary, numba, numba.cuda, numba.core.config,
]

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
print(len(names))
"""

LEFT_OUT = {
    "nbody.compute.simulated": "imported where Numba's simulator stands for a GPU, in tests alone",
    "nbody.linalg.simulated_warp": "the same",
}


def test_importing_every_module_leaves_the_process_as_it_was(tmp_path):
    code = f"LEFT_OUT = {set(LEFT_OUT)}\n{CODE}"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    assert int(run.stdout) > 100


def test_a_machine_without_a_driver_is_known_without_the_compiler_for_gpus():
    code = "import sys; from nbody import compute; print(compute.why_unavailable()); print('numba.cuda' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    reason, imported = run.stdout.splitlines()
    assert (reason == "CUDA driver library cannot be found") == (imported == "False")
