"""The units of a scenario: their symbols, the conversion of quantities such as ``0.01 pc``, and the value of G in them.

A number in a scenario is in the scenario's units. A text with a unit is converted to them by Astropy, which is imported
only for a scenario with units. Its solar mass is GM☉/G with the nominal GM☉ of the IAU (2015), so that G M☉ does not
depend on the poorly known G; its parsec is the IAU's too (648000/π au).
"""

import math
import re
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from nbody.errors import InputError, did_you_mean
from nbody.given import KeyProblem

_NUMBER = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_QUANTITY = re.compile(rf"({_NUMBER})(?: +((?:[^\W\d_]|\(|1?/).*)|([^\W\d_]+))")
_NO_UNIT = re.compile(r"[0-9]{3}|[^\w .*/()^+-]")
"""What no unit contains. (Powers of three digits may take long to compute.)"""

_MILLIYEAR = re.compile(r"(?<![^\W\d_])(myr|ma|milliyear)(?![^\W\d_])")
"""Nobody means a thousandth of a year."""

LONGEST = 60
"""The most characters of a quantity."""


@dataclass(frozen=True)
class Units:
    """The symbols of a scenario's units; empty texts if the scenario has none."""

    length: str = ""
    mass: str = ""
    time: str = ""
    velocity: str = ""

    def symbol(self, quantity: str) -> str:
        """The symbol of the unit of ``length``, ``mass``, ``time``, ``velocity``, ``acceleration``, ``density``,
        ``surface_density``, ``momentum``, ``angular_momentum`` or ``energy``; empty without units. Raises KeyError: another
        quantity."""
        velocity, length = _bracketed(self.velocity), _bracketed(self.length)
        symbols = {
            "length": self.length,
            "mass": self.mass,
            "time": self.time,
            "velocity": self.velocity,
            "acceleration": f"{self.velocity}/{_bracketed(self.time)}",
            "density": f"{self.mass}/{length}^3",
            "surface_density": f"{self.mass}/{length}^2",
            "momentum": f"{self.mass} {self.velocity}",
            "angular_momentum": f"{self.mass} {self.length} {self.velocity}",
            "energy": f"{self.mass} {velocity}^2",
        }
        return symbols[quantity] if self.mass else ""

    def __str__(self) -> str:
        """``length pc, mass Msun, time pc s/km, velocity km/s``; empty without units."""
        return ", ".join(f"{key} {getattr(self, key)}" for key in _EXAMPLES if self.mass)


YEAR, PARSEC, AU = 365.25 * 86400, 648_000 / math.pi * 149_597_870_700.0, 149_597_870_700.0
"""In seconds and metres (Julian year; IAU 2012 B2, 2015 B2)."""

SHOWN_TIMES = {
    "au s/km": (AU / 1e3 / YEAR, "yr"),
    "pc s/km": (PARSEC / 1e3 / (1e6 * YEAR), "Myr"),
    "kpc s/km": (PARSEC / (1e9 * YEAR), "Gyr"),
    "Mpc s/km": (1e3 * PARSEC / (1e9 * YEAR), "Gyr"),
}
"""Units of time that follow from those of length and velocity, in units that people read."""


def shown_time(unit: str) -> tuple[float, str]:
    """The factor and the symbol with which times in ``unit`` are shown: ``pc s/km`` is 0.978 Myr. Files keep their unit."""
    return SHOWN_TIMES.get(unit.replace("AU", "au"), (1.0, unit))


def time_text(time: float, unit: str) -> str:
    """A time in ``unit`` as a text, such as ``12.5 Myr``; without a unit the number alone."""
    factor, symbol = shown_time(unit)
    return f"{factor * time:.6g} {symbol}".rstrip()


class Dimension(NamedTuple):
    """A physical dimension: length^a mass^b time^c."""

    name: str
    length: int = 0
    mass: int = 0
    time: int = 0


DIMENSIONS = {
    each.name: each
    for each in (
        Dimension("length", 1),
        Dimension("mass", 0, 1),
        Dimension("time", 0, 0, 1),
        Dimension("velocity", 1, 0, -1),
        Dimension("frequency", 0, 0, -1),
        Dimension("density", -3, 1),
        Dimension("surface density", -2, 1),
        Dimension("spin per length", -1, 0, -1),
        Dimension("gravitational constant", 3, -1, -2),
    )
}
"""The dimensions of the values in scenarios, by name."""


class Scale:
    """The sizes of a scenario's units, for conversions.

    Args:
        written: the symbols by ``length``, ``mass``, ``time`` and ``velocity``; three independent ones, or all four.

    Attributes:
        units: all four symbols; the one that was not written is made of the others.
        G: the gravitational constant in these units.

    Raises:
        KeyProblem: a symbol that is not a unit, or not of this kind; too few units, or units that contradict each other.
        ArithmeticError: a unit of :data:`DIMENSIONS` in SI is beyond float64.
        InputError: Astropy is not installed.
    """

    def __init__(self, written: Mapping[str, str]) -> None:
        constants = _astropy("astropy.constants")
        size = {key: self._size(key, text) for key, text in written.items()}
        if "mass" not in size or len(size) < 3:
            raise KeyProblem("", "needs 'mass' and two of 'length', 'time' and 'velocity'; add what is missing")
        symbols = dict(written)
        for key, (first, divide, second) in _DERIVED.items():
            if key not in size:
                size[key] = size[first] / size[second] if divide else size[first] * size[second]
                symbols[key] = _composed(symbols[first], -1 if divide else 1, symbols[second])
        if not math.isclose(size["velocity"], size["length"] / size["time"], rel_tol=1e-6):
            raise KeyProblem("velocity", "contradicts the units of length and time; remove one of the three")
        self.units = Units(**symbols)
        self._size_of = size
        if not all(0 < self._si(dimension) < math.inf for dimension in DIMENSIONS.values()):
            raise OverflowError
        self.G = float(constants.G.si.value) / self._si(DIMENSIONS["gravitational constant"])

    def number(self, text: str, dimension: Dimension) -> float:
        """The value of a quantity such as ``0.01 pc`` in the scenario's units. Raises ValueError, in one line."""
        value, unit = _split(text)
        factor = _si(unit, dimension, text, _example(dimension)) / self._si(dimension)
        return value if math.isclose(factor, 1.0, rel_tol=1e-14) else value * factor

    def _si(self, dimension: Dimension) -> float:
        length, mass, time = (self._size_of[key] for key in ("length", "mass", "time"))
        return float(length**dimension.length * mass**dimension.mass * time**dimension.time)

    @staticmethod
    def _size(key: str, text: str) -> float:
        """The size in SI of a unit that may have a factor, as ``1e10 Msun``."""
        value, unit = _split(text) if is_quantity(text) else (1.0, text)
        try:
            size = value * _si(unit, DIMENSIONS[key], text, f"'{_EXAMPLES[key]}'")
        except ValueError as error:
            raise KeyProblem(key, str(error)) from None
        if not (size > 0 and math.isfinite(size)):
            raise KeyProblem(key, f"must be greater than 0, got '{text}'")
        return size


_EXAMPLES = {"length": "pc", "mass": "Msun", "time": "Myr", "velocity": "km/s"}
_DERIVED = {
    "time": ("length", True, "velocity"),
    "length": ("velocity", False, "time"),
    "velocity": ("length", True, "time"),
}
"""How each unit follows from two others: first / second if True, else first · second."""


def _example(dimension: Dimension) -> str:
    """A quantity of this dimension."""
    powers = (("pc", dimension.length), ("Msun", dimension.mass), ("Myr", dimension.time))
    composed = " ".join(f"{unit}{power if power != 1 else ''}" for unit, power in powers if power)
    return f"'5 {_EXAMPLES.get(dimension.name, composed)}'"


def is_quantity(value: object) -> bool:
    """True for a text that is a number and a unit, such as ``20 Myr``."""
    return isinstance(value, str) and len(value) <= LONGEST and _QUANTITY.fullmatch(value.strip()) is not None


def magnitude(value: object) -> float:
    """The size of a number, or of a quantity without its unit; 0 for all that is neither, or not finite."""
    number = _split(value)[0] if isinstance(value, str) and is_quantity(value) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        return 0.0
    number = min(abs(number), sys.float_info.max)
    return number if math.isfinite(number) else 0.0


def _split(text: str) -> tuple[float, str]:
    found = _QUANTITY.fullmatch(text.strip())
    assert found
    return float(found[1]), (found[2] or found[3]).strip()


def _si(text: str, dimension: Dimension, quantity: str, example: str) -> float:
    """The size in SI of a unit. Raises ValueError unless it has this dimension."""
    units = _astropy("astropy.units")
    if len(text) <= LONGEST and (milli := _MILLIYEAR.search(text)):
        raise ValueError(
            f"'{quantity}': '{milli[1]}' is a thousandth of a year; write Myr for a million years, or d for days"
        )
    try:
        if len(text) > LONGEST or _NO_UNIT.search(text):
            raise ValueError
        with warnings.catch_warnings():  # "multiple slashes are discouraged", as in km/s/kpc
            warnings.simplefilter("ignore")
            unit = units.Unit(text)
    except (ValueError, TypeError, ZeroDivisionError, OverflowError):
        near = _near(text, units)
        raise ValueError(f"unknown unit '{text[:LONGEST]}'{near}; write a {dimension.name} as in {example}") from None
    powers = {"m": dimension.length, "kg": dimension.mass, "s": dimension.time}
    try:
        base = unit.decompose()
        found = {str(each): power for each, power in zip(base.bases, base.powers, strict=True) if str(each) != "rad"}
        scale = float(base.scale)
    except (AttributeError, TypeError, ValueError, OverflowError, units.UnitsError):  # magnitudes and decibels
        found, scale = {text: 1}, 1.0
    if found != {name: power for name, power in powers.items() if power}:
        raise ValueError(f"'{quantity}' is not a {dimension.name}; write one as in {example}")
    return scale


def _near(text: str, units: Any) -> str:
    """A hint that corrects the first unknown name of a unit."""
    known = sorted(name for name in units.get_current_unit_registry().registry if name.isalpha() and name.isascii())
    strange = next((name for name in re.findall(r"[^\W\d_]+", text) if name not in known), "")
    return did_you_mean(strange, known) if strange else ""


def _astropy(module: str) -> Any:
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        from nbody.install import install_extra

        raise InputError(
            f"units: need Astropy, which is not installed; install it with: {install_extra('units')}, or remove 'units' and "
            "write plain numbers"
        ) from None


def _bracketed(symbol: str) -> str:
    return symbol if symbol.isalnum() else f"({symbol})"


def _composed(first: str, power: int, second: str) -> str:
    """The symbol of ``first · second^power``, which Astropy can read."""
    units = _astropy("astropy.units")
    (a, left), (b, right) = (_split(each) if is_quantity(each) else (1.0, each) for each in (first, second))
    symbol = (units.Unit(left) * units.Unit(right) ** power).to_string().replace(" / ", "/").replace("AU", "au")
    factor = a * b**power
    return symbol if factor == 1 else f"{factor:.17g} {symbol}"
