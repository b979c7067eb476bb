"""The kernels as they are compiled for sm_90: no local memory, no float64 in float32, and the instructions they claim."""

import re
from collections import Counter
from functools import cache

import numpy as np
import pytest

from nbody import gpu
from nbody.bench.roofline import slots
from nbody.linalg import LADDER, k21_factors_kept, k22_last_round
from nbody.linalg.k17_champion import TILINGS, tiled_launch
from nbody.linalg.rung import Shape

pytest.importorskip("cuda.core", reason="the assembler comes with the extra cu13")

CLAIMS = {
    "vector loads": r"ld\.(global|shared)\.v[24]\.",
    "asynchronous copies": r"cp\.async\.c[ag]\.shared\.global",
    "tensor cores": r"mma\.sync\.aligned\.m16n8k8\.row\.col\.f32\.tf32",
}
GPU_RUNGS = [name for name in LADDER if LADDER.load(name).on == "gpu"]


ptx = cache(gpu.ptx)


def compiled(launch, dtype):
    """The PTX of a launch's kernel."""
    return ptx(launch.kernel, launch.signature(dtype))


@pytest.mark.parametrize("name", GPU_RUNGS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_kernel_keeps_its_numbers_in_registers_and_its_claims(name, dtype):
    rung = LADDER.load(name)
    if dtype not in rung.dtypes:
        pytest.skip(f"{name} has no {dtype}")
    side = rung.largest or rung.example
    code = compiled(rung.launch(Shape(side, side, side), np.dtype(dtype)), dtype)
    assert ".local" not in code
    assert (".f64" in code) == (dtype == "float64")
    for claim in rung.claims:
        assert re.search(CLAIMS[claim], code), claim
    used = gpu.resources(code)
    assert used.local == 0
    assert used.shared <= 49152


@pytest.mark.parametrize(("dtype", "number"), [(dtype, k) for dtype in TILINGS for k in range(len(TILINGS[dtype]))])
def test_every_tiling_of_the_champion_fits_as_many_blocks_as_it_plans(dtype, number):
    _, tiling = TILINGS[dtype][number]
    for side, splits in ((4096, 1), (4095, 2)):
        launch = tiled_launch(Shape(side, side, side), np.dtype(dtype), tiling, splits)
        used = gpu.resources(compiled(launch, dtype))
        assert used.local == 0
        assert used.registers * tiling.threads * tiling.resident <= 65536
        assert used.shared * tiling.resident <= 233472


def test_the_champions_slab_is_all_multiply_adds():
    launch = LADDER.load("k17").launch(Shape(4096, 4096, 4096), np.dtype("float32"))
    code = compiled(launch, "float32")
    _, tiling = TILINGS["float32"][0]
    multiply_adds = tiling.thread[0] * tiling.thread[1] * tiling.depth
    assert code.count("fma.rn.ftz.f32") == multiply_adds  # the loop along k is written out once
    assert len(re.findall(r"ld\.shared\.v4\.f32", code)) == tiling.depth * sum(tiling.thread) // 4


@pytest.mark.parametrize("side", [4096, 4000, 4001])
@pytest.mark.parametrize(("rung", "name"), [("k21", "factors_kept"), ("k22", "last_round_split")])
def test_a_kernel_with_carried_addresses_fits_as_many_blocks_as_it_plans(rung, name, side):
    launch = LADDER.load(rung).launch(Shape(side, side, side), np.dtype("float64"))
    assert launch.kernel.py_func.__name__ == name
    used = gpu.resources(compiled(launch, "float64"))
    tiling = k21_factors_kept.TILING
    assert used.local == 0
    assert used.registers * tiling.threads * tiling.resident <= 65536
    assert used.shared * tiling.resident <= 233472


@pytest.mark.parametrize("rung", [k21_factors_kept, k22_last_round])
def test_a_slab_with_carried_addresses_is_one_block_with_few_instructions_beside_its_multiply_adds(rung):
    if slots.disassembler() is None:
        pytest.skip("nvdisasm is not installed")
    code = compiled(rung.own_launch(Shape(4096, 4096, 4096)), "float64")
    listing = slots.disassembled(gpu.assembled(code)[0])
    labelled = re.split(r"^\.L_x_\d+:$", listing, flags=re.MULTILINE)
    operations = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z]+)")
    loop = Counter(operations.findall(max(labelled, key=lambda block: block.count("LDGSTS") * block.count("DFMA"))))
    tiling = k21_factors_kept.TILING
    assert loop["DFMA"] == tiling.thread[0] * tiling.thread[1] * tiling.depth
    assert loop["LDGSTS"] == 24 and loop["BAR"] == loop["BRA"] == 1
    assert loop.total() - loop["DFMA"] <= 180  # 175 by nvJitLink 13.0
