"""The engine of a run: what the scenario names, or what ``auto`` takes, with or without an accuracy."""

from collections.abc import Callable

from nbody.errors import InputError
from nbody.forces import AUTOMATIC, ENGINES, resolve
from nbody.forces.by_accuracy import Accuracy, check_accuracy, direct_or_tree
from nbody.forces.engine import Engine
from nbody.integrators.integrator import Integrator
from nbody.run.gpus import Chosen, with_gpus
from nbody.scenario import Scenario
from nbody.scenario.fields import unknown_key, validated
from nbody.scenario.groups import EngineChoice


def chosen_engine(
    scenario: Scenario, integrator: Integrator, count: int, notify: Callable[[str], None], measure: bool
) -> tuple[str, str, EngineChoice]:
    """The engine of a run, why ``auto`` has chosen it, and its options as written.

    Raises:
        InputError: there is no such engine, or it has no such accuracy.
    """
    written, where, precision = scenario.engine, scenario.where("engine"), scenario.precision
    accuracy = _wanted_accuracy(scenario) if written.name in AUTOMATIC else None

    def refused(kind: type[Engine]) -> str:
        return refusal(integrator, kind, scenario)

    on_gpu = ENGINES.load("gpu-symmetric")
    offered = not integrator.needs & ~on_gpu.offers  # else :func:`resolve` says what is missing
    if written.name == "auto" and offered and integrator.refusal(on_gpu, precision):
        what = "computes its own forces" if integrator.own_forces else "works on the CPU"
        name, why = "cpu", f"scheme '{scenario.integrator.scheme}' {what}"
        if accuracy is not None:
            name, why = direct_or_tree((name, why), accuracy, precision, count, notify, measure, refused)
    else:
        softenings = scenario.gravity.per_species
        name, why = resolve(
            written.name, precision, count, where, notify, measure, integrator.needs, softenings, accuracy, refused
        )
    if accuracy is not None and not ENGINES.load(name).approximate:
        kept = {"gpus": written.options["gpus"]} if "gpus" in written.options else {}
        written = EngineChoice(name=written.name, **kept)  # direct sums are more accurate
        chosen = with_gpus(scenario, Chosen(name, why, written), count, notify)
        return chosen.name, chosen.why, chosen.written
    chosen = with_gpus(scenario, Chosen(name, why, written), count, notify)
    name, why, written = chosen.name, chosen.why, chosen.written
    if "accuracy" in written.options and "accuracy" not in ENGINES.load(name).Options.model_fields:
        raise InputError(
            f"{scenario.where('engine.accuracy')}engine '{name}' sums over all pairs and has no accuracy to choose; leave "
            "it out, or choose engine tree or auto"
        )
    return name, why, written


def _wanted_accuracy(scenario: Scenario) -> float | None:
    """The accuracy beside ``auto``; None if there is none. Raises InputError."""
    written = scenario.engine.options
    for option in written:
        if option not in Accuracy.model_fields:
            message = unknown_key(option, Accuracy.model_fields, ("name", *Accuracy.model_fields))
            raise InputError(scenario.where(f"engine.{option}") + message)
    accuracy = validated(Accuracy, written, scenario.source, ("engine",)).accuracy
    if accuracy is not None:
        check_accuracy(accuracy, scenario.precision, scenario.where("engine.accuracy"))
    return accuracy


def refusal(integrator: Integrator, kind: type[Engine], scenario: Scenario) -> str:
    """Why the scheme, or the law, cannot have an engine; empty if it can."""
    if kind.approximate and (integrator.own_forces or integrator.needs & ~kind.offers):
        return "a tree gives accelerations only, and this scheme needs more; choose leapfrog, yoshida4 or yoshida6"
    if kind.approximate and scenario.gravity.per_species:
        return "a tree has one softening length for all bodies"
    return integrator.refusal(kind, scenario.precision)
