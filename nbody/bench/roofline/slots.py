"""Counts the issue slots per interaction in a kernel's machine code.

A multiprocessor starts four warp instructions per clock, whatever they do, so the fewest clocks that a kernel can take
are its instructions divided by four. Those that count are in the innermost loop with the reciprocal square roots: one
root per pair. The code (SASS) is read as NVIDIA's ``nvdisasm`` prints it; without that program nothing is counted. (The
PTX is no substitute: for sm_90 it had 26 % fewer instructions for ``gpu-global``, up to 34 % more for ``gpu-symmetric``.)
"""

import contextlib
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

LABEL = re.compile(r"(\.L_x_\d+):")
INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z].*?)\s*;")
JUMP = re.compile(r"BRA.*`\((\.L_x_\d+)\)")
ROOT = re.compile(r"MUFU\.RSQ")
FLOAT32 = re.compile(r"F(ADD|MUL|FMA|SEL|SETP|MNMX|CHK)\b")
FLOAT64 = re.compile(r"D(ADD|MUL|FMA|SETP|MNMX)\b")


class InstructionCounts(NamedTuple):
    """The instructions of one iteration of the innermost loop, or per interaction.

    Attributes:
        instructions: all instructions, predicated ones included.
        float32, float64: those that the float pipes execute.
        roots: reciprocal square roots, one for each pair of bodies.
    """

    instructions: float
    float32: float
    float64: float
    roots: float

    @classmethod
    def of(cls, code: list[str]) -> "InstructionCounts":
        counts = (sum(bool(kind.match(each)) for each in code) for kind in (FLOAT32, FLOAT64, ROOT))
        return cls(len(code), *counts)

    def per_interaction(self, interactions_a_root: int) -> "InstructionCounts":
        """The counts divided by the interactions of an iteration; a root serves one of them, or both of a pair."""
        return InstructionCounts(*(count / (self.roots * interactions_a_root) for count in self))


def hottest_loop(listing: str) -> InstructionCounts | None:
    """The instructions per iteration of the innermost loop with reciprocal square roots; None if there is no such loop.

    Where several such loops stand side by side (a compiler unrolls four iterations and leaves a loop for the rest), it is
    the one with the most roots, and among equals the shortest: a bound must not be beaten.

    Args:
        listing: of one kernel, from ``nvdisasm -c``.
    """
    code: list[str] = []
    labels: dict[str, int] = {}
    for line in listing.splitlines():
        if found := LABEL.match(line.strip()):
            labels[found[1]] = len(code)
        elif found := INSTRUCTION.search(line):
            code.append(found[1])
    jumps = [(labels.get(jump[1], len(code)), k + 1) for k, each in enumerate(code) if (jump := JUMP.match(each))]
    hot = [(begin, end) for begin, end in jumps if begin < end and any(map(ROOT.match, code[begin:end]))]
    innermost = [
        InstructionCounts.of(code[begin:end])
        for begin, end in hot
        if not any(begin <= b and e <= end and (b, e) != (begin, end) for b, e in hot)
    ]
    return max(innermost, key=lambda loop: (loop.roots, -loop.instructions), default=None)


def disassembler() -> str | None:
    """The path of ``nvdisasm``: on the search path, in a toolkit, or in a Python wheel; None if there is none."""
    found = shutil.which("nvdisasm")
    with contextlib.suppress(Exception):  # an older cuda-pathfinder can't search for it
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
