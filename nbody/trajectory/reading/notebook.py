"""How Python and notebooks show a recording: one line, or its facts with a picture of the last frame."""

import base64
import os
from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from nbody.diagnostics import relative_energy_error
from nbody.diagnostics.structure import square_around
from nbody.errors import InputError, counted, printable
from nbody.figures import dots
from nbody.number_format import size

if TYPE_CHECKING:
    from nbody.trajectory import Trajectory

POINTS = 20_000
"""Bodies at most in the picture."""


def line(run: "Trajectory") -> str:
    """``<Trajectory run.h5: plummer, 4096 bodies, 161 frames, t = 0 to 10, complete>``."""
    facts = [run.name, counted(run.count, "body", "bodies"), _frames(run)]
    facts += [f"t = {_times(run)}"] if len(run) else []
    try:
        facts.append(run.status)
    except ValueError:
        facts.append("closed")
    return f"<Trajectory {printable(run.path)}: {', '.join(facts)}>"


def page(run: "Trajectory") -> str:
    """HTML for a notebook: the facts, and a picture of the last frame, seen along z (PNG, drawn without OpenGL)."""
    bodies, frames = f"{run.count} in {run.dimensions} dimensions", _frames(run).removesuffix(" frames")
    facts = {"file": run.path, "bodies": bodies, "frames": frames} | ({"time": _times(run)} if len(run) else {})
    picture = ""
    with suppress(InputError, ValueError, IndexError):  # a closed file, a damaged or infinite frame
        facts |= _read_facts(run)
        if len(run) and (np.abs((last := run.particles(-1)).position) < 1e100).all():
            centre, half = square_around(last)
            drawn = dots((last.position[:: -(-last.count // POINTS), :2] - centre[:2]) / half, 240)
            data = base64.b64encode(drawn).decode()
            picture = f'<img alt="the last frame" src="data:image/png;base64,{data}" width="160" height="160">'
    rows = "".join(f"<tr><th>{name}</th><td>{escape(printable(fact))}</td></tr>" for name, fact in facts.items())
    table = f'<table style="text-align:left"><caption><b>{escape(run.name)}</b></caption>{rows}</table>'
    return f'<div style="display:flex;gap:1em;align-items:center">{picture}{table}</div>'


def _times(run: "Trajectory") -> str:
    """The first and the last time, with their unit."""
    from nbody.scenario.quantities import shown_time  # pydantic takes 0.1 s

    factor, unit = shown_time(run.units.symbol("time"))
    return f"{factor * run.time[0]:g} to {factor * run.time[-1]:g} {printable(unit)}".rstrip()


def _frames(run: "Trajectory") -> str:
    fewer = len(run) < run.planned and not run.complete
    return f"{len(run)} of {run.planned} frames" if fewer else counted(len(run), "frame")


def _read_facts(run: "Trajectory") -> dict[str, str]:
    """Facts that are read from the open file."""
    found = {"status": run.status, "size": size(os.path.getsize(run.path))}
    energy = run.energy_balance()
    if len(energy) and np.isfinite(energy[[0, -1]]).all():
        found["energy error"] = f"{relative_energy_error(float(energy[-1]), float(energy[0])):+.2e}"
    origin = run.stored_provenance
    made = [str(origin[name]) for name in ("engine", "precision", "device") if name in origin]
    return found | ({"made by": ", ".join(made)} if made else {})
