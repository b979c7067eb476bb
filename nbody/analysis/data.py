"""What plots read from a recording: times, observables as recorded or computed from frames, the bodies of a frame."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from nbody.diagnostics import FRACTIONS, core_radius, density_centre, escapers, lagrangian_radii, local_density
from nbody.diagnostics.orbits import Elements, orbits_over_time
from nbody.errors import InputError, counted, printable, unknown
from nbody.particles import Particles, body_names, rows_of
from nbody.scenario.quantities import shown_time
from nbody.state.sums import system_sums
from nbody.trajectory import Trajectory
from nbody.trajectory.reading.systems import System
from nbody.whole_file import Notify

Array = np.ndarray
Read = TypeVar("Read")

PATH_FRAMES, SAMPLES = 2000, 200
"""The most frames that are read for paths and orbits, and from which an observable that was not recorded is computed."""

FEW = 16
"""The most bodies for which a run is shown by orbits, of all of them, instead of profiles."""

BODIES, FEWEST = 2_000_000, 16
"""Large runs use fewer frames: at most this many bodies in all (5 s on two cores), but at least this many frames."""

LARGEST = 1e100  # of all numbers that are drawn: volumes of larger ones have no float64, nor have the ticks of an axis


class RunData:
    """A recording as plots see it.

    Attributes:
        run: the trajectory, or one system of an ensemble.
        label: its name in a legend.
        species: the number of the species whose bodies are shown; None for all bodies.
        count: the number of these bodies.
        time: (T,), in a unit that people read, ``unit("time")``; ``time_factor`` times that of the run.
    """

    def __init__(self, run: Trajectory | System, label: str, notify: Notify = lambda line: None) -> None:
        """Raises InputError if the recording has no frame."""
        self.run: Any = run
        self.label, self.notify = label, notify
        self.species: int | None = None
        self.count = run.count
        self.time_factor, self._time_unit = shown_time(run.units.symbol("time"))
        self.time = run.time * self.time_factor
        self._centres: dict[int, tuple[Array, float]] = {}
        self._orbits: dict[object, tuple[Array, Elements]] = {}
        if not len(run):
            raise InputError(f"{run.path}: has no frame yet; plot it when the run has begun")
        if not (drawable := np.abs(run.time) <= LARGEST).all():
            k = int(np.argmin(drawable))
            raise InputError(
                f"{run.path}: frame {k} has no finite time up to {LARGEST:g}; check the file with 'nbody info --verify'"
            )

    def of_species(self, name: str, label: str) -> "RunData":
        """The bodies of one species as a recording of their own, about the centre of all. Raises InputError."""
        if name not in self.run.species_names:
            raise unknown("species", name, self.run.species_names, f"{self.run.path}: ")
        found = copy(self)
        found.label, found.species = label, self.run.species_names.index(name)
        found.count = int(np.count_nonzero(self.run.species == found.species))
        if not found.count:
            raise InputError(f"{self.run.path}: species '{printable(name)}' has no bodies; choose another one")
        return found

    def unit(self, quantity: str) -> str:
        """The symbol of a unit, by the names of ``Units.symbol``; empty if there is none."""
        if quantity == "time":
            return printable(self._time_unit)
        return printable(self.run.units.symbol(quantity)).replace("^2", "²").replace("^3", "³")

    def particles(self, frame: int) -> Particles:
        """The bodies of a frame that are shown. Raises InputError as :meth:`everything`."""
        found = self.everything(frame)
        return found if self.species is None else found.rows(found.species == self.species)

    def everything(self, frame: int) -> Particles:
        """All bodies of a frame. Raises InputError if a number in it is not finite, or it is damaged."""
        k = self.run.index(frame)
        found = self.run.particles(k)
        good = (np.abs(np.column_stack([found.mass, found.position, found.velocity])) <= LARGEST).all(axis=1)
        if not good.all():
            raise InputError(
                f"{self.run.path}: frame {k}: body {found.id[np.argmin(good)]} has a position, velocity or mass that is not "
                f"finite, or beyond {LARGEST:g}; choose another frame"
            )
        return found

    def rows(self, bodies: Sequence[int | str], most: int) -> list[int]:
        """The rows of these bodies; if none is given, of up to ``most`` bodies, evenly spread in the file's order. Raises
        InputError for an id or a name that no body has."""
        found: list[int] = rows_of(self.run, bodies, f"{self.run.path}: ").tolist()
        known = np.arange(self.run.count) if self.species is None else np.flatnonzero(self.run.species == self.species)
        return found or known[spread(self.count, most)].tolist()

    @cached_property
    def names(self) -> dict[int, str]:
        """The names of the bodies that have one, by their ids."""
        return body_names(self.run)

    def name(self, id: int) -> str:
        """The name of a body, or its id."""
        return self.names.get(id, f"body {id}")

    def orbits(self, ids: Sequence[int], about: int | str) -> tuple[Array, Elements]:
        """Time (K,) and the orbits, (K, bodies), of the bodies with these ids, computed once. Raises InputError as
        :meth:`Trajectory.orbits`."""
        key = (tuple(ids), about)
        if key not in self._orbits:
            frames = self._frames(PATH_FRAMES)
            found = dict(self.drawable("elements", frames, self.everything))
            self._orbits[key] = self.time[list(found)], orbits_over_time(found.values(), self.run.G, about, ids)
        return self._orbits[key]

    def observable(self, name: str, fix: str) -> Array:
        """An observable at every frame. Raises InputError, with ``fix`` at its end, if it was not recorded."""
        values = self._recorded(name)
        self._check_of_all(name)
        if values is None:
            if name in self.run.widths and isinstance(self.run, System):
                fix = "it has that of all systems together; plot energy, orbits or elements"
            raise InputError(f"{self.run.path}: holds no {name.replace('_', ' ')}; {fix}")
        return values

    def _check_of_all(self, name: str) -> None:
        """Raise InputError if a species is chosen: this quantity is recorded of all bodies together."""
        if self.species is not None:
            raise InputError(f"{self.run.path}: '{name.replace('_', ' ')}' is that of all bodies; name no species")

    def _recorded(self, name: str) -> Array | None:
        """An observable at every frame, (T,) or (T, width), NaN where it can't be drawn; None if it was not recorded, or if
        a species is chosen: observables are those of all bodies."""
        if self.species is not None:
            return None
        with suppress(InputError):
            values = self.run.observable(name)
            values = np.where(np.abs(values) <= LARGEST, values, np.nan)
            return None if np.isnan(values).all() else values
        return None

    def momenta(self) -> tuple[Array, Array, Array]:
        """Time (K,), and the momentum and the angular momentum, (K, 3) each."""
        momentum, angular = self._recorded("momentum"), self._recorded("angular_momentum")
        if momentum is not None and angular is not None:
            return self.time, momentum, angular
        frames, values = self._computed(
            "momenta", lambda k, p: system_sums(p.mass, p.position, p.velocity, np.zeros(p.count))[2:]
        )
        return self.time[frames], values[:, :3], values[:, 3:]

    def structure(self, name: str) -> tuple[Array, Array]:
        """Time (K,) and ``lagrangian_radii`` (K, 3) or ``core_radius`` (K,)."""
        if name == "core_radius":
            self._check_of_all(name)
        recorded = self._recorded(name)
        if recorded is not None:
            return self.time, recorded
        if self.count < 3:
            raise InputError(f"{self.run.path}: radii about a density centre need three bodies or more; plot orbits")
        frames, values = self._structure
        return self.time[frames], values[:, 0] if name == "core_radius" else values[:, 1:]

    def escapers(self) -> tuple[Array, Array]:
        """Time (K,) and how many bodies (K,) are unbound or have been removed by ``escape``."""
        rows = self.run.event_rows()
        gone = np.sort(rows["step"][rows["kind"] == b"escaped"])
        unbound = self._recorded("escapers")
        self._check_of_all("escapers")
        frames: Sequence[int] = range(len(self.time))
        if unbound is None:
            frames, unbound = self._computed("escapers", lambda k, p: escapers(p, self.run.G))
        return self.time[list(frames)], unbound + np.searchsorted(gone, self.run.step[list(frames)], side="right")

    def centre(self, frame: int) -> tuple[Array, float]:
        """The density centre of all bodies, and their core radius, of a frame; computed once (4 s for a million bodies)."""
        if frame not in self._centres:
            everything = self.everything(frame)
            density = local_density(everything)
            centre = density_centre(everything, density)
            self._centres[frame] = centre, core_radius(everything, density, centre)
        return self._centres[frame]

    @cached_property
    def _structure(self) -> tuple[list[int], Array]:
        """The core radius of all bodies, and Lagrangian radii, about the density centre of all."""

        def measure(frame: int, particles: Particles) -> list[float]:
            centre, radius = self.centre(frame)
            return [radius, *lagrangian_radii(particles, FRACTIONS, centre)]

        return self._computed("radii", measure)

    def _computed(self, what: str, measure: Callable[[int, Particles], Any]) -> tuple[list[int], Array]:
        """A quantity at frames spread evenly over the run, without those that can't be drawn."""
        frames = self._frames(SAMPLES)
        if len(frames) < len(self.time):
            self.notify(f"{self.run.path}: {what} from {len(frames)} of its {len(self.time)} frames, evenly spread")
        found = {k: measure(k, p) for k, p in self.drawable(what, frames, self.particles)}
        return list(found), np.array(list(found.values()))

    def _frames(self, most: int) -> list[int]:
        return spread(len(self.time), min(most, max(FEWEST, BODIES // self.run.count)))

    def drawable(self, what: str, frames: Sequence[int], read: Callable[[int], Read]) -> Iterator[tuple[int, Read]]:
        """These frames as ``read`` returns them. Those that it refuses, damaged or not finite, are left out, and a line says
        how many. Raises InputError if no frame is left."""
        lost = 0
        for k in frames:
            try:
                values = read(k)
            except InputError:
                lost += 1
            else:
                yield k, values
        if lost == len(frames):
            raise InputError(f"{self.run.path}: no frame can be read and is finite; see 'nbody info --verify'")
        if lost:
            without = counted(lost, "frame that is damaged or not finite", "frames that are damaged or not finite")
            self.notify(f"{self.run.path}: {what} without {without}")


def spread(frames: int, samples: int) -> list[int]:
    """Up to ``samples`` frames from the first to the last, evenly spread."""
    return sorted({round(k) for k in np.linspace(0, frames - 1, samples)})
