"""A write that fails, another program that truncates the file, a file system without locks: one line, the right exit code,
nothing left behind, and no frame that is called whole and is not."""

import errno
import fcntl
import json
import os
import resource
import shutil
import zlib
from contextlib import ExitStack, suppress
from pathlib import Path
from unittest import mock

import h5py
import numpy as np
import pytest
from recordings import plummer_text

from nbody.cli import main
from nbody.errors import InputError, RunFailed
from nbody.particles import Particles
from nbody.trajectory import Frame, RunHeader, Trajectory, TrajectoryWriter, check_output, read_checkpoint
from nbody.trajectory.lock import WriterLock, lock_path, writing_process
from nbody.trajectory.structure import layout

COUNT, FRAMES = 50, 4
X = np.random.default_rng(8).standard_normal((COUNT, 3))
MASS = np.linspace(1, 2, COUNT)
SCENARIO = plummer_text(16, 8, engine="reference", precision="float64", record="{every: 4}")


def frame(k: int) -> Frame:
    """Frame ``k``, unlike every other."""
    return Frame(k, 0.1 * k, (X + k).astype("f4"), (X - k).astype("f4"))


def record(path: Path, frames: int = FRAMES, **options) -> None:
    """A whole run with a checkpoint in its middle."""
    header = RunHeader(frames, "float32", "name: x\n", {"name": "x"}, state_bytes=70_000)
    with TrajectoryWriter(path, Particles(MASS, X, -X), header, **options) as writer:
        for k in range(frames):
            writer.append(frame(k))
            if k == 1:
                writer.checkpoint({"x": X}, {"step": k, "every": 1, "engine": "reference", "scope": {}})


def check(path: Path) -> None:
    """Assert that what is at ``path`` is whole: every frame, the masses, and what other programs see."""
    with h5py.File(path) as file:
        assert (file[layout.MASS][:] == MASS).all()
        assert (file["VTKHDF/Vertices/Connectivity"][:] == np.arange(COUNT)).all()
        seen = len(file[layout.POSITION])
    with Trajectory(path) as run:
        assert run.verify() == [] and len(run) == seen
        for k in range(len(run)):
            assert (run.position[k] == frame(k).position).all()
        assert len(run) == run.planned or not run.complete


# --- Writes that fail -----------------------------------------------------------------------------------------------

CALLS = ("pwritev", "fsync", "fdatasync", "posix_fallocate", "replace")


class Failing:
    """Replaces the calls of :mod:`os` by which a file is made: counts them in ``calls``, and lets number ``which`` fail.
    Waits for no disk."""

    def __init__(self, which: int, error: int = errno.ENOSPC) -> None:
        self.which, self.error, self.calls = which, error, 0

    def __enter__(self) -> "Failing":
        self._stack = ExitStack()
        for name in CALLS:
            self._stack.enter_context(mock.patch.object(os, name, self._counted(getattr(os, name))))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _counted(self, call):
        def counted(*arguments):
            self.calls += 1
            if self.calls == self.which:
                raise OSError(self.error, os.strerror(self.error))
            return None if "sync" in call.__name__ else call(*arguments)

        return counted


def test_whichever_call_fails_a_run_leaves_only_whole_files(tmp_path):
    """Each call in turn, from the first byte of a new file to its last confirmation."""
    with Failing(0) as all_of_them:
        record(tmp_path / "whole.h5")
    (tmp_path / "whole.h5").unlink()
    assert all_of_them.calls > 60
    path, ends = tmp_path / "run.h5", []
    for which in range(1, all_of_them.calls + 1):
        with Failing(which), pytest.raises((InputError, RunFailed)) as caught:
            record(path)
        assert "No space left" in str(caught.value)
        assert os.listdir(tmp_path) in ([], ["run.h5"])  # neither .part nor .lock
        written = path.exists() or isinstance(caught.value, InputError)
        assert written or str(caught.value).endswith("no file has been made or changed")
        ends.append(type(caught.value))
        if path.exists():
            check(path)
            path.unlink()
    assert ends.index(RunFailed) > 25  # before that is the creation, which is the user's to mend: exit code 2
    assert InputError not in ends[ends.index(RunFailed) :]


def test_a_call_that_fails_while_a_run_is_resumed_leaves_what_was_there(tmp_path):
    source, path = tmp_path / "source.h5", tmp_path / "run.h5"
    header = RunHeader(FRAMES, "float32", state_bytes=70_000)
    with TrajectoryWriter(source, Particles(MASS, X, -X), header) as writer:
        writer.append(frame(0))
        writer.append(frame(1))
        writer.checkpoint({"x": X}, {})
        writer.append(frame(2))
        writer.close(complete=False)
    for frames in (FRAMES, 6):  # in place, and in a larger copy
        for which in (*range(1, 12), *range(12, 90, 9)):
            shutil.copyfile(source, path)
            found, refused = read_checkpoint(path), suppress(InputError, RunFailed)
            with refused, Failing(which), TrajectoryWriter.reopen(path, found, frames=frames) as writer:
                writer.append(frame(2))
                writer.append(frame(3))
            assert sorted(os.listdir(tmp_path)) == ["run.h5", "source.h5"]
            check(path)
            assert read_checkpoint(path).frames == 2


def test_a_disk_that_returns_other_bytes_than_were_written_is_noticed(tmp_path):
    pread = os.pread

    def other_masses(fd, count, offset):
        return pread(fd, count, offset).replace(MASS.tobytes(), bytes(8 * COUNT))

    with mock.patch.object(os, "pread", other_masses), pytest.raises(InputError, match="does not return what was"):
        record(tmp_path / "run.h5")
    assert os.listdir(tmp_path) == []


def in_child(work, limit: int) -> int:
    """The exit code of ``work`` in a forked process whose files may have ``limit`` bytes; if a signal killed it, minus
    its number."""
    child = os.fork()
    if not child:
        code = 99
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            work()
            code = 0
        except (InputError, RunFailed) as error:
            code = error.exit_code if "File too large" in str(error) else 98
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_limit_on_the_size_of_files_ends_a_run_with_a_clear_error(tmp_path):
    """As by ``ulimit -f``, which fails real writes: those of the library, too."""
    record(tmp_path / "run.h5")
    size = (tmp_path / "run.h5").stat().st_size
    (tmp_path / "run.h5").unlink()
    for limit in (0, 1, 512, 4096, *range(10_000, size, 27_000)):
        assert in_child(lambda: record(tmp_path / "run.h5"), limit) == 2
        assert os.listdir(tmp_path) == []
    assert in_child(lambda: record(tmp_path / "run.h5"), size + 64) == 0  # (its checksums in decimals vary)
    check(tmp_path / "run.h5")


# --- Other programs -------------------------------------------------------------------------------------------------


def truncated(path: Path) -> None:
    os.truncate(path, 100_000)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def lengthened(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def overwritten(path: Path) -> None:
    """With as many bytes."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.write(b"x" * size)


def copied_over(path: Path, frames: int = 2) -> None:
    """``cp``: another recording, in the same file."""
    other = path.with_name("other.h5")
    record(other, frames)
    with path.open("r+b") as file:
        file.write(other.read_bytes())
        file.truncate()
    other.unlink()


def another_run(path: Path) -> None:
    """Of the same size: only the commit record differs."""
    copied_over(path, FRAMES)


@pytest.mark.parametrize(
    ("change", "moment"),
    [(another_run, "at a sync")]  # (a later frame's commit record would replace that run's)
    + [
        (change, moment)
        for change in (truncated, emptied, lengthened, overwritten, copied_over)
        for moment in ("at a sync", "at the end")
    ],
)
def test_a_file_that_another_program_changes_during_the_run_is_no_success(tmp_path, change, moment):
    path = tmp_path / "run.h5"
    header = RunHeader(FRAMES, "float32", "name: x\n", {"name": "x"}, state_bytes=70_000)
    with (
        pytest.raises(RunFailed, match="another program truncated or overwrote it") as caught,
        TrajectoryWriter(path, Particles(MASS, X, -X), header) as writer,
    ):
        writer.append(frame(0))
        writer.append(frame(1))
        writer.checkpoint({"x": X}, {})
        change(path)
        if moment == "at a sync":
            writer.sync()
        else:
            writer.append(frame(2))
            writer.append(frame(3))
    assert caught.value.exit_code == 1
    assert os.listdir(tmp_path) == ["run.h5"]


def test_a_run_whose_file_is_truncated_exits_with_1(tmp_path, capsys, monkeypatch):
    """The whole command, whose file is truncated after its first frames."""
    (tmp_path / "run.yaml").write_text(SCENARIO)
    append, path = TrajectoryWriter.append_many, tmp_path / "run.h5"

    def append_and_truncate(writer, frames):
        append(writer, frames)
        if path.exists():
            os.truncate(path, 4096)

    monkeypatch.setattr(TrajectoryWriter, "append_many", append_and_truncate)
    assert main(["run", str(tmp_path / "run.yaml"), "-q", "-o", str(path)]) == 1
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if line.startswith("error: ")] == [said[-1]] and "truncated" in said[-1]


# --- File systems without locks -------------------------------------------------------------------------------------


@pytest.fixture(params=[errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def without_locks(request, monkeypatch):
    """A file system without locks."""

    def unsupported(fd, operation):
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(fcntl, "flock", unsupported)


def test_without_locks_a_run_is_recorded_with_a_warning(tmp_path, without_locks):
    lines = []
    record(tmp_path / "run.h5", notify=lines.append)
    assert len(lines) == 1 and lines[0].startswith("warning: the file system of ") and "has no locks" in lines[0]
    check(tmp_path / "run.h5")
    assert os.listdir(tmp_path) == ["run.h5"]


def test_without_locks_the_lock_file_keeps_a_second_writer_out(tmp_path, without_locks):
    path = tmp_path / "run.h5"
    lock = WriterLock(path)
    assert writing_process(path).startswith(f"process {os.getpid()} on ")
    with pytest.raises(InputError, match=f"is being written by process {os.getpid()} on .* or remove "):
        WriterLock(path)
    lock.release()
    assert writing_process(path) == "" and os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("owner", "is_refused"),
    [("process {dead} on {here}", False), ("process 1 on elsewhere", True), ("", True), ("nonsense \x1b[2J", True)],
)
def test_without_locks_only_a_dead_process_of_this_machine_loses_its_lock(tmp_path, without_locks, owner, is_refused):
    path, dead = tmp_path / "run.h5", os.fork()
    if not dead:
        os._exit(0)
    os.waitpid(dead, 0)
    lock_path(path).write_text(owner.format(dead=dead, here=os.uname().nodename))
    if is_refused:
        with pytest.raises(InputError, match="is being written by") as caught:
            record(path)
        assert str(caught.value).isprintable()
    else:
        record(path)
        assert os.listdir(tmp_path) == ["run.h5"]


# --- Odd names, files and libraries ---------------------------------------------------------------------------------


def test_a_library_that_makes_other_structures_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(h5py.h5f, "LIBVER_EARLIEST", h5py.h5f.LIBVER_LATEST)  # what one may do one day
    with pytest.raises(InputError, match=r"h5py \S+ \(HDF5 \S+\) makes files that this nbody can't record into"):
        record(tmp_path / "run.h5")
    assert os.listdir(tmp_path) == []


def test_a_name_that_leaves_no_room_for_the_lock_is_refused(tmp_path):
    with pytest.raises(InputError, match="the name is longer than 240 bytes"):
        check_output(tmp_path / ("x" * 247 + ".h5"))
    record(tmp_path / ("é" * 118 + ".h5"))
    record(tmp_path / ("é" * 118 + ".h5"))  # and the older one keeps a number


def test_a_folder_where_the_hidden_file_should_be_is_refused(tmp_path):
    (tmp_path / ".run.h5.part").mkdir()
    with pytest.raises(InputError, match="can't be written"):
        record(tmp_path / "run.h5")
    assert os.listdir(tmp_path) == [".run.h5.part"]


@pytest.mark.parametrize("command", ["info", "run", "resume", "view", "rerun"])
def test_a_file_that_can_be_opened_and_not_read_is_refused(refused, command):
    if not Path("/proc/self/mem").exists():
        pytest.skip("needs /proc")
    refused(command, "/proc/self/mem")


def changed(path: Path, change) -> Path:
    """A recording, changed by another program."""
    record(path)
    with h5py.File(path, "r+") as file:
        change(file)
    return path


def test_a_scenario_3000_levels_deep_is_refused(tmp_path, refused):
    def deepen(file):
        del file[layout.RESOLVED]
        text = b'{"a":' + b"[" * 3000 + b"]" * 3000 + b"}"
        file.create_dataset(layout.RESOLVED, data=np.bytes_(text)).attrs[layout.CRC] = np.uint32(zlib.crc32(text))

    path = changed(tmp_path / "run.h5", deepen)
    for command in ("info", "resume", "rerun"):
        assert "nested too deeply" in refused(command, path)


def test_a_big_endian_recording_is_read_and_not_recorded_into(tmp_path):
    def turn(file):
        for name in (layout.POSITION, layout.VELOCITY):
            values, attributes = file[name][:], dict(file[name].attrs)
            del file[name]
            file.create_dataset(name, data=values.astype(">f4")).attrs.update(attributes)

    path = changed(tmp_path / "run.h5", turn)
    with Trajectory(path) as run:
        assert (run.position[1] == frame(1).position).all()
    with pytest.raises(InputError, match="repacked by another program"):
        TrajectoryWriter.reopen(path, read_checkpoint(path))


def test_no_control_character_of_a_file_reaches_the_terminal(tmp_path, capsys):
    def disturb(file):
        attributes = file[layout.PROVENANCE].attrs
        attributes["engine"], attributes["\x1b[2J"] = "\x1b[2Jcpu", "x"
        attributes["packages"] = json.dumps({"\x1b[3Jnumpy": ["\x1b[2J"]})
        commit = file[layout.COMMIT][:]
        commit["status"] = b"\x1b[2Jdone"
        commit["crc32"] = zlib.crc32(commit.tobytes()[:40])
        file[layout.COMMIT][:] = commit
        del file[layout.RESOLVED]
        text = np.bytes_(json.dumps({"name": "\x1b[31mred\u202e\x9b\x07"}))
        file.create_dataset(layout.RESOLVED, data=text).attrs[layout.CRC] = np.uint32(zlib.crc32(text))

    path = changed(tmp_path / "run.h5", disturb)
    for more in ([], ["--json"]):
        assert main(["info", str(path), *more]) == 0
        said = capsys.readouterr()
        assert (said.out + said.err).replace("\n", "").isprintable() and "2Jdone" in said.out


def test_a_scope_with_control_characters_is_shown_harmlessly(tmp_path, capsys):
    (tmp_path / "run.yaml").write_text(SCENARIO)
    path = tmp_path / "run.h5"
    with mock.patch("nbody.machine.simd_level", lambda: "\x1b[2JAVX"):
        assert main(["run", str(tmp_path / "run.yaml"), "-q", "-o", str(path)]) == 0
    capsys.readouterr()
    assert main(["resume", str(path), "--steps", "12"]) == 0
    said = capsys.readouterr()
    assert "\x1b" not in said.err + said.out and "2JAVX" in said.err


def test_a_damaged_commit_record_is_reported_and_the_run_can_go_on(tmp_path):
    path = tmp_path / "run.h5"
    header = RunHeader(FRAMES, "float32", state_bytes=70_000)
    with TrajectoryWriter(path, Particles(MASS, X, -X), header) as writer:
        writer.append(frame(0))
        writer.append(frame(1))
        writer.checkpoint({"x": X}, {})
        writer.close(complete=False)
    with h5py.File(path) as file:
        at = file[layout.COMMIT].id.get_offset()
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\x40")  # 64 frames
    with Trajectory(path) as run:
        assert (run.status, len(run), run.verify()) == ("damaged", 2, ["/nbody/commit"])
    with TrajectoryWriter.reopen(path, read_checkpoint(path)) as writer:
        assert writer.frames == 2
        writer.append(frame(2))
        writer.append(frame(3))
    check(path)


# --- What a recording may hold --------------------------------------------------------------------------------------


def test_a_run_may_name_its_own_observables_and_the_columns_of_its_state(tmp_path):
    observables = {"lagrange_radii": 5, "energy": 1, "box": 3}
    state = {"jerk": X.astype("f8"), "step_size": np.float64(0.5), "level": np.arange(COUNT, dtype="i1")}
    path, header = tmp_path / "run.h5", RunHeader(6, "float64", state_bytes=10_000, observables=observables)
    with TrajectoryWriter(path, Particles(MASS, X, -X), header) as writer:
        for k in range(2):
            values = {"lagrange_radii": np.arange(5.0) + k, "energy": float(k)}
            writer.append(Frame(k, 1 / 3 + k, X, X, values))
        writer.checkpoint(state, {"time": 1 / 3})
        writer.close(complete=False)
    found = read_checkpoint(path)
    assert found.meta["time"] == 1 / 3 and all((found.state[name] == array).all() for name, array in state.items())
    for frames in (6, 9):  # as it is, and as a larger copy
        with TrajectoryWriter.reopen(path, read_checkpoint(path), frames=frames) as writer:
            writer.append(Frame(2, 7.0, X, X, {"energy": 2.0}))
        with Trajectory(path) as run:
            assert dict(run.widths) == observables and run.verify() == [] and run.time[0] == 1 / 3
            np.testing.assert_array_equal(run.observable("energy"), [0, 1, 2])
            np.testing.assert_array_equal(run.frame(1).observables["lagrange_radii"], np.arange(5.0) + 1)
            assert np.isnan(run.frame(1).observables["box"]).all() and run.frame(1).observables["box"].shape == (3,)
            assert np.isnan(run.observable("total_energy")).all()  # not recorded
