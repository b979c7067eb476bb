"""Facts about this computer and this program, for the provenance of runs, for benchmarks and for ``nbody doctor``."""

import contextlib
import ctypes
import datetime
import json
import os
import platform
import resource
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from nbody.errors import printable

ROOT = Path(__file__).resolve().parents[1]
"""The folder that contains the package: a checkout, or site-packages."""

PACKAGES = ("numpy", "numba", "numba-cuda", "h5py", "vispy", "typer", "pydantic")
"""The packages whose versions can change the bits of a run or of its file."""

BLAS_THREADS = (
    "scipy_openblas_get_num_threads64_", "scipy_openblas_get_num_threads", "openblas_get_num_threads64_",
    "openblas_get_num_threads", "MKL_Get_Max_Threads", "bli_thread_get_num_threads",
)  # fmt: skip
"""What the libraries call the function that returns their number of threads."""


@cache
def version() -> str:
    """The program's version."""
    try:
        return metadata.version("nbody")
    except metadata.PackageNotFoundError:  # run from a checkout that was never installed
        import tomllib  # 10 ms

        with contextlib.suppress(OSError, KeyError, ValueError):
            project = tomllib.loads((ROOT / "pyproject.toml").read_text())
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


def pip_install(*what: str) -> str:
    """The command that installs packages into this program's environment, even if the shell finds another ``pip``."""
    ours = Path(shutil.which("pip") or "").parent == Path(sys.executable).parent
    return f"{'pip' if ours else f'{sys.executable} -m pip'} install {' '.join(what)}"


def install_extra(name: str) -> str:
    """The command that adds an extra (``cu13``, ``view``) to this installation, from the checkout or the original source."""
    if (ROOT / "pyproject.toml").exists():
        return pip_install("-e", f"'{'.' if Path.cwd() == ROOT else ROOT}[{name}]'")
    with contextlib.suppress(metadata.PackageNotFoundError, TypeError, KeyError, ValueError):
        origin = json.loads(metadata.distribution("nbody").read_text("direct_url.json") or "")
        scheme = f"{origin['vcs_info']['vcs']}+" if "vcs_info" in origin else ""
        return pip_install(f"'nbody[{name}] @ {scheme}{origin['url']}'")
    return pip_install(f"'nbody[{name}]'")


@cache
def git_state() -> str:
    """``<commit>`` or ``<commit>+changes`` of the checkout that this program runs from; empty if it is not a checkout."""
    if not (ROOT / ".git").exists():
        return ""
    try:
        run = subprocess.run(
            ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+changes", "--exclude=*"],
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
    """The widest vector instructions of this processor: AVX-512, AVX2, AVX, SSE, or the architecture's name."""
    flags = _cpu_info().get("flags", "").split()
    for flag, name in (("avx512f", "AVX-512"), ("avx2", "AVX2"), ("avx", "AVX"), ("sse2", "SSE2")):
        if flag in flags:
            return name
    return platform.machine()


sharing = 1
"""The processes of this run that share the cores that this one may use."""


def cores() -> int:
    """The number of processor cores that this process may use: those to which it is bound, and in a Slurm job no more than
    the job has on this host."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    granted = os.environ.get("SLURM_CPUS_ON_NODE", "")
    if granted.isdecimal():
        count = min(count, int(granted))
    return max(1, count // sharing)


def blas_name() -> str:
    """The library that multiplies NumPy's matrices, with its version."""
    import numpy as np

    found = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{found.get('name', 'unknown')} {found.get('version', '')}".strip()


def blas_threads() -> int:
    """The threads of that library, as it says itself; else those that it may use by the environment."""
    import numpy as np

    library = ctypes.CDLL(np.linalg._umath_linalg.__file__)
    for name in BLAS_THREADS:
        if hasattr(library, name):
            return int(getattr(library, name)())
    return int(os.environ.get("OMP_NUM_THREADS") or cores())


ALWAYS_FREE = 1 << 20
"""Bytes that need no check of the free memory, which takes 0.5 ms: programs make thousands of small systems."""


def memory_available(root: Path = Path("/")) -> int:
    """Bytes of memory that this process can still take without swapping: the least of what the machine has free, what each
    control group around it allows (a container, a batch job) and its limit of addresses (``ulimit -v``).

    Args:
        root: where ``proc`` and ``sys`` are.
    """
    free = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), *_left_in_groups(root)]
    with contextlib.suppress(OSError):
        for line in (root / "proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable"):
                free.append(int(line.split()[1]) * 1024)
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        with contextlib.suppress(OSError):
            pages = int((root / "proc/self/statm").read_text().split()[0])
            free.append(limit - pages * os.sysconf("SC_PAGE_SIZE"))
    return max(0, min(free))


def _left_in_groups(root: Path) -> Iterator[int]:
    """Bytes left in each control group of this process that has a limit, version 1 or 2. The page cache, which the kernel
    gives up first, is not counted as taken."""
    try:
        groups = [line.split(":", 2)[1:] for line in (root / "proc/self/cgroup").read_text().splitlines()]
    except (OSError, UnicodeDecodeError):
        return
    for controllers, path in groups:
        if not controllers:
            mount, limit, usage, cache = "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            mount, cache = "sys/fs/cgroup/memory", "total_inactive_file"
            limit, usage = "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        inner = Path(path.lstrip("/"))
        for group in (
            inner,
            *inner.parents,
        ):  # a limit holds for all below it; in a container the path may be the host's
            folder = root / mount / group
            with contextlib.suppress(OSError, ValueError):  # no such group, or no limit: "max"
                most, used = int((folder / limit).read_text()), int((folder / usage).read_text())
                fields = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                yield most - used + int(fields.get(cache, 0))


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
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        **known,
    }
