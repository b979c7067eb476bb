"""Work that is divided among ranks gives the bits of one process; the ranks are pretended (``pretended_team.py``)."""

import hashlib
from itertools import pairwise, permutations

import numpy as np
import pytest
from pretended_team import run_ranks

from nbody.forces import ENGINES
from nbody.forces.compute_units import ComputeUnits
from nbody.forces.direct import cpu_tiles
from nbody.forces.direct.cpu_pairs import gravitate_for
from nbody.forces.direct.cpu_rows import SUMS, rows_for
from nbody.forces.layers import layered
from nbody.initial.plummer import PlummerSphere
from nbody.integrators import INTEGRATORS
from nbody.integrators.integrator import Motion
from nbody.law import Gravity
from nbody.parallel import ALONE, segments
from nbody.parallel.segments import add_nodes, add_over_ranks, cover, segment_count
from nbody.particles import Particles
from nbody.state import Column, Outputs

NEWTON, SOFTENED = Gravity(1.0, 3, "none"), Gravity(2.0, 3, "plummer", 0.05)
LAWS = [("plummer", 0.05), ("spline", 0.1), ("cutoff", 0.01), ("none", 0.0)]


def tree_sum(values):
    """The referee: left half plus right half."""
    if len(values) == 1:
        return values[0].copy()
    half = len(values) // 2
    return tree_sum(values[:half]) + tree_sum(values[half:])


def bodies(count: int, dimensions: int = 3, massless: float = 0.0, names: tuple[str, ...] = ("",)) -> Particles:
    random = np.random.default_rng(count)
    mass = random.uniform(0.5, 1.5, count) * (random.uniform(size=count) >= massless)
    rows = random.normal(size=(2, count, dimensions))
    return Particles(mass, *rows, species=np.arange(count) % len(names), species_names=names)


@pytest.fixture
def all_divided(monkeypatch):
    """Divide also what does not pay."""
    monkeypatch.setattr(segments, "WORTH", 0)


@pytest.mark.parametrize("number", [1 << k for k in range(9)])
def test_any_ranks_add_shares_like_one(number):
    values = np.random.default_rng(number).normal(size=(number, 5)).astype(np.float32)
    expected = tree_sum(values)
    for ranks in range(1, 10):
        bounds = [number * p // ranks for p in range(ranks + 1)]
        covers = [cover(a, b) for a, b in pairwise(bounds)]
        nodes = [node for each in covers for node in each]
        assert [first for first, _ in nodes] == [sum(size for _, size in nodes[:k]) for k in range(len(nodes))]
        assert all(size & (size - 1) == 0 and first % size == 0 for first, size in nodes)
        assert max(map(len, covers)) <= max(1, 2 * number.bit_length() - 3)
        sums = [tree_sum(values[first : first + size]) for first, size in nodes]
        assert np.array_equal(add_nodes(nodes, sums), expected)
    assert segment_count(2 * number - 1, 1 << 20) == segment_count(1 << 20, number) == number


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 7, 16])
def test_each_rank_gets_the_sum_of_all_shares_in_its_rows(ranks):
    number, rows = 32, 45
    values = np.random.default_rng(3).normal(size=(number, rows, 2)).astype(np.float32)
    bounds = [rows * p * p // ranks**2 for p in range(ranks + 1)]  # uneven, and some empty

    def part(team):
        own = cover(*team.own_range(number))
        mine = np.array([tree_sum(values[first : first + size]) for first, size in own]).reshape(-1, rows, 2)
        return add_over_ranks(team, number, mine, bounds)

    assert np.array_equal(np.concatenate(run_ranks(ranks, part)), tree_sum(values))


def evaluated(name, particles, gravity, precision, requests, targets=None):
    """The rank's function: all results of an engine, one evaluation after the other."""

    def run(team):
        engine = layered(ENGINES.load(name)(gravity, precision, team=team))
        state = engine.load(particles)
        found = []
        for outputs in requests:
            if Outputs.JERK in outputs:
                state.add(Column("jerk", "D"))
            state.position *= state.dtype.type(0.99)
            state.invalidate()
            engine.evaluate(state, outputs, targets)
            found += [state.acceleration.copy(), state.potential.copy()]
            found += [state.jerk.copy()] if Outputs.JERK in outputs else []
        return hashlib.sha256(b"".join(each.tobytes() for each in found)).hexdigest()

    return run


def assert_same_on(ranks, run):
    expected = run(ALONE)
    for size in ranks:
        assert set(run_ranks(size, run)) == {expected}, f"{size} ranks"


@pytest.mark.parametrize(
    "law,dimensions,precision",
    [(LAWS[0], 2, "float32"), (LAWS[1], 3, "float32"), (LAWS[2], 3, "float64"), (LAWS[3], 2, "float64")],
)  # test_forces_cpu.py has the same kernels
def test_the_cpu_engine_gives_the_same_bits_on_any_ranks(law, dimensions, precision, all_divided):
    gravity = Gravity(1.0, dimensions, *law)
    requests = [Outputs.ACCELERATION, Outputs.POTENTIAL, Outputs.ACCELERATION]
    for count in (1, 257, 2345):
        run = evaluated("cpu", bodies(count, dimensions), gravity, precision, requests)
        assert_same_on((2, 3, 16) if count > 1 else (2,), run)


@pytest.mark.parametrize("massless", [0.0, 0.5])
@pytest.mark.parametrize("length", [0.05, {"a": 0.05, "b": 0.2}])
def test_rows_are_divided_with_the_same_bits(length, massless, all_divided):
    names = ("a", "b") if isinstance(length, dict) else ("",)
    particles = bodies(1025, 3, massless, names)
    gravity = Gravity(softening="plummer", length=length)
    for requests, targets in (
        ([Outputs.POTENTIAL], None),
        ([Outputs.JERK], None),
        ([Outputs.ACCELERATION], np.arange(5, 1025, 7)),
    ):
        assert_same_on((3, 5), evaluated("cpu", particles, gravity, "float64", requests, targets))
    assert_same_on((2,), evaluated("cpu", particles, gravity, "float32", [Outputs.POTENTIAL]))


def placed(arrays, order, gap):
    """Copies of arrays in one piece of memory, in another order, ``gap`` bytes apart."""
    sizes = [-(-each.nbytes // 64) * 64 + gap for each in arrays]
    memory = cpu_tiles.aligned_zeros((sum(sizes),), np.dtype(np.uint8))
    memory[:] = 255  # NaN between the arrays
    found, start = [None] * len(arrays), 0
    for k in order:
        place = memory[start : start + arrays[k].nbytes].view(arrays[k].dtype).reshape(arrays[k].shape)
        place[...] = arrays[k]
        found[k], start = place, start + sizes[k]
    return found


def assert_no_bit_depends_on_places(kernel, arrays):
    """Vectorized loops check at run time whether arrays overlap, and sum in another order if they might."""
    results = set()
    for order in permutations(range(len(arrays))):
        for gap in (0, 64, 4096):
            each = placed(arrays, order, gap)
            kernel(*each)
            results.add(hashlib.sha256(b"".join(array.tobytes() for array in each)).hexdigest())
    assert len(results) == 1


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_the_bits_do_not_depend_on_where_arrays_lie(precision):
    """Two processes have other heaps."""
    count, real = 600, np.dtype(precision)
    position = bodies(count).position.astype(real)
    own = cpu_tiles.Segments(0, 4, 4)
    tiles = cpu_tiles.Tiles.allocate(count, real, own)
    cpu_tiles.pack(position, np.ones(count, real), ComputeUnits(1.0, 1.0, 1.0, 1.0), tiles)
    gravitate = gravitate_for("plummer", 3, False, precision)

    def pairs(*arrays):
        each = cpu_tiles.Tiles(*arrays)
        gravitate(count, 0, 3, own, real.type(0.01), each)
        each.partial[...] = 0  # of the last pair of each thread

    assert_no_bit_depends_on_places(pairs, tiles)


def test_the_bits_of_rows_do_not_depend_on_where_arrays_lie():
    count = 600
    rows = rows_for("plummer", Outputs.JERK, "float64")
    arrays = [*np.random.default_rng(2).normal(size=(2, 3, count)), np.ones(count), np.zeros((9, SUMS))]
    assert_no_bit_depends_on_places(lambda x, v, m, sums: rows(np.arange(0, count, 67), x, v, m, 0.01, sums), arrays)


def test_few_interactions_are_left_to_every_rank():
    run = evaluated("cpu", bodies(300), Gravity(softening="plummer", length=0.05), "float64", [Outputs.ACCELERATION])

    class Silent(type(ALONE)):
        rank, size = 1, 2
        gather_rows = exchange = all = None  # nothing is exchanged

    assert run(Silent()) == run(ALONE)


@pytest.mark.parametrize(
    ("precision", "gravity"), [pytest.param("float64", NEWTON, marks=pytest.mark.campaign), ("float32", SOFTENED)]
)
def test_the_tree_gives_the_same_bits_on_any_ranks(precision, gravity, all_divided):
    """All bodies twice (first with a geometric criterion), the potential, then some of the bodies."""
    requests = [Outputs.ACCELERATION, Outputs.ACCELERATION] + [Outputs.POTENTIAL] * (precision == "float32")
    particles = bodies(3000)
    assert_same_on((2, 5), evaluated("cpu-tree", particles, gravity, precision, requests))
    some = np.arange(0, 3000, 3)
    assert_same_on((3,), evaluated("cpu-tree", particles, gravity, precision, [Outputs.ACCELERATION] * 2, some))


def test_ranks_agree_on_what_the_tree_computed(all_divided):
    def run(team):
        engine = ENGINES.load("cpu-tree")(SOFTENED, "float32", team=team)
        state = engine.load(bodies(3000))
        engine.evaluate(state)
        return engine.work(state)

    assert set(run_ranks(4, run)) == {run(ALONE)}


@pytest.mark.parametrize("scheme", ["hermite4_block", "hermite6_block", "leapfrog_block"])
def test_block_steps_move_bodies_to_the_same_bits_on_any_ranks(scheme, monkeypatch):
    """Blocks of more than half of the bodies are divided, smaller ones are left to every rank."""
    count = 96
    monkeypatch.setattr(segments, "WORTH", count * count // 2)
    gravity = Gravity(softening="plummer", length=1e-2)
    particles = PlummerSphere().generate(count, gravity, np.random.default_rng(5))

    def run(team):
        kind = INTEGRATORS.load(scheme)
        engine = ENGINES.load("cpu")(gravity, "float64", team=team)
        motion = Motion(engine, engine.load(particles))
        integrator = kind(0.125)
        integrator.prepare(motion)
        integrator.start(motion)
        integrator.advance(motion, 40 if scheme != "leapfrog_block" else 2, 0.25)
        assert scheme == "leapfrog_block" or integrator.report(motion).pairs_per_step < count**2  # there are smaller blocks
        return hashlib.sha256(motion.state.position.tobytes() + motion.state.velocity.tobytes()).hexdigest()

    assert_same_on((2, 3), run)
