"""Comparing two reports: the same row against the same row, faster or slower by more than noise, on any machine."""

import json

import pytest

from nbody.bench import timing
from nbody.bench.compare import QUIET, Compared, compare
from nbody.bench.forces import contestant
from nbody.cli import main

MACHINE = {"cpu": "a processor", "cores": 2, "simd": "AVX2", "gpu": None, "version": "0", "started": "2026-01-01"}


def row(name="cpu", seconds=1.0, particles=100, suite="forces", backend="cpu", **more):
    known = {"name": name, "seconds": seconds, "particles": particles, "suite": suite, "backend": backend}
    return {"precision": "float32", "threads": 1, "device": "a processor", **known, **more}


def report(*rows, **machine):
    return {"machine": MACHINE | machine, "rows": list(rows)}


@pytest.mark.parametrize(
    "old,new,verdict",
    [
        (1.0, 1.0, ""),
        (1.0, 1.09, ""),
        (1.0, 1.2, "slower"),
        (1.0, 0.8, "faster"),
        (2.0, 1.0, "faster"),
        (1.0, 0.95, ""),
    ],
)
def test_a_row_on_the_hosts_clock_may_differ_by_a_tenth(old, new, verdict):
    found = Compared.of(row(seconds=old), row(seconds=new))
    assert found.verdict == verdict and found.ratio == pytest.approx(old / new)


def test_the_devices_clock_is_quieter_and_a_measured_spread_widens_either():
    def verdict(backend, **more):
        return Compared.of(
            row(backend=backend, suite="roofline"), row(backend=backend, suite="roofline", **more)
        ).verdict

    assert verdict("gpu", seconds=1 + 2 * QUIET) == "slower"
    assert verdict("gpu", seconds=1 + 2 * QUIET, spread=3 * QUIET) == ""


def test_only_the_same_measurement_is_compared():
    old = report(row(), row(particles=200), row(precision="float64"), row("gone"), row("untimed", None))
    new = report(row(), row(particles=200, suite="roofline"), row("new"), row(threads=2), row("untimed", 1.0))
    found = compare(old, new)
    assert [(each.name, each.particles) for each in found.rows] == [("cpu", 100)]
    assert (found.only_old, found.only_new, found.elsewhere) == (3, 4, "")


def test_another_machine_is_named():
    assert "another" in compare(report(row(), cpu="another"), report(row())).elsewhere


@pytest.fixture
def files(tmp_path):
    """An old report and a new one, in which one row of two became slower."""
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    errors = {"error": 1e-7, "error_median": 1e-8, "error_99": 5e-8}
    old.write_text(json.dumps(report(row(**errors), row(particles=200, **errors))))
    new.write_text(json.dumps(report(row(seconds=0.5, **errors), row(particles=200, seconds=2.0, **errors))))
    return old, new


def test_the_command_shows_every_ratio_flags_what_is_slower_and_exits_with_0(files, capsys):
    old, new = files
    assert main(["bench", "--from", str(new), "--compare", str(old)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "1.00 s 500 ms 2 10 % faster" in out and "1.00 s 2.00 s 0.5 10 % slower" in out
    assert "1 of 2 rows became slower by more than noise" in out


def test_the_comparison_is_part_of_the_one_json_object(files, capsys):
    old, new = files
    assert main(["bench", "--from", str(new), "--compare", str(old), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["comparison"]["with"] == str(old) and len(found["rows"]) == 2
    assert [each["verdict"] for each in found["comparison"]["rows"]] == ["faster", "slower"]


def test_a_new_measurement_keeps_what_it_is_compared_with_and_measures_its_sizes(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(contestant, "PILOT", 128)
    monkeypatch.setattr(timing, "ENOUGH", 0.01)
    arguments = ["bench", "--cpu", "--precision", "float64", "--engines", "reference"]
    assert main([*arguments, "--particles", "65", "-o", str(tmp_path)]) == 0
    before = (tmp_path / "bench.json").read_bytes()
    capsys.readouterr()
    assert main([*arguments, "-o", str(tmp_path), "--compare", str(tmp_path / "bench.json"), "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert {each["name"] for each in found["comparison"]["rows"]} == {row["name"] for row in found["rows"]}
    assert {row["particles"] for row in found["rows"]} == {65}
    assert "it is kept as bench.1.json" in err
    assert found["comparison"]["with"] == str(tmp_path / "bench.1.json")
    assert (tmp_path / "bench.1.json").read_bytes() == before != (tmp_path / "bench.json").read_bytes()
    assert "comparison" not in json.loads((tmp_path / "bench.json").read_text())


@pytest.mark.parametrize("text", ["", "no json", "[]", '{"rows": [], "machine": {}}', json.dumps(report(3))])
def test_what_is_no_report_is_refused_before_anything_is_measured(text, tmp_path, capsys):
    old = tmp_path / "old.json"
    old.write_text(text)
    assert main(["bench", "--cpu", "--particles", "65", "--compare", str(old), "-o", str(tmp_path / "new")]) == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"error: {old}: not a benchmark's report") and err.count("\n") == 1
    assert out == "" and not (tmp_path / "new").exists()


def test_a_report_goes_to_the_very_name_that_was_given(tmp_path):
    from nbody.bench.output import Output

    files = Output.at(tmp_path / "run.v2.json")
    assert (files.report.name, files.picture.name) == ("run.v2.json", "run.v2.png")


@pytest.mark.parametrize(
    "options,expected",
    [
        (["--precision", "mixed"], "no engine on the cpu computes in mixed"),
        (["--particles", "1.5"], "must be a whole number, got '1.5'"),
    ],
)
def test_nothing_to_measure_is_no_report(options, expected, tmp_path, capsys):
    assert main(["bench", "--cpu", *options, "-o", str(tmp_path / "new")]) == 2
    out, err = capsys.readouterr()
    assert expected in err and err.count("\n") == 1 and out == "" and not (tmp_path / "new").exists()
