"""What all tests share: markers, bodies, commands in this process and in children, recordings, screens."""

import gc
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from recordings import record

from nbody import errors
from nbody.compute.compiling import precompile
from nbody.errors import InputError, NBodyError
from nbody.particles import Particles

ROOT = Path(__file__).resolve().parents[1]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job, which runs are right to respect
    signal.signal(signal.SIGINT, signal.default_int_handler)

errors.command_line = True  # messages have the words of the command line in every test, whichever runs first

# What tests measure is not for the user's own runs.
os.environ["XDG_CACHE_HOME"] = str(
    Path(tempfile.gettempdir()) / f"nbody-tests-{os.getuid() if hasattr(os, 'getuid') else 0}"
)

ONE_WORKER = {
    "test_forces_gpu": "kernels of forces", "test_forces_gpu_ladder": "kernels of forces",
    "test_bench_roofline": "kernels of forces",
    "test_bench": "the measured report", "test_bench_reports": "the measured report",
}  # fmt: skip
"""Files whose tests need the same things, which a process makes once."""


def pytest_configure(config):
    """Groups of tests begin in the order of :func:`pytest_collection_modifyitems`, not with the largest number of tests."""
    config.option.loadscopereorder = False


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config, items):
    """Leave out ``campaign``, ``more`` and ``simulated`` tests unless ``-m`` names them; skip ``gpu`` tests where there is
    no device. Begin with ``slow`` tests, one by one; the others of a file share a worker, which makes, compiles and loads
    once what they need."""
    group = pytest.mark.xdist_group  # once: pytest reads the list of all markers each time
    for item in items:
        if "slow" not in item.keywords:
            file = item.module.__name__
            item.add_marker(group(ONE_WORKER.get(file, file)))
    items.sort(key=lambda item: "slow" not in item.keywords)
    for mark in ("campaign", "more", "simulated"):
        if mark not in config.option.markexpr:
            config.hook.pytest_deselected(items=[item for item in items if mark in item.keywords])
            items[:] = [item for item in items if mark not in item.keywords]
    marked = [item for item in items if "gpu" in item.keywords]
    if not marked:
        return
    from nbody import compute

    reason = compute.why_unavailable()
    if reason:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=f"no GPU: {reason}"))


def pytest_collection_finish(session):
    """What is there by now stays: looking for garbage among it takes a seventh of the time of tests that compile. These do
    it in the workers of pytest-xdist alone, which have every core."""
    precompile.MOST = 1
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


def sample(cases, count):
    """Parameters of a test: the first ``count`` of ``cases``, and in a campaign the others."""
    rest = (each if isinstance(each, tuple) else (each,) for each in cases[count:])
    return [*cases[:count], *(pytest.param(*each, marks=pytest.mark.campaign) for each in rest)]


def _one_line(error, *said):
    """Every message for the user is one line."""
    assert not any("\n" in str(each) for each in said), said


NBodyError.__init__ = _one_line


def random_bodies(count: int, dimensions: int = 3, seed: int = 7) -> Particles:
    """Bodies of unequal mass, normally distributed in space and velocity: no symmetry to hide behind."""
    rng = np.random.default_rng(seed)
    return Particles(
        mass=rng.uniform(0.5, 1.5, count) / count,
        position=rng.standard_normal((count, dimensions)),
        velocity=rng.standard_normal((count, dimensions)) * 0.5,
    )


def moved(bodies, fields, end, scheme="ias15", **integrator):
    """A simulation in double precision that has reached the time ``end``."""
    from nbody import Simulation

    scheme = {"scheme": scheme, **integrator}
    simulation = Simulation(bodies, integrator=scheme, engine="cpu", precision="float64", fields=fields)
    simulation.integrate(end)
    return simulation


def said(call, *arguments, **values):
    """The one line with which a call is refused."""
    with pytest.raises(InputError) as caught:
        call(*arguments, **values)
    line = str(caught.value)
    assert line.isprintable() and len(line) < 500, line
    return line


ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}
"""That of a child process."""


def child(*command, cwd=None, env=None, **options):
    """Python with these arguments in a process of its own; its output as text. ``env`` is added to the environment."""
    options = {"capture_output": True, "text": True, "timeout": 600, **options}
    environment = ENVIRONMENT | {"PYTHONFAULTHANDLER": "1"} | (env or {})
    return subprocess.run([sys.executable, *map(str, command)], cwd=cwd, env=environment, **options)


def begun(*command, env=None, **options):
    """The same, still running: its ``Popen``."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    return subprocess.Popen([sys.executable, *map(str, command)], env=ENVIRONMENT | (env or {}), **options)


def until(happens, seconds=300.0):
    """Wait until ``happens()`` is true, but no longer than so many seconds. Returns whether it is."""
    end = time.monotonic() + seconds
    while not (found := happens()) and time.monotonic() < end:
        time.sleep(0.01)
    return bool(found)


def recorded_frames(path):
    """The number of frames in a recording; 0 if there is none yet."""
    from nbody.trajectory import Trajectory

    try:
        with Trajectory(path) as run:
            return len(run)
    except NBodyError:
        return 0


def program(name, *arguments, env=None, **options):
    """A program of tests/programs in a process of its own; it can import the modules of tests."""
    env = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]), **(env or {})}
    return child(ROOT / "tests" / "programs" / f"{name}.py", *arguments, env=env, **options)


@pytest.fixture
def typed(capsys):
    """A function that runs a command in this process: its exit code, standard output and standard error."""
    from nbody.cli import main

    def run(*arguments):
        capsys.readouterr()
        code = main([str(each) for each in arguments])
        return subprocess.CompletedProcess(arguments, code, *capsys.readouterr())

    return run


@pytest.fixture
def refused(typed):
    """A function that gives the error of a command: one printable line, and nothing on standard output."""
    from nbody.cli.streams import LONGEST_MESSAGE

    def error(*arguments, code=2):
        done = typed(*arguments)
        line = done.stderr.removeprefix("error: ").removesuffix("\n")
        assert done.stderr == f"error: {line}\n" and line.isprintable() and len(line) <= LONGEST_MESSAGE, done
        assert (done.returncode, done.stdout) == (code, ""), done
        return line

    return error


@pytest.fixture(scope="session")
def egl():
    """Skips if there is no OpenGL without a screen."""
    from nbody import opengl
    from nbody.viewer import backends

    found = opengl.screenless()
    if not found.renderer:
        pytest.skip(f"no OpenGL without a screen: {found.problem}")
    backends.use_screenless()


@pytest.fixture
def recorded(tmp_path):
    """A function that makes recordings of frames (position, velocity), as sources of pictures."""
    from nbody.trajectory import Trajectory
    from nbody.viewer.sources.recording import RecordedSource

    opened = []

    def make(*frames, notify=None, **options):
        opened.append(RecordedSource(Trajectory(record(tmp_path / f"{len(opened)}.h5", frames, **options)), notify))
        return opened[-1]

    yield make
    for source in opened:
        source.close()
        source.run.close()


def on_screen(name):
    """The variables of a process that opens windows on a virtual screen."""
    return {"DISPLAY": name, "QT_QPA_PLATFORM": "xcb", "WAYLAND_DISPLAY": ""}


@pytest.fixture
def display(screen):
    """The name of a virtual screen."""
    return screen[0]


@pytest.fixture
def screen():
    """A virtual screen: its name, and its server's process; skips if a library for a window is missing."""
    pytest.importorskip("PySide6")
    if not shutil.which("Xvfb"):
        pytest.skip("no Xvfb here")
    from nbody import opengl

    missing = opengl.missing_packages(opengl.SCREENLESS | opengl.WINDOW)
    if missing:
        pytest.skip(f"a window needs {' '.join(missing)}")
    read, write = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(write), "-screen", "0", "1400x900x24", "-noreset"],
        pass_fds=[write], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(write)
    with os.fdopen(read) as pipe:
        number = pipe.readline().strip()
    yield f":{number}", server
    server.terminate()
    server.wait()


@contextmanager
def files_end_at(size):
    """A longer write fails, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
