"""Whether forces can be computed: packages, processor, GPUs, engines, plug-ins, disk."""

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from nbody import install, machine, memory
from nbody.doctor.finding import BROKEN, GOOD, Finding, good, missing
from nbody.errors import DeviceError, InputError, counted, shortened
from nbody.forces.api import accelerations
from nbody.forces.choose import choose
from nbody.forces.problem import Problem
from nbody.forces.reference import direct_sum
from nbody.forces.resources import free, largest
from nbody.law import Gravity
from nbody.number_format import size
from nbody.registry import REGISTRIES, imported
from nbody.run.plan import plan
from nbody.scenario import Scenario


def python() -> Finding:
    """The versions of this program and of its packages."""
    versions = machine.package_versions()
    absent = [
        name
        for name, version in versions.items()
        if name != "numba-cuda" and (version == "not installed" or not _is_there(name))  # that is for GPUs
    ]
    text = ", ".join(f"{name} {version}" for name, version in versions.items())
    facts = {"version": machine.version(), "commit": machine.git_state(), "packages": versions}
    remedy = install.pip_install(*absent) if absent else ""
    return Finding("python", BROKEN if absent else GOOD, f"nbody {machine.version()}, {text}", remedy, facts)


def _is_there(name: str) -> bool:
    """True if a package can be found: its version says only that it was installed once."""
    try:
        return name == "python" or find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def processor() -> Finding:
    """The processor, its cores, and the memory that is free."""
    name, simd, cores, available = machine.cpu_name(), machine.simd_level(), machine.cores(), memory.memory_available()
    text = f"{name}, {simd}, {counted(cores, 'core')}, {size(available)} of memory free"
    return good("processor", text, cpu=name, simd=simd, cores=cores, memory_free=available)


def gpu() -> Finding:
    """The GPU; or why none can be used, and whether a driver or a library is missing."""
    from nbody import compute

    if reason := compute.why_unavailable():
        has_driver = Path("/proc/driver/nvidia/version").exists()
        libraries = f"{install.install_extra('cu13')} (cu12 for a driver older than 580)"
        remedy = libraries if has_driver else f"with an NVIDIA card: install its driver, and {libraries}"
        return missing("gpu", f"none can be used ({reason})", remedy, gpu=None, reason=reason)
    card = compute.facts()
    text = (
        f"{card.name}, compute capability {'.'.join(map(str, card.compute_capability))}, "
        f"{card.multiprocessors} multiprocessors, {size(card.memory_free)} of {size(card.memory_total)} free, "
        f"driver {card.driver}"
    )
    return good("gpu", text, gpu=card.name, driver=card.driver, memory_free=card.memory_free)


def gpus() -> Iterator[Finding]:
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


def engines() -> Iterator[Finding]:
    """The engine that ``auto`` chooses in each precision for a run with the lecture's N, and how many particles fit."""
    typical = Scenario.from_dict(
        {
            "initial": {"generator": "plummer", "particles": 20480},
            "gravity": {"softening": "plummer", "length": 0.01},
            "integrator": {"dt": 0.001, "steps": 1000},
        }
    )
    for precision in ("float32", "float64"):
        planned = plan(typical.override(precision=precision), measure=False)
        name, why, engine = planned.engine_name, planned.engine_reason, planned.engine_kind
        most = largest(engine, precision)
        place = "GPU memory" if engine.can.device == "gpu" else "memory"
        text = f"auto chooses {name} ({why}); up to {most:.2e} particles fit into {size(free(place))} of free {place}"
        yield good(f"engine {precision}", text, auto=name, why=why, largest_n=most)


def self_test() -> Finding:
    """Compute forces with ``auto`` and compare them with the reference: a test of everything down to the device."""
    rng = np.random.default_rng(1)
    position, mass = rng.standard_normal((200, 3)), rng.uniform(0.5, 1.5, 200)
    try:
        law = Gravity(softening="plummer", length=0.1)
        engine = choose("auto", Problem(law, "float32", len(mass)), measure=False).name
        found = accelerations(position, mass, softening="plummer", length=0.1, engine=engine, precision="float32")
    except Exception as failure:  # any failure of a driver or a compiler is a finding
        reason = shortened(" ".join(str(failure).split()), 300)
        text = f"auto can't compute a force ({type(failure).__name__}: {reason})"
        return Finding("self-test", BROKEN, text, "'--engine reference' needs NumPy only")
    right, _ = direct_sum(position, mass, law)
    error = float(np.linalg.norm(found - right, axis=1).max() / np.linalg.norm(right, axis=1).max())
    text = f"the forces of 200 bodies by auto in float32 agree with float64 sums to {error:.0e}"
    if error > 1e-5:  # a hundred units in the last place of float32
        return Finding("self-test", BROKEN, f"{text}, which is wrong", "choose another --engine, and report this")
    return good("self-test", text, error=error)


def plug_ins() -> Iterator[Finding]:
    """The components that other packages add, and whether they can be imported."""
    for registry in map(imported, REGISTRIES.values()):
        for name, entry in registry.plugins.items():
            topic, text = f"plug-in {name}", f"{registry.kind} '{name}' {entry.summary}"
            facts = {"kind": registry.kind, "name": name, "package": entry.package, "target": entry.target}
            try:
                registry.load(name)
                yield good(topic, text, **facts)
            except InputError as error:
                yield missing(topic, f"{text}: {error}", f"pip install -U {entry.package.split()[0]}", **facts)


def disk() -> Finding:
    """The disk of the current folder."""
    folder, available = Path.cwd(), shutil.disk_usage(".").free
    return good("disk", f"{size(available)} free in {folder}", folder=str(folder), free=available)
