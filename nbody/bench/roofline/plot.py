"""The roofline's picture: interactions per second against N below the bounds of the card, a panel a precision."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nbody.bench.forces.accuracy import ROUNDOFF
from nbody.bench.forces.plot import End, label_ends, numbers_of_particles, panels, whole_decades
from nbody.bench.report import Report, machine_line, rows_of
from nbody.bench.roofline.row import RooflineRow
from nbody.units import rate


def plot_roofline(found: Report, path: Path) -> None:
    """Draw the roofline's rows to a PNG. Needs no display."""
    rows = [row for row in rows_of(found, "roofline", RooflineRow) if row.interactions_per_s]
    precisions = [precision for precision in ROUNDOFF if any(row.precision == precision for row in rows)]
    colours = {name: f"C{k}" for k, name in enumerate(dict.fromkeys(row.name for row in rows))}
    with panels(len(precisions), f"Forces and their bounds: {machine_line(found['machine'])}", path) as axes:
        whole_decades(axes[0], [value for row in rows for value in (row.interactions_per_s, row.root_bound)])
        for panel, precision in zip(axes, precisions, strict=False):
            own = [row for row in rows if row.precision == precision]
            numbers_of_particles(panel, precision, [row.particles for row in own])
            _of_the_card(panel, own)
            label_ends(panel, _speeds(panel, own, colours))


def _speeds(axes: Any, rows: Sequence[RooflineRow], colours: dict[str, str]) -> list[End]:
    """A line a contestant: whole for our own engines, below the dotted level of its bound by issue slots; broken for a
    competitor."""
    ends = []
    for name in dict.fromkeys(row.name for row in rows):
        line = [row for row in rows if row.name == name]
        x, y = [row.particles for row in line], [row.interactions_per_s or 0.0 for row in line]
        style, width = ("s--", 1.0) if line[0].peer else ("o-", 1.8)
        axes.plot(x, y, style, color=colours[name], markersize=4, linewidth=width)
        text, last = f" {name}  {rate(y[-1])}".rstrip(), line[-1]
        if last.slot_bound:
            axes.axhline(last.slot_bound, color=colours[name], linewidth=0.9, linestyle=":")
            text += f" of {rate(last.slot_bound)}".rstrip()
        ends.append(End(y[-1], x[-1], text, colours[name]))
    return ends


def _of_the_card(axes: Any, rows: Sequence[RooflineRow]) -> None:
    """Grey levels: the float peak at 20 operations an interaction, and the bounds by roots, one for an interaction and
    one for a pair."""
    found: dict[str, float] = {}
    for row in rows:
        if row.percent_of_peak and row.interactions_per_s:
            text = "the float peak at 20 operations"
            found[text] = max(found.get(text, 0.0), 100 * row.interactions_per_s / row.percent_of_peak)
        if row.root_bound:
            text = "a root a pair" if row.interactions_a_root == 2 else "a root an interaction"
            found[text] = max(found.get(text, 0.0), row.root_bound)
    for text, bound in found.items():
        axes.axhline(bound, color="0.45", linewidth=0.9, linestyle="-.")
        axes.annotate(
            f"{text}  {rate(bound)}", (0.01, bound), (0, -2 if "peak" in text else 2), ("axes fraction", "data"),
            "offset points", va="top" if "peak" in text else "bottom", fontsize=7, color="0.35",
        )  # fmt: skip
