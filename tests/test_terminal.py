"""What reaches the terminal: one line per mistake, no text from a file commands it, and JSON holds what JSON knows."""

import ast
import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from recordings import plummer_text

import nbody.cli
from nbody import memory
from nbody.cli import main, streams
from nbody.errors import printable, shortened
from nbody.run import watch
from nbody.state import Outputs
from nbody.trajectory import Trajectory

SCENARIO = plummer_text(16, 2, 0.01, engine="reference", precision="float64")

EVIL = "\x1b[31mred\u202e\x9b\x07\nerror: \udcff"
"""Colours, a text written backwards, a C1 control, a bell, a second line, a byte that is not UTF-8."""


@pytest.fixture(scope="module")
def run_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terminal")
    (folder / "small.yaml").write_text(SCENARIO)
    assert main(["run", str(folder / "small.yaml"), "-q", "-o", str(folder / "run.h5")]) == 0
    return folder / "run.h5"


# --- Texts ----------------------------------------------------------------------------------------------------------


def test_a_text_is_printable_where_it_is_and_escaped_where_it_is_not():
    assert printable("Göttingen ε") == "Göttingen ε"
    assert printable("a\x1b[31m\udcff") == "a\\x1b[31m\\udcff" and printable(EVIL).isprintable()


def test_a_shortened_text_keeps_its_ends_and_has_the_length_asked_for():
    text = "begin" + 1000 * "x" + "end"
    for most in (20, 21):
        assert len(shortened(text, most)) == most
        assert shortened(text, most).startswith("begin") and shortened(text, most).endswith("end")
    assert shortened("short", 20) == "short"


def test_nothing_but_the_door_prints():
    """So that every text passes :func:`nbody.errors.printable`, and every JSON is without NaN."""
    for path in Path(nbody.cli.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and path.name != "streams.py":
                assert ast.unparse(node.func) not in ("print", "json.dumps", "typer.echo"), f"{path.name}:{node.lineno}"


def test_a_coloured_table_has_colours_and_no_other_escapes(capsys):
    streams.styled("\x1b[1;31mwrong\x1b[0m \x1b]0;title\x07\x1b[2J\nnext\n")
    assert capsys.readouterr().out == "\x1b[1;31mwrong\x1b[0m \\x1b]0;title\\x07\\x1b[2J\nnext\n"


def test_json_has_null_for_what_is_not_finite(capsys):
    streams.result_json({"a": [float("nan"), {"b": -float("inf")}, np.float64("inf")], "c": 0.5, "d": "\x7f"})
    expected = {"a": [None, {"b": None}, None], "c": 0.5, "d": "\x7f"}
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail) == expected


# --- Options and names ----------------------------------------------------------------------------------------------


def test_a_number_that_is_none_is_shown(run_file, refused):
    for option in ("--dt", "--end", "--steps", "--particles"):
        line = refused("run", run_file.with_name("small.yaml"), option, "abc", "-o", run_file)
        assert option in line and "'abc'" in line
        assert len(refused("run", run_file.with_name("small.yaml"), option, "9" * 5000)) < 300
    refused("run", "small.yaml", "--" + "x" * 5000)
    for option in ("--fps", "--frame"):
        assert "'abc'" in refused("view", run_file, option, "abc")
    assert "from 0.25 to 480" in refused("view", run_file, "--fps", "1e9")


def test_a_name_that_is_no_text_is_escaped_after_the_word_error(tmp_path, refused):
    for name in ("a\x1b[31mb.h5", os.fsdecode(b"a\xff.h5"), "a\x1b.yaml"):
        for command in ("info", "view", "resume", "run"):
            refused(command, tmp_path / name)


# --- What a file may be replaced by ---------------------------------------------------------------------------------


def test_a_picture_replaces_pictures_only(run_file, tmp_path, refused):
    text, picture, link = tmp_path / "notes.png", tmp_path / "new.png", tmp_path / "link.png"
    text.write_text("mine")
    before = run_file.read_bytes()
    link.symlink_to(run_file)
    for path in (text, link):
        assert "no PNG" in refused("view", run_file, "--screenshot", path, "--overwrite")
    assert "pictures are PNG files" in refused("view", run_file, "--screenshot", link)  # not even renamed
    link.unlink()
    link.symlink_to(tmp_path / "new.h5")
    assert "pictures are PNG files" in refused("view", run_file, "--screenshot", link)
    assert "the name is longer" in refused("view", run_file, "--screenshot", tmp_path / ("x" * 246 + ".png"))
    assert text.read_text() == "mine" and run_file.read_bytes() == before and not picture.exists()


def test_resume_where_nothing_can_be_written_advises_no_option_that_it_lacks(run_file, refused, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: not mode & os.W_OK)  # (root may write everywhere)
    line = refused("resume", run_file, "--steps", "4")
    assert "is not writable" in line and "--output" not in line and "copy the recording" in line


# --- The viewer -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [EVIL, "x" * 1_000_000, ["x" * 1_000_000]])
def test_a_name_that_is_long_or_no_text_is_drawn_short(run_file, name):
    from nbody.viewer.display import hud
    from nbody.viewer.sources.recording import RecordedSource

    with Trajectory(run_file) as run:
        run.resolved["name"] = name
        recording = RecordedSource(run)
        assert recording.name.isprintable() and len(recording.name) <= 60
        assert hud.caption_panel(recording.caption(0), 1.0, alert=str(name)).shape[1] < 5000


# --- The machine ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", ["0", "-2"])
def test_an_invalid_number_of_threads_is_refused(threads, run_file, refused, monkeypatch):
    monkeypatch.setenv("NUMBA_NUM_THREADS", threads)
    assert "NUMBA_NUM_THREADS" in refused("info", run_file)


def test_threads_that_do_not_start_are_reported_by_the_engine(run_file, refused, monkeypatch):
    def fail():
        raise ValueError("The threading layer requested 'xyz' is unknown to Numba.")

    monkeypatch.setattr("numba.get_num_threads", fail)
    line = refused("run", run_file.with_name("small.yaml"), "--engine", "cpu", "-o", run_file)
    assert "'xyz' is unknown" in line and "--engine reference" in line


def test_running_out_of_memory_ends_with_a_clear_error(run_file, refused, monkeypatch):
    def fail(*arguments, **more):
        raise MemoryError("Unable to allocate 15.3 MiB")

    monkeypatch.setattr(memory, "memory_available", fail)
    line = refused("info", run_file.with_name("small.yaml"), code=1)
    assert "Unable to allocate 15.3 MiB" in line and "fewer particles" in line


def groups(root, membership, files):
    """A machine with 100 MB free, whose process is in these control groups."""
    for name, text in {"proc/meminfo": "MemAvailable: 100000 kB\n", "proc/self/cgroup": membership, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return memory.memory_available(root)


def test_a_control_groups_limit_counts_without_the_page_cache(tmp_path):
    two = "sys/fs/cgroup/job"
    stat = "anon 1\ninactive_file 300\n"
    limits = {f"{two}/memory.max": "6000", f"{two}/memory.current": "5000", f"{two}/memory.stat": stat}
    assert groups(tmp_path / "v2", "0::/job/step\n", limits) == 1300  # the limit of a group around the process's own
    one = "sys/fs/cgroup/memory"
    limits = {
        f"{one}/memory.limit_in_bytes": "7000", f"{one}/memory.usage_in_bytes": "5000",
        f"{one}/memory.stat": "cache 9\ntotal_inactive_file 500\n",
    }  # fmt: skip
    assert groups(tmp_path / "v1", "4:cpu,memory:/docker/of/the/host\n3:cpu:/\n", limits) == 2500
    unlimited = {f"{two}/memory.max": "max\n", f"{two}/memory.current": "5", f"{two}/memory.stat": ""}
    assert groups(tmp_path / "none", "0::/job\n", unlimited) == 100_000 * 1024
    full = {f"{two}/memory.max": "10", f"{two}/memory.current": "20", f"{two}/memory.stat": ""}
    assert groups(tmp_path / "full", "0::/job\n", full) == 0


# --- How long it takes to stop --------------------------------------------------------------------------------------


def test_the_time_to_stop_comes_from_the_present_step_without_what_was_compiled(monkeypatch):
    clock, said = [0.0], []
    monkeypatch.setattr(watch, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    monkeypatch.setattr(watch, "work_of_steps", lambda *a: 1000)
    progress, frames = SimpleNamespace(requested=0, watch=None), SimpleNamespace(outputs=Outputs.ENERGY)
    state = SimpleNamespace(progress=progress, frames=frames)
    motion = SimpleNamespace(state=state, engine=SimpleNamespace(work=lambda *a: 0))
    stop = SimpleNamespace(heard=False, requested=False, now=False, silent=False)
    scheme = SimpleNamespace(facts=SimpleNamespace(leaves=None))
    stepper = SimpleNamespace(integrator=scheme, motion=motion, state=state)
    seen = watch.Watch(stepper, stop, lambda *a: None, said.append)

    def reports(*moments):
        for clock[0], computed in moments:
            seen(computed)

    seen.step(1, True)
    reports((26.0, 100), (26.3, 400), (26.9, 1000))  # 26 s of compiling
    state.progress.requested = 1000
    seen.step(2, True)
    stop.requested = True
    reports((26.95, 1050), (27.0, 1100))
    assert said == []  # a step of 1 s at most: nothing is known of it yet
    reports((27.2, 1150), (27.3, 1200))
    assert said == ["stopping after step 2, in about 2 s; Ctrl-C again stops now"]  # 850 left at 400 per second
