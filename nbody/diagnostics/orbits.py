"""Kepler's orbits of bodies: from positions and velocities to orbital elements (Murray & Dermott 1999, chapter 2)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from nbody.errors import InputError, counted, did_you_mean
from nbody.particles import Named, Particles, body_names, rows_of

Array = np.ndarray

FOCI = ("inner", "centre")
"""Foci that are no body: the centre of mass of the bodies before, and that of all bodies."""

LABELS = {
    "a": ("semi-major axis a", "length"),
    "P": ("period P", "time"),
    "q": ("pericentre distance q", "length"),
    "e": ("eccentricity e", ""),
    "inc": ("inclination i", "°"),
    "Omega": ("longitude of the node Ω", "°"),
    "omega": ("argument of pericentre ω", "°"),
    "pomega": ("longitude of pericentre ϖ", "°"),
    "f": ("true anomaly f", "°"),
    "M": ("mean anomaly M", "°"),
    "l": ("mean longitude λ", "°"),
}
"""What the axis of an element says, and its unit."""

MOST_SHOWN = 20
"""Bodies in the table that ``repr`` makes of their elements."""

_CIRCLE = 8 * np.finfo(float).eps
"""An eccentricity below this is rounding: the orbit has no pericentre, and the anomaly is counted from the node."""

_PARABOLA = 1e-12
"""A smaller part of the potential is rounding, if it is the energy: then the orbit is a parabola."""

_RADIAL = 1e-6
"""Below this p/r the true anomaly is too near 180 degrees to tell the time."""

_SMALL = 0.03
"""Below this |z| the functions of :func:`_s` and :func:`_g` are sums of a few terms, to rounding."""


@dataclass(frozen=True, eq=False)
class Elements:
    """Orbital elements, arrays of one shape: (K,) for K bodies, (T, K) at T times. Angles are in degrees, from 0 to 360; the
    anomalies of parabolas and hyperbolas are negative before the pericentre.

    An orbit in the (x, y) plane has its node at the x axis, a circle its pericentre at the node.

    Attributes:
        id: (K,) the bodies.
        time: the time, a number; of (T, K) elements (T, 1).
        mu: G (m₁ + m₂).
        q: the distance of the pericentre; ``a`` = q / (1 - e): the semi-major axis, negative for a hyperbola, infinite for
            a parabola.
        e: the eccentricity; 1 on a line through the focus, an ellipse or hyperbola if ``a`` is finite.
        inc: the inclination to the (x, y) plane, 0 to 180.
        Omega: the longitude of the ascending node, from the x axis.
        omega: the argument of the pericentre, from the node.
        f: the true anomaly.
        E: the eccentric anomaly; for hyperbolas F of tanh(F/2) = √((e-1)/(e+1)) tan(f/2), for parabolas tan(f/2), both in
            degrees as the others.
        since: the time since the passage of the pericentre nearest in time.
        names: of bodies that have one, by their ids.
    """

    id: Array
    time: Array | float
    mu: Array
    q: Array
    e: Array
    a: Array
    inc: Array
    Omega: Array
    omega: Array
    f: Array
    E: Array
    since: Array
    names: Mapping[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.id)

    def __getitem__(self, chosen: Any) -> Any:
        """An element by its name, or the elements of one body, or of some, by their places: ``orbits["a"]``, ``orbits[0]``,
        ``orbits[:2]``."""
        if isinstance(chosen, str):
            if chosen[:1] != "_" and hasattr(self, chosen):
                return getattr(self, chosen)
            known = f"{', '.join(LABELS)}; of one body they are orbits(bodies=[NAME])"
            raise KeyError(f"orbits have no element {chosen!r}{did_you_mean(chosen, dir(self))}; some are {known}")
        columns = {each.name: getattr(self, each.name) for each in fields(self)[:-1] if each.name != "time"}
        columns |= {"time": np.broadcast_to(self.time, self.a.shape)} if np.ndim(self.time) else {}
        return replace(self, **{name: each[..., chosen][()] for name, each in columns.items()})

    def __repr__(self) -> str:
        names = ("a", "e", "inc", "Omega", "omega", "f")
        if np.ndim(self.a) > np.ndim(self.id):
            return f"<Elements of {counted(np.size(self.id), 'body', 'bodies')} at {counted(len(self.a), 'time')}>"
        texts = [[f"{x:.6g}" for x in np.ravel(self[each]).tolist()] for each in names]
        texts[3:] = [["0" if x == "360" else x for x in angles] for angles in texts[3:]]
        rows = list(zip([self.names.get(id, str(id)) for id in np.ravel(self.id).tolist()], *texts, strict=True))
        width = max([8, *(len(row[0]) + 1 for row in rows[:MOST_SHOWN])])
        shown = [f"{row[0]:<{width}}" + "".join(f"{each:>12}" for each in row[1:]) for row in rows[:MOST_SHOWN]]
        more = [f"… {counted(len(rows) - MOST_SHOWN, 'other')}"] if len(rows) > MOST_SHOWN else []
        head = f"{'body' if self.names else 'id':<{width}}" + "".join(f"{each:>12}" for each in names)
        return "\n".join([head, *shown, *more])

    @cached_property
    def n(self) -> Array:
        """The mean motion √(μ/|a|³) in degrees per unit of time; √(μ/2q³) for a parabola."""
        with np.errstate(divide="ignore"):
            cube = np.where(np.isinf(self.a), 2 * self.q**3, np.abs(self.a) ** 3)
        return np.degrees(np.sqrt(self.mu / cube))

    @property
    def P(self) -> Array:
        """The period; infinite for parabolas and hyperbolas."""
        return np.where(_is_ellipse(self.a), 360 / self.n, np.inf)

    @property
    def T(self) -> Array:
        """The time of the passage of the pericentre nearest in time."""
        return self.time - self.since

    @property
    def M(self) -> Array:
        """The mean anomaly n (t - T)."""
        return _wrapped(self.n * self.since, self.a)

    @property
    def pomega(self) -> Array:
        """The longitude of the pericentre: Ω + ω, and Ω - ω for an inclination above 90."""
        return _turn(self.Omega + self._sense * self.omega)

    @property
    def theta(self) -> Array:
        """The true longitude: ϖ + f, and ϖ - f for an inclination above 90."""
        return _turn(self.pomega + self._sense * self.f)

    @property
    def l(self) -> Array:  # noqa: E743  (the field's letter)
        """The mean longitude: ϖ + M, and ϖ - M for an inclination above 90."""
        return _turn(self.pomega + self._sense * self.M)

    @property
    def _sense(self) -> Array:
        return np.where(self.inc > 90, -1.0, 1.0)


def orbits(
    particles: Particles, G: float = 1.0, about: int | str = "inner", bodies: Sequence[int | str] | Array | None = None
) -> Elements:
    """The Kepler orbits on which bodies move at this moment, if nothing but their focus acted.

    Args:
        particles: the bodies.
        G: the gravitational constant in their units.
        about: the focus: ``"inner"``, the centre of mass of the bodies before (Jacobi's coordinates, as the generator
            ``planets`` takes elements); ``"centre"``, the centre of mass of all; or the id or the name of a body.
        bodies: their ids or names; by default all that have an orbit about the focus.

    Raises:
        InputError: an unknown focus or body, a body about itself, at its place, or one that has no mass about it.
    """
    about = focus_of(particles, about)
    focus = about if isinstance(about, str) else int(rows_of(particles, about)[0])
    first = 0 if focus == "inner" else focus
    chosen = [k for k in range(particles.count) if k != first]
    if bodies is not None:
        chosen = rows_of(particles, bodies, "orbits: ").tolist()
    if first in chosen:
        raise InputError(f"orbits: body {particles.id[first]} is the focus and has no orbit; leave it out")
    rows = np.array(chosen, int)
    x, v, mass = relative_motion(particles, rows, focus)
    for good, what in ((mass > 0, "has no mass about it"), (x.any(axis=1), "is at the place of its focus")):
        if not good.all():
            bad = particles.id[rows[good.argmin()]]
            raise InputError(f"orbits: body {bad} {what}; choose another focus with about=")
    return replace(elements(x, v, G * mass, particles.id[rows], particles.time), names=body_names(particles))


def focus_of(bodies: Named, about: int | str) -> int | str:
    """A focus: one of :data:`FOCI`, or the id of the body with this id or name. Raises InputError."""
    names = list(body_names(bodies).values())
    if isinstance(about, str) and not (about in FOCI or about in names or about.isdecimal()):
        hint = did_you_mean(about, [*FOCI, *names])
        raise InputError(f"orbits: about: there is no focus {about!a}{hint}; give a body, 'inner' or 'centre' of mass")
    return about if about in FOCI else int(bodies.id[rows_of(bodies, about, "orbits: about: ")[0]])


def relative_motion(particles: Particles, rows: Array, focus: int | str) -> tuple[Array, Array, Array]:
    """Positions and velocities of bodies about their focus, (K, 3) each, and the masses (K,) that move them: of body and
    focus. ``focus``: a row, or one of :data:`FOCI`."""
    (x, v), mass = particles.in_space(), particles.mass
    if focus == "inner":
        inner = np.cumsum(mass)
        with np.errstate(invalid="ignore"):
            central = [(np.cumsum(mass[:, None] * each, axis=0) / inner[:, None])[rows - 1] for each in (x, v)]
        total = inner[rows]
    elif focus == "centre":
        central, total = [mass @ each / mass.sum() for each in (x, v)], np.full(len(rows), mass.sum())
    else:
        central, total = [each[focus] for each in (x, v)], mass[focus] + mass[rows]
    return x[rows] - central[0], v[rows] - central[1], total


def orbits_over_time(
    moments: Iterable[Particles], G: float, about: int | str = "inner", bodies: Sequence[int] | Array | None = None
) -> Elements:
    """The orbits at T moments, arrays (T, K), of bodies, by default of all; NaN at moments that lack the body, or all of its
    focus. Raises InputError as :func:`orbits`."""
    found: list[Elements] = []
    given = missing = None if bodies is None else np.ravel(bodies)
    for now in moments:
        focus, chosen = about, None if given is None else given[np.isin(given, now.id)]
        missing = None if missing is None else missing[~np.isin(missing, now.id)]
        if found:
            alone = now.id[:1] if about == "inner" else [] if about == "centre" else [about]  # these have no orbit
            chosen = now.id if chosen is None else chosen
            chosen = chosen[~np.isin(chosen, alone)]
            if not isinstance(about, str) and about not in now.id:
                focus, chosen = "centre", chosen[:0]
        found.append(orbits(now, G, focus, chosen))
    if missing is not None and len(missing):
        raise InputError(f"orbits: there is no body with the id {missing[0]}; ids are {now.id.min()} to {now.id.max()}")
    every = np.concatenate([each.id for each in found]) if given is None else given.astype(np.int64)
    known, first = np.unique(every, return_index=True)
    order = np.argsort(first)
    id, place = known[order], np.argsort(order)
    columns = {each.name: np.full((len(found), len(id)), np.nan) for each in fields(Elements)[:-1]}
    for k, each in enumerate(found):
        for name, column in columns.items():
            column[k, place[np.searchsorted(known, each.id)]] = getattr(each, name)
    return Elements(**columns | {"id": id, "time": np.array([[each.time] for each in found])})


@np.errstate(divide="ignore", invalid="ignore")
def elements(x: Array, v: Array, mu: Array | float, id: Array | None = None, time: Array | float = 0.0) -> Elements:
    """The elements of relative positions ``x`` and velocities ``v``, (…, 3) each, about a focus with μ = G (m₁ + m₂)."""
    mu = np.broadcast_to(np.asarray(mu, float), x.shape[:-1])
    r, v2, xv = np.sqrt(_dot(x, x)), _dot(v, v), _dot(x, v)
    h_vector = np.cross(x, v)
    h = np.sqrt(_dot(h_vector, h_vector))
    p = h * h / mu
    along, across = p / r - 1, h * xv / (mu * r)  # e cos f and e sin f
    e = np.hypot(along, across)
    alpha = 2 / r - v2 / mu
    parabola = (np.abs(alpha) * p <= _CIRCLE) & (np.abs(alpha) * r <= _PARABOLA)
    alpha = np.where(parabola, 0.0, alpha)
    # Near e = 1 the energy knows 1 - e better than the difference above does.
    q = p / (1 + e)
    e = np.where(parabola, 1.0, np.where(np.abs(1 - e) < 0.5, 1 - q * alpha, e))
    q = p / (1 + e)
    normal = np.where(h[..., None] > 0, h_vector, _across(x))
    hx, hy, hz = np.moveaxis(normal, -1, 0)
    flat = np.hypot(hx, hy)
    Omega = np.where(flat > 0, np.arctan2(hx, -hy), 0.0)
    node = np.stack([np.cos(Omega), np.sin(Omega), np.zeros_like(Omega)], axis=-1)
    ahead = np.cross(normal, node)  # as long as the normal, 90 degrees from the node
    latitude = np.arctan2(_dot(x, ahead) / np.sqrt(_dot(normal, normal)), _dot(x, node))
    f = np.where(e < _CIRCLE, latitude, np.arctan2(across, along))
    chi = np.where(p < _RADIAL * r, _line_anomaly(r, xv / np.sqrt(mu), alpha), _anomaly(f, q, e, alpha))
    since = (q * chi + e * chi**3 * _s(alpha * chi * chi)) / np.sqrt(mu)
    a, degrees = 1 / alpha, np.degrees
    E = _wrapped(degrees(np.where(parabola, np.tan(f / 2), np.sqrt(np.abs(alpha)) * chi)), a)
    return Elements(
        np.arange(x.shape[-2]) if id is None else id, time, mu, q, e, a, degrees(np.arctan2(flat, hz)),
        _turn(degrees(Omega)), _turn(degrees(latitude - f)), _wrapped(degrees(f), a), E, since,
    )  # fmt: skip


def _anomaly(f: Array, q: Array, e: Array, alpha: Array) -> Array:
    """The universal anomaly χ, for every conic: with α = 1/a, tan(√α χ/2) = √(α q/(1+e)) tan(f/2), and the time since the
    pericentre is √μ t = q χ + e χ³ S(α χ²) (Battin 1999, chapter 4)."""
    u = np.sqrt(q / (1 + e)) * np.tan(f / 2)
    return 2 * u * _g(alpha * u * u)


def _line_anomaly(r: Array, sigma: Array, alpha: Array) -> Array:
    """The same for e near 1, from σ = x·v/√μ: e sin E = σ √α, e cos E = 1 - α r for ellipses, e sinh F = σ √-α for
    hyperbolas, χ = σ for parabolas."""
    root = np.sqrt(np.abs(alpha))
    E = np.where(alpha > 0, np.arctan2(sigma * root, 1 - alpha * r), np.arcsinh(sigma * root))
    return np.where(alpha == 0, sigma, E / root)


def _across(x: Array) -> Array:
    """A normal of a plane through the lines along ``x``, as near to the z axis as can be."""
    z = np.array([0.0, 0.0, 1.0])
    normal = z * _dot(x, x)[..., None] - x * x[..., 2:]
    return np.where(x[..., :2].any(axis=-1, keepdims=True), normal, [0.0, -1.0, 0.0])


def _is_ellipse(a: Array) -> Array:
    return (a > 0) & (a < np.inf)


def _wrapped(angle: Array, a: Array) -> Array:
    """An angle of orbits: those of ellipses go from 0 to below 360 degrees."""
    return np.where(_is_ellipse(a), _turn(angle), angle)


def _g(z: Array) -> Array:
    """atan(√z)/√z, and atanh(√-z)/√-z for z < 0."""
    small = np.where(np.abs(z) < _SMALL, z, 0.0)
    series = sum((-small) ** k / (2 * k + 1) for k in range(12))
    root = np.sqrt(np.maximum(np.abs(z), _SMALL))
    with np.errstate(invalid="ignore", divide="ignore"):
        closed = np.where(z > 0, np.arctan(root), np.arctanh(root)) / root
    return np.where(np.abs(z) < _SMALL, series, closed)


def _s(z: Array) -> Array:
    """(√z - sin √z)/√z³, and (sinh √-z - √-z)/√-z³ for z < 0."""
    factorials = (6.0, 120.0, 5040.0, 362880.0, 39916800.0, 6227020800.0)
    small = np.where(np.abs(z) < _SMALL, z, 0.0)
    series = sum((-small) ** k / each for k, each in enumerate(factorials))
    root = np.sqrt(np.maximum(np.abs(z), _SMALL))
    with np.errstate(over="ignore"):
        closed = np.where(z > 0, root - np.sin(root), np.sinh(root) - root) / root**3
    return np.where(np.abs(z) < _SMALL, series, closed)


def _turn(angle: Array) -> Array:
    """An angle in degrees, from 0 to below 360: of -1e-15 the remainder alone is 360."""
    return np.where(angle % 360 < 360, angle % 360, 0.0)


def _dot(a: Array, b: Array) -> Array:
    return (a * b).sum(axis=-1)
