"""The events that a run looks for: those of its scenario, and those that a Python program gives."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from nbody.errors import InputError
from nbody.events import EVENTS
from nbody.events.kinds import EventKind, Function
from nbody.given import converted
from nbody.particles import Particles
from nbody.scenario import Scenario
from nbody.scenario.events import EventChoice, listed
from nbody.scenario.model import component
from nbody.scenario.source import ScenarioText
from nbody.scenario.values import validated

Action = Callable[[Particles], Any]
"""What a Python program does about an event: at the end of the step, with the particles then. False ends the run."""


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
    def is_function(self) -> bool:
        """True if it is a zero of a function, which no file can hold."""
        return isinstance(self.kind, Function)

    @property
    def acts(self) -> bool:
        """True if it is more than recorded."""
        return self.stops or self.call is not None


FROM_PYTHON = ScenarioText(replaced_by={("function",): "events: function", ("action",): "events: action"})
"""Where the keys of a function are written, for the errors about them."""


class Given(NamedTuple):
    """The events that a Python program gives.

    Attributes:
        plain: those that a scenario can hold.
        calls: the functions that are called at some of these, by their numbers.
        functions: the others.
    """

    plain: list[Any]
    calls: dict[int, Action]
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
        call = keys["action"] if callable(keys.get("action")) else None
        plain = {key: each for key, each in keys.items() if key != "action" or not call}
        if keys.get("kind") == "function":
            chosen = validated(EventChoice, plain, FROM_PYTHON)
            kind = validated(Function, chosen.options, FROM_PYTHON)
            found.functions.append(Event(kind, chosen.action == "stop", call))
            continue
        if call:
            found.calls[len(found.plain)] = call
        found.plain.append(plain)
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


def events_of(events: Sequence[Event], scenario: Scenario, bodies: Particles) -> tuple[Event, ...]:
    """The events with the ids of bodies in place of their names. Raises InputError: one names a body that is not there, or
    one twice, or an axis that a run in two dimensions lacks."""
    found = []
    for k, event in enumerate(events):
        kind = event.kind.of(bodies, scenario.where(f"events.{k}.bodies", f"events.{k}"))
        found.append(event._replace(kind=kind))
        if kind.axis_number() >= bodies.dimensions:
            where = scenario.where(f"events.{k}.axis", f"events.{k}")
            raise InputError(f"{where}the run has two dimensions, x and y; name one of them")
    return tuple(found)
