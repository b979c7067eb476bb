"""``nbody help``: what a key of a scenario or a component means."""

from typing import Annotated

from nbody.cli.completion import words
from nbody.cli.options import argument
from nbody.cli.streams import pages
from nbody.registry import REGISTRIES, imported
from nbody.scenario.options import OPTIONS


def _offer(incomplete: str) -> list[str]:
    """Keys, components and short names of keys."""
    from nbody.scenario.model import Scenario

    components = (name for kind in REGISTRIES for name in imported(REGISTRIES[kind]))
    return words(*dict.fromkeys((*Scenario.model_fields, *OPTIONS, *components)))(incomplete)


def help_command(
    names: Annotated[
        list[str] | None,
        argument("A key of a scenario, a component or a command; by default the keys of a scenario.", _offer),
    ] = None,
) -> int:
    """Explain a key of a scenario, or a generator, engine, scheme, field … with its parameters, units and defaults.

    \b
    Examples:
      nbody help integrator.dt
      nbody help initial.king
      nbody help wisdom_holman
      nbody help run
    """
    from nbody.cli.components import page, scenario_keys

    pages({title: text for name in names for title, text in page(name).items()} if names else scenario_keys())
    return 0
