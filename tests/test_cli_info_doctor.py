"""``nbody info`` tells what is in a file, ``nbody doctor`` what works here; and numbers are written for people."""

import importlib
import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from recordings import plummer_text

from nbody import doctor, install, machine, opengl
from nbody.cli import main
from nbody.number_format import duration, rate, size
from nbody.trajectory import Trajectory

SCENARIO = plummer_text(100, 7, 0.01, engine="reference", precision="float64", record="{every: 3}").replace(", seed: 5", "")


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def recording(scenario, tmp_path):
    path = tmp_path / "run.h5"
    assert main(["run", str(scenario), "--quiet", "-o", str(path)]) == 0
    return path


def printed(capsys, *arguments):
    """What a command printed as JSON; it must be one object."""
    capsys.readouterr()
    main([*map(str, arguments), "--json"])
    return json.loads(capsys.readouterr().out)


# --- info -----------------------------------------------------------------------------------------------------------


def test_info_of_a_scenario_fills_in_every_default(scenario, capsys):
    found = printed(capsys, "info", scenario)["scenario"]
    assert found["name"] == "cluster" and found["initial"]["seed"] == 1 and found["initial"]["cut"] == 22.8
    assert found["gravity"] == {"G": 1.0, "dimensions": 3, "softening": "plummer", "length": 0.05}
    assert found["integrator"] == {"scheme": "leapfrog", "dt": 0.01, "steps": 7}


def test_info_describes_the_scheme_of_a_scenario_and_of_a_recording(scenario, recording, capsys):
    for path in (scenario, recording):
        found = printed(capsys, "info", path)
        assert (found["order"], found["evaluations_per_step"], found["source"]) == (2, 1, "Verlet 1967")
        assert (found["step_lengths"], found["frames_are"]) == ("fixed", "synchronized")
        main(["info", str(path)])
        assert re.search(
            r"integrator +order 2, 1 force evaluation per step, fixed steps \(Verlet 1967\)", capsys.readouterr().out
        )


@pytest.mark.parametrize(
    "chosen,lengths,frames",
    [
        ({"scheme": "hermite6_block", "end": 1.0}, "individual", "synchronized"),
        ({"scheme": "hermite6_block", "steps": 100}, "individual", "predicted"),
        ({"scheme": "hermite6_block", "steps": 100, "shared": True}, "adaptive", "synchronized"),
        ({"scheme": "hermite4", "dt": 0.1, "steps": 9}, "fixed", "synchronized"),
        ({"scheme": "hermite4", "eta": 0.1, "end": 9.0}, "adaptive", "synchronized"),
    ],
)
def test_info_says_whether_bodies_have_their_own_steps_and_what_frames_then_are(chosen, lengths, frames, tmp_path, capsys):
    """To a time that a scenario names all bodies make a step; a frame after so many blocks is within most steps."""
    path = tmp_path / "a.yaml"
    values = yaml.safe_load(SCENARIO) | {"integrator": chosen, "engine": "cpu"}
    path.write_text(json.dumps(values | {"record": {"dt": 0.5} if "end" in chosen else {"every": 3}}))
    found = printed(capsys, "info", path)
    assert (found["step_lengths"], found["frames_are"]) == (lengths, frames)
    assert main(["info", str(path)]) == 0
    assert (f"frames are {frames}" in capsys.readouterr().out) == (lengths == "individual")


def test_info_foretells_the_frames_and_the_size_of_the_file(scenario, recording, capsys):
    found = printed(capsys, "info", scenario)
    with Trajectory(recording) as run:
        assert found["frames"] == len(run) == 4  # steps 0, 3, 6 and 7
    assert found["file_bytes"] == pytest.approx(recording.stat().st_size, abs=200_000)  # room for metadata
    assert 0 < sum(found["memory_bytes"].values()) < found["memory_free"]


def test_info_says_which_engine_auto_is_and_why(scenario, capsys):
    scenario.write_text(SCENARIO.replace("engine: reference", "engine: auto"))
    found = printed(capsys, "info", scenario)
    assert found["engine"] != "auto" and found["engine_reason"] and found["engine_problem"] == ""
    assert main(["info", str(scenario)]) == 0
    out = capsys.readouterr().out
    assert f"{found['engine']} ({found['engine_reason']})" in out and "scheme: leapfrog" in out


def test_info_of_a_recording_tells_its_contents_and_how_it_was_made(recording, capsys):
    found = printed(capsys, "info", recording)
    assert found["status"] == "complete" and found["frames"] == found["frames_planned"] == 4
    assert found["particles"] == 100 and found["dimensions"] == 3
    assert found["steps"] == [0, 7] and found["time"] == [0.0, pytest.approx(0.07)]
    assert abs(found["energy_error"]) <= abs(found["energy_error_largest"]) < 1e-3
    assert found["provenance"]["engine"] == "reference" and found["scenario"]["gravity"]["length"] == 0.05
    assert found["file_bytes"] == recording.stat().st_size and "damaged" not in found


def test_the_page_of_a_recording_says_each_thing_once_rounded_and_nothing_empty(recording, monkeypatch, capsys):
    capsys.readouterr()
    assert main(["info", str(recording)]) == 0
    head, scenario = capsys.readouterr().out.split("\n\n")
    facts = dict(line.split(maxsplit=1) for line in head.splitlines() if not line.startswith("energy error"))
    assert facts["frames"] == "4" and facts["started"].endswith(" UTC")
    assert re.fullmatch(r"[0-9.]{3,5} m?s", facts["took"]) and "numba 0." in facts["packages"]
    assert not {"numpy", "numba", "driver", "status", "engine", "precision", "seed", "wall_s"} & set(facts)
    assert "engine: reference" in scenario and head.count("numba ") == 1
    monkeypatch.setattr(Trajectory, "__len__", lambda run: 2)  # of a run that was stopped
    monkeypatch.setattr(Trajectory, "status", "stopped")
    assert main(["info", str(recording)]) == 0
    assert "2, with room for the 4 planned\n" in capsys.readouterr().out


def test_verify_finds_one_damaged_byte_and_fails(recording, scenario, refused, capsys):
    assert "leave --verify out" in refused("info", scenario, "--verify")
    assert main(["info", str(recording), "--verify"]) == 0
    assert "checksums" in capsys.readouterr().out
    with Trajectory(recording) as run:
        needle = run.position[2].tobytes()[:64]
    data = bytearray(recording.read_bytes())
    data[data.index(needle)] ^= 1
    recording.write_bytes(data)
    assert main(["info", str(recording), "--verify"]) == 1
    assert "frame 2: position" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name,content,says",
    [
        ("missing.yaml", None, "there is no such file"),
        ("missing.h5", None, "there is no such file"),
        ("not.h5", b"text", "is not an HDF5 file"),
        ("empty.h5", b"", "is empty"),
        ("bad.yaml", b"initial: 5", "bad.yaml:1: initial"),
    ],
)
def test_info_refuses_files_that_are_no_recordings(tmp_path, refused, name, content, says):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert says in refused("info", tmp_path / name)


# --- doctor ---------------------------------------------------------------------------------------------------------


def test_doctor_examines_everything_and_this_machine_can_run(capsys):
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    findings = found["findings"]
    assert found["ok"] and {"python", "processor", "gpu", "self-test", "pictures", "window", "interop", "disk"} <= set(
        findings
    )
    assert findings["processor"]["cores"] >= 1 and findings["python"]["packages"]["numba"]
    most = [findings[f"engine {precision}"]["largest_n"] for precision in ("float32", "float64")]
    assert most[0] > most[1] > 20480  # float32 takes less, and the lecture's problem fits anywhere
    assert findings["self-test"]["error"] < 1e-5
    for finding in findings.values():
        assert finding["state"] in (doctor.GOOD, doctor.MISSING) and finding["text"]


def test_an_engine_that_can_not_compute_is_broken_and_the_exit_code_says_so(monkeypatch, capsys):
    def fails(*_, **__):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(doctor.computing, "accelerations", fails)
    monkeypatch.setattr(opengl, "_ASK", "")
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "broken" in out and "auto can't compute a force (RuntimeError: no compiler)" in out
    assert "-> '--engine reference' needs NumPy only" in out


@pytest.mark.parametrize("crash", ["import os; os.abort()", "raise OSError('no driver')", "import time; time.sleep(9)"])
def test_a_crash_while_asking_for_opengl_is_a_finding_and_no_crash(monkeypatch, crash):
    monkeypatch.setattr(opengl, "_ASK", crash)
    monkeypatch.setattr(opengl, "TIMEOUT", 0.5)
    found = opengl.screenless()
    assert found.renderer == "" and found.problem
    assert opengl.missing_packages({"libc.so.6": "libc6", "libnosuch.so.7": "libnosuch7"}) == ["libnosuch7"]
    finding = doctor.pictures.pictures()
    assert finding.state == doctor.MISSING and finding.remedy.startswith("apt install lib")


def test_a_check_that_fails_is_a_finding_and_the_others_go_on(monkeypatch):
    def unreadable():
        raise OSError("the disk is gone")

    monkeypatch.setattr(doctor, "CHECKS", (unreadable, lambda: doctor.Finding("last", doctor.GOOD, "made")))
    first, last = doctor.examine()
    assert first.state == doctor.BROKEN and "the disk is gone" in first.text
    assert last.text == "made"


def test_no_gpu_is_missing_with_a_remedy_not_broken(monkeypatch):
    from nbody import compute

    monkeypatch.setattr(compute, "why_unavailable", lambda: "the driver is asleep")
    interop = doctor.pictures.interop()
    assert interop.state == doctor.MISSING and "from host memory" in interop.text
    finding = doctor.computing.gpu()
    assert finding.state == doctor.MISSING and "the driver is asleep" in finding.text
    assert install.install_extra("cu13") in finding.remedy and finding.facts["gpu"] is None


def test_an_mpi_that_hangs_is_missing_and_not_broken(monkeypatch):
    monkeypatch.setattr(doctor.ranks, "_ASK_MPI", "import time; time.sleep(9)")
    monkeypatch.setattr(doctor.ranks, "TIMEOUT", 0.2)
    found = doctor.ranks.mpi()
    assert found.state == doctor.MISSING and "no answer within 0.2 s" in found.text and found.facts["mpi"] is None


NEW = "MPI plugin types are...\n\tpmix\n\tnone\n\tpmi2\nspecific pmix plugin versions available: pmix_v4"
SRUN = {NEW: ["pmix", "pmi2"], "srun: MPI types are...\nsrun: none\nsrun: openmpi": ["openmpi"]}
"""What ``srun --mpi=list`` prints (Slurm 22.05, and older versions), and the types in it."""


@pytest.mark.parametrize("listed", SRUN)
def test_slurm_is_found_with_what_its_srun_can_start_and_is_not_mentioned_elsewhere(tmp_path, monkeypatch, listed):
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    (tmp_path / "list").write_text(listed + "\n")
    script = f"#!/bin/sh\n[ $1 = --version ] && echo slurm 22.05.8 || cat '{tmp_path / 'list'}' >&2\n"
    (tmp_path / "srun").write_text(script)
    (tmp_path / "srun").chmod(0o755)
    (finding,) = doctor.ranks.slurm()
    assert finding.facts == {"slurm": "slurm 22.05.8", "mpi_types": SRUN[listed]} and "slurm 22.05.8" in finding.text
    assert finding.state == (doctor.GOOD if "pmi2" in listed else doctor.MISSING)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert not [*doctor.ranks.slurm()]


@pytest.mark.parametrize(
    "origin,says",
    [
        ({"url": "file:///src/nbody", "dir_info": {}}, "'nbody[view] @ file:///src/nbody'"),
        ({"url": "https://host/nbody", "vcs_info": {"vcs": "git"}}, "'nbody[view] @ git+https://host/nbody'"),
        (None, "'nbody[view]'"),  # from an index
    ],
)
def test_an_extra_comes_from_where_the_program_came_from(monkeypatch, tmp_path, origin, says):
    monkeypatch.chdir(tmp_path)
    assert install.install_extra("view").endswith(f"pip install -e '{machine.ROOT}[view]'")  # this checkout
    monkeypatch.chdir(machine.ROOT)
    assert install.install_extra("view").endswith("pip install -e '.[view]'")  # as in README
    monkeypatch.setattr(install, "ROOT", tmp_path)
    text = json.dumps(origin) if origin else None
    monkeypatch.setattr(install.metadata, "distribution", lambda name: SimpleNamespace(read_text=lambda file: text))
    assert install.install_extra("view").endswith(f"pip install {says}")


def test_packages_are_installed_beside_this_python_and_not_beside_the_shells(monkeypatch):
    monkeypatch.setattr(install.shutil, "which", lambda name: "/elsewhere/bin/pip")
    assert install.pip_install("numpy") == f"{sys.executable} -m pip install numpy"
    monkeypatch.setattr(install.shutil, "which", lambda name: str(Path(sys.executable).with_name("pip")))
    assert install.pip_install("numpy") == "pip install numpy"


def test_a_package_that_can_not_be_imported_is_one_line(monkeypatch, recording, refused, capsys):
    for name in ("matplotlib", "vispy"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr("nbody.cli.plot._map_of", lambda words: importlib.import_module("matplotlib"))
    assert "the package matplotlib can't be imported" in (line := refused("plot", recording))
    assert line.endswith("pip install matplotlib")
    assert refused("view", recording, "--screenshot", "a.png").endswith("pip install vispy")
    found = doctor.computing.python()
    assert (found.state, found.remedy.endswith("pip install vispy")) == (doctor.finding.BROKEN, True)
    assert install.missing_package(ImportError("a symbol is missing", name="nbody.cli")) == ""


# --- Numbers --------------------------------------------------------------------------------------------------------


def test_numbers_have_three_digits_and_a_prefix():
    rates = {2.5e10: "25.0 G", 9.999e11: "1.00 T", 3.6e12: "3.60 T", 12.0: "12.0 ", None: "–"}
    durations = {5.32e-5: "53.2 µs", 0.25: "250 ms", 37.0: "37.0 s", 2e-9: "2.00 ns"}
    sizes = {1_500_000: "1.50 MB", 999: "999 bytes"}
    for function, texts in ((rate, rates), (duration, durations), (size, sizes)):
        assert {value: function(value) for value in texts} == texts
