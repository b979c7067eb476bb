"""``python tests/programs/questions.py NAME ARGUMENTS``: calls the function of this name, in a process that has imported
nothing else."""

import sys


def loaded(*names):
    """Which of these modules have been imported."""
    print([name for name in names if name in sys.modules])


def after_help():
    from nbody.cli import main

    main(["--help"])
    loaded("numba", "numba.cuda", "h5py", "vispy", "matplotlib", "pydantic")


def after_completion():
    from nbody.cli import completion

    for offer in (completion.engines, completion.precisions, completion.rungs, completion.files(".h5")):
        offer("")
    loaded("numba", "h5py", "vispy", "matplotlib")


def after_formats():
    import nbody.exchange  # noqa: F401

    loaded("h5py", "yt", "pynbody", "rebound")


def after_scenario():
    import nbody.scenario  # noqa: F401

    loaded("numba", "h5py", "vispy")


def after_script():
    before = set(sys.modules)
    import nbody.__main__  # noqa: F401

    print(*sorted(set(sys.modules) - before))


def after_reading(path):
    from nbody.trajectory import Trajectory, TrajectoryWriter, read_checkpoint

    with Trajectory(path) as run:
        assert run.verify() == [] and len(run) == 3
    TrajectoryWriter.reopen(path, read_checkpoint(path)).close()
    loaded("h5py")


def after_names_of_nbody():
    """Whether packages were searched for plug-ins."""
    import nbody
    from nbody.forces import ENGINES

    nbody.plummer(8)
    ENGINES.load("cpu"), ENGINES.listing(), list(ENGINES)
    print("plugins" in vars(ENGINES))


def collecting(name):
    """Whether garbage is collected as usual after a command, and after the next search."""
    import gc

    import nbody.__main__

    usual, sys.argv = gc.get_threshold(), ["nbody", "--version"]
    getattr(nbody.__main__, name)()
    print(gc.isenabled() and not gc.get_freeze_count() and gc.get_threshold() == usual)
    gc.collect()
    print(gc.get_threshold() == usual)


def driver():
    from nbody import compute

    print(compute.why_unavailable())
    print("numba.cuda" in sys.modules)


def driver_without_a_gpu():
    from types import SimpleNamespace

    from nbody.compute.gpu import driver

    library = SimpleNamespace(cuInit=lambda flags: 100, cuGetErrorName=lambda status, name: None)
    driver._load_driver = lambda: (library, "")
    print(driver.why_unavailable(), "numba.cuda" in sys.modules)


def without_numba_cuda():
    import importlib.util

    find = importlib.util.find_spec
    sys.meta_path = [each for each in sys.meta_path if "NumbaCuda" not in type(each).__name__]
    sys.modules["numba_cuda"] = None
    for each in ("nbody.compute.gpu.driver", "nbody.compute.compiling.gpu_kernels"):
        importlib.import_module(each).find_spec = lambda name: None if name == "numba_cuda" else find(name)
    from nbody.compute.gpu import driver

    driver._load_driver = lambda: (type("Library", (), {"cuInit": lambda self, flags: 0})(), "")
    from nbody.forces import ENGINES

    print(len([ENGINES.load(name) for name in ENGINES]), driver.why_unavailable())


def fingerprints():
    """Of the kernels of a run on a GPU."""
    from test_kernel_files import fingerprint, kernels

    print(*[fingerprint(kernel.py_func) for kernel in kernels()])


def defect(*arguments):
    """A command of a program with a defect."""
    from nbody.cli import main
    from nbody.run.simulation import Simulation

    Simulation.progress_events = lambda *given, **options: 1 / 0
    main([*arguments])


def library(describes, memory, seconds, path):
    """The process of the HDF5 library, whose description of a file never ends, or takes all memory."""
    from nbody import guarded_child
    from nbody.trajectory.structure import h5format

    def forever(*_):
        while True:
            pass

    h5format.describe = {"forever": forever, "much": lambda *_: [0] * 2**30}[describes]
    target = "nbody.trajectory.structure.h5format:LibraryFile"
    guarded_child.serve(target, int(memory), float(seconds), path)


def notebook(path):
    """The output of the cells of a notebook."""
    import json
    from pathlib import Path

    from notebook_runner import run

    print(json.dumps(run(Path(path))))


def packaged(*arguments):
    """Run a command of the package that is found on the path."""
    import nbody
    from nbody.cli import main

    print(nbody.__file__)
    sys.exit(main([*arguments]))


def packaged_manual():
    from pathlib import Path

    from nbody.manual.__main__ import build

    sys.exit(build(Path("manual"), strict=True))


globals()[sys.argv[1]](*sys.argv[2:])
