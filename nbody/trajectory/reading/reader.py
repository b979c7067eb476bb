"""``Trajectory``: a recording as Python and notebooks use it: bodies at a frame or between frames, and tables."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nbody.diagnostics.energy import booked
from nbody.diagnostics.orbits import Elements, focus_of, orbits_over_time
from nbody.errors import InputError, printable, refuse_attribute, shortened
from nbody.given import converted, number
from nbody.particles import Particles, rows_of
from nbody.trajectory.reading import notebook
from nbody.trajectory.reading.events import event_table
from nbody.trajectory.reading.frames import RecordedFrames
from nbody.trajectory.reading.systems import System, number_of_systems, system_table
from nbody.trajectory.reading.tables import observable_table
from nbody.trajectory.structure.opening import one_line

if TYPE_CHECKING:
    from nbody.scenario import Units

Array = np.ndarray


class Trajectory(RecordedFrames):
    """A recording, open for reading. ``with Trajectory(path) as run:`` closes it.

    Arrays: ``time``, ``step`` (T,), ``mass``, ``id``, ``species`` (N,), ``position[k]``, ``velocity[k]`` (N, D); see
    :class:`~nbody.trajectory.reading.frames.RecordedFrames` for these and for the facts of the run.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if "time" in vars(self):  # the last attribute that is made
            refuse_attribute(self, name, "trajectory")
        object.__setattr__(self, name, value)

    @property
    def name(self) -> str:
        """The name of the scenario, on one line."""
        return shortened(printable(self.resolved.get("name", "")), 60) or "run"

    @property
    def G(self) -> float:
        """The gravitational constant of the run, in its units. Raises InputError if the recording holds no number."""
        with one_line(self.path):
            return float(self.resolved.get("gravity", {}).get("G", 1.0))

    @property
    def units(self) -> "Units":
        """The units of the run's numbers; symbols are empty if its scenario has none."""
        from nbody.scenario.quantities import Units  # pydantic takes 0.1 s

        known = written if isinstance(written := self.resolved.get("units"), dict) else {}
        return Units(**{key: str(known.get(key, "")) for key in ("length", "mass", "time", "velocity")})

    def __getitem__(self, frame: Any) -> Any:
        """``run[k]``: the :class:`~nbody.particles.Particles` of frame ``k``; a slice or a list of frames gives a list."""
        if isinstance(frame, int | np.integer):
            return self.particles(frame if isinstance(frame, int) else int(frame))  # true is refused there
        return [self.particles(int(k)) for k in np.arange(len(self))[frame]]

    def __iter__(self) -> Iterator[Particles]:
        """The particles of each frame."""
        return (self.particles(k) for k in range(len(self)))

    def at(self, time: float) -> Particles:
        """The bodies at a time between two frames, in float64: positions on the cubic that has those of both frames and
        their velocities (Hermite), velocities on its derivative; the errors are of order 4 and 3 in the time between
        frames. At a frame: :meth:`particles`. Bodies that merge before the next frame are still two, and those that are
        removed go straight on.

        Raises:
            InputError: the time is before the first frame or after the last one, or a frame is damaged.
        """
        k, time = self._frame_before(time)
        found = self.particles(k)
        if found.time == time:
            return found
        h, x0, v0, x1, v1 = self._ends(k)
        s = (time - found.time) / h
        # With d = x1 - x0 - h v0 and w = h (v1 - v0): x = x0 + h v0 s + (3 d - w) s² + (w - 2 d) s³.
        d, w = x1 - x0 - h * v0, h * (v1 - v0)
        x = x0 + (h * v0 + ((3 * d - w) + (w - 2 * d) * s) * s) * s
        v = v0 + (2 * (3 * d - w) + 3 * (w - 2 * d) * s) * s / h
        alive = self.left(k).alive
        return replace(found, position=x[alive], velocity=v[alive], time=time)

    def error_at(self, time: float) -> Array:
        """An estimate of the error of the positions of :meth:`at`, ``|d⁴x/dt⁴| h⁴ s² (1 - s)²/24``, one for each body; h is
        the time between the two frames, and s the fraction of it that has passed. The fourth derivative is the difference of
        the third ones of neighbouring cubics, so it means little if frames are a good part of an orbit apart.

        Raises:
            InputError: as :meth:`at`, or there are fewer than three frames.
        """
        k, time = self._frame_before(time)
        if len(self) < 3:
            raise InputError(
                f"{self.path}: the error between two frames follows from a third one, and there are {len(self)}"
            )
        alive = self.left(k).alive
        if time == self.time[k]:
            return np.zeros(np.count_nonzero(alive))
        thirds = {n: self._third_derivative(n) for n in (k - 1, k, k + 1) if 0 <= n < len(self) - 1}
        middle = {n: (self.time[n] + self.time[n + 1]) / 2 for n in thirds}
        fourth = [(thirds[n] - thirds[k]) / (middle[n] - middle[k]) for n in thirds if n != k]
        h = self.time[k + 1] - self.time[k]
        s = (time - self.time[k]) / h
        size: Array = np.max([np.linalg.norm(each, axis=1) for each in fourth], axis=0)
        return size[alive] * (h * h * s * (1 - s)) ** 2 / 24

    def _frame_before(self, time: object) -> tuple[int, float]:
        """The frame at a time, or the first one between which and the next the time lies, also if times fall; and the time.
        Raises InputError if there is none."""
        t, times = converted(f"{self.path}: at: ", number, time), self.time[:]
        reached = np.flatnonzero((times[:-1] - t) * (times[1:] - t) <= 0) if math.isfinite(t) else np.empty(0, int)
        if not len(reached) and not (len(times) and times[-1] == t):
            span = f"from t = {times[0]:g} to {times[-1]:g}" if len(times) else "at no time"
            raise InputError(f"{self.path}: at: the recording has frames {span}, got {t:g}")
        k = int(reached[0]) if len(reached) else len(times) - 1
        return k + (k + 1 < len(times) and times[k + 1] == t), t

    def _ends(self, k: int) -> tuple[float, Array, Array, Array, Array]:
        """The time between frames ``k`` and ``k`` + 1, and positions and velocities at both, in float64. A body that is not
        there any more has gone straight on."""
        rows = (column[n].astype(np.float64) for n in (k, k + 1) for column in (self.position, self.velocity))
        (x0, v0, x1, v1), h = rows, float(self.time[k + 1] - self.time[k])
        gone = np.isnan(x1)
        x1[gone], v1[gone] = (x0 + h * v0)[gone], v0[gone]
        return h, x0, v0, x1, v1

    def _third_derivative(self, k: int) -> Array:
        """That of the cubic after frame ``k``, (N, D)."""
        h, x0, v0, x1, v1 = self._ends(k)
        return (12 * (x0 - x1) + 6 * h * (v0 + v1)) / h**3

    @property
    def without_potential(self) -> list[str]:
        """The names of external forces that the energies leave out."""
        fields, known = self.resolved.get("fields") or (), self.stored_provenance.get("without_potential")
        old = [str(each.get("name")) for each in fields if isinstance(each, Mapping) and each.get("energy") is False]
        return [str(each) for each in known] if isinstance(known, list) else old

    def energy_balance(self) -> Array:
        """(T,) the total energy without what mergers and changes of the bodies have added to it: constant but for the errors
        of the scheme. NaNs if a force has no potential, so that the energy is not conserved."""
        energy = self.observable("total_energy") + (np.nan if self.without_potential else 0.0)
        names = [name for name in ("booked_energy", "collision_energy") if name in self.widths]
        balance: Array = energy - booked({name: self.observable(name) for name in names})
        return balance

    @property
    def observables(self) -> Any:
        """The observables of all frames as a table: a pandas DataFrame with the time as its index if pandas is installed,
        else a mapping of column names to arrays. Columns: ``step``, ``total_energy``, ``momentum_x`` …"""
        return observable_table(self.widths, self._numbers).shown()

    def _numbers(self, name: str) -> Array:
        """``step``, ``time``, or an observable, of every frame."""
        return {"step": self.step, "time": self.time}[name] if name in ("step", "time") else self.observable(name)

    @property
    def systems(self) -> Any:
        """The systems of an ensemble as a table, one row per system: a pandas DataFrame if pandas is installed, else a
        mapping of column names to arrays (S,). Columns: ``status``, ``time``, ``steps``, ``closest_approach``,
        ``energy_error``, and what varies.

        Raises:
            InputError: the recording is no ensemble.
        """
        return system_table(self).shown()

    def system(self, number: int) -> System:
        """One system of an ensemble; ``run.system(7).position`` is (T, n, D). Raises InputError if there is none."""
        return System(self, number)

    def orbits(
        self, about: int | str = "inner", bodies: Sequence[int | str] | None = None, frames: Sequence[int] | None = None
    ) -> Elements:
        """The orbital elements at every frame, or at some of them, arrays (T, K), by :func:`nbody.orbits` with the G of the
        run, of all bodies, or of some of the first frame. NaN at frames in which a body is not there.

        Raises:
            InputError: as :func:`nbody.orbits`; or there is no frame, an ensemble, or a focus that has merged into another.
        """
        if number_of_systems(self.resolved) or not len(self):
            raise InputError(f"{self.path}: orbits: needs one system with a frame")
        ids = None if bodies is None else self.id[rows_of(self, bodies, f"{self.path}: ")]
        moments = self if frames is None else map(self.particles, frames)
        return orbits_over_time(moments, self.G, focus_of(self, about), ids)

    @property
    def events(self) -> Any:
        """Events, collisions and changes as a table, in order of time: a pandas DataFrame if pandas is installed, else a
        mapping of column names to arrays. Columns: those of :data:`layout.EVENT_DTYPE` without the checksum."""
        return event_table(self.event_rows()).shown()

    def __repr__(self) -> str:
        return notebook.line(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: the facts, and a picture of the last frame."""
        return notebook.page(self)
