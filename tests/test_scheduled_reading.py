"""gpu-scheduled's reading of machine code: fields, registers that live, and what is in flight."""

import pytest
from scheduled_code import (
    EXIT,
    KERNELS,
    STACK,
    add,
    bits,
    branch,
    code_of,
    cubin,
    instruction,
    lives_shown,
    load,
    loops,
    multiply_add,
    rsqrt,
    shuffle,
    store,
)

from nbody.forces.scheduled.block import blocks
from nbody.forces.scheduled.check import fault
from nbody.forces.scheduled.instruction import ZERO, Instruction, encoded, instructions
from nbody.forces.scheduled.liveness import live_before, read, target, written
from nbody.forces.scheduled.scoreboard import UNIFORM, in_flight, unsignalled


def test_the_parts_of_an_instruction_are_where_the_disassembler_sees_them():
    subtract = Instruction(0x000FE200000100008000006704B07221)  # FADD.FTZ R176, R4, -R103
    assert [subtract.dest, subtract.register("a"), subtract.register("b")] == [176, 4, 103]
    assert subtract.operation.name == "FADD" and subtract.destination == ("register", 176)
    assert (subtract.stall, subtract.write_barrier, subtract.read_barrier, subtract.waits) == (1, 7, 7, 0)
    inverse = Instruction(0x00006200000014000000000E00AA7308)  # MUFU.RSQ R170, R14; write barrier 1, read barrier 0
    assert (inverse.dest, inverse.register("b"), inverse.write_barrier, inverse.read_barrier) == (170, 14, 1, 0)
    fused = Instruction(0x080FE20000010061000000977C617223)  # FFMA.FTZ R97, R124, R151.reuse, R97
    assert [fused.register(place) for place in "abc"] == [124, 151, 97] and fused.reuse == 0b010
    passed = Instruction(0x00012200000E000000001F19686F7589)  # SHFL.IDX PT, R111, R104, R25, 0x1f
    assert (passed.dest, passed.register("a"), passed.register("b"), passed.write_barrier) == (111, 104, 25, 4)
    back = Instruction(0x01EFEC000383FFFFFFFFFFF400300947)  # @P0 BRA at 806, which waits for 1 to 4, to 627
    assert (target(806, back), back.predicate, back.waits, back.stall) == (627, 0, 0b011110, 6)
    assert target(816, Instruction(0x000FE200038000000000036000007945)) == 871  # BSSY B0


def test_the_fields_of_an_instruction_are_read_as_they_were_set():
    made = multiply_add(1, 2, 3, 4, stall=9, write_barrier=5, waits=0b101010, reuse=0b101, read_barrier=2)
    assert [made.dest, *(made.register(place) for place in "abc")] == [1, 2, 3, 4]
    assert (made.stall, made.write_barrier, made.read_barrier) == (9, 5, 2)
    assert (made.waits, made.reuse) == (0b101010, 0b101)
    assert instructions(encoded([made, EXIT])) == [made, EXIT]


@pytest.mark.parametrize("word,why", [
    (0x000FE200004100004000000502017220, "FMUL R1, R2, |R5|: the operands may not change places"),
    (0x000FE200004102000000000502017220, "FMUL R1, |R2|, R5"),
    (0x000FE20007F7E0FF0000000153537810, "IADD3 R83, P3, R83, 0x1, RZ: writes a predicate too"),
    (0x000FE200007FE4FF0000000102017810, "IADD3.X: reads one"),
    (0x000FE20000000A000000C40000067AB9, "ULDC.64: writes two registers"),
    (0x000FE400000005000000000500017202, "MOV R1, R5, 0x5: writes a part"),
    (0x000FE200000100008000006704B00221, "@P0 FADD: may leave what is there"),
])  # fmt: skip
def test_an_operation_of_another_meaning_is_not_mistaken_for_a_known_one(word, why):
    assert Instruction(word).operation is None, why


def test_a_register_lives_from_its_write_to_its_last_reader_around_a_loop():
    code = [add(31, 32, 33), add(34, 31, 35), add(36, 34, 36), branch(3, 1), store(47, 36), EXIT]
    live = live_before(code)

    def lives(register):
        return [mask >> register & 1 for mask in live]

    assert lives(32) == [1, 0, 0, 0, 0, 0]
    assert lives(31) == [0, 1, 1, 1, 0, 0]  # the next iteration reads it
    assert lives(34) == [0, 0, 1, 0, 0, 0]
    assert lives(36) == [1, 1, 1, 1, 1, 0]  # a store reads its data


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_reads_writes_and_lifetimes_agree_with_the_disassembler(kernel, tmp_path):
    """nvdisasm shows register lifetimes: ``v`` where one is read, ``^`` where it is written, ``x`` for both. No read may be
    missed, and no write assumed that does not happen; and the same registers live at the start of the loop."""
    code, lives = code_of(cubin(*kernel))[1], lives_shown(cubin(*kernel), tmp_path)
    assert len(lives) > 1000
    for at, shown in lives.items():
        reads, writes = (bits(*(r for r, mark in shown.items() if mark in marks)) for marks in ("vx", "^x"))
        assert not reads & ~read(code[at]), f"instruction {at} reads more"
        assert not written(code[at]) & ~writes, f"instruction {at} does not write that"
        if code[at].operation is not None:
            assert reads == read(code[at]) and writes == written(code[at])
    live = live_before(code)
    for block in loops(cubin(*kernel)):
        shown = bits(*(r for r, mark in lives[block.start].items() if mark in ":vx" and r != STACK))
        assert live[block.start] == shown


def test_a_conditional_write_does_not_end_a_lifetime():
    code = [add(1, 2, 3), add(1, 4, 5, predicate=0), store(7, 1), EXIT]
    assert live_before(code)[1] >> 1 & 1
    assert not live_before([code[0], add(1, 4, 5), *code[2:]])[1] >> 1 & 1


@pytest.mark.parametrize("opcode", [0x388, 0x988, 0x986, 0x987, 0x98E, 0x9A8])
def test_the_data_of_every_kind_of_store_is_read(opcode):
    """The last two are atomic additions."""
    code = [add(40, 2, 3), instruction(0x7000 | opcode, 0x800, dest=ZERO, a=7, b=40, c=ZERO), EXIT]
    assert live_before(code)[1] >> 40 & 1


def test_a_register_lives_if_it_is_read_where_lanes_converge():
    """BSSY names the target, BSYNC continues there."""
    meet, arrive = Instruction(0x000FE200038000000000003000007945), instruction(0x7941, 0x3800000)
    code = [meet, add(1, 2, 3), arrive, EXIT, store(7, 8), EXIT]
    assert target(0, code[0]) == 4
    assert live_before(code)[2] >> 8 & 1 and live_before(code)[0] >> 8 & 1
    assert not live_before([*code[:2], EXIT, *code[3:]])[2] >> 8 & 1


def bssy(barrier, ahead):
    """BSSY: lanes that reach the barrier continue ``ahead`` instructions after this one."""
    return Instruction(0x000FE200038000000000000000007945 | barrier << 16 | (ahead - 1) * 16 << 32)


def bsync(barrier):
    return instruction(0x7941, 0x3800000, dest=barrier)


TWO_TARGETS = [bssy(0, 3), add(1, 2, 3), bsync(0), add(8, 2, 3), bssy(0, 3), add(1, 2, 3), bsync(0), store(7, 8)]
"""The first BSYNC continues where register 8 is written, the second where it is read."""


def test_converging_lanes_continue_at_the_target_of_their_barrier():
    assert [target(at, TWO_TARGETS[at]) for at in (0, 4)] == [3, 7]
    live = live_before([*TWO_TARGETS, EXIT])
    assert not live[2] >> 8 & 1 and live[6] >> 8 & 1
    again = live_before([*TWO_TARGETS, branch(8, 1), EXIT])  # the second target is still set in the next iteration
    assert again[2] >> 8 & 1
    other = live_before([*TWO_TARGETS[:4], bssy(1, 3), add(1, 2, 3), bsync(1), store(7, 8), branch(8, 1), EXIT])
    assert not other[2] >> 8 & 1


def test_lanes_may_continue_at_any_target_if_one_may_come_from_a_register():
    from_register = instruction(0x7356, 0, dest=2, b=9)  # BMOV.32 B2, R9
    assert live_before([*TWO_TARGETS, EXIT, from_register])[2] >> 8 & 1


def test_a_barrier_guards_registers_until_it_is_waited_for():
    code = [load(10, 4, write_barrier=2), add(1, 2, 3), add(5, 6, 7, waits=1 << 2), add(1, 2, 3)]
    states = in_flight(code)
    assert [state[2] >> 10 & 1 for state in states] == [0, 1, 1, 0]
    stored = in_flight([store(4, 20, read_barrier=3), add(1, 2, 3)])
    assert stored[1][3] >> 20 & 1 and not stored[1][2]


def test_an_operation_without_a_barrier_is_signalled_by_the_next_of_its_kind():
    code = [rsqrt(10, 4), shuffle(11, 4, 5, write_barrier=0), rsqrt(12, 4, write_barrier=1), add(1, 2, 3)]
    states = in_flight(code)
    assert unsignalled(states[1]) >> 10 & 1 and unsignalled(states[2]) >> 10 & 1  # a shuffle is of another kind
    assert not unsignalled(states[3]) and states[3][1] >> 10 & 1 and states[3][1] >> 12 & 1


def test_what_is_in_flight_at_the_end_of_a_loop_guards_its_start():
    code = [add(1, 2, 3), load(10, 4, write_barrier=2), branch(2, 0), EXIT]
    assert [state[2] >> 10 & 1 for state in in_flight(code)] == [1, 1, 1, 1]
    (block,) = [block for block in blocks(code) if block.start == 0]
    assert block.guards(10) == 1 << 2 and block.guards(1) == 0


def test_a_uniform_register_may_be_in_flight_as_well():
    """S2UR UR7 names a barrier; a reader of the uniform register waits for it, in any order."""
    special = instruction(0x79C3, 0x8800, dest=7, write_barrier=2)
    reader = Instruction(0x7E23 | 1 << 91 | 0x10000 << 64).replaced(24, 8, 4).replaced(32, 8, 7).replaced(64, 8, 5)
    reads = reader.replaced(16, 8, 10).controlled(8, waits=1 << 2)
    (block,) = blocks([special, add(11, 22, 23), reads, EXIT])
    assert block.guards(UNIFORM + 7) == 1 << 2 and fault(block, block.body) == ""
    assert "touches uniform 7" in fault(block, [block.body[1].controlled(1), block.body[0].controlled(8, waits=1 << 2)])


def test_a_block_that_touches_what_is_in_flight_unsignalled_is_left_alone():
    assert [b.start for b in blocks([load(10, 4), add(10, 2, 3), EXIT])] == []
    assert [b.start for b in blocks([load(10, 4, write_barrier=0), add(10, 2, 3), EXIT])] == [1]


def test_a_store_without_a_barrier_is_signalled_by_the_next_one_that_has_one():
    states = in_flight([store(40, 50), store(40, 51, read_barrier=3), add(1, 2, 3)])
    assert unsignalled(states[1]) >> 50 & 1 and not unsignalled(states[2]) >> 50 & 1
    assert states[2][3] >> 50 & 1 and states[2][3] >> 51 & 1
