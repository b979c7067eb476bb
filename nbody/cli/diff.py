"""``nbody diff``: the first place where two recordings differ."""

from pathlib import Path
from typing import TYPE_CHECKING

from nbody.cli.options import Recording
from nbody.cli.streams import result

if TYPE_CHECKING:
    from nbody.trajectory.reading.difference import Difference


def diff(first: Recording, second: Recording) -> int:
    """Compare two recordings bit by bit and name the first frame, field and particle that differ.

    Exits with 0 if they are identical, and with 1 if not.

    \b
    Examples:
      nbody diff output/run.h5 output/run.again.h5
    """
    from nbody.trajectory import first_difference

    return show_difference(first, second, first_difference(first, second))


def show_difference(first: Path, second: Path, difference: "Difference | None") -> int:
    """Print the difference of two recordings, or that there is none; returns the exit code."""
    result(f"{first} and {second}: {difference}" if difference else f"{first} and {second} hold the same bits")
    return 1 if difference else 0
