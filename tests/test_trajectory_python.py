"""A recording as Python sees it: a sequence of particles, arrays with NumPy's indices, and a table of observables."""

import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import random_bodies

import nbody
from nbody.errors import InputError


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.h5"
    keys = {"dt": 0.0078125, "softening": 0.25, "engine": "cpu", "precision": "float64", "every": 2}
    with nbody.simulate(random_bodies(24), steps=12, output=path, **keys) as recording:
        yield recording


def test_a_trajectory_is_a_sequence_of_particles(run):
    assert len(run) == 7 == len(list(run))
    for k, particles in enumerate(run):
        assert (particles.step, particles.time) == (2 * k, 2 * k * 0.0078125)
    np.testing.assert_array_equal(run[-1].position, run.position[6])
    assert [particles.step for particles in run[1:6:2]] == [2, 6, 10] and run[5:2] == []
    with pytest.raises(IndexError, match="no frame 7; it has frames 0 to 6"):
        run[7]


def test_writing_into_the_bodies_of_a_frame_leaves_the_other_frames_as_they_are(run):
    frame = run[0]
    for each in (frame.mass, frame.id):
        each *= 2
    for name in ("mass", "id"):
        np.testing.assert_array_equal(2 * getattr(run[1], name), getattr(frame, name))


@pytest.mark.parametrize(
    "index",
    [
        3, -1, np.int64(2), slice(1, 5), slice(None, None, -2), slice(5, 2), [0, 3], np.array([6, 1]), (2, 5),
        (slice(None), 5), (slice(2, 4), slice(3, 9), 1), (..., 0), (..., slice(2, 4), 1), np.arange(7) % 2 == 0,
([0, 3], [1, 2]), ([0, 3], slice(None), [1, 2]),
        ([[0], [3]], [1, 2], 0), (0, slice(None), [0, 2]), ([], [2]), True, None, (slice(2), np.arange(24) < 3), (None, 2),
        np.arange(7 * 24).reshape(7, 24) % 5 == 0, np.array(3), [[1, 2], [3, 1]], (2, [5, 7], 0),
        ([3, 3, 0], 5, slice(None)),
    ],
    ids=str,
)  # fmt: skip
def test_positions_have_the_indices_of_a_numpy_array(run, index):
    whole = np.asarray(run.position)
    assert run.position.shape == whole.shape == (7, 24, 3) and run.position.dtype == whole.dtype == np.float64
    found = run.position[index]
    np.testing.assert_array_equal(found, whole[index])
    assert found.dtype == whole.dtype


def test_an_array_of_all_positions_is_a_copy(run):
    assert np.array_equal(np.array(run.position, copy=True), run.position)
    with pytest.raises(ValueError, match="makes a copy"):
        np.array(run.position, copy=False)


def test_the_observables_are_a_table_with_and_without_pandas(run, monkeypatch):
    columns = ["kinetic_energy", "potential_energy", "total_energy", "momentum_x", "angular_momentum_z", "virial_ratio"]
    monkeypatch.setattr("nbody.trajectory.reading.tables.find_spec", lambda name: None)
    table = run.observables
    assert {"step", "time", *columns} <= set(table) and "momentum_z  " in repr(table).replace("momentum_z", "momentum_z  ")
    assert table["total_energy"].shape == (7,)
    np.testing.assert_array_equal(table["momentum_y"], run.observable("momentum")[:, 1])
    monkeypatch.undo()
    pandas = pytest.importorskip("pandas")
    frame = run.observables
    assert isinstance(frame, pandas.DataFrame) and frame.index.name == "time"
    for name in columns:
        np.testing.assert_array_equal(frame[name], table[name])


def test_an_unknown_observable_is_refused_with_those_that_exist(run):
    with pytest.raises(
        InputError, match=r"unknown observable 'energy'.*one of: kinetic_energy, potential_energy, total_energy"
    ):
        run.observable("energy")


def test_a_recording_without_a_name_disappears_with_its_trajectory():
    run = nbody.simulate(random_bodies(24), until=0.015625, dt=0.0078125, softening=0.25, engine="cpu", precision="float64")
    path = Path(run.path)
    assert list(run.step) == [0, 1, 2] and path.exists()
    run.close()
    assert not path.exists()
    with pytest.raises(InputError, match="not both"):
        nbody.simulate(random_bodies(24), until=1.0, steps=3)


def test_every_generator_is_a_function_of_nbody():
    from nbody.initial import GENERATORS, make_particles

    assert set(GENERATORS) <= set(dir(nbody)) and nbody.__version__
    for name in GENERATORS:
        assert getattr(nbody, name).__doc__
    made = nbody.plummer(24, seed=5, cut=10)
    values = {"initial": {"generator": "plummer", "particles": 24, "seed": 5, "cut": 10}, "integrator": {"steps": 0}}
    np.testing.assert_array_equal(made.position, make_particles(nbody.Scenario.from_dict(values)).position)
    with pytest.raises(InputError, match=r"^plummer: cutt: unknown key \(did you mean 'cut'"):
        nbody.plummer(24, cutt=10)
    with pytest.raises(AttributeError, match="no attribute 'plumer'"):
        nbody.plumer  # noqa: B018


def test_lines_are_printed_in_a_notebook(monkeypatch, capsys):
    keys = {"dt": 0.0078125, "softening": 0.25, "engine": "auto", "precision": "float64"}
    nbody.Simulation(random_bodies(24), **keys)
    assert capsys.readouterr().out == ""
    shell = type("Shell", (), {"config": {"IPKernelApp": {}}})()
    monkeypatch.setitem(sys.modules, "IPython", type("IPython", (), {"get_ipython": staticmethod(lambda: shell)}))
    nbody.Simulation(random_bodies(24), **keys)
    assert capsys.readouterr().out.startswith("engine: ")
