"""What the README says works as it is written, without a GPU too."""

import re
import shlex
import shutil

import pytest
from conftest import ROOT, child

from nbody import compute
from nbody.cli import main

README = (ROOT / "README.md").read_text()

SMALL = "--particles 64 --engine reference --precision float64"
CHEAP = {
    ".venv/bin/nbody run": f"{SMALL} --steps 4 --every 1",
    "nbody run disk": f"{SMALL} --steps 4 --every 1",
    "nbody view disk": SMALL,
    "nbody movie": "--size 160x120",
    "nbody sweep": "--set integrator.steps=2 --set initial.particles=32 --set engine=reference --set precision=float64",
    "nbody bench --cpu --gpu": "--engines reference --particles 64 --precision float64",
}
"""What is added to a command, so that it takes seconds; the last of two options counts."""

LONG = {"nbody sweep", "nbody verify"}
"""Commands that take longer all the same."""

COMMANDS = [
    (command, comment)
    for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
    for code, _, comment in [line.partition("#")]
    for command in [code.strip()]
    if "nbody " in command
]


def marked(command, comment):
    long = any(command.startswith(start) for start in LONG)
    return pytest.param(command, comment, marks=pytest.mark.campaign if long else (), id=command[-40:])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with the scenarios and a recording, as after the README's first line."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "scenarios").symlink_to(ROOT / "scenarios")
    run = f"run scenarios/disk.yaml -o {folder}/output/run.h5 --quiet {CHEAP['nbody run disk']}"
    (folder / "output").mkdir()
    assert main(shlex.split(run.replace("scenarios/", f"{ROOT}/scenarios/"))) == 0
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    """A copy of it, with a window that the user closes at once."""
    shutil.copytree(made, tmp_path / "here", symlinks=True)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr("nbody.viewer.backends.check_window", lambda: None)
    monkeypatch.setattr("nbody.viewer.window.show.Desktop.check", lambda screen: None)
    monkeypatch.setattr(
        "nbody.viewer.window.show.Desktop.show",
        lambda screen, source, clock, view, lost=None: (clock.close(), source.close()),
    )
    return tmp_path / "here"


@pytest.mark.parametrize("command,comment", [marked(*each) for each in COMMANDS])
def test_a_command_of_the_readme_works_as_written(command, comment, folder, capfd):
    needs_gpu = comment.strip().startswith("[GPU]")
    if needs_gpu and not compute.why_unavailable():
        pytest.skip("there is a GPU, and a million particles are too many for a test")
    for part in command.split("&&"):
        part = part.strip()
        if not re.match(r"(\.venv/bin/)?nbody ", part):
            continue  # the installation
        extra = next((more for start, more in CHEAP.items() if part.startswith(start)), "")
        code = main(shlex.split(f"{part} {extra}")[1:])
        error = capfd.readouterr().err
        if needs_gpu:
            assert code == 2 and "GPU" in error and error.count("\n") == 1, error
        else:
            assert code == 0, error
            assert "Traceback" not in error


def test_the_kernels_run_without_a_gpu(tmp_path):
    (name, value, command) = re.search(r"`(NUMBA_ENABLE_CUDASIM)=(1) (nbody run [^`]*)`", README).groups()
    done = child("-P", "-m", *shlex.split(command), env={name: value}, cwd=tmp_path)
    assert done.returncode == 0 and (tmp_path / "output/run.h5").exists(), done.stderr


def test_the_python_of_the_readme_runs(folder):
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names = {}
    exec(code.replace("4096", "64"), names)
    assert (folder / "energy.pdf").exists() and names["a"].shape == (64, 3)
