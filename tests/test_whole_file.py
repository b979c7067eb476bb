"""What a command writes is there as a whole or not at all, and no file of the user is lost for it."""

import errno
import json
import os
import signal
import stat

import numpy as np
import pytest
from conftest import begun, files_end_at, until

from nbody.cli import main
from nbody.errors import InputError, NBodyError, RunFailed
from nbody.exchange import read as read_bodies
from nbody.exchange import suffixes
from nbody.trajectory import Trajectory
from nbody.trajectory.structure.opening import OpenFile
from nbody.viewer.movie.film import Film, Writer, checked
from nbody.viewer.screenshot import save_picture
from nbody.whole_file import if_free, keeping, whole_file

SCENARIO = """
initial: {generator: plummer, particles: 24, seed: 1}
integrator: {dt: 0.01, steps: 4}
engine: reference
precision: float64
"""
PICTURE = np.zeros((48, 64, 3), np.uint8)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A recording and its scenario, in a folder."""
    folder = tmp_path_factory.mktemp("recorded")
    scenario = folder / "small.yaml"
    scenario.write_text(SCENARIO)
    assert main(["run", str(scenario), "-o", str(folder / "run.h5"), "--every", "1", "--quiet"]) == 0
    return folder / "run.h5"


def no_links(*_):
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


# --- The function -------------------------------------------------------------------------------------------------------


def test_a_file_has_its_name_when_it_is_whole_and_the_usual_permissions(tmp_path):
    path = tmp_path / "a.csv"
    with whole_file(path) as draft:
        draft.write_text("1")
        assert not path.exists() and stat.S_IMODE(draft.parent.stat().st_mode) == 0o700
    mask = os.umask(0)
    os.umask(mask)
    assert content(tmp_path) == {"a.csv": b"1"} and stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    with pytest.raises(KeyError), whole_file(path) as draft:
        draft.write_text("2")
        raise KeyError
    assert os.listdir(tmp_path) == ["a.csv"] and path.read_text() == "1"


@pytest.mark.parametrize("links", [True, False])
def test_an_older_file_is_replaced_kept_or_respected(tmp_path, monkeypatch, links):
    if not links:  # a file system without hard links
        monkeypatch.setattr(os, "link", no_links)
    path, lines = tmp_path / "a.csv", []
    for text, place in (("1", if_free), ("2", os.replace), ("3", keeping(lines.append))):
        with whole_file(path, place) as draft:
            draft.write_text(text)
    assert content(tmp_path) == {"a.1.csv": b"2", "a.csv": b"3"} and "kept as a.1.csv" in lines[0]
    with pytest.raises(FileExistsError), whole_file(path, if_free) as draft:
        draft.write_text("4")
    assert content(tmp_path) == {"a.1.csv": b"2", "a.csv": b"3"}


# --- Commands -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", suffixes())
@pytest.mark.parametrize("size", [0, 1000, 2500])
def test_an_export_to_a_full_disk_fails_and_keeps_the_older_file(recorded, tmp_path, capsys, suffix, size):
    if suffix == ".bin":
        pytest.importorskip("rebound")
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"mine")
    with files_end_at(size):
        code = main(["export", str(recorded), str(path), "--overwrite", *(["--all"] if suffix in (".bin", ".nemo") else [])])
    said = capsys.readouterr()
    if code == 0:  # it fits
        assert read_bodies(path).count == 24 and path.stat().st_size <= size
        return
    assert code == 1 and said.err.startswith(f"error: {path}: can't be written (") and said.err.count("\n") == 1
    assert content(tmp_path) == {path.name: b"mine"} and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_a_figure_on_a_full_disk_keeps_the_older_one(recorded, tmp_path, refused, suffix):
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(b"")
    with files_end_at(1000):
        line = refused("plot", recorded, "energy", "-o", path, "--overwrite", code=1)
    assert "can't be written (File too large)" in line
    assert content(tmp_path) == {path.name: b""} and len(list(tmp_path.iterdir())) == 1


def test_a_new_scenario_that_does_not_fit_leaves_its_name_free(tmp_path, refused, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with files_end_at(100):
        line = refused("new", "disk", code=1)
    assert "can't be written (File too large)" in line and not list(tmp_path.iterdir())
    assert main(["new", "disk"]) == 0 and main(["new", "disk"]) == 2
    assert os.listdir(tmp_path) == ["disk.yaml"]


@pytest.mark.parametrize("target", ["run.h5", "small.yaml", "other.h5", "other.hdf5", "new.yaml", "link.csv"])
@pytest.mark.parametrize("options", [[], ["--overwrite"]], ids=["", "overwrite"])
def test_an_export_takes_no_name_of_a_recording_or_a_scenario(recorded, tmp_path, refused, target, options):
    for source in (recorded, recorded.with_name("small.yaml")):
        (tmp_path / source.name).write_bytes(source.read_bytes())
    for name in ("other.h5", "other.hdf5"):
        (tmp_path / name).write_bytes(recorded.read_bytes())
    (tmp_path / "link.csv").symlink_to("run.h5")
    before = content(tmp_path)
    for format in ("csv", "gadget"):
        line = refused("export", tmp_path / "run.h5", tmp_path / target, "--format", format, *options)
        assert "give another name" in line and content(tmp_path) == before


def test_a_plot_does_not_take_the_name_of_its_recording(recorded, tmp_path, refused):
    path = tmp_path / "run.png"
    path.write_bytes(recorded.read_bytes())
    assert "is read by this command" in refused("plot", path, "energy", "-o", path) and len(content(tmp_path)) == 1


def test_a_file_behind_a_link_at_a_hidden_name_is_not_written_to(recorded, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    for name in ("a.png", "b.png", "c.csv", "d.gif"):
        (tmp_path / f".{name}.part").symlink_to(precious)
    assert main(["plot", str(recorded), "energy", "-o", str(tmp_path / "a.png")]) == 0
    save_picture(PICTURE, tmp_path / "b.png")
    assert main(["export", str(recorded), str(tmp_path / "c.csv")]) == 0
    with Writer(Film(tmp_path / "d.gif", (64, 48), 10, 1)) as writer:
        writer.add(PICTURE)
    assert precious.read_text() == "mine" and len(content(tmp_path)) == 9


def test_a_picture_of_a_window_that_can_not_be_saved_names_no_option_of_the_command_line(tmp_path):
    with pytest.raises(NBodyError) as caught:
        save_picture(PICTURE, tmp_path / "no" / "a.png")
    assert str(caught.value).startswith(str(tmp_path))


# --- Pictures of a sequence ---------------------------------------------------------------------------------------------


def test_a_sequence_replaces_no_picture_that_was_there(tmp_path):
    film, third = Film(tmp_path / "a.png", (64, 48), 10, 4), tmp_path / "a.0002.png"
    third.write_text("mine")
    with pytest.raises(InputError, match=r"a\.0002\.png: exists; give another name, or --overwrite"):
        checked(film)
    with pytest.raises(InputError, match="exists and is no movie"):
        checked(film, overwrite=True)
    with pytest.raises(RunFailed, match="File exists"), Writer(film) as writer:  # it has appeared meanwhile
        for _ in range(4):
            writer.add(PICTURE)
    assert third.read_text() == "mine" and sorted(content(tmp_path)) == ["a.0000.png", "a.0001.png", "a.0002.png"]


def test_a_sequence_on_a_full_disk_has_whole_pictures_only(tmp_path):
    film = Film(tmp_path / "a.png", (64, 48), 10, 3)
    noise = np.random.default_rng(1).integers(0, 255, PICTURE.shape, np.uint8)
    with pytest.raises(RunFailed, match="the pictures so far are kept"), files_end_at(4096), Writer(film) as writer:
        for picture in (PICTURE, PICTURE, noise):
            writer.add(picture)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.0000.png", "a.0001.png"]


def test_sigterm_before_the_first_picture_leaves_nothing(tmp_path):
    (tmp_path / "long.yaml").write_text(SCENARIO.replace("steps: 4", "steps: 1000000"))
    process = begun("-m", "nbody", "movie", "long.yaml", "a.gif", "--quiet", cwd=tmp_path)
    assert until(lambda: list(tmp_path.glob(".nbody-movie-*")))
    process.terminate()  # before the run answers signals
    said = process.communicate(timeout=300)[1]
    assert process.returncode in (
        130,
        -signal.SIGINT,
    )  # for a shell the same: within NumPy's import it ends by the signal
    assert said.startswith("interrupted") and said.count("\n") == 1
    assert os.listdir(tmp_path) == ["long.yaml"]


# --- What is read -------------------------------------------------------------------------------------------------------


def test_a_run_does_not_replace_the_file_with_its_bodies(recorded, tmp_path, refused):
    (tmp_path / "bodies.hdf5").write_bytes(recorded.read_bytes())
    (tmp_path / "bodies.h5").symlink_to("bodies.hdf5")
    (tmp_path / "a.yaml").write_text("initial: {file: bodies.h5}\nintegrator: {dt: 0.01, steps: 1}\n")
    for name in ("bodies.hdf5", "bodies.h5"):
        line = refused("run", tmp_path / "a.yaml", "-o", tmp_path / name, "--overwrite")
        assert "is read by this command; give another --output" in line
    assert (tmp_path / "bodies.hdf5").read_bytes() == recorded.read_bytes()


@pytest.mark.parametrize(
    "forged", [{"gravity": 3}, {"gravity": {"softening": "plummer", "length": []}}, {"units": {"mass": "q"}}]
)
def test_an_export_of_a_recording_with_a_forged_scenario_is_refused(recorded, tmp_path, refused, monkeypatch, forged):
    monkeypatch.setattr(OpenFile, "text", lambda self, name: json.dumps(forged))
    line = refused("export", recorded, tmp_path / "a.csv")
    assert "is damaged, or was not written by nbody" in line and not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("name", "value"), [("step", 1e308), ("momentum", np.inf), ("virial_ratio", 1e308), ("total_energy", -1e308)]
)
def test_a_plot_of_forged_numbers_is_drawn_or_refused_without_warnings(recorded, tmp_path, monkeypatch, capsys, name, value):
    if name == "step":
        refresh = Trajectory.refresh
        monkeypatch.setattr(Trajectory, "refresh", lambda run: (refresh(run), setattr(run, "time", run.time + value)))
    else:
        observable = Trajectory.observable
        monkeypatch.setattr(Trajectory, "observable", lambda run, asked: observable(run, asked) + value * (asked == name))
    code = main(["plot", str(recorded), "overview", "energies", "momentum", "virial", "-o", str(tmp_path / "a.png")])
    said = capsys.readouterr().err
    assert code == (2 if name == "step" else 0) and said.count("\n") == (code == 2)
