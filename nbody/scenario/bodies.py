"""Where the bodies of a scenario come from: the group ``initial``."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, ValidationInfo

from nbody.errors import did_you_mean
from nbody.given import shown
from nbody.scenario.values import (
    Count,
    Degrees,
    Group,
    KeyProblem,
    Name,
    Offset,
    Seed,
    Text,
    Velocity,
    Whole,
    a_list,
    short_name,
    unknown_key,
)


class Component(Group):
    """A group of keys that names a component and gives its options beside the name. The options are checked when the
    component is loaded, see :func:`nbody.scenario.model.component`."""

    model_config = ConfigDict(extra="allow")

    named_by: ClassVar[str]
    """The key that names the component; the name alone stands for a group with this key."""

    @classmethod
    def _of_short(cls, value: object) -> object:
        return {cls.named_by: short_name(value)} if isinstance(value, str) else value

    @property
    def options(self) -> dict[str, object]:
        """The component's options, as written."""
        return dict(self.model_extra or {})


PLACED = dict.fromkeys(
    ("offset", "velocity", "rotate", "species"),
    "only parts of 'combine' have it; write 'combine: [{…}]' around this one",
)
"""Keys of a part (:class:`Placed`) that bodies from one generator or file do not have."""


class Generated(Component):
    """Bodies that a generator makes.

    Attributes:
        generator: its name. Its parameters stand beside these keys.
        particles: the number of bodies, which every generator needs that does not make a fixed number.
        seed: of the random numbers; the same seed gives the same bodies everywhere.
    """

    named_by = "generator"
    elsewhere: ClassVar[Mapping[str, str]] = {**Group.elsewhere, **PLACED}

    generator: Name
    particles: Count | None = None
    seed: Seed = 1


class FromFile(Group):
    """Bodies from a file of another program, or from a recording.

    Attributes:
        file: its path, relative to the scenario file; the suffix says which format it has.
        frame: the number of a frame if the file has several; the last one by default.
    """

    elsewhere = PLACED

    file: Text
    frame: Whole | None = None


class FromArrays(Group):
    """Bodies that a Python program gave as arrays, in recordings.

    Attributes:
        source: marks such bodies.
        particles: their number; the bodies are in the recording's frames.
    """

    source: Literal["arrays"] = "arrays"
    particles: Count


class Rotation(Group):
    """A rotation by the angles of an orbit.

    Attributes:
        inclination: about x, second.
        node: about z, last.
        argument: about z, first.
    """

    inclination: Degrees = 0.0
    node: Degrees = 0.0
    argument: Degrees = 0.0


class Placed(Group):
    """Where a part of ``combine`` goes: it is rotated, and then moved.

    Attributes:
        offset: is added to its positions.
        velocity: is added to its velocities.
        rotate: the angles of its rotation.
        species: the name of its bodies.
    """

    offset: Offset | None = None
    velocity: Velocity | None = None
    rotate: Rotation | None = None
    species: Name | None = None


class GeneratedPart(Placed, Generated):
    """A part that a generator makes.

    Attributes:
        seed: by default it follows from the scenario's seed and the part's place in the list.
    """

    seed: Seed | None = None  # type: ignore[assignment]


class FilePart(Placed, FromFile):
    """A part that comes from a file."""


def part_from(values: object, info: ValidationInfo) -> GeneratedPart | FilePart:
    """Convert an item of ``combine`` to a part."""
    if isinstance(values, GeneratedPart | FilePart):
        return values
    return _either(values, GeneratedPart, FilePart, info)


class Combined(Group):
    """Bodies from several parts.

    Attributes:
        combine: the parts, each with ``generator`` or ``file``.
        particles: the number of generated bodies in all, if it differs from the sum of the parts' numbers, whose proportions
            then stay.
        seed: from which the parts' seeds follow.
    """

    combine: Annotated[
        tuple[Annotated[GeneratedPart | FilePart, BeforeValidator(part_from)], ...],
        BeforeValidator(a_list("a list of parts, each with 'generator:' or 'file:'")),
        Field(min_length=1, max_length=100),
    ]
    particles: Count | None = None
    seed: Seed = 1


Initial = Generated | FromFile | FromArrays | Combined


def initial_from(values: object, info: ValidationInfo) -> Initial:
    """Convert a group of keys to generated bodies (``generator``), bodies from a file (``file``), both
    (``combine``), or bodies that a program gave as arrays (``source: arrays``, in recordings)."""
    if isinstance(values, Initial):
        return values
    if isinstance(values, Mapping) and values.get("source") == "arrays":
        return FromArrays.model_validate(values, context=info.context)
    if isinstance(values, Mapping) and "combine" in values:
        return Combined.model_validate(values, context=info.context)
    return _either(values, Generated, FromFile, info)


G = TypeVar("G", bound=Generated)
F = TypeVar("F", bound=FromFile)


def _either(values: object, generated: type[G], from_file: type[F], info: ValidationInfo) -> G | F:
    either = "needs 'generator: NAME' with 'particles: N', or 'file: PATH'"
    if not isinstance(values, Mapping):
        raise ValueError(f"{either}; got {shown(values)}")
    if "file" in values and "generator" in values:
        raise KeyProblem("file", "the bodies come from a file or from a generator, not both; remove one of the two")
    if "file" not in values and "generator" not in values:
        strange = [str(key) for key in values if did_you_mean(key, ("generator", "file", "combine"))]
        if strange:
            raise KeyProblem(strange[0], unknown_key(strange[0], ("generator", "file", "combine"), ()))
        raise ValueError(either)
    return (from_file if "file" in values else generated).model_validate(values, context=info.context)
