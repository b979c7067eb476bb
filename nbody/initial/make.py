"""Makes the bodies of a scenario: by generators, from files, or both; one system, or each of an ensemble."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nbody.errors import InputError
from nbody.given import KeyProblem
from nbody.initial.combine import apportioned, joined, placed, seeds
from nbody.initial.ensemble import check_bodies, make_systems, member, members, vary_numbers
from nbody.initial.generator import Generator
from nbody.initial.registry import GENERATORS
from nbody.memory import ALWAYS_FREE, memory_available
from nbody.particles import Particles
from nbody.scenario import Combined, FromArrays, FromFile, Generated, Scenario
from nbody.scenario.bodies import Placed
from nbody.scenario.model import component
from nbody.scenario.values import arithmetic
from nbody.whole_file import Notify

WORKING_COPIES = 3
"""The peak memory of a generator, in units of the particles' memory (measured at N = 10^6: 2.6, plummer)."""


class BodyPart:
    """One set of bodies of a scenario: the whole of ``initial``, or an item of ``combine``.

    Attributes:
        at: its key.
        generator: with its parameters; None for bodies from a file.
    """

    def __init__(self, scenario: Scenario, at: str, chosen: Generated | FromFile) -> None:
        """Raises InputError: one line about a wrong name or parameter, or other dimensions."""
        self.scenario, self.at, self.chosen = scenario, at, chosen
        self.generator: Generator | None = None
        if isinstance(chosen, Generated):
            kind, found = component(scenario, at, chosen, GENERATORS)
            dimensions = scenario.gravity.dimensions
            if dimensions not in kind.dimensions:
                raise InputError(
                    f"{scenario.where('gravity.dimensions', f'{at}.generator')}generator '{chosen.generator}' makes bodies "
                    f"in {kind.dimensions[0]} dimensions, got {dimensions}; write 'dimensions: {kind.dimensions[0]}'"
                )
            assert isinstance(found, Generator)
            self.generator = found

    def where(self, key: str) -> str:
        """The beginning of an error about one of its keys."""
        return self.scenario.where(f"{self.at}.{key}")

    @property
    def count(self) -> int | None:
        """The number of bodies; None for a file. Raises InputError if it is missing, or not the generator's."""
        if self.generator is None:
            return None
        assert isinstance(self.chosen, Generated)
        try:
            return self.generator.count(self.chosen.particles)
        except InputError as error:
            raise InputError(self.where("particles") + str(error)) from None

    @property
    def name(self) -> str:
        """What its species is called unless the bodies have some."""
        if isinstance(self.chosen, Placed) and self.chosen.species:
            return self.chosen.species
        return self.chosen.generator if isinstance(self.chosen, Generated) else Path(self.chosen.file).stem

    def check(self) -> None:
        """Raise the InputError that :meth:`make` would raise, without making or reading any bodies."""
        if isinstance(self.chosen, FromFile):
            from nbody.initial.bodies import find_bodies  # imports what reads recordings

            find_bodies(self.scenario.source.folder / self.chosen.file, self.chosen.frame, self.where("file"))
        else:
            _ = self.count

    def make(self, count: int | None, seed: np.random.SeedSequence, notify: Notify) -> Particles:
        """The bodies; ``count`` replaces the number of particles written there."""
        gravity = self.scenario.gravity
        if isinstance(self.chosen, FromFile):
            path = self.scenario.source.folder / self.chosen.file
            from nbody.initial.bodies import read_bodies

            return read_bodies(path, gravity.dimensions, self.chosen.frame, self.where("file"), notify)
        count = count or self.count
        assert self.generator and count
        self._check_memory(count)
        rng = np.random.Generator(np.random.PCG64(seed))
        with arithmetic(self.scenario.source, tuple(self.at.split("."))):
            try:
                particles = self.generator.generate(count, gravity, rng)
            except KeyProblem as error:
                raise InputError(self.where(".".join(error.keys)) + str(error)) from None
            except InputError as error:
                raise InputError(f"{self.scenario.where(self.at)}{error}") from None
            if not all(np.isfinite(each).all() for each in (particles.mass, particles.position, particles.velocity)):
                raise OverflowError
        return particles.check(self.scenario.where(self.at))

    def _check_memory(self, count: int) -> None:
        """Raise an InputError if ``count`` particles do not fit into memory. Call this before allocating them."""
        needed = WORKING_COPIES * count * 8 * (2 + 2 * self.scenario.gravity.dimensions)
        if needed > ALWAYS_FREE and needed > (free := memory_available()):
            raise InputError(
                f"{self.where('particles')}{count} particles need {needed / 2**30:.1f} GiB of memory "
                f"to be made and {free / 2**30:.1f} GiB are free; use fewer"
            )


def make_particles(scenario: Scenario, notify: Notify = lambda line: None, systems: range | None = None) -> Particles:
    """The bodies of a scenario at step 0 and time 0; of an ensemble all ``systems``, or some. The same scenario, seed and
    machine give the same bits (see :mod:`nbody.initial.sampling` for the generators with the same bits on every machine).
    Raises InputError: one line about a wrong name, parameter or file, or more particles than the memory holds."""
    chosen = scenario.initial
    if scenario.ensemble and not isinstance(chosen, FromArrays):
        together = _together(scenario, systems or range(scenario.ensemble.count))
        return together or make_systems(scenario, make_particles, systems)
    parts = parts_of(scenario)
    if not isinstance(chosen, Combined):
        return parts[0].make(None, np.random.SeedSequence(getattr(chosen, "seed", 0)), notify)
    made = [
        placed(part.make(count, seed, notify), item, part.where)
        for part, item, count, seed in zip(
            parts, chosen.combine, _counts(chosen, parts), seeds(chosen.seed, chosen.combine), strict=True
        )
    ]
    return joined(
        made,
        [part.name for part in parts],
        [item.species is not None for item in chosen.combine],
        [part.where("species") for part in parts],
    ).check(scenario.where("initial"))


def _together(scenario: Scenario, systems: range) -> Particles | None:
    """The systems of :func:`make_systems`, which differ in numbers of planets alone: by arrays of these, 100 times as fast.
    The first and the last one are made alone, too; None if they differ, or if another way has to say what is wrong."""
    if getattr(scenario.initial, "generator", None) != "planets" or len(systems) < 3:
        return None
    from nbody.initial.planets import Planets  # its group of options costs 17 ms

    values = vary_numbers(scenario, systems)
    ends = [] if values is None else [*members(scenario, systems[:1]), *members(scenario, systems[-1:])]
    try:
        alone = [make_particles(each) for each in ends]
        generator = parts_of(ends[0])[0].generator if ends else None
        if not isinstance(generator, Planets) or values is None:
            return None
        with np.errstate(all="ignore"):
            made = generator.systems(values, alone[0], ends[0].gravity.G)
        if made is None:
            return None
        check_bodies(scenario, alone[0].count)
        made.check()
    except InputError:
        return None
    n = alone[0].count
    for rows, own in zip((slice(0, n), slice(-n, None)), alone, strict=True):
        for name in ("mass", "position", "velocity"):
            if not np.array_equal(getattr(made, name)[rows], getattr(own, name)):
                return None
    return made


def parts_of(scenario: Scenario) -> list[BodyPart]:
    """The scenario's sets of bodies (those of one system alone, if it is an ensemble). Raises InputError: one line about a
    wrong name or parameter, or bodies that only the program that ran it had."""
    chosen = scenario.initial
    if isinstance(chosen, FromArrays):
        raise InputError(
            f"{scenario.where('initial.source')}the bodies were arrays of a Python program; take them from its recording: "
            "'initial: {file: run.h5, frame: 0}'"
        )
    if scenario.ensemble:
        return parts_of(member(scenario, 0))
    if isinstance(chosen, Combined):
        return [BodyPart(scenario, f"initial.combine.{k}", item) for k, item in enumerate(chosen.combine)]
    return [BodyPart(scenario, "initial", chosen)]


def check_initial(scenario: Scenario) -> None:
    """Raise the InputError that :func:`make_particles` would raise for a name, a parameter or a missing file, without
    making or reading any bodies."""
    for part in parts_of(scenario):
        part.check()


def files_read(scenario: Scenario) -> list[Path]:
    """The files from which the bodies are read."""
    chosen = scenario.initial
    items = chosen.combine if isinstance(chosen, Combined) else (chosen,)
    return [scenario.source.folder / item.file for item in items if isinstance(item, FromFile)]


def number_of_bodies(scenario: Scenario) -> int | None:
    """The number of bodies that :func:`make_particles` will make; None if some come from a file."""
    parts = parts_of(scenario)
    chosen = parts[0].scenario.initial
    counts = _counts(chosen, parts) if isinstance(chosen, Combined) else [parts[0].count]
    one = None if None in counts else sum(count or 0 for count in counts)
    return one * scenario.ensemble.count if one and scenario.ensemble else one


def resolved_initial(scenario: Scenario) -> dict[str, Any]:
    """``scenario.resolved()["initial"]`` with the defaults of the generator's parameters filled in."""
    initial: dict[str, Any] = scenario.resolved()["initial"]
    if isinstance(scenario.initial, FromArrays):
        return initial
    if scenario.ensemble:
        seed = {"seed": initial["seed"]} if "seed" in initial else {}
        return resolved_initial(member(scenario, 0)) | seed
    for part, group in zip(parts_of(scenario), initial.get("combine", [initial]), strict=True):
        if part.generator is not None:
            group |= {"generator": GENERATORS.check(group["generator"]), **part.generator.model_dump(exclude_none=True)}
    return initial


def _counts(chosen: Combined, parts: Sequence[BodyPart]) -> list[int | None]:
    """The number of bodies of each part of ``combine``; None for files."""
    asked = [part.count for part in parts]
    # Only parts that say how many they are can have another number.
    free = [k for k, item in enumerate(chosen.combine) if getattr(item, "particles", None) is not None]
    if chosen.particles is not None and free:
        others = sum(asked[k] or 0 for k in range(len(asked)) if k not in free)
        number = chosen.particles - others
        if number < len(free):
            where = parts[0].scenario.where("initial.particles")
            raise InputError(f"{where}must be at least {others + len(free)}: one per part")
        for k, count in zip(free, apportioned([asked[k] or 0 for k in free], number), strict=True):
            asked[k] = count
    return asked
