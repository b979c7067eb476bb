"""A file that is not a sound recording is one line naming the file and the place, whoever made it."""

import os
import shutil
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from nbody import guarded_child
from nbody.errors import InputError, printable
from nbody.particles import Particles
from nbody.trajectory import Frame, RunHeader, Trajectory, TrajectoryWriter, read_checkpoint

sys.path.insert(0, str(Path(__file__).parent / "crash"))
from forked import Forked

POSITION, VELOCITY, MASS = "particles/trajectory/position/value", "particles/trajectory/velocity/value", "mass"
STEP = "particles/trajectory/position/step"


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A recording of 3 frames of 20 particles with a checkpoint."""
    path = tmp_path_factory.mktemp("sound") / "run.h5"
    x = np.arange(60.0).reshape(20, 3)
    with TrajectoryWriter(path, Particles(np.ones(20), x, x), RunHeader(3, state_bytes=70_000)) as writer:
        for k in range(3):
            writer.append(Frame(k, 0.1 * k, x.astype("f4"), x.astype("f4")))
        writer.checkpoint({"x": x}, {})
    return path


def replaced(name: str, make):
    """A change of a file: the dataset ``name`` is removed, and ``make(file, name)`` puts another in its place."""

    def change(file):
        del file[name]
        make(file, name)

    return change


def dataset(*args, **options):
    """Makes an ordinary dataset."""
    return lambda file, name: file.create_dataset(name, *args, **options)


def virtual(file, name):
    """A dataset that reads another file."""
    layout = h5py.VirtualLayout((3, 20, 3), "f4")
    layout[:] = h5py.VirtualSource("secret.h5", "x", (3, 20, 3))
    file.create_virtual_dataset(name, layout)


def external(file, name):
    """A dataset whose bytes are in another file."""
    file.create_dataset(name, (3, 20, 3), "f4", external=[("/etc/hostname", 0, 720)])


def link(target):
    """Puts a link in the dataset's place."""

    def make(file, name):
        file[name] = target

    return make


CHANGES = {
    "no positions": (lambda file: file.__delitem__(POSITION), "has no /particles/trajectory/position/value"),
    "no group": (lambda file: file.__delitem__("particles"), "has no /particles"),
    "no nbody": (lambda file: file.__delitem__("nbody"), "has no /nbody"),
    "no dimensions": (lambda file: file["nbody"].attrs.__delitem__("dimensions"), "neither 2 nor 3 dimensions"),
    "four dimensions": (lambda file: file["nbody"].attrs.__setitem__("dimensions", 4), "neither 2 nor 3"),
    "dimensions a word": (lambda file: file["nbody"].attrs.__setitem__("dimensions", "three"), "neither 2 nor 3"),
    "a group for a dataset": (replaced(POSITION, lambda file, name: file.create_group(name)), "is not a dataset"),
    "a dataset for a group": (replaced("nbody", dataset(data=1)), "has no /nbody/"),
    "two columns": (replaced(POSITION, dataset((3, 20, 2), "f4")), "has shape"),
    "flat": (replaced(POSITION, dataset((3, 60), "f4")), "has shape"),
    "other count": (replaced(VELOCITY, dataset((3, 19, 3), "f4")), "velocity/value: has shape"),
    "integers": (replaced(POSITION, dataset((3, 20, 3), "i4")), "type int32"),
    "complex": (replaced(VELOCITY, dataset((3, 20, 3), "c8")), "velocity/value: has shape"),
    "strings": (replaced(POSITION, dataset((3, 20, 3), "S4")), "type |S4"),
    "12 TB declared": (
        replaced(POSITION, dataset((10**6, 20, 3), "f8", chunks=(1, 20, 3))),
        "more than the file holds",
    ),
    "mass a scalar": (replaced("particles/trajectory/mass", dataset(data=1.0)), "mass: has shape"),
    "huge mass": (
        replaced("particles/trajectory/mass", dataset((2**40,), "f8", chunks=(1024,))),
        "more than the file holds",
    ),
    "scenario a number": (replaced("nbody/scenario", dataset(data=7)), "scenario: has shape"),
    "resolved not JSON": (replaced("nbody/resolved", dataset(data=np.bytes_(b"{"))), "damaged"),
    "scenario not UTF-8": (replaced("nbody/scenario", dataset(data=np.bytes_(b"\xff\xfe"))), "damaged"),
    "commit of another kind": (
        replaced("nbody/commit", dataset(data=np.zeros(1, [("a", "f4")]))),
        "is not a commit record",
    ),
    "no checksums": (lambda file: file.__delitem__("nbody/crc32"), "has no /nbody/crc32"),
    "virtual": (replaced(POSITION, virtual), "keeps its data in other files"),
    "external storage": (replaced(POSITION, external), "keeps its data in other files"),
    "soft link": (replaced(POSITION, link(h5py.SoftLink("/" + VELOCITY))), "is a link that may lead elsewhere"),
    "soft link to itself": (replaced(POSITION, link(h5py.SoftLink("/" + POSITION))), "is a link that may lead"),
    "external link": (replaced("observables", link(h5py.ExternalLink("secret.h5", "/"))), "is a link that may lead"),
    "provenance a link": (
        replaced("nbody/provenance", link(h5py.ExternalLink("secret.h5", "/"))),
        "provenance: is a link that may lead",
    ),
    "checkpoint a link": (
        replaced("nbody/checkpoint/0", link(h5py.ExternalLink("secret.h5", "/"))),
        "checkpoint/0: is a link that may lead",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_recording_that_was_tampered_with_is_refused(sound, tmp_path, monkeypatch, name):
    monkeypatch.setattr(guarded_child, "start", Forked)
    change, message = CHANGES[name]
    path = tmp_path / "bad.h5"
    shutil.copyfile(sound, path)
    with h5py.File(path, "r+") as file:
        change(file)
    before = path.read_bytes()
    with pytest.raises(InputError, match=message) as caught:
        Trajectory(path)
    assert str(caught.value).startswith(f"{path}: ")
    with pytest.raises(InputError):
        TrajectoryWriter.reopen(path, read_checkpoint(sound))
    assert os.listdir(tmp_path) == ["bad.h5"] and path.read_bytes() == before


RESOLVED = "nbody/resolved"


@pytest.mark.parametrize(
    ("change", "command", "says"),
    [
        (replaced(STEP, dataset(data=np.zeros(0, np.int64))), "export", "has no frame yet"),
        (replaced(RESOLVED, dataset(data=np.bytes_(b'{"units": {"mass": "g", "x": 1}}'))), "info", "is damaged"),
        (replaced(RESOLVED, dataset(data=np.bytes_(b'{"integrator": {"scheme": []}}'))), "info", "is damaged"),
    ],
)
def test_forged_numbers_are_refused_by_the_commands_that_show_them(sound, tmp_path, refused, change, command, says):
    path = tmp_path / "bad.h5"
    shutil.copyfile(sound, path)
    with h5py.File(path, "r+") as file:
        change(file)
    words = [command, path, *([tmp_path / "a.csv"] if command == "export" else [])]
    assert refused(*words).startswith(f"{path}: {says}") and os.listdir(tmp_path) == ["bad.h5"]


def test_what_is_no_recording_at_all_is_refused(sound, tmp_path):
    whole = sound.read_bytes()
    os.mkfifo(tmp_path / "fifo")
    os.symlink("loop", tmp_path / "loop")
    (tmp_path / "empty.h5").touch()
    (tmp_path / "text.h5").write_text("name: disk\n")
    (tmp_path / "cut.h5").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "head.h5").write_bytes(whole[:100])
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = 1
    for path, message in (
        (tmp_path / "missing.h5", "there is no such file"),
        (tmp_path, "is a directory"),
        (tmp_path / "fifo", "is a pipe or a device"),
        (tmp_path / "loop", "can't be read"),
        ("/dev/null", "is a pipe or a device"),
        ("nul\0.h5", "can't be read"),
        (tmp_path / "empty.h5", "is empty"),
        (tmp_path / "text.h5", "is not an HDF5 file"),
        (tmp_path / "cut.h5", "damaged"),
        (tmp_path / "head.h5", "damaged|not an HDF5 file"),
        (tmp_path / "other.h5", "HDF5, but not a recording"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            Trajectory(path)
        assert str(caught.value).startswith(f"{printable(path)}: ")


def test_a_recording_whose_frames_do_not_fit_the_memory_is_refused(sound, monkeypatch):
    monkeypatch.setattr("nbody.memory.memory_available", lambda: 200)
    with pytest.raises(InputError, match=r"velocity/value: needs 2\.4e-07 GB of memory"):
        Trajectory(sound)


def test_a_recording_that_another_program_compressed_is_still_read(sound, tmp_path):
    path = tmp_path / "packed.h5"
    with h5py.File(sound) as source, h5py.File(path, "w") as target:
        source.copy("particles", target)
        source.copy("observables", target)
        source.copy("nbody", target)
        for name in (POSITION, VELOCITY):
            attributes = dict(target[name].attrs)
            del target[name]
            target.create_dataset(name, data=source[name][:], chunks=(1, 20, 3), compression="gzip").attrs.update(attributes)
    with Trajectory(path) as run, Trajectory(sound) as original:
        assert len(run) == 3 and run.verify() == [] and run.refresh() == 3
        np.testing.assert_array_equal(run.position[2], original.position[2])
    with pytest.raises(InputError, match=r"repacked by another program .*can't be recorded into"):
        TrajectoryWriter.reopen(path, read_checkpoint(path))


def test_a_recording_whose_checkpoints_alone_were_compressed_is_not_recorded_into(sound, tmp_path):
    path = tmp_path / "packed.h5"
    shutil.copyfile(sound, path)
    with h5py.File(path, "r+") as file:
        for name in ("nbody/checkpoint/0", "nbody/checkpoint/1"):
            data = file[name][:]
            del file[name]
            file.create_dataset(name, data=data, compression="gzip")
    checkpoint = read_checkpoint(path)
    assert checkpoint.state["x"].shape == (20, 3)
    with pytest.raises(InputError, match=r"checkpoint/0 is stored in another way.*can't be recorded into"):
        TrajectoryWriter.reopen(path, checkpoint)
