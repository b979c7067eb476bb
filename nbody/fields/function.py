"""Forces of your own: a Python function that Numba compiles for the CPU and the GPU. ::

    spring = nbody.force(lambda x, y, z, k: (-k * x, -k * y, -k * z), k=2.0)

    @nbody.force(potential=lambda x, y, z, t: …)
    def satellite(x, y, z, t): …

    nbody.Simulation(particles, fields=[spring, satellite], …)

The names of its arguments say what a force depends on. A recording stores its source, of which no function is ever made.
"""

import hashlib
import inspect
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pkgutil import resolve_name
from secrets import token_hex
from typing import Annotated, Any, Self

from pydantic import AfterValidator, PrivateAttr, model_validator

from nbody.compute.compiling.fingerprint import Unknown, fingerprint
from nbody.errors import InputError, did_you_mean
from nbody.fields.field import ARGUMENTS, Field, Term
from nbody.given import converted, number, shown
from nbody.scenario.groups import FieldChoice
from nbody.scenario.values import Finite, Text

NAMES = tuple(name for name in ARGUMENTS.split(", ") if name not in "Mp")
"""What a function may ask for by the name of an argument."""

COMPONENTS = {  # names that users try, and the arguments that there are instead
    "position": "x, y, z", "pos": "x, y, z", "velocity": "vx, vy, vz", "vel": "vx, vy, vz", "mass": "m", "time": "t",
}  # fmt: skip

HOW = "nbody.Simulation(…, fields=[nbody.force(function)])"

_known: dict[str, "Force"] = {}  # the forces of this process by their digests
UNDESCRIBED = "of this process: "  # begins the digest of a function that refers to what has no description


class Force(FieldChoice):
    """A force per unit mass that :func:`force` has made of a function; calling it calls the function."""

    _function: Callable[..., Any] = PrivateAttr()
    _potential: Callable[..., Any] | None = PrivateAttr()
    _takes: tuple[tuple[str, ...], tuple[str, ...]] = PrivateAttr()

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __repr__(self) -> str:
        return f"<nbody.force {self.name}({', '.join(self._takes[0])})>"

    @property
    def name(self) -> str:
        """The name of the function."""
        return str(self.options["name"])

    @property
    def time_dependent(self) -> bool:
        """True if it, or its potential, depends on the time."""
        return any("t" in takes for takes in self._takes)

    def evaluate(self, known: Mapping[str, float]) -> Sequence[float]:
        """``(ax, ay, az, phi)`` by Python, from the values of all names."""
        of_force, of_potential = (tuple(known[name] for name in takes) for takes in self._takes)
        found = tuple(self._function(*of_force))
        phi = found[3:] or (self._potential(*of_potential) if self._potential else 0.0,)
        return (*(*found, 0.0)[:3], *phi)

    @cached_property
    def term(self) -> Term:
        """What is compiled. Raises InputError: Numba can't compile it, or it returns something else than numbers."""
        words = dict(zip(NAMES, NAMES, strict=True))
        words |= {name: f"p[{k}]" for k, name in enumerate(self.options["values"])}  # type: ignore[arg-type, var-annotated]
        of_force, of_potential = (", ".join(words[name] for name in takes) for takes in self._takes)
        returns = _returned(self.name, self._function, len(self._takes[0]))
        if returns not in (2, 3, 4) or (self._potential is not None and returns == 4):
            phi = "" if self._potential else ", or (ax, ay, az, potential)"
            raise InputError(f"force '{self.name}': must return (ax, ay, az){phi}; it returns {_counted(returns)}")
        if self._potential is not None and (made := _returned(self.name, self._potential, len(self._takes[1]))) != 1:
            raise InputError(f"force '{self.name}': its potential must return one number; it returns {_counted(made)}")
        return Term(self._function, of_force, returns, self._potential, of_potential, str(self.options["digest"]))

    def renewed(self) -> "Force":
        """The same function, if what it refers to has changed since."""
        if str(self.options["digest"]).startswith(UNDESCRIBED):
            return self
        made: Force = force(self._function, potential=self._potential, **self.options["values"])  # type: ignore[arg-type]
        return made


def force(
    function: Callable[..., Any] | None = None, /, potential: Callable[..., Any] | None = None, **parameters: float
) -> Any:
    """A force of your own, for ``Simulation(…, fields=[…])``. Also a decorator: ``@nbody.force``, ``@nbody.force(k=2.0)``.

    Args:
        function: returns the acceleration ``(ax, ay, az)`` of one body (in 2-D ``(ax, ay)`` is enough), or
            ``(ax, ay, az, phi)`` with the potential. It gets what its arguments name: ``x, y, z`` the position, ``vx, vy,
            vz`` the velocity, ``m`` the mass, ``t`` the time, all float64 in the scenario's units; other arguments are
            parameters. Numba compiles it: arithmetic, ``if``, loops, ``math``, arrays that it refers to (as constants), and
            functions with ``numba.njit``.
        potential: returns the potential per unit mass; its arguments are named in the same way, without the velocity.
            Without a potential the energies leave the force out.
        parameters: values of arguments; those of others are their defaults in Python. A new value compiles nothing.

    Raises:
        InputError: an argument has no value, or a value is no number.
    """
    if function is None:
        return partial(force, potential=potential, **parameters)
    function, potential = _plain(function), None if potential is None else _plain(potential)
    name = "lambda" if function.__name__ == "<lambda>" else function.__name__
    given = dict(parameters)
    takes = tuple(_arguments(name, each, given) for each in (function, potential) if each is not None)
    if unused := [key for key in parameters if not any(key in names for names in takes)]:
        hint = did_you_mean(unused[0], [key for names in takes for key in names if key not in NAMES])
        raise InputError(f"force '{name}': it has no argument '{unused[0]}'{hint}")
    if potential is not None and (moving := {"vx", "vy", "vz"}.intersection(takes[1])):
        raise InputError(f"force '{name}': its potential depends on '{min(moving)}'; a potential has no velocities")
    order = dict.fromkeys(key for names in takes for key in names if key not in NAMES)  # not that of the keywords
    values = {key: converted(f"force '{name}': {key}: ", number, given[key]) for key in order}
    options: dict[str, Any] = {"name": name, "source": _source(function), "values": values}
    if potential is not None:
        options["potential"] = _source(potential)
    made = Force(field="function", **options | {"digest": _digest(name, function, potential)})
    made._function, made._potential, made._takes = function, potential, (*takes, *[()] * (2 - len(takes)))  # type: ignore[assignment]
    _known.setdefault(str(made.options["digest"]), made)
    made.__doc__ = function.__doc__
    return made


class FunctionField(Field):
    """A force of your own, as a scenario and a recording hold it; :func:`force` makes it of a Python function.

    Attributes:
        name: of the function.
        source, potential: its source, and that of its potential; empty without one.
        values: of its parameters.
        digest: of what is compiled: the code, and all that it refers to.
        energy: True if it has a potential, which the energies include.
    """

    name: Text = ""
    source: str = ""
    potential: str = ""
    values: Annotated[Mapping[str, Finite], AfterValidator(dict)] = {}
    digest: str = ""
    energy: bool = True

    @model_validator(mode="after")
    def _is_known(self) -> Self:
        if not self.name:
            raise ValueError(f"a function is given in Python: {HOW}")
        if self.digest not in _known:
            raise ValueError(
                f"the function '{self.name}' is not in this process, and no code is executed from a file; give it again, as "
                f"in {HOW}, or nbody.resume(path, fields=[nbody.force(function)])"
            )
        if self.values.keys() != (known := _known[self.digest].options["values"]).keys():  # type: ignore[attr-defined]
            raise ValueError(f"the parameters of '{self.name}' are {', '.join(known)}")  # type: ignore[arg-type]
        term = self.term()
        return self.model_copy(update={"energy": term.returns == 4 or term.potential is not None})

    def __reduce__(self) -> Any:  # another process finds the functions by their names
        functions = filter(None, ((known := _known[self.digest])._function, known._potential))
        return _unpickled, (self.model_dump(), *(f"{each.__module__}:{each.__qualname__}" for each in functions))

    def term(self) -> Term:
        return _known[self.digest].term

    def parameters(self, G: float) -> tuple[float, ...]:
        return tuple(self.values[name] for name in _known[self.digest].options["values"])  # type: ignore[attr-defined]

    def size(self) -> None:
        return None

    def doubt(self, bodies: Sequence[Sequence[float]], time: float) -> str:
        """By central differences, whose error is h²/6 of the third derivative, in Python."""
        made = _known[self.digest]
        if not self.energy or made.term.moving:
            return ""

        def at(x: Sequence[float], m: float) -> Sequence[float]:
            return made.evaluate({**self.values, **dict(zip("xyz", x, strict=True)), "m": m, "t": time})

        for *x, m in bodies:
            h = 1e-4 * (math.hypot(*x) + 1e-4)
            with suppress(ArithmeticError):  # a singular place
                *a, phi = at(x, m)
                for k, component in enumerate(a):
                    before, after = ([*x[:k], x[k] + sign * h, *x[k + 1 :]] for sign in (-1, 1))
                    slope = (at(after, m)[3] - at(before, m)[3]) / (2 * h)
                    if abs(component + slope) > 1e-2 * math.hypot(*a) + 1e-11 * abs(phi) / h:
                        return f"the force '{self.name}' is not minus the gradient of its potential: the energies are wrong"
        return ""

    @property
    def title(self) -> str:
        return self.name

    @property
    def has_potential(self) -> bool:
        return self.energy

    @property
    def time_dependent(self) -> bool:  # type: ignore[override]
        return _known[self.digest].time_dependent


def _plain(function: Any) -> Callable[..., Any]:
    """The Python function of one, which Numba may have compiled. Raises InputError."""
    if isinstance(function, Force):
        function = function._function
    function = getattr(function, "py_func", function)
    if not inspect.isfunction(function):
        raise InputError(f"force: needs a function, as in nbody.force(lambda x, y, z: (-x, -y, -z)); got {shown(function)}")
    return function


def _arguments(name: str, function: Callable[..., Any], values: dict[str, Any]) -> tuple[str, ...]:
    """The names of a function's arguments; defaults that are not in ``values`` yet are added to it. Raises InputError."""
    found = inspect.signature(function).parameters
    for key, argument in found.items():
        if argument.kind not in (argument.POSITIONAL_ONLY, argument.POSITIONAL_OR_KEYWORD):
            raise InputError(f"force '{name}': write its arguments one by one, without '*'")
        if key in NAMES:
            continue
        if key not in values and argument.default is argument.empty:
            fix = f"parameters follow the function: nbody.force({'f' if name == 'lambda' else name}, {key}=1.0)"
            if names := COMPONENTS.get(key):
                fix = f"for '{key}' write {names}, as in lambda x, y, z: (-x, -y, -z)"
            raise InputError(f"force '{name}': argument '{key}' has no value; a body gives {', '.join(NAMES)}; {fix}")
        values.setdefault(key, argument.default)
    return tuple(found)


def _source(function: Callable[..., Any]) -> str:
    """The source text of a function; a line that says so if Python does not know it."""
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return "(its source is not in a file)"


def _digest(name: str, *functions: Callable[..., Any] | None) -> str:
    """A text that is equal for equal functions in every process; of a function that refers to what has no description (an
    object), one of this process."""
    try:
        found = [fingerprint(each).hash for each in functions if inspect.isfunction(each)]
    except (Unknown, ValueError, RecursionError):  # ValueError: a variable that has no value yet
        return f"{UNDESCRIBED}{token_hex(8)}"
    return hashlib.sha256(repr((name, found)).encode()).hexdigest()[:16]


def _returned(name: str, function: Callable[..., Any], arguments: int) -> int:
    """How many numbers a function returns, as Numba compiles it; 0 if it returns something else. Raises InputError."""
    from numba import float64, types
    from numba.core.errors import NumbaError

    from nbody.compute.compiling.cpu_inner import inner

    compiled = inner(function)
    if not hasattr(compiled, "compile"):  # NUMBA_DISABLE_JIT
        found = function(*[1.0] * arguments)
        return len(found) if isinstance(found, tuple) else 1
    try:
        compiled.compile((float64,) * arguments)
    except NumbaError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        told = lines[1] if lines[0].startswith("Failed in") and len(lines) > 1 else lines[0]
        raise InputError(f"force '{name}': Numba can't compile it: {told[:300]}") from None
    returned = compiled.nopython_signatures[-1].return_type
    each = tuple(returned) if isinstance(returned, types.BaseTuple) else (returned,)
    return len(each) if all(isinstance(kind, types.Number) for kind in each) else 0


def _counted(returned: int) -> str:
    return {0: "something else", 1: "one number"}.get(returned, f"{returned} numbers")


def _unpickled(options: Mapping[str, Any], name: str, *potential: str) -> FunctionField:
    if options["digest"] not in _known:
        with suppress(ImportError, AttributeError, ValueError):  # a lambda; decorators of the module made theirs
            force(resolve_name(name), *map(resolve_name, potential), **options["values"])
    if options["digest"] not in _known:
        raise InputError(f"force '{options['name']}': is not in this process; define it with 'def' in a module")
    return FunctionField.model_validate(options)
