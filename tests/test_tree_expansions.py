"""Cartesian expansions: each operator against a direct sum in float64; the error falls as the order says."""

import math
import sys

import numpy as np
import pytest

from nbody.forces.tree.expansions.formulas import m2p_text
from nbody.forces.tree.expansions.operators import SUMS, VECTOR, Basis, operations, operator_text, operators


def rsqrt(x):
    return 1 / math.sqrt(x)


KINDS = [(3, False), (3, True), (2, False), (2, True)]
IDS = ["3-D", "3-D softened", "2-D", "2-D softened"]
LENGTH2 = 0.3**2


def m2p(basis, degree, real=np.float64, rsqrt=rsqrt):
    """The function ``m2p(dx, dy, dz, length2, moments, sums)`` of the moments up to a degree."""
    text = operator_text(basis, [*VECTOR, "length2", "moments", "sums"], SUMS, m2p_text, degree)
    return text.function("operator", real, rsqrt=rsqrt)


class Problem:
    """Bodies in a ball of radius 0.3 at the origin, and a target 0.25 from the point (2, 1, -1)/√6 · distance."""

    def __init__(self, order, dimensions, softened, distance=1.5):
        random = np.random.default_rng(5)
        self.basis = Basis(order, dimensions, softened, potential=True)
        self.length2 = LENGTH2 if softened else 0.0
        self.x = random.uniform(-0.17, 0.17, (20, 3))
        self.m = random.uniform(0.5, 2, 20)
        self.centre = np.array([2.0, 1, -1]) / math.sqrt(6) * distance
        self.body = self.centre + 0.25 * np.array([0.6, -0.64, 0.48])
        if dimensions == 2:
            self.x[:, 2] = self.centre[2] = self.body[2] = 0
        self.mean = self.m @ self.x / self.m.sum()
        self.ops = operators(self.basis, np.float64, rsqrt)

    def field(self):
        """(ax, ay, az, phi) at the target, summed directly."""
        d = self.x - self.body
        u = 1 / np.sqrt((d**2).sum(1) + self.length2)
        return np.array([*((self.m * u**3) @ d), -(self.m @ u)])

    def moments(self, centre=None):
        """The moments about a centre, the centre of mass by default."""
        about = self.mean if centre is None else centre
        return sum(np.array(self.ops.p2m(*(x - about), m)) for x, m in zip(self.x, self.m, strict=True))

    def error(self, field):
        """Relative errors of the acceleration and of the potential."""
        a, phi, exact = np.array(field[:3]), field[3], self.field()
        return np.linalg.norm(a - exact[:3]) / np.linalg.norm(exact[:3]), abs(phi / exact[3] - 1)


ZERO = (0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("dimensions,softened", KINDS, ids=IDS)
@pytest.mark.parametrize("order", range(2, 9))
def test_the_way_through_every_operator_has_the_error_of_its_order(order, dimensions, softened):
    """Source and target of radius 0.3 and 0.25 at a distance of 1.5: terms fall like (0.55/1.5)^n."""
    problem = Problem(order, dimensions, softened)
    ops = problem.ops
    half = problem.x[:, 0] > 0
    total, mean = np.zeros(len(problem.basis.moments)), problem.mean
    for part in (half, ~half):  # two children, each about its own centre of mass, moved to the parent's
        x, m = problem.x[part], problem.m[part]
        centre = m @ x / m.sum()
        child = sum(np.array(ops.p2m(*(xj - centre), mj)) for xj, mj in zip(x, m, strict=True))
        total += np.array(ops.m2m(*(centre - mean), tuple(child)))
    assert total == pytest.approx(problem.moments(), rel=1e-12, abs=1e-14)
    local = ops.m2l(*(mean - problem.centre), problem.length2, tuple(total), (0.0,) * len(problem.basis.locals))
    child = problem.centre + 0.5 * (problem.body - problem.centre)
    moved = ops.l2l(*(problem.centre - child), local)
    direct = ops.l2p(*(problem.centre - problem.body), local, ZERO)
    assert ops.l2p(*(child - problem.body), moved, ZERO) == pytest.approx(direct, rel=1e-12, abs=1e-14)
    bound = 2 * (0.55 / 1.5) ** order
    assert problem.error(direct)[0] < bound and problem.error(direct)[1] < bound


@pytest.mark.parametrize("dimensions,softened", KINDS, ids=IDS)
def test_errors_of_each_order_fall_with_distance_as_they_must(dimensions, softened):
    """Twice the distance divides the relative error of the acceleration by 2^p for M2L (|n| + |k| ≤ p), and by 2^(q + 1)
    for M2P up to degree q. Without softening: it would change with the distance."""
    for order in range(2, 7):
        near, far = (Problem(order, dimensions, False, distance) for distance in (3.0, 6.0))
        errors = {}
        for problem in (near, far):
            moments = tuple(problem.moments())
            zero = (0.0,) * len(problem.basis.locals)
            local = problem.ops.m2l(*(problem.mean - problem.centre), 0.0, moments, zero)
            errors[problem] = [
                problem.error(field)[0]
                for field in (
                    problem.ops.l2p(*(problem.centre - problem.body), local, ZERO),
                    m2p(problem.basis, order - 1)(*(problem.mean - problem.body), 0.0, moments, ZERO),
                    m2p(problem.basis, 2)(*(problem.mean - problem.body), 0.0, moments, ZERO),
                )
            ]
        gains = np.log2(np.array(errors[near]) / np.array(errors[far]))
        assert np.all(gains > np.array([order, order, 3]) - 0.7), (order, gains)


def test_the_norm_of_one_body_is_its_mass_times_powers_of_its_distance():
    for dimensions, softened in KINDS:
        ops = operators(Basis(8, dimensions, softened), np.float64, rsqrt)
        x = np.array([0.3, -0.7, 0.0 if dimensions == 2 else 0.5])
        squares = ops.norms(ops.p2m(*x, 2.0))
        assert np.sqrt(squares) == pytest.approx([2 * np.linalg.norm(x) ** n for n in range(2, 9)], rel=1e-12)


def test_the_norm_does_not_depend_on_the_axes():
    random = np.random.default_rng(2)
    rotation, _ = np.linalg.qr(random.normal(size=(3, 3)))
    ops = operators(Basis(6), np.float64, rsqrt)
    x, m = random.normal(size=(9, 3)), random.uniform(size=9)
    turned = x @ rotation.T
    norms = [
        ops.norms(tuple(sum(np.array(ops.p2m(*xj, mj)) for xj, mj in zip(each, m, strict=True)))) for each in (x, turned)
    ]
    assert norms[0] == pytest.approx(norms[1], rel=1e-11)


def test_float32_stays_float32():
    """A literal of float64 would make NumPy's result float64."""
    real = np.float32
    basis, root = Basis(4, potential=True), lambda x: real(1 / math.sqrt(x))
    ops = operators(basis, real, root)
    moments = ops.p2m(real(0.1), real(0.2), real(0.3), real(1))
    local = ops.m2l(real(1), real(2), real(3), real(0), moments, (real(0),) * len(basis.locals))
    sums = ops.l2p(real(0.1), real(0.1), real(0.1), ops.l2l(real(0.1), real(0), real(0), local), (real(0),) * 4)
    quadrupole = m2p(basis, 2, real, root)(real(1), real(2), real(3), real(0), moments, sums)
    for values in (moments, ops.m2m(real(1), real(1), real(1), moments), local, quadrupole, ops.norms(moments)):
        assert {type(value) for value in values} == {real}


def test_folding_makes_the_costly_operator_cheaper():
    assert operations(Basis(4))["m2l"] < 0.85 * operations(Basis(4, softened=True))["m2l"]


def test_an_operator_belongs_to_a_module():
    """Else pickle asks all modules for it, and the first run of a tree on the CPU imports ``numba.cuda``."""
    assert m2p(Basis(2), 2).__module__ in sys.modules
