"""The engine of a run: what the scenario names, or what ``auto`` takes, with or without an accuracy; and its precision."""

from nbody.errors import InputError
from nbody.forces.choose import Notify, choose
from nbody.forces.engine import Engine
from nbody.forces.options import Accuracy
from nbody.forces.problem import PRECISIONS
from nbody.forces.registry import AUTOMATIC, ENGINES, STAND_FOR
from nbody.forces.tree.options import TreeOptions
from nbody.integrators.integrator import Integrator
from nbody.run.gpus import Chosen, with_gpus
from nbody.scenario import Scenario
from nbody.scenario.fields import Group, unknown_key, validated
from nbody.scenario.groups import EngineChoice


def chosen_engine(
    scenario: Scenario, integrator: Integrator, count: int, ranks: int, notify: Notify, measure: bool
) -> Chosen:
    """The engine of a run. A precision that the scenario names is kept; so is the default, unless ``auto`` or a tree is
    asked for an accuracy that float32 does not have.

    Raises:
        InputError: there is no such engine, it has no such accuracy, or it does not support what the scheme needs.
    """
    written = scenario.engine
    accuracy = _accuracy(scenario)
    asked = integrator.facts.problem(scenario.gravity, scenario.precision, count)._replace(
        accuracy=accuracy, ranks=ranks
    )
    free = accuracy is not None and "precision" not in scenario.source.values
    lowest = PRECISIONS.index(scenario.precision)
    where = scenario.where("engine", "integrator.scheme", "precision")
    found = choose(
        written.name, asked, PRECISIONS[lowest:] if free else (), integrator.supports, scenario.integrator.scheme, where,
        notify, measure,
    )  # fmt: skip
    options = written
    if (
        written.options
        and written.name in AUTOMATIC
        and "accuracy" not in ENGINES.load(found.name).Options.model_fields
    ):
        gpus = {key: value for key, value in written.options.items() if key == "gpus"}
        options = EngineChoice(name=written.name, **gpus)  # direct sums are more accurate than what was asked for
    return with_gpus(scenario, Chosen(found.name, found.why, options, found.precision), count, notify)


def _accuracy(scenario: Scenario) -> float | None:
    """The accuracy that is asked for; None if there is none. Raises InputError if the engine has none to choose."""
    written = scenario.engine
    if "accuracy" not in written.options and not (written.options and written.name in AUTOMATIC):
        return None
    kind = _options_of(written.name)
    if written.name in AUTOMATIC:
        for option in written.options:
            if option not in kind.model_fields:
                message = unknown_key(option, kind.model_fields, ("name", *kind.model_fields))
                raise InputError(scenario.where(f"engine.{option}") + message)
    elif "accuracy" not in kind.model_fields:
        raise InputError(
            f"{scenario.where('engine.accuracy')}engine '{written.name}' sums over all pairs and has no accuracy to choose; "
            "leave it out, or choose engine tree or auto"
        )
    asked = {key: value for key, value in written.options.items() if key in ("accuracy", "gpus")}
    found: float | None = validated(kind, asked, scenario.source, ("engine",)).accuracy  # type: ignore[attr-defined]
    return found


def _options_of(name: str) -> type[Group]:
    if name in STAND_FOR:
        return Accuracy if name in AUTOMATIC else TreeOptions
    kind: type[Engine] = ENGINES.load(name)
    return kind.Options
