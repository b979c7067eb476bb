"""The options that replace values of a scenario, the same for all commands that run one; made from
:data:`nbody.scenario.options.OPTIONS`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from nbody.cli.completion import SCENARIOS, names
from nbody.cli.numbers import count_option, quantity_option, real_option, text_option
from nbody.cli.parameters import Command, in_place_of
from nbody.errors import InputError
from nbody.registry import imported
from nbody.scenario.options import OPTIONS, Option

if TYPE_CHECKING:
    from nbody.scenario import Scenario

PANEL = "The scenario"

TAKES: dict[str, tuple[Any, Callable[..., Any]]] = {
    "int": (int | None, count_option),
    "float": (float | None, real_option),
    "quantity": (Any, quantity_option),
    "text": (str | None, text_option),
}
"""For what an option takes: its type, and what makes it."""

SET = Annotated[
    list[str] | None,
    text_option("Any other value, as in gravity.G=2; can be repeated.", metavar="KEY=VALUE", rich_help_panel=PANEL),
]


class Replaced(dict[str, Any]):
    """The values of a scenario that the user gave by options."""

    def load(self, path: Path) -> "Scenario":
        """Load the scenario at ``path`` and replace the values that the user gave."""
        from nbody.scenario import Scenario

        values = dict(self)
        return Scenario.load(path, values.pop("set", ()), **values)

    def refuse(self, recording: Path) -> None:
        """Raise an InputError if there is any: a recording has been made."""
        for name in self:
            raise InputError(f"--{name}: belongs to a scenario, and {recording} is a recording; leave it out")


def scenario_options(command: Command) -> Command:
    """Give a command these options in place of its parameter ``replaced``, which is a :class:`Replaced`."""
    options = {name: (_annotation(name, option), None) for name, option in OPTIONS.items() if option.help}
    return in_place_of("replaced", options | {"set": (SET, None)}, _replaced, command)


def _replaced(values: dict[str, Any]) -> Replaced:
    return Replaced({name: value for name, value in values.items() if value not in (None, [])})


def _annotation(name: str, option: Option) -> Any:
    """The type of an option, with its spellings, its help and its completion."""
    kind, make = TAKES[option.takes]
    more: dict[str, Any] = {"rich_help_panel": PANEL}
    more |= {"metavar": option.metavar} if option.metavar else {}
    more |= {"autocompletion": names(*option.names)} if option.names else {}
    listing = imported(option.names[-1]).listing() if "{names}" in option.help else ""
    return Annotated[kind, make(option.help.replace("{names}", listing), f"--{name}", *option.also, **more)]


def is_scenario(path: Path) -> bool:
    """True for a YAML file, and for a bare name that is no file: that of a scenario that comes with nbody."""
    bare = not path.suffix and path.parent == Path() and not path.exists()
    return path.suffix.lower() in SCENARIOS or bare
