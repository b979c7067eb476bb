"""Which engine a run takes: one loop over the engines that a name stands for.

A name may stand for several engines: ``auto`` for all that may be the fastest of some machine, ``gpu`` for those on the GPU,
``tree`` for the trees. Of these the ones that support what is asked (:meth:`Engine.supports`, and the scheme), that this
machine can run, and that fit its memory are candidates; of each kind, direct sums and trees, those on the GPU if there are
any. If several may be the fastest for this number of bodies (:attr:`Abilities.auto_range`), they are timed once, which takes
a few seconds, most of them for compiling. The answer is cached for the power of two nearest to the number, the accuracy, the
machine and the versions: later runs take the same engine and give the same bits. Remove the file to measure again.

Trees are candidates only if an accuracy is asked for. If the user names no precision, each engine takes the lowest one in
which it has the accuracy, which is also its fastest: at 1e-6 direct sums need float32 and a tree float64.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from nbody import machine
from nbody.compute.compiling import cache
from nbody.errors import InputError, unknown
from nbody.forces.engine import Engine
from nbody.forces.problem import PRECISIONS, Problem
from nbody.forces.registry import AUTOMATIC, ENGINES, STAND_FOR, TREES
from nbody.forces.resources import fits
from nbody.forces.timing import bucket, key, seconds
from nbody.whole_file import Notify

KIND = "fastest"
"""The kind of cache entry; see :mod:`nbody.compute.compiling.cache`."""

ALWAYS_TREE = {"cpu": 1 << 21, "gpu": 1 << 22}
"""From this number of bodies a tree is taken unmeasured."""

ORDINARY = tuple(
    each
    for each in ENGINES
    if not ((entry := ENGINES[each]).experimental or entry.variants) and (each in TREES or "tree" not in entry.tags)
)
"""The engines that are considered where the user names none; of trees the fast ones."""

Refusal = Callable[[type[Engine], Problem], str]
"""Why the scheme cannot have an engine, in one clause; empty if it can."""


class Choice(NamedTuple):
    """An engine, why it was chosen (empty if the user named it), and the precision."""

    name: str
    why: str
    precision: str


def choose(
    name: str,
    problem: Problem,
    precisions: Sequence[str] = (),
    refuses: Refusal = lambda kind, asked: "",
    scheme: str = "",
    where: str = "",
    notify: Notify = lambda line: None,
    measure: bool = True,
) -> Choice:
    """The engine that ``name`` stands for.

    Args:
        problem: what is asked of the forces.
        precisions: those that an engine may take, the lowest first; by default that of the problem alone.
        refuses: why the scheme, whose name is ``scheme``, cannot have an engine.
        where: the beginning of messages.
        notify: receives a line if engines are timed.
        measure: allow that; if False, and they were not timed before, it is the last of the direct sums.

    Raises:
        InputError: no such engine exists, or none of those that the name stands for supports what is asked.
        DeviceError: ``gpu`` is requested, and there is no GPU.
    """
    able: dict[str, Problem] = {}
    reasons: dict[str, str] = {}
    for each in _named(name, problem, where):
        if name in STAND_FOR and (missing := _missing_here(each)):
            reasons[each] = missing
            continue
        kind = ENGINES.load(each)
        if name in AUTOMATIC and not kind.can.auto_range:
            continue
        asked, reason = _asked_of(kind, problem, precisions or (problem.precision,), refuses)
        few = kind.can.tree and problem.accuracy is not None and problem.particles < kind.can.auto_range.start
        if not reason and name in AUTOMATIC and few:
            reason = f"direct sums are faster below {kind.can.auto_range.start} particles"
        if reason:
            reasons[each] = reason
        else:
            able[each] = asked
    if not able:
        what = f"engine '{name}'" + (f" and scheme '{scheme}'" if scheme else "")
        raise InputError(f"{where}{what}: {_refused(name, reasons, problem, refuses)}")
    if name not in STAND_FOR:
        ((chosen, asked),) = able.items()
        return Choice(chosen, _because([_why_named(name), _raised(chosen, problem, asked)]), asked.precision)
    candidates = _candidates(able, reasons)
    if name == "tree":
        candidates = dict(list(candidates.items())[:1])
    chosen, why = _fastest(candidates, reasons, problem, notify, measure)
    return Choice(chosen, _because([why, _raised(chosen, problem, able[chosen])]), able[chosen].precision)


def check_name(name: str, where: str = "") -> str:
    """Return ``name``, or its present name, if an engine or several are called so. Raises InputError, starting with
    ``where``, if none is."""
    if name in STAND_FOR:
        return name
    if str(name).partition(":")[0] not in ENGINES:
        known = [*STAND_FOR, *ENGINES, *ENGINES.plugins]
        raise unknown("engine", name, known, where, ENGINES.mark, ENGINES.meant)
    return ENGINES.check(name, where)


def _named(name: str, problem: Problem, where: str) -> list[str]:
    """The engines that a name stands for. Raises InputError if there is none."""
    from nbody import compute

    if name == "gpu":  # users type this for the fastest engine on the GPU
        compute.require("engine 'gpu'")
    if name == "tree":
        return list(TREES)
    if name in AUTOMATIC:
        if compute.SIMULATED and not compute.why_unavailable():  # it has no time worth measuring
            return ["gpu-symmetric", "cpu"] if name == "auto" else ["gpu-symmetric"]
        trees = problem.accuracy is not None
        return [each for each in ORDINARY if (trees or each not in TREES) and (name == "auto" or _on_gpu(each))]
    known_as = check_name(name, where)
    if known_as == "matrix":
        from nbody.forces.matrix.engine import default_rung

        return [f"matrix:{default_rung()[0]}"]
    return [known_as]


def _asked_of(kind: type[Engine], problem: Problem, precisions: Sequence[str], refuses: Refusal) -> tuple[Problem, str]:
    """What is asked of an engine: in the lowest precision that it and the scheme support. And why there is none: in the
    highest one that the engine has."""
    reasons = {}
    for precision in precisions:
        asked = problem._replace(precision=precision)
        reasons[precision] = kind.supports(asked) or refuses(kind, asked)
        if not reasons[precision]:
            return asked, ""
    own = [precision for precision in PRECISIONS if precision in kind.can.precisions and precision in reasons]
    return problem, reasons[own[-1] if own else precisions[0]]


def _on_gpu(name: str) -> bool:
    """True if one of nbody's own engines computes on a GPU."""
    return "gpu" in ENGINES[name].tags


def _missing_here(name: str) -> str:
    from nbody import compute

    reason = compute.why_unavailable() if _on_gpu(name) else ""
    return f"no GPU: {reason}" if reason else ""


def _candidates(able: dict[str, Problem], reasons: dict[str, str]) -> dict[str, Problem]:
    """Of direct sums and of trees: those on the GPU if there are any, that fit the memory, and that may be the fastest."""
    found: dict[str, Problem] = {}
    for of_tree in (False, True):
        kinds = {each: ENGINES.load(each) for each in able if (each in TREES) == of_tree}
        kinds = {each: kind for each, kind in kinds.items() if kind.can.device == "gpu"} or kinds
        fitting = {each: kind for each, kind in kinds.items() if fits(kind, able[each])} if len(kinds) > 1 else kinds
        reasons |= {each: f"{each} needs more memory than is free" for each in kinds if fitting and each not in fitting}
        kinds = fitting or kinds
        in_range = [each for each, kind in kinds.items() if able[each].particles in kind.can.auto_range]
        found |= {each: able[each] for each in in_range or kinds}
    return found


def _fastest(
    candidates: dict[str, Problem], reasons: dict[str, str], problem: Problem, notify: Notify, measure: bool
) -> tuple[str, str]:
    """The fastest of the candidates, from the cache or timed now, and why."""
    from nbody import compute

    kinds = {each: ENGINES.load(each) for each in candidates}
    trees = [each for each in kinds if each in TREES]
    on_gpu, accuracy = any(kind.can.device == "gpu" for kind in kinds.values()), problem.accuracy
    device = compute.facts().name if on_gpu else machine.cpu_name()
    for_bodies = f"for {problem.particles} particles on {device}"
    if accuracy is not None:
        for_bodies = f"at a median force error of {accuracy:g} {for_bodies}"
    one_precision = len({asked.precision for asked in candidates.values()}) == 1
    if trees and one_precision and problem.particles >= ALWAYS_TREE[kinds[trees[0]].can.device]:
        return trees[0], f"the fastest {for_bodies}"
    if len(candidates) == 1:
        (chosen,) = candidates
        return chosen, _why_alone(chosen, reasons, for_bodies)
    entry = key(candidates, device)
    known = cache.cached_values(KIND).get(entry)
    chosen = known if isinstance(known, str) else ""
    if chosen not in candidates:
        if not measure:
            unmeasured = [each for each in kinds if each not in trees][-1]
            return unmeasured, f"{device} is not measured yet: the first run does that"
        at = f" at {accuracy:g}" if accuracy is not None else f" in {problem.precision}"
        notify(f"measuring once which engine is the fastest for about {bucket(problem.particles)} particles{at}")
        times = {each: seconds(kinds[each], asked) for each, asked in candidates.items()}
        chosen = min(times, key=lambda each: times[each])
        if all(map(math.isfinite, times.values())):
            cache.store(KIND, entry, chosen)
    others = " and ".join(f"{each} in {asked.precision}" for each, asked in candidates.items() if each != chosen)
    return chosen, f"the fastest {for_bodies}, measured beside {others}"


def _why_alone(chosen: str, reasons: dict[str, str], for_bodies: str) -> str:
    """Why an engine is the only candidate: why there is no engine on the GPU, and no tree, if these were considered."""
    found = [why for each, why in reasons.items() if _on_gpu(each) and each not in TREES]
    no_gpu = found[-1] if found and (not _on_gpu(chosen) or "memory" in found[-1]) else f"the fastest {for_bodies}"
    no_tree = [why for each, why in reasons.items() if each in TREES and not why.startswith("no GPU")]
    because = [no_gpu, f"no tree: {no_tree[-1]}"] if no_tree and chosen not in TREES else [no_gpu]
    return _because(because)


def _raised(chosen: str, problem: Problem, asked: Problem) -> str:
    """Why an engine takes another precision than the default."""
    reason = "" if asked.precision == problem.precision else ENGINES.load(chosen).supports(problem)
    return f"{asked.precision}: {reason}" if reason else ""


def _why_named(name: str) -> str:
    """Why a name stands for another one: ``matrix`` for its default rung, and a name of earlier versions."""
    if name in ENGINES.renamed:
        return f"instead of '{name}', which was removed; the bits are the same"
    if name != "matrix":
        return ""
    from nbody.forces.matrix.engine import default_rung

    return default_rung()[1]


def _because(reasons: Sequence[str]) -> str:
    return "; ".join(reason for reason in reasons if reason)


def _refused(name: str, reasons: dict[str, str], problem: Problem, refuses: Refusal) -> str:
    """The line about engines that do not support what is asked: why one of them does not, and what would be supported."""

    def supported(engine: str, **changed: Any) -> bool:
        kind, asked = ENGINES.load(engine), problem._replace(**changed)
        return not (kind.supports(asked) or refuses(kind, asked))

    here = [each for each in reasons if name not in STAND_FOR or not _missing_here(each)]
    on_gpus = [each for each in reasons if name in STAND_FOR and problem.gpus > 1 and _on_gpu(each)]
    first = (on_gpus or here or list(reasons))[0]
    precisions = [each for each in PRECISIONS if first in here and supported(first, precision=each)]
    engines = [each for each in ORDINARY if not _missing_here(each) and supported(each)]
    alone = problem.gpus > 1 and any(supported(each, gpus=1) for each in here)
    remedies = [f"--precision {' or '.join(precisions)}"] * bool(precisions)
    remedies += [f"--engine {' or '.join(engines)}"] * bool(engines)
    verb = "use 'nbody run' with" if alone else "choose"  # 'nbody resume' has --gpus alone
    ways = ["leave gpus out"] * alone + [f"{verb} {', or '.join(remedies)}"] * bool(remedies)
    return _because([reasons[first], ", or ".join(ways)])
