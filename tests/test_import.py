"""Importing nbody changes nothing in the user's process."""

from conftest import ROOT, program


def test_importing_every_module_leaves_the_process_as_it_was(tmp_path):
    run = program("importing", cwd=tmp_path, env={"PYTHONPATH": str(ROOT)})
    assert run.returncode == 0, run.stderr[-2000:]
    assert int(run.stdout) > 100


def test_a_machine_without_a_driver_is_known_without_the_compiler_for_gpus():
    reason, imported = program("questions", "driver", check=True).stdout.splitlines()
    assert (reason == "CUDA driver library cannot be found") == (imported == "False")


def test_a_driver_without_a_gpu_is_known_without_the_compiler_for_gpus():
    run = program("questions", "driver_without_a_gpu", check=True)
    assert run.stdout.split("reports ")[1] == "an unknown error False\n"


def test_without_numba_cuda_every_engine_is_listed_and_the_extra_is_named():
    run = program("questions", "without_numba_cuda", check=True)
    assert "not installed, which comes with nbody's extras cu13 and cu12" in run.stdout
