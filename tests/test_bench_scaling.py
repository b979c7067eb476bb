"""``nbody bench scaling``: the report and its picture. (The measurement needs several GPUs.)"""

from dataclasses import replace

from nbody.bench import report
from nbody.bench.output import write
from nbody.bench.scaling.plot import plot
from nbody.bench.scaling.row import ScalingRow
from nbody.cli import main


def test_the_report_of_several_gpus_has_a_table_and_a_picture(tmp_path, capsys):
    path = tmp_path / "scaling.json"
    card = ScalingRow(name="gpu-symmetric", device="a card", precision="float32", particles=262144, gpus=1, steps=20)
    rows = [
        replace(card, gpus=gpus, seconds=0.02 / speedup, speedup=speedup, efficiency=speedup / gpus)
        for gpus, speedup in ((1, 1.0), (2, 1.92), (4, 3.64))
    ]
    write(report.Report(report.machine(), rows), path, plot, print)
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    capsys.readouterr()
    assert main(["bench", "show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert all(number in shown for number in ("262144", "1.92", "3.64", "91.0 %")), shown
