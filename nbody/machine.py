"""The processor and this program's versions, for the provenance of runs, for benchmarks and for ``nbody doctor``."""

import contextlib
import datetime
import os
import platform
import shlex
import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from nbody.errors import printable

ROOT = Path(__file__).resolve().parents[1]
"""The folder that contains the package: a checkout, or site-packages."""

PACKAGES = ("numpy", "numba", "numba-cuda", "h5py", "vispy", "typer", "pydantic")
"""The packages whose versions can change the bits of a run or of its file."""


def version_of(package: str) -> str:
    """The version of an installed package; empty if it is not installed."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return ""


@cache
def version() -> str:
    """The program's version."""
    if installed := version_of("nbody"):
        return installed
    import tomllib  # 10 ms; only for a checkout that was never installed

    with contextlib.suppress(OSError, KeyError, ValueError):
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())
        return str(project["project"]["version"])
    return "unknown"


@cache
def package_versions() -> dict[str, str]:
    """Installed versions of :data:`PACKAGES`, and Python's."""
    return {"python": platform.python_version()} | {name: version_of(name) or "not installed" for name in PACKAGES}


@cache
def git_state() -> str:
    """``<commit>`` or ``<commit>+changes`` of the checkout that this program runs from; empty if it is not a checkout."""
    if not (ROOT / ".git").exists():
        return ""
    try:
        command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+changes", "--exclude=*"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return run.stdout.strip()


@cache
def _cpu_info() -> dict[str, str]:
    """The first processor's entry in /proc/cpuinfo; empty if there is no such file."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def cpu_name() -> str:
    """The name of the processor."""
    return _cpu_info().get("model name") or platform.processor() or platform.machine()


def simd_level() -> str:
    """The widest vector instructions of this processor: AVX-512, AVX2, AVX, SSE2, or the architecture's name."""
    flags = _cpu_info().get("flags", "").split()
    for flag, name in (("avx512f", "AVX-512"), ("avx2", "AVX2"), ("avx", "AVX"), ("sse2", "SSE2")):
        if flag in flags:
            return name
    return platform.machine()


_sharing = 1


def share_cores(processes: int) -> None:
    """Declare that so many processes of this run share the cores that this one may use."""
    global _sharing
    _sharing = processes


def cores() -> int:
    """The number of processor cores that this process may use: those to which it is bound, and in a Slurm job no more than
    the job has on this host."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    granted = os.environ.get("SLURM_CPUS_ON_NODE", "")
    if granted.isdecimal():
        count = min(count, int(granted))
    return max(1, count // _sharing)


def provenance(**known: Any) -> dict[str, Any]:
    """What a recording or a measurement says of its origin: program version and git state, packages, machine, command line
    and start time, and the caller's facts ``known`` (``engine``, ``device``, ``driver``, ``precision``, ``seed`` …)."""
    return {
        "version": version(),
        "git": git_state(),
        "packages": package_versions(),
        "platform": platform.platform(),
        "cpu": cpu_name(),
        "simd": simd_level(),
        "cores": cores(),
        "command": printable(shlex.join(sys.argv))[:8192],  # an attribute of HDF5 holds 64 kB of UTF-8 at most
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds"),
        **known,
    }
