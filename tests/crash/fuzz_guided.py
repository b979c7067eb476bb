"""Scenarios and recordings grown by a fuzzer that sees which lines they reach (atheris, where it is installed; else
hypothesis, which does not): each must be read, or refused in one line.

    python tests/crash/fuzz_guided.py [--seconds S] [--only scenario|recording]

A recording is described by patches of a sound one's index, which then gets the right checksum; a file whose index is not
used is refused here, and not given to the HDF5 library (fuzz_files.py does that).
"""

import argparse
import os
import sys
import tempfile
import time
import zlib
from pathlib import Path
from unittest import mock

try:
    import atheris
except ImportError:
    atheris = None

if atheris:
    with atheris.instrument_imports(include=["nbody"]):
        from nbody.initial import check_initial
        from nbody.scenario import Scenario
        from nbody.trajectory import Trajectory, read_checkpoint
        from nbody.trajectory.structure import opening
else:
    from nbody.initial import check_initial
    from nbody.scenario import Scenario
    from nbody.trajectory import Trajectory, read_checkpoint
    from nbody.trajectory.structure import opening

import chaos

from nbody.errors import InputError
from nbody.trajectory.structure.contents import FOOTER, MAGIC

SLOW = 5.0
"""Seconds in which anything must be answered."""

PATCH = 12
"""Bytes that describe a patch: where (4), and what is written there (8)."""


class Refuses:
    """Replaces the process of the HDF5 library."""

    def __init__(self, path: object) -> None:
        raise ValueError("not ours")


class Target:
    """What is fuzzed; ``kinds`` says which of scenario and recording."""

    def __init__(self, folder: Path, kinds: list[str]) -> None:
        self.path, self.kinds, self.seen = folder / "fuzzed.h5", kinds, dict.fromkeys(("read", "refused"), 0)
        chaos.COUNT = 3
        chaos.record(folder / "sound.h5", 3)
        self.sound = (folder / "sound.h5").read_bytes()
        self.footer = FOOTER.unpack(self.sound[-FOOTER.size :])
        self.index_at = len(self.sound) - FOOTER.size - self.footer[1]

    def __call__(self, data: bytes) -> None:
        """Read what ``data`` describes. Raises if the answer is neither a result nor one line."""
        kind = self.kinds[data[0] % len(self.kinds)] if data else self.kinds[0]
        begun = time.perf_counter()
        try:
            self.scenario(data[1:]) if kind == "scenario" else self.recording(data[1:])
            self.seen["read"] += 1
        except InputError as error:
            self.seen["refused"] += 1
            assert 0 < len(str(error)) < 2000 and "\n" not in str(error), error
        assert time.perf_counter() - begun < SLOW, f"{time.perf_counter() - begun:.1f} s"

    def scenario(self, data: bytes) -> None:
        """Load it and check the description of its bodies, as ``nbody run`` would first."""
        check_initial(Scenario.from_text(data.decode(errors="surrogateescape"), "fuzz.yaml"))

    def recording(self, data: bytes) -> None:
        """Patch the index of the sound one, and read everything in it."""
        length, count, _, _ = self.footer
        text = bytearray(self.sound[self.index_at : -FOOTER.size])
        for start in range(0, len(data) - PATCH + 1, PATCH):
            at = int.from_bytes(data[start : start + 4], "little") % count
            text[at : at + 8] = data[start + 4 : start + PATCH]
        footer = FOOTER.pack(length, len(text), zlib.crc32(text), MAGIC)
        self.path.write_bytes(self.sound[: self.index_at] + text + footer)
        with mock.patch.object(opening, "GuardedReader", Refuses), Trajectory(self.path) as run:
            run.verify()
            for k in range(len(run)):
                run.particles(k)
            read_checkpoint(self.path)

    def seeds(self) -> list[bytes]:
        """Inputs to begin with."""
        presets = (Path(__file__).resolve().parents[2] / "scenarios").glob("*.yaml")
        found = [b"\0" + path.read_bytes() for path in presets] if "scenario" in self.kinds else []
        return [*found, bytes([len(self.kinds) - 1]) + bytes(PATCH)]


def by_coverage(target: Target, folder: Path, seconds: int) -> None:
    """Let atheris run; it ends the process."""
    corpus = folder / "corpus"
    corpus.mkdir()
    for k, seed in enumerate(target.seeds()):
        (corpus / str(k)).write_bytes(seed)
    limits = [f"-max_total_time={seconds}", "-max_len=3000"]
    atheris.Setup([sys.argv[0], str(corpus), *limits, "-print_final_stats=1", "-verbosity=0"], target)
    atheris.Fuzz()


def by_chance(target: Target, seconds: int) -> None:
    """Let hypothesis make up inputs."""
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st

    @settings(max_examples=1000, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(target.seeds()), st.binary(max_size=300))
    def attempt(seed: bytes, data: bytes) -> None:
        target(seed[:1] + data)

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        attempt()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--only", choices=("scenario", "recording"))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        fuzzed = Target(Path(name), [chosen.only] if chosen.only else ["scenario", "recording"])
        if atheris and not (child := os.fork()):
            by_coverage(fuzzed, Path(name), chosen.seconds)
            os._exit(0)
        if atheris:
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        by_chance(fuzzed, chosen.seconds)
        print(fuzzed.seen)
