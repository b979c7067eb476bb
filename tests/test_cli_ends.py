"""The end of the command line: an interrupt, no standard error, an option without its value."""

import os
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import suppress

import pytest
from conftest import ENVIRONMENT, ROOT, begun, child, program, recorded_frames, until
from recordings import plummer_text

from nbody.cli import main
from nbody.run.signals import stop_on_signals
from nbody.trajectory import Trajectory


def test_a_line_for_a_closed_standard_error_goes_nowhere(monkeypatch, capsys):
    from nbody.cli.progress import status_line
    from nbody.cli.streams import print_message

    monkeypatch.setattr(sys, "stderr", None)
    with status_line() as notify:
        notify("measuring")
        print_message("a line")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("already", ["", "interrupted at step 5; continue with: nbody resume run.h5"])
def test_an_interrupted_command_says_so_once(already, monkeypatch, capsys):
    from nbody.cli.streams import print_message

    monkeypatch.setattr("nbody.cli.streams._last_message", [])

    def interrupted(*_, **__):
        if already:
            print_message(already)
        raise KeyboardInterrupt

    monkeypatch.setattr("nbody.scenario.Scenario.load", interrupted)
    assert main(["run", "small.yaml"]) == 130
    assert capsys.readouterr().err == f"{already or 'interrupted'}\n"


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_while_auto_measures_ends_with_a_line(tmp_path, name):
    """A job's end or a lost terminal, before there is a run."""
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    run = begun(ROOT / "tests/programs/measuring_run.py", env=environment, cwd=tmp_path)
    for line in run.stderr:
        if "measuring once" in line:
            run.send_signal(getattr(signal, name))
            break
    _, error = run.communicate(timeout=300)
    assert (run.returncode, error) == (130, "interrupted\n")
    assert not (tmp_path / "output").exists() or not list((tmp_path / "output").iterdir())


@pytest.mark.parametrize("module,once", [
    ("typer", ""),
    ("numpy", "import builtins as b\nif hasattr(b, 'begun'): raise ImportError('once per process')\nb.begun = 1\n"),
])  # fmt: skip
def test_an_interrupt_among_the_imports_is_silent(tmp_path, module, once):
    (tmp_path / f"{module}.py").write_text(f"{once}raise KeyboardInterrupt\n")
    done = child("-m", "nbody", "run", "plummer", env={"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"})
    assert done.returncode in (130, -signal.SIGINT) and done.stdout == done.stderr == ""


def test_an_option_without_its_value_names_the_help_of_its_command(refused):
    for suite, option in (("matmul", "--sizes"), ("forces", "--output")):
        assert refused("bench", suite, option).endswith(f" bench {suite} --help')")


SCENARIO = plummer_text(64, 100000000, 0.001, engine="reference", precision="float64", record="{every: 1000000}")


@pytest.fixture
def broken_pipe():
    """The writing end of a pipe without a reader."""
    read, write = os.pipe()
    os.close(read)
    yield write
    os.close(write)


@pytest.mark.parametrize("arguments,unbuffered", [("--help", "1"), ("doctor", "")])
def test_a_closed_pipe_behind_the_output_is_no_error(arguments, unbuffered, broken_pipe, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    run = begun("-m", "nbody", arguments, cwd=tmp_path, stdout=broken_pipe)
    assert (run.communicate(timeout=300)[1], run.returncode) == ("", 0)


def test_invalid_input_has_exit_code_2_without_standard_error(broken_pipe, tmp_path):
    run = begun("-m", "nbody", "run", "nowhere.yaml", cwd=tmp_path, stderr=broken_pipe)
    assert (run.communicate(timeout=300)[0], run.returncode) == ("", 2)


@pytest.mark.parametrize("pause", [0.0, 0.02])
def test_two_interrupts_in_a_row_end_with_130_and_a_whole_file(pause, tmp_path):
    (tmp_path / "long.yaml").write_text(SCENARIO)
    run = begun("-m", "nbody", "run", "long.yaml", "-o", "run.h5", cwd=tmp_path)
    assert until(lambda: recorded_frames(tmp_path / "run.h5"))
    run.send_signal(signal.SIGINT)
    time.sleep(pause)
    run.send_signal(signal.SIGINT)
    _, error = run.communicate(timeout=300)
    assert run.returncode == 130 and "Traceback" not in error
    with Trajectory(tmp_path / "run.h5") as recorded:
        assert len(recorded) >= 1 and recorded.verify() == []


def test_the_signal_that_timeout_sends_to_a_process_and_to_its_group_asks_once_for_a_stop():
    """The second one would end the run without the checkpoint of its last step."""
    with stop_on_signals() as stop:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
    assert stop.requested and stop.signal_name == "SIGTERM"


def test_an_interrupt_during_the_start_shows_no_traceback(tmp_path):
    (tmp_path / "long.yaml").write_text(SCENARIO)
    for moment in (0.12, 0.2, 0.3):
        run = begun("-m", "nbody", "run", "long.yaml", cwd=tmp_path)
        time.sleep(moment)
        error = ""
        for _ in range(3):  # Python itself drops one that it raises in a destructor or a weak reference's callback
            run.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                _, error = run.communicate(timeout=60)
                break
        assert run.returncode is not None
        assert "__main__" not in error  # every traceback of ours would go through it; Python's own start is not ours


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no pseudo-terminals here")
def test_a_lost_terminal_ends_a_run_as_an_interrupt_does(tmp_path):
    """The terminal is closed: SIGHUP arrives, and standard output and error can't be written."""
    import pty

    (tmp_path / "long.yaml").write_text(SCENARIO)
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(tmp_path)
        os.execve(
            sys.executable,
            [sys.executable, "-m", "nbody", "run", "long.yaml", "-o", "run.h5"],
            ENVIRONMENT | {"TERM": "xterm"},
        )
    seen = b""
    while b"steps/s" not in seen:
        seen += os.read(terminal, 4096)
    os.close(terminal)
    _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    assert main(["info", str(tmp_path / "run.h5")]) == 0


def test_the_installed_script_begins_where_interrupts_are_answered():
    """Its own first import is of this module, which imports nothing that takes long."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["scripts"] == {"nbody": "nbody.__main__:program"}
    imported = {name.split(".")[0] for name in program("questions", "after_script", check=True).stdout.split()}
    assert imported <= {"gc", "nbody", "importlib", "signal", "typing", "warnings"}


def test_a_program_that_calls_the_command_line_keeps_its_garbage_collection():
    said = {name: program("questions", "collecting", name, check=True).stdout.split()[-2:] for name in ("main", "program")}
    assert said == {"main": ["True", "True"], "program": ["False", "True"]}  # after the first search, as usual
