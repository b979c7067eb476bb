"""Warnings and errors before a run: numbers that its precision can't represent."""

import numpy as np
import pytest

from nbody.errors import InputError
from nbody.law import Gravity
from nbody.particles import Particles
from nbody.run.guards import doubts

SOFT = Gravity(1.0, 3, "plummer", 0.01)
BARE = Gravity(1.0, 3, "none", 0.0)


def bodies(position, mass=(1.0, 1.0)):
    """Two bodies at rest."""
    return Particles(np.array(mass), np.array(position, float), np.zeros((2, 3)))


@pytest.mark.parametrize("precision,warned", [("float32", True), ("mixed", False), ("float64", False)])
def test_a_softening_length_that_positions_can_not_resolve(precision, warned):
    """float32 has 2⁻²³ · 2¹⁶ = 8e-3 between neighbours at 1e5: no finer than the softening length."""
    said = doubts(SOFT, precision, bodies([[1e5, 0, 0], [1e5 + 1, 0, 0]]))
    assert bool(said) == warned
    assert not warned or "positions are 7.8e-03 apart" in said[0]


@pytest.mark.parametrize("precision,warned", [("float32", True), ("mixed", True), ("float64", False)])
def test_distances_whose_cube_a_pair_can_not_hold(precision, warned):
    """1/(1e13)³ = 1e-39 is below the smallest normal float32, in which mixed precision computes a pair too."""
    said = doubts(Gravity(1.0, 3, "plummer", 1e9), precision, bodies([[0, 0, 0], [1e13, 0, 0]]))
    assert any(f"in {precision} a GPU takes 1/distance³" in line for line in said) == warned


@pytest.mark.parametrize("precision,warned", [("float32", True), ("mixed", False), ("float64", False)])
def test_masses_of_which_sums_lose_the_lighter(precision, warned):
    said = doubts(SOFT, precision, bodies([[0, 0, 0], [1, 0, 0]], mass=(1.0, 1e-9)))
    assert any("masses differ by a factor of 1.0e+09" in line for line in said) == warned


@pytest.mark.parametrize("precision", ["float32", "mixed"])
def test_a_number_beyond_the_range_is_refused(precision):
    with pytest.raises(InputError, match=r"largest position, 1\.0e\+39, is beyond float32"):
        doubts(SOFT, precision, bodies([[0, 0, 0], [1e39, 0, 0]]))
    assert not doubts(SOFT, "float64", bodies([[0, 0, 0], [1e39, 0, 0]]))


def test_two_places_that_only_float64_tells_apart():
    """1 and 1 + 1e-9 are one float32."""
    close = bodies([[1, 0, 0], [1 + 1e-9, 0, 0]])
    with pytest.raises(InputError, match=r"particles 0 and 1 .* are in the same place"):
        doubts(BARE, "float32", close)
    assert not doubts(BARE, "mixed", close) and not doubts(BARE, "float64", close)
