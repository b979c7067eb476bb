"""The loop over products of float64 numbers in another order: the same outcome, and a factor kept by nearly every one."""

from itertools import pairwise

import numpy as np
import pytest

from nbody.gpu.sass import blocks, fault, instructions, kernels, with_factors_kept
from nbody.gpu.sass.instruction import PRODUCTS, ZERO
from nbody.gpu.sass.liveness import read, written
from nbody.gpu.sass.products import NoProducts, Ordered, ProductStyle, steps


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


@pytest.fixture(scope="module")
def loop(cubin):
    """The loop over a slab: 16 steps of 64 products."""
    (section,) = kernels(cubin)
    code = instructions(cubin[section.start : section.start + section.size])
    (block,) = [b for b in blocks(code, PRODUCTS) if sum(known.kind == "double" for known in b.known) == 1024]
    return block


@pytest.fixture(scope="module")
def body(loop):
    return Ordered(loop, ProductStyle()).instructions()


def kept(body):
    return sum(x.operation.kind == "double" and x.keeps > 0 for x in body)


def test_all_products_but_the_first_of_a_step_find_a_factor_kept(loop, body):
    """16 steps of 64: the first of each reads three operands, one behind the instructions that advance addresses, and one
    behind each of the 32 that let another warp come next; 16 of these are a step's last."""
    assert fault(loop, body) == ""
    assert kept(body) == 1024 - 16 - 1 - 16 > kept(loop.body) + 150
    assert sum(not x.holds for x in body) == 32


def test_a_product_takes_two_cycles_and_a_load_none_beside_them(body):
    """But for the loads of the first step, and the end of the block."""
    assert sum(x.stall for x in body) < 2 * 1024 + 32


def test_only_the_loop_is_changed_and_keeps_its_length(cubin, loop):
    new = with_factors_kept(cubin)
    (section,) = kernels(cubin)
    before, after = (instructions(each[section.start : section.start + section.size]) for each in (cubin, new))
    assert len(new) == len(cubin) and new != cubin
    assert before[: loop.start] == after[: loop.start] and before[loop.end :] == after[loop.end :]


def test_every_place_for_the_loads_is_shown_to_be_right(loop):
    for load_after in range(8):
        found = Ordered(loop, ProductStyle(load_after, 2 + load_after % 2, 8)).instructions()
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
    from dataclasses import replace

    at = next(k for k, known in enumerate(loop.known) if known.kind == "double")
    spoilt = loop.body[at].replaced(32, 8, loop.body[at].register("a"))
    with pytest.raises(NoProducts):
        steps(replace(loop, body=[*loop.body[:at], spoilt, *loop.body[at + 1 :]]))


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
