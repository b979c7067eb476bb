"""The data at the start of a recording, and how large its file is."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nbody.diagnostics.observables import ALWAYS
from nbody.trajectory.structure.layout import EVENT_DTYPE


@dataclass(frozen=True)
class RunHeader:
    """The data at the start of a recording, except the particles.

    Attributes:
        frames: the number of frames that the run will record; the file has room for exactly these.
        dtype: the recording's precision, ``float32`` or ``float64``.
        scenario_text: the scenario's YAML as the user wrote it.
        resolved: the scenario with all defaults, in plain types.
        provenance: the result of :func:`nbody.machine.provenance`.
        state_bytes: the size of the largest checkpoint (:func:`nbody.trajectory.writing.checkpoint.state_bytes`); 0 if the
            run makes none.
        observables: the numbers stored with each frame: name to how many float64 it has.
        events: the most events that the run may record; 0 if it records none.
        room: the number of bodies that may be added to those of the beginning.
    """

    frames: int
    dtype: str = "float32"
    scenario_text: str = ""
    resolved: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    state_bytes: int = 0
    observables: Mapping[str, int] = field(default_factory=lambda: ALWAYS)
    events: int = 0
    room: int = 0

    def __post_init__(self) -> None:
        if self.frames < 1 or np.dtype(self.dtype) not in (np.float32, np.float64):
            raise ValueError(f"a recording has at least one frame of float32 or float64, not {self}")

    @property
    def resolved_json(self) -> str:
        """:attr:`resolved` as it is stored."""
        return json.dumps(self.resolved, indent=1)


def required_bytes(count: int, header: RunHeader) -> int:
    """The size in bytes, to within 100 kB, of the file of a run of ``count`` particles. The file has it from the start."""
    count += header.room
    vectors = 2 * 3 * np.dtype(header.dtype).itemsize * count
    numbers = 8 * (2 + sum(header.observables.values())) + 12  # step, time, observables, checksums
    vtk = 8 * 11  # the VTKHDF view's offsets of a frame
    constant = (8 + 8 + 4 + 8 + 8 + 8) * count + 2 * header.state_bytes
    constant += np.dtype(EVENT_DTYPE).itemsize * header.events
    text = len(header.scenario_text.encode()) + len(header.resolved_json)
    return header.frames * (vectors + numbers + vtk) + constant + text + 2**17
