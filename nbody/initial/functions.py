"""Generators as functions: ``nbody.plummer(4096, seed=1)`` returns the particles."""

from collections.abc import Callable, Mapping
from typing import Any

from nbody.errors import InputError
from nbody.initial import GENERATORS, make_particles
from nbody.particles import Particles
from nbody.scenario import Scenario
from nbody.scenario.described import listed, markdown


def function(name: str) -> Callable[..., Particles]:
    """The function of the generator ``name``. Its bodies are those of a scenario with the same values, to the bit."""
    kind = GENERATORS.load(name)
    space = kind.dimensions[0]

    def generate(
        particles: int | None = None,
        seed: int = 1,
        *,
        G: float | None = None,
        dimensions: int = space,
        units: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Particles:
        given = {} if particles is None else {"particles": particles}  # some generators have a fixed number of bodies
        values = {
            "initial": {"generator": name, "seed": seed, **given, **options},
            "gravity": {"dimensions": dimensions} | ({} if G is None else {"G": G}),
            "integrator": {"steps": 0},
        } | ({} if units is None else {"units": units})
        try:
            return make_particles(Scenario.from_dict(values))
        except InputError as error:
            raise InputError(f"{name}: {str(error).removeprefix('initial.')}") from None

    generate.__name__ = generate.__qualname__ = name
    summary = GENERATORS[name].summary
    generate.__doc__ = (
        f"{summary[:1].upper()}{summary[1:]}: ``particles`` bodies from ``seed``, for the gravitational constant ``G`` (by "
        f"default 1, or that of the ``units``), in ``dimensions`` dimensions.\n\n"
        f"{markdown(kind.__doc__)}\n\n{listed(kind)}"
    )
    return generate
