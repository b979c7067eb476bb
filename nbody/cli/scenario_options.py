"""The options that replace values of a scenario, the same for ``nbody run`` and ``nbody view``."""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nbody.cli.completion import engines_or_auto, integrators, precisions
from nbody.cli.numbers import count_option, quantity_option, real_option
from nbody.forces import ENGINES
from nbody.integrators import INTEGRATORS
from nbody.law import LAWS

if TYPE_CHECKING:
    from nbody.scenario import Scenario

PANEL = "The scenario"

OPTIONS: dict[str, Any] = {
    "particles": Annotated[int | None, count_option("Number of particles.", "--particles", "--n", "-n")],
    "steps": Annotated[int | None, count_option("Number of time steps.")],
    "end": Annotated[Any, quantity_option("The time at which the run ends, as in 10 or '20 Myr'.", "--end", "--until")],
    "dt": Annotated[Any, quantity_option("The time step.")],
    "seed": Annotated[int | None, count_option("Seed of the initial conditions.")],
    "G": Annotated[float | None, real_option("The gravitational constant.", "--G")],
    "softening": Annotated[
        str | None,
        typer.Option(
            help=f"The softening, with its length: plummer:0.01. One of: {LAWS.listing()}.", show_default=False
        ),
    ],
    "engine": Annotated[
        str | None,
        typer.Option(
            help=f"Force engine: auto, gpu (the fastest there), tree, {ENGINES.listing()}; matrix:k07 has the kernel k07.",
            show_default=False,
            autocompletion=engines_or_auto,
        ),
    ],
    "accuracy": Annotated[
        float | None,
        real_option("The median relative error of the forces; auto then takes a tree where that is faster: 1e-3."),
    ],
    "gpus": Annotated[
        str | None,
        typer.Option(
            help="The GPUs of this machine that compute together: their number, all, or which ones: 0,2.",
            metavar="<gpus>",
            show_default=False,
        ),
    ],
    "integrator": Annotated[
        str | None,
        typer.Option(help=f"Scheme: {INTEGRATORS.listing()}.", show_default=False, autocompletion=integrators),
    ],
    "precision": Annotated[
        str | None, typer.Option(help="float32, mixed or float64.", show_default=False, autocompletion=precisions)
    ],
    "every": Annotated[int | None, count_option("Steps between recorded frames.")],
    "set": Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="Any other value, as in gravity.G=2; can be repeated.", show_default=False
        ),
    ],
}
"""Names, types and help texts."""


class Replaced(dict[str, Any]):
    """The values of :data:`OPTIONS` that the user gave."""

    def load(self, path: Path) -> "Scenario":
        """Load the scenario at ``path`` and replace the values that the user gave."""
        from nbody.scenario import Scenario

        values = dict(self)
        return Scenario.load(path, values.pop("set", ()), **values)


def scenario_options(command: Callable[..., int]) -> Callable[..., int]:
    """Replace the parameter ``replaced`` of a command by :data:`OPTIONS`; the command gets a :class:`Replaced`."""

    @wraps(command)
    def wrapper(**values: Any) -> int:
        given = {name: values.pop(name) for name in OPTIONS}
        return command(**values, replaced=Replaced(_given(given)))

    parameters: list[Parameter] = []
    for each in signature(command, eval_str=True).parameters.values():
        if each.name == "replaced":
            parameters += [
                Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=kind)
                for name, kind in OPTIONS.items()
            ]
        else:
            parameters.append(each)
    shown = signature(command).replace(parameters=parameters)
    wrapper.__signature__ = shown  # type: ignore[attr-defined]
    wrapper.__annotations__ = {name: each.annotation for name, each in shown.parameters.items()}
    return wrapper


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, [])}
