"""What a file holds is read from its own index, or by the HDF5 library in a process of its own; the library never reads
a file in ours."""

import gzip
import json
import os
import signal
import struct
import sys
import time
import zlib
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np
import pytest
from conftest import ROOT, child, program, sample

from nbody import guarded_child
from nbody.cli import main
from nbody.errors import InputError
from nbody.guarded_child import GuardedReader
from nbody.machine import provenance
from nbody.particles import Particles
from nbody.trajectory import Frame, RunHeader, Trajectory, TrajectoryWriter
from nbody.trajectory.structure import contents, layout
from nbody.trajectory.structure.contents import FOOTER, MAGIC, Contents, read_index

sys.path.insert(0, str(Path(__file__).parent / "crash"))
from forked import Forked

LIBRARY = "nbody.trajectory.structure.h5format:LibraryFile"
DEEP = "[" * 3000 + "]" * 3000


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A recording of 3 frames of 20 particles, with everything that a recording may hold."""
    path = tmp_path_factory.mktemp("sound") / "run.h5"
    x = np.arange(60.0).reshape(20, 3)
    known = provenance(seed=2**63, engine="cpu", note="é", empty="", share=0.5)
    header = RunHeader(5, "float32", "name: été\n", {"name": "été"}, known, state_bytes=70_000)
    with TrajectoryWriter(path, Particles(np.ones(20), x, x), header) as writer:
        for k in range(3):
            writer.append(Frame(k, 0.1 * k, x.astype("f4"), x.astype("f4")))
        writer.checkpoint({"x": x}, {})
        writer.close(complete=False)
    return path


def library_on(path) -> GuardedReader:
    """The HDF5 library in its child process."""
    return GuardedReader("the HDF5 library", LIBRARY, 10.0, str(path))


def test_the_index_says_what_the_library_finds(sound):
    """Both lists of the same file: ours, made from memory when it was created, and the library's."""
    with open(sound, "rb") as raw:
        ours = Contents.of(read_index(raw.fileno()), sound)
    library = library_on(sound)
    theirs = Contents.of(library.ask("describe")[0], sound)
    library.close()
    assert ours.observables == theirs.observables and set(ours.found) == set(theirs.found)
    recorded = {*layout.rows_per_frame(ours.observables), *layout.VIEWS}
    for name, mine in ours.found.items():
        other = theirs.found[name]
        assert (mine.kind, mine.attributes.keys()) == (other.kind, other.attributes.keys()), name
        assert (mine.dtype, mine.offset, mine.stored) == (other.dtype, other.offset, other.stored), name
        assert mine.length_at == other.length_at, name
        if name not in recorded:  # their lengths have been lowered to the frames there are
            assert mine.shape == other.shape and mine.attributes.items() - other.attributes.items() <= {
                (layout.VTK_LENGTH, 1)
            }
    with h5py.File(sound) as file:
        assert ours.found[layout.POSITION].offset == file[layout.POSITION].id.get_offset()
        assert file[layout.VTK_POINTS].id.get_offset() == file[layout.POSITION].id.get_offset()


def test_reading_verifying_and_resuming_do_without_the_library(sound, tmp_path):
    path = tmp_path / "run.h5"
    path.write_bytes(sound.read_bytes())
    assert program("questions", "after_reading", path, check=True).stdout == "[]\n"


def test_the_library_writes_nothing_to_the_disk(tmp_path):
    """The skeleton is made in memory: all bytes of a file are written by checked writes."""
    x, path = np.ones((4, 3)), tmp_path / "run.h5"
    written = []
    pwritev = os.pwritev
    try:
        os.pwritev = lambda fd, parts, offset: written.append((offset, b"".join(parts))) or pwritev(fd, parts, offset)
        with TrajectoryWriter(path, Particles(np.ones(4), x, x), RunHeader(1)) as writer:
            writer.append(Frame(0, 0.0, x, x))
    finally:
        os.pwritev = pwritev
    replayed = bytearray(path.stat().st_size)
    for offset, data in written:
        replayed[offset : offset + len(data)] = data
    assert replayed == path.read_bytes()


def test_a_file_that_another_program_changed_is_read_as_it_is_now(sound, tmp_path):
    path = tmp_path / "run.h5"
    path.write_bytes(sound.read_bytes())
    with h5py.File(path, "r+") as file:
        file["nbody/provenance"].attrs["note"] = "added"
        del file[layout.MASS]
        file.create_dataset(layout.MASS, data=np.full(20, 3.0)).attrs[layout.CRC] = zlib.crc32(np.full(20, 3.0))
    with Trajectory(path) as run:
        assert run.provenance["note"] == "added" and (run.mass == 3.0).all()
        assert len(run) == 3 and run.verify() == []


# --- A damaged index, or structure ----------------------------------------------------------------------------------


def test_no_damage_to_the_index_loses_anything(sound, tmp_path):
    """The library finds the datasets without it."""
    path, whole = tmp_path / "run.h5", sound.read_bytes()
    count = FOOTER.unpack(whole[-FOOTER.size :])[1]
    for at in (len(whole) - FOOTER.size - count // 2, *range(len(whole) - FOOTER.size, len(whole), 5)):
        data = bytearray(whole)
        data[at] ^= 4
        path.write_bytes(data)
        with Trajectory(path) as run:
            assert len(run) == 3 and run.verify() == [] and run.scenario_text == "name: été\n"


def forged(sound: Path, change) -> bytes:
    """The file with an index that ``change`` has changed, and whose checksums are right."""
    whole = sound.read_bytes()
    length, count, _, _ = FOOTER.unpack(whole[-FOOTER.size :])
    index = json.loads(whole[-FOOTER.size - count : -FOOTER.size])
    index = change(index) or index
    text = index if isinstance(index, bytes) else json.dumps(index).encode()
    return whole[: -FOOTER.size - count] + text + FOOTER.pack(length, len(text), zlib.crc32(text), MAGIC)


def entry(name, **changed):
    """A change of one entry of the index."""
    return lambda index: index["objects"][name].update(changed)


FORGED = {
    "an offset beyond the end": (entry(layout.POSITION, offset=2**40), "longer than the file"),
    "a negative offset": (entry(layout.POSITION, offset=-8), "damaged"),
    "an offset of 2^63": (entry(layout.POSITION, offset=2**63), "damaged"),
    "an offset that is text": (entry(layout.POSITION, offset="x"), "damaged"),
    "a text without bytes": (entry(layout.SCENARIO, offset=None), "has no bytes"),
    "masses without bytes": (entry(layout.MASS, offset=None), "has no bytes"),
    "a shape of 2^60": (entry(layout.MASS, shape=[2**60]), "more than the file holds"),
    "no rows": (entry(layout.POSITION, shape=[]), "has shape"),
    "objects as dtype": (entry(layout.MASS, dtype="O"), "has shape"),
    "no dtype": (entry(layout.MASS, dtype="nonsense"), "damaged"),
    "no kind": (lambda index: index["objects"][layout.MASS].pop("kind"), "damaged"),
    "no masses": (lambda index: index["objects"].pop(layout.MASS), "has no /particles"),
    "a version that is text": (
        lambda index: index["objects"]["nbody"]["attributes"].update(format_version="new"),
        "format version is no number",
    ),
    "observables without end": (
        lambda index: index["objects"]["nbody"]["attributes"].update(observables=DEEP),
        "nested too deeply",
    ),
    "an observable elsewhere": (
        lambda index: index["objects"]["nbody"]["attributes"].update(observables='{"../../x": 1}'),
        "no valid name",
    ),
}


@pytest.mark.parametrize("what", FORGED)
def test_an_index_made_to_do_harm_is_refused(sound, tmp_path, what):
    change, message = FORGED[what]
    path = tmp_path / "bad.h5"
    path.write_bytes(forged(sound, lambda index: change(index) and None))
    with pytest.raises(InputError, match=message):
        Trajectory(path)


@pytest.mark.parametrize("text", [DEEP.encode(), b"7", b"{}", b'{"objects": 7, "structure_crc32": 0}', b"\xff"])
def test_an_index_that_is_none_is_not_used(sound, tmp_path, text):
    path = tmp_path / "run.h5"
    path.write_bytes(forged(sound, lambda index: text))
    with Trajectory(path) as run:
        assert len(run) == 3


def test_a_field_that_the_index_puts_elsewhere_is_not_followed_out_of_the_file(sound, tmp_path):
    def far_away(index):
        index["objects"][layout.POSITION]["length_at"] = 2**61

    path = tmp_path / "bad.h5"
    path.write_bytes(forged(sound, far_away))
    with suppress(InputError), Trajectory(path) as run:
        run.verify()


def everywhere(sound: Path, signature: bytes, at: int, value: bytes):
    """The file with ``value`` written ``at`` bytes after every ``signature``."""
    data, found = bytearray(sound.read_bytes()), -1
    while (found := data.find(signature, found + 1)) >= 0:
        data[found + at : found + at + len(value)] = value if value != b"itself" else struct.pack("<Q", found)
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
def test_an_impossible_structure_is_read_or_refused(sound, tmp_path, monkeypatch, what):
    monkeypatch.setattr(guarded_child, "start", Forked)
    path = tmp_path / "bad.h5"
    path.write_bytes(everywhere(sound, *WRONG[what]))
    begun = time.perf_counter()
    try:
        with Trajectory(path) as run:
            run.verify()
    except InputError as error:
        assert "damaged" in str(error) or "has no /" in str(error)
    assert time.perf_counter() - begun < 100  # the library's 10 s of processor time


# --- Format versions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["info", "resume", "rerun", "view"])
def test_a_newer_format_is_refused(sound, tmp_path, refused, command):
    path = tmp_path / "new.h5"
    path.write_bytes(sound.read_bytes())
    with h5py.File(path, "r+") as file:
        file["nbody"].attrs[layout.VERSION] = 99
    line = f"is written in format version 99, and this nbody reads up to {layout.FORMAT_VERSION}; update nbody"
    assert line in refused(command, path)


def test_a_newer_format_is_refused_by_its_index_too(sound, tmp_path):
    def newer(index):
        index["objects"]["nbody"]["attributes"][layout.VERSION] = 99
        index["objects"][layout.MASS] = {"of a kind": "not known yet"}

    path = tmp_path / "new.h5"
    path.write_bytes(forged(sound, newer))
    with pytest.raises(InputError, match="is written in format version 99"):
        Trajectory(path)


@pytest.fixture
def version1(tmp_path):
    """A recording of the version before, stopped at step 24 of 40; made by that version of the program."""
    path = tmp_path / "run.h5"
    path.write_bytes(gzip.decompress((ROOT / "tests/data/version1.h5.gz").read_bytes()))
    return path


def test_a_file_of_version_1_is_read_resumed_and_made_again(version1, tmp_path):
    with Trajectory(version1) as run:
        assert (len(run), run.status, run.planned, run.verify()) == (7, "stopped", 11, [])
        assert list(run.widths) == list(contents.ALWAYS) and run.scenario_text.startswith("name: version 1")
        before = run.position[6]
    assert main(["rerun", str(version1), "--verify", "-q", "-o", str(tmp_path / "again.h5")]) == 0
    assert main(["resume", str(version1), "-q"]) == 0
    with Trajectory(version1) as run:
        assert (len(run), run.status, run.verify()) == (11, "complete", [])
        np.testing.assert_array_equal(run.position[6], before)
    with h5py.File(version1) as file:
        assert file[layout.POSITION].shape[0] == file[layout.VTK_STEPS].attrs["NSteps"] == 11
    assert main(["resume", str(version1), "-q", "--steps", "80"]) == 0  # in a larger copy, of the present version
    with h5py.File(version1) as file:
        assert file["nbody"].attrs[layout.VERSION] == layout.FORMAT_VERSION
    with Trajectory(version1) as run:
        assert (len(run), run.status, run.verify()) == (21, "complete", [])
        np.testing.assert_array_equal(run.position[6], before)


def test_masses_and_a_scenario_that_have_changed_are_not_used(sound, tmp_path):
    path, data = tmp_path / "bad.h5", sound.read_bytes()
    path.write_bytes(data.replace(struct.pack("<d", 1.0) * 20, struct.pack("<d", 2.0) * 20))
    with Trajectory(path) as run, pytest.raises(InputError, match="/particles/trajectory/mass: has been damaged"):
        run.particles(0)


# --- The library in a process of its own ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "says"), [(signal.SIGSEGV, "crashed on it, SIGSEGV"), (signal.SIGPROF, "does not finish reading it")]
)
def test_a_file_on_which_the_library_dies_is_refused(sound, number, says):
    library = library_on(sound)
    assert library.ask("describe")[0]["nbody"]["kind"] == "group"
    os.kill(library.process.pid, number)
    with pytest.raises(ValueError, match=says):
        library.ask("describe")
    library.close()


def described(sound, describes: str, memory: int, seconds: float):
    """The process of the library, asked to describe a file in a way that takes forever, or much memory."""
    asked = json.dumps(["describe"]) + "\n"
    return program("questions", "library", describes, memory, seconds, sound, input=asked)


def test_a_library_that_does_not_end_is_ended(sound):
    assert described(sound, "forever", 2**33, 0.2).returncode == -signal.SIGPROF


def test_a_library_that_allocates_all_memory_gets_an_error(sound):
    done = described(sound, "much", 2**32, 10.0)
    assert done.returncode == 0 and "MemoryError" in json.loads(done.stdout)["error"]


@pytest.mark.parametrize("count", sample(["25", "16000"], 1))
def test_damaged_files_of_all_kinds_are_read_or_refused_by_every_command(count):
    done = child(ROOT / "tests/crash/fuzz_files.py", count, "--workers", "1", timeout=3000)
    assert done.returncode == 0, done.stdout + done.stderr
