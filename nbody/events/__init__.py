"""Events: what a run looks for between the steps, as a close approach, an escape or a transit. ``EVENTS`` lists the kinds.

================== =====================================================================================
 :mod:`.bodies`     the bodies as events look at them
 :mod:`.kinds`      one class per kind: the function of the bodies whose zero is the event
 :mod:`.chosen`     the events of a scenario and of a Python program
 :mod:`.finder`     finds and locates the events of a step
================== =====================================================================================

A scenario names them under ``events``, a Python program in ``Simulation(events=[…])``::

    events = ["transit(1, axis=x)", {"distance(0, 1) < 0.01": "stop", "apsis(1)": call}, lambda now: now.position[1, 2]]
    simulation = nbody.Simulation(bodies, integrator="ias15", precision="float64", events=events)
    simulation.integrate(100.0)
    print(simulation.events["time"])

They change no step. For few bodies on the CPU (tables of moves, ``hermite4``, ``ias15``, maps, ``hybrid``) a compiled
loop makes steps in blocks and notes the bodies after each; the functions are computed for all steps of a block together, and
so are the events located that only are recorded. That costs 0.2 to 0.5 µs per step for a built-in event (12 where a map's
corrector has to show the bodies), the time of a call for a function in Python, which is also called for steps ahead, and
0.1 to 0.2 ms per event. An event that acts costs 1 to 3 ms, since the block ends with its step. Other schemes look at
each step from Python, which costs 15 to 60 µs.
With block schemes an event is located on the predicted paths of the bodies
within the block. An ensemble has no events. To add a kind, write a subclass of
:class:`~nbody.events.kinds.EventKind`, and add a line to ``EVENTS``.
"""

from nbody.registry import Entry, Registry

EVENTS = Registry(
    "event",
    {
        "distance": Entry("nbody.events.kinds:Distance", "two bodies come closer, or go farther: distance(0, 1) < 0.01"),
        "closest": Entry("nbody.events.kinds:Closest", "two bodies are closest to each other: closest(0, 1) < 0.1"),
        "escape": Entry("nbody.events.kinds:Escaping", "bodies go beyond a radius, or are unbound: escape(radius=10)"),
        "transit": Entry("nbody.events.kinds:Transit", "a planet passes in front of its star: transit(1, axis=x)"),
        "apsis": Entry("nbody.events.kinds:Apsis", "pericentres, apocentres: apsis(1, about=0, which=pericentre)"),
        "crossing": Entry("nbody.events.kinds:PlaneCrossing", "a body crosses a plane: crossing(1, axis=z, direction=up)"),
        "function": Entry("nbody.events.kinds:Function", "a zero of a function of the particles, from Python"),
    },
)
"""Every kind of event that a run may look for."""
