"""Force engines: gravity of all particles on all particles. ``ENGINES`` lists them in the order of the lesson.

Read ``reference.py`` (what is computed), then ``gpu_global.py``, ``gpu_tiled.py`` (the lecture), ``gpu_kahan.py``,
``gpu_unrolled.py`` and ``gpu_split.py``. Then each pair once: ``gpu_triangle.py`` (which block computes what),
``gpu_meeting.py`` (the forces of one iteration), ``gpu_pairs.py`` (the kernel) and ``gpu_symmetric.py`` (the launch).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from nbody.errors import InputError, did_you_mean
from nbody.registry import Entry, Registry

if TYPE_CHECKING:
    from nbody.forces.by_accuracy import Refusal
    from nbody.state.want import Want

ENGINES = Registry(
    "engine",
    {
        "reference": Entry("nbody.forces.reference:ReferenceEngine", "NumPy float64, in blocks: the referee"),
        "cpu": Entry("nbody.forces.direct.cpu:CpuEngine", "Numba on all cores, SIMD, each pair once"),
        "cpu-tree": Entry("nbody.forces.tree.cpu_engine:CpuTreeEngine", "octree and multipoles, to a chosen accuracy"),
        "gpu-global": Entry(
            "nbody.forces.direct.gpu_global:GlobalMemoryEngine", "one thread per particle, global memory"
        ),
        "gpu-tiled": Entry("nbody.forces.direct.gpu_tiled:TiledEngine", "the same with tiles in shared memory"),
        "gpu-kahan": Entry("nbody.forces.direct.gpu_kahan:KahanEngine", "tiles with Kahan's compensated sums"),
        "gpu-unrolled": Entry("nbody.forces.direct.gpu_unrolled:UnrolledEngine", "several bodies per thread"),
        "gpu-split": Entry("nbody.forces.direct.gpu_split:SplitEngine", "two bodies per warp, for small N"),
        "gpu-symmetric": Entry("nbody.forces.direct.gpu_symmetric:SymmetricEngine", "each pair once, for large N"),
        "gpu-tree": Entry("nbody.forces.tree.gpu_engine:TreeEngine", "octree and multipoles, to a chosen accuracy"),
        "matrix": Entry(
            "nbody.forces.matrix.engine:matrix_engine",
            "the force matrix times a factor, by a rung of the matrix course: matrix:k07",
            variants="nbody.linalg:LADDER",
        ),
    },
    renamed={"gpu-scheduled": "gpu-symmetric"},
)
"""Every engine a user may name; ``auto`` stands for :func:`choose`."""

MEANT = {"cuda": "gpu", "nvidia": "gpu", "fastest": "auto", "numpy": "reference", "numba": "cpu", "host": "cpu"}
"""What people call an engine, and its name."""

STAND_FOR = {
    "auto": "the fastest engine of this machine",
    "gpu": "the fastest engine of this machine's GPU",
    "tree": "gpu-tree, or cpu-tree where that can't be used",
}
"""Names that stand for an engine, and for which."""

AUTOMATIC = ("auto", "gpu")
"""Names that stand for the fastest engine of this machine, or of its GPU."""

PRECISIONS = ("float32", "mixed", "float64")
"""The precisions that an engine may offer."""

Notify = Callable[[str], None]


def choose(
    precision: str,
    particles: int,
    notify: Notify = lambda line: None,
    measure: bool = True,
    needs: "Want | int" = 0,
    softenings: bool = False,
) -> tuple[str, str]:
    """The engine that ``auto`` stands for on this machine, and the reason in one clause; see :mod:`nbody.forces.auto`.

    Without ``measure`` it never measures: if several engines may be the fastest and no run has measured them on this card,
    it returns the last of them in the order of ``ENGINES``. ``softenings``: each species has a softening length.
    """
    from nbody import gpu
    from nbody.forces.auto import candidates, contenders, fastest, known
    from nbody.forces.memory import fits

    reason = gpu.why_unavailable()
    if reason:
        return "cpu", f"no GPU: {reason}"
    offering = candidates(needs, softenings)
    if not offering:
        return "cpu", "no engine on the GPU computes the jerk" + " with softening per species" * softenings
    if softenings:
        large = next((name for name, engine in offering.items() if particles in engine.contends), None)
        return large or next(iter(offering)), "it has softening per species"
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


def tree_engine(precision: str, refusal: "Refusal" = lambda engine: "") -> tuple[str, str]:
    """The engine that ``tree`` stands for on this machine, and the reason in one clause. ``refusal``: why the scheme cannot
    have an engine."""
    from nbody import gpu

    if reason := gpu.why_unavailable():
        return "cpu-tree", f"no GPU: {reason}"
    on_gpu, on_cpu = ENGINES.load("gpu-tree"), ENGINES.load("cpu-tree")
    if precision not in on_gpu.precisions:
        return "cpu-tree", f"gpu-tree has no {precision}"
    if refusal(on_gpu) and not refusal(on_cpu):
        return "cpu-tree", "the scheme needs it"
    return "gpu-tree", "there is a GPU"


def resolve(
    name: str,
    precision: str,
    particles: int,
    where: str = "",
    notify: Notify = lambda line: None,
    measure: bool = True,
    needs: "Want | int" = 0,
    softenings: bool = False,
    accuracy: float | None = None,
    refusal: "Refusal" = lambda engine: "",
) -> tuple[str, str]:
    """The engine that ``name`` stands for, and why it was chosen (empty if the user named it); see :func:`choose`, and with
    an ``accuracy`` :func:`nbody.forces.by_accuracy.direct_or_tree`.

    Raises:
        InputError: the engine does not exist; the line begins with ``where``.
        DeviceError: ``gpu`` is requested, and there is no GPU.
    """
    if name == "gpu":  # users type this for the fastest engine on the GPU
        from nbody import gpu

        gpu.require("engine 'gpu'")
    if name in AUTOMATIC:
        chosen = choose(precision, particles, notify, measure, needs, softenings)
        if accuracy is None:
            return chosen
        from nbody.forces.by_accuracy import direct_or_tree, refusal_for

        return direct_or_tree(chosen, accuracy, precision, particles, notify, measure, refusal_for(name, refusal))
    if name == "tree":
        return tree_engine(precision, refusal)
    if str(name).partition(":")[0] not in ENGINES:
        likely = MEANT.get(str(name).lower())
        known = [*STAND_FOR, *ENGINES, *ENGINES.plugins]
        hint = f" (did you mean '{likely}'?)" if likely else did_you_mean(str(name), known)
        listed = ", ".join(each + ENGINES.mark(each) for each in known)
        raise InputError(f"{where}unknown engine '{name}'{hint}; one of: {listed}")
    known_as = ENGINES.check(name, where)
    if known_as == "matrix":
        from nbody.forces.matrix.engine import default_rung

        rung, why = default_rung()
        return f"matrix:{rung}", why
    return known_as, "" if known_as == name else f"instead of '{name}', which was removed; the bits are the same"


def accelerations(
    position,
    mass,
    *,
    at=None,
    G=1.0,
    softening="none",
    length=0.0,
    engine="auto",
    precision="float64",
    potential=False,
    notify: Notify = lambda line: None,
    **options,
):
    """Accelerations of bodies, or at other points, a_i = G Σ_j m_j (x_j - x_i) f(r_ij), with f of :mod:`nbody.law`.

    Args:
        position: (N, D) array, D 2 or 3, any real dtype.
        mass: (N,) array, not negative.
        at: (M, D) points at which to compute the accelerations instead of those of the bodies. A point is a body without
            mass: a body in the same place exerts no force on it.
        G: the gravitational constant, in the units of the arrays.
        softening: ``plummer``, ``spline``, ``cutoff`` or ``none``, with its ``length``.
        engine: a name of :data:`ENGINES`, with its variant if it has variants; ``tree``; or ``auto``, which with an
            ``accuracy`` (the median relative error of the accelerations) takes a tree where that is faster.
        precision: a name of :data:`PRECISIONS` that the engine offers.
        potential: also return the potential per unit mass.
        notify: receives a line when ``auto`` first measures the card, which takes a few seconds, once.
        options: the engine's own options, as in a scenario.

    Returns:
        (N, D) accelerations, (M, D) with ``at``, in the engine's dtype; with ``potential`` a tuple of these and the (N,) or
        (M,) potential.

    Raises:
        InputError: arrays that do not fit or are not finite, a name that does not exist, more particles than fit, numbers
            beyond the range of the precision.
        DeviceError: a GPU engine was named and there is no GPU, or it has too little memory.
    """
    from nbody.forces.called import evaluated
    from nbody.state.want import Want

    want = Want.POTENTIAL if potential else Want.ACCELERATION
    result, phi = evaluated(position, mass, at, want, G, softening, length, engine, precision, notify, options)
    return (result, phi) if potential else result


def potential(position, mass, *, at=None, **given):
    """The potential per unit mass of bodies, or at other points, φ_i = -G Σ_{j≠i} m_j u(r_ij), with u of :mod:`nbody.law`.

    Args:
        position, mass, at, given: as in :func:`accelerations`.

    Returns:
        (N,) or (M,) array in the engine's dtype.

    Raises:
        InputError, DeviceError: as :func:`accelerations`.
    """
    return accelerations(position, mass, at=at, potential=True, **given)[1]
