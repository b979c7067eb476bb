"""Checks of this machine: what works, what is missing, and how to install it. :data:`CHECKS` lists them."""

from collections.abc import Callable, Iterable, Iterator

from nbody.doctor import computing, pictures, ranks
from nbody.doctor.finding import BROKEN, GOOD, MISSING, Finding
from nbody.doctor.ranks import examine_ranks
from nbody.errors import printable, shortened

__all__ = ["BROKEN", "CHECKS", "GOOD", "MISSING", "Finding", "examine", "examine_ranks"]

CHECKS: tuple[Callable[[], Finding | Iterable[Finding]], ...] = (
    computing.python, computing.processor, computing.gpu, computing.gpus, computing.engines, computing.self_test,
    computing.plug_ins, pictures.pictures, pictures.window, pictures.interop, pictures.movies, pictures.notebook,
    ranks.mpi, ranks.slurm, ranks.nccl, computing.disk,
)  # fmt: skip
"""Every check, in the order of the report; each gives one finding, or as many as there are things."""


def examine() -> Iterator[Finding]:
    """Make every check in turn. A check that fails is a finding too."""
    for check in CHECKS:
        try:
            found = check()
            yield from [found] if isinstance(found, Finding) else found
        except Exception as error:
            text = f"this check failed: {type(error).__name__}: {shortened(printable(error), 200)}"
            yield Finding(check.__name__.replace("_", " "), BROKEN, text, "report this line")
