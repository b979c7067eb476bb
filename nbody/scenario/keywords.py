"""The keyword arguments with which a Python program describes a run, instead of YAML."""

from collections.abc import Iterator, Mapping
from typing import Any

from nbody.errors import InputError, unknown
from nbody.scenario.source import Keys

KEYWORDS: dict[str, Keys] = {
    "particles": ("initial", "particles"),
    "seed": ("initial", "seed"),
    "dt": ("integrator", "dt"),
    "steps": ("integrator", "steps"),
    "end": ("integrator", "end"),
    "integrator": ("integrator", "scheme"),
    "G": ("gravity", "G"),
    "softening": ("gravity", "softening"),
    "length": ("gravity", "length"),
    "accuracy": ("engine", "accuracy"),
    "gpus": ("engine", "gpus"),
    "every": ("record", "every"),
    "observables": ("record", "observables"),
}
"""Each keyword that stands for a key inside a group. The keys of a scenario are keywords too; their values may be groups:
``integrator={"scheme": "hermite4", "eta": 0.01}``."""


def assignments(values: Mapping[str, Any], top: Mapping[str, Any]) -> Iterator[tuple[Keys, str, Any]]:
    """The keys that the keywords ``values`` set, each with its keyword and its value. ``top``: the keys of a scenario.

    Raises:
        InputError: there is no such keyword.
    """
    for name, value in values.items():
        if value is None:
            continue
        if isinstance(value, Mapping) and name in top:
            for key, each in value.items():
                yield (name, str(key)), name, each
        elif name in KEYWORDS:
            yield KEYWORDS[name], name, value
        elif name in top and name != "initial":
            yield (name,), name, value
        else:
            raise unknown("keyword", name, [*KEYWORDS, *(key for key in top if key not in ("initial", *KEYWORDS))])


def softening_keys(value: Any, option: str = "softening") -> dict[str, Any]:
    """``softening`` and ``length`` of a softening in short: ``0.01`` and ``"0.01"`` (Plummer's), ``"plummer:0.01"``,
    ``("plummer", 0.01)``, or a name alone. The length may be one per species: ``{"stars": 0.01, "halo": 0.1}``.

    Raises:
        InputError: the length is not a number; the line begins with ``option``.
    """
    if isinstance(value, Mapping):
        return dict(value) if "softening" in value else {"softening": "plummer", "length": value}
    name, length = value if isinstance(value, tuple | list) and len(value) == 2 else (value, None)
    if isinstance(name, str) and length is None:
        name, colon, after = name.partition(":")
        length = after if colon else None
        if not colon and _number(name) is not None:
            name, length = "plummer", name
    elif not isinstance(name, str):
        name, length = "plummer", name
    if isinstance(length, str):
        number = _number(length)
        if number is None:
            raise InputError(f"{option}: '{length}' is not a length; write it as in 'plummer:0.01'")
        length = number
    return {"softening": name} if length is None else {"softening": name, "length": length}


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
