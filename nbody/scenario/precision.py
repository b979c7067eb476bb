"""Whether the numbers of a scenario fit its precision."""

import math
from collections.abc import Mapping

import numpy as np

from nbody.given import KeyProblem
from nbody.law import LAWS, Gravity
from nbody.scenario.groups import IntegratorKeys
from nbody.scenario.options import AUTO


def check_precision(gravity: Gravity, integrator: IntegratorKeys, precision: str) -> None:
    """Raise a KeyProblem: a number that would overflow or underflow in this precision and become NaN."""
    real = np.finfo(np.float64 if precision in ("float64", AUTO) else np.float32)
    largest, smallest = float(real.max), float(real.tiny)
    fix = f"precision {precision}; use other units" + (", or float64" if real.bits == 32 else "")
    if largest < gravity.G:
        raise KeyProblem("gravity.G", f"{gravity.G:g} is too large for {fix}")
    written = gravity.length
    several = dict(enumerate(written)) if isinstance(written, tuple) else written
    each = {f"gravity.length.{n}": e for n, e in several.items()} if isinstance(several, Mapping) else {}
    for key, length in (each or {"gravity.length": gravity.shortest}).items():
        if length > math.sqrt(largest):
            raise KeyProblem(key, f"{length:g}, squared, is too large for {fix}")
        # At distance 0 the force is length⁻³ times 0, which is NaN if length⁻³ is infinite.
        if LAWS.load(gravity.softening).needs_length and length < largest ** (-1 / 3):
            raise KeyProblem(key, f"{length:g} is too small (1/length³ overflows) for {fix}")
    dt = integrator.dt
    if dt is None:
        return
    if not smallest <= abs(dt) <= largest:
        raise KeyProblem("integrator.dt", f"{dt:g} is too {'small' if abs(dt) < 1 else 'large'} for {fix}")
    end = integrator.end if integrator.steps is None else integrator.steps * dt
    if end and (not math.isfinite(end) or end - dt == end):
        raise KeyProblem("integrator.dt", f"{dt:g} is too small to change a time of {end:g}; use fewer steps")
