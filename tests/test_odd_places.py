"""Wherever a user points an output, it is fit for a recording, or one true line says why not; and nothing is made."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nbody.errors import InputError
from nbody.trajectory import check_output

ROOT = Path(__file__).resolve().parents[1]

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
def test_a_place_that_no_run_can_be_recorded_in(folder, place):
    before = sorted(folder.rglob("*"))
    with pytest.raises(InputError) as caught:
        check_output(Path(place))
    assert PLACES[place] in str(caught.value) and str(caught.value).isprintable()
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("place", ["run.h5", "new/run.h5", "ahead.h5", "empty.h5", "a b ö.h5"])
def test_a_place_that_is_fit(folder, place):
    assert check_output(Path(place)) == (folder / place).resolve()


def test_a_scenario_whose_name_is_no_text_is_run_and_recorded(folder):
    """Its name stands in the command line, which is recorded, and HDF5 takes UTF-8 only."""
    name = os.fsdecode(b"G\xf6ttingen.yaml")
    Path(name).write_text("initial: {generator: plummer, particles: 8}\nintegrator: {dt: 0.1, steps: 1}\n")
    command = [sys.executable, "-m", "nbody", "run", name, "-q", "--engine", "reference", "--precision", "float64"]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (folder / "output/run.h5").exists()
