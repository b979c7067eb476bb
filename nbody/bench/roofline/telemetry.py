"""The card's clock and power while something runs on it, asked of NVIDIA's management library (NVML) every 5 ms.

NVML comes with every driver. Where it can't be loaded or does not answer (in some virtual machines), nothing is known,
and that is what is reported.
"""

import ctypes
import statistics
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
PERIOD = 5e-3
"""Seconds between two looks."""

SM_CLOCK = 1
"""``NVML_CLOCK_SM``."""

INSTANT_POWER = 186
"""``NVML_FI_DEV_POWER_INSTANT``, in mW."""


class _FieldValue(ctypes.Structure):
    """``nvmlFieldValue_t``."""

    _fields_ = (
        ("field", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency", ctypes.c_longlong),
        ("kind", ctypes.c_int),
        ("status", ctypes.c_int),
        ("value", ctypes.c_ulonglong),
    )


@dataclass
class Telemetry:
    """What was seen, a number a look.

    Attributes:
        clocks: of the multiprocessors, in Hz.
        powers: of the whole card, in W, at that moment; averages of the last second where the card knows no better.
    """

    clocks: list[float] = field(default_factory=list)
    powers: list[float] = field(default_factory=list)

    @property
    def clock(self) -> float | None:
        """The median clock in Hz; None where none was seen."""
        return statistics.median(self.clocks) if self.clocks else None

    @property
    def power(self) -> float | None:
        """The median power in W of the later half of the looks, for it follows the work by about a tenth of a second;
        None where none was seen."""
        return statistics.median(self.powers[len(self.powers) // 2 :]) if self.powers else None


class Meter:
    """The door to NVML for one card.

    Args:
        uuid: of the card, ``GPU-…``; the order in which CUDA and NVML count cards may differ.
        library: NVML's file, found by the loader.

    Raises:
        OSError: NVML can't be loaded, or does not know the card.
    """

    def __init__(self, uuid: str, library: str = LIBRARY) -> None:
        nvml = ctypes.CDLL(library)
        self._clock, self._average_power = nvml.nvmlDeviceGetClockInfo, nvml.nvmlDeviceGetPowerUsage
        self._fields, self._card = nvml.nvmlDeviceGetFieldValues, ctypes.c_void_p()
        status = nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(self._card))
        if status:
            raise OSError(f"NVML answers {status}")

    def look(self, into: Telemetry) -> None:
        """Ask once. What NVML does not answer is left out."""
        clock = self._ask(self._clock, ctypes.c_int(SM_CLOCK))
        power = self._instant_power() or self._ask(self._average_power)
        into.clocks += [] if clock is None else [1e6 * clock]
        into.powers += [] if power is None else [1e-3 * power]

    def _instant_power(self) -> int:
        """In mW; 0 where it is not known."""
        answer = _FieldValue(field=INSTANT_POWER)
        status = self._fields(self._card, 1, ctypes.byref(answer)) or answer.status
        return 0 if status else answer.value & 0xFFFFFFFF

    def _ask(self, function: Any, *arguments: Any) -> int | None:
        answer = ctypes.c_uint()
        return None if function(self._card, *arguments, ctypes.byref(answer)) else answer.value


def meter(uuid: str, library: str = LIBRARY) -> Meter | None:
    """A :class:`Meter`, or None where there is no NVML."""
    try:
        return Meter(uuid, library)
    except (OSError, AttributeError):  # not there; too old to have one of the functions
        return None


@contextmanager
def watching(card: Meter | None):
    """A :class:`Telemetry` that fills while the block runs, by a thread of its own; it stays empty without a meter."""
    seen, done = Telemetry(), threading.Event()

    def watch() -> None:
        assert card is not None
        while not done.wait(PERIOD):
            card.look(seen)

    watcher = threading.Thread(target=watch, name="telemetry", daemon=True) if card else None
    if watcher:
        watcher.start()
    try:
        yield seen
    finally:
        done.set()
        if watcher:
            watcher.join()
