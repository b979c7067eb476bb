"""The card's clock and power while something runs on it, as ``nvidia-smi`` reports them every 20 ms.

``nvidia-smi`` comes with every driver. Where it is missing or does not answer (in some virtual machines), clock and power
are reported as unknown.
"""

import shutil
import statistics
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

PERIOD = 20
"""Milliseconds between two reports."""

COMMAND = ("--query-gpu=clocks.sm,power.draw.instant", "--format=csv,noheader,nounits", f"--loop-ms={PERIOD}")


@dataclass
class Telemetry:
    """What was seen: clocks of the multiprocessors in Hz, and powers of the whole card in W."""

    clocks: list[float] = field(default_factory=list)
    powers: list[float] = field(default_factory=list)

    @property
    def clock(self) -> float | None:
        """The median clock in Hz; None where none was seen."""
        return statistics.median(self.clocks) if self.clocks else None

    @property
    def power(self) -> float | None:
        """The median power in W of the later half, for it follows the work by about a tenth of a second; None where none
        was seen."""
        return statistics.median(self.powers[len(self.powers) // 2 :]) if self.powers else None


@contextmanager
def watching(uuid: str) -> Iterator[Telemetry]:
    """A :class:`Telemetry` of the card of this name (``GPU-…``) while the block runs, complete when it has ended."""
    seen = Telemetry()
    program = shutil.which("nvidia-smi")
    if program is None:
        yield seen
        return
    with subprocess.Popen([program, f"--id={uuid}", *COMMAND], stdout=subprocess.PIPE, text=True) as watcher:
        assert watcher.stdout is not None
        watcher.stdout.readline()  # it takes a moment to start
        try:
            yield seen
        finally:
            watcher.terminate()
            for line in watcher.stdout.read().splitlines():
                clock, _, power = line.partition(",")
                with suppress(ValueError):  # "[N/A]"
                    seen.clocks.append(1e6 * float(clock))
                with suppress(ValueError):
                    seen.powers.append(float(power))
