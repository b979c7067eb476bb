"""Species: each body keeps its component's number, and each component its name, from the input to the last reader."""

import h5py
import numpy as np
import pytest
from conftest import random_bodies

from nbody.errors import InputError
from nbody.initial.bodies import read_bodies
from nbody.particles import Particles
from nbody.run.resume import resume
from nbody.run.simulation import Simulation
from nbody.scenario import Scenario
from nbody.trajectory import Frame, RunHeader, Trajectory, TrajectoryWriter, first_difference
from nbody.trajectory.structure import layout

NAMES = ("disc", "halo")


def galaxy(count: int = 6, dimensions: int = 3) -> Particles:
    bodies = random_bodies(count, dimensions)
    bodies.species, bodies.species_names = np.arange(count) % 2, NAMES
    return bodies


def recorded(path, bodies: Particles):
    with TrajectoryWriter(path, bodies, RunHeader(frames=1)) as writer:
        writer.append(Frame(0, 0.0, bodies.position.astype("f4"), bodies.velocity.astype("f4")))
    return path


def test_bodies_are_one_species_without_a_name_unless_they_say_more():
    bodies = Particles(np.ones(3), np.eye(3), np.eye(3))
    assert bodies.species.dtype == np.int64 and bodies.species.tolist() == [0, 0, 0]
    assert bodies.check().species_names == ("",)
    assert Particles(np.ones(3), np.eye(3), np.eye(3), species=[0, 2, 1]).check().species_names == ("0", "1", "2")


@pytest.mark.parametrize(
    ("species", "names", "says"),
    [
        ([0, 1, 2], NAMES, "species of particle 2 .* is 2, and there are 2 species_names; a species is a number"),
        ([0, -1, 1], NAMES, "species of particle 1 .* is -1"),
        ([0, 1, 1], ("disc", "disc"), "two species with one name, 'disc'; give each species its own name"),
        ([0, 1], NAMES, "species has 2 rows but mass has 3"),
        ([0, 1, 1], ("a\nb", "c"), "at most 40 characters, on one line"),
        ([0, 1, 10**15], ("",), "species of particle 1 .* and there are 1"),
    ],
)
def test_invalid_species_are_refused(species, names, says):
    with pytest.raises(InputError, match=says):
        Particles(np.ones(3), np.eye(3), np.eye(3), species=species, species_names=names).check()


def test_a_recording_holds_the_species_where_h5md_puts_them(tmp_path):
    path = recorded(tmp_path / "run.h5", galaxy())
    with h5py.File(path) as file:
        assert file[layout.SPECIES][:].tolist() == [0, 1, 0, 1, 0, 1]
        assert file[layout.SPECIES].attrs["names"] == '["disc", "halo"]'
    with Trajectory(path) as run:
        assert run.species.tolist() == [0, 1, 0, 1, 0, 1] and run.species_names == NAMES
        assert run.particles(0).check().species_names == NAMES
        assert run.verify() == []


def test_a_damaged_species_is_found(tmp_path):
    path = recorded(tmp_path / "run.h5", galaxy())
    with h5py.File(path) as file:
        offset = file[layout.SPECIES].id.get_offset()
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)
    with Trajectory(path) as run:
        assert run.verify() == [f"/{layout.SPECIES}"]


def test_recordings_that_differ_in_a_species_or_its_name_differ(tmp_path):
    one, other, renamed = galaxy(), galaxy(), galaxy()
    other.species = 1 - other.species
    renamed.species_names = ("disc", "bulge")
    paths = [recorded(tmp_path / f"{k}.h5", each) for k, each in enumerate((one, other, renamed))]
    assert str(first_difference(paths[0], paths[1])) == "species of particle 0: 0 and 1"
    assert str(first_difference(paths[0], paths[2])) == "species_names: disc, halo and disc, bulge"


@pytest.mark.parametrize("dimensions", [2, 3])
def test_every_kind_of_file_with_bodies_carries_species(tmp_path, dimensions):
    bodies, axes = galaxy(4, dimensions), "xyz"[:dimensions]
    recorded(tmp_path / "bodies.h5", bodies)
    np.savez(
        tmp_path / "bodies.npz", mass=bodies.mass, position=bodies.position, velocity=bodies.velocity,
        species=bodies.species, species_names=NAMES,
    )  # fmt: skip
    head = ["species", "m", *axes, *(f"v{axis}" for axis in axes)]
    rows = np.column_stack([bodies.mass, bodies.position, bodies.velocity])
    lines = [f"{NAMES[s]}, {','.join(map(str, row))}" for s, row in zip(bodies.species, rows, strict=True)]
    (tmp_path / "bodies.csv").write_text("\n".join([",".join(head), *lines]))
    for kind in ("h5", "npz", "csv"):
        for run_dimensions in {3, dimensions}:
            read = read_bodies(tmp_path / f"bodies.{kind}", run_dimensions)
            assert read.species.tolist() == [0, 1, 0, 1] and read.species_names == NAMES
            assert read.dimensions == run_dimensions


def test_a_resumed_run_keeps_its_species(tmp_path):
    np.savez(
        tmp_path / "b.npz", mass=np.ones(3), position=np.eye(3), velocity=np.zeros((3, 3)), species=[1, 0, 1],
        species_names=NAMES,
    )  # fmt: skip
    text = "initial: {file: b.npz}\nintegrator: {dt: 0.001, steps: 2}\nengine: reference\nprecision: float64\n"
    scenario = Scenario.from_text(text, folder=tmp_path)
    Simulation(scenario, tmp_path / "run.h5").run()
    resume(tmp_path / "run.h5", steps=4).run()  # a longer run is a copy of the file
    with Trajectory(tmp_path / "run.h5") as run:
        assert run.step[-1] == 4
        assert run.species.tolist() == [1, 0, 1] and run.species_names == NAMES
