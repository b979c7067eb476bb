"""A recording in which bodies are added, removed, escape and merge, in the programs that open it: bodies that are not there
are left out of every export, and are NaN in the recording itself."""

import h5py
import numpy as np
import pytest

from nbody import Particles, Simulation, Trajectory
from nbody.errors import InputError
from nbody.exchange import FORMATS, suffixes
from nbody.exchange import read as read_bodies
from nbody.exchange.export import export, export_elements


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Six bodies about a star: 3 and 4 merge, 5 escapes, 2 is removed, and 30, 31 and 40 are added. The last two have as
    many bodies, but not the same."""
    path = tmp_path_factory.mktemp("changes") / "run.h5"
    x = [[0, 0, 0], [1, 0, 0], [0, 2, 0], [3, 0, 0], [3.1, 0, 0], [0, 0, 4]]
    v = [[0, 0, 0], [0, 1, 0], [-0.7, 0, 0], [0.5, 0.6, 0], [-0.5, 0.6, 0], [0, 0, 30]]
    bodies = Particles([1, 1e-3, 1e-3, 1e-4, 1e-4, 1e-5], x, v, radius=[0.02] * 6)
    values = {"every": 4, "collisions": {"rule": "merge"}, "escape": {"radius": 6, "every": 1}, "engine": "cpu"}
    run = Simulation(bodies, path, dt=1 / 64, precision="float64", softening="none", **values)
    run.run(8)
    run.add(
        mass=[1e-3, 2e-3],
        position=[[-4, 0, 0], [0, -5, 0]],
        velocity=[[0, -0.5, 0], [0.4, 0, 0]],
        radius=0.01,
        id=[30, 31],
    )
    run.run(4)
    run.remove(2)
    run.change(1, mass=2e-3)
    run.add(mass=1e-3, position=[2, 2, 0], velocity=[-0.4, 0.4, 0], radius=0.01, id=[40])
    run.run(4)
    return path


def exported(suffix, read):
    """Every frame as ``read`` finds it in its file, or in that of all frames (then ``read`` gets its number too)."""

    def moments(run, folder):
        files = export(run, folder / f"bodies{suffix}", range(len(run)))
        return [read(file) for file in files] if len(files) > 1 else [read(files[0], k) for k in range(len(run))]

    return moments


def by_nbody(file, k=None):
    return read_bodies(file, k).position


def by_numpy(file):
    return np.load(file)["position"]


def by_csv(file):
    rows = np.genfromtxt(file, delimiter=",", names=True)
    return np.stack([rows[axis] for axis in "xyz"], axis=1)


def by_yt(file):
    yt = pytest.importorskip("yt")
    yt.set_log_level(50)
    return yt.load(str(file)).all_data()["all", "particle_position"].to("code_length").value


def by_pynbody(file):
    return np.asarray(pytest.importorskip("pynbody").load(str(file))["pos"])


def by_rebound(file, k):
    moment = pytest.importorskip("rebound").Simulationarchive(str(file))[k]
    return np.array([body.xyz for body in moment.particles])


def by_unsio(file, k):
    snapshots = pytest.importorskip("unsio.input").CUNS_IN(str(file), "all", "all", float32=False)
    for _ in range(k + 1):
        assert snapshots.nextFrame()
    return snapshots.getData("all", "pos")[1].reshape(-1, 3)


def by_mdanalysis(run, folder):
    with h5py.File(run.path) as file:
        rows = len(file["particles/trajectory/id"])
    universe = pytest.importorskip("MDAnalysis").Universe.empty(rows, trajectory=True, velocities=True)
    universe.load_new(run.path, format="H5MD", convert_units=False)
    return [now.positions.copy() for now in universe.trajectory]


def by_vtk(run, folder):
    reader = pytest.importorskip("vtkmodules.vtkIOHDF").vtkHDFReader()
    to_numpy = pytest.importorskip("vtkmodules.util.numpy_support").vtk_to_numpy
    reader.SetFileName(run.path)
    reader.UpdateInformation()
    found = []
    for k in range(reader.GetNumberOfSteps()):
        reader.SetStep(k)
        reader.Update()
        assert np.abs(reader.GetOutputDataObject(0).GetBounds()).max() < 10  # where the camera looks
        found.append(to_numpy(reader.GetOutputDataObject(0).GetPoints().GetData()).copy())
    return found


READERS = {
    "MDAnalysis": by_mdanalysis,
    "VTK": by_vtk,
    **{suffix: exported(suffix, by_nbody) for suffix in suffixes()},
    "NumPy": exported(".npz", by_numpy),
    "a table": exported(".csv", by_csv),
    "yt": exported(".hdf5", by_yt),
    "pynbody": exported(".hdf5", by_pynbody),
    "pynbody, Tipsy": exported(".tipsy", by_pynbody),
    "REBOUND": exported(".bin", by_rebound),
    "unsio": exported(".nemo", by_unsio),
}


@pytest.mark.filterwarnings("ignore")  # pynbody misses a file of parameters
@pytest.mark.parametrize("program", READERS)
def test_bodies_that_are_not_there_are_left_out_or_nan(path, tmp_path, program):
    if FORMATS[suffixes().get(program, "csv")].load().package == "rebound":
        pytest.importorskip("rebound")
    with Trajectory(path) as run:
        moments = READERS[program](run, tmp_path)
        assert [now.count for now in run] == [6, 5, 4, 6, 6] and len(moments) == len(run)
        for k, (found, now) in enumerate(zip(moments, run, strict=True)):
            if program in ("MDAnalysis", "VTK"):  # one row for each body of the run, and for one more that may be added
                assert len(found) == run.count + 1 == 10 and np.isnan(found[9]).all()
                found = found[:9]
                alive = run.left(k).alive
                assert set(run.id[~alive & ~np.isnan(found).any(axis=1)]) <= {3, 4}  # where the merged body is
                found = found[alive]
            assert found.shape == now.position.shape
            order, expected = (np.lexsort(each.T.round(5)) for each in (found, now.position))
            np.testing.assert_allclose(found[order], now.position[expected], rtol=1e-6, atol=1e-6)


def test_other_programs_read_what_bodies_are_that_were_added_into_the_room_for_them(path):
    with Trajectory(path) as run, h5py.File(path) as file:
        for name in ("mass", "id", "species", "radius"):
            stored = file[f"particles/trajectory/{name}"][:]
            assert stored[: run.count].tolist() == getattr(run, name).tolist()
            assert stored[run.count :].tolist() == [-1 if name == "id" else 0]


def test_elements_have_a_row_of_each_body_that_is_there(path, tmp_path):
    with Trajectory(path) as run:
        rows = np.genfromtxt(export_elements(run, tmp_path / "elements.csv", range(len(run))), delimiter=",", names=True)
        for time, now in zip(run.time, run, strict=True):
            assert sorted(rows["id"][rows["time"] == time]) == now.id[1:].tolist()
        found = run.orbits(bodies=[40, 1])
        assert found.id.tolist() == [40, 1] and np.isnan(found.a[:, 0]).tolist() == [True] * 4 + [False]
        with pytest.raises(InputError, match="there is no body with the id 99"):
            run.orbits(bodies=[99])


def test_the_time_line_has_one_mark_for_each_moment_but_none_for_changed_masses(path):
    from nbody.viewer.sources.recording import RecordedSource

    with Trajectory(path) as run:
        source, rows = RecordedSource(run), run.event_rows()
        others = rows["time"][rows["kind"] != b"changed"]
        assert len(others) == len(rows) - 1 and len(source.marks()) == len(set(others)) < len(others)
        source.close()


def test_the_events_are_read_once_for_all_frames(path, monkeypatch):
    with Trajectory(path) as run:
        expected = [run.left(k).alive.tolist() for k in range(len(run))]
        with monkeypatch.context() as patch:
            patch.setattr(Trajectory, "event_rows", None)
            assert [run.left(k).alive.tolist() for k in range(len(run))] == expected
