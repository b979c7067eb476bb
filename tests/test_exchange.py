"""Exports open in the programs they are for, with the same numbers, and come back as initial conditions."""

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, program, random_bodies

import nbody
from nbody.cli import main
from nbody.errors import InputError
from nbody.exchange import FORMATS, format_of, nemo, suffixes
from nbody.exchange import read as read_bodies
from nbody.exchange.export import export, facts_of
from nbody.initial import bodies as own_bodies
from nbody.initial import make_particles
from nbody.registry import Entry
from nbody.trajectory.writing.output_path import SUFFIXES

KEYS = {"dt": 0.0078125, "softening": 0.25, "engine": "cpu", "precision": "float64", "every": 4, "G": 2.0}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Three frames of bodies in three dimensions; two species."""
    path = tmp_path_factory.mktemp("run") / "run.h5"
    bodies = random_bodies(24)
    bodies.species, bodies.species_names = np.arange(24) % 2, ("halo", "stars")
    with nbody.simulate(bodies, steps=8, output=path, **KEYS) as recording:
        yield recording


def by_id(particles, single=False):
    """Mass, position and velocity in the order of the ids."""
    order = np.argsort(particles.id)
    columns = [getattr(particles, name)[order] for name in ("mass", "position", "velocity")]
    return [column.astype(np.float32) for column in columns] if single else columns


@pytest.mark.parametrize("suffix", suffixes())
def test_what_is_exported_is_read_as_initial_conditions(run, tmp_path, suffix):
    name = suffixes()[suffix]
    if FORMATS[name].load().package:
        pytest.importorskip(FORMATS[name].load().package)
    (path,) = export(run, tmp_path / f"bodies{suffix}")
    initial = {"initial": {"file": str(path)}, "integrator": {"steps": 0}}
    found = make_particles(nbody.Scenario.from_dict(initial))
    single = name in ("tipsy", "gadget-binary")
    for got, expected in zip(by_id(found, single), by_id(run[-1], single), strict=True):
        np.testing.assert_array_equal(got, expected)
    assert (found.time, found.step) == (0, 0)
    part = {"file": str(path), "offset": [1, 2, 3], "velocity": [0, 1, 0]}
    moved = make_particles(nbody.Scenario.from_dict(initial | {"initial": {"combine": [part, part]}}))
    np.testing.assert_array_equal(moved.position[:24], np.add(found.position, [1, 2, 3]))
    if name in ("csv", "npz", "gadget"):
        kinds = [[p.species_names[k] for k in p.species[np.argsort(p.id)]] for p in (found, run[-1])]
        assert kinds[0] == kinds[1]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_recording_of_any_name_begins_a_run(run, tmp_path, suffix):
    path = tmp_path / f"run{suffix}"
    path.write_bytes(Path(run.path).read_bytes())
    np.testing.assert_array_equal(own_bodies.read_bodies(path, 3).position, run.position[-1])


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".nemo", ".tipsy", ".gadget"])
def test_a_file_that_is_larger_than_the_free_memory_is_refused_before_it_is_read(run, tmp_path, suffix, monkeypatch):
    (path,) = export(run, tmp_path / f"bodies{suffix}")
    monkeypatch.setattr("nbody.exchange.format.memory_available", lambda: 100)
    with pytest.raises(InputError, match=r"may need 0\.0 GiB of memory, more than is free"):
        own_bodies.read_bodies(path, 3)


def test_an_export_of_no_frame_is_refused(run, tmp_path):
    with pytest.raises(InputError, match="no frame is chosen"):
        export(run, tmp_path / "bodies.nemo", [])


def test_every_frame_is_a_numbered_file_or_a_moment_of_one_file(run, tmp_path):
    paths = export(run, tmp_path / "snapshot.csv", range(3))
    assert [path.name for path in paths] == ["snapshot_000.csv", "snapshot_001.csv", "snapshot_002.csv"]
    for path, particles in zip(paths, run, strict=True):
        np.testing.assert_array_equal(by_id(read_bodies(path))[1], by_id(particles)[1])
    pytest.importorskip("rebound")
    (path,) = export(run, tmp_path / "planets.bin", range(3))
    for k in (0, 1, -1):
        found = make_particles(
            nbody.Scenario.from_dict({"initial": {"file": str(path), "frame": k % 3}, "integrator": {"steps": 0}})
        )
        np.testing.assert_array_equal(found.position, run.position[k])


def test_yt_reads_a_gadget_snapshot(run, tmp_path):
    yt = pytest.importorskip("yt")
    yt.set_log_level(50)
    (path,) = export(run, tmp_path / "snapshot.hdf5", [1])
    found = yt.load(str(path))
    everything = found.all_data()
    order = np.argsort(everything["all", "particle_index"])
    for field, unit, expected in zip(
        ("particle_mass", "particle_position", "particle_velocity"),
        ("code_mass", "code_length", "code_velocity"),
        by_id(run[1]),
        strict=True,
    ):
        np.testing.assert_allclose(everything["all", field].to(unit).value[order], expected, rtol=1e-15)
    assert float(found.current_time.to("code_time")) == run.time[1] and found.particle_type_counts["PartType4"] == 12


def test_yt_reads_a_run_with_units_as_the_hint_says(tmp_path, capsys, monkeypatch):
    yt = pytest.importorskip("yt")
    yt.set_log_level(50)
    monkeypatch.chdir(tmp_path)
    units = {"length": "pc", "mass": "Msun", "velocity": "km/s"}
    bodies = random_bodies(24)
    bodies.mass[:] = 500 / 24
    nbody.simulate(bodies, steps=0, dt=0.01, output="run.h5", units=units, engine="cpu", softening=0.1).close()
    assert main(["export", "run.h5", "run.hdf5"]) == 0
    line = capsys.readouterr().err.split("open it with: ")[1].strip()
    total = eval(line, {"yt": yt}).all_data()["all", "particle_mass"].sum()
    np.testing.assert_allclose(float(total.to("Msun")), 500, rtol=1e-4)  # yt's solar mass has five digits


@pytest.mark.filterwarnings("ignore")  # pynbody misses a file of parameters
@pytest.mark.parametrize("suffix", [".hdf5", ".tipsy"])
def test_pynbody_reads_a_gadget_snapshot_and_tipsy(run, tmp_path, suffix):
    pynbody = pytest.importorskip("pynbody")
    (path,) = export(run, tmp_path / f"snapshot{suffix}")
    found = pynbody.load(str(path))
    order = np.argsort(found["iord"]) if suffix == ".hdf5" else np.arange(24)
    for field, expected in zip(("mass", "pos", "vel"), by_id(run[-1]), strict=True):
        np.testing.assert_allclose(found[field][order], expected, rtol=1e-7)


def test_unsio_reads_every_frame_of_a_nemo_file(run, tmp_path):
    unsio = pytest.importorskip("unsio.input")
    (path,) = export(run, tmp_path / "run.nemo", range(3))
    snapshots = unsio.CUNS_IN(str(path), "all", "all", float32=False)
    for k in range(3):
        assert snapshots.nextFrame()
        found = {tag: snapshots.getData("all", tag)[1] for tag in ("mass", "pos", "vel", "id")}
        order = np.argsort(found["id"])
        assert snapshots.getData("time")[1] == run.time[k]
        for got, expected in zip((found["mass"], found["pos"], found["vel"]), by_id(run[k]), strict=True):
            np.testing.assert_array_equal(got.reshape(expected.shape)[order], expected)
        np.testing.assert_array_equal(by_id(read_bodies(path, k))[1], by_id(run[k])[1])


def test_a_nemo_file_of_the_other_byte_order_with_phase_space_and_masses_once_is_read(tmp_path):
    """As NEMO's own programs write them."""

    def item(kind, tag, value=None):
        start = np.array(0x0B92 if np.ndim(value) else 0x0992, ">u2").tobytes() + kind.encode() + b"\0"
        start += b"" if kind == ")" else tag.encode() + b"\0"
        if value is None:
            return start
        value = np.asarray(value, {"d": ">f8", "c": "S1", "i": ">i4"}[kind])
        return start + (np.array([*value.shape, 0], ">i4").tobytes() if value.ndim else b"") + value.tobytes()

    phase = np.arange(12.0).reshape(2, 2, 3)
    end = item(")", "")
    data = item("c", "History", list("mkplummer"))
    for k in range(2):
        data += item("(", "SnapShot") + item("(", "Parameters") + item("d", "Time", 1.5 * k) + end + item("(", "Particles")
        data += (item("d", "Mass", [0.25, 0.75]) if k == 0 else b"") + item("d", "PhaseSpace", phase + k) + end + end
    (tmp_path / "a.snap").write_bytes(data)
    found = read_bodies(tmp_path / "a.snap")
    assert found.time == 0
    np.testing.assert_array_equal(found.mass, [0.25, 0.75])
    np.testing.assert_array_equal(found.position, phase[:, 0] + 1)
    np.testing.assert_array_equal(found.velocity, phase[:, 1] + 1)
    with pytest.raises(InputError, match="has no frame 2; it holds 2"):
        read_bodies(tmp_path / "a.snap", 2)
    (tmp_path / "short.snap").write_bytes(data[:-60])
    with pytest.raises(InputError, match="is not a NEMO file, or is damaged"):
        read_bodies(tmp_path / "short.snap")


@pytest.mark.parametrize("suffix", ["nemo", "snap"])
def test_a_frame_of_a_nemo_file_begins_a_run(run, tmp_path, suffix):
    export(run, tmp_path / f"a.{suffix}", range(3))
    values = {"initial": {"file": f"a.{suffix}", "frame": 1}, "integrator": {"steps": 0}}
    found = make_particles(nbody.Scenario.from_dict(values, folder=tmp_path))
    np.testing.assert_array_equal(by_id(found)[1], by_id(run[1])[1])


def test_nemo_keeps_ids_beyond_int32(run, tmp_path):
    bodies = run[0]
    bodies.id = bodies.id + 2**40
    format_of(tmp_path / "a.nemo").write(tmp_path / "a.nemo", [bodies], facts_of(run))
    np.testing.assert_array_equal(read_bodies(tmp_path / "a.nemo").id, bodies.id)


def test_rebound_goes_on_from_an_export(run, tmp_path):
    rebound = pytest.importorskip("rebound")
    (path,) = export(run, tmp_path / "planets.bin", [0, 2])
    archive = rebound.Simulationarchive(str(path))
    assert [archive[k].t for k in range(2)] == [0.0, run.time[2]] and archive[1].G == 2.0
    simulation = archive[0]
    assert simulation.softening == 0.25
    simulation.integrator, simulation.dt = "leapfrog", KEYS["dt"]
    simulation.integrate(run.time[2], exact_finish_time=0)
    position = np.zeros((24, 3))
    simulation.serialize_particle_data(xyz=position)
    # The same force, and drift-kick-drift instead of kick-drift-kick: the difference is of order dt³ per step.
    np.testing.assert_allclose(position, run.position[2], atol=1e-4)


@pytest.mark.filterwarnings("ignore")  # pynbody misses units
def test_the_readme_opens_a_run_in_other_programs(run, tmp_path, monkeypatch):
    """Each line of the README as it stands; a program that is not installed is left out."""
    text = (ROOT / "nbody" / "exchange" / "README.md").read_text()
    block = re.search(r"```python\n(# MDAnalysis.*?)```", text, re.S)
    assert block, "the README has no example"
    (tmp_path / "output").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "output" / "run.h5").write_bytes(Path(run.path).read_bytes())
    assert main(["export", "output/run.h5", "output/run.hdf5"]) == 0
    found = {}
    for part in re.split(r"^# ", block.group(1), flags=re.M)[1:]:
        name, code = part.split("\n", 1)
        try:
            exec(compile(code, name, "exec"), found)
        except ImportError:
            assert name.split()[0] != "MDAnalysis", "the test extra has it"
    np.testing.assert_array_equal(found["universe"].trajectory[-1].positions, np.float32(run.position[-1]))
    if "points" in found:
        assert found["points"].GetNumberOfPoints() == 24
    if "snapshot" in found:
        assert len(found["snapshot"]) == 24


TABLE = "id,m,x,y,z,vx,vy,vz\n7,1,0,0,0,0,1,0\n9,2,1,0,0,0,0,1\n"


@pytest.mark.parametrize("name", ["", "index", "Unnamed: 0"])
def test_a_column_that_numbers_the_rows_is_ignored_with_a_line(tmp_path, name):
    rows = TABLE.splitlines()
    text = "\n".join(f"{first},{row}" for first, row in zip([name, "0", "1"], rows, strict=True))
    (tmp_path / "a.csv").write_text(text)
    lines = []
    values = {"initial": {"file": "a.csv"}, "gravity": {"softening": "plummer", "length": 0.25}, "engine": "cpu",
              "integrator": {"dt": 0.0078125, "steps": 0}, "precision": "float32"}  # fmt: skip
    simulation = nbody.Simulation(nbody.Scenario.from_dict(values, folder=tmp_path), notify=lines.append)
    assert list(simulation.particles.id) == [7, 9]
    assert len(lines) == 1 and re.search("the first column .*numbers the rows; it is ignored$", lines[0])


@pytest.mark.parametrize("header", ["index,m,x,y,z,vx,vy,vz,(ignored)", ",m,x,y,z,vx,vy,vz,", "(ignored),m,x,y,z,vx,vy,vz"])
def test_no_column_but_the_first_is_ignored(tmp_path, header):
    (tmp_path / "a.csv").write_text(header + "\n0,1,0,0,0,0,1,0,5\n")
    with pytest.raises(InputError, match=r"line 1: unknown column '(\(ignored\))?'"):
        read_bodies(tmp_path / "a.csv")


@pytest.mark.parametrize(
    "suffix,data,line",
    [
        (".hdf5", b"\x89HDF\r\n\x1a\n" + bytes(100), "is not a snapshot in GADGET's HDF5 format"),
        (".hdf5", b"text", "is not a snapshot in GADGET's HDF5 format"),
        (".tipsy", b"text", "is not a Tipsy file"),
        (".std", bytes(32), "is not a Tipsy file"),
        (".nemo", b"text", "is not a NEMO file"),
        (".snap", b"\x92\x09d\0Time\0" + bytes(8), "has no NEMO snapshot"),
        (".bin", b"text", "is not a Simulationarchive"),
        (".xyz", b"1", "bodies are read from .h5, .bin, .csv"),
    ],
)
def test_damaged_files_of_other_programs_are_refused(tmp_path, suffix, data, line):
    if suffix == ".bin":
        pytest.importorskip("rebound")
    (tmp_path / f"bodies{suffix}").write_bytes(data)
    values = {"initial": {"file": f"bodies{suffix}"}, "integrator": {"steps": 0}}
    with pytest.raises(InputError, match=rf"^initial.file: .*bodies{re.escape(suffix)}: .*{line}"):
        make_particles(nbody.Scenario.from_dict(values, folder=tmp_path))


def test_a_snapshot_in_several_files_or_without_velocities_is_refused(tmp_path):
    import h5py

    for name, files in (("several", 2), ("without", 1)):
        with h5py.File(tmp_path / f"{name}.hdf5", "w") as file:
            file.create_group("Header").attrs["NumFilesPerSnapshot"] = files
            file["PartType1/Coordinates"] = np.zeros((2, 3))
    with pytest.raises(InputError, match="is one of 2 files of a snapshot; name the first one"):
        read_bodies(tmp_path / "several.hdf5")
    with pytest.raises(InputError, match="PartType1 has no Velocities"):
        read_bodies(tmp_path / "without.hdf5")


FORGED = {
    "Header is a link that may lead elsewhere": lambda h5py, file, pipe: {"Header": h5py.ExternalLink(pipe, "/Header")},
    "Masses is a link that may lead elsewhere": lambda h5py, file, pipe: {MASSES: h5py.ExternalLink(pipe, "/x")},
    "Masses keeps its data in other files": lambda h5py, file, pipe: file.create_dataset(
        MASSES, (12,), "f8", external=[(pipe, 0, 96)]
    ),
    "Masses holds complex128": lambda h5py, file, pipe: {MASSES: np.ones(12) + 1j},
}
MASSES = "PartType1/Masses"


@pytest.mark.parametrize("says", FORGED)
def test_a_snapshot_that_leads_elsewhere_or_holds_no_real_numbers_is_refused(run, tmp_path, says):
    """A pipe to which nobody writes would be waited for without end."""
    h5py = pytest.importorskip("h5py")
    os.mkfifo(tmp_path / "pipe")
    (path,) = export(run, tmp_path / "a.hdf5")
    with h5py.File(path, "r+") as file:
        del file["Header" if "Header" in says else MASSES]
        made = FORGED[says](h5py, file, str(tmp_path / "pipe"))
        for name, value in made.items() if isinstance(made, dict) else ():
            file[name] = value
    with pytest.raises(InputError, match=says):
        read_bodies(path)


@pytest.mark.parametrize("suffix", suffixes())
def test_a_pipe_is_no_file_of_bodies(tmp_path, suffix):
    os.mkfifo(tmp_path / f"a{suffix}")
    with pytest.raises(InputError, match="this is a pipe or a device"):
        read_bodies(tmp_path / f"a{suffix}")


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "is not a chart, or is damaged \\(libchart crashed on it, SIGSEGV\\)"),
        ("os.kill(os.getpid(), signal.SIGPROF)", "libchart does not finish reading it"),
        ("time.sleep(60)", "libchart does not finish reading it"),
        ("bytearray(2**33)", "is not a chart, or is damaged \\(MemoryError\\)"),
        ("print('noise'); os.write(2, b'noise'); 1 / 0", "\\(division by zero\\)"),
        ("raise InputError('has no frame')", "a.chart: has no frame"),
    ],
)
def test_any_failure_of_a_format_library_is_reported(tmp_path, monkeypatch, code, says):
    (tmp_path / "charts.py").write_text(
        "import os, signal, time\nfrom nbody.errors import InputError\nfrom nbody.exchange.guarded import GuardedFormat\n"
        "class Charts(GuardedFormat):\n    library, kind = 'libchart', 'a chart'\n"
        f"    def write(self, *_): pass\n    @staticmethod\n    def parse(path, frame):\n        {code}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("nbody.guarded_child.memory_limit", lambda: 2**31)
    monkeypatch.setattr("nbody.guarded_child.LONGEST_WAIT", 60.0 if "sleep" not in code else 2.0)
    from charts import Charts

    with pytest.raises(InputError, match=f"^a.chart: .*{says}|^{says}"):
        Charts().read(tmp_path / "a.chart", None, "a.chart: ")
    del sys.modules["charts"]


def test_rebound_writes_and_reads_any_name(run, tmp_path):
    pytest.importorskip("rebound")
    (path,) = export(run, tmp_path / "ä.bin", range(3))
    np.testing.assert_array_equal(read_bodies(path, 1).position, run.position[1])
    with pytest.raises(InputError, match="has no frame 3; it holds 3, counted from 0"):
        read_bodies(path, 3)


def test_rebound_gets_the_bodies_that_a_merger_has_left(run, tmp_path):
    pytest.importorskip("rebound")
    moments = [run[0], run[1].rows(np.arange(24) < 20), run[2].rows(np.arange(24) < 5)]
    form = format_of(tmp_path / "a.bin")
    form.write(tmp_path / "a.bin", moments, facts_of(run))
    for k, moment in enumerate(moments):
        np.testing.assert_array_equal(read_bodies(tmp_path / "a.bin", k).position, moment.position)


def test_a_format_of_another_package_is_found_by_its_suffix(tmp_path, monkeypatch):
    class Listed(type(format_of(Path("a.csv")))):
        suffixes = (".list", ".csv")

    monkeypatch.setattr(sys.modules[__name__], "Listed", Listed, raising=False)
    monkeypatch.setitem(vars(FORMATS), "plugins", {"listed": Entry(f"{__name__}:Listed", "", package="lists 1")})
    (tmp_path / "a.list").write_text(TABLE)
    assert read_bodies(tmp_path / "a.list").id.tolist() == [7, 9]
    assert type(format_of(Path("a.csv"))) is not Listed  # nbody's own come first


@pytest.mark.parametrize("tag", ["Time", "Mass", "Position", "Velocity", "Key"])
def test_a_nemo_file_with_text_as_numbers_is_refused(tmp_path, tag):
    values = {"Time": ("d", 0.0), "Mass": ("d", [1.0]), "Key": ("i", [3])}
    values |= {"Position": ("d", [[1.0, 0, 0]]), "Velocity": ("d", [[0.0] * 3])}
    values[tag] = ("c", np.full(np.shape(values[tag][1]), b"x"))
    items = b"".join(nemo._item(kind, name, value) for name, (kind, value) in values.items())
    (tmp_path / "a.nemo").write_bytes(nemo._item("(", "SnapShot") + items + nemo._item(")"))
    with pytest.raises(InputError, match=f"a.nemo: {tag} holds .S1; it must hold"):
        read_bodies(tmp_path / "a.nemo")


def test_the_command_exports_and_says_how_to_go_on(run, tmp_path, monkeypatch, capsys, refused):
    monkeypatch.chdir(tmp_path)
    assert main(["export", run.path, "a.csv", "--frame", "0"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "a.csv\n" and captured.err == "open it with: pandas.read_csv('a.csv')\n"
    assert main(["export", run.path, "a.csv"]) == 0
    assert "kept as a.1.csv" in capsys.readouterr().err
    assert main(["export", run.path, "a.csv", "--overwrite"]) == 0 and len(list(tmp_path.iterdir())) == 2
    for arguments, line in {
        ("a.h5",): ".h5 is the suffix of nbody's own recordings",
        ("a.txt",): "no format has this suffix; the suffixes are .bin, .csv",
        ("a.csv", "--frame", "3"): "there is no frame 3; it has frames 0 to 2",
        ("a.csv", "--frame", "1", "--all"): "--all: cannot be combined with --frame",
        ("a.x", "--format", "gadgt"): r"unknown format 'gadgt' \(did you mean 'gadget'",
        ("missing/er/a.csv",): "there is no folder",
    }.items():
        assert re.search(line, refused("export", run.path, *arguments))


def test_a_format_whose_package_is_missing_names_the_extra(monkeypatch):
    monkeypatch.setattr("nbody.exchange.format.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"needs the package 'rebound': .*install -e '.*\[exchange\]'"):
        format_of(Path("a.bin"))


def test_listing_the_formats_imports_none_of_their_programs():
    assert program("questions", "after_formats").stdout == "[]\n"
