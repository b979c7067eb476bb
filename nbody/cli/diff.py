"""``nbody diff``: the first place where two recordings differ."""

from pathlib import Path
from typing import Annotated

import typer

from nbody.cli.completion import RECORDINGS, files
from nbody.cli.streams import result


def diff(
    first: Annotated[Path, typer.Argument(help="A recording.", show_default=False, autocompletion=files(*RECORDINGS))],
    second: Annotated[Path, typer.Argument(help="Another one.", show_default=False, autocompletion=files(*RECORDINGS))],
) -> int:
    """Compare two recordings bit by bit and name the first frame, field and particle that differ.

    Exits with 0 if they are identical, and with 1 if not.

    Examples:

      nbody diff output/run.h5 output/run.again.h5
    """
    from nbody.trajectory import first_difference

    difference = first_difference(first, second)
    result(str(difference) if difference else f"{first} and {second} hold the same bits")
    return 1 if difference else 0
