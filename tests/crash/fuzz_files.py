"""Recordings and files of bodies, damaged at random or to do harm, given to every command that reads one: none may crash,
hang, or say more than one line:

    python tests/crash/fuzz_files.py [FILES] [--workers W] [--seed S]

A file is a sound recording (one of ours; or rewritten by another program, every tenth), or every fourth time the bodies in
one of the formats that ``initial.file`` reads, with a few of its bytes changed: bits flipped, sizes and addresses replaced
by others (zero, the largest, ones that lead in circles), blocks moved, the end cut off. In a quarter of the recordings the
index is changed and has the right checksum; of a text, words are. Workers read them in their own process, so a crash ends
the worker and is seen.
"""

import argparse
import contextlib
import io
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import zlib
from collections import Counter
from pathlib import Path

os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import h5py
from forked import Forked

from nbody import guarded_child
from nbody.analysis import PLOTS
from nbody.analysis.figure import plot
from nbody.cli import main
from nbody.errors import InputError
from nbody.exchange import suffixes
from nbody.trajectory import Trajectory
from nbody.trajectory.structure.contents import FOOTER, MAGIC
from nbody.viewer.sources.recording import RecordedSource

SECONDS = 30
"""For one command; the slowest sound one takes one."""

MEMORY = 4 * 2**30
BODIES, FOREIGN, FORGED = 0.25, 0.1, 0.25
"""Fractions of the files: of bodies; and of the recordings, those of other programs and those with a forged index."""

SCENARIO = """
initial: {generator: plummer, particles: 20, seed: 5}
gravity: {softening: plummer, length: 0.05}
integrator: {dt: 0.001, steps: 6}
engine: reference
precision: float64
record: {every: 2}
"""
FROM_FILE = SCENARIO.replace("{generator: plummer, particles: 20, seed: 5}", "{file: bad.h5}")


def seeds(folder: Path) -> tuple[list[bytes], list[bytes]]:
    """Sound recordings: ours (a finished and an unfinished one), and the same as other programs rewrite them."""
    (folder / "run.yaml").write_text(SCENARIO)
    (folder / "from.yaml").write_text(FROM_FILE)
    for name, steps in (("whole.h5", "6"), ("longer.h5", "9")):
        quiet("run", folder / "run.yaml", "--steps", steps, "-o", folder / name)
    foreign = []
    for name, version, chunks in (("old.h5", "earliest", (1, 20, 3)), ("new.h5", "latest", None)):
        with h5py.File(folder / "whole.h5") as source, h5py.File(folder / name, "w", libver=version) as target:
            for group in ("h5md", "nbody", "particles", "observables"):
                source.copy(group, target)
            if chunks:
                for what in ("position", "velocity"):
                    dataset = f"particles/trajectory/{what}/value"
                    values, attributes = target[dataset][:], dict(target[dataset].attrs)
                    del target[dataset]
                    made = target.create_dataset(dataset, data=values, chunks=chunks, compression="gzip")
                    made.attrs.update(attributes)
        foreign.append((folder / name).read_bytes())
    return [(folder / name).read_bytes() for name in ("whole.h5", "longer.h5")], foreign


def bodies(folder: Path) -> dict[str, bytes]:
    """Sound files of bodies, by suffix, and for each the scenario ``from.SUFFIX.yaml`` that begins with one."""
    found = {}
    for suffix in suffixes():
        file = folder / f"sound{suffix}"
        if quiet("export", folder / "whole.h5", file)[0] == 0:  # else a package is missing
            found[suffix] = file.read_bytes()
            (folder / f"from{suffix}.yaml").write_text(FROM_FILE.replace("bad.h5", f"bad{suffix}"))
    assert {".csv", ".npz", ".hdf5", ".tipsy", ".nemo"} <= found.keys()
    return found


def quiet(*arguments: object) -> tuple[int, str]:
    """Run ``nbody ARGUMENTS`` here. Returns the exit code and what it said on standard error."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = main([str(argument) for argument in arguments])
    return code, said.getvalue()


def damaged(sound: bytes) -> bytes:
    """``sound`` with one to eight changes, most of them where the structure is."""
    data = bytearray(sound)
    sampled = random.sample(range(len(data)), min(4000, len(data)))
    places = [at for at in sampled if data[at]]  # most of the space is zeros
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        change, at = random.choice(CHANGES), random.choice(places)
        change(data, at)
        places = [place for place in places if place < len(data)] or [0]
    return bytes(data)


def forged(sound: bytes) -> bytes:
    """``sound`` with changes of its index, whose checksum is right."""
    length, count, _, _ = FOOTER.unpack(sound[-FOOTER.size :])
    start = len(sound) - FOOTER.size - count
    text = reworded(sound[start : -FOOTER.size])
    return sound[:start] + text + FOOTER.pack(length, len(text), zlib.crc32(text), MAGIC)


def reworded(text: bytes) -> bytes:
    """``text`` with one to eight of its words replaced."""
    words = re.split(rb"(\w+)", text)
    for _ in range(random.choice((1, 1, 2, 8))):
        k = random.randrange(1, len(words), 2)
        words[k] = random.choice((words[random.randrange(1, len(words), 2)], *WORDS))
    return b"".join(words)


WORDS = (
    b"0", b"-1", b"8", b"4096", b"9223372036854775807", b"18446744073709551616", b"1e400", b"NaN", b"null", b"[]", b"x",
)  # fmt: skip


def flip(data: bytearray, at: int) -> None:
    """One bit."""
    data[at] ^= 1 << random.randrange(8)


def number(data: bytearray, at: int) -> None:
    """A size, count or address, as it may lie there."""
    width = random.choice((1, 2, 4, 8, 8))
    at -= at % width
    aimed = random.choice((0, 1, 2**63 - 1, 2**64 - 1, len(data), len(data) - 1, at, at - at % 8, random.randrange(2**17)))
    data[at : at + width] = (aimed % 2 ** (8 * width)).to_bytes(width, "little")


def move(data: bytearray, at: int) -> None:
    """A block over another."""
    length, to = random.choice((8, 16, 40, 512, 4096)), random.randrange(len(data))
    data[to : to + length] = data[at : at + length]


def wipe(data: bytearray, at: int) -> None:
    """A block of zeros, ones or noise."""
    length = min(random.choice((4, 8, 64, 4096)), len(data) - at)
    data[at : at + length] = random.choice((bytes(length), b"\xff" * length, random.randbytes(length)))


def cut(data: bytearray, at: int) -> None:
    """The end."""
    del data[max(at, 100) :]


CHANGES = (flip, flip, flip, number, number, number, number, move, wipe, cut)


def look(bad: Path, folder: Path) -> tuple[int, str]:
    """What one of the commands that read a recording makes of it."""
    command = random.choice(("info", "info", "resume", "rerun", "diff", "from", "view", "plot"))
    if command == "view":
        try:
            with Trajectory(bad) as run:
                recording = RecordedSource(run)
                recording.home()
                recording.past(recording.frames - 1)
            return 0, ""
        except InputError as error:
            return 2, str(error)
    if command == "plot":
        try:
            plot(bad, random.choice(list(PLOTS))).draw_without_rendering()
            with Trajectory(bad) as run:
                run._repr_html_()
            return 0, repr(run) and ""
        except InputError as error:
            return 2, str(error)
    options = {
        "info": (bad, "--verify", "--json"),
        "resume": (bad, "--steps", "12"),
        "rerun": (bad, "--verify", "-o", folder / "again.h5", "--overwrite"),
        "diff": (bad, folder / "whole.h5"),
        "from": (folder / "from.yaml", "-o", folder / "from.h5", "--overwrite"),
    }
    return quiet("run" if command == "from" else command, *options[command])


def work(folder: Path, files: int, seed: int) -> Counter:
    """Read so many damaged files. Raises if one is answered by anything but a result or one line."""
    random.seed(seed)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    folder.mkdir()
    ours, foreign = seeds(folder)
    formats = bodies(folder)
    guarded_child.start = Forked
    seen: Counter = Counter()
    for k in range(files):
        suffix = ".h5"
        if random.random() < BODIES:
            suffix = random.choice(list(formats))
            bad = folder / f"bad{suffix}"
            change = reworded if suffix == ".csv" and random.random() < 0.5 else damaged
            bad.write_bytes(change(formats[suffix]))
        else:
            bad = folder / "bad.h5"
            if random.random() < FORGED:
                bad.write_bytes(forged(random.choice(ours)))
            else:
                bad.write_bytes(damaged(random.choice(foreign if random.random() < FOREIGN else ours)))
        shutil.copyfile(bad, folder / "kept")  # the commands may change it: for whoever looks for the cause
        signal.alarm(SECONDS)  # the default action: this worker dies, and is seen
        if suffix == ".h5":
            code, said = look(bad, folder)
        else:
            code, said = quiet("run", folder / f"from{suffix}.yaml", "-o", folder / "from.h5", "--overwrite")
        signal.alarm(0)
        seen[f"exit code {code}"] += 1
        errors = [line for line in said.splitlines() if line.startswith("error: ")]
        if code not in (0, 1, 2) or "Traceback" in said or (code == 2 and "\n" in said.strip() and len(errors) != 1):
            raise AssertionError(f"file {k}, {bad.name}: exit code {code}: {said}")
    return seen


def share(folder: Path, files: int, workers: int, seed: int) -> int:
    """:func:`work` by so many processes at a time, each with its own seed. Returns how many found something wrong."""
    children, wrong = {}, 0
    for k in range(workers):
        child = os.fork()
        if not child:
            code = 1
            try:
                print(f"seed {seed + k}: {dict(work(folder / str(k), -(-files // workers), seed + k))}", flush=True)
                code = 0
            except BaseException as error:
                print(f"seed {seed + k}:", flush=True)
                traceback.print_exception(error)
            finally:
                os._exit(code)
        children[child] = k
    for _ in range(workers):
        child, status = os.wait()
        if code := os.waitstatus_to_exitcode(status):
            wrong += 1
            kept = Path(tempfile.gettempdir()) / f"fuzzed-{seed + children[child]}"
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(folder / str(children[child]) / "kept", kept)
            print(f"seed {seed + children[child]}: the reader ended with {code}; the file is {kept}")
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("files", type=int, nargs="?", default=16000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        began = time.perf_counter()
        failed = share(Path(name), chosen.files, chosen.workers, chosen.seed)
        print(f"{chosen.files} files, {failed} workers that found something wrong, {time.perf_counter() - began:.0f} s")
    sys.exit(bool(failed))
