"""The engine of a run: what the scenario names, or what ``auto`` takes, with or without an accuracy; and its precision."""

from collections.abc import Callable

from nbody.errors import InputError
from nbody.forces import AUTOMATIC, ENGINES, resolve
from nbody.forces.by_accuracy import (
    Accuracy,
    check_accuracy,
    direct_or_tree,
    finest,
    lowest_precisions,
    refusal_for,
)
from nbody.forces.engine import Engine
from nbody.forces.tree.options import TreeOptions
from nbody.integrators.integrator import Integrator
from nbody.parallel import team
from nbody.run.gpus import Chosen, with_gpus
from nbody.scenario import Scenario
from nbody.scenario.fields import unknown_key, validated
from nbody.scenario.groups import EngineChoice


def chosen_engine(
    scenario: Scenario, integrator: Integrator, count: int, notify: Callable[[str], None], measure: bool
) -> Chosen:
    """The engine of a run. A precision that the scenario names is kept; so is the default, unless ``auto`` or a tree is
    asked for an accuracy that float32 does not have.

    Raises:
        InputError: there is no such engine, or it has no such accuracy.
    """
    written = scenario.engine
    accuracy = _wanted_accuracy(scenario) if written.name in AUTOMATIC else None
    precision: str = scenario.precision

    def direct(precision: str, measure: bool = measure) -> tuple[str, str]:
        return _without_accuracy(scenario, integrator, precision, count, notify, measure)

    if accuracy is None:
        name, why = direct(precision)
        _refuse_accuracy(scenario, name)
        precision = _precision_of_tree(scenario, name, notify)
        if precision != scenario.precision:
            name, why = direct(precision)
        return with_gpus(scenario, Chosen(name, why, written, precision), count, notify)

    def offered(precision: str) -> bool:
        kind = ENGINES.load(direct(precision, False)[0])
        if precision not in kind.precisions or (precision == "mixed" and scenario.gravity.per_species):
            return False
        return not integrator.refusal(kind, precision)

    of_tree = precision
    if _precision_is_free(scenario):
        precision, of_tree = lowest_precisions(accuracy, offered)

    def refused(kind: type[Engine]) -> str:
        return refusal(integrator, kind, scenario, of_tree)

    name, why = direct_or_tree(
        direct(precision), accuracy, precision, count, notify, measure, refusal_for(written.name, refused), of_tree
    )
    tree = ENGINES.load(name).approximate
    kept = {"gpus": written.options["gpus"]} if "gpus" in written.options else {}
    options = written if tree else EngineChoice(name=written.name, **kept)  # direct sums are more accurate
    precision = of_tree if tree else precision
    if precision != scenario.precision:
        lower, sums = scenario.precision, "a tree has" if tree else "direct sums have"
        why += f"; {precision}, because {sums} an accuracy of {finest(lower, tree):g} at best in {lower}"
    return with_gpus(scenario, Chosen(name, why, options, precision), count, notify)


def _without_accuracy(
    scenario: Scenario, integrator: Integrator, precision: str, count: int, notify: Callable[[str], None], measure: bool
) -> tuple[str, str]:
    """The engine that the scenario names, or that ``auto`` takes without an accuracy; and why."""
    name, needs = scenario.engine.name, integrator.needs
    on_gpu = ENGINES.load("gpu-symmetric")
    offered = not needs & ~on_gpu.offers  # else :func:`resolve` says what is missing
    if name == "auto" and offered and integrator.refusal(on_gpu, precision):
        what = "computes its own forces" if integrator.own_forces else "works on the CPU"
        return "cpu", f"scheme '{scenario.integrator.scheme}' {what}"

    def refused(kind: type[Engine]) -> str:
        return refusal(integrator, kind, scenario, precision)

    softenings = scenario.gravity.per_species
    where = scenario.where("engine")
    return resolve(name, precision, count, where, notify, measure, needs, softenings, refusal=refused)


def _refuse_accuracy(scenario: Scenario, name: str) -> None:
    """Raise an InputError if an engine that has no accuracy to choose is asked for one."""
    if "accuracy" in scenario.engine.options and "accuracy" not in ENGINES.load(name).Options.model_fields:
        raise InputError(
            f"{scenario.where('engine.accuracy')}engine '{name}' sums over all pairs and has no accuracy to choose; leave "
            "it out, or choose engine tree or auto"
        )


def _precision_of_tree(scenario: Scenario, name: str, notify: Callable[[str], None]) -> str:
    """The lowest precision in which the tree that a scenario names has its accuracy, if the scenario names no precision;
    otherwise, and for other engines, that of the scenario. Raises InputError."""
    kind, lower, written = ENGINES.load(name), scenario.precision, scenario.engine
    asked = {key: value for key, value in written.options.items() if key == "accuracy"}
    if not asked or not issubclass(kind.Options, TreeOptions) or not _precision_is_free(scenario):
        return lower
    accuracy = validated(TreeOptions, asked, scenario.source, ("engine",)).accuracy
    if accuracy >= (least := finest(lower, True)):
        return lower
    precision = lowest_precisions(accuracy, lambda each: True)[1]
    if written.name == name and precision not in kind.precisions:
        where = scenario.where("engine.accuracy")
        raise InputError(
            f"{where}engine '{name}' has no accuracy of {accuracy:g}; ask for {least:g} or more, or choose engine tree"
        )
    notify(f"precision: {precision} (a tree has an accuracy of {least:g} at best in {lower})")
    return precision


def _precision_is_free(scenario: Scenario) -> bool:
    return "precision" not in scenario.source.values


def _wanted_accuracy(scenario: Scenario) -> float | None:
    """The accuracy beside ``auto``; None if there is none. Raises InputError."""
    written = scenario.engine.options
    for option in written:
        if option not in Accuracy.model_fields:
            message = unknown_key(option, Accuracy.model_fields, ("name", *Accuracy.model_fields))
            raise InputError(scenario.where(f"engine.{option}") + message)
    accuracy = validated(Accuracy, written, scenario.source, ("engine",)).accuracy
    if accuracy is not None:
        most = "float64" if _precision_is_free(scenario) else scenario.precision
        check_accuracy(accuracy, most, scenario.where("engine.accuracy"))
    return accuracy


def refusal(integrator: Integrator, kind: type[Engine], scenario: Scenario, precision: str) -> str:
    """Why the scheme, or the law, cannot have an engine in a precision; empty if it can."""
    if kind.approximate and team().size > 1 and not kind.divides_over_ranks:
        return "it does not divide its work over ranks; start the run alone"
    if kind.approximate and (integrator.own_forces or integrator.needs & ~kind.offers):
        return "a tree gives accelerations only, and this scheme needs more; choose leapfrog, yoshida4 or yoshida6"
    if kind.approximate and scenario.gravity.per_species:
        return "a tree has one softening length for all bodies"
    return integrator.refusal(kind, precision)
