"""When nbody bench goes wrong: a full disk, damaged reports, foreign files, an interrupt. One line each, nothing lost."""

import errno
import io
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from earlier_reports import product, row, written

from nbody.bench import output, reading
from nbody.cli import main

PNG = b"\x89PNG\r\n\x1a\nold"


@pytest.fixture
def measured(monkeypatch):
    """What is measured takes no time; how often it was."""
    calls = []

    def measure(*_):
        calls.append(1)
        return [row(), row(particles=200)]

    monkeypatch.setattr("nbody.bench.forces.suite.measure", measure)
    return calls


# --- A disk that is full ----------------------------------------------------------------------------------------------


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def half_a_picture(found, path):
    Path(path).write_bytes(b"\x89PNG")
    full()


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_a_full_disk_loses_no_earlier_file_and_the_figures_are_shown(measured, monkeypatch, tmp_path, capsys, option):
    for name, content in (("bench.json", b""), ("bench.png", PNG)):
        (tmp_path / name).write_bytes(content)
    write_text = Path.write_text

    def half_a_report(self, text, **more):
        write_text(self, text[:10], **more)
        full()

    monkeypatch.setattr(Path, "write_text", half_a_report)
    assert main(["bench", "--cpu", "-o", str(tmp_path), *option]) == 1
    out, err = capsys.readouterr()
    place = tmp_path / "bench.json"
    assert f"error: {place} can't be written (No space left on device); the figures above are all there is\n" in err
    assert "200" in out and "wrote" not in err and "Traceback" not in err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"bench.json": b"", "bench.png": PNG}


def test_a_picture_that_does_not_fit_leaves_the_earlier_one_and_the_new_report(measured, monkeypatch, tmp_path, capsys):
    (tmp_path / "bench.png").write_bytes(PNG)
    monkeypatch.setattr("nbody.bench.forces.plot.plot_forces", half_a_picture)
    assert main(["bench", "--cpu", "-o", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert "bench.png can't be written (No space left on device); its figures are above and in" in err
    assert "200" in out and f"wrote {tmp_path / 'bench.json'}\n" in err
    assert (tmp_path / "bench.png").read_bytes() == PNG and len(reading.load(tmp_path / "bench.json")["rows"]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bench.json", "bench.png"]


def test_a_readme_that_does_not_fit_is_as_it_was(monkeypatch, tmp_path, capsys):
    page, text = tmp_path / "README.md", "<!-- bench:begin -->\nold\n<!-- bench:end -->\n"
    page.write_text(text)
    report = written(tmp_path / "bench.json", row())
    monkeypatch.setattr(Path, "write_text", full)
    assert main(["bench", "--from", str(report), "--readme", str(page)]) == 1
    out, err = capsys.readouterr()
    assert err == f"error: {page} can't be written (No space left on device); it is as it was\n" and "100" in out
    assert page.read_text() == text and len(list(tmp_path.iterdir())) == 2


# --- What can't be compared -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "old", [product(), row(suite="roofline"), row(suite="lecture"), None], ids=lambda old: str(old and old["suite"])
)
def test_a_report_of_another_kind_is_refused_before_anything_is_measured(old, measured, tmp_path, capsys):
    path = written(tmp_path / "old.json", *filter(None, [old]))
    new = written(tmp_path / "new.json", row())
    for options in (["--cpu", "-o", str(tmp_path / "new")], ["--from", str(new)]):
        assert main(["bench", *options, "--compare", str(path)]) == 2
        out, err = capsys.readouterr()
        assert err.startswith(f"error: --compare: {path} has ") and err.count("\n") == 1
        assert "nothing to compare forces with" in err and out == "" and not measured


def test_what_was_kept_under_another_name_was_not_replaced(measured, tmp_path, capsys):
    path = written(tmp_path / "k.json", row(seconds=2.0))
    before = path.read_bytes()
    assert main(["bench", "--cpu", "--compare", str(path), "-o", str(path)]) == 0
    err = capsys.readouterr().err
    assert "it is kept as k.1.json\n" in err and f"wrote {path}\n" in err and "in place of" not in err
    assert (tmp_path / "k.1.json").read_bytes() == before
    assert main(["bench", "--cpu", "-o", str(path)]) == 0
    assert f"wrote {path}, in place of an earlier one\n" in capsys.readouterr().err


# --- Where the files go -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "place,expected",
    [
        ("README.md", "README.md is a file; name a folder, or another file (a file's name ends in .json or .png)"),
        ("q.txt", "q.txt: a file's name ends in .json or .png; to have a folder of this name, make it first"),
        ("new/y.h5", "new/y.h5: a file's name ends in .json or .png"),
        ("README.md/new", "README.md/new can't be made (Not a directory)"),
        (".", "bench.png exists and is no picture (PNG); name another folder or file"),
        ("bench.json", "bench.png exists and is no picture (PNG)"),
        ("pipe.json", "pipe.json can't be written; name another folder"),
        ("a" * 300 + ".json", ".json can't be made (File name too long)"),
    ],
    ids=lambda value: value[:20],
)
def test_a_foreign_file_is_never_replaced(place, expected, measured, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.json")
    for name in ("README.md", "bench.png"):
        Path(name).write_text("mine")
    assert main(["bench", "--cpu", "-o", place]) == 2
    out, err = capsys.readouterr()
    assert err.startswith("error: --output: ") and expected in err and err.count("\n") == 1 and out == ""
    assert sorted(os.listdir()) == ["README.md", "bench.png", "pipe.json"] and not measured
    assert Path("README.md").read_text() == Path("bench.png").read_text() == "mine"


def test_a_folder_may_have_any_name_and_its_earlier_files_are_replaced(tmp_path):
    (tmp_path / "run.v2").mkdir()
    (tmp_path / "run.v2/bench.png").write_bytes(PNG)
    written(tmp_path / "run.v2/bench.json", row(seconds="of another version"))
    assert len(output.Output.at(tmp_path / "run.v2").replaced()) == 2
    assert output.Output.at(tmp_path / "2026.07").report == tmp_path / "2026.07/bench.json"


# --- The terminal, and an interrupt -----------------------------------------------------------------------------------


class Terminal(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self):
        return True


def test_the_status_line_is_cleared_before_the_next_line(measured, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert main(["bench", "--cpu", "-o", str(tmp_path)]) == 0
    assert "drawing" in sys.stderr.getvalue()
    for line in ("wrote ", f"wrote {tmp_path / 'bench.png'}"):
        assert sys.stderr.getvalue().split(line)[0].endswith(("\n", "\r\033[K"))


def test_a_bench_whose_standard_error_is_closed_measures_and_keeps_its_output_clean(
    measured, monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["bench", "--cpu", "--json", "-o", str(tmp_path)]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 2
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["bench", "--sizes", "1"]) == 2 and capsys.readouterr().out == ""


def interrupted(*_):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5)


def test_an_interrupt_says_what_was_written(monkeypatch, measured, tmp_path, capsys):
    monkeypatch.setattr("nbody.bench.forces.plot.plot_forces", interrupted)
    assert main(["bench", "--cpu", "-o", str(tmp_path)]) == 130
    assert capsys.readouterr().err.endswith(f"interrupted; {tmp_path / 'bench.json'} was written\n")
    (tmp_path / "bench.json").unlink()
    monkeypatch.setattr("nbody.bench.forces.suite.measure", interrupted)
    assert main(["bench", "--cpu", "-o", str(tmp_path)]) == 130
    assert capsys.readouterr().err.endswith("interrupted; nothing was written\n") and not list(tmp_path.iterdir())
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_where_nothing_may_be_compiled_nothing_is_measured(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)
    assert main(["bench", "--cpu", "--particles", "64", "-o", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert "NUMBA_DISABLE_JIT forbids it" in err and err.count("\n") == 1 and not list(tmp_path.iterdir())
