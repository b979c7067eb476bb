"""The values of a scenario that have a short name: an option of the command line, a keyword of Python.

The command line's options, their help and their completion (:mod:`nbody.cli.groups`), the keywords of
:class:`~nbody.run.simulation.Simulation` and the hints about misplaced keys are all made from :data:`OPTIONS`.
"""

from typing import Literal, NamedTuple, get_args

from nbody.scenario.source import Keys

Precision = Literal["float32", "mixed", "float64", "auto"]
PRECISION_NAMES: tuple[str, ...] = get_args(Precision)
PRECISIONS, AUTO = PRECISION_NAMES[:-1], PRECISION_NAMES[-1]
"""The precisions that a run may have, the fastest first, and what stands for the first that keeps the bodies' digits."""


class Option(NamedTuple):
    """A short name.

    Attributes:
        path: the value that it stands for, as ``integrator.dt``.
        help: what the command line says; empty if only Python has this name. ``{names}``: those of the registry.
        takes: ``int``, ``float``, ``quantity`` (a number, or a text with a unit), ``text``, or ``texts`` (several).
        names: where the names are that the value may be: ``module:attribute`` of texts, or of a registry (the last).
        also: other spellings on the command line.
        metavar: how the help shows a text.
    """

    path: str
    help: str = ""
    takes: str = "text"
    names: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    metavar: str | None = None

    @property
    def keys(self) -> Keys:
        return tuple(self.path.split("."))


OPTIONS: dict[str, Option] = {
    "particles": Option("initial.particles", "Number of particles.", "int", also=("--n", "-n")),
    "steps": Option("integrator.steps", "Number of time steps.", "int"),
    "end": Option(
        "integrator.end", "The time at which the run ends, as in 10 or '20 Myr'; it may be before the beginning.",
        "quantity", also=("--until",)
    ),
    "dt": Option("integrator.dt", "The time step; a negative one goes back in time.", "quantity"),
    "seed": Option("initial.seed", "Seed of the initial conditions.", "int"),
    "G": Option("gravity.G", "The gravitational constant.", "float"),
    "softening": Option(
        "gravity.softening", "The softening, with its length: plummer:0.01. One of: {names}.",
        names=("nbody.law:LAWS",),
    ),
    "length": Option("gravity.length"),
    "engine": Option(
        "engine", "Force engine: auto, gpu (the fastest there), tree, {names}; matrix:k07 has the kernel k07.",
        names=("nbody.forces.registry:STAND_FOR", "nbody.forces:ENGINES"),
    ),
    "accuracy": Option(
        "engine.accuracy", "The median relative error of the forces; auto then takes a tree where that is faster: 1e-3.",
        "float",
    ),
    "gpus": Option(
        "engine.gpus", "The GPUs of this machine that compute together: their number, all, or which ones: 0,2.",
        metavar="<gpus>",
    ),
    "integrator": Option("integrator.scheme", "Scheme: {names}.", names=("nbody.integrators:INTEGRATORS",)),
    "precision": Option(
        "precision", "float32, mixed, float64, or auto: the first of these that keeps the digits of the bodies.",
        names=("nbody.scenario.options:PRECISION_NAMES",),
    ),
    "every": Option("record.every", "Steps between recorded frames.", "int"),
    "observables": Option("record.observables"),
    "event": Option(
        "events", "An event to record too, as in 'transit(1, axis=x)'; can be repeated. Kinds: {names}.", "texts",
        names=("nbody.events:EVENTS",),
    ),
    "stop_when": Option(
        "events", "An event that ends the run, as in 'distance(0, 1) < 0.01'; can be repeated.", "texts",
        names=("nbody.events:EVENTS",),
    ),
}  # fmt: skip
"""Each short name. The keys of a scenario are keywords of Python too; their values may be groups:
``integrator={"scheme": "hermite4", "eta": 0.01}``."""

ELSEWHERE = {
    name: f"belongs in '{group}'; write '{group}: {{{name}: …}}'"
    for name, option in OPTIONS.items()
    for group, dot, key in (option.path.partition("."),)
    if dot and name == key
}
"""Keys that users write at the top level, and where they belong."""
