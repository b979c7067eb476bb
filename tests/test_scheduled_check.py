"""gpu-scheduled's check on blocks made by hand: nothing is read before it is ready; and the model of the register banks."""

import pytest
from scheduled_code import (
    EXIT,
    add,
    bits,
    block_of,
    branch,
    instruction,
    load,
    modelled,
    multiply_add,
    rsqrt,
    shuffle,
    store,
)

from nbody.forces.scheduled.block import Block, Slot, blocks, cycles_to_early_reader
from nbody.forces.scheduled.check import fault
from nbody.forces.scheduled.emit import emitted
from nbody.forces.scheduled.instruction import ZERO
from nbody.forces.scheduled.liveness import EVERY
from nbody.forces.scheduled.reorder import TUNINGS, reordered_block
from nbody.forces.scheduled.scoreboard import NOTHING, not_ready


def test_a_shuffle_reads_early_and_its_barrier_is_set_late():
    def body(before=8, after=2):
        return [
            add(10, 4, 5, stall=before),
            shuffle(11, 10, 6, stall=after, write_barrier=0),
            add(12, 11, 4, waits=1, stall=8),
        ]

    block = block_of(*body(), live_out=bits(12))
    assert fault(block, body()) == ""
    assert "reads register 10 4 cycles too early" in fault(block, body(before=4))
    assert "reads register 10 1 cycles too early" in fault(block, body(before=7))
    assert "waits for barrier 0 before it is set" in fault(block, body(after=1))


def test_a_result_from_before_the_block_is_not_read_before_it_is_ready():
    """The compiler has counted the cycles to the first reader in its own order, which is the last one here."""
    slow = instruction(0x7435, 0x1FF, dest=4, a=ZERO, b=ZERO, c=ZERO)  # HFMA2.MMA R4, -RZ, RZ, 0, 0
    others, reader = [add(20 + k, 6, 7) for k in range(12)], add(40, 4, 5)
    code = [slow, *others, reader.controlled(8), EXIT]
    assert [state.get(("register", 4)) for state in not_ready(code)] == [None, *range(10, -3, -1), None]
    (block,) = blocks(code)
    assert block.start == 1 and fault(block, block.body) == ""
    assert "reads register 4 10 cycles too early" in fault(block, [reader, *others[:-1], others[-1].controlled(8)])
    assert fault(block, [*others[:10], reader, others[10], others[11].controlled(8)]) == ""


def test_an_order_waits_for_a_slow_result_from_before_the_block():
    """It is read no earlier than in the compiler's order."""
    slow = instruction(0x7435, 0x1FF, dest=4, a=ZERO, b=ZERO, c=ZERO)
    reader, others = add(40, 4, 5), [add(41 + k, 6, 7) for k in range(11)]
    code = [slow, *others[:10], reader, others[10].controlled(8), *(store(9, 40 + k) for k in range(12)), EXIT]
    (block,) = blocks(code)
    assert block.flow.earliest == [0] * 10 + [10, 0]
    for tuning in TUNINGS:
        body = reordered_block(block, tuning)
        assert body is not None
        at = next(k for k, x in enumerate(body) if x.register("a") == 4)
        assert sum(x.stall for x in body[:at]) >= 10


def test_a_shared_barrier_is_waited_for_only_when_it_is_set():
    """Seven rsqrts have six barriers, so one waits for an rsqrt that has only just been issued."""
    made = [rsqrt(10 + k, 20 + k, write_barrier=min(k, 5), stall=2) for k in range(7)]
    made += [add(40 + k, 10 + k, 30, waits=1 << min(k, 5), stall=8 if k == 6 else 1) for k in range(7)]
    block = block_of(*made, live_out=bits(*range(40, 47)))
    assert fault(block, made) == ""
    order = [*range(6), 5 + 7, 6, *range(7, 12), 13]  # the sixth rsqrt's sum before the seventh rsqrt
    slots = [Slot(at, block.flow.sources[at]) for at in [*range(5), 6, 5, 12, *range(7, 12), 13]]
    assert sorted(order) == sorted(slot.at for slot in slots)
    body = emitted(block, slots, {~r: r for r in range(ZERO)} | {at: x.dest for at, x in enumerate(made)})
    assert body is not None and fault(block, body) == ""


def test_a_selection_follows_the_comparison_that_sets_its_predicate():
    """The second comparison may not precede the selection by the first."""
    compare, select = 0xBFAC000, 0x6800000  # .GTU into P5; by !P5

    def body(*order):
        first = [
            instruction(0x720B, compare, dest=0, a=4, b=5, stall=14),
            instruction(0x7208, select, dest=10, a=6, b=7),
        ]
        then = [
            instruction(0x720B, compare, dest=0, a=8, b=5, stall=14),
            instruction(0x7208, select, dest=11, a=6, b=7),
        ]
        made = [*first, *then]
        return [*(made[at] for at in order[:-1]), made[order[-1]].controlled(14)]

    block = block_of(*body(0, 1, 2, 3), live_out=bits(10, 11))
    assert block.known[0].name == "FSETP" and block.known[1].name == "FSEL"
    assert fault(block, body(0, 1, 2, 3)) == ""
    assert block.flow.after[1] == {0: 14} and block.flow.after[2] == {1: 1, 0: 1}
    for order in ((0, 2, 1, 3), (2, 3, 0, 1), (1, 0, 2, 3)):
        assert "holds another number at the end" in fault(block, body(*order))
    late = body(0, 1, 2, 3)
    late[0] = late[0].controlled(13)
    assert "reads predicate 5 1 cycles too early" in fault(block, late)


def test_a_comparison_reads_a_float_earlier_than_arithmetic():
    def body(before):
        return [add(10, 4, 5, stall=before), instruction(0x720B, 0xBFAC000, dest=0, a=10, b=7, stall=14)]

    block = block_of(*body(6))
    assert block.flow.after[1] == {0: 6} and fault(block, body(6)) == ""
    assert "reads register 10 1 cycles too early" in fault(block, body(5))


def test_a_predicate_is_ready_at_the_end_of_the_block_whatever_follows():
    body = [instruction(0x720B, 0xBFAC000, dest=0, a=10, b=7, stall=14)]
    assert fault(block_of(*body, cycles_after=10), body) == ""
    assert "not ready at the end" in fault(block_of(*body, cycles_after=10), [body[0].controlled(13)])


def test_results_are_ready_for_the_first_reader_after_the_block():
    block = block_of(add(10, 4, 5, stall=8), live_out=bits(10))
    assert fault(block, [add(10, 4, 5, stall=8)]) == ""
    assert "not ready at the end" in fault(block, [add(10, 4, 5, stall=7)])
    before_branch = block_of(add(10, 4, 5, stall=2), live_out=bits(10), cycles_after=6)
    assert fault(before_branch, [add(10, 4, 5, stall=2)]) == ""
    assert "not ready at the end" in fault(before_branch, [add(10, 4, 5, stall=1)])


def test_what_follows_a_block_may_read_early_unless_it_is_arithmetic():
    made = add(10, 4, 5, stall=4)
    for following, cycles in (
        ([store(7, 10)], 0),
        ([add(11, 10, 5, predicate=0, stall=2), store(7, 10)], 2),
        ([branch(1, 0)], 6),
    ):
        first = next(blocks([made, *following, EXIT]))
        assert first.end == 1 and first.cycles_after == cycles
        assert bool(fault(first, [made])) == (cycles < 4)


def test_an_order_may_use_registers_that_the_kernel_has_and_no_others():
    def body(register):
        return [add(register, 44, 45, stall=4), add(52, register, 46, stall=8)]

    code = [add(61, 62, 63), EXIT, *body(58), store(47, 52), EXIT]
    block = next(block for block in blocks(code) if block.start == 2)
    assert fault(block, body(58)) == "" and fault(block, body(61)) == ""
    assert "which the kernel does not have" in fault(block, body(80))


def test_an_operand_is_kept_only_for_the_next_instruction_that_reads_it_there():
    kept = [multiply_add(10, 4, 5, 6, reuse=0b001), multiply_add(11, 4, 7, 8, stall=8)]
    block = block_of(*kept, live_out=bits(10, 11))
    assert fault(block, kept) == ""
    assert "keeps operand b, which the next" in fault(block, [kept[0].replaced(122, 3, 0b010), kept[1]])
    overwritten = [multiply_add(4, 4, 5, 6, reuse=0b001, stall=4), multiply_add(11, 4, 7, 8, stall=8)]
    assert "keeps operand a, and writes its register" in fault(
        block_of(*overwritten, live_out=bits(4, 11)), overwritten
    )
    assert "keeps operand a, which the next" in fault(block, [kept[0], kept[1].replaced(122, 3, 0b001)])


def test_results_are_ready_as_early_as_the_instruction_after_the_block_reads():
    """Arithmetic reads a float's result when it is ready, a selection 2 cycles and a load 4 cycles earlier."""
    made, select = add(10, 4, 5, stall=4), instruction(0x7208, 0x6800000, dest=11, a=10, b=5, stall=6)
    for following, missing in (
        ([add(11, 10, 5, stall=9)], 0),
        ([select], 2),
        ([add(12, 6, 7, stall=1), select], 1),
        ([load(11, 10)], 4),
        ([add(12, 6, 7, stall=3), load(11, 10)], 1),
        ([add(12, 6, 7, stall=1), branch(2, 0, stall=1), add(11, 10, 5)], 2),
    ):
        first = Block(
            0,
            1,
            [made],
            EVERY,
            bits(10),
            NOTHING,
            EVERY,
            cycles_after=cycles_to_early_reader([made, *following, EXIT], 1),
        )
        assert bool(fault(first, [made])) == (missing > 0)
        assert fault(first, [made.controlled(4 + missing)]) == ""


def test_an_instruction_that_lets_another_warp_issue_keeps_no_operand():
    body = [multiply_add(10, 4, 5, 6, reuse=0b001), multiply_add(11, 4, 7, 8, stall=8)]
    block = block_of(*body, live_out=bits(10, 11))
    assert fault(block, body) == ""
    assert "lets another warp issue next" in fault(block, [body[0].replaced(109, 1, 0), body[1]])


def test_factors_may_be_exchanged_and_terms_of_a_difference_may_not():
    block = block_of(multiply_add(10, 4, 5, 6, stall=8), live_out=bits(10))
    assert fault(block, [multiply_add(10, 5, 4, 6, stall=8)]) == ""
    block = block_of(add(10, 4, 5, stall=8), live_out=bits(10))
    assert fault(block, [add(10, 5, 4, stall=8)])


def test_a_register_that_two_read_is_written_after_both_have_read_it():
    def body(waits):
        return [
            rsqrt(10, 4, write_barrier=0),
            shuffle(11, 4, 5, write_barrier=1, stall=2),
            add(4, 6, 7, waits=waits, stall=2),
            add(12, 10, 11, waits=0b11, stall=8),
        ]

    block = block_of(*body(0b11), live_out=bits(4, 12))
    assert fault(block, body(0b11)) == ""
    for waits in (0b01, 0b10):
        assert "writes register 4, which is still to be read" in fault(block, body(waits))


def test_a_shuffles_operand_is_written_after_the_block_only_when_it_has_been_read():
    def kernel(waits):
        return [
            add(10, 4, 6, stall=12),
            shuffle(11, 10, 5, write_barrier=1, stall=6),
            load(30, 20, write_barrier=2, stall=2),
            load(5, 20, write_barrier=2, waits=waits, stall=2),
            store(20, 11, waits=0b110),
            EXIT,
        ]

    for waits, message in ((0b10, ""), (0, "register 5 may be written after the block before it is read")):
        (block,) = blocks(kernel(waits))
        assert fault(block, block.body) == message


def test_a_kernel_with_calls_is_left_alone():
    code = [add(10, 4, 5), add(11, 10, 5), EXIT]
    assert [block.end for block in blocks(code)] == [2]
    assert not list(blocks([*code, instruction(0x7944, 0)]))  # CALL.REL


# --- The model against the H200 ---------------------------------------------------------------------------------------


def pattern(group, operation=multiply_add, count=300):
    """A loop of some instructions: 'e1' and 'o1' are an even and an odd register of one repetition, '.' is none."""
    body = []
    for repetition in range(count // len(group)):
        register = {".": ZERO}
        for operands in group:
            for name in operands.split():
                number = (7 * repetition + 3 * len(register)) % 40
                register.setdefault(name, 40 + 2 * number + (name[0] == "o"))
            read = [register[name] for name in operands.split()]
            body.append(operation(180 + len(body) % 40, *read))
    return body


SIX = ["e1 o1 e2", "e1 o1 o2", "e3 o1 o3", "e3 o1 e4", "e5 o1 o5", "e5 o1 e6"]
PATTERNS = [
    (add, ["e1 o1"], 1.0),
    (add, ["e1 e2"], 2.0),
    (add, ["e1 e2", "o1 o2"], 1.0),
    (add, ["e1 e2", "e3 e4", "o1 o2", "o3 o4"], 1.5),
    (multiply_add, ["e1 o1 e2"], 2.0),
    (multiply_add, ["e1 o1 e2", "o2 e3 o3"], 1.5),
    (multiply_add, ["e1 o1 e2", "e1 o1 o2"], 1.0),
    (multiply_add, ["e1 o1 e2", "e1 o1 o2", "e3 o1 o3", "e3 o1 o4"], 1.0),
    (multiply_add, ["e1 o1 e2", "e1 o1 o2", "e3 o1 o3", "e3 o1 e4"], 1.25),
    (multiply_add, SIX, 1.164),
]
"""Operands, and cycles per instruction on one H200. An operand that two in succession read in one place was kept there."""


@pytest.mark.parametrize("operation,group,measured", PATTERNS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_the_model_waits_for_banks_as_the_h200_does(operation, group, measured):
    body = pattern(group, operation)
    assert modelled(block_of(*body), body) / len(body) == pytest.approx(measured, rel=0.02)


def test_in_the_model_a_sum_in_place_may_wait_for_its_bank():
    sums = (158, 160, 161, 162, 163, 164, 165, 166)
    body = [add(sums[k % 8], sums[k % 8], 70 + 2 * (k % 43)) for k in range(300)]
    assert modelled(block_of(*body), body) / 300 == pytest.approx(1.626, rel=0.02)


def test_in_the_model_an_rsqrt_delays_float_operations_by_a_cycle():
    floats = pattern(["e1 o1"], add, 17 * 17)
    mixed = [x for k in range(17) for x in (rsqrt(230 + k, 41, write_barrier=0), *floats[17 * k : 17 * k + 17])]
    assert modelled(block_of(*mixed), mixed) == len(mixed) + 17
