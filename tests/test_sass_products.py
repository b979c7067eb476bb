"""The loop over products of float64 numbers in another order: the same outcome, and a factor kept by nearly every one."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from nbody.gpu.sass import blocks, fault, instructions, kernels, with_products_scheduled
from nbody.gpu.sass.check import Hardware
from nbody.gpu.sass.copies import VOIDS
from nbody.gpu.sass.instruction import NO_BARRIER, ZERO
from nbody.gpu.sass.liveness import read, written
from nbody.gpu.sass.operations import PRODUCTS, WITH_COPIES
from nbody.gpu.sass.product_schedule import ProductScheduler, ProductTuning
from nbody.gpu.sass.product_steps import NoProducts, steps


def product_code(name):
    """The machine code of a rung for whole tiles."""
    pytest.importorskip("cuda.core")
    from numba import types

    from nbody import gpu
    from nbody.linalg import k21_factors_kept, k22_last_round

    matrices, scratch = (types.float64[:, ::1],) * 3, (types.float64[:, :, ::1], types.uint32[::1])
    rung, signature = {"k21": (k21_factors_kept, matrices), "k22": (k22_last_round, (*matrices, *scratch))}[name]
    try:
        return gpu.assembled(gpu.ptx(rung.kernel(True, False), signature))[0]
    except Exception as error:
        if "nvvm" in str(error).lower() or "nvjitlink" in str(error).lower():
            pytest.skip(f"no compiler here: {error}")
        raise


@pytest.fixture(scope="module", params=["k21", "k22"])
def cubin(request):
    """The machine code of each rung whose loop is put into an order."""
    return product_code(request.param)


def block(cubin, kinds):
    (section,) = kernels(cubin)
    code = instructions(cubin[section.start : section.start + section.size])
    (found,) = [b for b in blocks(code, kinds) if sum(known.kind == "double" for known in b.known) == 1024]
    return found


@pytest.fixture(scope="module")
def loop(cubin):
    """The loop over a slab, from its barrier to its branch: 16 steps of 64 products, and the copies of the next slab."""
    return block(cubin, WITH_COPIES)


@pytest.fixture(scope="module")
def body(loop):
    return ProductScheduler(loop, ProductTuning()).instructions()


def at_kind(body, kind):
    """The indices of the instructions of some kind."""
    return [at for at, x in enumerate(body) if x.operation.kind == kind]


def swapped(body, one, other):
    found = list(body)
    found[one], found[other] = found[other], found[one]
    return found


def moved(body, at, to):
    found = list(body)
    found.insert(to, found.pop(at))
    return found


def changed(body, at, instruction):
    return [*body[:at], instruction, *body[at + 1 :]]


def kept(body):
    return sum(x.operation.kind == "double" and x.keeps > 0 for x in body)


def test_all_products_but_the_first_of_a_step_find_a_factor_kept(loop, body):
    """16 steps of 64: the first of each reads three operands, one behind the instructions that advance addresses, and one
    behind each of the 32 that let another warp come next; 16 of these are a step's last. The copies cost none."""
    assert fault(loop, body) == ""
    assert kept(body) == 1024 - 16 - 1 - 16 > kept(loop.body) + 150
    assert sum(not x.holds for x in body) == 32


def test_a_product_takes_two_cycles_and_a_load_none_beside_them(body):
    """But for what comes before the first, and the end of the block. Copies come every four cycles, and nothing but the
    first loads takes time beside them."""
    first = at_kind(body, "double")[0]
    assert sum(x.stall for x in body[first:]) < 2 * 1024 + 16
    assert sum(x.stall for x in body[:first]) <= 4 * len(at_kind(body, "copy")) + 24


def test_only_the_loop_is_changed_and_keeps_its_length(cubin, loop):
    new = with_products_scheduled(cubin)
    (section,) = kernels(cubin)
    before, after = (instructions(each[section.start : section.start + section.size]) for each in (cubin, new))
    assert len(new) == len(cubin) and new != cubin
    assert before[: loop.start] == after[: loop.start] and before[loop.end :] == after[loop.end :]


def test_every_place_for_the_loads_is_shown_to_be_right(loop):
    for load_after in range(8):
        found = ProductScheduler(loop, ProductTuning(load_after, 2 + load_after % 2, 8)).instructions()
        assert found is not None and fault(loop, found) == ""


def test_hardly_more_registers_are_said_to_live_at_the_loop_and_behind_it_than_do(cubin, loop, tmp_path):
    """Were many more to live behind it, there would be too few for the factors."""
    from test_sass import STACK, code_of, lives_shown

    lives, code = lives_shown(cubin, tmp_path), code_of(cubin)[1]
    for at, live in ((loop.start, loop.live_in), (loop.end, loop.live_out)):
        said, shown = {r for r in range(ZERO) if live >> r & 1}, {r for r, mark in lives[at].items() if mark in ":vx"}
        assert shown - {STACK} <= said and len(said - shown) <= 1
    for at, shown in lives.items():
        reads, fills = (sum(1 << r for r, mark in shown.items() if mark in marks) for marks in ("vx", "^x"))
        assert not reads & ~read(code[at]) and not written(code[at]) & ~fills, f"instruction {at}"


def test_steps_are_all_pairs_of_their_factors(loop):
    found = steps(loop)
    assert len(found) == 16
    for step in found:
        assert len({product.left for product in step}) == len({product.right for product in step}) == 8
        assert len({product.sum for product in step}) == 64
        for one, next_one in pairwise(step):
            assert one.left == next_one.left or one.right == next_one.right


@pytest.mark.parametrize("spoil,message", [
    (lambda x: x.replaced(16, 8, x.dest ^ 2), "holds another number"),
    (lambda x: x.replaced(32, 8, x.register("b") ^ 2), "holds another number"),
    (lambda x: x.controlled(x.stall, x.write_barrier, 0, x.keeps), "which is being filled"),
])  # fmt: skip
def test_what_is_wrong_is_found(loop, body, spoil, message):
    at = next(k for k, x in enumerate(body) if x.operation.kind == "double" and x.waits)
    assert message in fault(loop, [*body[:at], spoil(body[at]), *body[at + 1 :]])


def test_a_factor_is_not_kept_over_the_address_of_a_load(loop, body):
    """A load reads its address in place a."""
    at = next(k for k, x in enumerate(body) if x.operation.kind == "double" and body[k + 1].operation.kind == "load")
    wrong = body[at].controlled(1, body[at].write_barrier, body[at].waits, 0b001)
    assert "keeps operand a" in fault(loop, [*body[:at], wrong, *body[at + 1 :]])


def test_a_group_of_copies_ends_in_this_block_as_before(loop, body):
    without = [x for x in body if x.operation.kind != "mark"]
    assert "instructions cannot stand" in fault(loop, without)
    mark = next(x for x in body if x.operation.kind == "mark")
    assert "other groups of copies" in fault(loop, [*without, mark.controlled(1, 5)])


def test_a_loop_whose_products_are_not_all_pairs_is_left_alone(loop):
    """One product with a factor of its own row in place of the column's."""
    at = next(k for k, known in enumerate(loop.known) if known.kind == "double")
    spoilt = loop.body[at].replaced(32, 8, loop.body[at].register("a"))
    with pytest.raises(NoProducts):
        steps(replace(loop, body=[*loop.body[:at], spoilt, *loop.body[at + 1 :]]))


@pytest.fixture(scope="module")
def copying(body):
    """The indices of the copies in the new order."""
    return at_kind(body, "copy")


def test_the_copies_come_in_one_run_while_the_first_loads_are_under_way(body, copying):
    kinds = [x.operation.kind for x in body]
    assert len(copying) == 24 and kinds[copying[0] - VOIDS : copying[0]] == ["void"] * VOIDS
    assert set(kinds[copying[0] : copying[-1]]) <= {"copy", "wide", "integer"}
    assert kinds[: copying[0]].count("load") == 8 and kinds.index("mark") < kinds.index("double")


def test_the_block_reaches_from_the_barrier_to_the_branch(cubin, loop, body):
    """What stands before the barrier, a comparison among others, fills nothing that the first loads would have to await."""
    (section,) = kernels(cubin)
    code = instructions(cubin[section.start : section.start + section.size])
    assert (code[loop.start - 1].opcode, code[loop.end].opcode) == (0xB1D, 0x947)
    first = [at for at in at_kind(body, "load") if at < 12]
    assert len(first) == 8 and not any(("register", body[at].register("a")) in loop.fresh for at in first)
    assert ("predicate", 0) in loop.fresh


def test_where_no_order_with_the_copies_is_shown_to_be_right_they_stay_in_front(cubin, monkeypatch):
    from nbody.gpu import sass

    def refused(block, body):
        return "refused" if any(known.kind == "copy" for known in block.known) else fault(block, body)

    monkeypatch.setattr(sass, "fault", refused)
    new = with_products_scheduled(cubin)
    (section,) = kernels(cubin)
    before, after = (instructions(each[section.start : section.start + section.size]) for each in (cubin, new))
    alone = block(cubin, PRODUCTS)
    assert before[: alone.start] == after[: alone.start] and before[alone.end :] == after[alone.end :]
    assert kept(after[alone.start : alone.end]) == 991


def test_no_load_comes_too_soon_behind_the_barrier_of_the_threads(loop, body):
    """With the numbers of the slab before it would come to others: two cycles behind it, a loop of k21 did."""
    load = at_kind(body, "load")[0]
    assert any("0 reads shared memory" in each for each in Hardware(loop).faults(moved(body, load, 0)))


def test_copies_and_the_end_of_their_group_are_as_far_apart_as_the_assemblers(loop, body, copying):
    (mark,) = at_kind(body, "mark")
    for at, other in ((copying[-2], copying[-1]), (copying[-1], mark)):
        assert other == at + 1 and body[at].stall == 4
        soon = changed(body, at, body[at].replaced(105, 4, 3))
        assert f"instruction {other} begins 1 cycles too soon behind what holds it up" in list(
            Hardware(loop).faults(soon)
        )


def test_what_may_not_follow_at_once_does_not_across_the_edges_of_the_block_either(loop, body, copying):
    held = replace(loop, held_up={"copy": 1000})
    assert any(f"{copying[0]} begins" in each for each in Hardware(held).faults(body))
    wide = body[at_kind(body, "wide")[0]]
    late = changed(changed(body, len(body) - 2, wide.controlled(1)), len(body) - 1, body[-1].controlled(1, waits=63))
    assert any("another wide" in each for each in Hardware(loop).faults(late))


def test_an_address_is_moved_on_before_it_is_copied_from(loop, body, copying):
    """As in the old order: a copy before that is another copy."""
    wide = next(at for at in at_kind(body, "wide") if any(body[c].register("a") == body[at].dest for c in copying))
    copy = next(c for c in copying if body[c].register("a") == body[wide].dest)
    assert "other copies" in fault(loop, swapped(body, wide, copy))


@pytest.mark.parametrize("spoil", [
    lambda x: x.replaced(12, 4, 8 ^ x.predicate),  # not if the other is
    lambda x: x.replaced(12, 4, 7),  # always
    lambda x: x.replaced(16, 8, x.dest + 1),  # to elsewhere
    lambda x: x.replaced(24, 8, x.register("a") + 2),  # from elsewhere
    lambda x: x.replaced(44, 1, 1 - x.field(44, 1)),  # to some distance from there
    lambda x: x.replaced(64, 6, x.field(64, 6) ^ 2),  # of another memory
])  # fmt: skip
def test_another_copy_is_found(loop, body, copying, spoil):
    at = copying[5]
    assert spoil(body[at]) != body[at]
    assert "other copies" in fault(loop, changed(body, at, spoil(body[at])))


def test_a_copy_that_is_missing_or_twice_there_is_found(loop, body, copying):
    void = body[at_kind(body, "void")[0]]
    assert "other copies" in fault(loop, changed(body, copying[3], void.controlled(1)))
    assert "other copies" in fault(loop, changed(body, copying[3], body[copying[4]]))


def test_a_copy_behind_the_end_of_its_group_is_found(loop, body, copying):
    (mark,) = at_kind(body, "mark")
    assert mark > copying[-1]
    assert "other copies" in fault(loop, swapped(body, mark, copying[-1]))


def test_a_load_among_the_copies_is_found(loop, body, copying):
    """Where the assembler would put three loads that are never done before the next copy."""
    load = max(at for at in at_kind(body, "load") if at < copying[0])
    assert "without 3 loads never done" in fault(loop, moved(body, load, copying[2]))
    assert "without 3 loads never done" in fault(loop, moved(body, at_kind(body, "void")[0], 0))


def test_a_copy_that_may_overwrite_what_a_load_reads_is_found(loop, body):
    old = moved(loop.body, at_kind(loop.body, "load")[0], at_kind(loop.body, "copy")[-1])
    assert "a copy follows a load" in fault(replace(loop, body=old), body)


def test_a_copy_needs_a_barrier_that_tells_that_it_has_read(loop, body, copying):
    at = copying[7]
    none = body[at].controlled(1)
    assert "no barrier that tells that it has read" in fault(loop, changed(body, at, none))
    both = body[at].controlled(1, 1, read_barrier=body[at].read_barrier)
    assert "no barrier that tells that it has read" in fault(loop, changed(body, at, both))
    last = body[-1].controlled(body[-1].stall, NO_BARRIER, body[-1].waits & ~(1 << body[at].read_barrier))
    assert "a copy may still have to read" in fault(loop, changed(body, len(body) - 1, last.yielding()))


@pytest.mark.parametrize("place", "ad")
def test_what_a_copy_reads_is_not_filled_before_its_barrier_is_waited_for(loop, body, copying, place):
    """An address moved on behind the copies, as a loop might do for its next round."""
    copy = body[copying[0]]
    behind = copying[-1] + 3
    early = body[at_kind(body, "wide")[0]].replaced(16, 8, copy.register(place)).controlled(1)
    found = list(Hardware(loop).faults(changed(body, behind, early)))
    assert f"instruction {behind} fills register {copy.register(place)}, which is still to be read" in found
    waits = early.controlled(1, NO_BARRIER, 1 << copy.read_barrier)
    assert not any("still to be read" in each for each in Hardware(loop).faults(changed(body, behind, waits)))


def test_a_copy_waits_for_its_addresses_and_for_its_predicate(loop, body, copying):
    wide = body[at_kind(body, "wide")[-1]]
    copy = next(body[at] for at in copying if body[at].register("a") == wide.dest)
    at_once = changed(changed(body, 20, wide), 21, copy)
    assert any(f"reads register {wide.dest}" in each for each in Hardware(loop).faults(at_once))
    guard = ("predicate", body[copying[0]].predicate & 7)
    assert loop.fresh[guard] > 0  # it is compared just before the block
    late = replace(loop, fresh=loop.fresh | {guard: 30})
    assert any(f"{copying[0]} reads predicate {guard[1]}" in each for each in Hardware(late).faults(body))


def test_a_factor_is_not_kept_over_a_copy_nor_over_the_address_of_a_load(loop, body, copying):
    at = next(at - 1 for at in at_kind(body, "load") if body[at - 1].operation.kind == "double")
    wrong = body[at].controlled(1, NO_BARRIER, body[at].waits, 0b001)
    assert "keeps operand a" in fault(loop, changed(body, at, wrong))
    product = at_kind(body, "double")[0]
    wrong = [*body[: copying[-1]], body[product], body[copying[-1]], body[product + 1]]
    assert any("keeps operand b" in each for each in Hardware(loop).faults(wrong))


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(4096, 4096, 4096), (1000, 1030, 777), (1001, 1031, 500)])
def test_the_card_comes_to_the_assemblers_bits(shape):
    from nbody.gpu import cuda
    from nbody.linalg import k17_champion, k21_factors_kept
    from nbody.linalg.rung import Shape

    m, n, k = shape
    rng = np.random.default_rng(5)
    a, b = cuda.to_device(rng.random((m, k)) - 0.5), cuda.to_device(rng.random((k, n)) - 0.5)
    found = []
    for launch in (
        k21_factors_kept.own_launch(Shape(*shape)),
        k17_champion.tiled_launch(Shape(*shape), np.dtype(np.float64), k21_factors_kept.TILING, 1),
    ):
        c = cuda.to_device(np.zeros((m, n)))
        launch(a, b, c)
        found.append(c.copy_to_host())
    np.testing.assert_array_equal(*found)
