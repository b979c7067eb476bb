"""Wherever a user points an output, it is fit for a recording, or one true line says why not; and nothing is made."""

import os
import subprocess
from pathlib import Path

import pytest
from conftest import child, said

from nbody.errors import InputError
from nbody.trajectory import check_output

PLACES = {
    ".": "is a directory",
    "": "is a directory",
    "folder/": "is a directory",
    "pipe": "not an ordinary file",
    "pipe/run.h5": "is a file and no folder",
    "notes.txt/run.h5": "is a file and no folder",
    "no/such/run.h5": "there is no folder",
    "round": "is not a path that can be opened",
    "a\0b.h5": "a line break or the like is in this name",
    "a\nb.h5": "a line break or the like is in this name",
    "\udcff.h5": "a line break or the like is in this name",
    "x" * 300 + ".h5": "is not a path that can be opened (File name too long)",
    "notes.txt": "exists and is no recording",
    "link.txt": "exists and is no recording",
    "/dev/null": "not an ordinary file",
    "/dev/full": "not an ordinary file",
    "/dev/null/run.h5": "is a file and no folder",
    "/proc/run.h5": "/proc is the kernel's and keeps no files",
    "/proc/no/such.h5": "/proc/no is the kernel's and keeps no files",
    "/sys/kernel/run.h5": "is the kernel's and keeps no files",
}


def nbody(*arguments, **more):
    """The command, in a process of its own."""
    more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
    return child("-m", "nbody", *arguments, capture_output=False, **more)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with odd things in it."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "round").symlink_to("round")
    (tmp_path / "notes.txt").write_text("do not lose me")
    (tmp_path / "link.txt").symlink_to("notes.txt")
    (tmp_path / "ahead.h5").symlink_to("folder/run.h5")
    (tmp_path / "empty.h5").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ascii(place)[:20])
def test_paths_that_no_run_can_be_recorded_in_are_refused(folder, place):
    before = sorted(folder.rglob("*"))
    assert PLACES[place] in said(check_output, Path(place))
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("place", ["run.h5", "new/run.h5", "ahead.h5", "empty.h5", "a b ö.h5"])
def test_paths_that_a_run_can_be_recorded_in_are_accepted(folder, place):
    assert check_output(Path(place)) == (folder / place).resolve()


def test_a_scenario_whose_name_is_no_text_is_run_and_recorded(folder):
    """Its name stands in the command line, which is recorded, and HDF5 takes UTF-8 only."""
    name = os.fsdecode(b"G\xf6ttingen.yaml")
    Path(name).write_text("initial: {generator: plummer, particles: 8}\nintegrator: {dt: 0.1, steps: 1}\n")
    done = nbody("run", name, "-q", "--engine", "reference", "--precision", "float64")
    assert done.returncode == 0, done.stderr
    assert (folder / "output/run.h5").exists()


# --- A folder with code in it ------------------------------------------------------------------------------------------

DECOYS = ("nbody", "vispy", "mpi4py", "submitit", "numpy", "h5py", "json", "PySide6")


@pytest.mark.parametrize("arguments", [
    ("doctor",),
    ("sweep", "small.yaml", "--vary", "initial.seed=1"),
    ("run", "small.yaml", "--set", "initial={file: foreign.hdf5}"),
], ids=lambda arguments: arguments[0])  # fmt: skip
def test_code_in_the_current_folder_is_not_executed(tmp_path, arguments):
    """As in a folder that somebody has unpacked: Python imports from the current folder unless it is started with -P."""
    for name in DECOYS:
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'a').write({name!r})\n")
    (tmp_path / "foreign.hdf5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(1000))
    (tmp_path / "small.yaml").write_text(
        "initial: {generator: plummer, particles: 8}\nintegrator: {dt: 0.1, steps: 1}\nengine: reference\n"
        "precision: float64\n"
    )
    done = child("-P", "-m", "nbody", *arguments, cwd=tmp_path)  # as the installed script imports
    assert not (tmp_path / "executed").exists(), (tmp_path / "executed").read_text()
    assert done.returncode == (0 if arguments[0] in ("doctor", "sweep") else 2), done.stderr


# --- A standard output that takes nothing, or not every character ----------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["--help"], ["doctor", "--json"]], ids=" ".join)
def test_a_standard_output_on_a_full_disk_ends_with_exit_code_1(arguments):
    with open("/dev/full", "w") as full:
        done = nbody(*arguments, stdout=full)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: standard output can't be written (No space left on device); files that were written are kept"
    ]


def test_a_run_whose_standard_output_is_closed_is_recorded(folder):
    Path("small.yaml").write_text("initial: {generator: plummer, particles: 8}\nintegrator: {dt: 0.1, steps: 1}\n")
    options = ["small.yaml", "-q", "--engine", "reference", "--precision", "float64"]
    done = nbody("run", *options, stdout=None, preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "output/run.h5").exists()


def test_a_terminal_without_greek_gets_a_question_mark(folder):
    Path("small.yaml").write_text("name: ε\ninitial: {generator: plummer, particles: 8}\nintegrator: {dt: 1, steps: 1}\n")
    done = nbody("info", "small.yaml", env={"PYTHONIOENCODING": "ascii:strict"})
    assert done.returncode == 0 and "name: ?" in done.stdout


# --- An environment in which libraries fail ------------------------------------------------------------------------


def limited(limit, value):
    """For ``preexec_fn``."""
    import resource

    return lambda: resource.setrlimit(getattr(resource, limit), (value, value))


@pytest.mark.parametrize("most,command", [(5, "sweep plummer --vary initial.seed=1"), (8, "doctor"), (8, "run plummer")])
def test_a_process_that_may_open_few_files_says_so(folder, command, most):
    before = sorted(folder.rglob("*"))
    done = nbody(*command.split(), preexec_fn=limited("RLIMIT_NOFILE", most))
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == f"error: at most {most} files may be open here (ulimit -n); raise the limit to 32 or more\n"
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("integrator,code", [("leapfrog", 0), ("ias15", 2)])
def test_without_a_compiler_the_reference_runs_and_what_is_compiled_is_refused(folder, integrator, code):
    options = f"--engine reference --precision float64 --integrator {integrator} --steps 1 --every 1".split()
    done = nbody("run", "kepler", "-q", *options, env={"NUMBA_DISABLE_JIT": "1"})
    assert done.returncode == code, done.stderr
    assert code == 0 or ("NUMBA_DISABLE_JIT forbids it" in done.stderr and done.stderr.count("\n") == 1)


# --- A picture's name -------------------------------------------------------------------------------


def test_a_picture_name_with_a_line_break_is_refused():
    from nbody.viewer.screenshot import check_picture

    with pytest.raises(InputError, match=r"--screenshot a\\nb\.png: a line break"):
        check_picture(Path("a\nb.png"))
