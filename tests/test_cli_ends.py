"""How the command line ends: interrupted, without a standard error, or with an option that lacks its value."""

import os
import subprocess
import sys
from pathlib import Path

from nbody.cli import main

ROOT = Path(__file__).resolve().parents[1]


def test_a_line_for_a_closed_standard_error_goes_nowhere(monkeypatch, capsys):
    from nbody.cli.progress import say, status_line

    monkeypatch.setattr(sys, "stderr", None)
    with status_line() as notify:
        notify("measuring")
        say("a line")
    assert capsys.readouterr().out == ""


def test_every_interrupted_command_says_so(monkeypatch, capsys):
    monkeypatch.setattr("nbody.cli.progress._last_said", [])

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("nbody.scenario.Scenario.load", interrupted)
    assert main(["run", "small.yaml"]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_an_interrupted_run_that_has_said_where_says_no_more(monkeypatch, capsys):
    from nbody.cli.progress import say

    def interrupted(*_, **__):
        say("interrupted at step 5; go on with: nbody resume run.h5")
        raise KeyboardInterrupt

    monkeypatch.setattr("nbody.scenario.Scenario.load", interrupted)
    assert main(["run", "small.yaml"]) == 130
    assert capsys.readouterr().err == "interrupted at step 5; go on with: nbody resume run.h5\n"


def test_an_interrupt_among_the_first_imports_is_silent(tmp_path):
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run([sys.executable, "-m", "nbody"], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_option_without_its_value_names_the_help_of_its_command(capsys):
    for suite, option in (("matmul", "--sizes"), ("forces", "--output")):
        assert main(["bench", suite, option]) == 2
        assert f" bench {suite} --help')\n" in capsys.readouterr().err
