"""A row of the scaling suite: the steps per second of whole runs on some GPUs."""

from dataclasses import dataclass
from typing import Literal

from nbody.bench.row import Amount, Count, Row


@dataclass(frozen=True, kw_only=True)
class ScalingRow(Row):
    """A run of ``steps`` steps on ``gpus`` GPUs. ``seconds`` is the wall time of a step, with recording; ``efficiency`` is
    the speed divided by that of as many single GPUs."""

    suite: Literal["scaling"] = "scaling"  # type: ignore[assignment]
    gpus: Count
    steps: Count
    efficiency: Amount | None = None


ROWS: dict[str, type] = {"scaling": ScalingRow}
