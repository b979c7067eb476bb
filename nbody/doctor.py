"""Checks of this machine: what works, what is missing, and how to install it. :data:`CHECKS` lists them."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
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
from nbody.fields import FIELDS
from nbody.forces import ENGINES
from nbody.forces.api import accelerations
from nbody.forces.choose import choose
from nbody.forces.engine import device_of
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

TIMEOUT = 60.0
"""Seconds that another process gets for an answer."""

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


def good(topic: str, text: str, **facts: Any) -> Finding:
    """What works."""
    return Finding(topic, GOOD, text, facts=facts)


def missing(topic: str, text: str, remedy: str = "", **facts: Any) -> Finding:
    """An optional part that is missing."""
    return Finding(topic, MISSING, text, remedy, facts)


def examine() -> Iterator[Finding]:
    """Make every check in turn. A failure does not raise an error; it becomes a finding."""
    for check in CHECKS:
        try:
            found = check()
            yield from [found] if isinstance(found, Finding) else found
        except Exception as error:
            topic = check.__name__.strip("_").replace("_", " ")
            yield Finding(
                topic,
                BROKEN,
                f"this check failed: {type(error).__name__}: {shortened(printable(str(error)), 200)}",
                "report this line",
            )


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
        yield good(f"rank {rank}", text, **facts)
    latency, speed = exchange_speed(ranks)
    text = f"{ranks.library}: {1e6 * latency:.0f} µs, and {size(round(speed))}/s arrive at each rank"
    yield good("exchange", text, mpi=ranks.library, latency_s=latency, bytes_per_s=speed)
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
    return good("exchange gpus", text, way=way, latency_s=latency, bytes_per_s=speed)


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
    return good("processor", text, cpu=name, simd=simd, cores=cores, memory_free=memory)


def _card() -> Finding:
    """The GPU; or why none can be used, and whether a driver or a library is missing."""
    from nbody import compute

    if reason := compute.why_unavailable():
        has_driver = Path("/proc/driver/nvidia/version").exists()
        libraries = f"{machine.install_extra('cu13')} (cu12 for a driver older than 580)"
        remedy = libraries if has_driver else f"with an NVIDIA card: install its driver, and {libraries}"
        return missing("gpu", f"none can be used ({reason})", remedy, gpu=None, reason=reason)
    card = compute.facts()
    text = (
        f"{card.name}, compute capability {'.'.join(map(str, card.compute_capability))}, "
        f"{card.multiprocessors} multiprocessors, {size(card.memory_free)} of {size(card.memory_total)} free, "
        f"driver {card.driver}"
    )
    return good("gpu", text, gpu=card.name, driver=card.driver, memory_free=card.memory_free)


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
        yield missing("gpus", f"{count} GPUs, not used together: {error}", gpus=count)
        return
    way = "directly" if access else "through the host's memory"
    text = f"{count} for one run (--gpus {count}); copies between them go {way}, at {min(speeds) / 1e9:.0f} GB/s"
    yield good("gpus", text, gpus=count, peer_access=access, bandwidth=speeds)


def _engines() -> Iterator[Finding]:
    """The engine that ``auto`` chooses in each precision, and how many particles fit."""
    for precision in ("float32", "float64"):
        planned = plan(TYPICAL.override(precision=precision), measure=False)
        name, why, engine = planned.engine_name, planned.engine_reason, planned.engine_kind
        most = largest(engine, precision)
        place = "GPU memory" if device_of(engine) == "gpu" else "memory"
        text = f"auto chooses {name} ({why}); up to {most:.2e} particles fit into {size(free(place))} of free {place}"
        yield good(f"engine {precision}", text, auto=name, why=why, largest_n=most)


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
    return good("self-test", text, error=error)


def _plugins() -> Iterator[Finding]:
    """The components that other packages add, and whether they can be imported."""
    for registry in (ENGINES, GENERATORS, INTEGRATORS, OF_SYSTEMS, LAWS, FIELDS, FORMATS, OBSERVABLES):
        for name, entry in registry.plugins.items():
            topic, text = f"plug-in {name}", f"{registry.kind} '{name}' {entry.summary}"
            facts = {"kind": registry.kind, "name": name, "package": entry.package, "target": entry.target}
            try:
                registry.load(name)
            except InputError as error:
                remedy = f"pip install -U {entry.package.split()[0]}"
                yield Finding(topic, MISSING, f"{text}: {error}", remedy, facts)
            else:
                yield Finding(topic, GOOD, text, facts=facts)


def _screenless() -> Finding:
    """Pictures and movies without a screen."""
    found = opengl.screenless()
    if found.renderer:
        text = f"OpenGL without a screen: {found.renderer}, {found.version}"
        return good("pictures", text, renderer=found.renderer, version=found.version)
    packages = opengl.missing_packages(opengl.SCREENLESS) or [opengl.MESA]
    text = f"no OpenGL without a screen ({found.problem})"
    return missing("pictures", text, f"apt install {' '.join(packages)}", renderer=None)


def _window() -> Finding:
    """The viewer's window: Qt, the libraries it loads, and a screen."""
    packages = opengl.missing_packages(opengl.SCREENLESS | opengl.WINDOW)
    screen = os.environ.get("WAYLAND_DISPLAY") or os.environ.get("DISPLAY") or ""
    absent = [] if find_spec("PySide6") else [machine.install_extra("view")]
    absent += [f"apt install {' '.join(packages)}"] if packages else []
    facts: dict[str, Any] = {"qt": bool(find_spec("PySide6")), "missing_packages": packages, "screen": screen}
    if absent:
        return missing("window", "a window can't be opened", "; ".join(absent), **facts)
    if not screen:
        return missing("window", "Qt is complete, but there is no screen (DISPLAY is not set)", **facts)
    return good("window", f"Qt and its libraries are installed, the screen is {screen}", **facts)


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
        return missing(
            topic, "no GPU computes, so a live run is drawn from host memory", interop=False, reason="no GPU"
        )
    try:
        child = subprocess.run(
            **child_process.python("-c", _ASK_INTEROP), capture_output=True, text=True, timeout=opengl.TIMEOUT
        )
        answers = [line.removeprefix("answer:").strip() for line in child.stdout.splitlines() if "answer:" in line]
        problem = answers[0] if answers else _last_line(child, "the child process ended")
    except (OSError, subprocess.TimeoutExpired) as error:
        problem = type(error).__name__
    problem = shortened(printable(problem), 150)
    if problem:
        remedy = "let NVIDIA's OpenGL draw: install its EGL or GLX library"
        return missing(topic, f"{begin} pass through the host ({problem})", remedy, interop=False, reason=problem)
    return good(topic, f"{begin} go to OpenGL without the host", interop=True, reason="")


def _movies() -> Finding:
    """The encoder of MP4 files."""
    try:
        import av

        av.codec.Codec("libx264", "w")
    except (ImportError, OSError, ValueError) as error:
        remedy = f"{machine.install_extra('movie')}; .gif, .webp and .png need nothing else"
        return missing("movies", f"no H.264 for .mp4 ({error})", remedy, pyav=None)
    return good("movies", f"H.264 by PyAV {av.__version__}; GIF, WebP and PNG by Pillow", pyav=av.__version__)


def _notebook() -> Finding:
    """The interactive canvas of a notebook."""
    if find_spec("jupyter_rfb"):
        return good("notebook", "nbody.show gives an interactive canvas", jupyter_rfb=True)
    text = "nbody.show makes a movie in the page; an interactive canvas needs jupyter_rfb"
    return missing("notebook", text, machine.install_extra("notebook"), jupyter_rfb=False)


_ASK_MPI = """
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
from nbody.parallel.library import name_of
print(name_of(MPI))
print(mpi4py.__version__)
"""


def _mpi() -> Finding:
    """What several processes need to work together. Asked in a child process, since loading MPI starts it."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    launchers = [name for name in ("mpirun", "srun") if shutil.which(name, path=path)]
    child = _not_launched(**child_process.python("-c", _ASK_MPI))
    if child.returncode:
        remedy = f"{machine.install_extra('mpi-local')}; on a cluster load its MPI, and {machine.install_extra('mpi')}"
        text = f"a run in several processes needs MPI ({_last_line(child, 'it cannot be loaded')})"
        return missing("mpi", text, remedy, launchers=launchers, mpi=None)
    library, mpi4py = (" ".join(line.split()) for line in child.stdout.splitlines()[:2])
    text = f"{library}, through mpi4py {mpi4py}; launchers: {', '.join(launchers) or 'none found'}"
    return good("mpi", text, launchers=launchers, mpi=library, mpi4py=mpi4py)


def _slurm() -> Iterator[Finding]:
    """Slurm, and the ways in which its ``srun`` tells the ranks of each other; nothing where there is no ``srun``."""
    if not shutil.which("srun"):
        return
    try:
        version, listed = (
            _not_launched(["srun", option], os.environ, timeout=SLURM_TIMEOUT) for option in ("--version", "--mpi=list")
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        yield missing("slurm", f"srun does not answer ({type(error).__name__})", slurm=None)
        return
    if version.returncode:
        yield missing("slurm", f"srun can't be used ({_last_line(version, 'no reason given')})", slurm=None)
        return
    # Older versions print the list on standard error, and begin each line with 'srun:'.
    names = re.findall(r"^(?:srun:)?\s*(\w+)$", f"{listed.stdout}\n{listed.stderr}", re.MULTILINE)
    types = [name for name in dict.fromkeys(names) if name != "none"]
    text = f"{printable(version.stdout.strip())}; srun --mpi: {', '.join(types) or 'no type'}"
    facts = {"slurm": version.stdout.strip(), "mpi_types": types}
    if any(name.startswith(("pmi2", "pmix")) for name in types):
        yield good("slurm", f"{text}; ranks of MPICH and its relatives need pmi2, those of Open MPI pmix", **facts)
        return
    yield missing("slurm", f"{text}, so srun can't start ranks", "in a job, start them with mpirun", **facts)


def _not_launched(args: list[str], env: Any, **more: Any) -> subprocess.CompletedProcess:
    """Run a process without what it would inherit from a launcher."""
    kept = {name: value for name, value in env.items() if not name.startswith(("PMI", "OMPI_", "HYD", "PRTE"))}
    options = {"timeout": TIMEOUT} | more
    return subprocess.run(args, env=kept, capture_output=True, text=True, errors="replace", check=False, **options)


def _last_line(child: subprocess.CompletedProcess, otherwise: str) -> str:
    """The last line of a process's errors."""
    return shortened(printable((child.stderr.strip().splitlines() or [otherwise])[-1]), 150)


def _nccl() -> Iterator[Finding]:
    """How ranks with a GPU each exchange rows; nothing without a GPU."""
    from nbody import compute

    if compute.why_unavailable():
        return
    found, problem = nccl.version()
    if found:
        yield good("nccl", f"NCCL {found}: ranks exchange from GPU to GPU", nccl=found)
        return
    text = f"ranks with a GPU each exchange through host memory ({problem})"
    yield missing("nccl", text, machine.install_extra("nccl13"), nccl=None, reason=problem)


def _disk() -> Finding:
    """The disk of the current folder."""
    folder, room = Path.cwd(), shutil.disk_usage(".").free
    return good("disk", f"{size(room)} free in {folder}", folder=str(folder), free=room)


CHECKS: tuple[Callable[[], Finding | Iterable[Finding]], ...] = (
    _python, _processor, _card, _several, _engines, _works, _plugins, _screenless, _window, _interop, _movies, _notebook,
    _mpi, _slurm, _nccl, _disk,
)  # fmt: skip
"""Every check, in the order of the report; each gives one finding, or as many as there are things."""
