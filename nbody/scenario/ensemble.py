"""``ensemble: {systems: 4096, vary: {…}}``: many small systems that do not act on each other, in one run.

``vary`` maps paths of the scenario to values, one per system:

    initial.seed: 1..4096                          whole numbers
    initial.bodies.1.e: [0, 0.1, 0.2]              a list of any values
    initial.bodies.2.a: 1.1..1.3:64                64 values with equal distances; also {linear: [1.1, 1.3, 64]}
    initial.bodies.2.m: 1e-6..1e-3:40:log          40 values with equal ratios
    initial.bodies.1.M: {uniform: [0, 360]}        random; also log_uniform: [a, b], normal: [mean, sigma], rayleigh: sigma

Ranges and lists form a grid, whose last path changes first; each point of the grid gets the same number of systems.
Random values are drawn for each system: the k-th of a path depends on the scenario's seed, the path's place in ``vary`` and
k alone. Without ``vary`` the systems have the seeds s, s + 1, … from the scenario's seed s on.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from pydantic import model_validator

from nbody.errors import counted
from nbody.given import KeyProblem, shown
from nbody.scenario.source import Keys
from nbody.scenario.values import Count, Group, Written

MOST_SYSTEMS = 2**20

FEWEST_BODIES, MOST_BODIES = 2, 64
"""Bodies per system."""

FORMS = "a range (1..8, 0.9..1.1:400, 1e-6..1e-3:40:log), a list, or {linear: [a, b, count]}, {uniform: [a, b]}, {log_uniform: [a, b]}, {normal: [mean, sigma]}, {rayleigh: sigma}"  # noqa: E501  (one line for the user)


class Form(NamedTuple):
    """What a group ``{name: numbers}`` means.

    Attributes:
        takes: how many numbers there are.
        is_axis: True for values of the grid, False for random ones.
        values: the function of the numbers that returns them; that of random ones has before them a generator and a count.
    """

    takes: int
    is_axis: bool
    values: Callable[..., np.ndarray]


GROUPS = {
    "linear": Form(3, True, lambda begin, end, count: np.linspace(begin, end, int(count))),
    "uniform": Form(2, False, lambda rng, count, a, b: rng.uniform(a, b, count)),
    "log_uniform": Form(2, False, lambda rng, count, a, b: np.exp(rng.uniform(math.log(a), math.log(b), count))),
    "normal": Form(2, False, lambda rng, count, mean, sigma: rng.normal(mean, sigma, count)),
    "rayleigh": Form(1, False, lambda rng, count, sigma: rng.rayleigh(sigma, count)),
}


def _check_numbers(name: str, first: float, *others: float) -> None:
    """Raise a ValueError about the numbers of a form."""
    last = others[-1] if others else first
    if name == "linear" and not (last == int(last) and 1 <= last <= MOST_SYSTEMS):
        raise ValueError(f"the third number of 'linear' is how many values there are, got {shown(last)}")
    if "uniform" in name and not first <= last:
        raise ValueError(f"'uniform' and 'log_uniform' take the smaller number first, got {first:g} and {last:g}")
    if name == "log_uniform" and first <= 0:
        raise ValueError(f"'log_uniform' takes positive numbers, got {first:g}")
    if name in ("normal", "rayleigh") and last < 0:
        raise ValueError(f"sigma must not be negative, got {last:g}")


_NUMBER = r"[-+]?(?:\d{1,19}(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{1,3})?"
_RANGE = re.compile(rf"({_NUMBER})\s*\.\.\s*({_NUMBER})\s*(?::\s*(\w+)\s*)?(?::\s*(\w+))?")


class Ensemble(Group):
    """Many small systems that do not act on each other, in one run.

    Attributes:
        systems: their number; by default the number of points of the grid in ``vary``.
        vary: paths of the bodies and their values: ``initial.bodies.1.e: [0, 0.1]``, ``initial.seed: 1..64``,
            ``0.9..1.1:400``, ``1e-6..1e-3:40:log``, or random ``{uniform: [a, b]}``, ``{log_uniform: [a, b]}``,
            ``{normal: [mean, sigma]}``, ``{rayleigh: sigma}``. Ranges and lists form a grid, whose last path changes first.
            By default the seeds s, s + 1, … of the scenario's seed s.
    """

    systems: Count | None = None
    vary: Annotated[dict[str, Any], Written("mapping of paths to values")] | None = None

    @model_validator(mode="after")
    def _possible(self) -> Self:
        seen = dict[Keys, str]()
        for path, values in (self.vary or {}).items():
            try:
                other = seen.setdefault(keys_of(path), path)
                if other != path:
                    raise ValueError(f"'{other}' is the same value; remove one of them")
                _check(values)
            except ValueError as error:
                raise KeyProblem(f"vary.{path}", str(error)) from None
        points = math.prod(len(axis) for axis in self.axes.values())
        if self.systems is None and not self.axes:
            raise KeyProblem("systems", "is missing; write 'systems: N' to say how many systems there are")
        if self.count > MOST_SYSTEMS:
            raise KeyProblem("systems", f"must be at most {MOST_SYSTEMS}, got {self.count}")
        if self.count % points:
            raise KeyProblem(
                "systems", f"the ranges and lists of 'vary' have {points} combinations; give a multiple of it, or none"
            )
        return self

    @property
    def count(self) -> int:
        return self.systems or math.prod(len(axis) for axis in self.axes.values())

    def values(self, seed: int, numbers: range | None = None) -> dict[str, list[Any]]:
        """The values of each path, one per system of these ``numbers``, or of all. ``seed``: the scenario's."""
        numbers = range(self.count) if numbers is None else numbers
        if not self.vary:
            return {"initial.seed": [seed + k for k in numbers]}
        axes, found = self.axes, dict[str, list[Any]]()
        point = np.array(numbers) // (self.count // math.prod(map(len, axes.values())))
        stride = 1
        for path in reversed(self.vary):
            if path in axes:
                axis = axes[path]
                found[path] = [axis[i] for i in point // stride % len(axis)]
                stride *= len(axis)
        for index, (path, values) in enumerate(self.vary.items()):
            if path not in axes:
                ((name, given),) = values.items()
                rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, 0x5E7, index])))
                drawn = GROUPS[name].values(rng, self.count, *_numbers(given))
                found[path] = drawn[numbers.start : numbers.stop].tolist()
        return {path: found[path] for path in self.vary}

    @property
    def axes(self) -> dict[str, list[Any]]:
        """The values of each range and list, in order."""
        pairs = ((path, _axis(values)) for path, values in (self.vary or {}).items())
        return {path: axis for path, axis in pairs if axis is not None}


def keys_of(path: str) -> Keys:
    """The keys of a path; ``bodies[1]`` means ``bodies.1``. Raises ValueError for what cannot vary."""
    keys = tuple(re.sub(r"\[(\d+)\]", r".\1", path).split("."))
    if keys[0] != "initial" or len(keys) < 2 or not all(keys):
        hint = f"initial.{path}" if keys[0] in ("bodies", "seed") else "initial.seed"
        raise ValueError(f"only the bodies of the systems can vary, as in '{hint}: …'")
    if keys[1] in ("generator", "particles", "file", "source"):
        raise ValueError(f"'{keys[1]}' can't vary; all systems have the same number of bodies from the same source")
    return keys


def range_of(values: object, most: int = MOST_SYSTEMS) -> Sequence[float] | None:
    """The numbers of a text such as ``1..64``, with the last, of ``0.9..1.1:400`` (how many, with equal distances), or of
    ``1e-6..1e-3:40:log`` (with equal ratios); None for all else. Raises ValueError: none, or more than ``most``."""
    found = _RANGE.fullmatch(values.strip()) if isinstance(values, str) else None
    if found is None:
        return None
    begin, end, count, scale = found.groups()
    if count is None:
        try:
            whole = range(int(begin), int(end) + 1)
        except ValueError:
            raise ValueError(f"{found[0]} lacks the number of values, as in {begin}..{end}:50") from None
        if not whole:
            raise ValueError(f"the range {found[0]} is empty; write {end}..{begin}")
        if whole.stop - whole.start > most:
            raise ValueError(f"the range {found[0]} has more than {most} numbers")
        return whole
    if not (count.isdecimal() and 1 <= int(count[:20]) <= most):
        raise ValueError(f"the third number of a range is how many values there are, 1 to {most}, got {shown(count)}")
    if scale not in (None, "log"):
        raise ValueError(f"a range ends with its number of values, or with ':log' after it, got {shown(scale)}")
    if scale and not float(begin) * float(end) > 0:
        raise ValueError(f"a range with ':log' has two positive ends, got {begin} and {end}")
    made: list[float] = (np.geomspace if scale else np.linspace)(float(begin), float(end), int(count)).tolist()
    return made


def _axis(values: Any) -> list[Any] | None:
    """The values of a range or a list; None for a distribution."""
    if (found := range_of(values)) is not None:
        return list(found)
    if isinstance(values, list | tuple):
        return list(values)
    ((name, numbers),) = values.items()
    form = GROUPS[name]
    return form.values(*_numbers(numbers)).tolist() if form.is_axis else None


def _numbers(values: Any) -> list[float]:
    return list(values) if isinstance(values, list | tuple) else [values]


def _check(values: object) -> None:
    """Raise a ValueError unless these are values that a path may have."""
    if range_of(values) is not None or (isinstance(values, list | tuple) and 0 < len(values) <= MOST_SYSTEMS):
        return
    if not isinstance(values, Mapping) or len(values) != 1:
        raise ValueError(f"must be {FORMS}; got {shown(values)}")
    ((name, given),) = values.items()
    if name not in GROUPS:
        raise ValueError(f"unknown distribution {shown(name)}; must be {FORMS}")
    numbers, takes = _numbers(given), GROUPS[name].takes
    real = all(isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x) for x in numbers)
    if not real or len(numbers) != takes:
        raise ValueError(f"'{name}' takes {counted(takes, 'number')}, got {shown(given)}")
    _check_numbers(name, *numbers)
