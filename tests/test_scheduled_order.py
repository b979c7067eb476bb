"""gpu-scheduled's orders of real kernels: the same results in fewer cycles, and the check finds what is broken."""

import hashlib
import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scheduled_code import EXIT, KERNELS, code_of, cubin, loops, modelled

from nbody.forces.scheduled.check import Hardware, fault
from nbody.forces.scheduled.instruction import NO_BARRIER, PLACES, kernels
from nbody.forces.scheduled.reorder import TUNINGS, reordered, reordered_block
from nbody.state import Want


@pytest.fixture(scope="module")
def loop():
    """The loop of the kernel for large N, and a new order of it."""
    (block,) = loops(cubin((4, 18), "product", Want.ACCELERATION))
    body = reordered_block(block, TUNINGS[0])
    assert body is not None
    return block, body


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_a_new_order_changes_nothing_but_the_loop_and_takes_fewer_cycles(kernel):
    old = cubin(*kernel)
    new = next(filter(None, (reordered(old, tuning) for tuning in TUNINGS)), None)
    assert new is not None and len(new) == len(old) and new != old
    section, _ = code_of(old)
    changed = np.flatnonzero(np.frombuffer(new, np.uint8) != np.frombuffer(old, np.uint8))
    inside = np.zeros(len(old), bool)
    for block in loops(old):
        inside[section.start + 16 * block.start : section.start + 16 * block.end] = True
        now = code_of(new)[1][block.start : block.end]
        if now != block.body:
            assert fault(block, now) == ""
            assert sorted(x.opcode for x in now) == sorted(x.opcode for x in block.body)
            assert modelled(block, now) < modelled(block, block.body)
    assert inside[changed].all()


def test_the_same_order_is_found_again_in_another_process(tmp_path):
    """Python hashes strings differently in each process; the order of a set must have no influence."""
    old = cubin((1, 10), "product", Want.ACCELERATION)
    (tmp_path / "cubin").write_bytes(old)
    code = (
        "import sys, pathlib, hashlib; from nbody.forces.scheduled.reorder import TUNINGS, reordered;"
        "old = pathlib.Path(sys.argv[1]).read_bytes();"
        "print(hashlib.sha256(b''.join(reordered(old, tuning) for tuning in TUNINGS[:2])).hexdigest())"
    )
    here = hashlib.sha256(b"".join(reordered(old, tuning) for tuning in TUNINGS[:2])).hexdigest()
    run, seed = [sys.executable, "-c", code, str(tmp_path / "cubin")], {"PYTHONHASHSEED": "1"}
    found = subprocess.run(run, capture_output=True, text=True, check=True, env=os.environ | seed)
    assert found.stdout.strip() == here


def test_kernels_are_the_sections_with_instructions_and_other_files_are_refused():
    code = cubin((1, 10), "product", Want.ACCELERATION)
    (section,) = kernels(code)
    assert section.name.startswith(b".text.") and b"accelerate_pairs" in section.name and section.size % 16 == 0
    assert any(x.opcode == EXIT.opcode for x in code_of(code)[1])
    for other in (b"", b"PK\x03\x04" + bytes(100), b"\x7fELF\x01\x01" + bytes(100)):
        with pytest.raises(ValueError, match="not an ELF file of 64 bits"):
            kernels(other)
        assert reordered(other, TUNINGS[0]) is None  # the compiler's code stays


def with_one(body, at, other):
    return [*body[:at], other, *body[at + 1 :]]


def without(x, barrier):
    return x.replaced(116, 6, x.waits & ~(1 << barrier))


def dependent(block):
    """Pairs of instructions, the second of which reads what the first makes."""
    return [(value, at) for at, source in enumerate(block.flow.sources) for value in source.values() if value >= 0]


def of_body(block, body):
    return replace(block, body=body)


def test_the_compilers_order_keeps_the_rules_except_for_its_own_habits():
    """It uses read barriers, where new orders wait for the result; it lets one barrier signal two rsqrts; it keeps operands
    over an instruction that reads another one there; it allows a shuffle's operand 5 cycles instead of 8, a selection 5
    instead of 6, and a predicate 12 or 4 instead of 14; and its last sums become ready during the branch, after 7 cycles
    instead of 8."""
    habits = (
        r"writes register \d+, which is still to be read|register \d+ may be written after the block before it is read"
        r"|touches register \d+ before a barrier from before the block"
        r"|has no barrier|touches register \d+, which is being written|register \d+ is in flight at the end"
        r"|keeps operand ., which the next one does not read there"
        r"|reads (register|predicate) \d+ ([123]|10) cycles too early"
    )
    for kernel in KERNELS:
        for block in loops(cubin(*kernel)):
            found = [text for text in Hardware(block).faults(block.body) if not re.search(habits, text)]
            assert all(text.endswith("not ready at the end") for text in found)


def test_two_dependent_instructions_may_not_change_places(loop):
    block, body = loop
    pairs = dependent(of_body(block, body))[::17]
    assert len(pairs) > 20
    for first, second in pairs:
        assert fault(block, with_one(with_one(body, first, body[second]), second, body[first]))


def test_no_stall_may_be_shorter(loop):
    block, body = loop
    longer = [at for at, x in enumerate(body[:-1]) if x.stall > 1]
    assert longer
    for at in longer:
        found = fault(block, with_one(body, at, body[at].replaced(105, 4, body[at].stall - 1)))
        assert "too early" in found or "before it is set" in found


def test_no_wait_for_an_rsqrt_may_be_missing(loop):
    block, body = loop
    named, dropped = {}, 0
    for at, x in enumerate(body):
        for barrier in range(6):
            if x.waits >> barrier & 1 and named.pop(barrier, "") == "rsqrt":
                assert re.search(
                    "being written|still to be read", fault(block, with_one(body, at, without(x, barrier)))
                )
                dropped += 1
        if x.write_barrier != NO_BARRIER:
            named[x.write_barrier] = x.operation.kind
    assert dropped >= 4


def test_no_wait_for_what_came_before_the_block_may_be_missing(loop):
    block, body = loop
    named, dropped = set(), 0
    for at, x in enumerate(body):
        for barrier in set(range(6)) - named:
            if x.waits >> barrier & 1:
                assert "before the block" in fault(block, with_one(body, at, without(x, barrier)))
                dropped += 1
                named.add(barrier)
        named.add(x.write_barrier)
    assert dropped


def test_no_operand_may_have_another_register(loop):
    block, body = loop
    for at in range(0, len(body), 11):
        for place in body[at].operation.places:
            other = body[at].replaced(PLACES[place], 8, (body[at].register(place) + 1) % 200)
            assert fault(block, with_one(body, at, other))
        assert fault(block, with_one(body, at, body[at].replaced(16, 8, (body[at].dest + 1) % 200)))


def test_instructions_may_not_be_added_or_left_out(loop):
    block, body = loop
    assert "instructions cannot replace" in fault(block, body[:-1])
    assert "instructions cannot replace" in fault(block, [*body, body[-1]])
