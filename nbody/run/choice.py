"""The scheme and the engine of a run: what supports all that a scenario asks for, or one line that says why nothing does."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from nbody.diagnostics.observables import OF_TANGENTS
from nbody.errors import InputError
from nbody.fields import chosen_fields
from nbody.forces.choose import ORDINARY, Choice, check_name, choose
from nbody.forces.engine import Engine
from nbody.forces.options import Accuracy, GpuOptions, gpus_asked
from nbody.forces.problem import PRECISIONS, Problem, Refusal, SchemeProblem
from nbody.forces.registry import AUTOMATIC, ENGINES, STAND_FOR
from nbody.integrators import INTEGRATORS, OF_SYSTEMS
from nbody.integrators.integrator import Integrator, unsupported
from nbody.integrators.tangents import Tangents
from nbody.law import Gravity
from nbody.run.gpus import notify_if_few
from nbody.scenario import Scenario
from nbody.scenario.groups import EngineChoice
from nbody.scenario.model import component
from nbody.scenario.values import Group, unknown_key, validated
from nbody.whole_file import Notify

ON_THE_HOST = tuple(name for name in ORDINARY if "gpu" not in ENGINES[name].tags)
"""The engines that every machine has."""


def asked_of_run(scenario: Scenario, count: int, ranks: int, backward: bool = False) -> dict[str, Any]:
    """What a run of so many bodies asks: values of a :class:`~nbody.forces.problem.Problem` besides the law, the precision,
    what the scheme needs, and what the engine's options say."""
    fields, unlimited = chosen_fields(scenario), scenario.integrator.dt is None
    collisions = scenario.collisions.rule if scenario.collisions else ""
    changes, tangents = scenario.escape is not None, tangents_of(scenario)
    of_scheme = SchemeProblem(tuple(fields), collisions, changes, unlimited, backward, tangents)
    systems = scenario.ensemble.count if scenario.ensemble else 0
    return {"particles": count, "ranks": ranks, "systems": systems, "of_scheme": of_scheme}


def tangents_of(scenario: Scenario) -> int:
    """The number of tangent vectors that a scenario asks for."""
    return int(not set(OF_TANGENTS).isdisjoint(scenario.record.observables or ()))


# --- The scheme ---


def scheme_for(scenario: Scenario, name: str) -> type[Integrator]:
    """The class that makes the steps of a scenario by a scheme: in an ensemble the one of many systems, if there is one."""
    of_systems = scenario.ensemble and name in OF_SYSTEMS  # of other packages too
    kind: type[Integrator] = (OF_SYSTEMS if of_systems else INTEGRATORS).load(name)
    return kind


def scheme_of(scenario: Scenario, dt: float | None, tangents: Tangents | None = None) -> Integrator:
    """The scenario's scheme with a time step, and with tangent vectors, by default those of its observables. One that is not
    a table of moves knows no negative steps: back in time :class:`~nbody.run.stepper.Stepper` turns the velocities round."""
    kind, options = component(scenario, "integrator", scenario.integrator, INTEGRATORS)
    made: Any = scheme_for(scenario, scenario.integrator.scheme)
    dt = dt if dt is None or made.facts.moves else abs(dt)
    more: dict[str, Any] = {}
    if scenario.ensemble and made is not kind:
        more["systems"] = scenario.ensemble.count
    if tangents or (count := tangents_of(scenario)):
        more["tangents"] = tangents or Tangents(count, scenario.ensemble.count if scenario.ensemble else 1)
    try:
        return made(dt, options, **more)  # type: ignore[no-any-return]
    except InputError as error:
        raise InputError(scenario.where("integrator.dt", "integrator.scheme") + str(error)) from None


def in_the_schemes_precision(scenario: Scenario, scheme: Integrator, notify: Notify) -> Scenario:
    """The scenario in float64, if it names no precision and the scheme computes in float64 alone."""
    why = partial(unsupported_by_any, type(scheme), scenario.gravity)
    if "precision" in scenario.source.values or not why(scenario.precision) or why("float64"):
        return scenario
    notify(f"precision: float64 (scheme '{scenario.integrator.scheme}' computes in it)")
    return scenario.in_precision("float64")


def unsupported_by_any(scheme: type[Integrator], gravity: Gravity, precision: str, **asked: Any) -> str:
    """Why a scheme can't be combined for what is asked with an engine that itself supports it; empty if it can with one."""
    problem = scheme.facts.problem(gravity, precision)._replace(**asked)
    why = ""
    for name in ON_THE_HOST:
        if not (kind := ENGINES.load(name)).supports(problem):
            if not (reason := scheme.supports(kind, problem)):
                return ""
            why = why or reason
    if why:
        return why
    first = ENGINES.load(ON_THE_HOST[0])
    return scheme.supports(first, problem) or first.supports(problem)


def require_support(scenario: Scenario, engine: type[Engine] | None, precision: str, asked: dict[str, Any]) -> None:
    """Raise an InputError if a scenario's scheme, with an engine or (None) with any, does not support what is ``asked``, see
    :func:`asked_of_run`. The line names the key that is to blame, the schemes that support it, and what else helps."""

    def reason(scheme: str) -> str:
        kind = scheme_for(scenario, scheme)
        if engine is None:
            return unsupported_by_any(kind, scenario.gravity, precision, **asked)
        return unsupported(kind, engine, scenario.gravity, precision, **asked)

    if not (why := reason(chosen := scenario.integrator.scheme)):
        return
    key, remedy = (why.key, why.remedy) if isinstance(why, Refusal) else ("integrator.scheme", "")
    others = [name for name in INTEGRATORS if INTEGRATORS.load(name).facts.order > 1 and not reason(name)]
    others.sort(key=lambda name: INTEGRATORS.load(name).facts.own_forces != INTEGRATORS.load(chosen).facts.own_forces)
    schemes = f"choose scheme {' or '.join(others[:3])}" if others else ""
    where = scenario.where(key, "ensemble" if scenario.ensemble else "integrator.scheme")
    remedies = ", or ".join(filter(None, (schemes, remedy)))
    line = why.replace("this scheme", f"scheme '{chosen}'", 1)
    raise InputError(f"{where}{line}" + (f"; {remedies}" if remedies else ""))


# --- The engine ---


def chosen_engine(
    scenario: Scenario, scheme: Integrator, asked: Problem, precisions: Sequence[str], notify: Notify, measure: bool
) -> tuple[Choice, EngineChoice]:
    """The engine for what a run asks of the forces, and the options that it gets. A precision that the scenario names is
    kept; so is the default, unless float32 lacks the accuracy that is asked for, or none is asked for and the engine sums so
    few bodies in float64 anyway. ``precisions``: those that it may take where the scenario leaves the choice, else none.
    Raises InputError: there is no such engine, or it does not support what is asked; or there are fewer GPUs."""
    written, options = scenario.engine.name, scenario.engine.options
    places = "engine", "integrator.scheme", "precision"
    model: type[Group] = Accuracy  # what nbody reads itself, if the name stands for several engines
    if written not in STAND_FOR:
        model = ENGINES.load(check_name(written, scenario.where(*places))).Options
    if written in AUTOMATIC:
        for option in options:
            if option not in model.model_fields:
                message = unknown_key(option, model.model_fields, ("name", *model.model_fields))
                raise InputError(scenario.where(f"engine.{option}") + message)
    gpus = _written(scenario, GpuOptions, "gpus")
    accuracy = _written(scenario, model if "accuracy" in model.model_fields else Accuracy, "accuracy")
    free = "precision" not in scenario.source.values
    if accuracy is not None and free:
        precisions = PRECISIONS[PRECISIONS.index(scenario.precision) :]
    asked = asked._replace(accuracy=accuracy, gpus=gpus_asked(gpus))
    try:
        found = choose(written, asked, precisions, scheme.supports, scenario.integrator.scheme, "", notify, measure)
    except InputError as error:
        raise InputError(f"{scenario.where(*places)}{error}") from None
    kind, double = ENGINES.load(found.name), asked._replace(precision="float64")
    if free and accuracy is None and asked.particles <= kind.can.few and not scheme.supports(kind, double):
        found = found._replace(precision="float64")
    if gpus_asked(gpus) > 1:
        notify_if_few(kind, gpus, asked.particles, scenario.where("engine.gpus"), notify)
    left_out = ["gpus"] * (gpus_asked(gpus) == 1)
    if "accuracy" not in kind.Options.model_fields:
        left_out.append("accuracy")
        if accuracy is not None and not found.why:
            found = found._replace(why=f"it sums over all pairs, which is more accurate than {accuracy:g}")
    kept = {key: value for key, value in options.items() if key not in left_out}
    return found, EngineChoice(name=written, **kept) if options else scenario.engine


def engine_of_systems(scenario: Scenario, scheme: Integrator, asked: dict[str, Any]) -> tuple[Choice, type[Engine]]:
    """The engine of an ensemble, which is called by its device, and its class. The schemes compute the forces; the engine
    adds the energies of frames, in float64 on every device."""
    from nbody import compute
    from nbody.forces.systems import systems_engine

    written, systems = scenario.engine.name, asked["systems"]
    precision, why = scenario.precision, ""
    if written == "auto":
        if why := compute.why_unavailable() or "the simulator" * compute.SIMULATED:
            why = f"no GPU: {why}"
        else:
            on_gpu = systems_engine("gpu")
            why = unsupported(type(scheme), on_gpu, scenario.gravity, "float64", **asked)
        device, why = ("cpu", why) if why else ("gpu", "one lane of a warp per planet")
    elif written == "gpu":
        device = "gpu"
    else:
        problem = Problem(scenario.gravity, systems=systems)
        named = choose(written, problem, where=scenario.where("engine", "ensemble"), measure=False)
        device = ENGINES.load(named.name).can.device
    return Choice(device, why, precision), systems_engine(device)


def _written(scenario: Scenario, model: type[Group], option: str) -> Any:
    """The value of an engine's option, checked; None if it is not written."""
    options = scenario.engine.options
    if option not in options:
        return None
    return getattr(validated(model, {option: options[option]}, scenario.source, ("engine",)), option)
