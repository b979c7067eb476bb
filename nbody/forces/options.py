"""The options of ``auto`` and ``gpu``, which stand for several engines."""

from typing import Annotated

from pydantic import Field

from nbody.forces.direct.gpu_options import GpuOptions
from nbody.scenario.fields import Positive


class Accuracy(GpuOptions):
    """``accuracy``: the median relative error of the accelerations; and the GPUs."""

    accuracy: Annotated[Positive, Field(le=0.1)] | None = None
