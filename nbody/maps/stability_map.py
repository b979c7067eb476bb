"""A stability map: one ensemble of systems on a grid of values, and a few numbers of each system.

A map is computed in blocks of systems, each a run of an ensemble without a recording, and its file is written whole after
blocks. So a map that was killed goes on when it is started again, and loses a block at most.
"""

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nbody import machine
from nbody.diagnostics.orbits import LABELS
from nbody.errors import InputError, did_you_mean, printable
from nbody.given import shown
from nbody.initial import make_particles
from nbody.initial.ensemble import member
from nbody.maps.quantities import Quantity, SystemsNow, quantities_of
from nbody.output_file import new_file
from nbody.particles import Particles
from nbody.run.observers import Callback
from nbody.run.plan import Plan, plan
from nbody.run.schedule import FOREVER
from nbody.run.setup import silent
from nbody.run.signals import StopRequest, stop_on_signals
from nbody.run.simulation import Simulation
from nbody.scenario import Scenario
from nbody.scenario.ensemble import keys_of
from nbody.scenario.quantities import Units
from nbody.trajectory.grid_file import MAP, read_map, write_map
from nbody.trajectory.structure.layout import SYSTEM_STATUS
from nbody.whole_file import Notify

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from nbody.analysis.figure import RunFigure

Show = Callable[[float, str], object]
"""Gets the fraction of a map that is done, and a text."""

BLOCK = {"cpu": 64, "gpu": 65536}
"""Systems per block: on a CPU for each core, and for a whole GPU."""

SAVE_SECONDS = 2.0
"""The least time between two writes of the file."""

NOT_COMPUTED = -1

DONE, ENCOUNTER = SYSTEM_STATUS.index("done"), SYSTEM_STATUS.index("close encounter")


class _Unpaced(NamedTuple):
    """A :class:`~nbody.run.loop.Pace` that lets all blocks share one request to stop: no Ctrl-C is lost between two."""

    stop: StopRequest

    def stopping(self) -> AbstractContextManager[StopRequest]:
        return nullcontext(self.stop)

    def steps(self) -> int:
        return FOREVER


def _through_encounters(scenario: Scenario) -> Scenario:
    """The scenario with the scheme ``ias15`` in place of one of fixed steps, to the same end, with the same frames."""
    chosen, record = scenario.integrator, scenario.record
    if chosen.dt is None or chosen.scheme == "ias15":
        return scenario
    end = chosen.end if chosen.steps is None else chosen.steps * chosen.dt
    dt = record.dt if not record.every else record.every * abs(chosen.dt)
    integrator = {"scheme": "ias15", "dt": None, "steps": None, "end": end}
    return scenario.with_keywords({"integrator": integrator, "record": {"every": None, "dt": dt}})


class StabilityMap:
    """A grid of systems and their numbers; :func:`nbody.map` makes one.

    Attributes:
        scenario: that of all systems, whose ``ensemble`` has the grid.
        path: the file; None if there is none.
        axes: the paths of ``y`` and ``x``, in this order, and their values.
        values: for each quantity an array (ny, nx), or (nx,) of a map with one axis; NaN where nothing is computed.
        status: how each system has ended, an index into :data:`~.layout.SYSTEM_STATUS`; -1: not computed.
        provenance: versions, machine and command.
    """

    def __init__(self, scenario: Scenario, quantities: str | Sequence[str], path: Path | None = None) -> None:
        """Raises InputError: the grid is none, or a quantity does not exist or does not fit."""
        self._quantities = quantities_of(quantities, scenario)
        names = [each.observable for each in self._quantities.values() if each.observable]
        self.scenario = (
            scenario.override([f"record.observables={json.dumps(names)}"], by="--quantity") if names else scenario
        )
        self.path, ensemble = path, scenario.ensemble
        axes = ensemble.axes if ensemble else {}
        if ensemble is None or not 1 <= len(axes) <= 2:
            raise InputError("map: which values? give --x, as in bodies.1.a=0.9..1.1:400, and --y for a second axis")
        for axis, listed in axes.items():
            if not all(isinstance(each, int | float) for each in listed):
                raise InputError(f"map: {axis}: the values of an axis must be numbers")
        self.axes = {axis: np.array(listed, float) for axis, listed in axes.items()}
        self.shape = tuple(map(len, self.axes.values()))
        if ensemble.count != math.prod(self.shape):
            raise InputError(f"{scenario.where('ensemble.systems')}a map has one system per point; remove 'systems'")
        self.values = {name: np.full(self.shape, np.nan) for name in self._quantities}
        self.status = np.full(self.shape, NOT_COMPUTED, np.int8)
        self.provenance: dict[str, Any] = {}

    @classmethod
    def load(cls, path: str | Path) -> "StabilityMap":
        """The map in a file. Raises InputError: there is none, or it is damaged."""
        found = read_map(path)
        try:
            scenario = Scenario.from_text(found["scenario"], printable(path))
            made = cls(scenario, json.loads(found["quantities"]), Path(path))
            made.provenance = json.loads(found["provenance"])
            made.status = found["status"].reshape(made.shape).astype(np.int8)
            made.values = {name: found[f"values/{name}"].reshape(made.shape).astype(float) for name in made.values}
        except (LookupError, ValueError, TypeError, AttributeError) as error:
            raise InputError(f"{printable(path)}: is damaged, or was not written by nbody ({error})") from None
        return made

    # --- What it holds ---

    @property
    def x(self) -> np.ndarray:
        """The values of the axis that goes to the right, (nx,)."""
        return list(self.axes.values())[-1]

    @property
    def y(self) -> np.ndarray | None:
        """The values of the axis that goes up, (ny,); None if there is one axis."""
        return next(iter(self.axes.values())) if len(self.axes) == 2 else None

    @property
    def done(self) -> int:
        """The number of systems that are computed, from the first one on."""
        return int(np.count_nonzero(self.status != NOT_COMPUTED))

    @property
    def labels(self) -> dict[str, tuple[str, str]]:
        """What axes and colour bars say: ``x``, ``y`` and the quantities, each a name and a unit (empty: none)."""
        axes = {name: self._label(path) for name, path in zip("xy", reversed(self.axes), strict=False)}
        return axes | {name: (each.label, self._unit(each.dimension)) for name, each in self._quantities.items()}

    @property
    def units(self) -> dict[str, str]:
        """The units of ``x``, ``y`` and the quantities; empty texts without units."""
        return {name: unit for name, (_, unit) in self.labels.items()}

    def _unit(self, dimension: str) -> str:
        return (self.scenario.units or Units()).symbol(dimension) if dimension not in ("", "°") else dimension

    def _label(self, path: str) -> tuple[str, str]:
        """The name and the unit of an axis: ``initial.bodies.1.a`` is the semi-major axis of a body."""
        _, *keys = keys_of(path)
        if len(keys) != 3 or keys[0] != "bodies":
            return ".".join(keys), ""
        bodies: Any = self.scenario.resolved()["initial"]["bodies"]
        text, dimension = {**LABELS, "m": ("mass m", "mass")}.get(keys[2], (keys[2], ""))
        body = bodies[int(keys[1])].get("name", f"body {keys[1]}") if keys[1].isdecimal() else keys[1]
        return f"{text} of {body}", self._unit(dimension)

    def __repr__(self) -> str:
        size = " × ".join(map(str, reversed(self.shape)))
        return f"<StabilityMap '{self.scenario.name}': {size} systems, {self.done} done: {', '.join(self.values)}>"

    def quantity(self, name: str) -> Quantity:
        """How a quantity is drawn. Raises InputError: the map lacks it."""
        if name not in self._quantities:
            hint = did_you_mean(name, self._quantities)
            raise InputError(f"map: there is no {name!a} in it{hint}; it has {', '.join(self._quantities)}")
        return self._quantities[name]

    def at(self, x: float, y: float | None = None) -> Scenario:
        """The scenario of the system whose values are nearest: ``nbody.Simulation(map.at(1.05, 0.2))``. A system that has
        ended in a close encounter, where its map would stop again, gets the scheme ``ias15``. Raises InputError: a value is
        outside the map, or missing."""
        index = 0
        for name, axis, value in (("y", self.y, y), ("x", self.x, x)):
            if axis is None and value is None:
                continue
            if axis is None or value is None or not axis.min() <= value <= axis.max():
                limits = "no such axis" if axis is None else f"{axis.min():g} to {axis.max():g}"
                raise InputError(f"map: there is no point with {name} = {shown(value)}; this map has {limits}")
            index = index * len(axis) + int(np.abs(axis - value).argmin())
        alone = member(self.scenario, index)
        return _through_encounters(alone) if self.status.flat[index] == ENCOUNTER else alone

    def plot(self, *names: str, axes: "Axes | None" = None, style: str | Path = "") -> "RunFigure":
        """A figure in a matplotlib style (a name or a file) with a panel for each of these quantities, by default all; or
        the first one drawn into ``axes``, without a style. Raises InputError."""
        from nbody.maps.picture import plot_map

        return plot_map(self, names or tuple(self.values), axes, str(style))

    # --- How it is made ---

    def check(self) -> Plan:
        """The plan of a run of all systems. Raises InputError: the scenario, the grid or a quantity does not fit."""
        planned = plan(self.scenario, measure=False)
        self._look(self._begun(1), make_particles(self.scenario, systems=range(1)), np.array([True]))
        return planned

    def compute(self, show: Show = lambda fraction, text: None, notify: Notify = silent) -> bool:
        """Compute the systems that are missing. Returns False if a signal has stopped it; what is done is kept."""
        planned = self.check()
        device = planned.engine_kind.can.device
        size = BLOCK[device] * (1 if device == "gpu" else machine.cores())
        self.provenance = machine.provenance(engine=planned.engine_name, precision=planned.scenario.precision)
        last = time.monotonic()
        if self.done == 0:
            self._save(notify)
        with stop_on_signals() as stop:
            try:
                for block in self._blocks(size):
                    if not self._compute(block, show, stop):
                        return False
                    if time.monotonic() - last > SAVE_SECONDS:
                        self._save(notify)
                        last = time.monotonic()
            finally:
                self._save(notify)
        return True

    def _blocks(self, size: int) -> Iterator[range]:
        """The missing systems, in parts of about equal size."""
        first, end = self.done, self.status.size
        parts = -(-(end - first) // size)
        ends = [first + (end - first) * k // max(parts, 1) for k in range(parts + 1)]
        return (range(ends[k], ends[k + 1]) for k in range(parts))

    def _compute(self, block: range, show: Show, stop: StopRequest) -> bool:
        """Compute a block; False if it was interrupted."""
        total = self.status.size

        def tell(done: float) -> None:
            fraction = (block.start + done * len(block)) / total
            show(fraction, f"{fraction:.1%} of {total} systems")

        tell(0.0)
        bodies = make_particles(self.scenario, systems=block)
        if stop.requested:
            return False
        alone = self.scenario.with_keywords({"ensemble": {"systems": len(block), "vary": None}})
        simulation = Simulation(alone, particles=bodies, notify=silent)
        found = self._begun(len(block))
        self._look(found, bodies, np.ones(len(block), bool))

        def ends() -> Mapping[str, np.ndarray]:
            return simulation.stepper.integrator.report(simulation.stepper.motion).observed

        def look(now: Particles) -> None:
            self._look(found, now, ends()["system_status"] == DONE)

        called = None
        if self._watches:
            called = Callback(simulation.stepper, look, simulation.setup.plan.schedule)
        for event in simulation.progress_events(callback=called, pace=_Unpaced(stop)):
            tell(event.progress.fraction_done)
        assert simulation.summary is not None
        if simulation.summary.interrupted:
            return False
        look(simulation.particles)
        ended = ends()
        for name, each in self._quantities.items():
            self.values[name].flat[block.start : block.stop] = each.result(found[name], ended)
        self.status.flat[block.start : block.stop] = ended["system_status"]
        return True

    def _begun(self, systems: int) -> dict[str, np.ndarray]:
        return {name: each.begin(systems) for name, each in self._quantities.items()}

    @property
    def _watches(self) -> bool:
        return any(each.watches for each in self._quantities.values())

    def _look(self, found: Mapping[str, np.ndarray], particles: Particles, running: np.ndarray) -> None:
        now = SystemsNow(particles, running, self.scenario.gravity.G)
        for name, each in self._quantities.items():
            if each.watches:
                each.look(found[name], now)

    def _save(self, notify: Notify) -> None:
        """Write the file."""
        if self.path is None:
            return
        axes = {name: getattr(self, name) for name in ("x", "y")[: len(self.axes)]}
        texts = {
            "scenario": self.scenario.to_yaml(), "quantities": json.dumps(list(self.values)),
            "provenance": json.dumps(self.provenance), "status@names": ", ".join(SYSTEM_STATUS),
        }  # fmt: skip
        for name, (text, unit) in self.labels.items():
            at = name if name in axes else f"values/{name}"
            texts |= {f"{at}@label": text, f"{at}@unit": unit}
        values = {f"values/{name}": each for name, each in self.values.items()}
        self.path.parent.mkdir(exist_ok=True)
        with new_file(self.path, MAP, True, notify) as draft:
            write_map(draft, {**axes, **values, "status": self.status}, texts)
