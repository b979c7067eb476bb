"""The kernels as they are compiled for sm_90: no local memory, no float64 in float32, and the instructions they claim."""

import re
from collections import Counter
from functools import cache

import numpy as np
import pytest
from conftest import sample

from nbody import compute
from nbody.bench.roofline import slots
from nbody.linalg import LADDER
from nbody.linalg.intrinsics import AMPERE
from nbody.linalg.k17_champion import TILINGS, tiled_launch
from nbody.linalg.k21_float64_tensor_cores import TILINGS as FLOAT64_TILINGS
from nbody.linalg.k21_float64_tensor_cores import tiled_launch as float64_launch
from nbody.linalg.rung import ProductShape

pytest.importorskip("cuda.core", reason="the assembler comes with the extra cu13")

CLAIMS = {
    "vector loads": r"ld\.(global|shared)\.v[24]\.",
    "asynchronous copies": r"cp\.async\.c[ag]\.shared\.global",
    "tensor cores": r"mma\.sync\.aligned\.m16n8k8\.row\.col\.(f32\.tf32|f64)",
}
GPU_RUNGS = [name for name in LADDER if LADDER.load(name).on == "gpu"]


ptx = cache(compute.ptx)


def compiled(launch, dtype):
    """The PTX of a launch's kernel."""
    return ptx(launch.kernel, launch.signature(dtype))


FIRST = [(name, LADDER.load(name).dtypes[0]) for name in GPU_RUNGS]
OTHERS = [(name, dtype) for name in GPU_RUNGS for dtype in LADDER.load(name).dtypes[1:]]


@pytest.mark.parametrize("name,dtype", sample(FIRST + OTHERS, len(FIRST)))
def test_a_kernel_keeps_its_numbers_in_registers_and_its_claims(name, dtype):
    """Of the dtypes of a rung the first; the others, by the same text, in a campaign."""
    rung = LADDER.load(name)
    side = rung.largest or rung.example
    code = compiled(rung.launch(ProductShape(side, side, side), np.dtype(dtype)), dtype)
    assert ".local" not in code
    assert (".f64" in code) == (dtype == "float64")
    for claim in rung.claims:
        assert re.search(CLAIMS[claim], code), claim
    used = compute.resources(code)
    assert used.local == 0
    assert used.shared <= 49152


TILED = [(dtype, tiling) for dtype in TILINGS for _, tiling in TILINGS[dtype]]
TILED += [("float64 tensor cores", tiling) for _, tiling in FLOAT64_TILINGS]
ENDS = {k for k, (name, _) in enumerate(TILED) if k in (0, len(TILED) - 1) or name != TILED[k - 1][0]}


@pytest.mark.parametrize(
    "number", [k if k in ENDS else pytest.param(k, marks=pytest.mark.campaign) for k in range(len(TILED))]
)
def test_every_tiling_of_the_champions_fits_as_many_blocks_as_it_plans(number):
    """One tiling for whole matrices, the next for ragged ones."""
    (name, tiling), (side, splits) = TILED[number], ((4096, 1), (4095, 2))[number % 2]
    shape, dtype = ProductShape(side, side, side), np.dtype(name.split()[0])
    launch = tiled_launch(shape, dtype, tiling, splits) if name in TILINGS else float64_launch(shape, tiling, splits)
    used = compute.resources(compiled(launch, dtype.name))
    assert used.local == 0
    assert used.registers * tiling.threads * tiling.resident <= 65536
    assert (used.shared + launch.dynamic_shared) * tiling.resident <= 233472


def test_the_champions_slab_is_all_multiply_adds():
    launch = LADDER.load("k17").launch(ProductShape(4096, 4096, 4096), np.dtype("float32"))
    code = compiled(launch, "float32")
    _, tiling = TILINGS["float32"][0]
    multiply_adds = tiling.thread[0] * tiling.thread[1] * tiling.depth
    assert code.count("fma.rn.ftz.f32") == multiply_adds  # the loop along k is written out once
    assert len(re.findall(r"ld\.shared\.v4\.f32", code)) == tiling.depth * sum(tiling.thread) // 4


def test_an_a100_multiplies_with_the_instruction_that_it_has():
    tiling = FLOAT64_TILINGS[0][1]._replace(instruction=AMPERE)
    launch = float64_launch(ProductShape(4096, 4096, 4096), tiling, 1)
    code = compute.ptx(launch.kernel, launch.signature("float64"), (8, 0))
    assert set(re.findall(r"mma\.sync\.aligned\.(\w+)\.", code)) == {"m8n8k4"}
    used = compute.resources(code, (8, 0))
    assert used.local == 0 and used.registers * tiling.threads <= 65536
    assert launch.dynamic_shared <= 163 << 10  # what an A100 has for a block


def test_the_float64_tensor_cores_need_few_instructions_beside_theirs():
    """No register is moved for an instruction's operands, and each 128-bit read brings two numbers for a lane."""
    if slots.disassembler() is None:
        pytest.skip("nvdisasm is not installed")
    tiling = FLOAT64_TILINGS[0][1]
    code = compiled(float64_launch(ProductShape(4096, 4096, 4096), tiling, 1), "float64")
    listing = slots.disassembled(compute.assembled(code)[0])
    labelled = re.split(r"^\.L_x_\d+:$", listing, flags=re.MULTILINE)
    operations = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z]+)")
    loop = Counter(operations.findall(max(labelled, key=lambda block: block.count("DMMA"))))
    (rows, columns), depth = tiling.warp, tiling.depth
    assert loop["DMMA"] == rows // 8 * columns // 16 * depth // 8
    assert loop["LDS"] <= (rows + columns) * depth // 64 + 3 and loop["BAR"] == 1  # ptxas adds three that do nothing
    assert loop["LDL"] == loop["STL"] == 0
    assert loop["MOV"] + loop["IMAD"] < loop["DMMA"]
