"""What there is to know of a component or a key of a scenario, as a Markdown text."""

import inspect
from collections.abc import Iterator
from typing import Any

from nbody.errors import InputError, did_you_mean, printable
from nbody.registry import REGISTRIES, Registry, imported
from nbody.scenario.described import key_text, keys_of_group, listed, markdown
from nbody.scenario.model import Scenario
from nbody.scenario.options import OPTIONS
from nbody.scenario.values import Group

NAMED_IN = {
    "initial": ("generators",),
    "gravity": ("softenings",),
    "fields": ("fields",),
    "integrator": ("integrators", "ensemble_integrators"),
    "events": ("events",),
    "engine": ("engines",),
    "record": ("observables",),
}
"""The kinds of components that a key of a scenario names."""

NAMING = ("generator", "softening", "field", "scheme", "kind", "name", "observables")
"""The keys within these that give a name."""


def registry(kind: str) -> Registry:
    """The registry of a kind, a name of :data:`~nbody.registry.REGISTRIES`."""
    found: Registry = imported(REGISTRIES[kind])
    return found


def summaries(kind: str) -> dict[str, str]:
    """The names of a kind, and a line about each."""
    found = registry(kind).summaries()
    return imported("nbody.forces.registry:STAND_FOR") | found if kind == "engines" else found


def options_of(thing: Any) -> type[Group] | None:
    """The group of a component's keys; None if it has none."""
    model = getattr(thing, "Options", thing)
    return model if inspect.isclass(model) and issubclass(model, Group) else None


def component(kind: str, name: str) -> str:
    """What one component is, its facts, and its keys; or for what a name stands."""
    if name not in registry(kind):
        return f"Stands for {summaries(kind)[name]}."
    entry, thing = registry(kind)[name], registry(kind).load(name)
    text = markdown(thing.__doc__ if inspect.isclass(thing) else getattr(thing, "about", ""))
    facts = "".join(f"\n- {key}: {value}" for key, value in _facts(thing) if value)
    model = options_of(thing)
    keys = listed(model) if model else ""
    return "\n\n".join(filter(None, (f"*{entry.summary}*", text, facts.strip(), keys)))


def _facts(thing: Any) -> Iterator[tuple[str, str]]:
    """What a component says of itself, in words."""
    if facts := getattr(thing, "facts", None):
        yield "order", str(facts.order)
        yield "source", facts.source
        yield "lengths of steps", facts.lengths
        yield "force evaluations per step", str(facts.evaluations)
        yield "precisions", "; ".join(f"{', '.join(each)} on {device}" for device, each in facts.precisions.items())
    if can := getattr(thing, "can", None):
        yield "computes on", {"cpu": "the CPU", "gpu": "GPUs"}[can.device]
        yield "precisions", ", ".join(can.precisions)
        yield "several GPUs, several processes", f"{_yes(can.gpus)}, {_yes(can.ranks)}"
    if suffixes := getattr(thing, "suffixes", ()):
        yield "suffixes", ", ".join(suffixes)
        yield "needs the package", thing.package
        yield "several moments per file", _yes(thing.many)
        yield "opened in Python by", f"`{thing.opened_by}`" * bool(thing.opened_by)
    if width := getattr(thing, "width", 0):
        yield "numbers per frame", str(width)
        yield "unit", f"that of {thing.quantity}" if thing.quantity else "none"
    if isinstance(options := getattr(thing, "options", ()), tuple) and options:
        yield "options", ", ".join(f"`--{each}`" for each in options)
    if isinstance(thing, tuple) and not hasattr(thing, "_fields"):
        yield "stands for", ", ".join(thing)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def group(key: str) -> str:
    """A key of a scenario, the keys in it, and the names of the components that it may name."""
    [found] = [each for each in keys_of_group(Scenario) if each.name == key]
    parts = [f"`{key}` ({found.note}): {found.meaning}"]
    for each in found.groups:
        parts += [markdown(each.__doc__), listed(each)]
    return "\n\n".join([*parts, *map(_names, NAMED_IN.get(key, ()))])


def _names(kind: str) -> str:
    """The components of a kind, with a line about each."""
    lines = (f"- `{name}`: {summary}" for name, summary in summaries(kind).items())
    return f"{kind.replace('_', ' ').capitalize()}:\n\n" + "\n".join(lines)


def scenario_keys() -> dict[str, str]:
    """The keys of a scenario, with a title."""
    return {"scenario": f"{markdown(Scenario.__doc__)}\n\n{listed(Scenario)}".partition("\n\n**")[0]}


def found(path: str) -> dict[str, str]:
    """Titles and texts of what a name or a path of keys means: ``king``, ``initial.king``, ``integrator.dt``, ``gravity``.

    Raises:
        InputError: there is nothing of this name; the nearest one.
    """
    first, *names = [each for each in path.split(".") if not each.isdigit()] or [""]
    if first not in Scenario.model_fields:
        if first in OPTIONS and not names and not _components(tuple(REGISTRIES), [first]):
            return found(OPTIONS[first].path)
        of_kind = names and first in REGISTRIES  # quantities.megno
        result = _components((first,), names) if of_kind else _components(tuple(REGISTRIES), [first, *names])
    elif not names:
        return {first: group(first)}
    else:
        result = _components(NAMED_IN.get(first, ()), names) or _keys(first, names)
    if not result:
        known = [*Scenario.model_fields, *(name for kind in REGISTRIES for name in summaries(kind))]
        meant = {name: each for kind in REGISTRIES for name, each in registry(kind).meant.items()}
        hint = did_you_mean(path.rpartition(".")[2], known, meant)
        raise InputError(f"there is no '{printable(path)}'{hint}; 'nbody list' shows names, and 'nbody help' keys")
    return result


def _components(kinds: tuple[str, ...], names: list[str]) -> dict[str, str]:
    """The components of a name, or a key of each."""
    (name, *keys), found = names, dict[str, str]()
    for kind in kinds:
        known = name in registry(kind) or (name in summaries(kind) and not keys)
        if known and (text := key_text(options_of(registry(kind).load(name)), keys) if keys else component(kind, name)):
            found[f"{name} ({registry(kind).kind.replace('_', ' ')})"] = text
    return found


def page(path: str) -> dict[str, str]:
    """:func:`found` for a page: the items that several components of a name have in common once. Raises InputError."""
    items, shown = set[str](), dict[str, str]()
    for title, text in found(path).items():
        lines = [line for line in text.splitlines() if line not in items]
        items |= {line for line in lines if line.startswith("- ")}
        shown |= {title: "\n".join(lines)} if any(lines) else {}
    return shown


def _keys(group_key: str, names: list[str]) -> dict[str, str]:
    """A key of a group of the scenario, or of the components that it may name, which may mean the same."""
    [key] = [each for each in keys_of_group(Scenario) if each.name == group_key]
    owners: list[tuple[str, type[Group] | None]] = [(group_key, each) for each in key.groups]
    for kind in NAMED_IN.get(group_key, ()):
        owners += [(name, options_of(registry(kind).load(name))) for name in registry(kind)]
    found: dict[str, list[str]] = {}
    for owner, model in owners:
        if text := key_text(model, names):
            found.setdefault(text, []).append(owner)
    if names[0] in NAMING:
        return {group_key: "\n\n".join([*found, *map(_names, NAMED_IN[group_key])])}
    return {", ".join(dict.fromkeys(titles)): text for text, titles in found.items()}
