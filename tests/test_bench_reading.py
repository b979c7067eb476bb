"""An earlier report is checked before anything is made of it: what is wrong in it is one line, what is not is shown."""

import json
import os
from pathlib import Path

import pytest
from earlier_reports import MACHINE, product, row, written

from nbody.bench import reading
from nbody.cli import main
from nbody.errors import InputError

DAMAGED = {
    "a text for a number": ([row(), row(seconds="fast")], "row 2: 'seconds' must be a number, is \"fast\""),
    "a negative time": ([row(seconds=-1.5)], "row 1: 'seconds' must not be negative, is -1.5"),
    "no number": ([row(speedup=float("nan"))], "row 1: 'speedup' must be a finite number, is NaN"),
    "half a particle": ([row(particles=1.5)], "row 1: 'particles' must be a whole number, is 1.5"),
    "more than any machine counts": ([row(particles=10**400)], "row 1: 'particles' must be less than 2^63, is 1000"),
    "a key that is missing": ([product(), {"suite": "matmul"}], "row 2: 'name' is missing"),
    "a list for a name": ([product(name=["k00"])], "row 1: 'name' must be a text, is a list"),
    "a suite that there is not": ([row(suite={})], "row 1: 'suite' must be one of forces, roofline, lecture, matmul, is"),
    "a row that is none": ([row(), 3], "row 2 must be an object, is 3"),
    "a roofline's clock": ([row(suite="roofline", clock="fast")], "row 1: 'clock' must be a number"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize("option", ["--from", "--compare"])
def test_a_damaged_row_is_one_line_that_names_it(option, damage, tmp_path, capsys):
    rows, expected = DAMAGED[damage]
    path = written(tmp_path / "old.json", *rows)
    assert main(["bench", option, str(path)]) == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"error: {path}: not a benchmark's report ({expected}") and err.count("\n") == 1
    assert out == ""


@pytest.mark.parametrize(
    "text,expected",
    [
        ("[" * 100_000, "its lists are nested too deep"),
        ('{"machine": {}, "rows": []}', "machine: 'cpu' is missing"),
        (json.dumps({"machine": MACHINE, "rows": [], "absent": 3}), "'absent' must be a list, is 3"),
        ('{\n"machine"', "line 2 is no JSON"),
        (" ", "it is empty"),
        ("null", "it has no 'machine', an object"),
        (json.dumps({"machine": MACHINE, "rows": {}}), "it has no 'rows', a list"),
    ],
)
def test_a_file_that_is_no_report_is_one_line(text, expected, tmp_path):
    path = tmp_path / "old.json"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        reading.load(path)
    assert expected in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("option", ["--from", "--compare", "--readme"])
def test_only_ordinary_files_are_read(option, tmp_path, capsys):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        assert main(["bench", option, str(path)]) == 2
        assert f"{path}: this is a pipe or a device; name an ordinary file\n" in capsys.readouterr().err


def test_reports_of_other_versions_are_shown(tmp_path):
    older, newer = row(), row(a_figure_of_the_future=[1])
    found = reading.load(written(tmp_path / "bench.json", older, newer, product(), a_part_of_the_future={}))
    assert found["rows"][:2] == [older, newer]
    few = ["suite", "name", "device", "backend", "precision", "threads", "particles"]
    reading.load(
        written(tmp_path / "bench.json", *({key: row(suite=s)[key] for key in few} for s in ("forces", "lecture")))
    )


def test_brackets_are_shown_as_they_are(tmp_path, capsys):
    rows = [row(note="[/note]"), product(title="[/title]"), row(suite="roofline", name="[b]x", clock_source="measured")]
    machine = MACHINE | {"cpu": "a [/cpu] :smile:"}
    for each in rows:
        assert main(["bench", "--from", str(written(tmp_path / "bench.json", each, machine=machine))]) == 0
    out = capsys.readouterr().out
    assert all(text in out for text in ("[/note]", "[/title]", "[b]x", "a [/cpu] :smile:"))
