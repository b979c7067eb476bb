"""Initial conditions: one generator per file, or the user's own bodies. ``GENERATORS`` lists the generators.

To add a generator, write a file with a subclass of :class:`~nbody.initial.generator.Generator`, and add a line to
``GENERATORS`` and a preset to ``scenarios/``.
"""

from typing import Any

import numpy as np

from nbody.errors import InputError
from nbody.initial.bodies import find_bodies, read_bodies
from nbody.initial.generator import Generator
from nbody.machine import memory_available
from nbody.particles import Particles
from nbody.registry import Entry, Registry
from nbody.scenario import FromArrays, FromFile, Generated, Scenario
from nbody.scenario.components import component

GENERATORS = Registry(
    "generator",
    {
        "disk": Entry("nbody.initial.disk:Disk", "the lecture's spinning disc, in a plane"),
        "plummer": Entry("nbody.initial.plummer:Plummer", "a star cluster in equilibrium (Plummer's sphere)"),
    },
)
"""Every generator a scenario may name."""

WORKING_COPIES = 3
"""The peak memory of a generator, in units of the particles' memory (measured at N = 10^6: 2.6, plummer)."""


def make_particles(scenario: Scenario) -> Particles:
    """The bodies of a scenario at step 0 and time 0: the same bits for the same scenario and seed, on every machine.

    Raises:
        InputError: one line about a wrong name, parameter or file, or more particles than the memory holds.
    """
    chosen = scenario.initial
    if isinstance(chosen, FromArrays):
        raise _only_arrays(scenario)
    if isinstance(chosen, FromFile):
        path, where = scenario.folder / chosen.file, scenario.where("initial.file")
        return read_bodies(path, scenario.gravity.dimensions, chosen.frame, where)
    generator = _generator(scenario, chosen)
    _check_memory(scenario, chosen.particles)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(chosen.seed)))
    with np.errstate(over="ignore", invalid="ignore"):  # check() reports an overflow in one line
        particles = generator.generate(chosen.particles, scenario.gravity, rng)
    return particles.check(scenario.where("initial"))


def check_initial(scenario: Scenario) -> None:
    """Raise the InputError that :func:`make_particles` would raise for a name, a parameter or a missing file, without
    making or reading any bodies."""
    chosen = scenario.initial
    if isinstance(chosen, FromFile):
        find_bodies(scenario.folder / chosen.file, chosen.frame, scenario.where("initial.file"))
    elif isinstance(chosen, FromArrays):
        raise _only_arrays(scenario)
    else:
        _generator(scenario, chosen)


def _only_arrays(scenario: Scenario) -> InputError:
    """The error for a scenario whose bodies only the program that ran it had."""
    return InputError(
        f"{scenario.where('initial.source')}the bodies were arrays of a Python program; take them from its recording: "
        "'initial: {file: run.h5, frame: 0}'"
    )


def resolved_initial(scenario: Scenario) -> dict[str, Any]:
    """``scenario.resolved()["initial"]`` with the defaults of the generator's parameters filled in."""
    initial = scenario.resolved()["initial"]
    if isinstance(scenario.initial, Generated):
        initial |= _generator(scenario, scenario.initial).model_dump()
    return initial


def _generator(scenario: Scenario, chosen: Generated) -> Generator:
    """The scenario's generator with its parameters."""
    kind, generator = component(scenario, "initial", chosen, GENERATORS)
    dimensions = scenario.gravity.dimensions
    if dimensions not in kind.dimensions:
        raise InputError(
            f"{scenario.where('gravity.dimensions')}generator '{chosen.generator}' makes bodies in "
            f"{kind.dimensions[0]} dimensions, got {dimensions}; write 'dimensions: {kind.dimensions[0]}'"
        )
    assert isinstance(generator, Generator)
    return generator


def _check_memory(scenario: Scenario, count: int) -> None:
    """Raise an InputError if ``count`` particles do not fit into memory. Call this before allocating them."""
    needed = WORKING_COPIES * count * 8 * (2 + 2 * scenario.gravity.dimensions)
    free = memory_available()
    if needed > free:
        raise InputError(
            f"{scenario.where('initial.particles')}{count} particles need {needed / 2**30:.1f} GiB of memory "
            f"to be made and {free / 2**30:.1f} GiB are free; use fewer"
        )
