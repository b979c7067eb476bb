"""The options of several engines: which GPUs compute, the systems of an ensemble, and an accuracy."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PrivateAttr

from nbody.given import shown
from nbody.scenario.values import Group, Positive, Written


def gpus_from(value: Any) -> Any:
    """A number of GPUs, ``all``, or a list of their numbers; a text may have each of them: ``2``, ``all``, ``0,2``, and
    ``2,`` for the list of one.

    Raises:
        ValueError: it is none of these.
    """
    if value is None:
        return None
    parts = value.removesuffix(",").split(",") if isinstance(value, str) else value
    listed = "," in value if isinstance(value, str) else isinstance(value, Sequence)
    if value == "all":
        return "all"
    try:
        numbers = [_whole(part) for part in (parts if isinstance(parts, Sequence) else [parts])]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 0 or (not listed and numbers == [0]):
        raise ValueError(f"must be a number of GPUs from 1 on, all, or their own numbers as in 0,2; got {shown(value)}")
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"names a GPU twice, got {shown(value)}")
    return numbers if listed else numbers[0]


def _whole(part: Any) -> int:
    if isinstance(part, bool) or (isinstance(part, float) and not part.is_integer()):
        raise ValueError
    return int(part)


def gpus_asked(gpus: Any) -> int:
    """The number of GPUs of a :class:`~nbody.forces.problem.Problem` for what :func:`gpus_from` returns: 1 if none is named,
    else at least 2, since only an engine whose work several GPUs divide can be told which ones."""
    return max(2, gpus if isinstance(gpus, int) else 0) if gpus not in (None, 1) else 1


def gpu_count(gpus: Any) -> int:
    """The number of GPUs that the value of ``gpus`` asks for, which may be more than this machine has."""
    from nbody import compute

    if gpus == "all":
        return compute.device_count() if compute.available() else 1
    return len(gpus) if isinstance(gpus, list) else gpus or 1


class GpuOptions(Group):
    """The options of engines on GPUs.

    Attributes:
        gpus: the GPUs that compute the forces together: their number, ``all``, or which ones, as in ``[0, 2]``.
    """

    gpus: Annotated[Any, BeforeValidator(gpus_from), Written("whole number, all, or a list")] = None


class SystemsOptions(Group):
    """The number of systems of an ensemble, which is a key of the ensemble instead of the engine."""

    _systems: int = PrivateAttr(default=1)

    def of(self, systems: int) -> "SystemsOptions":
        """These options for a number of systems."""
        found = self.model_copy()
        found._systems = systems
        return found

    def bodies(self, count: int) -> int:
        """n, the bodies per system, of a number of bodies."""
        return count // self._systems


class Accuracy(GpuOptions):
    """An accuracy, and the GPUs.

    Attributes:
        accuracy: the median relative error of the accelerations.
    """

    accuracy: Annotated[Positive, Field(le=0.1)] | None = None
