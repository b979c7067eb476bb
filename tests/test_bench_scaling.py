"""``nbody bench scaling``: the report and its picture. (The measurement needs several GPUs.)"""

import pytest

from nbody import compute
from nbody.bench import card, report
from nbody.bench.plot import plot
from nbody.bench.report import write
from nbody.bench.scaling import prepare, suite
from nbody.bench.scaling.tables import ScalingRow
from nbody.cli import main


def test_the_report_of_several_gpus_has_a_table_and_a_picture(tmp_path, capsys):
    path = tmp_path / "scaling.json"
    known = {"name": "gpu-symmetric", "device": "a card", "precision": "float32", "steps": 20}
    rows = [
        ScalingRow.of(known | {"particles": 262144, "gpus": gpus, "speedup": speedup, "efficiency": speedup / gpus})
        for gpus, speedup in ((1, 1.0), (2, 1.92), (4, 3.64))
    ]
    write(report.Report(report.machine(), rows), path, plot, print)
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    capsys.readouterr()
    assert main(["bench", "show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert all(number in shown for number in ("262144", "1.92", "3.64", "91.0 %")), shown


@pytest.fixture
def two_gpus(monkeypatch):
    """Pretend that there are two."""
    monkeypatch.setattr(card, "require_gpu", lambda what: None)
    monkeypatch.setattr(compute, "device_count", lambda: 2)


@pytest.mark.usefixtures("two_gpus")
def test_the_engines_that_divide_their_work_are_measured_if_named(monkeypatch):
    monkeypatch.setattr(suite, "measure", lambda gpus, counts, kinds, notify: [gpus, counts, kinds])
    measured = prepare(print, particles=[300000], engines=["gpu-tree", "gpu-symmetric"], precision=["mixed"])(print)
    assert measured.rows == [[1, 2], [300000], [("gpu-tree", "mixed"), ("gpu-symmetric", "mixed")]]
    assert prepare(print)(print).rows[2] == [("gpu-symmetric", "float32")]


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_engines_that_ranks_do_not_divide_are_refused(refused, engine):
    assert f"--engines: '{engine}': it computes" in refused("bench", "scaling", "--engines", engine)
