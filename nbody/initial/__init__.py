"""Initial conditions: one generator per file, or the user's own bodies. ``GENERATORS`` lists the generators.

To add a generator, write a file with a subclass of :class:`~nbody.initial.generator.Generator`, and add a line to
``GENERATORS`` and a preset to ``scenarios/``.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nbody.errors import InputError
from nbody.exchange.format import Notify
from nbody.initial.bodies import find_bodies, read_bodies
from nbody.initial.combine import apportioned, joined, placed, seeds
from nbody.initial.ensemble import make_systems, member
from nbody.initial.generator import Generator
from nbody.machine import ALWAYS_FREE, memory_available
from nbody.particles import Particles
from nbody.registry import Entry, Registry
from nbody.scenario import Combined, FromArrays, FromFile, Generated, Scenario
from nbody.scenario.components import component
from nbody.scenario.fields import arithmetic

GENERATORS = Registry(
    "generator",
    {
        "lecture": Entry("nbody.initial.lecture:Lecture", "the lecture's spinning disc, in a plane"),
        "plummer": Entry("nbody.initial.plummer:PlummerSphere", "a star cluster in equilibrium (Plummer's sphere)"),
        "king": Entry("nbody.initial.king:King", "a globular cluster with a tidal radius (King's model)"),
        "hernquist": Entry("nbody.initial.hernquist:HernquistSphere", "an elliptical galaxy or a bulge"),
        "isochrone": Entry("nbody.initial.isochrone:Isochrone", "Hénon's isochrone sphere"),
        "nfw": Entry("nbody.initial.nfw:NFWHalo", "a dark halo (Navarro, Frenk & White), with an end"),
        "sphere": Entry(
            "nbody.initial.profile:ProfileSphere", "a sphere in equilibrium with any density, profile: FORMULA"
        ),
        "exponential_disk": Entry(
            "nbody.initial.exponential_disk:ExponentialDisk", "a disc galaxy with Toomre's Q, bulge and halo"
        ),
        "galaxy_collision": Entry("nbody.initial.galaxy_collision:GalaxyCollision", "two disc galaxies on an orbit"),
        "cold_collapse": Entry("nbody.initial.simple:ColdCollapse", "a uniform sphere with too little motion to stand"),
        "uniform": Entry("nbody.initial.simple:UniformBox", "a uniform box"),
        "gaussian": Entry("nbody.initial.simple:GaussianCloud", "a normally distributed cloud"),
        "kepler": Entry("nbody.initial.few:Kepler", "two bodies on an ellipse"),
        "figure_eight": Entry("nbody.initial.few:FigureEight", "three bodies that follow each other on one curve"),
        "pythagorean": Entry("nbody.initial.few:Pythagorean", "Burrau's three bodies at rest, masses 3, 4 and 5"),
        "lagrange_triangle": Entry("nbody.initial.few:LagrangeTriangle", "three bodies on an equilateral triangle"),
        "solar_system": Entry("nbody.initial.solar:SolarSystem", "Sun, planets, Pluto and Moon in 1969 (JPL DE405)"),
        "outer_solar_system": Entry("nbody.initial.solar:OuterSolarSystem", "the Sun and the outer planets in 1994"),
        "planets": Entry(
            "nbody.initial.planets:Planets", "bodies from orbital elements, bodies: [{m: 1}, {m: 0, a: 1}]"
        ),
        "planetesimals": Entry("nbody.initial.planetesimals:Planetesimals", "a disc of small bodies around a star"),
        "ring": Entry("nbody.initial.planetesimals:Ring", "a thin ring around a planet"),
    },
    renamed={"disk": "lecture"},
)
"""Every generator a scenario may name."""

WORKING_COPIES = 3
"""The peak memory of a generator, in units of the particles' memory (measured at N = 10^6: 2.6, plummer)."""


def make_particles(scenario: Scenario, notify: Notify = lambda line: None) -> Particles:
    """The bodies of a scenario at step 0 and time 0: the same bits for the same scenario, seed and machine (see
    :mod:`nbody.initial.sampling` for the generators with the same bits on every machine).

    Raises:
        InputError: one line about a wrong name, parameter or file, or more particles than the memory holds.
    """
    chosen = scenario.initial
    if isinstance(chosen, FromArrays):
        raise _only_arrays(scenario)
    if scenario.ensemble:
        return make_systems(scenario, make_particles)
    if not isinstance(chosen, Combined):
        seed = np.random.SeedSequence(getattr(chosen, "seed", 0))
        return _make(scenario, "initial", chosen, None, seed, notify)
    parts, counts = [], _counts(scenario, chosen)
    for k, (part, seed) in enumerate(zip(chosen.combine, seeds(chosen.seed, chosen.combine), strict=True)):
        at = f"initial.combine.{k}"
        where = partial(_where, scenario, at)
        parts.append(placed(_make(scenario, at, part, counts[k], seed, notify), part, where))
    return joined(
        parts,
        [part.species or getattr(part, "generator", "") or Path(getattr(part, "file", "")).stem for part in chosen.combine],
        [part.species is not None for part in chosen.combine],
        [scenario.where(f"initial.combine.{k}.species") for k in range(len(parts))],
    ).check(scenario.where("initial"))  # fmt: skip


def _where(scenario: Scenario, at: str, key: str) -> str:
    return scenario.where(f"{at}.{key}")


def _make(
    scenario: Scenario,
    at: str,
    chosen: Generated | FromFile,
    asked: int | None,
    seed: np.random.SeedSequence,
    notify: Notify,
) -> Particles:
    """The bodies of one part (``at`` is its key); ``asked`` replaces the number of particles written there."""
    if isinstance(chosen, FromFile):
        path, where = scenario.folder / chosen.file, scenario.where(f"{at}.file")
        return read_bodies(path, scenario.gravity.dimensions, chosen.frame, where, notify)
    generator = _generator(scenario, at, chosen)
    count = asked or _count(scenario, at, chosen, generator)
    _check_memory(scenario, at, count)
    rng = np.random.Generator(np.random.PCG64(seed))
    with arithmetic(scenario.source, tuple(at.split("."))):
        try:
            particles = generator.generate(count, scenario.gravity, rng)
        except InputError as error:
            raise InputError(f"{scenario.where(at)}{error}") from None
        if not all(np.isfinite(each).all() for each in (particles.mass, particles.position, particles.velocity)):
            raise OverflowError
    return particles.check(scenario.where(at))


def check_initial(scenario: Scenario) -> None:
    """Raise the InputError that :func:`make_particles` would raise for a name, a parameter or a missing file, without
    making or reading any bodies."""
    if isinstance(scenario.initial, FromArrays):
        raise _only_arrays(scenario)
    if scenario.ensemble:
        return check_initial(member(scenario, 0))
    for at, chosen in _parts(scenario):
        if isinstance(chosen, FromFile):
            find_bodies(scenario.folder / chosen.file, chosen.frame, scenario.where(f"{at}.file"))
        else:
            _count(scenario, at, chosen, _generator(scenario, at, chosen))


def files_read(scenario: Scenario) -> list[Path]:
    """The files from which the bodies are read."""
    return [scenario.folder / part.file for _, part in _parts(scenario) if isinstance(part, FromFile)]


def number_of_bodies(scenario: Scenario) -> int | None:
    """The number of bodies that :func:`make_particles` will make; None if some come from a file."""
    chosen = scenario.initial
    if scenario.ensemble:
        one = number_of_bodies(member(scenario, 0))
        return None if one is None else one * scenario.ensemble.count
    if any(isinstance(part, FromFile) for _, part in _parts(scenario)):
        return None
    if isinstance(chosen, Combined):
        return sum(count or 0 for count in _counts(scenario, chosen))
    assert isinstance(chosen, Generated)
    return _count(scenario, "initial", chosen, _generator(scenario, "initial", chosen))


def _only_arrays(scenario: Scenario) -> InputError:
    """The error for a scenario whose bodies only the program that ran it had."""
    return InputError(
        f"{scenario.where('initial.source')}the bodies were arrays of a Python program; take them from its recording: "
        "'initial: {file: run.h5, frame: 0}'"
    )


def resolved_initial(scenario: Scenario) -> dict[str, Any]:
    """``scenario.resolved()["initial"]`` with the defaults of the generator's parameters filled in."""
    initial: dict[str, Any] = scenario.resolved()["initial"]
    if scenario.ensemble and not isinstance(scenario.initial, FromArrays):
        seed = {"seed": initial["seed"]} if "seed" in initial else {}
        return resolved_initial(member(scenario, 0)) | seed
    groups = initial.get("combine", [initial])
    for (at, chosen), group in zip(_parts(scenario), groups, strict=False):
        if isinstance(chosen, Generated):
            generator = _generator(scenario, at, chosen)
            group |= {"generator": GENERATORS.check(chosen.generator)}
            group |= generator.model_dump(exclude_none=True)
    return initial


def _parts(scenario: Scenario) -> list[tuple[str, Generated | FromFile]]:
    """The scenario's sets of bodies, with their keys."""
    chosen = scenario.initial
    if isinstance(chosen, Combined):
        return [(f"initial.combine.{k}", part) for k, part in enumerate(chosen.combine)]
    return [] if isinstance(chosen, FromArrays) else [("initial", chosen)]


def _counts(scenario: Scenario, chosen: Combined) -> list[int | None]:
    """The number of bodies of each part of ``combine``; None for files."""
    asked: list[int | None] = [
        None if isinstance(part, FromFile) else _count(scenario, at, part, _generator(scenario, at, part))
        for at, part in _parts(scenario)
    ]
    # Only parts that say how many they are can have another number.
    free = [k for k, part in enumerate(chosen.combine) if getattr(part, "particles", None) is not None]
    if chosen.particles is not None and free:
        others = sum(asked[k] or 0 for k in range(len(asked)) if k not in free)
        wanted = chosen.particles - others
        if wanted < len(free):
            raise InputError(
                f"{scenario.where('initial.particles')}must be at least {others + len(free)}: one per part"
            )
        for k, count in zip(free, apportioned([asked[k] or 0 for k in free], wanted), strict=True):
            asked[k] = count
    return asked


def _count(scenario: Scenario, at: str, chosen: Generated, generator: Generator) -> int:
    try:
        return generator.count(chosen.particles)
    except InputError as error:
        raise InputError(scenario.where(f"{at}.particles") + str(error)) from None


def _generator(scenario: Scenario, at: str, chosen: Generated) -> Generator:
    """The generator at the key ``at``, with its parameters."""
    kind, generator = component(scenario, at, chosen, GENERATORS)
    dimensions = scenario.gravity.dimensions
    if dimensions not in kind.dimensions:
        raise InputError(
            f"{scenario.where('gravity.dimensions', f'{at}.generator')}generator '{chosen.generator}' makes bodies in "
            f"{kind.dimensions[0]} dimensions, got {dimensions}; write 'dimensions: {kind.dimensions[0]}'"
        )
    assert isinstance(generator, Generator)
    return generator


def _check_memory(scenario: Scenario, at: str, count: int) -> None:
    """Raise an InputError if ``count`` particles do not fit into memory. Call this before allocating them."""
    needed = WORKING_COPIES * count * 8 * (2 + 2 * scenario.gravity.dimensions)
    if needed > ALWAYS_FREE and needed > (free := memory_available()):
        raise InputError(
            f"{scenario.where(f'{at}.particles')}{count} particles need {needed / 2**30:.1f} GiB of memory "
            f"to be made and {free / 2**30:.1f} GiB are free; use fewer"
        )
