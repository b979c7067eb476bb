"""A recording is read without the HDF5 library, and just as the library would; what could harm the library never
reaches it in our process."""

import json
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from nbody.errors import InputError
from nbody.particles import Particles
from nbody.trajectory import Frame, RunHeader, Trajectory, TrajectoryWriter
from nbody.trajectory.provenance import collect_provenance
from nbody.trajectory.stranger import Stranger
from nbody.trajectory.structure import DATASET, GROUP, Structure, plain

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A recording of 3 frames of 20 particles, with everything that a recording may hold."""
    path = tmp_path_factory.mktemp("sound") / "run.h5"
    x = np.arange(60.0).reshape(20, 3)
    known = collect_provenance(seed=2**63, engine="cpu", note="é", empty="", share=0.5)
    header = RunHeader(5, "float32", "name: été\n", {"name": "été"}, known, state_bytes=70_000)
    with TrajectoryWriter(path, Particles(np.ones(20), x, x), header) as writer:
        for k in range(3):
            writer.append(Frame(k, 0.1 * k, x.astype("f4"), x.astype("f4")))
        writer.checkpoint({"x": x}, {})
        writer.close(complete=False)
    return path


def test_what_is_found_is_what_the_library_finds(sound):
    compared = 0
    with h5py.File(sound) as file, open(sound, "rb") as raw:
        find, names = Structure(raw.fileno()).find, []
        file.visit(names.append)
        for name in names:
            found, expected = find(name), file[name]
            assert found.header == h5py.h5o.get_info(expected.id).addr
            assert found.attributes == {key: plain(value) for key, value in expected.attrs.items()}, name
            if isinstance(expected, h5py.Group):
                assert found.kind == GROUP
                continue
            assert (found.kind, found.dtype, found.shape) == (DATASET, expected.dtype, expected.shape), name
            if found.offset is not None:
                assert (found.offset, found.stored) == (expected.id.get_offset(), expected.id.get_storage_size())
                compared += 1
    assert compared > 25


def test_reading_verifying_and_going_on_do_without_the_library(sound, tmp_path):
    code = (
        "import sys; from nbody.trajectory import Trajectory, TrajectoryWriter, read_checkpoint\n"
        "with Trajectory(sys.argv[1]) as run: assert run.verify() == [] and len(run) == 3\n"
        "TrajectoryWriter.reopen(sys.argv[1], read_checkpoint(sys.argv[1])).close()\n"
        "assert 'h5py' not in sys.modules"
    )
    path = tmp_path / "run.h5"
    path.write_bytes(sound.read_bytes())
    subprocess.run([sys.executable, "-c", code, path], env=ENVIRONMENT, check=True)


# --- Structures that lead nowhere, or in circles --------------------------------------------------------------------


def everywhere(sound: Path, signature: bytes, at: int, value: bytes):
    """The file with ``value`` written ``at`` bytes after every ``signature``."""
    data, place = bytearray(sound.read_bytes()), -1
    while (place := data.find(signature, place + 1)) >= 0:
        data[place + at : place + at + len(value)] = value if value != b"itself" else struct.pack("<Q", place)
    return bytes(data)


WRONG = {
    "a tree that is its own branch": (b"TREE", 32, b"itself"),
    "a tree of 65535 branches": (b"TREE", 6, b"\xff\xff"),
    "a tree beyond the end": (b"TREE", 32, struct.pack("<Q", 2**40)),
    "an address beyond all files": (b"TREE", 32, struct.pack("<Q", 2**63)),
    "a leaf with 65535 names": (b"SNOD", 6, b"\xff\xff"),
    "a leaf of another version": (b"SNOD", 4, b"\7"),
    "names beyond their heap": (b"SNOD", 8, struct.pack("<Q", 2**33)),
    "objects that are the heap": (b"HEAP", 24, b"itself"),
    "a heap of 2^60 bytes": (b"HEAP", 8, struct.pack("<Q", 2**60)),
    "a heap of another version": (b"HEAP", 4, b"\7"),
    "texts of 2^60 bytes": (b"GCOL", 8, struct.pack("<Q", 2**60)),
    "texts that are not there": (b"GCOL", 16, bytes(2)),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_structure_that_can_not_be_is_one_line_at_once(sound, tmp_path, what):
    path = tmp_path / "bad.h5"
    path.write_bytes(everywhere(sound, *WRONG[what]))
    begun = time.perf_counter()
    with pytest.raises(InputError, match=r"damaged|has no /") as caught:
        Trajectory(path)
    assert "\n" not in str(caught.value) and time.perf_counter() - begun < 5


@pytest.mark.parametrize("at", range(16, 96, 8))
def test_any_address_in_the_superblock_may_be_wrong(sound, tmp_path, at):
    path, data = tmp_path / "bad.h5", bytearray(sound.read_bytes())
    for value in (0, 96, 2**17, 2**63 - 1, 2**64 - 1):
        data[at : at + 8] = struct.pack("<Q", value)
        path.write_bytes(data)
        try:
            Trajectory(path).close()  # some of these fields are never needed
        except InputError as error:
            assert "\n" not in str(error)


def test_masses_and_a_scenario_that_have_changed_are_not_gone_on_with(sound, tmp_path):
    path, data = tmp_path / "bad.h5", sound.read_bytes()
    path.write_bytes(data.replace(struct.pack("<d", 1.0) * 20, struct.pack("<d", 2.0) * 20))
    with Trajectory(path) as run, pytest.raises(InputError, match="/particles/trajectory/mass: has been damaged"):
        run.particles(0)


def test_text_that_would_steer_the_terminal_is_made_harmless(tmp_path):
    path, x = tmp_path / "run.h5", np.ones((1, 3))
    header = RunHeader(1, provenance={"engine": "\x1b[2Jcpu"})
    with TrajectoryWriter(path, Particles(np.ones(1), x, x), header) as writer:
        writer.append(Frame(0, 0.0, x, x))
    with Trajectory(path) as run:
        assert run.provenance["engine"].isprintable()


# --- The library in a process of its own ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "says"), [(signal.SIGSEGV, "crashed on it, SIGSEGV"), (signal.SIGPROF, "does not come to an end")]
)
def test_a_library_that_dies_of_a_file_is_one_line(sound, number, says):
    stranger = Stranger(sound)
    assert stranger.find("nbody").kind == GROUP
    os.kill(stranger._process.pid, number)
    with pytest.raises(ValueError, match=says):
        stranger.find("nbody")
    stranger.close()


def test_a_library_that_does_not_come_to_an_end_is_ended(sound):
    code = (
        "import sys; from nbody.trajectory import hdf5_process as process\n"
        "process.CPU_SECONDS = 0.2\n"
        "def find(file, name):\n    while True: pass\n"
        "process.find = find\n"
        "process.serve(sys.argv[1], 2**33)"
    )
    command, question = [sys.executable, "-c", code, sound], json.dumps(["find", "nbody"]).encode()
    done = subprocess.run(command, env=ENVIRONMENT, input=question + b"\n", timeout=60, capture_output=True)
    assert done.returncode == -signal.SIGPROF


def test_a_library_that_wants_all_memory_gets_an_error(sound):
    code = (
        "import sys, numpy; from nbody.trajectory import hdf5_process as process\n"
        "process.find = lambda file, name: numpy.ones(2**30)\n"
        "process.serve(sys.argv[1], 2**32)"
    )
    command, question = [sys.executable, "-c", code, sound], json.dumps(["find", "nbody"]).encode()
    done = subprocess.run(command, env=ENVIRONMENT, input=question + b"\n", timeout=60, capture_output=True, check=True)
    assert "MemoryError" in json.loads(done.stdout)["error"]


def test_damaged_files_of_all_kinds_are_read_or_refused_by_every_command(tmp_path):
    """More of them: tests/crash/fuzz_files.py."""
    command = [sys.executable, ROOT / "tests/crash/fuzz_files.py", "120", "--workers", "1"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
