"""The roofline's picture: interactions per second against N below the bounds of the card, a panel per precision."""

from pathlib import Path

from nbody.bench.forces.plot import speeds
from nbody.bench.report import Report


def plot(report: Report, path: Path) -> None:
    """Draw the roofline's rows to a PNG. Needs no display."""
    speeds("Forces and their bounds", "roofline", report, path)
