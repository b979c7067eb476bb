"""The simulation: what a Python program holds of a run. The parts are :mod:`nbody.run.setup`, ``stepper``, ``recording``
and ``loop``."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nbody.diagnostics.energy import Energies
from nbody.diagnostics.observables import OF_TANGENTS
from nbody.errors import InputError, NoBodies, counted, did_you_mean
from nbody.forces.engine import devices_of
from nbody.parallel import team
from nbody.particles import Particles
from nbody.run.changes import added, altered, changed, removed
from nbody.run.dense import particles_at
from nbody.run.measured import Start
from nbody.run.observers import Callback, Function, Observer, callback_of
from nbody.run.ranks import require_same_machines, require_same_run, undivided
from nbody.run.recording import Recording, new_file
from nbody.run.schedule import Schedule, schedule_of_call, steps_given, time_given
from nbody.run.setup import Setup, asked_for, given_bodies, listener, require_function, set_up, silent
from nbody.run.step_call import StepCall
from nbody.run.stepper import Stepper
from nbody.scenario import FromArrays, Scenario
from nbody.scenario.options import OPTIONS
from nbody.state import State
from nbody.whole_file import Notify

if TYPE_CHECKING:
    from nbody.diagnostics.orbits import Elements
    from nbody.run.empty import Collected
    from nbody.run.loop import Pace, ProgressEvent
    from nbody.run.output import Output
    from nbody.run.progress import Progress, Summary
    from nbody.run.transition import Tangent
    from nbody.trajectory.reading.tables import Table

ShowProgress = Callable[["Progress"], None]

PARTS = ("stepper", "recording", "observers", "summary")
"""The attributes of a simulation that are set."""


ELSEWHERE = {
    "t": "simulation.time", "N": "simulation.particles.count", "G": "simulation.scenario.gravity.G",
    "dt": "simulation.scenario.integrator.dt", "integrator": "simulation.scenario.integrator.scheme",
    "units": "simulation.scenario.units", "energy": "simulation.energies.latest", "save": "simulation.record(path)",
    "save_to_file": "simulation.record(path)",
    "calculate_energy": "simulation.energies.latest", "resume": "nbody.resume(path)", "status": "print(simulation)",
    **{name: f"simulation.observables[{name!r}], or ['system_{name}'] of an ensemble" for name in OF_TANGENTS},
}  # fmt: skip
"""What users of other programs, or of other words, look for."""


class Simulation:
    """A run: the particles on the engine's device, and the loop that moves them. ::

        simulation = Simulation(Scenario.load("plummer"), output="run.h5")
        simulation = Simulation(particles, dt=0.01, softening=0.05, output="run.h5")

    :meth:`run` and :meth:`integrate` may be called again and again; the frames of all calls go to the same file.

    Under ``mpirun`` or ``srun`` all processes make one simulation together, and call the same methods in the same order;
    rank 0 records it (nbody/parallel/README.md).

    Args:
        scenario: what to simulate; or the path of a scenario file, or the name of one that comes with nbody; or the
            particles, whose number of steps and time are kept; or None, or particles without rows, for a simulation to which
            bodies are added one by one (:meth:`add`), and which begins when it is asked for more.
        output: the trajectory to write; None writes no file.
        overwrite: replace an existing output instead of keeping it under a numbered name.
        notify: gets one line about each automatic choice (``auto``'s engine, a new name of an older file) and each possible
            problem. By default the lines are printed in a notebook, and dropped elsewhere (see :meth:`run` for one).
        particles: the bodies to start from, instead of the scenario's; or how many it has.
        start: where to continue, if the output is a recording to be resumed; see :func:`nbody.resume`.
        repeats: the ``particles`` are the scenario's own, from a recording of it that is to be repeated.
        on_collision: a function that gets the two bodies (:class:`~nbody.particles.Particles`, two rows) at the moment when
            they touch and approach each other, and returns those after it: the first two rows are the same bodies, further
            ones are new; with one row the second body is gone, with none both are; None: nothing happens in this step.
            Give radii, as in ``collisions={"radius": 0.01}``.
        events: what to look for: texts such as ``"distance(0, 1) < 0.01"``, ``{"distance(0, 1) < 0.01": "stop"}``, groups of
            keys such as ``{"kind": "transit", "bodies": [1], "axis": "x", "action": function}``, and functions of the
            particles whose zeros are events (:mod:`nbody.events`). An action is ``"record"``, ``"stop"``, or a function
            that gets the particles at the end of the step; if it returns False, the run ends.
        values: values that replace those of the scenario: ``seed``, ``dt``, ``steps`` or ``end``, ``G``, ``softening``
            (``0.01``, ``"plummer:0.01"``, or one number per body), ``integrator``, ``engine``, ``precision``, ``every`` …
            (:mod:`nbody.scenario.options`); and ``fields``, external forces: ``[nbody.fields.NFW(mass=1, a=20),
            nbody.force(function)]`` (:mod:`nbody.fields`).

    Attributes:
        stepper: what moves the bodies: its ``integrator`` and its ``motion``.
        recording: what goes to the file.
        observers: what else looks at the bodies between two steps, after the recording.
        summary: that of the last run; None before its end.

    Raises:
        InputError: the scenario names something that does not exist, or needs more memory or disk space than is free.
        DeviceError: the scenario names a GPU engine, and there is no GPU.
    """

    def __init__(
        self,
        scenario: Scenario | Particles | str | Path | None = None,
        output: str | Path | None = None,
        overwrite: bool = False,
        notify: Notify | None = None,
        particles: Particles | int | None = None,
        start: Start | None = None,
        repeats: bool = False,
        on_collision: Callable[[Particles], Particles | None] | None = None,
        **values: Any,
    ) -> None:
        if isinstance(output, Simulation):
            raise InputError("output: needs the path of a new file, got a simulation")
        if not isinstance(start, Start | None):
            raise InputError("start: is for nbody.resume(path); a run begins at the time of its particles")
        ranks = team()
        if not isinstance(particles, Particles):
            particles, values = None, {"particles": particles, **values}
        notify = listener(notify) if ranks.first else silent

        def make(given: Any) -> None:
            with ranks.agreed():
                again = repeats or start is not None
                asked = asked_for(given, particles, values, again, on_collision)
                require_same_run(ranks, asked.scenario, asked.particles)
                file = new_file(output, overwrite, ranks, notify, asked.scenario, start)
                self._begin(set_up(asked, ranks, notify, resumed=start is not None), file, start)
                require_same_machines(ranks, self.setup.engine, self.setup.scope)
                if line := undivided(ranks, self.setup.engine, self.state):
                    notify(line)

        if given_bodies(scenario):
            make(scenario)
        elif particles is not None:
            make(particles)
        else:
            from nbody.run.empty import Collected

            own = {"output": output, "overwrite": overwrite, "notify": notify, "on_collision": on_collision}
            self._collected = Collected(values | own, make)

    def __getattr__(self, name: str) -> Any:
        """Begin the run of the bodies that were added to an empty simulation, when it is needed."""
        if hasattr(type(self), name):  # a property that failed
            return object.__getattribute__(self, name)
        if name not in (*PARTS, "_running") or (collected := vars(self).get("_collected")) is None:
            hint = f"; it is {ELSEWHERE[name]}" if name in ELSEWHERE else did_you_mean(name, dir(type(self)))
            raise AttributeError(f"a simulation has no attribute {name!r}{hint}")
        if not collected.bodies.count:
            raise NoBodies("the simulation has no bodies yet; add some: simulation.add(mass=…, position=…, velocity=…)")
        if collected.waits:
            raise InputError(
                "integrator.dt: is missing; give the length of a step: simulation.dt = 0.001, or Simulation(dt=…)"
            )
        del self._collected
        try:
            collected.begin(collected.bodies)
        except BaseException:
            self._collected = collected
            raise
        return getattr(self, name)

    def __fspath__(self) -> str:
        """The path of its recording: ``nbody.Trajectory(simulation)``, ``nbody.plot(simulation)``. Raises InputError."""
        if self.output is None:
            raise InputError("this simulation was not recorded; make it with output='run.h5'")
        return os.fspath(self.output)

    @property
    def _empty(self) -> "Collected | None":
        """What collects bodies, if there are none yet."""
        collected = vars(self).get("_collected")
        return collected if collected is not None and not collected.bodies.count else None

    @property
    def _waiting(self) -> "Collected | None":
        """What collects bodies, while the run can't begin. They can be read and changed."""
        collected = vars(self).get("_collected")
        return collected if collected is not None and collected.waits else None

    def _be_empty(self, setup: Setup, none: Particles, used: np.ndarray) -> None:
        """Have no bodies, until others are added: those of ``none``."""
        from nbody.run.empty import Collected

        for part in ("stepper", "recording", "observers", "_running", "_escape"):
            vars(self).pop(part, None)

        def begin(bodies: Particles) -> None:
            self._begin(setup.beginning_with(bodies, used).with_new_integrator(), None, None)

        self._collected = Collected(setup, begin, none, used)

    def _begin(self, setup: Setup, file: "Output | None", start: Start | None) -> None:
        """Make the parts of the run, which begins or goes on."""
        self.stepper = Stepper(setup)
        self.recording = Recording(self.stepper, file, start)  # it looks for events, whose past ``start`` has
        if start is not None:
            start.restore(self.stepper)
        self._running, self.observers = False, list[Observer]()
        self.summary: Summary | None = None

    def __setattr__(self, name: str, value: object) -> None:
        if name == "dt" and (waiting := self._waiting) is not None and self._given_again(waiting, dt=value):
            return
        if name[0] != "_" and name not in PARTS and type(self) is Simulation and not hasattr(Simulation, name):
            known = [*PARTS, *OPTIONS, *(each for each in vars(Simulation) if each[0] != "_")]
            raise InputError(f"simulation.{name} can't be set: {_how_to_give(name, 'attribute', known)}")
        if isinstance(found := getattr(type(self), name, None), property) and found.fset is None:
            raise InputError(f"simulation.{name} can't be set: it follows from the bodies and the steps")
        object.__setattr__(self, name, value)

    def _given_again(self, collected: "Collected", **values: Any) -> bool:
        """Collect the same bodies for a run with other arguments. Returns False if the run has been one already."""
        if not isinstance(collected.given, dict):
            return False
        Simulation.__init__(self, **collected.given | values)
        self._collected.bodies, self._collected.used = collected.bodies, collected.used
        return True

    @cached_property
    def _escape(self) -> list[Observer]:
        """What removes escapers, if the scenario says so."""
        if self.scenario.escape is None:
            return []
        from nbody.run.escape import Escape

        return [Escape(self.stepper)]

    def __repr__(self) -> str:
        if (collected := vars(self).get("_collected")) is not None:
            count = collected.bodies.count
            has = f"of {counted(count, 'body', 'bodies')} that has not begun" if count else "without bodies"
            return f"<Simulation {has}, t = {collected.bodies.time:.6g}>"
        bodies, scheme = counted(self.state.count, "body", "bodies"), self.scenario.integrator.scheme
        return (
            f"<Simulation '{self.scenario.name}': {bodies}, {scheme}, engine {self.engine_name}, "
            f"{self.scenario.precision}, step {self.steps_made}, t = {self.time:.6g}>"
        )

    # --- Copies ---

    def copy(self) -> "Simulation":
        """An independent simulation at the same moment, which goes on with the same bits. ::

            other = simulation.copy()
            other.integrate(other.time + 1.0)  # what would happen; ``simulation`` stays where it is

        ``copy.copy``, ``copy.deepcopy`` and ``pickle`` make the same, so that ``multiprocessing`` can let other processes go
        on. A copy has no output, whatever the original has (give it one with :meth:`record`), and no observers.

        Raises:
            InputError: the simulation is running.
        """
        if (waiting := self._waiting) is not None:
            return _still_empty(type(self), waiting.given, waiting.bodies, waiting.used)
        self._require_ready()
        return _going_on(type(self), self.setup, self.recording.start())

    __copy__ = copy

    def __deepcopy__(self, memo: object) -> "Simulation":
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        if (waiting := self._waiting) is not None:
            given = waiting.given if isinstance(waiting.given, Setup) else waiting.given | {"notify": None}
            return _still_empty, (type(self), given, waiting.bodies, waiting.used)
        self._require_ready()
        return _going_on, (type(self), self.setup, self.recording.start())

    # --- What the run is ---

    @property
    def setup(self) -> Setup:
        """What the run is: plan, engine, bodies at the beginning, ranks."""
        return self.stepper.setup

    @property
    def scenario(self) -> Scenario:
        """What is simulated, in the precision of the run."""
        return self._waiting.described if self._waiting else self.setup.scenario

    @property
    def engine_name(self) -> str:
        """The name of the engine; ``auto`` is replaced by its choice."""
        return self.setup.plan.engine_name

    # --- Where it is ---

    @property
    def state(self) -> State:
        """What is moved."""
        return self.stepper.motion.state

    @property
    def steps_made(self) -> int:
        """The number of steps made so far."""
        return self._waiting.bodies.step if self._waiting else self.stepper.clock.step

    @property
    def time(self) -> float:
        """The time of the state."""
        return self._waiting.bodies.time if self._waiting else self.stepper.clock.time

    @property
    def output(self) -> str | Path | None:
        """The file that is recorded; None if there is none."""
        return self.recording.path

    @property
    def frames(self) -> int:
        """The number of frames in the file."""
        return self.recording.measured.frames

    @property
    def energies(self) -> Energies:
        """The energies of the frames; before there are any, those of the beginning and of this moment; RunFailed is raised
        if a number in the state is not finite."""
        if self._empty:
            return Energies(0.0, 0.0, 0.0)
        if not self._running:
            self._take_written()
        return self.recording.energies_now

    @property
    def observables(self) -> dict[str, Any]:
        """The scenario's observables at this moment by name: numbers, ``megno``; of an ensemble arrays, ``system_megno``."""
        if self._empty:
            return {}
        stepper = self.stepper if self.stepper.begun else self.stepper.copy()
        frame = stepper.frame().wait()
        found = {**frame.observables, **self.recording.measured.observables(frame)}
        frame.release()
        return {name: value if np.ndim(value) else float(value) for name, value in found.items()}

    @property
    def kinetic_energy(self) -> float:
        """T = ½ Σ m v² at this moment, in the scenario's units."""
        return self._energy_parts()[0]

    @property
    def potential_energy(self) -> float:
        """W = ½ Σ m φ at this moment, with the softening of the run, and Σ m Φ of external fields."""
        return self._energy_parts()[1]

    def _energy_parts(self) -> tuple[float, float]:
        if self._empty:
            return 0.0, 0.0
        if not self._running:
            self._take_written()
        stepper = self.stepper
        frame = (stepper.frame() if stepper.begun else stepper.first_frame()).wait()
        kinetic, potential = float(frame.sums[0]), float(frame.sums[1])
        frame.release()
        return kinetic, potential

    @property
    def particles(self) -> Particles:
        """The particles at this moment, on the host in float64, the same until the next step. Before the first step they
        have the digits that were given, whatever the precision of the run.

        What is written into their masses, positions, velocities and radii counts, as :meth:`change` does:
        ``simulation.particles.mass[:10] *= 0.5``. After the next step their arrays are read-only, because the run has
        others; take copies for your own arithmetic.
        """
        return self._waiting.bodies if self._waiting else self.stepper.writable.particles()

    def add(self, particles: Particles | None = None, **values: Any) -> np.ndarray:
        """Add bodies between two steps, or to an empty simulation. Returns their ids. ::

            simulation.add(particles)
            simulation.add(mass=1e-3, position=[1, 0, 0], velocity=[0, 1, 0])
            simulation.add(m=1e-3, a=5.2, e=0.05)  # about the centre of mass of the present bodies
            simulation.add(m=0, a=0.01, about="jupiter")

        As with :meth:`remove` and :meth:`change`, what it adds to the energy is booked: the energy error leaves out the
        recorded ``booked_energy``, and the table of events has a row for each body. All ranks make the same call.

        Args:
            particles: the bodies. They keep their ids if no body of the run has or had one of them; else all get new ones.
            values: of one body or several: ``mass``, ``position``, ``velocity``, and if needed ``radius``, ``species`` (a
                name or a number) and ``id``, which may be given beside ``particles`` too. An id is never used again:
                one that is given here and was used is refused. Of one body also ``m``, ``x``, ``y``, ``z``, ``vx``, ``vy``,
                ``vz`` (0 if only others are given), or elements as of :func:`nbody.planets`: ``a``, ``P`` or ``q``, ``e``,
                ``inc``, ``Omega``, ``omega``, ``pomega``, and ``f``, ``M``, ``E``, ``l`` or ``T``; angles in degrees;
                ``about`` a body by its id or name. A species may be a new one; ``name`` says the same, but may not be that
                of another body.

        Raises:
            InputError: a value is wrong or missing; or the scheme can't go on with other bodies.
        """
        if (collected := vars(self).get("_collected")) is not None:
            return collected.add(particles, values)
        rows, names = added(particles, values, self._present(), self.stepper.ids, self.scenario)
        self._apply(rows, names)
        return rows["id_1"].copy()

    def remove(self, ids: Any) -> None:
        """Remove the bodies with these ids or names, one or several, between two steps. An id is not a position: that of
        ``particles[k]`` is ``particles.id[k]``. Without a recording these may be all: the simulation is then empty, and
        begins anew with those that are added next. Raises InputError: there is no such body, or none with a mass is left to
        record."""
        if (waiting := self._waiting) is not None and waiting.bodies.count:
            waiting.remove(ids)
            return
        now = self._present()
        rows = removed(ids, now)
        if len(rows) < now.count:
            self._apply(rows)
            return
        self._check_idle()
        if self.output is not None:
            raise InputError("remove: a recording needs a body with a mass; end it first: simulation.record(None)")
        self._be_empty(self.setup, replace(now.rows(np.arange(0)), radius=np.empty(0)), self.stepper.ids)

    def change(
        self, ids: Any = None, *, mass: Any = None, position: Any = None, velocity: Any = None, radius: Any = None
    ) -> None:
        """Set masses, positions, velocities or radii of the bodies with these ids or names (None: of all) between two steps:
        one value for each, in the order of :attr:`particles`, or one for all. Raises InputError: there is no such body, or
        a value is wrong."""
        values = {"mass": mass, "position": position, "velocity": velocity, "radius": radius}
        if (waiting := self._waiting) is not None and waiting.bodies.count:
            waiting.bodies = changed(ids, values, waiting.bodies)[0]
            return
        self._apply(altered(*changed(ids, values, self._present())))

    def _present(self) -> Particles:
        """The bodies now, to be changed."""
        self.stepper.require_whole()
        self._take_written()
        return self.stepper.particles()

    def _take_written(self) -> None:
        """Let what was written into :attr:`particles` count."""
        if (rows := self.stepper.writable.written()) is not None:
            self._apply(rows)

    def _apply(self, rows: np.ndarray, species_names: tuple[str, ...] = ()) -> None:
        if not len(rows):
            return
        self.stepper.apply(rows, species_names=species_names)
        first = not (self._running or self.recording.measured.frames)
        if first and (self.output is not None or not self.stepper.moved):
            self._begin_again()  # a run of the changed bodies

    def _begin_again(self) -> None:
        """Let the present bodies be those of the beginning."""
        self.stepper.begin_again()
        self.recording.begin_again()

    def at(self, time: float) -> Particles:
        """The particles at a time within the last step, or later; the run stays as it is.

        A copy of the run makes the steps before ``time``, without looking for collisions. Within a step ``ias15`` evaluates
        its polynomial, to rounding; other schemes of order p make a shorter one, whose error is of order p + 1 in its
        length, back from the end of the last step if steps are fixed. ``leapfrog_adaptive`` and block schemes show no time
        before the present one.

        Raises:
            InputError: ``time`` is before the beginning of the last step, or the simulation is running.
        """
        self._require_ready()
        return particles_at(self.stepper, time_given("at: ", time, self.scenario))

    def transition_matrix(self, until: float) -> np.ndarray:
        """The derivatives ∂z(until)/∂z(now) of the orbits, (2ND, 2ND), from the variational equations; the run stays as it
        is. z are the positions of all bodies, x₀, y₀, z₀, x₁ …, then the velocities in the same order.

        For ``wisdom_holman`` (the derivatives of its map, in external fields too, but without relativity), and without
        external fields for ``ias15`` and tables of moves such as ``leapfrog``; with fixed steps ``until`` must be a whole
        number of them away. If all forces have a potential, the matrix is symplectic for the momenta m v: to rounding for
        maps and tables, to the accuracy of the steps with ``ias15``. (Rein & Tamayo 2016)

        Raises:
            InputError: the scheme has no variational equations for this run.
        """
        from nbody.run.transition import transition_matrix

        self._require_ready()
        return transition_matrix(self.stepper, time_given("transition_matrix: ", until, self.scenario))

    def derivative(self, until: float, by: "Tangent") -> "Tangent":
        """The derivative of the bodies at the time ``until``, if that of the present ones is ``by``; the run stays as it is.
        :func:`nbody.tangent` makes it for a value of the scenario, such as the semi-major axis or the mass of a planet::

            simulation.derivative(100.0, nbody.tangent(simulation.scenario, "bodies.1.m")).position

        The mass of ``by`` acts during the whole time; in external fields there are no derivatives with respect to masses.
        Else as :meth:`transition_matrix`.
        """
        from nbody.run.transition import derivative

        self._require_ready()
        return derivative(self.stepper, time_given("derivative: ", until, self.scenario), by)

    def orbits(self, about: int | str = "inner", bodies: Sequence[int | str] | None = None) -> "Elements":
        """The orbital elements at present: :func:`nbody.orbits` with the G of the run. Raises InputError for an ensemble."""
        from nbody.diagnostics.orbits import orbits

        waiting = None if self._empty else self._waiting
        scenario = waiting.scenario if waiting else self.setup.scenario
        if scenario.ensemble:
            raise InputError("orbits: needs one system, not an ensemble; take bodies of one with nbody.orbits")
        return orbits(self.particles, scenario.gravity.G, about, bodies)

    @property
    def events(self) -> "Table":
        """The events, collisions and changes since this simulation was made, as :attr:`nbody.Trajectory.events`."""
        from nbody.trajectory.reading.events import event_table

        self.recording.log.look()
        return event_table(self.recording.log.rows).shown()

    @property
    def arrays(self) -> dict[str, Any]:
        """``position`` and ``velocity``, (N, D) each, in the engine's memory and precision, without a copy.

        NumPy arrays on a CPU; on a GPU they have ``__cuda_array_interface__``: ``cupy.asarray(sim.arrays["position"])``,
        ``torch.as_tensor(…, device="cuda")``. They change with the next step. To change them yourself, call
        ``sim.state.invalidate()`` afterwards; a scheme that keeps other coordinates or derivatives (hermite4, ias15, block
        schemes, wisdom_holman, hybrid) does not see the change.
        """
        return dict(zip(("position", "velocity"), self.state.values("position", "velocity", copy=False), strict=True))

    # --- Steps ---

    @property
    def step(self) -> StepCall:
        """Make steps: ``simulation.step()`` makes one, ``simulation.step(100)`` a hundred.

        The bits are those of :meth:`run`. There is no progress and no summary, and numbers that are no longer finite are
        reported by the next :meth:`run`; so a step of a few bodies takes microseconds, and with events some ten more. With
        an output, collisions, several ranks or an energy limit it is :meth:`run`. An event that stops a run ends the call,
        and so does Ctrl-C, after a whole step.
        """
        return StepCall(self._make_steps)

    def _make_steps(self, n: int) -> None:
        n = n if type(n) is int and 0 <= n < 1 << 53 else steps_given("step: ", n)
        if self._empty:
            self._empty.move(n, None)
            return
        if self.recording.looks or self.stepper.collisions is not None or self._escape:
            self.run(steps=n)
            return
        self._require_ready()
        self.recording.log.make_steps(n)

    def record(self, output: str | Path | None, overwrite: bool = False) -> None:
        """Record the next runs in a new file, whose first frame is the present moment; None records nothing. An earlier
        file is finished. Raises InputError: the path can't be written, or the simulation is running."""
        if isinstance(output, Simulation):
            raise InputError("record: needs the path of a new file, got a simulation")
        collected = vars(self).get("_collected")
        if collected is not None and self._given_again(collected, output=output, overwrite=overwrite):
            return
        self._check_idle()
        if output is None:
            self.recording.stop()
            return
        with self.setup.team.agreed():
            self.recording.redirect(new_file(output, overwrite, self.setup.team, self.setup.notify, self.scenario))
        self._take_written()
        roster, arrays = self.stepper.roster, isinstance(self.scenario.initial, FromArrays)
        if self.stepper.moved and (not arrays or (roster is not None and roster.changed)):
            self._begin_again()

    def run(
        self,
        steps: int | None = None,
        progress: ShowProgress | None = None,
        *,
        callback: Function | None = None,
        every: int | None = None,
        interval: float | None = None,
        **values: Any,
    ) -> "Summary":
        """Run to the scenario's end, or make ``steps`` steps, in the direction of the last call (:meth:`integrate` turns the
        run round). Records the first frame, those of the schedule, and the last.

        A later call goes on from there and appends its frames to the file, which is complete after every call: several calls
        give the same file as one. (The last frame of a call that is not on the schedule is dropped by the next.)

        ``callback(particles)`` is called after every ``every``-th step, or after every ``interval`` of time; if it returns
        False, the run ends. Without ``every`` and ``interval`` it is called after each step, and at the end of the call too
        if the last step of an adaptive scheme goes beyond it. For each call the particles are copied to the host.

        SIGINT (Ctrl-C) or SIGTERM ends the run after the current step, records a frame of it and closes the file; then
        KeyboardInterrupt is raised, and the simulation can go on from there. A second signal ends the run at once, between
        two pieces of a force evaluation (see :meth:`~nbody.state.ForceProgress.report`), and keeps the frames already in the
        file. A third one does not wait for a slow disk.

        An energy error above 10 % is a line for ``notify``, and without a ``notify`` a Python warning; with
        ``on_energy_error`` its own limit counts.

        Raises:
            InputError: nothing says how far to run; or the file can't be appended to; or ``values`` has a key that belongs
                to the simulation, as ``events``, or none that there is.
            RunFailed: a number in the state is not finite, or the file can't be written; the frames before are kept.
            KeyboardInterrupt: a signal has ended the run; :attr:`summary` is that of the steps that were made.
        """
        _refuse("run", values)
        return self._run_to(steps, None, progress, (callback, every, interval))

    def integrate(
        self,
        until: float | None = None,
        progress: ShowProgress | None = None,
        *,
        callback: Function | None = None,
        every: int | None = None,
        interval: float | None = None,
        **values: Any,
    ) -> "Summary":
        """Run to the time ``until``, as :meth:`run` does. With a fixed time step it must be a whole number of steps away
        (:meth:`at` shows the particles at other times).

        A time before the present one turns the run round: ``simulation.integrate(simulation.time - 1.0)``. From there on
        ``run(steps=…)`` goes back in time too, until another call turns it again. Schemes without adaptive steps record both
        ways in one file.
        """
        _refuse("integrate", values)
        if until is None:
            raise InputError("integrate: until when? say integrate(until=10.0), or run(steps=100)")
        return self._run_to(None, until, progress, (callback, every, interval))

    def _run_to(
        self,
        steps: int | None,
        until: float | None,
        progress: ShowProgress | None,
        called: tuple[Function | None, int | None, float | None],
    ) -> "Summary":
        if (empty := self._empty) is not None:
            if progress is not None:
                require_function("run: progress", progress)
            callback_of(*called, empty.scenario, None)
            return empty.move(steps, until)
        callback = callback_of(*called, self.scenario, self.stepper)
        for event in self.progress_events(steps, progress, until, callback):
            if progress is not None:
                progress(event.progress)
        if self._interrupted:
            raise KeyboardInterrupt(self._interrupted)
        assert self.summary is not None
        if (line := self.summary.warning) and self.scenario.on_energy_error is None:
            self.setup.warn(line)
        return self.summary

    def progress_events(
        self,
        steps: int | None = None,
        progress: ShowProgress | None = None,
        until: float | None = None,
        callback: Callback | None = None,
        pace: "Pace | None" = None,
    ) -> "Iterator[ProgressEvent]":
        """Run as :meth:`run` does (to the time ``until``, if it is given), and yield several times per second between two
        steps, for a viewer or a notebook. It may be iterated over in any thread; only the main thread handles signals.

        To stop the run, stop iterating; it then records a frame of the current step. ``progress`` is called during long
        steps. A ``pace`` decides when the next steps are made, and stops the run in place of Ctrl-C.
        """
        from nbody.run.loop import Loop  # which programs that call step() alone do not need

        self._require_ready()
        if progress is not None:
            require_function("run: progress", progress)
        if pace is not None and self.setup.team.size > 1:
            raise InputError("a window shows runs of one process; leave --view out, or start the run alone")
        schedule = self._schedule(steps, until)
        if callback is not None and callback.each_step:
            callback.call = schedule
        with self.setup.team.agreed():
            self.recording.go_on(schedule)
        self.recording.log.go_on()
        before = [*self._escape, self.recording.log]
        loop, self._running = Loop(self.stepper, self.recording, before, self.observers, callback, pace), True
        try:
            yield from loop.progress_events(progress)
        finally:
            self._running, self._interrupted = False, loop.where_interrupted() if loop.signalled else ""
            self.summary = loop.summary or self.summary

    def _schedule(self, steps: int | None, until: float | None) -> Schedule:
        """The schedule of a call. If nothing looks between them, it has only the first and the last frame."""
        if steps is None and until is None and self.setup.open_ended:
            raise InputError("run: how far? say run(steps=100), or integrate(until=10.0)")
        setup, now = self.setup, self.stepper.moment
        if until is not None:
            until = time_given("integrate: until: ", until, self.scenario)
            setup = setup.towards(until, now)
        found = schedule_of_call(setup.plan, now, steps, until, self.recording.resumed)
        if setup is not self.setup:
            self.recording.require_both_ways()
            self.stepper.turn(setup)
        return found if self.recording.looks else found.ends_alone(self.time)

    def _require_ready(self) -> None:
        """Raise an InputError if no steps can be made now; on a GPU let this thread use it."""
        self._check_idle()
        self.stepper.require_whole()
        if self.setup.engine.can.device == "gpu":
            from nbody import compute

            compute.use_device(devices_of(self.setup.engine)[0])  # in this thread
        self._take_written()

    def _check_idle(self) -> None:
        if self._running:
            raise InputError("this simulation is running; end that run first (stop iterating over its events)")


def _how_to_give(name: str, what: str, known: Sequence[str]) -> str:
    """The advice about a value that is given too late, or that is none."""
    if what == "argument" and name in ("until", "end", "steps"):
        return "say " + ("run(steps=…) for a number of steps" if name == "steps" else "integrate(until=…) to go to a time")
    if name in (*OPTIONS, "events", "fields", "notify", "on_collision"):
        return f"give it at the beginning: Simulation(simulation.scenario, particles=simulation.particles, {name}=…)"
    return f"there is no such {what}{did_you_mean(name, known)}"


def _refuse(method: str, values: dict[str, Any]) -> None:
    """Raise an InputError about an argument that a method does not take."""
    known = [*OPTIONS, "events", "callback", "every", "interval", "progress", "steps" if method == "run" else "until"]
    for name in values:
        raise InputError(f"{method}: {name}: {_how_to_give(name, 'argument', known)}")


def _going_on(kind: type[Simulation], setup: Setup, start: Start | None) -> Simulation:
    """A simulation that goes on where another one was."""
    made = kind.__new__(kind)
    made._begin(setup.with_new_integrator(), None, start)
    return made


def _still_empty(kind: type[Simulation], given: dict[str, Any] | Setup, bodies: Particles, used: np.ndarray) -> Simulation:
    """A copy of a simulation that has not begun."""
    made = kind.__new__(kind)
    if isinstance(given, Setup):
        made._be_empty(given, bodies, used)
        made.summary = None
    else:
        Simulation.__init__(made, **given | {"output": None})
        made._collected.bodies, made._collected.used = bodies.rows(np.arange(bodies.count)), used
    return made
