"""The provenance that is stored in a recording."""

import datetime
import platform
import shlex
import sys
from typing import Any

from nbody import machine
from nbody.errors import printable


def collect_provenance(**known: Any) -> dict[str, Any]:
    """Program version and git state, packages, machine, command line and start time, and the caller's facts ``known``
    (``engine``, ``device``, ``driver``, ``precision``, ``seed`` …)."""
    return {
        "version": machine.version(),
        "git": machine.git_state(),
        "packages": machine.package_versions(),
        "platform": platform.platform(),
        "cpu": machine.cpu_name(),
        "simd": machine.simd_level(),
        "cores": machine.cores(),
        "command": printable(shlex.join(sys.argv))[:8192],  # an attribute holds 64 kB of UTF-8 at most
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        **known,
    }
