"""Snapshots of GADGET that the tests write by the specification: binary ones of both formats and byte orders, several files,
gas, and boxes."""

import struct
from pathlib import Path

import numpy as np
import pytest

import nbody
from nbody.cli import main
from nbody.errors import InputError
from nbody.initial.bodies import find_bodies, read_bodies

RNG = np.random.default_rng(3)
COUNTS = (2, 3, 0, 0, 4, 0)
N = sum(COUNTS)
X, V = RNG.standard_normal((2, N, 3))
ID = RNG.permutation(N) + 5
MASS = np.concatenate([RNG.uniform(1, 2, 2), np.full(3, 0.25), RNG.uniform(1, 2, 4)])
"""The mass of type 1, 0.25, stands in the header."""


def snapshot(path, order="<", format=1, real="f4", rows=slice(None), files=1, cosmology=(0.0, 0.0, 0.0, 0.0), ids="u4"):
    """A file with some of the bodies. ``cosmology``: time, redshift, box and Omega0."""
    kind = np.repeat(np.arange(6), COUNTS)[rows]
    time, redshift, box, omega0 = cosmology
    header = struct.pack(
        f"{order}6i6ddd2i6Iii4d", *np.bincount(kind, minlength=6), 0, 0.25, 0, 0, 0, 0, time, redshift, 0, 0, *COUNTS, 0,
        files, box, omega0, 1 - omega0, 0.7,
    )  # fmt: skip
    blocks = [("HEAD", header.ljust(256, b"\0"))]
    blocks += [(name, values[rows].astype(order + real).tobytes()) for name, values in (("POS ", X), ("VEL ", V))]
    blocks += [
        ("ID  ", ID[rows].astype(order + ids).tobytes()),
        ("MASS", MASS[rows][kind != 1].astype(order + real).tobytes()),
    ]
    blocks += [("U   ", np.ones(2).astype(order + real).tobytes())]
    with Path(path).open("wb") as file:
        for name, data in blocks:
            if format == 2:
                file.write(struct.pack(f"{order}i4sii", 8, name.encode(), len(data) + 8, 8))
            size = struct.pack(order + "i", len(data))
            file.write(size + data + size)
    return Path(path)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("format", [1, 2])
@pytest.mark.parametrize("real,ids", [("f4", "u4"), ("f8", "u8")])
def test_binary_snapshots_are_read_in_every_form(tmp_path, order, format, real, ids):
    said = []
    path = snapshot(tmp_path / "snapshot_010", order, format, real, ids=ids)
    find_bodies(path)
    found = read_bodies(path, 3, notify=said.append)
    dtype = np.float32 if real == "f4" else np.float64
    for got, written in ((found.position, X), (found.velocity, V), (found.mass, MASS), (found.id, ID)):
        np.testing.assert_array_equal(got, written.astype(dtype) if written is not ID else ID)
    assert [found.species_names[k] for k in found.species] == ["gas"] * 2 + ["halo"] * 3 + ["stars"] * 4
    assert said == [f"{path}: 2 particles of gas will move as stars do: nbody computes gravity alone"]


@pytest.mark.parametrize("format", [1, 2])
def test_a_snapshot_in_several_files_is_read_from_any_of_them(tmp_path, format):
    for k, rows in enumerate((slice(0, 4), slice(4, 6), slice(6, 9))):
        snapshot(tmp_path / f"snap.{k}", format=format, rows=rows, files=3)
    for k in (0, 2):
        found = read_bodies(tmp_path / f"snap.{k}", 3)
        order = np.argsort(found.id)
        np.testing.assert_array_equal(found.position[order], X.astype("f4")[np.argsort(ID)])
        np.testing.assert_array_equal(found.mass[order], MASS.astype("f4")[np.argsort(ID)])
    (tmp_path / "snap.1").unlink()
    with pytest.raises(InputError, match=r"snap.0: is one of 3 files of a snapshot, and snap.1 is missing"):
        read_bodies(tmp_path / "snap.0", 3)
    with pytest.raises(InputError, match=r"is one of 2 files of a snapshot; name the first one, as in snapshot.0"):
        read_bodies(snapshot(tmp_path / "alone", files=2), 3)


BOX = (0.5, 1.0, 100.0, 0.3)


def test_a_cosmological_snapshot_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"is a cosmological snapshot \(redshift 1, periodic box 100, Omega0 0.3\)"):
        read_bodies(snapshot(tmp_path / "box", cosmology=BOX), 3)
    for isolated in ((1.0, 0.0, 0.0, 0.3), (3.7, 0.0, 50.0, 0.0)):  # a galaxy with left-over parameters
        assert read_bodies(snapshot(tmp_path / "galaxy", cosmology=isolated), 3).count == N


def hdf5(path, rows=slice(None), files=1, **header):
    h5py = pytest.importorskip("h5py")
    kind = np.repeat(np.arange(6), COUNTS)[rows]
    with h5py.File(path, "w") as file:
        attributes = {"NumFilesPerSnapshot": files, "MassTable": [0, 0.25, 0, 0, 0, 0], "Time": 0.0} | header
        for name, value in attributes.items():
            file.create_group("Header") if "Header" not in file else None
            file["Header"].attrs[name] = value
        for each in np.unique(kind):
            group, mine = file.create_group(f"PartType{each}"), kind == each
            group["Coordinates"], group["Velocities"] = X[rows][mine], V[rows][mine]
            group["ParticleIDs"] = ID[rows][mine]
            if each != 1:
                group["Masses"] = MASS[rows][mine]
    return path


def test_hdf5_snapshots_may_have_several_files_and_gas_and_no_cosmology(tmp_path):
    said = []
    for k, rows in enumerate((slice(0, 4), slice(4, 9))):
        hdf5(tmp_path / f"snap.{k}.hdf5", rows, files=2)
    found = read_bodies(tmp_path / "snap.0.hdf5", 3, notify=said.append)
    order = np.argsort(found.id)
    np.testing.assert_array_equal(found.position[order], X[np.argsort(ID)])
    np.testing.assert_array_equal(found.mass[order], MASS[np.argsort(ID)])
    assert (found.species == [0, 0, 1, 1, 1, 2, 2, 2, 2]).all()
    assert len(said) == 1 and "2 particles of gas will move as stars do" in said[0]
    for base in ("snap.hdf5", "snap"):
        find_bodies(tmp_path / base)
        np.testing.assert_array_equal(read_bodies(tmp_path / base, 3).position, found.position)
    with pytest.raises(InputError, match=r"is a cosmological snapshot.* convert it first$"):
        numbers = dict(zip(("Time", "Redshift", "BoxSize", "Omega0"), BOX, strict=True))
        read_bodies(hdf5(tmp_path / "box.hdf5", **numbers), 3)


DAMAGES = {
    "cut": lambda data: data[:-3],
    "without blocks": lambda data: data[:300],
    "negative counts": lambda data: data[:4] + b"\xff" * 24 + data[28:],
}


@pytest.mark.parametrize("change", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_snapshot_is_refused(tmp_path, change):
    path = snapshot(tmp_path / "a.gadget")
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(InputError, match=r"a\.gadget: is not a binary snapshot of GADGET, or is damaged"):
        read_bodies(path, 3)


def test_an_export_has_the_bytes_of_the_specification(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    bodies = nbody.Particles(MASS, X, V, ID, species=np.repeat([0, 1, 2], (2, 3, 4)), species_names=("gas", "halo", "stars"))
    nbody.simulate(bodies, steps=0, dt=0.1, output=tmp_path / "run.h5", engine="cpu", precision="float64").close()
    assert main(["export", str(tmp_path / "run.h5"), str(tmp_path / "a.gadget")]) == 0
    written, expected = (tmp_path / "a.gadget").read_bytes(), snapshot(tmp_path / "b").read_bytes()
    assert written[260:264] == expected[260:264] and written[4:28] == expected[4:28]  # 256, and the numbers of bodies
    vectors_and_ids = slice(264, 264 + 2 * (8 + 4 * 3 * N) + 8 + 4 * N)
    assert written[vectors_and_ids] == expected[vectors_and_ids]
    assert "pynbody.load" in capsys.readouterr().err
    Path("a.yaml").write_text("initial: {file: a.gadget}\nintegrator: {scheme: leapfrog, dt: 0.1, steps: 1}\n")
    assert main(["run", "a.yaml", "--output", "b.h5", "-q", "--engine", "cpu"]) == 0
