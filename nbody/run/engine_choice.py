"""The engine of a run: what the scenario names, or what ``auto`` takes, with its options and the precision of the run."""

from typing import Any

from nbody.errors import InputError
from nbody.forces.choose import Choice, Notify, check_name, choose
from nbody.forces.options import Accuracy, GpuOptions, gpus_asked
from nbody.forces.problem import PRECISIONS, Problem
from nbody.forces.registry import AUTOMATIC, ENGINES, STAND_FOR
from nbody.integrators.integrator import Integrator
from nbody.run.gpus import notify_if_few
from nbody.scenario import Scenario
from nbody.scenario.fields import Group, unknown_key, validated
from nbody.scenario.groups import EngineChoice


def chosen_engine(
    scenario: Scenario, integrator: Integrator, asked: Problem, notify: Notify, measure: bool
) -> tuple[Choice, EngineChoice]:
    """The engine for what a run asks of the forces, and the options that it gets. A precision that the scenario names is
    kept; so is the default, unless an accuracy is asked for that float32 does not have.

    Raises:
        InputError: there is no such engine, or it does not support what is asked; or there are fewer GPUs.
    """
    written, options = scenario.engine.name, scenario.engine.options
    where = scenario.where("engine", "integrator.scheme", "precision")
    model = _options_of(check_name(written, where))
    if written in AUTOMATIC:
        for option in options:
            if option not in model.model_fields:
                message = unknown_key(option, model.model_fields, ("name", *model.model_fields))
                raise InputError(scenario.where(f"engine.{option}") + message)
    gpus = _written(scenario, GpuOptions, "gpus")
    accuracy = _written(scenario, model if "accuracy" in model.model_fields else Accuracy, "accuracy")
    free = accuracy is not None and "precision" not in scenario.source.values
    found = choose(
        written, asked._replace(accuracy=accuracy, gpus=gpus_asked(gpus)),
        PRECISIONS[PRECISIONS.index(scenario.precision) :] if free else (),
        integrator.supports, scenario.integrator.scheme, where, notify, measure,
    )  # fmt: skip
    kind = ENGINES.load(found.name)
    if gpus_asked(gpus) > 1:
        notify_if_few(kind, gpus, asked.particles, scenario.where("engine.gpus"), notify)
    left_out = ["gpus"] * (gpus_asked(gpus) == 1)
    if "accuracy" not in kind.Options.model_fields:
        left_out.append("accuracy")
        if accuracy is not None and not found.why:
            found = found._replace(why=f"it sums over all pairs, which is more accurate than {accuracy:g}")
    kept = {key: value for key, value in options.items() if key not in left_out}
    return found, EngineChoice(name=written, **kept) if options else scenario.engine


def _options_of(name: str) -> type[Group]:
    """The options of an engine; those that nbody reads itself, if the name stands for several."""
    if name in STAND_FOR:
        return Accuracy
    model: type[Group] = ENGINES.load(name).Options
    return model


def _written(scenario: Scenario, model: type[Group], option: str) -> Any:
    """The value of an engine's option, checked; None if it is not written."""
    options = scenario.engine.options
    if option not in options:
        return None
    return getattr(validated(model, {option: options[option]}, scenario.source, ("engine",)), option)
