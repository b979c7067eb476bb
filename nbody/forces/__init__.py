"""Force engines: gravity of all particles on all particles. ``ENGINES`` lists them in the order of the lesson.

Read ``reference.py`` (what is computed), then ``gpu_global.py``, ``gpu_tiled.py`` (the lecture), ``gpu_kahan.py``,
``gpu_unrolled.py`` and ``gpu_split.py``; for each pair once ``gpu_triangle.py`` (who works on what), ``gpu_meeting.py`` (one
meeting of bodies), ``gpu_pairs.py`` (the kernel) and ``gpu_symmetric.py`` (the launch). ``scheduled/`` is an experiment
that a reader may skip.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from nbody.errors import InputError, unknown
from nbody.registry import Entry, Registry

if TYPE_CHECKING:
    import numpy as np

    from nbody.state.want import Want

ENGINES = Registry(
    "engine",
    {
        "reference": Entry("nbody.forces.reference:ReferenceEngine", "NumPy float64, blocked: the referee"),
        "cpu": Entry("nbody.forces.direct.cpu:CpuEngine", "Numba on all cores, SIMD, each pair once"),
        "gpu-global": Entry("nbody.forces.direct.gpu_global:GlobalMemoryEngine", "a thread a particle, global memory"),
        "gpu-tiled": Entry("nbody.forces.direct.gpu_tiled:TiledEngine", "the same with tiles in shared memory"),
        "gpu-kahan": Entry("nbody.forces.direct.gpu_kahan:KahanEngine", "tiles, and Kahan's compensated sums"),
        "gpu-unrolled": Entry("nbody.forces.direct.gpu_unrolled:UnrolledEngine", "several bodies a thread"),
        "gpu-split": Entry("nbody.forces.direct.gpu_split:SplitEngine", "a few bodies a warp, for small N"),
        "gpu-symmetric": Entry("nbody.forces.direct.gpu_symmetric:SymmetricEngine", "each pair once, for large N"),
        "gpu-scheduled": Entry(
            "nbody.forces.scheduled.engine:ScheduledEngine", "the same, its machine code reordered", experimental=True
        ),
        "matrix": Entry(
            "nbody.forces.matrix.engine:matrix_engine",
            "the force matrix, multiplied by a rung of the ladder: matrix:k07",
            variants="nbody.linalg:LADDER",
        ),
    },
)
"""Every engine a user may name; ``auto`` stands for :func:`choose`."""

PRECISIONS = ("float32", "mixed", "float64")
"""Those that an engine may offer."""

Notify = Callable[[str], None]


def choose(
    precision: str,
    particles: int,
    notify: Notify = lambda line: None,
    measure: bool = True,
    needs: "Want | int" = 0,
) -> tuple[str, str]:
    """The engine ``auto`` stands for on this machine, and why, in one clause; see :mod:`nbody.forces.auto`.

    Without ``measure`` it never measures: where several engines may be the fastest and no run has measured them on this
    card, it answers with the last of them in the order of the lesson.
    """
    from nbody import gpu
    from nbody.forces.auto import candidates, contenders, fastest, known
    from nbody.forces.memory import fits

    reason = gpu.why_unavailable()
    if reason:
        return "cpu", f"no GPU: {reason}"
    offering = candidates(needs)
    if not offering:
        return "cpu", "no engine on the GPU computes the jerk"
    able = {name: engine for name, engine in offering.items() if precision in engine.precisions}
    if not able or gpu.SIMULATED:  # the simulator has no time worth measuring
        ENGINES.load("gpu-symmetric").require_precision(precision)
        return "gpu-symmetric", "it has every precision"
    card = gpu.facts().name
    contending = contenders(able, particles)
    if not measure and not known(contending, precision, particles):
        return list(contending)[-1], f"{card} is not measured yet: the first run does that"
    name = fastest(contending, precision, particles, notify)
    if fits(able[name], particles, precision):
        return name, f"the fastest for {particles} particles on {card}"
    smaller = next((other for other in able if fits(able[other], particles, precision)), None)
    return smaller or name, f"{name} needs more memory than is free"


def resolve(
    name: str,
    precision: str,
    particles: int,
    where: str = "",
    notify: Notify = lambda line: None,
    measure: bool = True,
    needs: "Want | int" = 0,
) -> tuple[str, str]:
    """``name`` as an engine that exists, and why it was taken (empty if the user named it); see :func:`choose`.

    Raises:
        InputError: the engine does not exist; the line begins with ``where``.
        DeviceError: ``gpu`` is wanted, and there is none.
    """
    if name == "gpu":  # what people type for the fastest engine on the GPU
        from nbody import gpu

        gpu.require("engine 'gpu'")
    if name in ("auto", "gpu"):
        return choose(precision, particles, notify, measure, needs)
    if ENGINES.check(name, where) == "matrix":
        from nbody.forces.matrix.engine import default_rung

        rung, why = default_rung()
        return f"matrix:{rung}", why
    return name, ""


def accelerations(
    position,
    mass,
    *,
    G=1.0,
    softening="none",
    length=0.0,
    engine="auto",
    precision="float64",
    potential=False,
    notify: Notify = lambda line: None,
):
    """Accelerations by direct summation, a_i = G Σ_j m_j (x_j - x_i) f(r_ij); the law is :mod:`nbody.law`'s.

    Args:
        position: (N, D) array, D 2 or 3, any real dtype.
        mass: (N,) array, not negative.
        G: the gravitational constant, in the units of the arrays.
        softening: ``plummer``, ``cutoff`` or ``none``, with its ``length``.
        engine: a name of :data:`ENGINES`, with a variant where it has some, or ``auto``.
        precision: ``float32``, ``float64`` or what else the engine offers.
        potential: also return the potential per unit mass.
        notify: gets a line when ``auto`` measures the card first, which takes a few seconds, once.

    Returns:
        (N, D) accelerations in the engine's dtype; with ``potential`` a pair of them and the (N,) potential.

    Raises:
        InputError: arrays that do not fit or are not finite, a name that does not exist, more particles than fit, numbers
            beyond the range of the precision.
        DeviceError: a GPU engine was named and there is no GPU, or it has too little memory.
    """
    import numpy as np

    from nbody.forces.memory import check_fits
    from nbody.forces.range import check_range
    from nbody.law import Gravity
    from nbody.particles import Particles
    from nbody.state.want import Want

    if precision not in PRECISIONS:
        raise unknown("precision", precision, PRECISIONS, "accelerations: ")
    try:
        x, m = _real(position), _real(mass)
        if x.ndim != 2 or m.ndim != 1:
            raise InputError(f"accelerations: position must be (N, 2) or (N, 3), mass (N,); got {x.shape}, {m.shape}")
        particles = Particles(m, x, np.zeros_like(x)).check("accelerations: ")
        gravity = Gravity(G, particles.dimensions, softening, length).check("accelerations: ")
    except (TypeError, ValueError) as error:
        raise InputError(f"accelerations: arrays of numbers, and numbers, are needed ({error})") from error
    name, _ = resolve(engine, precision, particles.count, "accelerations: ", notify)
    kind = ENGINES.load(name)
    kind.require_device()
    kind.require_precision(precision, "accelerations: ")
    check_fits(kind, particles.count, precision, "accelerations: ")
    check_range(kind, gravity, precision, particles, "accelerations: ")
    machine = kind(gravity, precision)
    with np.errstate(all="ignore"):  # bodies in the same place without softening have an infinite potential
        state = machine.load(particles)
        machine.evaluate(state, Want.POTENTIAL if potential else Want.ACCELERATION)
    result, phi = state.forces()
    return (result, phi) if potential else result


def _real(values) -> "np.ndarray":
    """``values`` in float64. Raises TypeError for complex numbers, whose imaginary part would be lost, and for texts."""
    import numpy as np

    found = np.asarray(values)
    if found.dtype.kind in "cSU":
        raise TypeError(f"not {found.dtype}")
    return found.astype(np.float64, copy=False)
