"""``nbody diff``: the first place where two recordings differ."""

from nbody.cli.options import Recording
from nbody.cli.streams import result


def diff(first: Recording, second: Recording) -> int:
    """Compare two recordings bit by bit and name the first frame, field and particle that differ.

    Exits with 0 if they are identical, and with 1 if not.

    \b
    Examples:
      nbody diff output/run.h5 output/run.again.h5
    """
    from nbody.trajectory import first_difference

    difference = first_difference(first, second)
    result(str(difference) if difference else f"{first} and {second} hold the same bits")
    return 1 if difference else 0
