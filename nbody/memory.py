"""The memory that this process can still take."""

import contextlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path

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
        # A limit holds for all groups below it. In a container the path may be the host's.
        for group in (inner, *inner.parents):
            folder = root / mount / group
            with contextlib.suppress(OSError, ValueError):  # no such group, or no limit: "max"
                most, used = int((folder / limit).read_text()), int((folder / usage).read_text())
                fields = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                yield most - used + int(fields.get(cache, 0))
