"""The groups of keys in a scenario."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, model_validator

from nbody.errors import did_you_mean, unknown
from nbody.law import SOFTENINGS, Gravity
from nbody.scenario.fields import (
    Count,
    Group,
    KeyProblem,
    Name,
    NotNegative,
    Positive,
    Seed,
    Text,
    Whole,
    shown,
    unknown_key,
)


class Generated(Group):
    """Bodies that a generator makes. Its own parameters stand beside these; ``nbody.initial`` checks them."""

    model_config = ConfigDict(extra="allow")

    generator: Name
    particles: Count
    seed: Seed = 1

    @property
    def parameters(self) -> dict[str, Any]:
        """The generator's own parameters, as written."""
        return dict(self.model_extra or {})


class FromFile(Group):
    """Bodies from a file: .npz, .csv, or a ``frame`` (the last one by default) of an earlier run's .h5."""

    file: Text
    frame: Whole | None = None


def initial_from(values: Any) -> Generated | FromFile:
    """Bodies made or read: the one or the other, by the key that only one of them has."""
    if isinstance(values, Generated | FromFile):
        return values
    either = "needs 'generator: NAME' with 'particles: N', or 'file: PATH'"
    if not isinstance(values, Mapping):
        raise ValueError(f"{either}; got {shown(values)}")
    if "file" in values and "generator" in values:
        raise KeyProblem("file", "the bodies come from a file or from a generator, not both; remove one of the two")
    if "file" not in values and "generator" not in values:
        strange = [str(key) for key in values if did_you_mean(key, ("generator", "file"))]
        if strange:
            raise KeyProblem(strange[0], unknown_key(strange[0], ("generator", "file"), ()))
        raise ValueError(either)
    return (FromFile if "file" in values else Generated).model_validate(values)


def _softening(name: str) -> str:
    if name not in SOFTENINGS:
        raise ValueError(str(unknown("softening", name, SOFTENINGS)))
    return name


def _dimensions(number: int) -> int:
    if number not in (2, 3):
        raise ValueError(f"must be 2 or 3, got {shown(number)}")
    return number


class GravityKeys(Group):
    """The keys of :class:`~nbody.law.Gravity`. There is no length that suits every unit, so a softening that
    needs one must be given it, and the default is none."""

    G: NotNegative = Gravity.G
    dimensions: Annotated[Whole, AfterValidator(_dimensions)] = Gravity.dimensions
    softening: Annotated[Name, AfterValidator(_softening)] = Gravity.softening
    length: NotNegative = Gravity.length

    @model_validator(mode="after")
    def _length_fits(self) -> Self:
        if self.softening == "none" and self.length:
            raise KeyProblem("length", "has no meaning without a softening; add 'softening: plummer' or 'cutoff'")
        if self.softening != "none" and "length" not in self.model_fields_set:
            raise KeyProblem("length", f"is missing; softening '{self.softening}' needs one, as in 'length: 0.01'")
        if self.softening == "plummer" and not self.length:
            raise KeyProblem("length", "must be greater than 0 for softening 'plummer'; or say 'softening: none'")
        return self


def gravity_from(values: Any) -> Gravity:
    """The law that the keys of ``gravity`` say."""
    if isinstance(values, Gravity):
        return values
    return Gravity(**GravityKeys.model_validate(values).model_dump())


class Integrator(Group):
    """The scheme that moves the bodies, its time step (in the scenario's unit of time) and the number of steps."""

    scheme: Name = "leapfrog"
    dt: Positive
    steps: Whole


class Record(Group):
    """Which steps become frames: step 0, every ``every``-th, and the last."""

    every: Count = 1


class CheckpointKeys(Group):
    """How often the state is kept for a resume, in minutes of wall time."""

    minutes: Positive = 5.0


class EnergyLimit(Group):
    """What to do when the relative energy error of a frame passes ``limit``: ``warn`` once, or ``stop`` the run."""

    limit: Positive
    action: Literal["warn", "stop"] = "warn"
