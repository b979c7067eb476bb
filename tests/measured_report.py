"""A report of a real, small benchmark on the processor, measured once for all tests of a process."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from nbody.bench import timing
from nbody.bench.forces import competitor, lecture
from nbody.cli import main


@cache
def measured_report() -> Path:
    """Its file; N = 65 and 130, of which 65 counts as the lecture's."""
    folder = Path(mkdtemp(prefix="nbody-bench-"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(competitor, "PILOT", 128)
        patch.setattr(timing, "ENOUGH", 0.01)
        patch.setattr(lecture, "COUNTS", (65, 130))
        assert main(["bench", "--cpu", "--particles", "65", "130", "--output", str(folder)]) == 0
    return folder / "bench.json"
