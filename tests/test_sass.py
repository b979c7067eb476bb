"""Machine code in another order: the same outcome, fewer waits, and a proof that finds what is broken."""

import hashlib
import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from nbody.bench.roofline.slots import disassembler
from nbody.gpu.sass import (
    PAIR_TUNINGS,
    ROOTS,
    blocks,
    encoded,
    fault,
    instructions,
    kernels,
    scheduled_block,
    with_pairs_scheduled,
    with_products_scheduled,
)
from nbody.gpu.sass.block import Block, Turn, early_reader
from nbody.gpu.sass.check import Hardware
from nbody.gpu.sass.emit import emitted
from nbody.gpu.sass.instruction import NO_BARRIER, PLACES, ZERO, Instruction
from nbody.gpu.sass.liveness import EVERY, live_before, read, target, written
from nbody.gpu.sass.pair_pipeline import clocks
from nbody.gpu.sass.scoreboard import NOTHING, UNIFORM, fresh, under_way, untold
from nbody.state import Want

# --- Instructions by hand ---------------------------------------------------------------------------------------------


def instruction(low, high=0, **fields):
    """One from the two halves of a known one, with other registers (``dest``, a, b, c) and other control bits."""
    made = Instruction(high << 64 | low)
    for place, at in {"dest": 16, **PLACES}.items():
        if place in fields:
            made = made.replaced(at, 8, fields.pop(place))
    read_barrier, predicate = fields.pop("read_barrier", NO_BARRIER), fields.pop("predicate", made.predicate)
    return made.controlled(**{"stall": 1} | fields).replaced(113, 3, read_barrier).replaced(12, 4, predicate)


def add(dest, a, b, **control):
    return instruction(0x7221, 0x10000, dest=dest, a=a, b=b, **control)


def multiply_add(dest, a, b, c, **control):
    return instruction(0x7223, 0x10000, dest=dest, a=a, b=b, c=c, **control)


def root(dest, b, **control):
    return instruction(0x7308, 0x1400, dest=dest, b=b, **control)


def shuffle(dest, a, b, **control):
    return instruction(0x1F0000007589, 0xE0000, dest=dest, a=a, b=b, **control)


def load(dest, a, **control):
    return instruction(0x7984, 0x800, dest=dest, a=a, **control)


def store(a, b, **control):
    return instruction(0x7388, 0x800, a=a, b=b, **control)


def branch(at, to, predicate=0, stall=6):
    offset = (to - at - 1) * 4
    word = 0x947 | (offset & 255) << 16 | (offset >> 8 & (1 << 48) - 1) << 34 | 0xE0 << 82
    return instruction(word & (1 << 64) - 1, word >> 64, predicate=predicate, stall=stall)


EXIT = instruction(0x794D, 0x3800000, stall=5)


def block_of(*body, live_out=0, **fields):
    """A block of some instructions, with nothing under way before it."""
    return Block(0, len(body), list(body), EVERY, live_out, NOTHING, EVERY, **fields)


def bits(*registers):
    return sum(1 << register for register in registers)


def test_the_parts_of_an_instruction_are_where_the_disassembler_sees_them():
    subtract = Instruction(0x000FE200000100008000006704B07221)  # FADD.FTZ R176, R4, -R103
    assert [subtract.dest, subtract.register("a"), subtract.register("b")] == [176, 4, 103]
    assert subtract.operation.name == "FADD" and subtract.filled == ("register", 176)
    assert (subtract.stall, subtract.write_barrier, subtract.read_barrier, subtract.waits) == (1, 7, 7, 0)
    inverse = Instruction(0x00006200000014000000000E00AA7308)  # MUFU.RSQ R170, R14, which lifts 1 and, when read, 0
    assert (inverse.dest, inverse.register("b"), inverse.write_barrier, inverse.read_barrier) == (170, 14, 1, 0)
    fused = Instruction(0x080FE20000010061000000977C617223)  # FFMA.FTZ R97, R124, R151.reuse, R97
    assert [fused.register(place) for place in "abc"] == [124, 151, 97] and fused.keeps == 0b010
    passed = Instruction(0x00012200000E000000001F19686F7589)  # SHFL.IDX PT, R111, R104, R25, 0x1f
    assert (passed.dest, passed.register("a"), passed.register("b"), passed.write_barrier) == (111, 104, 25, 4)
    back = Instruction(0x01EFEC000383FFFFFFFFFFF400300947)  # @P0 BRA at 806, which waits for 1 to 4, to 627
    assert (target(806, back), back.predicate, back.waits, back.stall) == (627, 0, 0b011110, 6)
    assert target(816, Instruction(0x000FE200038000000000036000007945)) == 871  # BSSY B0


def test_what_is_put_into_an_instruction_is_found_in_it():
    made = multiply_add(1, 2, 3, 4, stall=9, write_barrier=5, waits=0b101010, keeps=0b101, read_barrier=2)
    assert [made.dest, *(made.register(place) for place in "abc")] == [1, 2, 3, 4]
    assert (made.stall, made.write_barrier, made.read_barrier) == (9, 5, 2)
    assert (made.waits, made.keeps) == (0b101010, 0b101)
    assert instructions(encoded([made, EXIT])) == [made, EXIT]


@pytest.mark.parametrize("word,why", [
    (0x000FE200004100004000000502017220, "FMUL R1, R2, |R5|: the operands may not change places"),
    (0x000FE200004102000000000502017220, "FMUL R1, |R2|, R5"),
    (0x000FE20007F7E0FF0000000153537810, "IADD3 R83, P3, R83, 0x1, RZ: fills a predicate too"),
    (0x000FE200007FE4FF0000000102017810, "IADD3.X: reads one"),
    (0x000FE20000000A000000C40000067AB9, "ULDC.64: fills two registers"),
    (0x000FE400000005000000000500017202, "MOV R1, R5, 0x5: fills a part"),
    (0x000FE200000100008000006704B00221, "@P0 FADD: may leave what is there"),
])  # fmt: skip
def test_an_operation_of_another_meaning_is_not_taken_for_a_known_one(word, why):
    assert Instruction(word).operation is None, why


# --- Real kernels -----------------------------------------------------------------------------------------------------

KERNELS = [
    ((4, 18), "product", Want.ACCELERATION), ((4, 18), "product", Want.ENERGY), ((4, 22), "equal", Want.ACCELERATION),
    ((2, 18), "product", Want.ACCELERATION), ((1, 10), "product", Want.ACCELERATION), ((1, 10), "equal", Want.ENERGY),
    ((1, 10), "equal", Want.ACCELERATION, "cutoff", 2), ((1, 10), "equal", Want.ENERGY, "cutoff", 2),
]  # fmt: skip


def machine_code(tiling, masses, potential, softening="plummer", dimensions=3):
    """The cubin of a kernel of gpu-symmetric for an H200, in float32."""
    pytest.importorskip("cuda.core")
    from numba import types

    from nbody import gpu
    from nbody.forces.direct import gpu_pairs
    from nbody.forces.direct.gpu_engine import Shape
    from nbody.forces.direct.gpu_triangle import Tiling

    real = types.float32
    kernel = gpu_pairs.build(Shape(softening, dimensions, np.dtype(np.float32), potential), Tiling(*tiling), masses)
    signature = (real[:, ::1], real[:, :, ::1], real[:, :, ::1], real, *[types.int64] * 3, types.uint32)
    try:
        return gpu.assembled(gpu.ptx(kernel, signature))[0]
    except Exception as error:
        if "nvvm" in str(error).lower() or "nvjitlink" in str(error).lower():
            pytest.skip(f"no compiler here: {error}")
        raise


@pytest.fixture(scope="module")
def cubin():
    """Kernels' machine code, compiled once."""
    made = {}

    def get(*key):
        if key not in made:
            made[key] = machine_code(*key)
        return made[key]

    return get


def code_of(cubin):
    (section,) = kernels(cubin)
    return section, instructions(cubin[section.start : section.start + section.size])


def loops(cubin):
    """The blocks of a kernel that are loops over pairs, or their first turn."""
    found = blocks(code_of(cubin)[1])
    return [block for block in found if sum(known.kind == "root" for known in block.known) >= ROOTS]


@pytest.fixture(scope="module")
def loop(cubin):
    """The loop of the kernel for large N, and a new order of it."""
    (block,) = loops(cubin((4, 18), "product", Want.ACCELERATION))
    body = scheduled_block(block, PAIR_TUNINGS[0])
    assert body is not None
    return block, body


def modelled(block, body):
    """Cycles of some instructions in the model, from the banks of their registers."""
    made = Block(0, len(body), body, block.live_in, block.live_out, block.state, block.has)
    bank = {~register: register & 1 for register in range(ZERO)}
    bank |= {at: register & 1 for at in range(len(body)) if (register := made.fills(at)) is not None}
    return clocks(made, [Turn(at, sources) for at, sources in enumerate(made.flow.sources)], bank)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_a_new_order_changes_nothing_but_the_loop_and_takes_fewer_cycles(cubin, kernel):
    old = cubin(*kernel)
    new = next(filter(None, (with_pairs_scheduled(old, tuning) for tuning in PAIR_TUNINGS)), None)
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


def test_the_same_order_is_found_again_in_another_process(cubin, tmp_path):
    """Python hashes strings differently each time; no set of them may have a say."""
    old = cubin((1, 10), "product", Want.ACCELERATION)
    (tmp_path / "cubin").write_bytes(old)
    code = (
        "import sys, pathlib, hashlib; from nbody.gpu.sass import PAIR_TUNINGS, with_pairs_scheduled;"
        "old = pathlib.Path(sys.argv[1]).read_bytes();"
        "print(hashlib.sha256(b''.join(with_pairs_scheduled(old, tuning) for tuning in PAIR_TUNINGS[:3])).hexdigest())"
    )
    here = hashlib.sha256(b"".join(with_pairs_scheduled(old, tuning) for tuning in PAIR_TUNINGS[:3])).hexdigest()
    for seed in ("1", "2"):
        run = [sys.executable, "-c", code, str(tmp_path / "cubin")]
        found = subprocess.run(
            run, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONHASHSEED": seed}
        )
        assert found.stdout.strip() == here


def test_kernels_are_the_sections_with_instructions_and_other_files_are_refused(cubin):
    code = cubin((1, 10), "product", Want.ACCELERATION)
    (section,) = kernels(code)
    assert section.name.startswith(b".text.") and b"accelerate_pairs" in section.name and section.size % 16 == 0
    assert any(x.opcode == EXIT.opcode for x in code_of(code)[1])
    for other in (b"", b"PK\x03\x04" + bytes(100), b"\x7fELF\x01\x01" + bytes(100)):
        with pytest.raises(ValueError, match="not an ELF file of 64 bits"):
            kernels(other)
        # no run ends for that
        assert with_pairs_scheduled(other, PAIR_TUNINGS[0]) is None and with_products_scheduled(other) is None


# --- What is broken is found ------------------------------------------------------------------------------------------


def with_one(body, at, other):
    return [*body[:at], other, *body[at + 1 :]]


def without(x, barrier):
    return x.replaced(116, 6, x.waits & ~(1 << barrier))


def dependent(block):
    """Pairs of instructions, the second of which reads what the first makes."""
    return [(value, at) for at, source in enumerate(block.flow.sources) for value in source.values() if value >= 0]


def of_body(block, body):
    return replace(block, body=body)


def test_what_the_assembler_does_is_the_same_and_keeps_the_rules_but_for_its_own_habits(cubin):
    """It uses barriers that tell that an operand was read, where new orders wait for the result; it lets one root's barrier
    tell of two; it keeps operands over an instruction that reads another there; it gives a shuffle's operand 5 cycles, not
    8, a choice 5, not 6, and a predicate 12, not 14; and its last sums come in while the branch is taken, of which 7 cycles
    pass, not 8."""
    habits = (
        r"fills register \d+, which is still to be read|register \d+ may be filled behind the block before it is read"
        r"|touches register \d+ before a barrier from before the block"
        r"|has no barrier|touches register \d+, which is being filled|register \d+ is under way at the end"
        r"|keeps operand ., which the next one does not read there|reads (register|predicate) \d+ [123] cycles too early"
    )
    for kernel in KERNELS:
        for block in loops(cubin(*kernel)):
            found = [text for text in Hardware(block).faults(block.body) if not re.search(habits, text)]
            assert all(text.endswith("not there at the end") for text in found)


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
        assert "too early" in found or "before it is up" in found


def test_no_wait_for_a_root_may_be_missing(loop):
    block, body = loop
    named, dropped = {}, 0
    for at, x in enumerate(body):
        for barrier in range(6):
            if x.waits >> barrier & 1 and named.pop(barrier, "") == "root":
                assert re.search("being filled|still to be read", fault(block, with_one(body, at, without(x, barrier))))
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
    assert "instructions cannot stand where" in fault(block, body[:-1])
    assert "instructions cannot stand where" in fault(block, [*body, body[-1]])


def test_a_shuffle_reads_earlier_and_a_barrier_is_up_later():
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
    assert "waits for barrier 0 before it is up" in fault(block, body(after=1))


def test_what_is_fresh_from_before_the_block_is_not_read_before_it_is_there():
    """The assembler has counted the cycles to its own first reader, which is the last one here."""
    slow = instruction(0x7435, 0x1FF, dest=4, a=ZERO, b=ZERO, c=ZERO)  # HFMA2.MMA R4, -RZ, RZ, 0, 0
    others, reader = [add(20 + k, 6, 7) for k in range(12)], add(40, 4, 5)
    code = [slow, *others, reader.controlled(8), EXIT]
    assert [state.get(("register", 4)) for state in fresh(code)] == [None, *range(10, -3, -1), None]
    (block,) = blocks(code)
    assert block.start == 1 and fault(block, block.body) == ""
    assert "reads register 4 10 cycles too early" in fault(block, [reader, *others[:-1], others[-1].controlled(8)])
    assert fault(block, [*others[:10], reader, others[10], others[11].controlled(8)]) == ""


def test_an_order_begins_with_what_is_there():
    """What the block reads of a slow instruction before it comes as late as the assembler had it."""
    slow = instruction(0x7435, 0x1FF, dest=4, a=ZERO, b=ZERO, c=ZERO)
    reader, others = add(40, 4, 5), [add(41 + k, 6, 7) for k in range(11)]
    code = [slow, *others[:10], reader, others[10].controlled(8), *(store(9, 40 + k) for k in range(12)), EXIT]
    (block,) = blocks(code)
    assert block.flow.earliest == [0] * 10 + [10, 0]
    for tuning in PAIR_TUNINGS:
        body = scheduled_block(block, tuning)
        assert body is not None
        at = next(k for k, x in enumerate(body) if x.register("a") == 4)
        assert sum(x.stall for x in body[:at]) >= 10


def test_a_barrier_that_is_shared_is_waited_for_only_when_it_is_up():
    """Seven roots have six barriers, so one waits for a root that has only just begun."""
    made = [root(10 + k, 20 + k, write_barrier=min(k, 5), stall=2) for k in range(7)]
    made += [add(40 + k, 10 + k, 30, waits=1 << min(k, 5), stall=8 if k == 6 else 1) for k in range(7)]
    block = block_of(*made, live_out=bits(*range(40, 47)))
    assert fault(block, made) == ""
    order = [*range(6), 5 + 7, 6, *range(7, 12), 13]  # the sixth root's sum before the seventh root
    turns = [Turn(at, block.flow.sources[at]) for at in [*range(5), 6, 5, 12, *range(7, 12), 13]]
    assert sorted(order) == sorted(turn.at for turn in turns)
    body = emitted(block, turns, {~r: r for r in range(ZERO)} | {at: x.dest for at, x in enumerate(made)})
    assert body is not None and fault(block, body) == ""


def test_what_chooses_by_a_predicate_follows_the_test_that_it_was_made_for():
    """The second test may not come before what chooses by the first."""
    compare, choose = 0xBFAC000, 0x6800000  # .GTU into P5; by !P5

    def body(*order):
        first = [
            instruction(0x720B, compare, dest=0, a=4, b=5, stall=14),
            instruction(0x7208, choose, dest=10, a=6, b=7),
        ]
        then = [
            instruction(0x720B, compare, dest=0, a=8, b=5, stall=14),
            instruction(0x7208, choose, dest=11, a=6, b=7),
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


def test_a_test_of_a_float_reads_it_earlier_than_arithmetic():
    def body(before):
        return [add(10, 4, 5, stall=before), instruction(0x720B, 0xBFAC000, dest=0, a=10, b=7, stall=14)]

    block = block_of(*body(6))
    assert block.flow.after[1] == {0: 6} and fault(block, body(6)) == ""
    assert "reads register 10 1 cycles too early" in fault(block, body(5))


def test_a_predicate_is_there_when_the_block_ends_whatever_comes_behind():
    body = [instruction(0x720B, 0xBFAC000, dest=0, a=10, b=7, stall=14)]
    assert fault(block_of(*body, behind=10), body) == ""
    assert "not there at the end" in fault(block_of(*body, behind=10), [body[0].controlled(13)])


def test_results_are_there_for_whoever_reads_first_behind_the_block():
    block = block_of(add(10, 4, 5, stall=8), live_out=bits(10))
    assert fault(block, [add(10, 4, 5, stall=8)]) == ""
    assert "not there at the end" in fault(block, [add(10, 4, 5, stall=7)])
    before_branch = block_of(add(10, 4, 5, stall=2), live_out=bits(10), behind=6)
    assert fault(before_branch, [add(10, 4, 5, stall=2)]) == ""
    assert "not there at the end" in fault(before_branch, [add(10, 4, 5, stall=1)])


def test_what_is_behind_a_block_may_read_early_if_it_is_no_arithmetic():
    made = add(10, 4, 5, stall=4)
    for behind, cycles in (
        ([store(7, 10)], 0),
        ([add(11, 10, 5, predicate=0, stall=2), store(7, 10)], 2),
        ([branch(1, 0)], 6),
    ):
        first = next(blocks([made, *behind, EXIT]))
        assert first.end == 1 and first.behind == cycles
        assert bool(fault(first, [made])) == (cycles < 4)


def test_an_order_may_use_registers_that_the_kernel_has_and_no_others():
    def body(register):
        return [add(register, 44, 45, stall=4), add(52, register, 46, stall=8)]

    code = [add(61, 62, 63), EXIT, *body(58), store(47, 52), EXIT]
    block = next(block for block in blocks(code) if block.start == 2)
    assert fault(block, body(58)) == "" and fault(block, body(61)) == ""
    assert "which the kernel does not have" in fault(block, body(80))


def test_a_store_that_names_no_barrier_is_told_by_the_next_one_that_does():
    states = under_way([store(40, 50), store(40, 51, read_barrier=3), add(1, 2, 3)])
    assert untold(states[1]) >> 50 & 1 and not untold(states[2]) >> 50 & 1
    assert states[2][3] >> 50 & 1 and states[2][3] >> 51 & 1


def test_an_operand_is_kept_only_for_the_next_instruction_that_reads_it_there():
    kept = [multiply_add(10, 4, 5, 6, keeps=0b001), multiply_add(11, 4, 7, 8, stall=8)]
    block = block_of(*kept, live_out=bits(10, 11))
    assert fault(block, kept) == ""
    assert "keeps operand b, which the next" in fault(block, [kept[0].replaced(122, 3, 0b010), kept[1]])
    filled = [multiply_add(4, 4, 5, 6, keeps=0b001, stall=4), multiply_add(11, 4, 7, 8, stall=8)]
    assert "keeps operand a, and fills its register" in fault(block_of(*filled, live_out=bits(4, 11)), filled)
    assert "keeps operand a, which the next" in fault(block, [kept[0], kept[1].replaced(122, 3, 0b001)])


def test_whoever_is_behind_a_block_finds_its_results_as_early_as_it_reads():
    """Arithmetic reads a float's result when it is there, a choice between two 2 cycles and a load 4 cycles earlier."""
    made, choose = add(10, 4, 5, stall=4), instruction(0x7208, 0x6800000, dest=11, a=10, b=5, stall=6)
    for behind, missing in (
        ([add(11, 10, 5, stall=9)], 0),
        ([choose], 2),
        ([add(12, 6, 7, stall=1), choose], 1),
        ([load(11, 10)], 4),
        ([add(12, 6, 7, stall=3), load(11, 10)], 1),
        ([add(12, 6, 7, stall=1), branch(2, 0, stall=1), add(11, 10, 5)], 2),
    ):
        first = Block(0, 1, [made], EVERY, bits(10), NOTHING, EVERY, behind=early_reader([made, *behind, EXIT], 1))
        assert bool(fault(first, [made])) == (missing > 0)
        assert fault(first, [made.controlled(4 + missing)]) == ""


def test_a_load_at_an_address_of_two_registers_one_of_them_uniform_is_not_known():
    known = instruction(0x7984, 0xC00, dest=20, a=4)
    assert known.operation.name == "LDS" and Instruction(known.word | 1 << 91).operation is None


def test_what_lets_another_warp_come_next_keeps_nothing():
    body = [multiply_add(10, 4, 5, 6, keeps=0b001), multiply_add(11, 4, 7, 8, stall=8)]
    block = block_of(*body, live_out=bits(10, 11))
    assert fault(block, body) == ""
    assert "lets another warp come next" in fault(block, [body[0].yielding(), body[1]])


def test_a_product_may_change_its_factors_and_a_difference_not():
    block = block_of(multiply_add(10, 4, 5, 6, stall=8), live_out=bits(10))
    assert fault(block, [multiply_add(10, 5, 4, 6, stall=8)]) == ""
    block = block_of(add(10, 4, 5, stall=8), live_out=bits(10))
    assert fault(block, [add(10, 5, 4, stall=8)])


def test_a_register_read_by_two_is_filled_after_both_have_read_it():
    def body(waits):
        return [
            root(10, 4, write_barrier=0),
            shuffle(11, 4, 5, write_barrier=1, stall=2),
            add(4, 6, 7, waits=waits, stall=2),
            add(12, 10, 11, waits=0b11, stall=8),
        ]

    block = block_of(*body(0b11), live_out=bits(4, 12))
    assert fault(block, body(0b11)) == ""
    for waits in (0b01, 0b10):
        assert "fills register 4, which is still to be read" in fault(block, body(waits))


def test_what_a_shuffle_reads_is_filled_behind_the_block_only_after_it_has_read_it():
    def kernel(waits):
        return [
            add(10, 4, 6, stall=12),
            shuffle(11, 10, 5, write_barrier=1, stall=6),
            load(30, 20, write_barrier=2, stall=2),
            load(5, 20, write_barrier=2, waits=waits, stall=2),
            store(20, 11, waits=0b110),
            EXIT,
        ]

    for waits, message in ((0b10, ""), (0, "register 5 may be filled behind the block before it is read")):
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
"""Operands, and cycles an instruction on one H200. What two in a row read in one place was kept there."""


@pytest.mark.parametrize("operation,group,measured", PATTERNS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_the_model_waits_for_banks_as_the_h200_does(operation, group, measured):
    body = pattern(group, operation)
    assert modelled(block_of(*body), body) / len(body) == pytest.approx(measured, rel=0.02)


def test_the_model_knows_that_a_sum_in_place_may_wait_for_its_bank():
    sums = (158, 160, 161, 162, 163, 164, 165, 166)
    body = [add(sums[k % 8], sums[k % 8], 70 + 2 * (k % 43)) for k in range(300)]
    assert modelled(block_of(*body), body) / 300 == pytest.approx(1.626, rel=0.02)


def test_a_root_holds_up_the_floats_for_a_cycle():
    floats = pattern(["e1 o1"], add, 17 * 17)
    mixed = [x for k in range(17) for x in (root(230 + k, 41, write_barrier=0), *floats[17 * k : 17 * k + 17])]
    assert modelled(block_of(*mixed), mixed) == len(mixed) + 17


# --- Liveness and the scoreboard --------------------------------------------------------------------------------------


def test_a_register_lives_from_where_it_is_filled_to_its_last_reader_around_a_loop():
    code = [add(31, 32, 33), add(34, 31, 35), add(36, 34, 36), branch(3, 1), store(47, 36), EXIT]
    live = live_before(code)

    def lives(register):
        return [mask >> register & 1 for mask in live]

    assert lives(32) == [1, 0, 0, 0, 0, 0]
    assert lives(31) == [0, 1, 1, 1, 0, 0]  # the next turn reads it
    assert lives(34) == [0, 0, 1, 0, 0, 0]
    assert lives(36) == [1, 1, 1, 1, 1, 0]  # a store reads its data


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_what_is_read_and_filled_agrees_with_the_disassembler(cubin, kernel, tmp_path):
    """nvdisasm shows the lives of registers: ``v`` where one is read, ``^`` where it is filled, ``x`` for both. Nothing that
    is read may be overlooked, and nothing be said to be filled that is not."""
    code, lives = code_of(cubin(*kernel))[1], lives_shown(cubin(*kernel), tmp_path)
    assert len(lives) > 1000
    for at, shown in lives.items():
        reads, fills = (bits(*(r for r, mark in shown.items() if mark in marks)) for marks in ("vx", "^x"))
        assert not reads & ~read(code[at]), f"instruction {at} reads more"
        assert not written(code[at]) & ~fills, f"instruction {at} does not fill that"
        if code[at].operation is not None:
            assert reads == read(code[at]) and fills == written(code[at])


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_at_the_loop_the_same_registers_live_as_for_the_disassembler(cubin, kernel, tmp_path):
    live, lives = live_before(code_of(cubin(*kernel))[1]), lives_shown(cubin(*kernel), tmp_path)
    for block in loops(cubin(*kernel)):
        shown = bits(*(r for r, mark in lives[block.start].items() if mark in ":vx" and r != STACK))
        assert live[block.start] == shown


STACK = 1
"""The register of the stack's end, which lives for nvdisasm as long as the kernel."""


def lives_shown(cubin, tmp_path):
    """By instruction, the mark of each register that lives there, from ``nvdisasm -plr``."""
    program = disassembler()
    if program is None:
        pytest.skip("no nvdisasm here")
    (tmp_path / "cubin").write_bytes(cubin)
    command = [program, "-plr", str(tmp_path / "cubin")]
    found, columns = {}, {}
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        code, _, table = line.partition("//")
        registers = table.partition("|")[2].partition("|")[
            0
        ]  # the first group of columns; predicates and others follow
        if registers.lstrip().startswith("#"):
            begins = len(code) + 2 + table.index("|") + 1
            columns = {begins + number.end() - 1: int(number.group()) for number in re.finditer(r"\d+", registers)}
        elif address := re.match(r"\s*/\*([0-9a-f]{4,})\*/", code):
            marks = {r: line[at] for at, r in columns.items() if line[at : at + 1].strip()}
            found[int(address[1], 16) // 16] = marks
    return found


def test_what_a_predicate_decides_does_not_end_a_life():
    code = [add(1, 2, 3), add(1, 4, 5, predicate=0), store(7, 1), EXIT]
    assert live_before(code)[1] >> 1 & 1
    assert not live_before([code[0], add(1, 4, 5), *code[2:]])[1] >> 1 & 1


@pytest.mark.parametrize("opcode", [0x388, 0x988, 0x986, 0x987, 0x98E, 0x9A8])
def test_what_is_stored_is_read_wherever_it_is_stored_to(opcode):
    """Whatever the address is made of; the last two add to what is there."""
    code = [add(40, 2, 3), instruction(0x7000 | opcode, 0x800, dest=ZERO, a=7, b=40, c=ZERO), EXIT]
    assert live_before(code)[1] >> 40 & 1


def test_a_register_lives_if_it_is_read_where_branches_meet_again():
    """BSSY names the place, BSYNC goes there."""
    meet, arrive = Instruction(0x000FE200038000000000003000007945), instruction(0x7941, 0x3800000)
    code = [meet, add(1, 2, 3), arrive, EXIT, store(7, 8), EXIT]
    assert target(0, code[0]) == 4
    assert live_before(code)[2] >> 8 & 1 and live_before(code)[0] >> 8 & 1
    assert not live_before([*code[:2], EXIT, *code[3:]])[2] >> 8 & 1


def meet(barrier, ahead):
    """BSSY: lanes that arrive at the barrier go on so many instructions behind this one."""
    return Instruction(0x000FE200038000000000000000007945 | barrier << 16 | (ahead - 1) * 16 << 32)


def arrive(barrier):
    return instruction(0x7941, 0x3800000, dest=barrier)


TWO_MEETINGS = [meet(0, 3), add(1, 2, 3), arrive(0), add(8, 2, 3), meet(0, 3), add(1, 2, 3), arrive(0), store(7, 8)]
"""Who arrives first goes on where register 8 is filled, and who arrives later where it is read."""


def test_lanes_that_meet_again_go_where_it_was_named_for_their_barrier():
    assert [target(at, TWO_MEETINGS[at]) for at in (0, 4)] == [3, 7]
    live = live_before([*TWO_MEETINGS, EXIT])
    assert not live[2] >> 8 & 1 and live[6] >> 8 & 1
    again = live_before([*TWO_MEETINGS, branch(8, 1), EXIT])  # the second place is still named in the next turn
    assert again[2] >> 8 & 1
    other = live_before([*TWO_MEETINGS[:4], meet(1, 3), add(1, 2, 3), arrive(1), store(7, 8), branch(8, 1), EXIT])
    assert not other[2] >> 8 & 1


def test_where_a_register_may_name_the_place_lanes_may_go_on_at_any():
    from_register = instruction(0x7356, 0, dest=2, b=9)  # BMOV.32 B2, R9
    assert live_before([*TWO_MEETINGS, EXIT, from_register])[2] >> 8 & 1


def test_a_barrier_tells_of_what_it_is_named_for_until_it_is_waited_for():
    code = [load(10, 4, write_barrier=2), add(1, 2, 3), add(5, 6, 7, waits=1 << 2), add(1, 2, 3)]
    states = under_way(code)
    assert [state[2] >> 10 & 1 for state in states] == [0, 1, 1, 0]
    stored = under_way([store(4, 20, read_barrier=3), add(1, 2, 3)])
    assert stored[1][3] >> 20 & 1 and not stored[1][2]


def test_what_names_no_barrier_is_told_by_the_next_of_its_kind():
    code = [root(10, 4), shuffle(11, 4, 5, write_barrier=0), root(12, 4, write_barrier=1), add(1, 2, 3)]
    states = under_way(code)
    assert untold(states[1]) >> 10 & 1 and untold(states[2]) >> 10 & 1  # a shuffle is of another kind
    assert not untold(states[3]) and states[3][1] >> 10 & 1 and states[3][1] >> 12 & 1


def test_what_is_under_way_comes_around_a_loop_and_guards_its_beginning():
    code = [add(1, 2, 3), load(10, 4, write_barrier=2), branch(2, 0), EXIT]
    assert [state[2] >> 10 & 1 for state in under_way(code)] == [1, 1, 1, 1]
    (block,) = [block for block in blocks(code) if block.start == 0]
    assert block.guards(10) == 1 << 2 and block.guards(1) == 0


def test_a_uniform_register_may_be_under_way_as_well():
    """S2UR UR7 names a barrier; what reads the uniform register waits for it, in any order."""
    special = instruction(0x79C3, 0x8800, dest=7, write_barrier=2)
    reader = Instruction(0x7E23 | 1 << 91 | 0x10000 << 64).replaced(24, 8, 4).replaced(32, 8, 7).replaced(64, 8, 5)
    reads = reader.replaced(16, 8, 10).controlled(8, waits=1 << 2)
    (block,) = blocks([special, add(11, 22, 23), reads, EXIT])
    assert block.guards(UNIFORM + 7) == 1 << 2 and fault(block, block.body) == ""
    assert "touches uniform 7" in fault(block, [block.body[1].controlled(1), block.body[0].controlled(8, waits=1 << 2)])


def test_a_block_where_something_is_under_way_that_nobody_tells_of_is_left_alone():
    assert [b.start for b in blocks([load(10, 4), add(10, 2, 3), EXIT])] == []
    assert [b.start for b in blocks([load(10, 4, write_barrier=0), add(10, 2, 3), EXIT])] == [1]
