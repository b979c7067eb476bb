"""What happens to a benchmark's report: it is written without loss, read again, shown, compared and put into READMEs."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ENVIRONMENT, said
from earlier_reports import MACHINE, product, row, written
from measured_report import measured_report

from nbody.bench import SUITES, readme, report, tables
from nbody.bench.compare import DEVICE, HOST, again, compare, compared
from nbody.cli import main
from nbody.errors import InputError

PNG = b"\x89PNG\r\n\x1a\nold"


def force(**more):
    """A row of the kind that ``suite`` names."""
    plain = row(**more)
    return report.kinds()[plain["suite"]][1].of(plain)


@pytest.fixture
def measured(monkeypatch):
    """Measuring takes no time, and no competitor is missing on any machine; how often it was done."""
    calls = []

    def measure(*_):
        calls.append(1)
        return [force(), force(particles=200)]

    monkeypatch.setattr("nbody.bench.forces.suite.measure", measure)
    monkeypatch.setattr("nbody.bench.forces.foreign.competitors", lambda *_: ())
    return calls


@pytest.fixture
def page(monkeypatch, tmp_path):
    """A checkout whose README files are one, with room for every table."""
    path = tmp_path / "README.md"
    names = [name for suite in SUITES for name in tables(suite).PAGES]
    path.write_text("# head\n" + "\n".join("\n".join([*readme.markers(name), f"after {name}"]) for name in names))
    monkeypatch.setattr(readme, "pages", lambda: [path])
    return path


# --- Reading ------------------------------------------------------------------------------------------------------------

DAMAGED = {
    "a text for a number": ([row(), row(seconds="fast")], "row 2: seconds: Input should be a valid number, not 'fast'"),
    "a negative time": ([row(seconds=-1.5)], "row 1: seconds: Input should be greater than or equal to 0, not -1.5"),
    "no number": ([row(speedup=float("nan"))], "row 1: speedup: Input should be a finite number"),
    "half a particle": ([row(particles=1.5)], "row 1: particles: Input should be a valid integer"),
    "more than any machine counts": ([row(particles=10**400)], "row 1: particles: "),
    "a key that is missing": ([product(), {"suite": "matmul"}], "row 2: name: Field required"),
    "a product without a size": ([product(size=None)], "row 1: size: Field required"),
    "a list for a name": ([product(name=["k00"])], "row 1: name: Input should be a valid string"),
    "a suite that there is not": ([row(suite="x")], "row 1: suite: Input should be 'forces', 'lecture', 'trees', "),
    "a row that is none": ([row(), 3], "row 2: "),
    "a roofline's slots": ([row(suite="roofline", slots="few")], "row 1: slots: Input should be a valid number"),
}


@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize("command", ["show", "compare"])
def test_a_damaged_row_is_refused_by_its_name(command, damage, tmp_path, refused):
    rows, expected = DAMAGED[damage]
    path = written(tmp_path / "old.json", *rows)
    line = refused("bench", command, path)
    assert line.startswith(f"{path}: not a benchmark's report ({expected}") and len(line) < 400


@pytest.mark.parametrize(
    "text,expected",
    [
        ("[" * 100_000, "Invalid JSON"),
        ('{"machine": {}, "rows": []}', "machine: cpu: Field required"),
        (json.dumps({"machine": MACHINE, "rows": [], "absent": 3}), "absent: Input should be a valid array"),
        ('{\n"machine"', "Invalid JSON: EOF while parsing an object at line 2"),
        (" ", "Invalid JSON"),
        (
            json.dumps({"machine": MACHINE, "rows": [], "suite": "forces", "options": {"up_to": "x"}}),
            "options: up_to: ",
        ),
        ("null", "not a benchmark's report"),
        (json.dumps({"machine": MACHINE, "rows": {}}), "rows: Input should be a valid array"),
    ],
)
def test_files_that_are_no_reports_are_refused(text, expected, tmp_path):
    path = tmp_path / "old.json"
    path.write_text(text)
    assert expected in said(report.load, path)


@pytest.mark.parametrize("command", ["show", "compare"])
def test_only_ordinary_files_are_read(command, tmp_path, refused):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        assert refused("bench", command, path) == f"{path}: this is a pipe or a device; name an ordinary file"


def test_reports_of_other_versions_are_shown(tmp_path):
    found = report.load(written(tmp_path / "bench.json", row(), row(future=[1]), product(), a_part_of_the_future={}))
    assert [each.name for each in found.rows] == ["cpu", "cpu", "k00"] and found.suites == ["forces", "matmul"]
    few = ["suite", "name", "device", "backend", "precision", "threads", "particles"]
    rows = ({key: row(suite=suite)[key] for key in few} for suite in ("forces", "lecture", "roofline"))
    report.load(written(tmp_path / "bench.json", *rows))


def test_brackets_are_shown_as_they_are(tmp_path, capsys):
    rows = [row(note="[/note]"), product(title="[/title]"), row(suite="roofline", name="[b]x")]
    machine = MACHINE | {"cpu": "a [/cpu] :smile:"}
    assert main(["bench", "show", str(written(tmp_path / "bench.json", *rows, machine=machine))]) == 0
    out = capsys.readouterr().out
    assert all(text in out for text in ("[/note]", "[/title]", "[b]x", "a [/cpu] :smile:"))


def test_the_table_names_the_machine_and_every_row_and_json_is_the_report(capsys):
    path = measured_report()
    capsys.readouterr()
    assert main(["bench", "show", str(path)]) == 0
    out, plain = capsys.readouterr().out, json.loads(path.read_text())
    assert plain["machine"]["cpu"] in out
    assert len(re.findall(r"^ *\d+ .+ float(32|64) ", out, re.MULTILINE)) == len(plain["rows"])
    assert main(["bench", "show", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == plain


def test_a_wrong_row_of_an_earlier_report_fails_the_command(tmp_path, capsys):
    rows = [row(wrong=True, note="bad"), product(wrong=True, note="worse")]
    assert main(["bench", "show", str(written(tmp_path / "old.json", *rows))]) == 1
    out, err = capsys.readouterr()
    assert "WRONG" in out
    assert "error: cpu float32, N = 100: bad\n" in err and "error: k00 float32, n = 64: worse\n" in err


# --- Comparing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "old,new,verdict",
    [(1, 1, ""), (1, 1.09, ""), (1, 1.2, "slower"), (1, 0.8, "faster"), (2, 1, "faster"), (1, 0.95, "")],
)
def test_a_row_on_the_hosts_clock_may_differ_by_a_tenth(old, new, verdict):
    found = compared(force(seconds=old), force(seconds=new))
    assert found.verdict == verdict and found.ratio == pytest.approx(old / new)


@pytest.mark.parametrize(
    "kind,noise",
    [
        ({"clock": "device", "backend": "gpu"}, DEVICE), ({}, HOST), ({"suite": "trees"}, HOST),
        ({"suite": "lecture"}, 0.25), ({"suite": "few"}, 0.25), ({"suite": "integrators", "backend": "gpu"}, 0.15),
    ],
)  # fmt: skip
def test_the_noise_is_that_of_the_clock_and_a_measured_spread_widens_it(kind, noise):
    old, slow = force(**kind), kind | {"seconds": 1 + 2 * noise}
    assert compared(old, force(**slow)).verdict == "slower" and compared(old, old).noise == noise
    assert compared(old, force(**slow, spread=0.9)).verdict == ""


def loaded(path, *rows, **more):
    return report.load(written(path, *rows, **more))


def test_only_the_same_measurement_is_compared_and_another_machine_is_named(tmp_path):
    old = loaded(
        tmp_path / "a", row(), row(particles=200), row(precision="float64"), row(name="gone"),
        row(name="untimed", seconds=None), product(seconds=1.0), machine=MACHINE | {"cpu": "another"},
    )  # fmt: skip
    new = loaded(
        tmp_path / "b", row(), row(particles=200, suite="roofline"), row(name="new"), row(threads=2),
        row(name="untimed"), product(seconds=2.0), product(n=4, seconds=2.0),
    )  # fmt: skip
    found = compare(old, new, "a")
    assert [(each.name, each.particles) for each in found.rows] == [("cpu", 100), ("k00", 64)]
    assert (found.only_old, found.only_new) == (3, 5) and "another" in found.elsewhere
    assert compare(new, new, "b").elsewhere == ""


def test_the_command_shows_every_ratio_marks_what_is_slower_and_exits_with_0(tmp_path, capsys):
    old = written(tmp_path / "old.json", row(), row(particles=200))
    new = written(tmp_path / "new.json", row(seconds=0.5), row(particles=200, seconds=2.0))
    assert main(["bench", "compare", str(old), str(new)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "1.00 s 500 ms 2 10 % faster" in out and "1.00 s 2.00 s 0.5 10 % slower" in out
    assert "1 of 2 rows became slower by more than noise" in out
    assert main(["bench", "compare", str(old), str(new), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["comparison"]["with"] == str(old) and len(found["rows"]) == 2
    assert [each["verdict"] for each in found["comparison"]["rows"]] == ["faster", "slower"]


def test_without_a_new_report_the_same_is_measured_again_and_the_old_one_is_kept(measured, tmp_path, capsys):
    old = written(tmp_path / "bench.json", row(seconds=2.0))
    before = old.read_bytes()
    assert main(["bench", "compare", str(old), "-o", str(tmp_path), "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert measured == [1] and [each["ratio"] for each in found["comparison"]["rows"]] == [2.0]
    assert "it is kept as bench.1.json" in err and found["comparison"]["with"] == str(tmp_path / "bench.1.json")
    assert (tmp_path / "bench.1.json").read_bytes() == before != old.read_bytes()
    assert "comparison" not in json.loads(old.read_text())


def test_measuring_again_takes_the_options_of_the_old_report(measured, tmp_path, capsys):
    options = ["--engines", "cpu-tree", "--particles", "200", "100", "--accuracy", "0.01", "--cpu"]
    assert main(["bench", *options, "-o", str(tmp_path)]) == 0
    path = tmp_path / "bench.json"
    expected = {"cpu": True, "engines": ["cpu-tree"], "particles": [200, 100], "accuracy": [0.01]}
    assert again(report.load(path), "a", print) == ("forces", expected)
    assert main(["bench", "compare", str(path), "-o", str(tmp_path)]) == 0 and len(measured) == 2


def test_a_report_of_an_earlier_version_is_measured_with_the_usual_options_and_a_line(tmp_path):
    said = []
    assert again(loaded(tmp_path / "b", product()), "b", said.append) == ("matmul", {})
    assert said == ["b: an earlier version wrote it, without its options; 'matmul' is measured with the usual ones"]
    with pytest.raises(InputError, match="c has no rows"):
        again(loaded(tmp_path / "c"), "c", print)
    with pytest.raises(InputError, match="d: unknown suite 'x'"):
        again(loaded(tmp_path / "d", suite="x"), "d", print)


@pytest.mark.parametrize("old", [product(), row(suite="roofline")], ids=lambda old: old["suite"])
def test_reports_of_different_suites_are_refused(old, tmp_path, refused):
    path, new = written(tmp_path / "old.json", old), written(tmp_path / "new.json", row())
    assert refused("bench", "compare", path, new).startswith(f"nothing to compare: {path} has ")


# --- Writing ------------------------------------------------------------------------------------------------------------


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
    assert (
        f"error: --output: {tmp_path / 'bench.json'}: can't be written (No space left on device); name another folder; "
        "the figures are above\n"
    ) in err
    assert "200" in out and "wrote" not in err and "Traceback" not in err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"bench.json": b"", "bench.png": PNG}


def test_a_picture_that_does_not_fit_leaves_the_earlier_one_and_the_new_report(measured, monkeypatch, tmp_path, capsys):
    (tmp_path / "bench.png").write_bytes(PNG)
    monkeypatch.setattr("nbody.bench.plot.plot", half_a_picture)
    assert main(["bench", "--cpu", "-o", str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert "bench.png: can't be written (No space left on device); name another folder; the figures are above" in err
    assert "200" in out and f"wrote {tmp_path / 'bench.json'}\n" in err
    assert (tmp_path / "bench.png").read_bytes() == PNG and len(report.load(tmp_path / "bench.json").rows) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bench.json", "bench.png"]


def test_no_file_is_lost_whatever_it_is(measured, tmp_path, capsys):
    (tmp_path / "bench.json").write_text('{"work": "of years"}')
    (tmp_path / "bench.png").write_text("mine")
    assert main(["bench", "--cpu", "-o", str(tmp_path)]) == 0
    assert capsys.readouterr().err.count("; it is kept as bench.1.") == 2
    assert (tmp_path / "bench.1.json").read_text() == '{"work": "of years"}'
    assert (tmp_path / "bench.1.png").read_text() == "mine"


@pytest.mark.parametrize(
    "place,expected",
    [
        ("README.md", "README.md: can't be written (File exists); name another folder"),
        ("README.md/new", "README.md/new: can't be written (Not a directory)"),
        ("a" * 300, "can't be written (File name too long)"),
        ("folder.json", "folder.json: is a directory"),
    ],
    ids=lambda value: value[:20],
)
def test_an_impossible_output_path_is_refused_before_anything_is_measured(
    place, expected, measured, tmp_path, monkeypatch, refused
):
    monkeypatch.chdir(tmp_path)
    Path("README.md").write_text("mine")
    Path("folder.json").mkdir()
    line = refused("bench", "--cpu", "-o", place)
    assert line.startswith("--output: ") and expected in line
    assert sorted(os.listdir()) == ["README.md", "folder.json"] and not measured


def test_a_folder_or_a_report_may_have_any_name(measured, tmp_path):
    for place, name in (("2026.07", "2026.07/bench"), ("run.v2.json", "run.v2")):
        assert main(["bench", "--cpu", "-o", str(tmp_path / place)]) == 0
        assert (tmp_path / f"{name}.json").exists() and (tmp_path / f"{name}.png").exists()


def test_the_picture_is_a_png_of_a_plausible_size():
    import numpy as np
    from PIL import Image

    picture = Image.open(measured_report().with_suffix(".png"))
    assert picture.format == "PNG" and picture.width > picture.height > 500
    shades = np.unique(np.asarray(picture.convert("RGB")).reshape(-1, 3), axis=0)
    assert len(shades) > 20  # lines and labels in several colours, not an empty sheet


# --- The terminal, an interrupt, a closed pipe --------------------------------------------------------------------------


def test_the_status_line_is_cleared_before_the_next_line(measured, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)

    def measure(who, counts, notify):
        notify("measuring")
        return [force()]

    monkeypatch.setattr("nbody.bench.forces.suite.measure", measure)
    assert main(["bench", "--cpu", "-o", str(tmp_path)]) == 0
    err = capsys.readouterr().err
    assert "measuring" in err and err.split("wrote ")[0].endswith(("\n", "\r\033[K"))


def test_a_bench_whose_standard_error_is_closed_measures_and_keeps_its_output_clean(measured, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["bench", "--cpu", "--json", "-o", str(tmp_path)]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 2
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["bench", "--sizes", "1"]) == 2 and capsys.readouterr().out == ""


def interrupted(*_):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)


def test_an_interrupt_leaves_no_draft_and_says_what_was_written(monkeypatch, measured, tmp_path, capsys):
    monkeypatch.setattr("nbody.bench.plot.plot", interrupted)
    assert main(["bench", "--cpu", "-o", str(tmp_path)]) == 130
    err = capsys.readouterr().err
    assert f"wrote {tmp_path / 'bench.json'}\n" in err and "Traceback" not in err
    (tmp_path / "bench.json").unlink()
    monkeypatch.setattr("nbody.bench.forces.suite.measure", interrupted)
    assert main(["bench", "--cpu", "-o", str(tmp_path)]) == 130
    assert capsys.readouterr().err.endswith("interrupted; nothing was written\n") and not list(tmp_path.iterdir())


def test_a_closed_pipe_ends_quietly(tmp_path):
    path = written(tmp_path / "bench.json", *(row(particles=n) for n in range(1, 2000)))  # more than a pipe holds
    command = f"{sys.executable} -m nbody bench show {path} | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], env=ENVIRONMENT, capture_output=True)
    assert done.returncode in (0, 141) and done.stderr == b"" and done.stdout.count(b"\n") == 1


# --- The README files ---------------------------------------------------------------------------------------------------


def test_every_table_goes_to_its_markers_and_nothing_else_changes(page, tmp_path):
    matmul = written(tmp_path / "matmul.json", product(seconds=1.0, gflops=1.0))
    arguments = ["bench", "show", str(measured_report()), str(matmul), "--readme"]
    assert main(arguments) == 0
    once = page.read_text()
    assert once.startswith("# head\n<!-- bench:begin -->\n") and once.endswith("\nafter matmul")
    assert "| `cpu` | float32 |" in once and "| `k00` | loops |" in once
    small = once.split("<!-- speed:begin -->")[1].split("<!-- speed:end -->")[0]
    assert "| `cpu` | float64 |" in small and "`reference`" not in small
    assert len([line for line in small.splitlines() if line.startswith("| `")]) <= 8
    assert main(arguments) == 0 and page.read_text() == once


def test_measuring_writes_the_tables_too(page, measured, tmp_path):
    assert main(["bench", "--cpu", "--readme", "-o", str(tmp_path / "new")]) == 0
    assert "| N = 100 | N = 200 |" in page.read_text()


def test_tables_of_several_machines_stand_one_after_the_other(page):
    found = report.load(measured_report())
    assert readme.rewrite([found, found]) == [page]
    assert page.read_text().count("| engine | precision | N = 65 | N = 130 | × one core | error, median | error,") == 2


@pytest.fixture(scope="module")
def reported():
    """The measured report; made before a test replaces what measures."""
    return measured_report()


@pytest.mark.parametrize("text", ["no markers", "<!-- bench:end -->\n<!-- bench:begin -->\n", "<!-- bench:begin -->\n"])
def test_a_checkout_without_a_place_for_a_table_is_refused_before_anything_is_measured(
    reported, page, text, measured, tmp_path, refused, typed
):
    page.write_text(text)
    assert "<!-- bench:begin -->" in refused("bench", "--cpu", "-o", tmp_path / "new", "--readme")
    shown = typed("bench", "show", reported, "--readme")
    assert shown.returncode == 2 and "<!-- bench:begin -->" in shown.stderr
    assert page.read_text() == text and not measured


def test_a_readme_that_does_not_fit_is_as_it_was(page, monkeypatch, tmp_path, capsys):
    text, path = page.read_text(), written(tmp_path / "bench.json", row())
    monkeypatch.setattr(Path, "write_text", full)
    assert main(["bench", "show", str(path), "--readme"]) == 1
    out, err = capsys.readouterr()
    assert err == f"error: {page}: can't be written (No space left on device); it is as it was\n" and "100" in out
    assert page.read_text() == text and len(list(tmp_path.iterdir())) == 2
