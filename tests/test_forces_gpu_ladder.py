"""The upper rungs of the GPU ladder: how the triangle is shared out, the compiled form, and forces on a device."""

import math
import re
from collections import Counter

import numpy as np
import pytest
from combinations import every_pair
from compiled_forces import compiled
from conftest import random_bodies, sample

from nbody.forces import ENGINES
from nbody.forces.api import accelerations
from nbody.forces.direct import gpu_triangle
from nbody.forces.direct.gpu_triangle import (
    CardLimits,
    PairTiling,
    card_limits,
    divided,
    first_unit,
    units_before,
)
from nbody.forces.problem import Problem
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.state import Outputs

MASSES = ("equal", "product", "separate")
OUTPUTS = (Outputs.ACCELERATION, Outputs.ENERGY, Outputs.POTENTIAL)
TILINGS = [PairTiling(1, 8), PairTiling(2, 4), PairTiling(4, 8)]
WIDE = CardLimits(blocks=132, budget=1 << 31, piece=1 << 40)


@pytest.fixture
def shared(monkeypatch):
    """Runs are divided into segments for any number of bodies."""
    monkeypatch.setattr(gpu_triangle, "SEGMENTS_FROM", 1)


def units_of(work, launch):
    """What the kernel's blocks do, in plain Python: (run, tile, chunk) for every unit of a launch."""
    chunks, bodies = work.chunks, work.tiling.bodies
    for run in range(launch.run, launch.run + launch.blocks):
        first, last = (int(first_unit(each, work.runs, *work.run_units)) for each in (run, run + 1))
        assert (first, last) == (run * work.units // work.runs, (run + 1) * work.units // work.runs)
        tile = launch.first
        for unit in range(first, last):
            while units_before(tile + 1, chunks, bodies) <= unit:
                tile += 1
            yield run, tile, tile * bodies + unit - units_before(tile, chunks, bodies)


@pytest.mark.parametrize(
    "tiling,count,resident,limits,devices",
    every_pair(
        TILINGS,
        (1, 33, 1000, 4097),
        (1, 7, 132, 5000),
        ((1 << 20, 1 << 40), (1 << 31, 1 << 22), (1 << 31, 1 << 40)),
        (1, 2, 3),
    ),
)
def test_every_pair_of_a_tile_and_a_chunk_is_worked_on_once(shared, tiling, count, resident, limits, devices):
    chunks, tiles = -(-count // tiling.chunk), -(-count // tiling.tile)
    met = np.zeros((tiles, chunks), int)
    work = divided(count, tiling, 4, CardLimits(resident, *limits))
    begin = [work.segments * k // devices for k in range(devices + 1)]
    for launch in (launch for k in range(devices) for launch in work.launches(begin[k], begin[k + 1])):
        slots = {}
        for run, tile, chunk in units_of(work, launch):
            met[tile, chunk] += 1
            slot = run - launch.run + tile - launch.first
            assert slots.setdefault(slot, (run, tile)) == (run, tile)  # no two segment a place in 'rows'
            assert slot < launch.blocks + launch.tiles and launch.first <= tile < launch.first + launch.tiles
    on_or_above = np.arange(chunks) >= tiling.bodies * np.arange(tiles)[:, None]
    assert np.array_equal(met, on_or_above.astype(int))


def test_no_run_has_more_than_one_unit_more_than_another():
    for tiling in TILINGS:
        for count in (20480, 40000):
            work = divided(count, tiling, 4, WIDE._replace(blocks=132 * 5))
            (launch,) = work.launches(0, work.segments)
            done = np.bincount([run for run, _, _ in units_of(work, launch)])
            assert len(done) == work.runs and done.max() - done.min() <= 1


def test_a_million_bodies_keep_to_the_budget():
    work = divided(1 << 20, PairTiling(4, 13), 4, WIDE)
    launches = list(work.launches(0, work.segments))
    assert len(launches) > 1 and len(launches) <= work.segments // work.step
    assert max(4 * work.columns(launch) for launch in launches) <= WIDE.budget
    assert max(4 * work.rows(launch) for launch in launches) < 256 << 20


@pytest.mark.parametrize("devices", [1, 2, 4, 8])
@pytest.mark.parametrize("count", [65536, 262144, 1 << 20])
def test_a_part_of_a_power_of_two_fills_a_card(count, devices):
    """For two GPUs from 65536 bodies on, for eight from 262144 on, each part has whole waves of blocks."""
    tiling = PairTiling(4, 18) if count > 131072 else PairTiling(2, 18)
    blocks = 132 * 8 // tiling.warps
    work = divided(count, tiling, 4, CardLimits(blocks, 2 << 30, 1 << 39))
    if count == 65536 and devices > 2:
        return
    assert work.runs % (blocks * devices) == 0
    for launch in work.launches(0, work.segments // devices):
        assert launch.blocks % (work.runs // work.segments) == 0


@pytest.fixture
def card(monkeypatch):
    """A function that puts a card of so many GiB into this machine."""
    from nbody import compute
    from nbody.forces.direct.gpu_pieces import interactions_per_piece

    def put(memory, free=None):
        size = int(memory * 2**30)
        facts = compute.DeviceProperties("a card", (8, 6), 20, 1.7e9, size, int(size if free is None else free), "1")
        monkeypatch.setattr(compute, "available", lambda: True)
        monkeypatch.setattr(compute, "facts", lambda: facts)
        interactions_per_piece.cache_clear()

    yield put
    interactions_per_piece.cache_clear()


def test_a_small_card_keeps_small_sums_and_what_is_free_has_no_say(card):
    from nbody.forces.direct.gpu_symmetric import SymmetricEngine

    found = []
    for memory, free in ((1.9, None), (1.99, None), (1.9, 1 << 20), (8.1, None), (24, None), (139, None)):
        card(memory, free)
        found.append(card_limits(PairTiling(4, 8), np.dtype(np.float32), 60).budget >> 20)
    assert found == [256, 256, 256, 2048, 2048, 2048]
    card(2)
    problem = Problem(Gravity(), "float32")
    assert SymmetricEngine.memory(problem._replace(particles=131072)).own < 0.35 * 2**30
    assert SymmetricEngine.memory(problem._replace(particles=1 << 20)).own < 0.8 * 2**30


def test_a_launch_is_no_longer_than_a_piece(card):
    """A card with 20 multiprocessors: its memory would allow launches five times as long."""
    card(24)
    tiling = PairTiling(4, 13)
    limits = card_limits(tiling, np.dtype(np.float32), 60)
    work = divided(1 << 21, tiling, 4, limits)
    pairs = [launch.units * tiling.tile * tiling.chunk for launch in work.launches(0, work.segments)]
    assert max(pairs) * 2 <= limits.piece < 4 * max(pairs) and len(pairs) > 40
    assert sum(pairs) * 2 == pytest.approx((1 << 21) ** 2, rel=0.01)


def with_masses(mass):
    """Bodies at random starts, of given masses."""
    bodies = random_bodies(len(mass))
    return Particles(np.asarray(mass, float), bodies.position, bodies.velocity)


def test_masses_choose_the_form_of_the_kernel():
    from nbody.forces.direct.gpu_pairs import masses_of
    from nbody.law import Gravity

    def form(mass, length=0.01, scale=1.0, real=np.float32):
        bodies = with_masses(mass)
        bodies = Particles(bodies.mass, scale * bodies.position, bodies.velocity)
        return masses_of(bodies, Gravity(1.0, 3, "plummer", length), real)

    assert form(np.full(9, 0.25)) == "equal"
    assert form(np.linspace(1, 2, 9)) == "product"
    assert form([0.0, 1.0, 2.0]) == "separate"  # a force of zero says nothing about an acceleration
    assert form([1e-30, 1.0]) == "separate"  # m_i m_j may leave float32's range
    assert form([2e-12, 3e-12], scale=1e8) == "separate"  # and m_i m_j / r³: 6e-24 · 1e-24
    assert form([5e11, 9e11], length=1e-5) == "separate"  # 4.5e23 · 1e15
    assert form([5e11, 9e11], length=1e-5, real=np.float64) == "product"


@pytest.mark.parametrize("name,most", [("gpu-unrolled", 64), ("gpu-split", 80)])
@pytest.mark.parametrize("dimensions", [3, 2])
@pytest.mark.parametrize("potential", [Outputs.ACCELERATION, Outputs.POTENTIAL])
def test_bodies_wait_in_registers(name, most, dimensions, potential):
    code, resources = compiled(name, dimensions, potential)
    assert ".f64" not in code and ".local" not in code
    assert resources.local == 0 and resources.registers <= most
    assert dimensions == 2 or "v4.f32" in code  # a body comes in one load


KERNELS = [
    *((*each, 3, 20480) for each in zip(MASSES, OUTPUTS, strict=True)), ("equal", Outputs.POTENTIAL, 2, 262144),
    ("product", Outputs.ENERGY, 3, 262144), ("separate", Outputs.ENERGY, 2, 20480),
    *((masses, outputs, 3, 20480) for k, masses in enumerate(MASSES) for outputs in OUTPUTS if outputs is not OUTPUTS[k]),
]  # fmt: skip
"""Of which four have each form and each output; a kernel takes more than a second to compile."""


@pytest.mark.parametrize("masses,outputs,dimensions,count", sample(KERNELS, 4))
def test_the_symmetric_kernel_keeps_bodies_and_sums_in_registers(masses, outputs, dimensions, count):
    """And a force is rounded the same whether the potential is asked for or not. Each pair's three multiply-adds for r² and
    six for the sums are written as such, so that no compiler may round a product by itself in one kernel and not in the
    other: the bits of a run must not depend on what it records."""
    from nbody.forces.direct.gpu_pairs import resident_warps
    from nbody.forces.direct.gpu_symmetric import tiling_for

    tiling = tiling_for(count, "float32", masses)
    code, resources = compiled("gpu-symmetric", dimensions, outputs, masses=masses, tiling=tiling)
    assert ".f64" not in code and ".local" not in code
    warps = resident_warps(tiling.bodies)
    assert resources.local == 0 and resources.registers <= min(255, 65536 // (32 * warps))
    # The pairs of a turn are written out once, for the turn in which a body meets itself once more, and never rolled up.
    roots = code.count("rsqrt.approx.ftz.f32")
    assert tiling.bodies <= roots <= tiling.bodies * (2 if Outputs.ENERGY in outputs else 1)
    assert dimensions == 2 or code.count("fma.rn.ftz.f32") == 9 * roots


@pytest.mark.parametrize("masses", sample(MASSES, 1))
def test_the_energy_takes_no_block_of_a_small_kernel_from_a_multiprocessor(masses):
    """The number of blocks is the same for both, and what fits only without the energy would come in a second wave."""
    from nbody.forces.direct.gpu_symmetric import tiling_for

    def blocks(outputs):
        tiling = tiling_for(20480, "float32", masses)
        _, resources = compiled("gpu-symmetric", 3, outputs, masses=masses, tiling=tiling)
        return 65536 // (32 * 8 * math.ceil(resources.registers / 8))

    assert blocks(Outputs.ENERGY) >= min(blocks(Outputs.ACCELERATION), 12)


@pytest.mark.parametrize(
    "tiling,dimensions,potential",
    sample([(PairTiling(1, 9), 3, OUTPUTS[0]), (PairTiling(4, 10), 2, OUTPUTS[1]), (PairTiling(4, 10), 3, OUTPUTS[2])], 2),
)
def test_mixed_precision_computes_pairs_in_float32_and_only_adds_up_in_float64(tiling, dimensions, potential):
    """float64 splits a coordinate when a body is loaded (rows, and one column), and adds a row's sums to its total."""
    code, resources = compiled("gpu-symmetric", dimensions, potential, tiling=tiling, mixed=True)
    done = Counter(re.findall(r"^\s+(add|sub|mul|fma|neg|div|sqrt|rsqrt|rcp)\S*\.f64", code, re.MULTILINE))
    components = 4 if Outputs.ENERGY in potential else 3
    # What a tile's rows have from each other for the energy is halved.
    assert set(done) == {"add", "sub"} | ({"mul"} if potential == Outputs.ENERGY else set())
    assert done["mul"] <= tiling.bodies
    assert done["add"] <= components * tiling.bodies and done["sub"] <= 3 * (tiling.bodies + 1)
    assert tiling.bodies <= code.count("rsqrt.approx.ftz.f32") <= tiling.bodies * (2 if Outputs.ENERGY in potential else 1)
    # A frame's kernel may keep two numbers of a thread elsewhere than in registers.
    assert (
        ".local" not in code and resources.local <= (8 if Outputs.ENERGY in potential else 0) and resources.registers <= 168
    )


def judged(bodies, **law):
    """Largest relative error of a rung's float32 forces, and of its potential."""
    here = {"softening": "plummer", "length": 0.05, "potential": True}
    a, phi = accelerations(bodies.position, bodies.mass, engine="reference", **here)
    got, got_phi = accelerations(bodies.position, bodies.mass, precision="float32", **here, **law)
    scale = np.sqrt((a**2).sum(axis=1)).mean()
    return np.abs(got - a).max() / scale, np.abs(got_phi - phi).max() / np.abs(phi).mean()


@pytest.mark.gpu
@pytest.mark.parametrize("masses,count", every_pair(("equal", "product", "some are zero"), (31, 33, 256, 257, 3000, 20001)))
def test_the_symmetric_engine_is_right_for_any_masses_and_any_count(masses, count):
    mass = np.random.default_rng(1).uniform(0.5, 1.5, count)
    if masses == "equal":
        mass[:] = 1.0
    elif masses == "some are zero":
        mass[::3] = 0.0
    assert max(judged(with_masses(mass), engine="gpu-symmetric")) < 5e-6


@pytest.mark.gpu
@pytest.mark.parametrize(
    "softening,dimensions,precision,masses",
    every_pair(("plummer", "cutoff", "none"), (2, 3), ("float32", "mixed", "float64"), MASSES),
)
def test_the_energy_alone_is_that_of_the_potentials_and_changes_no_bit(softening, dimensions, precision, masses):
    """1001 bodies leave starts in the last chunk and tile; one body has nothing to be bound to."""
    engine = ENGINES.load("gpu-symmetric")(
        Gravity(2.5, dimensions, softening, 0.0 if softening == "none" else 0.05), precision
    )
    for count in (1, 1001):
        bodies = random_bodies(count, dimensions)
        if masses != "product":
            bodies.mass[: None if masses == "equal" else count // 5] = 0.7 if masses == "equal" else 0.0
        acceleration, energy = {}, {}
        for outputs in OUTPUTS:
            state = engine.load(bodies)
            engine.evaluate(state, outputs)
            acceleration[outputs], phi = state.values("acceleration", "potential")
            energy[outputs] = state.frames.snapshot().wait().sums[1]
        for outputs in (Outputs.ENERGY, Outputs.POTENTIAL):
            assert np.array_equal(acceleration[outputs], acceleration[Outputs.ACCELERATION])
        assert energy[Outputs.POTENTIAL] == pytest.approx(0.5 * bodies.mass @ phi, rel=1e-6)
        rounding = 1e-12 if precision == "float64" else 1e-6
        assert energy[Outputs.ENERGY] == (pytest.approx(energy[Outputs.POTENTIAL], rel=rounding) if count > 1 else 0)
        assert count == 1 or state.workspace.masses == masses


@pytest.mark.gpu
def test_launches_change_no_bit_and_shares_change_rounding_only(monkeypatch):
    bodies = random_bodies(20001)
    law = {"softening": "plummer", "length": 0.05, "engine": "gpu-symmetric", "precision": "float32"}
    alone = accelerations(bodies.position, bodies.mass, **law)
    monkeypatch.setattr(gpu_triangle, "SEGMENTS_FROM", 1)
    whole = accelerations(bodies.position, bodies.mass, **law)
    monkeypatch.setattr(gpu_triangle, "COLUMNS_BUDGET", 3_000_000)
    launched = accelerations(bodies.position, bodies.mass, **law)
    assert np.array_equal(whole, launched)
    assert np.abs(whole - alone).max() < 2e-6 * np.abs(whole).mean()


@pytest.mark.gpu
def test_forces_are_equal_and_opposite():
    """Σ m a is what the roundings of the sums leave, some 1e-7 of Σ m |a| over √N."""
    bodies = random_bodies(20000)
    a = accelerations(
        bodies.position, bodies.mass, softening="plummer", length=0.05, engine="gpu-symmetric", precision="float32"
    )
    assert np.abs(bodies.mass @ a).max() < 1e-7 * (bodies.mass @ np.linalg.norm(a, axis=1))


@pytest.mark.gpu
@pytest.mark.parametrize("count", [2, 31, 33, 1001, 9000])
def test_the_lanes_of_the_split_engine_share_out_every_body(count):
    assert max(judged(random_bodies(count), engine="gpu-split")) < 5e-6
