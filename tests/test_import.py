"""Importing nbody changes nothing in the user's process."""

from conftest import ROOT, child, program


def test_importing_every_module_leaves_the_process_as_it_was(tmp_path):
    run = program("importing", cwd=tmp_path, env={"PYTHONPATH": str(ROOT)})
    assert run.returncode == 0, run.stderr[-2000:]
    assert int(run.stdout) > 100


def test_a_machine_without_a_driver_is_known_without_the_compiler_for_gpus():
    code = "import sys; from nbody import compute; print(compute.why_unavailable()); print('numba.cuda' in sys.modules)"
    run = child("-c", code, check=True)
    reason, imported = run.stdout.splitlines()
    assert (reason == "CUDA driver library cannot be found") == (imported == "False")


DRIVER_WITHOUT_A_GPU = """
import sys
from types import SimpleNamespace
from nbody.compute.gpu import driver
library = SimpleNamespace(cuInit=lambda flags: 100, cuGetErrorName=lambda status, name: None)
driver._load_driver = lambda: (library, "")
print(driver.why_unavailable(), "numba.cuda" in sys.modules)
"""


def test_a_driver_without_a_gpu_is_known_without_the_compiler_for_gpus():
    run = child("-c", DRIVER_WITHOUT_A_GPU, check=True)
    assert run.stdout.split("reports ")[1] == "an unknown error False\n"


WITHOUT_NUMBA_CUDA = """
import importlib.util, sys
find = importlib.util.find_spec
sys.meta_path = [each for each in sys.meta_path if "NumbaCuda" not in type(each).__name__]
sys.modules["numba_cuda"] = None
for each in ("nbody.compute.gpu.driver", "nbody.compute.compiling.gpu_kernels"):
    importlib.import_module(each).find_spec = lambda name: None if name == "numba_cuda" else find(name)
from nbody.compute.gpu import driver
driver._load_driver = lambda: (type("Library", (), {"cuInit": lambda self, flags: 0})(), "")
from nbody.forces import ENGINES
print(len([ENGINES.load(name) for name in ENGINES]), driver.why_unavailable())
"""


def test_without_numba_cuda_every_engine_is_listed_and_the_extra_is_named():
    run = child("-c", WITHOUT_NUMBA_CUDA, check=True)
    assert "not installed, which comes with nbody's extras cu13 and cu12" in run.stdout
