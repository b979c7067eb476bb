"""What a run says of itself before its first frame, and how much room it needs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nbody.trajectory.frame import OBSERVABLES


@dataclass(frozen=True)
class RunHeader:
    """Everything but the particles that a recording starts with.

    Attributes:
        frames: how many frames the run will record; the file has room for exactly these.
        dtype: the recording's precision, ``float32`` or ``float64``.
        scenario_text: the scenario's YAML as the user wrote it.
        resolved: the scenario with every default filled in, plain types.
        provenance: what :func:`nbody.trajectory.provenance.collect_provenance` collects.
        state_bytes: the size of the largest checkpoint (:func:`nbody.trajectory.checkpoint.state_bytes`); 0 if the
            run makes none.
    """

    frames: int
    dtype: str = "float32"
    scenario_text: str = ""
    resolved: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    state_bytes: int = 0

    def __post_init__(self) -> None:
        if self.frames < 1 or np.dtype(self.dtype) not in (np.float32, np.float64):
            raise ValueError(f"a recording has at least one frame of float32 or float64, not {self}")

    @property
    def resolved_json(self) -> str:
        """:attr:`resolved` as it is stored."""
        return json.dumps(self.resolved, indent=1)


def required_bytes(count: int, header: RunHeader) -> int:
    """The size of the file of a run of ``count`` particles, to within a few pages, whole from the first frame on."""
    vectors = 2 * 3 * np.dtype(header.dtype).itemsize * count
    numbers = 8 * (2 + sum(OBSERVABLES.values())) + 12  # step, time, observables, checksums
    vtk = 8 * 10  # offsets of a frame in the VTKHDF view
    constant = (8 + 8 + 1 + 8 + 8) * count + 2 * header.state_bytes
    text = len(header.scenario_text.encode()) + len(header.resolved_json)
    return header.frames * (vectors + numbers + vtk) + constant + text + 2**17
