"""Whether a scheme and an engine support what a scenario asks: one question, and one line if they don't."""

from dataclasses import replace
from typing import Any

from nbody.errors import InputError
from nbody.fields import chosen_fields
from nbody.forces.engine import Engine
from nbody.integrators import INTEGRATORS, OF_SYSTEMS
from nbody.integrators.integrator import Integrator, unsupported
from nbody.law import LAWS, Gravity
from nbody.scenario import Scenario


def scheme_for(scenario: Scenario, name: str) -> type[Integrator]:
    """The class that makes the steps of a scenario by a scheme: in an ensemble the one of many systems, if there is one."""
    registry = OF_SYSTEMS if scenario.ensemble and name in OF_SYSTEMS else INTEGRATORS
    kind: type[Integrator] = registry.load(name)
    return kind


def asked_of_run(scenario: Scenario, count: int, ranks: int) -> dict[str, Any]:
    """What a run of so many bodies asks: values of a :class:`~nbody.forces.problem.Problem` besides the law, the precision,
    what the scheme needs, and what the engine's options say."""
    return {
        "particles": count, "ranks": ranks, "fields": tuple(map(type, chosen_fields(scenario))),
        "systems": scenario.ensemble.count if scenario.ensemble else 0, "collisions": scenario.collisions is not None,
        "unlimited": scenario.integrator.dt is None,
    }  # fmt: skip


def require_support(scenario: Scenario, engine: type[Engine], precision: str, asked: dict[str, Any]) -> None:
    """Raise an InputError if a scenario's scheme, with an engine, does not support what is ``asked``, see
    :func:`asked_of_run`. The line names what is to blame: the first thing without which it would be supported."""
    ensemble, law, chosen = scenario.ensemble, scenario.gravity, scenario.integrator.scheme

    def reason(scheme: str = chosen, gravity: Gravity = law, precision: str = precision, **changed: Any) -> str:
        return unsupported(scheme_for(scenario, scheme), engine, gravity, precision, **asked | changed)

    if not (why := reason()):
        return
    others = [name for name in INTEGRATORS if INTEGRATORS.load(name).facts.order > 1 and not reason(scheme=name)]
    laws = [name for name in LAWS if not reason(gravity=_softened(law, name))]
    causes = (
        (
            "gravity.length",
            not reason(gravity=replace(law, length=0.1)) if law.per_species else False,
            "give one length",
        ),
        ("gravity.softening", laws, f"write 'softening: {' or '.join(laws)}'"),
        ("integrator.dt", not reason(unlimited=False), "give the largest step, 'dt'"),
        ("fields", not all(reason(fields=(each,)) for each in asked["fields"]), "remove one of them"),
        ("fields", not reason(fields=()), "remove 'fields'"),
        ("collisions", not reason(collisions=False), "remove 'collisions'"),
        ("precision", not reason(precision="float64"), "choose precision float64"),
    )
    key, fix = next(((key, fix) for key, is_cause, fix in causes if is_cause), ("integrator.scheme", ""))
    schemes = f"choose scheme {' or '.join(others[:3])}" if others else ""
    where = scenario.where(key, "ensemble" if ensemble else "integrator.scheme")
    remedy = ", or ".join(filter(None, (schemes, fix)))
    line = why.replace("this scheme", f"scheme '{chosen}'", 1)
    raise InputError(f"{where}{line}" + (f"; {remedy}" if remedy else ""))


def _softened(law: Gravity, name: str) -> Gravity:
    """The law with another softening."""
    return replace(law, softening=name, length=(law.shortest or 0.1) if LAWS.load(name).has_length else 0.0)
