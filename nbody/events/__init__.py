"""Events: what a run looks for between the steps, as a close approach, an escape or a transit. ``EVENTS`` lists the kinds.

================== =====================================================================================
 :mod:`.kinds`      one class per kind: the function of the bodies whose zero is the event
 :mod:`.finder`     finds and locates the events of a step
================== =====================================================================================

A scenario names them under ``events``, a Python program in ``Simulation(events=[…])``. To add a kind, write a subclass of
:class:`~nbody.events.kinds.EventKind`, and add a line to ``EVENTS``.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from nbody.errors import InputError
from nbody.events.kinds import EventKind, Function
from nbody.given import converted
from nbody.particles import Particles
from nbody.registry import Entry, Registry
from nbody.scenario import Scenario
from nbody.scenario.events import EventChoice, listed
from nbody.scenario.model import component
from nbody.scenario.source import ScenarioText
from nbody.scenario.values import validated

EVENTS = Registry(
    "event",
    {
        "distance": Entry("nbody.events.kinds:Distance", "two bodies come closer, or go farther: distance(0, 1) < 0.01"),
        "closest": Entry("nbody.events.kinds:Closest", "two bodies are closest to each other: closest(0, 1) < 0.1"),
        "escape": Entry("nbody.events.kinds:Escape", "bodies go beyond a radius, or are unbound: escape(radius=10)"),
        "transit": Entry("nbody.events.kinds:Transit", "a planet passes in front of its star: transit(1, axis=x)"),
        "apsis": Entry("nbody.events.kinds:Apsis", "pericentres, apocentres: apsis(1, about=0, which=pericentre)"),
        "crossing": Entry("nbody.events.kinds:Crossing", "a body crosses a plane: crossing(1, axis=z, direction=up)"),
        "function": Entry("nbody.events.kinds:Function", "a zero of a function of the particles, from Python"),
    },
)
"""Every kind of event that a run may look for."""

Action = Callable[[Particles], Any]
"""What a Python program does about an event: at the end of the step, with the particles at that time. False stops the run."""


class Event(NamedTuple):
    """An event that a run looks for.

    Attributes:
        kind: what it is.
        stops: the run ends at the end of the step in which it happens.
        call: the function that is called then.
    """

    kind: EventKind
    stops: bool = False
    call: Action | None = None

    @property
    def acts(self) -> bool:
        """True if it is more than recorded."""
        return self.stops or self.call is not None


class Given(NamedTuple):
    """The events that a Python program gives.

    Attributes:
        plain: those that a scenario can hold.
        calls: the functions that are called at some of these, by their numbers.
        functions: the others.
    """

    plain: list[Any]
    calls: Mapping[int, Action]
    functions: list[Event]


def given_events(values: Any) -> Given:
    """Sort out what a Python program gives as events: what a scenario may hold, whose ``action`` may be a function, and
    functions of the particles. Raises InputError."""
    found = Given([], {}, [])
    for value in converted("events: ", listed, values):
        keys: Any = {"kind": "function", "function": value} if callable(value) else value
        if not isinstance(keys, Mapping):
            found.plain.append(keys)
            continue
        action, others = keys.get("action"), {key: each for key, each in keys.items() if key != "action"}
        call = action if callable(action) else None
        if keys.get("kind") == "function":
            source = ScenarioText(options={(): "events"})
            chosen = validated(EventChoice, {"kind": "function"} | ({} if call or not action else {"action": action}), source)
            found.functions.append(
                Event(validated(Function, {k: v for k, v in others.items() if k != "kind"}, source), chosen.action == "stop", call)
            )
            continue
        if call:
            found.calls[len(found.plain)] = call
        found.plain.append(others if call else keys)
    return found


def chosen_events(scenario: Scenario) -> list[Event]:
    """The events of a scenario. Raises InputError: one line about an unknown kind or key, or a wrong value."""
    found = []
    for k, chosen in enumerate(scenario.events or ()):
        _, kind = component(scenario, f"events.{k}", chosen, EVENTS)
        if isinstance(kind, Function):
            raise InputError(f"{scenario.where(f'events.{k}.function')}a file can't hold it; give Simulation(events=[…])")
        found.append(Event(kind, chosen.action == "stop"))  # type: ignore[arg-type]
    return found


def check_events(events: Sequence[Event], scenario: Scenario, bodies: Particles) -> None:
    """Raise an InputError if an event names a body that is not there, or an axis that a run in two dimensions lacks."""
    known = set(bodies.id.tolist()) if events else set()
    for k, event in enumerate(events):
        where = scenario.where(f"events.{k}.bodies", f"events.{k}")
        if missing := [each for each in event.kind.ids() if each not in known]:
            raise InputError(
                f"{where}there is no body with the id {missing[0]}; ids go from {min(known)} to {max(known)}"
            )
        if event.kind.axis_number() >= bodies.dimensions:
            where = scenario.where(f"events.{k}.axis", f"events.{k}")
            raise InputError(f"{where}the run has two dimensions, x and y; name one of them")
