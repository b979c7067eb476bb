"""``supports`` is the only refusal: what it accepts makes a step, and what it refuses ends with its reason in one line."""

import pytest

from nbody import Scenario, Simulation
from nbody.errors import InputError
from nbody.forces import ENGINES
from nbody.forces.systems import systems_engine
from nbody.integrators import INTEGRATORS
from nbody.run.choice import asked_of_run, scheme_for
from nbody.run.plan import plan

ENGINES_HERE = ("reference", "cpu", "cpu-tree", "matrix:numpy")

PLANETS = {"generator": "planets", "bodies": [{"m": 1.0}, {"m": 1e-5, "a": 1.0}, {"m": 1e-5, "a": 2.0}]}

ASKED = {
    "nothing else": {},
    "float32": {"precision": "float32"},
    "mixed": {"precision": "mixed"},
    "softening": {"gravity": {"softening": "plummer", "length": 0.1}},
    "a field": {"fields": [{"field": "plummer", "mass": 1.0, "b": 1.0}]},
    "a field, no largest step": {"fields": [{"field": "plummer", "mass": 1.0, "b": 1.0}], "integrator": {"end": 0.01}},
    "relativity": {"fields": [{"field": "post_newtonian", "c": 1e3}]},
    "relativity and a field": {
        "fields": [{"field": "post_newtonian", "c": 1e3}, {"field": "plummer", "mass": 1.0, "b": 1.0}]
    },
    "relativity, softened": {
        "fields": [{"field": "post_newtonian", "c": 1e3}],
        "gravity": {"softening": "plummer", "length": 0.1},
    },
    "an accuracy": {"engine": {"accuracy": 1e-3}},
    "a great accuracy": {"engine": {"accuracy": 1e-20}},
    "two GPUs": {"engine": {"gpus": 2}},
    "an ensemble": {"ensemble": {"systems": 2, "vary": {"initial.bodies.1.M": [0.0, 90.0]}}},
    "a softened ensemble": {
        "ensemble": {"systems": 2, "vary": {"initial.bodies.1.M": [0.0, 90.0]}},
        "gravity": {"softening": "plummer", "length": 0.1},
    },
}


def described(engine, scheme, asked):
    """A scenario that asks this of an engine and a scheme."""
    common = {"initial": PLANETS, "precision": "float64", "record": {"dt": 0.01}} | asked
    common["engine"] = {"name": engine, **asked.get("engine", {})}
    common["integrator"] = {"scheme": scheme, **asked.get("integrator", {"dt": 0.01, "end": 0.01})}
    return Scenario.from_dict(common)


def reasons(scenario, engine, scheme):
    """What the scheme and the engine answer: in the scenario's precision, and in float64."""
    options, count = scenario.engine.options, 3 * (scenario.ensemble.count if scenario.ensemble else 1)
    asked = asked_of_run(scenario, count, ranks=1) | {key: options[key] for key in options}
    made = scheme_for(scenario, scheme)
    kind = systems_engine("cpu") if scenario.ensemble else ENGINES.load(engine)
    found = []
    for precision in (scenario.precision, "float64"):
        problem = made.facts.problem(scenario.gravity, precision)._replace(**asked)
        found.append([made.supports(kind, problem), kind.supports(problem)])
    return found


@pytest.mark.parametrize("engine", ENGINES_HERE)
@pytest.mark.parametrize("asked", ASKED)
def test_what_supports_accepts_runs_and_what_it_refuses_ends_with_its_reason(engine, asked):
    for scheme, kind in ((name, INTEGRATORS.load(name)) for name in INTEGRATORS):
        if not kind.facts.adaptive and asked == "a field, no largest step":
            continue  # steps of one length need one
        scenario = described(engine, scheme, ASKED[asked])
        if scenario.ensemble and engine not in ("reference", "cpu"):
            continue  # the name of an engine stands for a device
        now, in_float64 = reasons(scenario, engine, scheme)
        if not any(now):
            if engine == "cpu-tree" or (kind.facts.own_forces and (engine != "cpu" or scenario.fields)):
                plan(scenario)  # its kernels are compiled in test_tree.py, in tests of fields, or are those of the CPU
            else:
                Simulation(scenario).run()
            continue
        with pytest.raises(InputError) as refused:
            Simulation(scenario)
        line = str(refused.value).replace(f"scheme '{scheme}'", "this scheme")
        told = [str(why) for why in (*now, *in_float64) if why]
        assert any(why in line for why in told) and "\n" not in line, (scheme, line, told)
