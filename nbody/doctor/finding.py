"""A finding of ``nbody doctor``."""

from dataclasses import dataclass, field
from typing import Any

GOOD, MISSING, BROKEN = "ok", "missing", "broken"
"""States of a finding: works; an optional part is missing; the program can't run without it."""


@dataclass(frozen=True)
class Finding:
    """One line of the report: the topic, its state, a text, the remedy if there is one, and the facts for JSON."""

    topic: str
    state: str
    text: str
    remedy: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


def good(topic: str, text: str, **facts: Any) -> Finding:
    """What works."""
    return Finding(topic, GOOD, text, facts=facts)


def missing(topic: str, text: str, remedy: str = "", **facts: Any) -> Finding:
    """An optional part that is missing."""
    return Finding(topic, MISSING, text, remedy, facts)
