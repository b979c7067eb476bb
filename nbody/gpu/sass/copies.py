"""Asynchronous copies to shared memory in a block, and what may pass them.

What a copy writes may be there at any time between its start and the wait for its group. No such wait is in a block: it is
an operation that is not known, which ends one, as a barrier of the threads does. So a load that follows a copy in a block,
and reads what that writes, has no defined outcome to begin with. In a program that has one it reads something else, and may
as well come before the copy. The other way round it is not so: what a load has read a copy may overwrite. Copies, and the
marks that end their groups, keep their order among themselves.

In front of a copy that is the first behind another access to shared memory, behind a barrier, or in a block, the assembler
puts three loads that are never done (:data:`~nbody.gpu.sass.operations.VOID`), whatever lies between: loads of other
addresses, or thirty multiply-adds that have waited for the load. Nobody says what they guard against. None stands where
only arithmetic is between two copies. So here no load may stand among the copies, unless three of these come before the
next.
"""

from collections.abc import Sequence

from nbody.gpu.sass.instruction import Instruction

KINDS = ("copy", "void", "mark")
"""What keeps its order."""

VOIDS = 3
"""Loads never done in front of the first copy."""


def fault(before: Sequence[Instruction], now: Sequence[Instruction]) -> str:
    """What is wrong with the places of the copies in new instructions for old ones, beside their order."""
    kinds = [_kind(x) for x in before]
    if "copy" in kinds and "load" in kinds[: _last(kinds, "copy")]:
        return "a copy follows a load, and may overwrite what that reads"
    apart, voids = False, 0  # from the last access, and the loads never done that stand directly in front
    for at, kind in enumerate(map(_kind, now)):
        if kind == "copy" and not apart and voids < VOIDS:
            return f"instruction {at} copies behind another access without {VOIDS} loads never done in front of it"
        apart = kind == "copy" or (apart and kind != "load")
        voids = voids + 1 if kind == "void" else 0
    return ""


def _last(kinds: Sequence[str], kind: str) -> int:
    return len(kinds) - 1 - list(reversed(kinds)).index(kind)


def _kind(instruction: Instruction) -> str:
    return instruction.operation.kind if instruction.operation else ""
