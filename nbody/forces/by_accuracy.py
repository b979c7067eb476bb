"""What ``auto`` stands for if the user names an accuracy: direct sums or a tree, whichever was measured to be faster here.

Direct sums take a time that grows like N², a tree one that grows like N and depends on the accuracy. The two cross at some
thousand bodies on a CPU and at some ten thousand on a GPU. Where either may win (:attr:`Engine.contends`) both are timed
once, and the answer is kept for the power of two nearest to N, for this accuracy, machine and versions, as in
:mod:`nbody.forces.auto`. Without an accuracy ``auto`` never takes a tree.

If the user names no precision, each of the two takes the lowest one that has the accuracy (:func:`lowest_precisions`),
which is also its fastest. The two may differ: at 1e-6 direct sums need float32 and a tree float64.
"""

import math
import time
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

from nbody import cache, machine
from nbody.errors import DeviceError, InputError
from nbody.forces import ENGINES, PRECISIONS, Notify
from nbody.forces.auto import GRAVITY, bucket, cluster, seconds_on_gpu, versions
from nbody.forces.direct.gpu_options import GpuOptions
from nbody.forces.engine import ROUNDOFF, Engine
from nbody.particles import Particles
from nbody.scenario.fields import Positive

KIND = "fastest"
"""The kind of cache entry, that of :mod:`nbody.forces.auto`."""

LARGEST_DIRECT, LARGEST_TREE = {"cpu": 1 << 14, "gpu": 1 << 17}, {"cpu": 1 << 16, "gpu": 1 << 20}
"""The most bodies that are timed, in less than a second. The times of more are those times a ratio of N² or of N."""

ALWAYS_TREE = {"cpu": 1 << 21, "gpu": 1 << 22}
"""From this number of bodies a tree is taken unmeasured."""

DIRECT = {"float32": 5e-7, "mixed": 1e-7, "float64": 0.0}
"""The accuracy that direct sums have in each precision, with a margin: the median errors of the engines that ``auto``
takes are 0.9 to 2.2e-7 in float32 and 3e-8 in ``mixed``, for up to 262144 bodies."""

SECONDS, REPEATS = 0.5, 4
"""Timings end after this many seconds or evaluations, the shortest of which counts."""

Refusal = Callable[[type[Engine]], str]
"""Why an engine cannot be used; empty if it can."""


class Accuracy(GpuOptions):
    """The options of ``auto``: the median relative error of the accelerations that is wanted, and the GPUs."""

    accuracy: Annotated[Positive, Field(le=0.1)] | None = None


def check_accuracy(accuracy: float, precision: str, where: str) -> None:
    """Raise an InputError, which begins with ``where``, if no engine has this accuracy in a precision."""
    if accuracy < (least := max(ROUNDOFF[precision], DIRECT[precision])):
        fix = " or more, or choose --precision float64" if precision != "float64" else " or more"
        raise InputError(f"{where}numbers in {precision} have no accuracy of {accuracy:g}; ask for {least:.1g}{fix}")


def finest(precision: str, of_tree: bool) -> float:
    """The least accuracy that a precision gives: of a tree, or of direct sums."""
    from nbody.forces.tree.options import FINEST

    return (FINEST if of_tree else DIRECT)[precision]


def lowest_precisions(accuracy: float, offered: Callable[[str], bool]) -> tuple[str, str]:
    """The lowest precisions in which direct sums, and a tree, have an accuracy; ``offered``: those of the direct engine."""
    direct = [each for each in PRECISIONS if accuracy >= finest(each, False) and offered(each)]
    return (*direct, "float64")[0], next((each for each in PRECISIONS if accuracy >= finest(each, True)), "float64")


def refusal_for(name: str, refusal: Refusal) -> Refusal:
    """``refusal`` for the engine that ``name``, ``auto`` or ``gpu``, stands for."""

    def refused(kind: type[Engine]) -> str:
        return "it works on the CPU" if name == "gpu" and kind.device == "cpu" else refusal(kind)

    return refused


def direct_or_tree(
    direct: tuple[str, str],
    accuracy: float,
    precision: str,
    particles: int,
    notify: Notify = lambda line: None,
    measure: bool = True,
    refusal: Refusal = lambda engine: "",
    of_tree: str = "",
) -> tuple[str, str]:
    """The faster one of direct sums and a tree, and the reason in one clause.

    Args:
        direct: the engine that ``auto`` takes without an accuracy, and why.
        accuracy: the median relative error that is wanted.
        precision, particles: of the run; ``of_tree`` is the precision of a tree, if it differs.
        notify: receives a line if the two are timed.
        measure: allow that; if False, and they were not timed before, the direct engine is taken.
        refusal: why the scheme or the law can't have an engine.
    """
    name, why = direct
    of_tree = of_tree or precision
    tree, reason = tree_for(accuracy, of_tree, particles, refusal)
    if not tree:
        return name, f"{why}; no tree: {reason}"
    kinds: dict[str, type[Engine]] = {each: ENGINES.load(each) for each in (name, tree)}
    precisions = {name: precision, tree: of_tree}
    device = _device(kinds.values())
    for_bodies = f"at a median force error of {accuracy:g} for {particles} particles on {device}"
    if particles >= ALWAYS_TREE[kinds[tree].device] and of_tree == precision:
        return tree, f"the fastest {for_bodies}"
    key = _key(precisions, accuracy, particles, device)
    fastest = cache.recall(KIND).get(key)
    if fastest not in kinds:
        if not measure:
            return name, f"{device} is not measured yet with a tree: the first run does that"
        notify(f"measuring once whether a tree is faster for about {bucket(particles)} particles at {accuracy:g}")
        seconds = {each: _seconds(kinds[each], accuracy, precisions[each], bucket(particles)) for each in kinds}
        fastest = min(seconds, key=lambda each: seconds[each])
        cache.keep(KIND, key, fastest)
    other = f"a tree in {of_tree}" if fastest == name else f"direct sums in {precision}"
    return fastest, f"the fastest {for_bodies}, measured beside {other}"


def tree_for(accuracy: float, precision: str, particles: int, refusal: Refusal) -> tuple[str, str]:
    """The tree that may be the fastest on this machine; or nothing, and why in one clause."""
    from nbody import gpu
    from nbody.forces.memory import fits

    if gpu.SIMULATED:
        return "", "the simulator is not timed"
    if accuracy < (least := finest(precision, True)):
        return "", f"it has {least:g} at best in {precision}"
    reasons = []
    for name in ("gpu-tree", "cpu-tree"):
        kind: type[Engine] = ENGINES.load(name)
        if kind.device == "gpu" and gpu.why_unavailable():
            continue
        if precision not in kind.precisions:
            reasons.append(f"{name} has no {precision}")
        elif problem := refusal(kind):
            reasons.append(problem)
        elif particles not in kind.contends:
            return "", f"direct sums are faster below {kind.contends.start} particles"
        elif not fits(kind, particles, precision):
            reasons.append(f"{name} needs more memory than is free")
        else:
            return name, ""
    return "", reasons[0]


def _seconds(kind: type[Engine], accuracy: float, precision: str, count: int) -> float:
    """The time of one evaluation for ``count`` particles; infinite if memory is short."""
    timed = min(count, (LARGEST_TREE if kind.approximate else LARGEST_DIRECT)[kind.device])
    options = kind.Options.model_validate({"accuracy": accuracy} if kind.approximate else {})
    try:
        engine, bodies = kind(GRAVITY, precision, options), cluster(timed)
        found = seconds_on_gpu(engine, bodies) if kind.device == "gpu" else seconds_on_cpu(engine, bodies)
    except DeviceError:
        return math.inf
    return found * (count / timed) ** (1 if kind.approximate else 2)


def seconds_on_cpu(engine: Engine, bodies: Particles, clock: Callable[[], float] = time.perf_counter) -> float:
    """The time of one force evaluation on the host, by a clock."""
    state = engine.load(bodies)
    engine.evaluate(state)  # compiles; and a tree learns the size of the forces
    times: list[float] = []
    while len(times) < REPEATS and sum(times) < SECONDS:
        state.invalidate()
        start = clock()
        engine.evaluate(state)
        times.append(clock() - start)
    return min(times)


def _device(kinds: Any) -> str:
    from nbody import gpu

    return gpu.facts().name if any(kind.device == "gpu" for kind in kinds) else machine.cpu_name()


def _key(precisions: dict[str, str], accuracy: float, particles: int, device: str) -> str:
    """Everything that an answer depends on; ``precisions`` are those of the engines by name."""
    engines = ", ".join(f"{name} in {precision}" for name, precision in precisions.items())
    what = f"accuracy {accuracy:.2g}, N = {bucket(particles)}, of {engines}"
    return f"{device}, {machine.cores()} cores, {versions()}, {what}"
