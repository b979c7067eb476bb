"""Selects what is measured: N, precisions and engines, by the user's options and the machine's devices."""

import math
from collections.abc import Sequence

from nbody.bench import Notify, card
from nbody.bench.forces.competitor import Competitor
from nbody.bench.forces.rows import ALL_CORES
from nbody.errors import InputError, unknown
from nbody.forces import ENGINES
from nbody.forces.engine import ROUNDOFF, Engine
from nbody.forces.problem import Problem
from nbody.forces.registry import TREES
from nbody.forces.resources import check_fits, require_device
from nbody.law import Gravity

COUNTS = (1024, 4096, 10240, 20480)
GPU_COUNTS = (65536, 262144)
"""The default N, and additional ones with a GPU. 10240 and 20480 are the lecture's."""

ACCURACIES = (1e-3, 1e-4)
"""The median errors of trees, if the user names none."""

SMALLEST = 1000
"""The first N of a measurement of scaling."""


def backends(cpu: bool, gpu: bool, notify: Notify) -> tuple[str, ...]:
    """The backends to measure: those requested, or, if none is, those of this machine. Where there is no GPU, ``--cpu
    --gpu`` measures the CPU, and ``notify`` gets a line.

    Raises:
        DeviceError: only the GPU is requested, and there is none.
    """
    reason = card.no_gpu()
    if gpu and reason:
        if not cpu:
            card.require_gpu("--gpu")
        notify(f"--gpu: there is no NVIDIA GPU to measure here ({reason}); measuring the CPU")
    requested = {"cpu": cpu or not gpu, "gpu": not reason and (gpu or not cpu)}
    return tuple(name for name, yes in requested.items() if yes)


def counts(given: Sequence[int], on_gpu: bool, default: Sequence[int] = COUNTS) -> list[int]:
    """The N of a benchmark, ascending, each once. Raises InputError for one below 1."""
    for count in given:
        if count < 1:
            raise InputError(f"--particles: must be at least 1, got {count}")
    return sorted(set(given or (*default, *(GPU_COUNTS if on_gpu else ()))))


def scaling(
    up_to: int, particles: Sequence[int], engines: Sequence[str], precisions: Sequence[str], on: Sequence[str]
) -> tuple[Sequence[int], Sequence[str], Sequence[str]]:
    """The N, engines and precisions that show how times grow up to an N: two N per factor of ten; unless others are named,
    the engines that ``auto`` considers, in float32. Raises InputError."""
    if particles or up_to < SMALLEST:
        raise InputError(
            "--up-to: cannot be combined with --particles; leave one out"
            if particles
            else f"--up-to: must be at least {SMALLEST}, got {up_to}"
        )
    steps = int(2 * math.log10(up_to / SMALLEST) + 1e-9)
    counts = [int(float(f"{SMALLEST * 10 ** (k / 2):.2g}")) for k in range(steps + 1)]
    may_be_fastest = [name for name in ENGINES if (can := ENGINES.load(name).can).auto_range and can.device in on]
    return sorted({*counts, up_to}), engines or may_be_fastest, precisions or ["float32"]


def competitors(
    engines: Sequence[str], precisions: Sequence[str], on: Sequence[str], largest: int, accuracies: Sequence[float] = ()
) -> list[Competitor]:
    """The engines that take part, in the order of ``ENGINES``, in those of the precisions that they offer.

    Args:
        engines: names of ``ENGINES``; all direct sums of the backends ``on`` when empty. The ``cpu`` engine is always
            measured, because speed-ups are relative to it.
        largest: the largest N, for which there must be memory.
        accuracies: those of trees.

    Raises:
        InputError: a wrong name or number, an engine that can't take part, or too many particles for the memory.
        DeviceError: this machine lacks what an engine computes on.
    """
    engines = [ENGINES.check(name, "--engines: ") for name in engines]
    _check(precisions, accuracies, engines)
    problems = [Problem(Gravity(), each, largest) for each in dict.fromkeys(precisions or ROUNDOFF)]
    for name in engines:
        _check_engine(name, problems, on)
    found: list[Competitor] = []
    for name in dict.fromkeys([*ENGINES, *engines]):  # variants such as matrix:k07 are measured only if named
        kind: type[Engine] = ENGINES.load(name)
        by_default = not engines and kind.can.device in on and not kind.can.tree
        if not (by_default or name in engines or name == ALL_CORES):
            continue
        require_device(kind, name)
        for problem in problems:
            if not kind.supports(problem):
                check_fits(kind, problem, "--particles: ")
                found += _of_engine(name, problem.precision, accuracies or ACCURACIES)
    if not found:
        raise InputError(
            f"--precision: no engine on the {' or the '.join(on)} computes in {' or '.join(precisions)}; name another"
        )
    return found


def _check(precisions: Sequence[str], accuracies: Sequence[float], engines: Sequence[str]) -> None:
    """Raise InputError for an unknown precision, and for an accuracy that no tree that is measured can have."""
    for precision in precisions:
        if precision not in ROUNDOFF:
            raise unknown("precision", precision, ROUNDOFF, "--precision: ")
    for accuracy in accuracies:
        if not 0 < accuracy <= 0.1:
            raise InputError(f"--accuracy: must be greater than 0 and at most 0.1, got {accuracy:g}")
    if accuracies and not {*engines} & {*TREES}:
        raise InputError("--accuracy: only trees have one; add --up-to 1e5, or --engines cpu-tree")


def _check_engine(name: str, problems: Sequence[Problem], on: Sequence[str]) -> None:
    """Raise InputError if a named engine solves none of the problems, or works on none of the backends."""
    kind: type[Engine] = ENGINES.load(name)
    device = kind.can.device
    if device not in on:
        why = f"none here ({reason})" if (reason := device == "gpu" and card.no_gpu()) else "not measured"
        raise InputError(f"--engines: '{name}' works on the {device}, which is {why}; add --{device}")
    reasons = [kind.supports(problem) for problem in problems]
    if all(reasons):
        raise InputError(f"--engines: '{name}': {reasons[0]}; choose another --precision")


def _of_engine(name: str, precision: str, accuracies: Sequence[float]) -> list[Competitor]:
    """An engine: a tree with each accuracy, the ``cpu`` engine on one core and on all."""
    if name in TREES:
        return [Competitor.of(name, precision, accuracy=each) for each in accuracies]
    return [Competitor.of(name, precision, one_core) for one_core in ([True, False] if name == ALL_CORES else [False])]
