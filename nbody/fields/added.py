"""External fields, added to the accelerations and potentials that an engine has computed: in one place, for all engines.

Fields are computed in float64 whatever the precision, and their sum is rounded once when it is added. They cost N
evaluations beside the N² pairs.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nbody.errors import InputError
from nbody.fields.field import MOST, Field, VelocityField
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

    Raises:
        ArithmeticError: a parameter of a field is not finite.
        InputError: a field has more than MOST parameters, or two are a :class:`~nbody.fields.field.VelocityField`.

    Attributes:
        functions: :attr:`~nbody.fields.field.Field.evaluate` of each part of the sum.
        parameters: (K, 3 + MOST), the centre and the parameters of each.
        time_dependent: True if the sum changes with time.
        velocity_field: the force that depends on velocities; None if there is none.
    """

    def __init__(self, fields: Sequence[Field | VelocityField], G: float) -> None:
        each = [part for field in fields if isinstance(field, Field) for part in field.parts()]
        kinds = list(dict.fromkeys(map(type, each)))
        parts = sorted(each, key=lambda part: kinds.index(type(part)))  # equal functions in a row, see summed()
        between = [field for field in fields if isinstance(field, VelocityField)]
        if len(between) > 1:
            raise InputError("fields: two forces depend on the velocities, and a run can have one; remove one of them")
        self.velocity_field = between[0] if between else None
        self._G = G
        self.functions = tuple(type(part).evaluate for part in parts)
        self.time_dependent = any(part.time_dependent for part in parts)
        self.parameters = np.zeros((len(parts), 3 + MOST))
        for row, part in zip(self.parameters, parts, strict=True):
            values = (*part.centre, *part.parameters(G))
            if len(values) > len(row):
                given = f"fields: {type(part).__name__} has {len(values) - 3} numbers in parameters()"
                raise InputError(f"{given}, and a field has {MOST} at most; divide it into parts()")
            row[: len(values)] = values
        if not np.isfinite(self.parameters).all():
            raise OverflowError
        self._sizes = np.array([part.size() for part in parts])
        self._on_device: Any = None

    @property
    def in_files(self) -> bool:
        """True if kernels on disk may contain the fields: they depend on positions and time alone, and are written in files,
        so that a change of them is noticed."""
        files = (Path(function.__code__.co_filename) for function in self.functions)
        return self.velocity_field is None and all(file.is_file() for file in files)

    def add(self, state: State, outputs: Outputs, accelerations: bool = True, targets: Any = None) -> None:
        """Add the fields at the time ``state.clock.now`` to what an engine has just computed: to the accelerations if
        ``accelerations``, and to the jerk and the potential if ``outputs`` has them; for the ``targets``, or all bodies."""
        state.clock.time_dependent |= self.time_dependent
        if isinstance(state, HostState):
            self._add_on_host(state, outputs, accelerations, targets)
        else:
            self._add_on_device(state, outputs, accelerations, targets)

    def at(self, position: Array, time: float = 0.0) -> tuple[Array, Array]:
        """The accelerations (N, D) and the potential Φ per unit mass (N,) of the fields at positions (N, D), in float64."""
        from nbody.fields.compiled import values_at  # imports Numba: 0.4 s

        found = values_at(self.functions, self.parameters, position, np.full(len(position), time))
        return found[:, : position.shape[1]], found[:, 3]

    def _add_on_host(self, state: HostState, outputs: Outputs, accelerations: bool, targets: Array | None) -> None:
        rows: slice | Array = slice(None) if targets is None else targets
        if self.velocity_field is not None:
            arrays = (state.acceleration, state.potential)
            others = [array.copy() for array in arrays] if targets is not None else []
            self.velocity_field.add(state, self._G, accelerations, Outputs.ENERGY in outputs)
            for array, before in zip(arrays, others, strict=False):
                before[rows] = array[rows]
                array[...] = before
        if not self.functions:
            return
        x = state.position[rows].astype(np.float64, copy=False)
        acceleration, potential = self.at(x, state.clock.now)
        if accelerations:
            state.acceleration[rows] += acceleration
        if Outputs.ENERGY in outputs:
            state.potential[rows] += 2 * potential
        if Outputs.JERK in outputs:
            [jerk] = state.values("jerk", copy=False)
            jerk[rows] += self._jerk(x, state.velocity[rows].astype(np.float64, copy=False), state.clock.now)

    def _jerk(self, x: Array, v: Array, time: float) -> Array:
        """The rate of change of the acceleration along the bodies' motion: for each part a central difference of order 4
        over a thousandth of the time in which a body crosses the field. The error is some 1e-12 of the jerk."""
        from nbody.fields.compiled import values_at

        jerk, dimensions = np.zeros_like(x), x.shape[1]
        for k, function in enumerate(self.functions):
            part = self.parameters[k : k + 1]

            def moved(steps: int, function: Any = function, part: Array = part, h: Any = 0.0) -> Array:
                points, times = x + steps * (v.T * h).T, time + steps * h + np.zeros(len(x))
                return values_at((function,), part, points, times)[:, :dimensions]

            distance = np.linalg.norm(x - part[0, :dimensions], axis=1) + self._sizes[k]
            speed = np.linalg.norm(v, axis=1) + np.sqrt(np.linalg.norm(moved(0), axis=1) * distance)
            h = 1e-3 * distance / np.where(speed > 0, speed, 1.0)
            change = 8 * (moved(1, h=h) - moved(-1, h=h)) - (moved(2, h=h) - moved(-2, h=h))
            jerk += change / (12 * h[:, None])
        return jerk

    def _add_on_device(self, state: Any, outputs: Outputs, accelerations: bool, targets: Any) -> None:
        from nbody.compute import cuda
        from nbody.fields.device import add_fields

        if self._on_device is None:
            self._on_device = cuda.to_device(self.parameters)
        add_fields(self.functions, state, self._on_device, accelerations, Outputs.ENERGY in outputs, targets)
