"""How many issue slots an interaction takes, counted in a kernel's own code.

A multiprocessor starts four warp instructions a clock, whatever they do, so the fewest clocks that a kernel can take
are its instructions divided by four. Those that count are in the innermost loop, where the reciprocal square roots are:
one root a pair. The count is of the machine code (SASS), as NVIDIA's ``nvdisasm`` prints it; where that is not installed,
of the PTX, which the assembler still changes: it merges and drops some instructions and adds others. (For sm_90, of the
five engines' kernels, PTX had 26 % fewer instructions for ``gpu-global``, up to 34 % more for ``gpu-symmetric``, and
within 6 % as many for the others.)
"""

import contextlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

SASS, PTX = "SASS", "PTX"


@dataclass(frozen=True)
class Loop:
    """What one turn of the innermost loop issues.

    Attributes:
        source: what was counted, ``SASS`` or ``PTX``.
        instructions: all instructions, predicated ones included.
        float32, float64: those that the float pipes execute.
        roots: reciprocal square roots, one for each pair of bodies.
    """

    source: str
    instructions: int
    float32: int
    float64: int
    roots: int


class _Instruction(NamedTuple):
    """An instruction without its predicate, and the label it may jump to."""

    text: str
    target: str = ""

    @property
    def operation(self) -> str:
        """``FFMA.FTZ``, ``fma.rn.f32`` …"""
        return self.text.split(None, 1)[0]


class _Dialect(NamedTuple):
    """How a listing is read."""

    label: re.Pattern[str]
    instruction: re.Pattern[str]
    jump: re.Pattern[str]
    root: re.Pattern[str]
    float32: re.Pattern[str]
    float64: re.Pattern[str]


_DIALECTS = {
    SASS: _Dialect(
        label=re.compile(r"(\.L_x_\d+):"),
        instruction=re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z].*?)\s*;"),
        jump=re.compile(r"BRA.*`\((\.L_x_\d+)\)"),
        root=re.compile(r"MUFU\.RSQ"),
        float32=re.compile(r"F(ADD|MUL|FMA|SEL|SETP|MNMX|CHK)\b"),
        float64=re.compile(r"D(ADD|MUL|FMA|SETP|MNMX)\b"),
    ),
    PTX: _Dialect(
        label=re.compile(r"(\$L__BB\w+):"),
        instruction=re.compile(r"^\s+(?:@!?%p\d+\s+)?([a-z][^;]*);"),
        jump=re.compile(r"bra(?:\.uni)?\s+(\$L__BB\w+)"),
        root=re.compile(r"rsqrt\.approx"),
        float32=re.compile(r"(add|sub|mul|fma|neg|abs|min|max|selp|setp)\.\S*f32"),
        float64=re.compile(r"(add|sub|mul|fma|neg|abs|min|max|setp)\.\S*f64"),
    ),
}


def hottest_loop(listing: str, source: str) -> Loop | None:
    """What the innermost loop with reciprocal square roots issues a turn; None if there is no such loop.

    Where several such loops stand side by side (a compiler writes four turns out and leaves a loop for the rest), it is
    the one with the most roots a turn, and among equals the shortest: a bound must not be beaten.

    Args:
        listing: of one kernel, from ``nvdisasm -c`` or in PTX.
        source: ``SASS`` or ``PTX``: which of the two.
    """
    dialect = _DIALECTS[source]
    instructions, labels = _read(listing, dialect)
    roots = [k for k, each in enumerate(instructions) if dialect.root.match(each.operation)]
    loops = [
        (labels[each.target], k + 1)
        for k, each in enumerate(instructions)
        if labels.get(each.target, k + 1) <= k  # a jump backwards
    ]
    hot = [(begin, end) for begin, end in loops if any(begin <= root < end for root in roots)]
    innermost = [
        instructions[begin:end]
        for begin, end in hot
        if not any(begin <= b and e <= end and (b, e) != (begin, end) for b, e in hot)
    ]
    counted = [_count(each, source) for each in innermost]
    return max(counted, key=lambda loop: (loop.roots, -loop.instructions), default=None)


def _read(listing: str, dialect: _Dialect) -> tuple[list[_Instruction], dict[str, int]]:
    """The instructions in order, and which of them each label stands before."""
    instructions: list[_Instruction] = []
    labels: dict[str, int] = {}
    for line in listing.splitlines():
        if found := dialect.label.match(line.strip()):
            labels[found[1]] = len(instructions)
        elif found := dialect.instruction.search(line):
            jump = dialect.jump.match(found[1])
            instructions.append(_Instruction(found[1], jump[1] if jump else ""))
    return instructions, labels


def _count(instructions: Iterable[_Instruction], source: str) -> Loop:
    dialect, operations = _DIALECTS[source], [each.operation for each in instructions]

    def number(pattern: re.Pattern[str]) -> int:
        return sum(bool(pattern.match(operation)) for operation in operations)

    return Loop(source, len(operations), *map(number, (dialect.float32, dialect.float64, dialect.root)))


def disassembler() -> str | None:
    """Where ``nvdisasm`` is: on the path, in a toolkit, or in a Python wheel; None if nowhere."""
    found = shutil.which("nvdisasm")
    with contextlib.suppress(Exception):  # an older cuda-pathfinder does not know how to look
        from cuda.pathfinder import find_nvidia_binary_utility

        found = found or find_nvidia_binary_utility("nvdisasm")
    return found


def disassembled(cubin: bytes) -> str | None:
    """The machine code of a cubin as ``nvdisasm`` prints it; None without one, or if it does not understand the code."""
    program = disassembler()
    if program is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        run = subprocess.run([program, "-c", path], capture_output=True, text=True)
    return run.stdout if run.returncode == 0 else None


def count(cubin: Callable[[], bytes], ptx: Callable[[], str]) -> Loop | None:
    """:func:`hottest_loop` of a kernel's machine code where that can be read, else of its PTX."""
    listing = disassembled(cubin())
    return hottest_loop(listing, SASS) if listing else hottest_loop(ptx(), PTX)
