"""Whatever is wrong with a scenario or a file of bodies is told in one line: the file, the line, the key, the fix.

The tables are the specification: each row is a mistake, where the line must begin, and what it must say.
"""

import io
import os
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from conftest import said

from nbody.initial import check_initial, make_particles
from nbody.run.plan import plan
from nbody.scenario import Scenario

GOOD = """\
name: good
initial: {generator: plummer, particles: 10, seed: 1}
gravity: {G: 1.0, dimensions: 3, softening: plummer, length: 0.01}
integrator:
  scheme: leapfrog
  dt: 0.01
  steps: 10
engine: auto
precision: float32
record: {every: 1}
"""

PLUMMER = "{generator: plummer, particles: 10, seed: 1}"


def refused(folder: Path, content: bytes) -> str:
    """The line with which a scenario of this content is refused, with the folder taken off."""
    path = folder / "bad.yaml"
    path.write_bytes(content)

    def prepared() -> None:
        scenario = Scenario.load(path)
        plan(scenario, measure=False)
        make_particles(scenario)

    line = said(prepared)
    assert sorted(os.listdir(folder)) == ["bad.yaml"]
    return line.replace(f"{folder}{os.sep}", "")


# --- A value that is wrong -------------------------------------------------------------------------------------------

VALUES = [
    # what is written, instead of what, where the line begins, what it says
    ("partcles: 10", "particles: 10", "2: initial.partcles: ", "unknown key (did you mean 'particles'?)"),
    ("zzz: 1", "seed: 1", "2: initial.zzz: ", "the keys here are generator, particles, seed, mass"),
    ("plumer, p", "plummer, p", "2: initial.generator: ", "unknown generator 'plumer' (did you mean 'plummer'?)"),
    ("intial: {", "initial: {", "2: intial: ", "unknown key (did you mean 'initial'?)"),
    ("", "  dt: 0.01\n", "4: integrator.dt: ", "is missing"),
    ("", "  steps: 10\n", "4: integrator.steps: ", "is missing"),
    ("", "particles: 10, ", "2: initial.particles: ", "is missing"),
    ("{particles: 10}", PLUMMER, "2: initial: ", "'generator: NAME'"),
    ("file: a.npz", "seed: 1", "2: initial.file: ", "not both"),
    ("initial: disk", GOOD.splitlines()[1], "2: initial: ", "needs 'generator: NAME'"),
    (
        "record: 5",
        "record: {every: 1}",
        "10: record: ",
        "must be a group of keys (every, dt, events, observables), got 5",
    ),
    ("dt: 0", "dt: 0.01", "6: integrator.dt: ", "must not be 0"),
    ("dt: .nan", "dt: 0.01", "6: integrator.dt: ", "must be a finite number"),
    ("dt: 1e400", "dt: 0.01", "6: integrator.dt: ", "beyond the largest number"),
    ("dt: 0,01", "dt: 0.01", "6: integrator.dt: ", "must be a number, got '0,01'"),
    ("dt: 010", "dt: 0.01", "6: integrator.dt: ", "octal"),
    ("dt: true", "dt: 0.01", "6: integrator.dt: ", "must be a number, got true"),
    ("dt:", "dt: 0.01", "6: integrator.dt: ", "is missing; this scheme makes steps of one length"),
    ("dt: 1e-50", "dt: 0.01", "6: integrator.dt: ", "too small for precision float32"),
    ("steps: 10.5", "steps: 10", "7: integrator.steps: ", "must be a whole number, got 10.5"),
    ("steps: " + 5000 * "9", "steps: 10", "7: integrator.steps: ", "must be a number"),
    ("steps: 1e17", "steps: 10", "7: integrator.steps: ", "must be at most"),
    ("particles: 1e12", "particles: 10", "2: initial.particles: ", "GiB are free; use fewer"),
    ("seed: 1e30", "seed: 1", "2: initial.seed: ", "must be at most 9223372036854775807"),
    (
        "{generator: lecture, particles: 8, spin: 1e308}\ngravity: {dimensions: 2}",
        "\n".join(GOOD.splitlines()[1:3]).removeprefix("initial: "),
        "2: initial.spin: ",
        "1e+308 leads to numbers beyond 1.8e308",
    ),
    ("masses: {function: salpeter, low: 1e-300, high: 1e300}", "seed: 1", "2: initial.masses.low: ", "1e-300 leads to"),
    ("{generator: ring, particles: 10, slope: 1e300}", PLUMMER, "2: initial.slope: ", "use a number nearer to 1"),
    ("{generator: galaxy_collision, particles: 10, Q: 11}", PLUMMER, "2: initial.Q: ", "must be at most 10, got 11"),
    (
        "{generator: galaxy_collision, particles: 9, mass: 1e200, mass_ratio: 1e200}",
        PLUMMER,
        "2: initial.mass: ",
        "1e+200 leads to",
    ),
    ("record: {dt: 1e306}", "record: {every: 1}", "10: record.dt: ", "more than 2^53 intervals of 0.01"),
    (
        "scheme: leapfrog_adaptive\n  end: 1e300\nrecord: {dt: 1e-20}",
        "scheme: leapfrog\n  dt: 0.01\n  steps: 10\nengine: auto\nprecision: float32\nrecord: {every: 1}",
        "7: record.dt: ",
        "more than 2^53 intervals of 1e-20",
    ),
    ("units: {length: 1e-300 pc, mass: Msun, time: Myr}", "engine: auto", "8: units.length: ", "'1e-300 pc' leads to"),
    (
        "ensemble: {systems: 4, vary: {initial.mass: {uniform: [-1e308, 1e308]}}}",
        "engine: auto",
        "8: ensemble.vary.initial.mass.uniform.0: ",
        "-1e+308 leads to",
    ),
    (
        f"ensemble: {{vary: {{initial.seed: 1..{5000 * '9'}}}}}",
        "engine: auto",
        "8: ensemble.vary.initial.seed: ",
        "must be a range (1..8, ",
    ),
    ("fields: [{field: logarithmic_halo, v: 1e300, core: 1}]", "engine: auto", "8: fields.0.v: ", "1e+300 leads to"),
    ("fields: [{field: post_newtonian, c: 1e-300}]", "engine: auto", "8: fields.0.c: ", "1e-300 leads to"),
    ("{file: bad.yaml, frame: 1e300}", PLUMMER, "2: initial.frame: ", "at most"),
    ("{file: /dev/zero}", PLUMMER, "2: initial.file: ", ".h5, .bin, .csv"),
    ("cut: 1e300", "seed: 1", "2: initial.cut: ", "must be at most 1000000"),
    ("on_energy_error: {limit: 1, action: explode}", "record: {every: 1}", "10: on_energy_error.action: ", "'warn' or"),
    ("G: 1e39", "G: 1.0", "3: gravity.G: ", "too large for precision float32"),
    ("dimensions: 4", "dimensions: 3", "3: gravity.dimensions: ", "must be 2 or 3, got 4"),
    ("dimensions: 2", "dimensions: 3", "3: gravity.dimensions: ", "'plummer' makes bodies in 3 dimensions"),
    ("softening: cutof", "softening: plummer", "3: gravity.softening: ", "did you mean 'cutoff'"),
    ("length: 0", "length: 0.01", "3: gravity.length: ", "must be greater than 0 for softening 'plummer'"),
    ("length: 1e-20", "length: 0.01", "3: gravity.length: ", "too small"),
    ("softening: none", "softening: plummer", "3: gravity.length: ", "has no meaning with softening 'none'"),
    ("softening: cutoff}", "softening: plummer, length: 0.01}", "3: gravity.length: ", "is missing"),
    ("dimensions: 2", "engine: auto", "8: dimensions: ", "write 'gravity: {dimensions: 3}'"),
    ('engine: "a\\nb"', "engine: auto", "8: engine: ", "one short line"),
    (
        "precision: float16",
        "precision: float32",
        "9: precision: ",
        "'float32', 'mixed', 'float64' or 'auto', got 'float16'",
    ),
    ("name: 2024", "name: good", "1: name: ", "must be text, got 2024"),
    ("name: " + 2000 * "x", "name: good", "1: name: ", "one short line"),
    ("{file: none.npz}", PLUMMER, "2: initial.file: ", "there is no such file"),
    ("{file: a.csv, frame: 1}", PLUMMER, "2: initial.file: ", "has no frames"),
    ("{file: 5}", PLUMMER, "2: initial.file: ", "must be text"),
    ('{file: "a\\0.csv"}', PLUMMER, "2: initial.file: ", "one short line"),
]


@pytest.mark.filterwarnings("error")  # a warning of NumPy's would be a second line
@pytest.mark.parametrize(("written", "instead_of", "begins", "says"), VALUES, ids=[row[0][:40] for row in VALUES])
def test_invalid_values_are_refused(tmp_path, written, instead_of, begins, says):
    assert instead_of in GOOD
    line = refused(tmp_path, GOOD.replace(instead_of, written, 1).encode())
    assert line.startswith(f"bad.yaml:{begins}") and says in line, line


# --- A text that is no scenario --------------------------------------------------------------------------------------

TEXTS = {
    "empty": (b"", "bad.yaml: is empty"),
    "a list": (b"- a\n- b\n", "bad.yaml:1: this is a list"),
    "two documents": (GOOD.encode() + b"---\na: 1\n", "bad.yaml:11: a second document"),
    "a key twice": (GOOD.encode() + b"engine: cpu\n", "bad.yaml:11: engine: given twice (first on line 8)"),
    "a tab": (b"initial:\n\tfile: a\n", "bad.yaml:2: not valid YAML: a tab"),
    "an open bracket": (
        b"name: a\ninitial: {file: a,\n  frame: 1\nengine: b\n",
        "bad.yaml:2: not valid YAML: the bracket ",
    ),
    "a comma missing": (
        b"initial: {file: a frame: 1}\n",
        "bad.yaml:1: not valid YAML: the bracket opened here is not closed, or there is a comma missing",
    ),
    "an open quote": (b"name: 'abc\nengine: cpu\n", "bad.yaml:1: not valid YAML: the quote opened here is not closed"),
    "a colon too many": (b"name: a: b\n", "bad.yaml:1: not valid YAML: a ':' inside a value"),
    "Latin-1": (GOOD.encode() + b"# G\xf6ttingen\n", "bad.yaml:11: byte"),
    "UTF-16": (GOOD.encode("utf-16"), "bad.yaml:1: byte 0 is not UTF-8"),
    "a picture": (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "bad.yaml: is not a scenario (.yaml); bodies in a file"),
    "a NUL": (b"name: a\nengine: \x00\n", "bad.yaml:2: character 0x0 is not text"),
    "a Python object": (b"name: !!python/object/apply:os.system ['true']\n", "bad.yaml:1: name: tags"),
    "an anchor": (b"name: &a b\nengine: *a\n", "bad.yaml:1: name: anchors and aliases"),
    "an alias of itself": (b"name: &a [*a]\n", "bad.yaml:1: name: anchors and aliases"),
    "billions of laughs": (b"a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n", "bad.yaml:1: a: anchors"),
    "an empty key": (b'engine: {"": cpu}\n', "bad.yaml:1: engine: a key must be a plain name"),
    "a list as a key": (b"? [a]\n: b\n", "bad.yaml:1: a key must be a plain name"),
    "a depth of 20 000": (b"name: " + 20_000 * b"[", "bad.yaml:1: nested too deep"),
    "an impossible character": (b'name: "\\UFFFFFFFF"\n', "bad.yaml: not valid YAML"),
    "a name of many lines": (b"name: |\n  a\n  b\n", "bad.yaml:1: name: must be one short line"),
    "a number as a key": (GOOD.encode() + b"5: 1\n", "bad.yaml:11: 5: unknown key"),
    "a very long key": (GOOD.encode() + b"? " + 3000 * b"k" + b"\n: 1\n", "bad.yaml:11: 'kkkk"),
    "too many values": (b"a: [" + b"x," * 450_000 + b"]", "bad.yaml:1: more than 10000 values"),
    "more than 1 MB": (GOOD.encode() + b"#" * 1_000_001, "bad.yaml: is larger than 1 MB"),
    "a recording": (b"\x89HDF\r\n\x1a\n" + bytes(100), "bad.yaml: is not a scenario (.yaml); bodies in a file"),
}


@pytest.mark.parametrize("what", TEXTS)
def test_texts_that_are_no_scenarios_are_refused(tmp_path, what):
    content, begins = TEXTS[what]
    assert refused(tmp_path, content).startswith(begins)


# --- A path that is no file ------------------------------------------------------------------------------------------


def test_a_missing_scenario_is_refused_with_the_nearest_name(tmp_path):
    (tmp_path / "disk.yaml").write_text(GOOD)
    assert said(Scenario.load, tmp_path / "disc.yaml") == (
        f"{tmp_path}/disc.yaml: there is no such file (did you mean 'disk.yaml'?); check the path"
    )


def test_paths_that_are_no_ordinary_files_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    assert "this is a directory" in said(Scenario.load, tmp_path)
    assert "a pipe or a device" in said(Scenario.load, tmp_path / "pipe.yaml")
    assert "a pipe or a device" in said(Scenario.load, "/dev/zero")
    assert "can't be read" in said(Scenario.load, tmp_path / "loop.yaml")
    assert "can't be read" in said(Scenario.load, tmp_path / "bad\0name.yaml")
    assert "can't be read (File name too long)" in said(Scenario.load, tmp_path / ("x" * 300 + ".yaml"))
    assert "there is no such file" in said(Scenario.load, tmp_path / "two\nlines.yaml")
    assert "there is no such file" in said(Scenario.load, tmp_path / "no" / "such.yaml")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_read_permission_is_refused(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD)
    path.chmod(0)
    assert "can't be read (Permission denied)" in said(Scenario.load, path)


# --- An option that is wrong -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("dt", 0, "must not be 0"),
        ("dt", 1e-60, "too small for precision float32"),
        ("particles", 10**1000, "must be at most"),
        ("precision", "double", "must be 'float32', 'mixed', 'float64' or 'auto'"),
        ("engine", "", "must be one short line of text"),
        ("integrator", "x" * 50, "at most 40 characters"),
    ],
)
def test_invalid_options_are_refused(option, value, says):
    line = said(lambda: make_particles(Scenario.from_text(GOOD).override(**{option: value})))
    assert line.startswith(f"--{option}: ") and says in line


@pytest.mark.parametrize("option", ["particles", "seed"])
def test_bodies_from_a_file_have_their_own_number(option):
    text = "initial: {file: a.csv}\nintegrator: {dt: 1, steps: 1}\n"
    line = said(lambda: Scenario.from_text(text).override(**{option: 5}))
    assert line == f"--{option}: the bodies come from 'a.csv'; leave this option out"


def test_an_unknown_option_is_refused_with_the_nearest_name():
    assert "did you mean 'particles'" in said(lambda: Scenario.from_text(GOOD).override(particle=5))


# --- A file of bodies ------------------------------------------------------------------------------------------------


def bodies_refused(folder: Path, name: str, content: bytes, dimensions: int = 3) -> str:
    (folder / name).write_bytes(content)
    scenario = Scenario.from_text(
        f"initial: {{file: {name}}}\ngravity: {{dimensions: {dimensions}}}\nintegrator: {{dt: 1, steps: 1}}\n",
        "run.yaml",
        folder,
    )
    check_initial(scenario)
    line = said(make_particles, scenario)
    start = f"run.yaml:1: initial.file: {folder / name}: "
    assert line.startswith(start)
    return line.removeprefix(start)


HEADER = "m,x,y,z,vx,vy,vz\n"
ROW = "1,2,3,4,5,6,7\n"

TABLES = {
    "empty": ("", "line 1: the first line must be the header"),
    "no header": (ROW, "line 1: the first line must be the header"),
    "no rows": (HEADER, "there are no particles"),
    "semicolons": ("m;x;y;z;vx;vy;vz\n1;2;3;4;5;6;7\n", "line 1: the columns are separated by ';'"),
    "tabs": (HEADER.replace(",", "\t") + ROW, "line 1: the columns are separated by ';' or tabs"),
    "decimal commas": (HEADER + "1,0,2,0,3,0,4,0,5,0,6,0,7,0\n", "line 2: 14 values under 7 columns"),
    "a quoted decimal comma": (HEADER + '"1,5",2,3,4,5,6,7\n', "line 2: m: '1,5' is not a finite number"),
    "a short row": (HEADER + ROW + "1,2,3\n", "line 3: 3 values under 7 columns"),
    "a long row": (HEADER + ROW + "\n\n1,2,3,4,5,6,7,8\n", "line 5: 8 values under 7 columns"),
    "nan": (HEADER + ROW + ROW.replace("4", "nan"), "line 3: z: 'nan' is not a finite number"),
    "a word": (HEADER + ROW.replace("2", "two"), "line 2: x: 'two' is not a finite number"),
    "an underscore": (HEADER + ROW.replace("2", "1_0"), "line 2: x: '1_0' is not a finite number"),
    "a negative mass": (HEADER + ROW.replace("1,", "-1,"), "mass of particle 0 (counted from 0) is negative"),
    "no mass at all": (HEADER + ROW.replace("1,", "0,"), "every mass is zero"),
    "a misspelt extra column": (
        HEADER.replace("m,", "radios,m,") + ROW,
        "line 1: unknown column 'radios' (did you mean 'radius'?)",
    ),
    "an unknown column": (HEADER.replace("m,", "weight,") + ROW, "line 1: unknown column 'weight'"),
    "a column twice": (HEADER.replace("y", "x", 1) + ROW, "line 1: column 'x' appears twice"),
    "a missing column": ("m,x,y,z,vx,vy\n1,2,3,4,5,6\n", "line 1: there is no column 'vz'"),
    "half an id": (HEADER.replace("m", "id,m") + "1.5," + ROW, "line 2: id: '1.5' is not a whole number"),
    "an id twice": (HEADER.replace("m", "id,m") + "1," + ROW + "1," + ROW, "ids repeat"),
    "a field without end": (HEADER + "9" * 200_000, "line 2: field larger than field limit"),
    "a NUL": (HEADER + ROW.replace("2", "\0"), "line 2: "),
}


@pytest.mark.parametrize("what", TABLES)
def test_invalid_tables_are_refused(tmp_path, what):
    text, begins = TABLES[what]
    assert bodies_refused(tmp_path, "bodies.csv", text.encode()).startswith(begins)


def test_a_table_in_another_encoding_is_refused(tmp_path):
    assert "line 1: " in bodies_refused(tmp_path, "bodies.csv", (HEADER + ROW).encode("utf-16"))
    assert "line 3: x: " in bodies_refused(tmp_path, "bodies.csv", (HEADER + ROW).encode() + b"1,\xff,3,4,5,6,7\n")


def npz(**arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def bodies(**changed) -> dict:
    good = {"mass": np.ones(4), "position": np.arange(12.0).reshape(4, 3), "velocity": np.zeros((4, 3))}
    return {name: array for name, array in (good | changed).items() if array is not None}


def with_nan(row: int) -> np.ndarray:
    array = np.zeros((4, 3))
    array[row, 1] = np.nan
    return array


ARRAYS = {
    "no mass": (npz(**bodies(mass=None)), "has no array 'mass' (it holds: position, velocity); save it with np.savez"),
    "other names": (npz(m=1, pos=2), "has no array 'mass' (it holds: m, pos)"),
    "nothing": (npz(), "has no array 'mass' (it holds: none)"),
    "lengths that differ": (npz(**bodies(mass=np.ones(5))), "position has 4 rows but mass has 5"),
    "ids of another length": (npz(**bodies(id=np.arange(3))), "id has 3 rows but mass has 4"),
    "complex numbers": (npz(**bodies(velocity=np.zeros((4, 3), complex))), "velocity is an array of complex128"),
    "words": (npz(**bodies(mass=np.array(["a"] * 4))), "mass is an array of <U1; it must hold real numbers"),
    "yes and no": (npz(**bodies(mass=np.ones(4, bool))), "mass is an array of bool"),
    "broken ids": (npz(**bodies(id=np.arange(4) + 0.5)), "id is an array of float64; it must hold whole numbers"),
    "enormous ids": (npz(**bodies(id=np.arange(4, dtype="u8") + 2**63)), "id holds 9223372036854775811; ids go up to"),
    "ids that repeat": (npz(**bodies(id=np.zeros(4, int))), "ids repeat"),
    "one mass": (npz(**bodies(mass=np.float64(1))), "mass has the shape (); it must be (N,)"),
    "a row of positions": (npz(**bodies(position=np.zeros(12))), "position has the shape (12,)"),
    "four dimensions": (npz(**bodies(position=np.zeros((4, 4)), velocity=np.zeros((4, 4)))), "position (4, 4)"),
    "2-D and 3-D": (npz(**bodies(position=np.zeros((4, 2)))), "position (4, 2) and velocity (4, 3)"),
    "no bodies": (npz(**{k: v[:0] for k, v in bodies().items()}), "there are no particles"),
    "a NaN": (npz(**bodies(position=with_nan(2))), "position of particle 2 (counted from 0) is not a finite number"),
    "a negative mass": (npz(**bodies(mass=-np.ones(4))), "mass of particle 0 (counted from 0) is negative (-1)"),
    "no mass anywhere": (npz(**bodies(mass=np.zeros(4))), "every mass is zero"),
    "text": (b"hello", "is damaged or no .npz file"),
    "truncated": (npz(**bodies())[:-100], "is damaged or no .npz file"),
}


def header_of_mass(text: str) -> bytes:
    """An archive in which the header of the masses is this text."""
    buffer = io.BytesIO(npz(**bodies(mass=None)))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("mass.npy", b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text)) + text.encode() + bytes(32))
    return buffer.getvalue()


FIELDS = "{'descr': '<f8', 'fortran_order': False, 'shape': "
HEADERS = {
    "no end": FIELDS + "(4,",
    "a quote without end": '"""',
    "an indentation": "(\n  a\n b",
    "a depth of 3000": FIELDS + 3000 * "(" + 3000 * ")" + "}",
    "9000 signs": FIELDS + 9000 * "-" + "4}",
    "true as a length": FIELDS + "(True,)}",
    "an escape that Python warns of": FIELDS + "'\\d'}",
    "a record that is repeated": "{'descr': [('a', '<f8')] * 3, 'fortran_order': False, 'shape': (4,)}",
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("what", HEADERS)
def test_damaged_headers_of_arrays_are_refused(tmp_path, what):
    begins = "mass has the shape (True,)" if what.startswith("true") else "is damaged or no .npz file ("
    assert bodies_refused(tmp_path, "bodies.npz", header_of_mass(HEADERS[what])).startswith(begins)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damaged_compressed_arrays_are_refused(tmp_path, method):
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(npz(**bodies()))) as good, zipfile.ZipFile(buffer, "w", method) as archive:
        for name in good.namelist():
            archive.writestr(name, good.read(name))
    content = bytearray(buffer.getvalue())
    for at in range(50, 90, 4):
        damaged = content.copy()
        damaged[at] ^= 0xFF
        assert bodies_refused(tmp_path, "bodies.npz", bytes(damaged)).startswith("is damaged or no .npz file (")


@pytest.mark.parametrize("what", ARRAYS)
def test_invalid_arrays_are_refused(tmp_path, what):
    content, begins = ARRAYS[what]
    assert bodies_refused(tmp_path, "bodies.npz", content).startswith(begins)


def test_a_pickle_is_not_opened(tmp_path):
    class Trap:
        def __reduce__(self):
            return (Path(tmp_path / "sprung").touch, ())

    content = npz(**bodies(mass=np.array([Trap()] * 4, dtype=object)))
    (tmp_path / "sprung").unlink(missing_ok=True)
    assert bodies_refused(tmp_path, "bodies.npz", content).startswith("mass is an array of object")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(("shape", "says"), [("(1500000000000,)", "declares 12000000000000 bytes"), ("(-4,)", "")])
def test_a_declared_size_is_not_believed(tmp_path, shape, says):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    member = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
    buffer = io.BytesIO(npz(**bodies(mass=None)))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("mass.npy", member)
    assert says in bodies_refused(tmp_path, "bodies.npz", buffer.getvalue())


def test_a_damaged_array_is_noticed(tmp_path):
    content = bytearray(npz(**bodies()))
    content[content.index(struct.pack("<d", 11.0))] ^= 1
    assert "Bad CRC" in bodies_refused(tmp_path, "bodies.npz", bytes(content))


def test_a_file_that_is_no_recording_is_refused(tmp_path):
    assert bodies_refused(tmp_path, "run.h5", b"") and bodies_refused(tmp_path, "run.h5", b"\x89HDF\r\n\x1a\n")


def test_bodies_with_depth_do_not_fit_a_plane(tmp_path):
    line = bodies_refused(tmp_path, "bodies.csv", (HEADER + ROW).encode(), dimensions=2)
    assert line == "the bodies have z and the run has 2 dimensions; write 'dimensions: 3' under gravity"
