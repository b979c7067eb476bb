"""What a map shows of each system: numbers at its end, or extremes over the moments of the scenario's ``record``."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from nbody.diagnostics.orbits import Elements, elements
from nbody.errors import InputError
from nbody.given import KeyProblem
from nbody.maps import QUANTITIES
from nbody.particles import Particles, first_system, rows_of
from nbody.scenario import Scenario
from nbody.scenario.events import event_of_text
from nbody.scenario.source import ScenarioText
from nbody.scenario.values import Count, Group, Length, validated

Array = np.ndarray


@dataclass(frozen=True)
class SystemsNow:
    """All systems of a block at one moment: S systems of n bodies. ``running``: (S,) False for those that have ended; they
    stand still at the end of their last step, in which two planets were too close for it."""

    particles: Particles
    running: Array
    G: float

    @property
    def systems(self) -> int:
        """S."""
        return len(self.running)

    @cached_property
    def _arrays(self) -> tuple[Array, Array, Array]:
        x, v = (each.reshape(self.systems, -1, 3) for each in self.particles.in_space())
        return x, v, self.particles.mass.reshape(self.systems, -1)

    @cached_property
    def distance(self) -> Array:
        """The greatest distance of a body from the first one, (S,)."""
        x = self._arrays[0]
        return np.sqrt(((x - x[:, :1]) ** 2).sum(axis=2).max(axis=1))

    @cached_property
    def orbits(self) -> Elements:
        """Those of the bodies 1 … n-1 about the centre of mass of the bodies before, (S, n-1)."""
        x, v, m = self._arrays
        inner = np.cumsum(m, axis=1)
        about = [np.cumsum(m[..., None] * each, axis=1)[:, :-1] / inner[:, :-1, None] for each in (x, v)]
        return elements(x[:, 1:] - about[0], v[:, 1:] - about[1], self.G * inner[:, 1:])

    def columns(self, bodies: Sequence[int | str]) -> Array:
        """The columns of :attr:`orbits` of bodies with these ids or names. Raises InputError: there is no such body."""
        rows = rows_of(first_system(self.particles, self.systems), bodies, "--quantity: ")
        if not rows.all():
            raise InputError(f"--quantity: body {bodies[int(rows.argmin())]} is the centre and has no orbit")
        return rows - 1


class Quantity(Group):
    """A number per system, (S,). :meth:`look` follows ``found`` through the moments of the scenario's ``record``.

    Attributes:
        label, dimension: what an axis says, and the unit: of a time, a length, or none.
        observable: what the scenario must record for it.
        whole_runs: True if it says little of a system that has ended early.
        logarithmic, limits, colours: how it is drawn; limits of None follow the values, and yellow is stable.
    """

    label: ClassVar[str]
    dimension: ClassVar[str] = ""
    observable: ClassVar[str] = ""
    whole_runs: ClassVar[bool] = False
    logarithmic: ClassVar[bool] = False
    limits: ClassVar[tuple[float | None, float | None]] = (None, None)
    colours: ClassVar[str] = "viridis"

    @property
    def watches(self) -> bool:
        """True if :meth:`look` is needed."""
        return type(self).look is not Quantity.look

    def begin(self, systems: int) -> Array:
        """The numbers before the first look."""
        return np.zeros(systems)

    def look(self, found: Array, now: SystemsNow) -> None:
        """Follow the systems to this moment, in place."""

    def result(self, found: Array, ends: Mapping[str, Array]) -> Array:
        """The values at the end; ``ends``: what an ensemble reports of its systems, ``system_time`` and so on."""
        return found


class Observed(Quantity):
    """What an ensemble reports of its systems under this observable's name."""

    whole_runs, logarithmic, colours = True, True, "viridis_r"

    def result(self, found: Array, ends: Mapping[str, Array]) -> Array:
        return ends[f"system_{self.observable}"]


class Megno(Observed):
    """⟨Y⟩ of the variational equations: 2 for regular motion; for chaos it grows as λt/2 (Cincotta & Simó 2000)."""

    label, observable, limits = "MEGNO ⟨Y⟩", "megno", (2.0, None)


class Lyapunov(Observed):
    """The rate at which near orbits part, per unit of time."""

    label, observable = "Lyapunov exponent", "lyapunov"


class Survival(Quantity):
    """The time at which a system ends: two planets meet (the key ``encounter`` of wisdom_holman, in Hill radii), bodies
    collide, or one is far away. Else how long the run is.

    Attributes:
        radius: a body farther from the first one than this, at a moment of ``record``, ends its system.
    """

    radius: Length | None = None
    label, dimension, logarithmic = "time of survival", "time", True

    @property
    def watches(self) -> bool:
        return self.radius is not None

    def begin(self, systems: int) -> Array:
        return np.full(systems, np.inf)

    def look(self, found: Array, now: SystemsNow) -> None:
        assert self.radius is not None
        found[(now.distance > self.radius) & now.running & np.isinf(found)] = abs(now.particles.time)

    def result(self, found: Array, ends: Mapping[str, Array]) -> Array:
        return np.minimum(found, np.abs(ends["system_time"]))


class LeastDistance(Quantity):
    """The least distance of two bodies, at the steps."""

    label, dimension, logarithmic = "least distance", "length", True

    def result(self, found: Array, ends: Mapping[str, Array]) -> Array:
        return ends["system_closest"]


class LargestEccentricity(Quantity):
    """The largest eccentricity at the moments of ``record`` before a system ends: e_max(1), e_max(inner).

    Attributes:
        bodies: their ids or names; by default all.
    """

    bodies: tuple[int | str, ...] = ()
    label, limits, colours = "largest eccentricity", (0.0, None), "viridis_r"

    def look(self, found: Array, now: SystemsNow) -> None:
        e = now.orbits.e[:, now.columns(self.bodies)] if self.bodies else now.orbits.e
        np.maximum(found, e.max(axis=1), out=found, where=now.running)


class Amplitude(Quantity):
    """Half of the arc, in degrees, to which the angle p λ' - q λ - (p - q) ϖ of an inner and an outer body keeps at the
    moments of ``record``, or that with ϖ' if that keeps to less; 180: both circulate.
    amplitude(1, 2, p=3, q=2).

    Attributes:
        bodies: the ids or names of the inner and the outer body.
        p, q: of the resonance p:q, with p > q.
    """

    bodies: tuple[int | str, int | str]
    p: Count = Field(default=2)
    q: Count = Field(default=1)
    whole_runs, label, dimension = True, "amplitude of the resonance", "°"
    limits, colours = (0.0, 180.0), "viridis_r"

    @model_validator(mode="after")
    def _resonance(self) -> Self:
        if self.p <= self.q:
            raise KeyProblem("p", f"must be greater than q = {self.q}: the outer body is the second")
        return self

    def begin(self, systems: int) -> Array:
        return np.zeros((systems, 2, 360), bool)  # the degrees that were visited

    def look(self, found: Array, now: SystemsNow) -> None:
        both = now.columns(self.bodies)
        if both[0] == both[1]:
            raise InputError(f"--quantity: an amplitude is of two bodies, and body {self.bodies[0]} is there twice")
        longitude, pomega = now.orbits.l[:, both], now.orbits.pomega[:, both]
        angle = (self.p * longitude[:, 1] - self.q * longitude[:, 0])[:, None] - (self.p - self.q) * pomega
        index = np.nan_to_num(angle % 360).astype(int) % 360
        visited = np.zeros_like(found)
        np.put_along_axis(visited, index[..., None], True, axis=2)
        found |= visited & now.running[:, None, None]

    def result(self, found: Array, ends: Mapping[str, Array]) -> Array:
        turn = np.concatenate((found, found), axis=2)
        last = np.maximum.accumulate(np.where(turn, np.arange(720), -1), axis=2)
        gap = (np.arange(720) - last)[..., 360:].max(axis=2)  # the degrees since a visited one
        return (360 - gap).min(axis=1) / 2.0


def quantities_of(texts: str | Sequence[str], scenario: Scenario) -> dict[str, Quantity]:
    """Quantities by their texts: ``megno``, ``survival(radius=50)``, ``e_max(1)``; several in a list, or with commas. Raises
    InputError: one line that begins with --quantity."""
    found = dict[str, Quantity]()
    together = ",".join(map(str, texts)) if np.ndim(texts) else str(texts)
    for text in map(str.strip, re.split(r",(?![^(]*\))", together)):  # at the commas that are in no brackets
        try:
            keys: dict[str, Any] = event_of_text(text)
        except ValueError:
            raise InputError(f"--quantity: '{text}' is no quantity; write it as in megno or e_max(1)") from None
        kind = QUANTITIES.load(str(keys.pop("kind")), "--quantity: ")
        source = ScenarioText(f"--quantity {text}", values=keys, scale=scenario.source.scale)
        found[text] = validated(kind, keys, source)
    return found
