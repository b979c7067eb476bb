"""Domains of a tree: each rank makes the cells of its own bodies, and receives from the others those that it may open. The
results have the bits of one process. The ranks are pretended (``pretended_team.py``); all trees use the kernels of
test_tree.py for accelerations."""

import hashlib

import numpy as np
import pytest
from pretended_team import run_ranks

import nbody
from nbody.forces.tree import domain, essential, graft
from nbody.forces.tree.bodies import Bodies
from nbody.forces.tree.options import TreeOptions
from nbody.forces.tree.tree import Tree
from nbody.law import Gravity
from nbody.parallel import ALONE
from nbody.particles import Particles

SOFTENED = Gravity(2.0, 3, "plummer", 0.05)


@pytest.fixture
def domains(monkeypatch):
    """Domains also where they do not pay. Returns a list of what was made: the sizes of domains, 0 for a whole tree."""
    monkeypatch.setattr(domain, "FEWEST", 200)
    made, begun, whole = [], domain.Domain.__init__, Bodies.all

    def begin(self, own, *others):
        begun(self, own, *others)
        made.append(len(own.order.order))

    monkeypatch.setattr(domain.Domain, "__init__", begin)
    monkeypatch.setattr(Bodies, "all", lambda *arguments: made.append(0) or whole(*arguments))
    return made


def placed(kind: str, count: int = 6000) -> Particles:
    """Bodies in places that are hard to divide."""
    random = np.random.default_rng(2)
    position, mass = random.normal(size=(count, 3)), random.uniform(0.5, 1.5, count)
    if kind == "two far apart":
        position[::2] += 1e4
    elif kind == "a line":
        position[:, 1:] = 0.0
    elif kind == "a dense core":
        position *= random.uniform(size=(count, 1)) ** 6
    elif kind == "many in one place":
        position[1000:2500] = position[0]
    elif kind == "half without mass":
        mass[::2] = 0.0
    return Particles(mass, position, np.zeros_like(position))


def tree_over(particles, team, accuracy=1e-3, evaluations=1):
    """The results of trees over the same bodies, and what the last evaluation counted."""
    costs, found = None, []
    some = np.arange(particles.count) % 7 == 0
    for _ in range(evaluations):
        options = TreeOptions(accuracy=accuracy)
        tree = Tree(particles.position, particles.mass, SOFTENED, "float32", options, team=team, costs=costs)
        scale = tree.scale()
        found += [tree.field(False, scale), tree.field(False, np.where(some, scale, np.float32(np.inf)), active=some)]
        found += [tree.field(False, scale)]
        costs = tree.costs
    return hashlib.sha256(b"".join(each.tobytes() for each in found)).hexdigest(), tree.work


@pytest.mark.parametrize(
    "kind", ["a ball", "two far apart", "a line", "a dense core", "many in one place", "half without mass"]
)
def test_domains_give_the_same_bits_and_interactions_on_any_ranks(kind, domains):
    """By a geometric criterion, then by |a|, then some of the bodies; with equal parts, then with parts of equal cost."""
    particles = placed(kind)
    expected = tree_over(particles, ALONE, evaluations=2)
    for ranks in (2, 3, 5):
        domains.clear()
        assert set(run_ranks(ranks, lambda team: tree_over(particles, team, evaluations=2))) == {expected}, ranks
        if kind != "many in one place" or ranks == 2:  # a quarter of the bodies can't be divided
            assert len(domains) == 2 * ranks and min(domains) > 256 and sum(domains) == 2 * particles.count


def test_domains_have_equal_costs_once_these_are_known(domains):
    """In a dense core a body has more neighbours, so that equal numbers of bodies are unequal work."""
    particles = nbody.plummer(20000, seed=1)

    def run(team):
        tree = Tree(particles.position, particles.mass, SOFTENED, "float32", TreeOptions(), team=team)
        tree.field(False, tree.scale())
        later = Tree(
            particles.position, particles.mass, SOFTENED, "float32", TreeOptions(), team=team, costs=tree.costs
        )
        later.field(False, tree.scale())
        return tree.costs.sum(), later.costs.sum()

    first, later = np.array(run_ranks(4, run)).T
    assert np.isclose(first.sum(), later.sum(), rtol=1e-3)
    assert later.max() < 1.1 * later.mean() < first.max()


def test_a_descent_that_misses_cells_takes_the_whole_tree(domains, monkeypatch):
    particles = placed("a ball")
    expected, _ = tree_over(particles, ALONE)
    monkeypatch.setattr(essential, "mark", lambda *arguments: None)  # only the branches are sent
    domains.clear()
    assert {found for found, _ in run_ranks(2, lambda team: tree_over(particles, team))} == {expected}
    assert len(domains) == 4 and min(domains[:2]) > 256 and domains[2:] == [0, 0]


def test_two_balls_far_apart_need_few_cells_of_each_other(domains, monkeypatch):
    """Each is a small cell for the other one."""
    sent = []

    def collected(own, chosen):
        sent.append((len(chosen), len(own.cells.first)))
        return graft.collected(own, chosen)

    monkeypatch.setattr(essential, "collected", collected)
    run_ranks(2, lambda team: tree_over(placed("two far apart"), team))
    assert 0 < sum(cells for cells, _ in sent) < 0.1 * sum(all_cells for _, all_cells in sent)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(20))
def test_domains_of_random_systems_give_the_same_bits(seed, domains):
    random = np.random.default_rng(seed)
    count, clumps = int(random.integers(4000, 30000)), int(random.integers(1, 30))
    centres, sizes = random.normal(size=(clumps, 3)), 10 ** random.uniform(-3, 0.5, clumps)
    member = random.integers(0, clumps, count)
    position = centres[member] + sizes[member, None] * random.standard_t(2, size=(count, 3))
    particles = Particles(10 ** random.uniform(-3, 0, count), position, np.zeros_like(position))
    accuracy = float(random.choice([1e-2, 1e-3]))
    expected = tree_over(particles, ALONE, accuracy, 2)
    for ranks in (2, 3, 7):
        domains.clear()
        assert set(run_ranks(ranks, lambda team: tree_over(particles, team, accuracy, 2))) == {expected}
        assert ranks > 3 or 0 not in domains
