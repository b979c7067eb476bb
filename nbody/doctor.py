"""Checks of this machine: what works, what is missing, and how to install it."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from nbody import child as child_process
from nbody import machine, opengl
from nbody.diagnostics.observables import OBSERVABLES
from nbody.errors import DeviceError, InputError, printable, shortened
from nbody.exchange import FORMATS
from nbody.forces import ENGINES
from nbody.forces.api import accelerations
from nbody.forces.choose import choose
from nbody.forces.problem import Problem
from nbody.forces.reference import direct_sum
from nbody.forces.resources import free, largest
from nbody.initial import GENERATORS
from nbody.integrators import INTEGRATORS, OF_SYSTEMS
from nbody.law import LAWS, Gravity
from nbody.parallel import Team, nccl, team
from nbody.parallel.speed import exchange_speed
from nbody.run.plan import plan
from nbody.scenario import Scenario
from nbody.units import size

GOOD, MISSING, BROKEN = "ok", "missing", "broken"
"""States of a finding: works; an optional part is missing; the program can't run without it."""

SLURM_TIMEOUT = 5.0
"""Seconds that ``srun`` gets for an answer: it asks the cluster for its configuration first."""

TYPICAL = Scenario.from_dict(
    {
        "initial": {"generator": "plummer", "particles": 20480},
        "gravity": {"softening": "plummer", "length": 0.01},
        "integrator": {"dt": 0.001, "steps": 1000},
    }
)
"""The run that is planned to find the engine that ``auto`` chooses; N is that of the lecture."""


@dataclass(frozen=True)
class Finding:
    """One line of the report: the topic, its state, a text, the remedy if there is one, and the facts for JSON."""

    topic: str
    state: str
    text: str
    remedy: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


def examine(folder: Path = Path(".")) -> Iterator[Finding]:
    """Check everything in turn. A failure does not raise an error; it becomes a finding.

    Args:
        folder: the folder whose free disk space is reported.
    """
    yield _python()
    yield _processor()
    yield _card()
    yield from _several()
    yield from _engines()
    yield _works()
    yield from _plugins()
    yield _screenless()
    yield _window()
    yield _interop()
    yield _movies()
    yield _notebook()
    yield _mpi()
    yield from _slurm()
    yield from _nccl()
    yield _disk(folder)


def examine_ranks() -> Iterator[Finding]:
    """A finding about each rank of a launcher, and the speed of their exchange. All ranks call this together."""
    from nbody import compute

    ranks = team()
    if ranks.size == 1:
        return
    card, uuid = ("no GPU", "") if compute.why_unavailable() else (compute.facts().name, compute.uuid())
    own = {"host": ranks.hosts[ranks.rank], "cores": machine.cores(), "gpu": card, "uuid": uuid}
    everyone = ranks.all(own)
    for rank, facts in enumerate(everyone):
        text = f"on {facts['host']}, {facts['cores']} core{'s' * (facts['cores'] != 1)}, {facts['gpu']}"
        yield Finding(f"rank {rank}", GOOD, text, facts=facts)
    latency, speed = exchange_speed(ranks)
    text = f"{ranks.library}: {1e6 * latency:.0f} µs, and {size(round(speed))}/s arrive at each rank"
    yield Finding("exchange", GOOD, text, facts={"mpi": ranks.library, "latency_s": latency, "bytes_per_s": speed})
    if len({facts["uuid"] for facts in everyone} - {""}) == ranks.size:
        yield _exchange_of_gpus(ranks)


def _exchange_of_gpus(ranks: Team) -> Finding:
    """The speed of the exchange of rows on the ranks' GPUs. All ranks call this together."""
    from nbody import compute
    from nbody.forces.transports.ranks import Ranks

    dividing, stream = Ranks(ranks), compute.cuda.stream()

    def prepared(rows: np.ndarray) -> Callable[[], None]:
        array, bounds = compute.cuda.to_device(rows), ranks.bounds(len(rows))

        def exchange() -> None:
            dividing.complete(array, bounds, stream)
            dividing.wait()
            compute.wait_for(compute.mark(stream))

        return exchange

    ranks.working = True  # an error of one rank ends all
    latency, speed = exchange_speed(ranks, prepared, 1 << 23)
    ranks.working = False
    way = dividing.nccl.name if dividing.nccl else "through host memory"
    text = f"{way}: {1e6 * latency:.0f} µs, and {size(round(speed))}/s arrive at each GPU"
    return Finding("exchange gpus", GOOD, text, facts={"way": way, "latency_s": latency, "bytes_per_s": speed})


def _nccl() -> Iterator[Finding]:
    """How ranks with a GPU each exchange rows; nothing without a GPU."""
    from nbody import compute

    if compute.why_unavailable():
        return
    found, problem = nccl.version()
    if found:
        yield Finding("nccl", GOOD, f"NCCL {found}: ranks exchange from GPU to GPU", facts={"nccl": found})
        return
    text = f"ranks with a GPU each exchange through host memory ({problem})"
    yield Finding("nccl", MISSING, text, machine.install_extra("nccl13"), {"nccl": None, "reason": problem})


def _mpi() -> Finding:
    """What several processes need to work together. Asked in a child process, since loading MPI starts it."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    launchers = [name for name in ("mpirun", "srun") if shutil.which(name, path=path)]
    facts: dict[str, Any] = {"launchers": launchers}
    child = subprocess.run(**_not_launched(child_process.python("-c", _ASK_MPI)), capture_output=True, text=True)
    if child.returncode:
        remedy = f"{machine.install_extra('mpi-local')}; on a cluster load its MPI, and {machine.install_extra('mpi')}"
        problem = shortened(printable((child.stderr.strip().splitlines() or ["it can't be loaded"])[-1]), 150)
        return Finding(
            "mpi", MISSING, f"a run in several processes needs MPI ({problem})", remedy, facts | {"mpi": None}
        )
    library, mpi4py = (" ".join(line.split()) for line in child.stdout.splitlines()[:2])
    text = f"{library}, through mpi4py {mpi4py}; launchers: {', '.join(launchers) or 'none found'}"
    return Finding("mpi", GOOD, text, facts=facts | {"mpi": library, "mpi4py": mpi4py})


def _slurm() -> Iterator[Finding]:
    """Slurm, and the ways in which its ``srun`` tells the ranks of each other; nothing where there is no ``srun``."""
    if not shutil.which("srun"):
        return
    try:
        version, listed = (
            subprocess.run(
                **_not_launched({"args": ["srun", option], "env": os.environ}),
                capture_output=True, text=True, errors="replace", timeout=SLURM_TIMEOUT,
            )
            for option in ("--version", "--mpi=list")
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        yield Finding("slurm", MISSING, f"srun does not answer ({type(error).__name__})", facts={"slurm": None})
        return
    if version.returncode:
        problem = shortened(printable((version.stderr.strip().splitlines() or ["no reason given"])[-1]), 150)
        yield Finding("slurm", MISSING, f"srun can't be used ({problem})", facts={"slurm": None})
        return
    # Older versions print the list on standard error, and begin each line with 'srun:'.
    names = re.findall(r"^(?:srun:)?\s*(\w+)$", f"{listed.stdout}\n{listed.stderr}", re.MULTILINE)
    types = [name for name in dict.fromkeys(names) if name != "none"]
    text = f"{printable(version.stdout.strip())}; srun --mpi: {', '.join(types) or 'no type'}"
    facts = {"slurm": version.stdout.strip(), "mpi_types": types}
    if any(name.startswith(("pmi2", "pmix")) for name in types):
        text += "; ranks of MPICH and its relatives need pmi2, those of Open MPI pmix"
        yield Finding("slurm", GOOD, text, facts=facts)
        return
    yield Finding("slurm", MISSING, f"{text}, so srun can't start ranks", "in a job, start them with mpirun", facts)


_ASK_MPI = """
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
from nbody.parallel.library import name_of
print(name_of(MPI))
print(mpi4py.__version__)
"""


def _not_launched(child: dict[str, Any]) -> dict[str, Any]:
    """``args`` and ``env`` of a process, without what it would inherit from a launcher."""
    kept = {name: value for name, value in child["env"].items() if not name.startswith(("PMI", "OMPI_", "HYD", "PRTE"))}
    return child | {"env": kept}


def _python() -> Finding:
    versions = machine.package_versions()
    absent = [name for name, version in versions.items() if version == "not installed"]
    text = ", ".join(f"{name} {version}" for name, version in versions.items())
    facts = {"version": machine.version(), "commit": machine.git_state(), "packages": versions}
    remedy = machine.pip_install(*absent) if absent else ""
    return Finding("python", BROKEN if absent else GOOD, f"nbody {machine.version()}, {text}", remedy, facts)


def _processor() -> Finding:
    name, simd, cores, memory = machine.cpu_name(), machine.simd_level(), machine.cores(), machine.memory_available()
    text = f"{name}, {simd}, {cores} core{'s' * (cores != 1)}, {size(memory)} of memory free"
    return Finding("processor", GOOD, text, facts={"cpu": name, "simd": simd, "cores": cores, "memory_free": memory})


def _card() -> Finding:
    """The GPU; or why none can be used, and whether a driver or a library is missing."""
    from nbody import compute

    reason = compute.why_unavailable()
    if not reason:
        card = compute.facts()
        facts = {"gpu": card.name, "driver": card.driver, "memory_free": card.memory_free}
        text = (
            f"{card.name}, compute capability {'.'.join(map(str, card.compute_capability))}, "
            f"{card.multiprocessors} multiprocessors, {size(card.memory_free)} of {size(card.memory_total)} free, "
            f"driver {card.driver}"
        )
        return Finding("gpu", GOOD, text, facts=facts)
    has_driver = Path("/proc/driver/nvidia/version").exists()
    libraries = f"{machine.install_extra('cu13')} (cu12 for a driver older than 580)"
    remedy = libraries if has_driver else f"with an NVIDIA card: install its driver, and {libraries}"
    return Finding("gpu", MISSING, f"none can be used ({reason})", remedy, {"gpu": None, "reason": reason})


def _several() -> Iterator[Finding]:
    """The GPUs beside the first, and the speed of copies between them, measured. Nothing if there is one."""
    from nbody import compute

    if compute.why_unavailable() or (count := compute.device_count()) == 1:
        return
    try:
        compute.devices_for("all")
        access = compute.connect(range(count))
        speeds = [compute.bandwidth(0, other) for other in range(1, count)]
    except (DeviceError, InputError, compute.GpuFailed) as error:
        yield Finding("gpus", MISSING, f"{count} GPUs, not used together: {error}", facts={"gpus": count})
        return
    way = "directly" if access else "through the host's memory"
    facts = {"gpus": count, "peer_access": access, "bandwidth": speeds}
    text = f"{count} for one run (--gpus {count}); copies between them go {way}, at {min(speeds) / 1e9:.0f} GB/s"
    yield Finding("gpus", GOOD, text, facts=facts)


def _engines() -> Iterator[Finding]:
    """The engine that ``auto`` chooses in each precision, and how many particles fit."""
    for precision in ("float32", "float64"):
        planned = plan(TYPICAL.override(precision=precision), measure=False)
        name, why, engine = planned.engine_name, planned.engine_reason, planned.engine_kind
        most = largest(engine, precision)
        place = "GPU memory" if engine.can.device == "gpu" else "memory"
        text = f"auto chooses {name} ({why}); up to {most:.2e} particles fit into {size(free(place))} of free {place}"
        facts = {"auto": name, "why": why, "largest_n": most}
        yield Finding(f"engine {precision}", GOOD, text, facts=facts)


def _works() -> Finding:
    """Compute forces with ``auto`` and compare them with the reference: a test of everything down to the device."""
    rng = np.random.default_rng(1)
    position, mass = rng.standard_normal((200, 3)), rng.uniform(0.5, 1.5, 200)
    try:
        law = Gravity(softening="plummer", length=0.1)
        engine = choose("auto", Problem(law, "float32", len(mass)), measure=False).name
        found = accelerations(position, mass, softening="plummer", length=0.1, engine=engine, precision="float32")
    except Exception as failure:  # any failure of a driver or a compiler is a finding
        reason = " ".join(str(failure).split())[:300]
        text = f"auto can't compute a force ({type(failure).__name__}: {reason})"
        return Finding("self-test", BROKEN, text, "'--engine reference' needs NumPy only")
    right, _ = direct_sum(position, mass, law)
    error = float(np.linalg.norm(found - right, axis=1).max() / np.linalg.norm(right, axis=1).max())
    text = f"the forces of 200 bodies by auto in float32 agree with float64 sums to {error:.0e}"
    if error > 1e-5:  # a hundred units in the last place of float32
        return Finding("self-test", BROKEN, f"{text}, which is wrong", "choose another --engine, and report this")
    return Finding("self-test", GOOD, text, facts={"error": error})


def _plugins() -> Iterator[Finding]:
    """The components that other packages add, and whether they can be imported."""
    for registry in (ENGINES, GENERATORS, INTEGRATORS, OF_SYSTEMS, LAWS, FORMATS, OBSERVABLES):
        for name, entry in registry.plugins.items():
            facts = {"kind": registry.kind, "name": name, "package": entry.package, "target": entry.target}
            text = f"{registry.kind} '{name}' {entry.summary}"
            try:
                registry.load(name)
            except InputError as error:
                remedy = f"pip install -U {entry.package.split()[0]}"
                yield Finding(f"plug-in {name}", MISSING, f"{text}: {error}", remedy, facts)
            else:
                yield Finding(f"plug-in {name}", GOOD, text, facts=facts)


def _screenless() -> Finding:
    """Pictures and movies without a screen."""
    found = opengl.screenless()
    if found.renderer:
        facts = {"renderer": found.renderer, "version": found.version}
        return Finding("pictures", GOOD, f"OpenGL without a screen: {found.renderer}, {found.version}", facts=facts)
    packages = opengl.missing_packages(opengl.SCREENLESS) or [opengl.MESA]
    text = f"no OpenGL without a screen ({found.problem})"
    return Finding("pictures", MISSING, text, f"apt install {' '.join(packages)}", {"renderer": None})


def _window() -> Finding:
    """The viewer's window: Qt, the libraries it loads, and a screen."""
    packages = opengl.missing_packages(opengl.SCREENLESS | opengl.WINDOW)
    screen = os.environ.get("WAYLAND_DISPLAY") or os.environ.get("DISPLAY") or ""
    absent = [] if find_spec("PySide6") else [machine.install_extra("view")]
    absent += [f"apt install {' '.join(packages)}"] if packages else []
    facts = {"qt": bool(find_spec("PySide6")), "missing_packages": packages, "screen": screen}
    if absent:
        return Finding("window", MISSING, "a window can't be opened", "; ".join(absent), facts)
    if not screen:
        return Finding("window", MISSING, "Qt is complete, but there is no screen (DISPLAY is not set)", facts=facts)
    return Finding("window", GOOD, f"Qt and its libraries are installed, the screen is {screen}", facts=facts)


_ASK_INTEROP = """
from nbody.viewer import backends
backends.use_screenless()
from vispy import app
canvas = app.Canvas(size=(16, 16), show=False)
canvas.set_current()
from nbody.viewer.sources.device_frames import shared_buffers
print("answer:", shared_buffers()[1])
"""


def _interop() -> Finding:
    """Whether positions go from the GPU's memory to pictures directly. Asked in a child process, as for OpenGL."""
    from nbody import compute

    topic, begin = "interop", "positions of a live run on the GPU"
    if compute.why_unavailable():
        text = "no GPU computes, so a live run is drawn from host memory"
        return Finding(topic, MISSING, text, facts={"interop": False, "reason": "no GPU"})
    try:
        child = subprocess.run(
            **child_process.python("-c", _ASK_INTEROP), capture_output=True, text=True, timeout=opengl.TIMEOUT
        )
        answers = [line.removeprefix("answer:").strip() for line in child.stdout.splitlines() if "answer:" in line]
        problem = answers[0] if answers else (child.stderr.strip().splitlines() or ["the child process ended"])[-1]
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = type(error).__name__
    problem = shortened(printable(problem), 150)
    facts = {"interop": not problem, "reason": problem}
    if problem:
        remedy = "let NVIDIA's OpenGL draw: install its EGL or GLX library"
        return Finding(topic, MISSING, f"{begin} pass through the host ({problem})", remedy, facts)
    return Finding(topic, GOOD, f"{begin} go to OpenGL without the host", facts=facts)


def _movies() -> Finding:
    """The encoder of MP4 files."""
    remedy = f"{machine.install_extra('movie')}; .gif, .webp and .png need nothing else"
    try:
        import av

        av.codec.Codec("libx264", "w")
    except (ImportError, OSError, ValueError) as error:
        return Finding("movies", MISSING, f"no H.264 for .mp4 ({error})", remedy, {"pyav": None})
    facts = {"pyav": av.__version__}
    return Finding("movies", GOOD, f"H.264 by PyAV {av.__version__}; GIF, WebP and PNG by Pillow", facts=facts)


def _notebook() -> Finding:
    """The interactive canvas of a notebook."""
    if not find_spec("jupyter_rfb"):
        text = "nbody.show makes a movie in the page; an interactive canvas needs jupyter_rfb"
        return Finding("notebook", MISSING, text, machine.install_extra("notebook"), {"jupyter_rfb": False})
    return Finding("notebook", GOOD, "nbody.show gives an interactive canvas", facts={"jupyter_rfb": True})


def _disk(folder: Path) -> Finding:
    room = shutil.disk_usage(folder).free
    facts = {"folder": str(folder.resolve()), "free": room}
    return Finding("disk", GOOD, f"{size(room)} free in {folder.resolve()}", facts=facts)
