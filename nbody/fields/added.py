"""External fields, added to the accelerations and potentials that an engine has computed: in one place, for all engines.

Fields are computed in float64 whatever the precision, and their sum is rounded once when it is added. They cost N
evaluations beside the N² pairs.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nbody.errors import InputError
from nbody.fields.field import ABOUT, LAST, Field, VelocityField
from nbody.particles import Named, first_system, rows_of
from nbody.state import Outputs, State
from nbody.state.host import HostState

Array = np.ndarray


class AddedFields:
    """The sum of external fields.

    The potential Φ of a field counts whole in the energy, and the φ of the pairs half (each pair has two). So 2 Φ is added
    to the numbers q of :class:`~nbody.state.Outputs`, with W = ½ Σ m q.

    Args:
        fields: the fields, at least one.
        G: the gravitational constant.
        systems: the number of systems of an ensemble, in each of which forces about a body act.

    Raises:
        ArithmeticError: a parameter of a field is not finite.
        InputError: two fields are a :class:`~nbody.fields.field.VelocityField`.

    Attributes:
        about: the parts that act about bodies, by the number of their rows. :meth:`settle` says which rows these have.
        terms: :meth:`~nbody.fields.field.Field.term` of each part of the sum.
        parameters: (K, 3 + n), the centre and the parameters of each.
        time_dependent: True if the sum changes with time.
        velocity_field: the force between the bodies that depends on velocities; None if there is none.
        without_potential: the names of the fields that the energies leave out.
        energy_changes: why the energy is not constant although it is complete, in one clause; empty if it is.
    """

    def __init__(self, fields: Sequence[Field | VelocityField], G: float, systems: int = 1) -> None:
        each = [part for field in fields if isinstance(field, Field) for part in field.parts()]
        kinds = list(dict.fromkeys(part.term() for part in each))
        parts = sorted(each, key=lambda part: kinds.index(part.term()))  # equal terms in a row, see summed()
        between = [field for field in fields if isinstance(field, VelocityField)]
        if len(between) > 1:
            raise InputError("fields: two forces depend on the velocities, and a run can have one; remove one of them")
        self.velocity_field = between[0] if between else None
        self._fields, self._G, self.systems = fields, G, systems
        self.terms = tuple(part.term() for part in parts)
        self.time_dependent = any(part.time_dependent for part in parts)
        self.energy_changes = next(filter(None, map(_change, parts)), "")
        self.without_potential = list(dict.fromkeys(part.title for part in parts if not part.has_potential))
        rows = [(*part.centre, -1.0, 0.0, 2.0**53, *part.parameters(G)) for part in parts]
        self.about = {k: part.bodies for k, part in enumerate(parts) if part.bodies is not None}
        self.parameters = np.zeros((len(rows), max(map(len, rows), default=6)))
        for row, values in zip(self.parameters, rows, strict=True):
            row[: len(values)] = values
        if not np.isfinite(self.parameters).all():
            raise OverflowError
        self._sizes, self._titles = [part.size() for part in parts], [part.title for part in parts]
        self._on_device: Any = None
        self._settled = not self.about  # ids are known, not only names

    def settle(self, bodies: Named, strict: bool = True) -> None:
        """Let the forces of bodies be those of the rows that these have. A body that is gone feels none.

        Raises InputError: at first there is no such body; later the one is gone about which a force acts. (If not
        ``strict`` that force is zero.)
        """
        self._on_device, bodies = None, first_system(bodies, self.systems)
        for k, (about, on) in self.about.items():
            where = f"fields: {self._titles[k]}: "
            if not self._settled:
                about = int(bodies.id[rows_of(bodies, about, f"{where}about: ")[0]])
                if on is not None and on not in bodies.species_names:
                    on = int(bodies.id[rows_of(bodies, on, f"{where}on: ")[0]])
                self.about[k] = about, on
            centre = np.flatnonzero(bodies.id == about)
            if not len(centre) and strict:
                raise InputError(f"{where}body {about}, about which it acts, is gone")
            rows = np.arange(len(bodies.id) if len(centre) else 0)
            if isinstance(on, str):
                rows = np.flatnonzero(bodies.species[rows] == bodies.species_names.index(on))
            elif on is not None:
                rows = np.flatnonzero(bodies.id[rows] == on)
            first, last = (rows[0], rows[-1] + 1) if len(rows) else (0, 0)
            if last - first != len(rows):
                raise InputError(f"{where}on: the bodies of '{on}' do not follow one another; name them one by one")
            self.parameters[k, ABOUT : LAST + 1] = centre[0] if len(centre) else 0, first, last
        self._settled = True

    def of(self, bodies: Named) -> "AddedFields":
        """The same sum for other bodies, of which some may be gone."""
        found = object.__new__(AddedFields)
        vars(found).update(vars(self))
        found.parameters, found.about = self.parameters.copy(), dict(self.about)
        found.settle(bodies, strict=False)
        return found

    def doubts(self, position: Array, time: float, mass: Array) -> list[str]:
        """A line for each field whose force is not minus the gradient of its potential at these places."""
        some = slice(None, None, -(-len(position) // 8))
        bodies = [
            (*row, *[0.0] * (3 - len(row)), m) for row, m in zip(position[some].tolist(), mass[some].tolist(), strict=True)
        ]
        return [line for field in self._fields if isinstance(field, Field) and (line := field.doubt(bodies, time))]

    def __reduce__(self) -> tuple[Any, ...]:
        return AddedFields, (self._fields, self._G, self.systems)  # another process has its own functions

    def add(self, state: State, outputs: Outputs, accelerations: bool = True, targets: Any = None) -> None:
        """Add the fields at the time ``state.clock.now`` to what an engine has just computed: to the accelerations if
        ``accelerations``, and to the jerk and the potential if ``outputs`` has them; for the ``targets``, or all bodies."""
        state.clock.time_dependent |= self.time_dependent
        if isinstance(state, HostState):
            self._add_on_host(state, outputs, accelerations, targets)
        else:
            self._add_on_device(state, outputs, accelerations, targets)

    def at(
        self,
        position: Array,
        time: float = 0.0,
        velocity: Array | None = None,
        mass: Array | None = None,
        rows: Array | None = None,
    ) -> tuple[Array, Array]:
        """The accelerations (N, D) and the potential Φ per unit mass (N,) of the fields at positions (N, D), in float64; of
        bodies with a ``velocity`` (N, D) and a ``mass`` (N,), both zero if they are not given. ``rows``: of these only."""
        velocity = np.zeros_like(position) if velocity is None else velocity
        mass = np.zeros(len(position)) if mass is None else mass
        rows = np.arange(len(position)) if rows is None else rows
        bodies, n = (position, velocity, mass), len(mass) // self.systems
        found = _values(self.terms, self.parameters, rows, bodies, np.full(len(rows), time), n)
        return found[:, : position.shape[1]], found[:, 3]

    def energies(self, position: Array, velocity: Array, mass: Array, time: float) -> Array:
        """The energy of each body per unit of its mass, (N,): in the fields, and of general relativity."""
        found = self.at(position, time, velocity, mass)[1]
        if self.velocity_field is not None:
            self.velocity_field.add(position, velocity, mass, self._G, self.systems, potential=found)
        return found

    def _add_on_host(self, state: HostState, outputs: Outputs, accelerations: bool, targets: Array | None) -> None:
        rows: slice | Array = slice(None) if targets is None else targets
        if self.velocity_field is not None:
            arrays = (state.acceleration, state.potential)
            others = [array.copy() for array in arrays] if targets is not None else []
            bodies = state.position, state.velocity, state.mass
            if accelerations:
                self.velocity_field.add(*bodies, self._G, self.systems, acceleration=state.acceleration)
            if Outputs.ENERGY in outputs:
                self.velocity_field.add(*bodies, self._G, self.systems, potential=state.potential, factor=2.0)
            for array, before in zip(arrays, others, strict=False):
                before[rows] = array[rows]
                array[...] = before
        if not self.terms:
            return
        some = slice(None) if self.about else rows
        x, v, m = (array[some].astype(np.float64, copy=False) for array in (state.position, state.velocity, state.mass))
        acceleration, potential = self.at(x, state.clock.now, v, m, targets if self.about else None)
        if accelerations:
            state.acceleration[rows] += acceleration
        if Outputs.ENERGY in outputs:
            state.potential[rows] += 2 * potential
        if Outputs.JERK in outputs:
            [jerk] = state.values("jerk", copy=False)
            a = state.acceleration[some].astype(np.float64, copy=False)
            found = self.jerk(x, v, a, m, state.clock.now)
            jerk[rows] += found[rows] if self.about else found

    def jerk(self, x: Array, v: Array, a: Array, m: Array, time: float) -> Array:
        """The rate of change (N, D) of the acceleration along the motion of bodies with positions, velocities, accelerations
        (N, D) and masses (N,), by differences."""
        from nbody.fields.jerk import jerk_along

        jerk, dimensions = np.zeros_like(x), x.shape[1]
        for k, size in enumerate(self._sizes):
            term, part = self.terms[k : k + 1], self.parameters[k : k + 1]

            def values(x: Array, v: Array, times: Array, term: Any = term, part: Array = part) -> Array:
                return _values(term, part, np.arange(len(x)), (x, v, m), times, len(x))[:, :dimensions]

            centre = x[int(part[0, ABOUT])] if k in self.about else part[0, :dimensions]
            jerk += jerk_along(values, x, v, a, time, centre, size, k in self.about)
        return jerk

    def difference_steps(self, x: Array, v: Array, m: Array, time: float) -> Array:
        """The step (N,) of a difference along the motion of each body: the shortest one of all fields with fixed centres."""
        from nbody.fields.jerk import difference_steps

        found, D = np.full(len(x), np.inf), x.shape[1]
        for k, size in enumerate(self._sizes):
            term, part = self.terms[k : k + 1], self.parameters[k : k + 1]
            a = _values(term, part, np.arange(len(x)), (x, v, m), np.full(len(x), time), len(x))[:, :D]
            found = np.fmin(found, difference_steps(x - part[0, :D], v, a, size))
        return found

    def _add_on_device(self, state: Any, outputs: Outputs, accelerations: bool, targets: Any) -> None:
        from nbody.compute import cuda
        from nbody.fields.device import add_fields

        if self._on_device is None:
            self._on_device = cuda.to_device(self.parameters)
        add_fields(self.terms, state, self._on_device, self.systems, accelerations, Outputs.ENERGY in outputs, targets)
        if self.velocity_field is not None and Outputs.ENERGY in outputs:  # of frames alone: the scheme knows the force
            x, v, m = state.values("position", "velocity", "mass")
            found = state.acceleration.copy_to_host()
            found[:, 3] += 2 * (self.energies(x, v, m, state.clock.now) - self.at(x, state.clock.now, v, m)[1])
            state.acceleration.copy_to_device(found)


def _change(field: Field) -> str:
    """Why a field changes the energy of bodies that move in it."""
    if field.time_dependent:
        return f"the potential of '{field.title}' changes with time"
    return f"'{field.title}' depends on the velocity" if field.term().moving else ""


def _values(terms: Any, parameters: Array, rows: Array, bodies: tuple[Array, Array, Array], times: Array, n: int) -> Array:
    """Acceleration and potential (T, 4) of a sum of terms for some bodies, each at its time, in systems of n."""
    from nbody.fields.compiled import values_of  # imports Numba: 0.4 s

    found = np.empty((len(rows), 4))
    values_of(terms)(rows, *bodies, n, times, parameters, found)
    return found
