"""Facts about this computer and this program, for the provenance of a run, for benchmarks and for ``nbody doctor``."""

import contextlib
import os
import platform
import subprocess
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path

PACKAGES = ("numpy", "numba", "numba-cuda", "h5py", "vispy", "typer", "pydantic")
"""The packages whose versions may change a run's bits or its file."""


def version() -> str:
    """The program's version."""
    try:
        return metadata.version("nbody")
    except metadata.PackageNotFoundError:  # run from a checkout that was never installed
        with contextlib.suppress(OSError, KeyError, ValueError):
            project = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text())
            return str(project["project"]["version"])
        return "unknown"


@cache
def package_versions() -> dict[str, str]:
    """Installed versions of :data:`PACKAGES`, and Python's."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


@cache
def git_state() -> str:
    """``<commit>`` or ``<commit>+changes`` of the checkout this program runs from; empty when it is not a checkout."""
    root = Path(__file__).resolve().parents[1]
    if not (root / ".git").exists():
        return ""
    try:
        run = subprocess.run(
            ["git", "-C", str(root), "describe", "--always", "--dirty=+changes", "--exclude=*"],
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return run.stdout.strip()


@cache
def _cpu_info() -> dict[str, str]:
    """The first processor's entry of /proc/cpuinfo; empty where there is none."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def cpu_name() -> str:
    """The processor's name as it calls itself."""
    return _cpu_info().get("model name") or platform.processor() or platform.machine()


def simd_level() -> str:
    """The widest vector instructions of this processor: AVX-512, AVX2, AVX, SSE, or the architecture's name."""
    flags = _cpu_info().get("flags", "").split()
    for flag, name in (("avx512f", "AVX-512"), ("avx2", "AVX2"), ("avx", "AVX"), ("sse2", "SSE2")):
        if flag in flags:
            return name
    return platform.machine()


def cores() -> int:
    """The processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_available() -> int:
    """Bytes of memory a new program may take without swapping."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
