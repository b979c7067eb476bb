"""One run, made of values: what it is, what moves the bodies, and what looks at them.

In the order of a run:

================== =================================================================================================
 :mod:`.choice`     the scheme and the engine: what supports all that the scenario asks for
 :mod:`.schedule`   which moments become frames, and where the run ends, in steps or in time
 :mod:`.plan`       ``Plan``: engine, scheme, schedule and sizes; errors in a scenario are found here
 :mod:`.setup`      ``Setup``, frozen: plan, engine, bodies, ranks; from a scenario or arrays and keywords (:mod:`.lengths`)
 :mod:`.stepper`    ``Stepper``: makes steps, saves and restores arrays, replaces the bodies; it knows no files or terminals.
                    :mod:`.dense`: the bodies at times within a step
 :mod:`.changes`    what a user adds, removes or changes between steps, checked
 :mod:`.observers`  ``Observer``: says when it looks, and looks. A user's callback; :mod:`.event_log` keeps events and
                    collisions, :mod:`.event_watch` looks for events in every step, :mod:`.escape` removes escapers
 :mod:`.recording`  the observer of frames, which also stores checkpoints and events; :mod:`.measured` has the number and
                    the energies of the frames, :mod:`.recorder` is the thread that writes, :mod:`.output` the file
 :mod:`.loop`       asks the observers for their next look, lets the stepper get there, and lets them look
 :mod:`.simulation` ``Simulation``, what a Python program holds of all this; ``simulation.step`` is in :mod:`.step_call`,
                    and ``nbody.simulate`` in :mod:`.simulate`
================== =================================================================================================

Beside them: :mod:`.guards` (doubts before a run, numbers that are not finite), :mod:`.progress` and :mod:`.watch` (speed,
long steps), :mod:`.signals`, :mod:`.ranks` (the one decision of a loop that ranks share) and :mod:`.gpus`;
:mod:`.resume` (goes on, or repeats), :mod:`.live` and :mod:`.live_pace` (a run that a window controls), :mod:`.sweep`
and :mod:`.cluster`. No two files import each other.

Back in time a table of moves makes steps of a negative length. For other schemes the stepper turns the velocities round and
lets -t run forward while they make steps; outside of it all see t and v.

A :class:`~nbody.state.Frame` is the bodies at one moment all the way from the state to the file.
"""
