"""What is recorded comes back, an older file is never lost, and other programs open the new one."""

import errno
import json
import os
import shutil
import threading
import time
import zlib

import h5py
import numpy as np
import pytest
from conftest import ROOT, begun

from nbody.diagnostics.observables import ALWAYS
from nbody.errors import InputError, RunFailed
from nbody.machine import provenance
from nbody.particles import Particles
from nbody.trajectory import Frame, RunHeader, Trajectory, TrajectoryWriter, check_output, check_space, required_bytes
from nbody.trajectory.lock import lock_path
from nbody.trajectory.structure import layout
from nbody.trajectory.writing.framefile import FrameFile

TEXT = "name: été\n# as the user wrote it\n"


def bodies(count: int = 37, dimensions: int = 3) -> Particles:
    """Particles with ids that are not 0 … N-1."""
    rng = np.random.default_rng(5)
    position = rng.standard_normal((count, dimensions))
    return Particles(rng.uniform(1, 2, count), position, -position, rng.permutation(count) + 10)


def moment(k: int, particles: Particles, dtype: str = "float32") -> Frame:
    """Frame ``k``: every number in it tells which frame it is."""
    values = {name: (k + 0.5) * np.ones(width) if width > 1 else float(k) for name, width in ALWAYS.items()}
    return Frame(10 * k, 0.1 * k, (particles.position + k).astype(dtype), (particles.velocity - k).astype(dtype), values)


def record(path, frames: int = 5, planned: int | None = None, dimensions: int = 3, dtype: str = "float32", **options):
    """Record ``frames`` frames and close. Returns the particles."""
    particles = bodies(dimensions=dimensions)
    header = RunHeader(planned or frames, dtype, TEXT, {"name": "été"}, provenance(seed=7, engine="cpu"))
    with TrajectoryWriter(path, particles, header, **options) as writer:
        for k in range(frames):
            writer.append(moment(k, particles, dtype))
    return particles


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("dimensions", [2, 3])
def test_every_bit_that_was_recorded_comes_back(tmp_path, dimensions, dtype):
    particles = record(tmp_path / "run.h5", dimensions=dimensions, dtype=dtype)
    with Trajectory(tmp_path / "run.h5") as run:
        assert (len(run), run.dimensions, run.count, run.planned) == (5, dimensions, 37, 5)
        np.testing.assert_array_equal(run.mass, particles.mass)
        np.testing.assert_array_equal(run.id, particles.id)
        np.testing.assert_array_equal(run.step, 10 * np.arange(5))
        np.testing.assert_array_equal(run.time, 0.1 * np.arange(5))
        for k in range(5):
            expected, got = moment(k, particles, dtype), run.frame(k)
            assert got.position.dtype == dtype and got.position.shape == (37, dimensions)
            np.testing.assert_array_equal(got.position, expected.position)
            np.testing.assert_array_equal(got.velocity, expected.velocity)
            assert (got.step, got.time) == (expected.step, expected.time)
            for name, value in expected.observables.items():
                np.testing.assert_array_equal(got.observables[name], value)
                np.testing.assert_array_equal(run.observable(name)[k], value)
        np.testing.assert_array_equal(run.position[-1], run.position[4])
        assert run.position[1:3].shape == (2, 37, dimensions)
        with pytest.raises(IndexError, match="no frame 5; it has frames 0 to 4"):
            run.position[5]
        assert run.complete and run.verify() == []


def test_the_file_says_where_it_comes_from(tmp_path):
    record(tmp_path / "run.h5")
    with Trajectory(tmp_path / "run.h5") as run:
        assert run.scenario_text == TEXT
        assert run.resolved == {"name": "été"}
        assert run.provenance["seed"] == 7 and run.provenance["engine"] == "cpu"
        assert run.provenance["packages"]["numpy"] == np.__version__
        assert run.provenance["status"] == "complete" and run.provenance["wall_s"] > 0


def test_a_two_dimensional_run_is_three_columns_with_zero_z_on_disk(tmp_path):
    record(tmp_path / "run.h5", dimensions=2)
    with h5py.File(tmp_path / "run.h5") as file:
        position = file["particles/trajectory/position/value"]
        assert position.shape == (5, 37, 3) and not position[..., 2].any()
        assert file["nbody"].attrs["dimensions"] == 2
        assert file["particles/trajectory/velocity/time"] == file["particles/trajectory/position/time"]  # one object


def test_a_run_that_ends_early_shows_only_the_frames_it_has(tmp_path):
    particles, path = bodies(), tmp_path / "run.h5"
    writer = TrajectoryWriter(path, particles, RunHeader(100))
    for k in range(3):
        writer.append(moment(k, particles))
    writer.close(complete=False)
    with h5py.File(path) as file:
        lengths = {file[f"particles/trajectory/{name}"].shape[0] for name in ("position/value", "position/time")}
        assert lengths == {3} and file["VTKHDF/Points"].shape == (3 * 37, 3)
    with Trajectory(path) as run:
        assert (run.status, run.complete, len(run), run.planned) == ("stopped", False, 3, 100)


def test_an_error_during_the_run_leaves_a_stopped_file_and_is_itself_raised(tmp_path):
    particles = bodies()
    with pytest.raises(ZeroDivisionError), TrajectoryWriter(tmp_path / "run.h5", particles, RunHeader(5)) as writer:
        writer.append(moment(0, particles))
        raise ZeroDivisionError
    with Trajectory(tmp_path / "run.h5") as run:
        assert run.status == "stopped" and len(run) == 1


# --- An existing file, the folder, the disk -------------------------------------------------------------------------


def test_an_existing_file_is_kept_under_the_next_number(tmp_path):
    path, lines = tmp_path / "run.h5", []
    for frames in (1, 2, 3):
        record(path, frames, notify=lines.append)
    lengths = {}
    for name in sorted(os.listdir(tmp_path)):
        with Trajectory(tmp_path / name) as run:
            lengths[name] = len(run)
    assert lengths == {"run.1.h5": 1, "run.2.h5": 2, "run.h5": 3}
    assert len(lines) == 2 and "kept as run.2.h5" in lines[1]


def test_overwrite_replaces_the_file_only_when_the_new_one_has_a_frame(tmp_path):
    path = tmp_path / "run.h5"
    record(path, 2)
    particles = bodies()
    writer = TrajectoryWriter(path, particles, RunHeader(4), overwrite=True)
    with Trajectory(path) as run:
        assert len(run) == 2
    writer.append(moment(0, particles))
    with Trajectory(path) as run:
        assert len(run) == 1
    writer.close()
    assert os.listdir(tmp_path) == ["run.h5"]


def test_a_run_without_a_frame_leaves_the_disk_as_it_was(tmp_path):
    record(tmp_path / "run.h5", 2)
    before = (tmp_path / "run.h5").read_bytes()
    TrajectoryWriter(tmp_path / "run.h5", bodies(), RunHeader(4), overwrite=True).close()
    assert os.listdir(tmp_path) == ["run.h5"] and (tmp_path / "run.h5").read_bytes() == before


def test_a_second_writer_is_refused_and_a_dead_ones_lock_is_not_in_the_way(tmp_path):
    path, particles = tmp_path / "run.h5", bodies()
    lock_path(path).write_text("process 1 on elsewhere\n")  # left behind by a kill
    with TrajectoryWriter(path, particles, RunHeader(3)) as writer:
        writer.append(moment(0, particles))
        with pytest.raises(InputError, match=f"being written by process {os.getpid()}"):
            TrajectoryWriter(path, particles, RunHeader(3))
        writer.append(moment(1, particles))
    assert os.listdir(tmp_path) == ["run.h5"]


def test_a_lock_that_another_process_made_meanwhile_is_left_to_it(tmp_path):
    path, particles = tmp_path / "run.h5", bodies()
    with TrajectoryWriter(path, particles, RunHeader(3)) as writer:
        writer.append(moment(0, particles))
        lock_path(path).unlink()  # by somebody who took it for a leftover
        lock_path(path).write_text("process 1 on elsewhere\n")
    assert lock_path(path).read_text() == "process 1 on elsewhere\n"


def test_impossible_output_paths_are_refused(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    for path, reason in (
        (tmp_path, "is a directory"),
        (tmp_path / "fifo", "not an ordinary file"),
        ("/dev/full", "not an ordinary file"),
        (tmp_path / "a/b/run.h5", "there is no folder"),
        (tmp_path / "loop/run.h5", "path|no folder"),
        ("run\0.h5", "in this name"),
    ):
        with pytest.raises(InputError, match=reason):
            TrajectoryWriter(path, bodies(), RunHeader(3))
    assert sorted(os.listdir(tmp_path)) == ["fifo", "loop"]
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root, who may run the tests, can write anywhere
    with pytest.raises(InputError, match="not writable"):
        check_output(tmp_path / "run.h5")


def test_one_missing_folder_is_made(tmp_path):
    record(tmp_path / "output" / "run.h5", 1)
    assert os.listdir(tmp_path / "output") == ["run.h5"]


def test_a_recording_larger_than_the_disk_is_refused_with_the_numbers_and_creates_nothing(tmp_path):
    with pytest.raises(InputError, match=r"recording 1000000000 frames needs \S+ .B and \S+ .B are free"):
        TrajectoryWriter(tmp_path / "run.h5", bodies(20480), RunHeader(10**9))
    assert os.listdir(tmp_path) == []
    check_space(tmp_path / "run.h5", 1)


def test_the_size_is_known_before_the_run(tmp_path):
    particles = bodies(1000)
    for frames in (1, 50):
        header = RunHeader(frames, "float64", TEXT, state_bytes=12345)
        with TrajectoryWriter(tmp_path / "run.h5", particles, header, overwrite=True) as writer:
            writer.append(moment(0, particles, "float64"))
        assert os.path.getsize(tmp_path / "run.h5") == pytest.approx(required_bytes(1000, header), abs=120_000)


def test_a_file_grows_for_more_frames_than_planned(tmp_path):
    particles = bodies()
    record(tmp_path / "run.h5", 9, planned=2)
    with Trajectory(tmp_path / "run.h5") as run:
        assert (len(run), run.planned, run.verify()) == (9, 16, [])
        for k in (1, 8):
            np.testing.assert_array_equal(run.position[k], moment(k, particles).position)


def test_a_file_removed_under_the_writer_is_noticed(tmp_path):
    particles = bodies()
    with (
        pytest.raises(RunFailed, match="was removed or replaced"),
        TrajectoryWriter(tmp_path / "run.h5", particles, RunHeader(3)) as writer,
    ):
        writer.append(moment(0, particles))
        (tmp_path / "run.h5").unlink()
        writer.sync()


def test_a_folder_that_vanishes_before_or_after_the_first_frame_is_reported(tmp_path):
    particles, folder = bodies(), tmp_path / "output"
    with (
        pytest.raises(RunFailed, match=r"can't be given its name any more .*no file has been made"),
        TrajectoryWriter(folder / "run.h5", particles, RunHeader(3)) as writer,
    ):
        shutil.rmtree(folder)
        writer.append(moment(0, particles))
    with (
        pytest.raises(RunFailed, match="was removed or replaced"),
        TrajectoryWriter(folder / "run.h5", particles, RunHeader(3)) as writer,
    ):
        writer.append(moment(0, particles))
        shutil.rmtree(folder)
        writer.append(moment(1, particles))
        writer.close()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("count,dimensions,cores", [(37, 2, 2), (100_000, 3, 1), (100_000, 3, 16)])  # large: in threads
def test_frames_in_groups_are_the_same_bytes_as_one_by_one(tmp_path, monkeypatch, count, dimensions, cores):
    monkeypatch.setattr("nbody.trajectory.writing.background.cores", lambda: cores)
    particles, stored = bodies(count, dimensions), []
    for sizes in ((1, 1, 1, 1, 1, 1), (1, 3, 2)):
        path = tmp_path / f"{len(sizes)}.h5"
        with TrajectoryWriter(path, particles, RunHeader(6)) as writer:
            for size in sizes:
                writer.append_many([moment(writer.frames + k, particles) for k in range(size)])
        file = FrameFile(path)
        stored.append([(rows.length(), rows.read(0, 6).tobytes()) for rows in file.rows.values()])
        assert file.commit["frames"] == file.commit["synced"] == 6
        file.close()
    assert stored[0] == stored[1] and all(length == 6 for length, _ in stored[0])
    with Trajectory(path) as run:
        assert run.verify() == [] and (run.position[5] == moment(5, particles).position).all()


def test_of_a_group_that_the_disk_has_no_room_for_the_frames_that_fit_are_kept(tmp_path, monkeypatch):
    particles, write = bodies(), FrameFile.write_frames

    def full_after_four(file, k, frames):
        if k + len(frames) > 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(file, k, frames)

    monkeypatch.setattr(FrameFile, "write_frames", full_after_four)
    with (
        pytest.raises(RunFailed, match=r"frame 4 failed .*the 4 frames before it are whole"),
        TrajectoryWriter(tmp_path / "run.h5", particles, RunHeader(8)) as writer,
    ):
        writer.append_many([moment(k, particles) for k in range(3)])
        writer.append_many([moment(k, particles) for k in range(3, 8)])
    with Trajectory(tmp_path / "run.h5") as run:
        assert len(run) == 4 and run.verify() == []


def test_a_write_that_fails_leaves_no_thread_at_work_on_the_frames(tmp_path, monkeypatch):
    """Who handed them over uses their memory again: a checksum taken after that would be another frame's."""
    particles, pwritev, crc32, at_work = bodies(100_000), os.pwritev, zlib.crc32, set()
    begun, frames = threading.Event(), [moment(k, particles) for k in range(3)]

    def full_after_two(fd, parts, offset):
        velocity = writer._file.rows[layout.VELOCITY]
        if velocity.offset + 2 * velocity.row_bytes < offset + sum(part.nbytes for part in parts):
            assert begun.wait(300)
            raise OSError(errno.ENOSPC, "No space left on device")
        return pwritev(fd, parts, offset)

    def slow(data):
        at_work.add(threading.get_ident())
        begun.set()
        time.sleep(0.05)
        found = crc32(data)
        at_work.discard(threading.get_ident())
        return found

    with TrajectoryWriter(tmp_path / "run.h5", particles, RunHeader(3)) as writer, monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", full_after_two)
        patch.setattr(zlib, "crc32", slow)
        with pytest.raises(OSError, match="No space"):
            writer._file.write_frames(0, frames)
        assert not at_work
        assert any(thread.name.startswith("frames") for thread in threading.enumerate())
        with pytest.raises(RunFailed, match=r"frame 2 failed .*the 2 frames before it are whole"):
            writer.append_many(frames)
        assert not at_work
    assert not any(thread.name.startswith("frames") for thread in threading.enumerate())
    with Trajectory(tmp_path / "run.h5") as run:
        assert len(run) == 2 and run.verify() == []


def test_an_error_in_a_thread_beside_the_writing_is_raised_and_its_frames_stay_hidden(tmp_path, monkeypatch):
    particles = bodies(100_000)

    def fail(data):
        raise MemoryError

    with TrajectoryWriter(tmp_path / "run.h5", particles, RunHeader(3)) as writer:
        writer.append(moment(0, particles))
        with monkeypatch.context() as patch, pytest.raises(MemoryError):
            patch.setattr(zlib, "crc32", fail)
            writer.append_many([moment(1, particles), moment(2, particles)])
        assert writer.frames == 1
    with Trajectory(tmp_path / "run.h5") as run:
        assert len(run) == 1 and run.verify() == []


def test_an_error_of_a_background_sync_is_reported_at_the_end(tmp_path, monkeypatch):
    """The system reports a failed write once: a later look at the same file finds nothing wrong."""
    monkeypatch.setattr("nbody.trajectory.writing.background.SYNC_SECONDS", 0.0)
    errors, sync = [OSError(errno.EIO, "Input/output error")], FrameFile.sync

    def fail_once(file):
        if threading.current_thread().name == "sync" and errors:
            raise errors.pop()
        sync(file)

    monkeypatch.setattr(FrameFile, "sync", fail_once)
    particles = bodies()
    with (
        pytest.raises(RunFailed, match="Input/output error"),
        TrajectoryWriter(tmp_path / "run.h5", particles, RunHeader(2)) as writer,
    ):
        writer.append(moment(0, particles))
    with Trajectory(tmp_path / "run.h5") as run:
        assert not run.complete and len(run) == 1 and run.verify() == []


# --- Other programs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimensions", [2, 3])
def test_mdanalysis_opens_it(tmp_path, dimensions):
    mda = pytest.importorskip("MDAnalysis")
    particles = record(tmp_path / "run.h5", planned=8, dimensions=dimensions)
    universe = mda.Universe.empty(37, trajectory=True, velocities=True)
    universe.load_new(str(tmp_path / "run.h5"), format="H5MD", convert_units=False)
    assert len(universe.trajectory) == 5
    for k, now in enumerate(universe.trajectory):
        expected = moment(k, particles)
        np.testing.assert_array_equal(now.positions[:, :dimensions], expected.position)
        np.testing.assert_array_equal(now.velocities[:, :dimensions], expected.velocity)
        assert now.time == expected.time and now.data["total_energy"] == k


def test_vtk_and_so_paraview_open_it(tmp_path):
    vtk = pytest.importorskip("vtkmodules.vtkIOHDF")
    to_numpy = pytest.importorskip("vtkmodules.util.numpy_support").vtk_to_numpy
    particles = record(tmp_path / "run.h5", planned=8)
    reader = vtk.vtkHDFReader()
    reader.SetFileName(str(tmp_path / "run.h5"))
    reader.UpdateInformation()
    assert reader.GetNumberOfSteps() == 5
    for k in (4, 0, 2):
        reader.SetStep(k)
        reader.Update()
        output, expected = reader.GetOutputDataObject(0), moment(k, particles)
        assert output.GetNumberOfCells() == 37 and reader.GetTimeValue() == expected.time
        np.testing.assert_array_equal(to_numpy(output.GetPoints().GetData()), expected.position)
        np.testing.assert_array_equal(to_numpy(output.GetPointData().GetArray("velocity")), expected.velocity)


# --- While the run goes on ------------------------------------------------------------------------------------------


def test_a_reader_polls_while_the_run_goes_on(tmp_path):
    particles, path, frames = bodies(), tmp_path / "run.h5", 3000
    with TrajectoryWriter(path, particles, RunHeader(frames)) as writer:
        writer.append(moment(0, particles))
        reader = begun(ROOT / "tests/programs/polling_reader.py", path, stderr=None)
        for k in range(1, frames):
            writer.append(moment(k, particles))
            if k % 300 == 0:
                writer.sync()
                os.sched_yield()
    seen, polls = json.loads(reader.communicate(timeout=300)[0])
    assert reader.returncode == 0 and seen == frames and polls >= 1


def test_a_reader_keeps_what_it_has_when_the_file_goes(tmp_path):
    path = tmp_path / "run.h5"
    record(path, 2)
    with Trajectory(path) as run:
        path.unlink()
        with pytest.raises(InputError, match="there is no such file any more"):
            run.refresh()
        assert run.position[1].shape == (37, 3)
        record(path, 4)
        with pytest.raises(InputError, match="replaced by another recording"):
            run.refresh()
