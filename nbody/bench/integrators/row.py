"""A row of the integrators suite: one scheme with one accuracy setting on one problem."""

from dataclasses import dataclass
from typing import Literal

from nbody.bench.row import Amount, Count, Row


@dataclass(frozen=True, kw_only=True)
class IntegratorRow(Row):
    """``seconds`` are those of the whole problem; ``error`` is the distance from the exact solution in semi-major axes,
    where it is known.

    Attributes:
        problem: ``kepler``, ``planets`` or ``cluster``.
        backend: ``cpu`` or ``gpu``.
        setting: the option that sets the accuracy, as in a scenario: ``dt: 0.01``.
        steps: the steps that were made (blocks, for individual steps).
        energy_error: abs(E/E₀ - 1) at the end.
    """

    suite: Literal["integrators"] = "integrators"  # type: ignore[assignment]
    problem: str
    backend: str
    setting: str
    steps: Count | None = None
    energy_error: Amount | None = None

    @property
    def what(self) -> str:
        """The scheme, its setting and the problem, for messages."""
        return f"{self.name} ({self.setting}), {self.problem}, N = {self.particles}"


ROWS: dict[str, type] = {"integrators": IntegratorRow}
