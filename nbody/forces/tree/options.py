"""What a user says about a tree, and what the engines make of it."""

import math
from typing import Annotated, NamedTuple

from pydantic import Field

from nbody.forces.tree.expansions.operators import HIGHEST_ORDER
from nbody.law import LAWS, Gravity, Law
from nbody.law.plummer import PLUMMER
from nbody.scenario.values import Group, Positive, Whole

DEFAULT_ACCURACY = 1e-3

PER_BODY = 1000
"""Interactions per body, before any are counted."""


class TreeOptions(Group):
    """The options of ``cpu-tree`` and ``gpu-tree``.

    Attributes:
        accuracy: the median relative error of the accelerations, default 1e-3. The order, the leaves and the
            criterion by which cells are opened follow from it.
        order: p of the expansions, 2 to 8.
        leaf: cells with more bodies than this are divided.
        theta: open cells by geometry, (r + R)/d > theta, instead of by an error estimate. The errors of bodies then differ
            much more, at the same cost.
    """

    accuracy: Annotated[Positive, Field(le=0.1)] = DEFAULT_ACCURACY
    order: Annotated[Whole | None, Field(ge=2, le=HIGHEST_ORDER)] = None
    leaf: Annotated[Whole | None, Field(ge=1, le=4096)] = None
    theta: Annotated[Positive | None, Field(le=0.9)] = None


def is_softened(law: str) -> bool:
    """True if cells act by Plummer's law; by the others they act as by Newton's, from :func:`support_of` on."""
    return law == PLUMMER.name


def support_of(gravity: Gravity) -> float:
    """From this many softening lengths on a law is that of the expansions, which are made for Newton's and for Plummer's."""
    law: Law = LAWS.load(gravity.softening)
    return 0.0 if is_softened(law.name) else law.support


def without_expansions(gravity: Gravity) -> str:
    """Why a tree cannot expand a law, in one clause; empty if it can."""
    return "" if support_of(gravity) < math.inf else f"it has no expansions of softening '{gravity.softening}'"


class Settings(NamedTuple):
    """What the engines compute with.

    Attributes:
        order: p of the expansions.
        leaf: cells with more bodies than this are divided: the leaves are the sources of direct sums.
        group: the most bodies of a terminal target, which is not divided further as a target.
        error: a cell is accepted if the estimated error of its acceleration is less than this times |a| (the smallest |a|
            of the target's bodies in the evaluation before).
        theta: if not None, cells are accepted for (r + R)/d < theta instead.
    """

    order: int
    leaf: int
    group: int
    error: float
    theta: float | None


STEPS = (
    # least accuracy, order, error per accuracy, leaf, group
    (1e-3, 3, 2.0, 32, 128),
    (6e-5, 4, 1.25, 32, 128),
    (4e-6, 5, 1.5, 32, 128),
    (2e-7, 6, 1.0, 64, 128),
    (0.0, 8, 1.0, 64, 128),
)
"""The order, and the ratio of the criterion's error to the median error that it gives, by accuracy: for Plummer's sphere.
Measured on one Zen 4 core, as criterion's error / median error: 2.0 to 3.1 for order 3 and 1.2 to 3.0 for order 4 (1e6
bodies, float32; the smaller errors have the smaller ratio), 1.7 for order 5 (1e5, float32), 0.9 to 1.1 for order 6 (1e5,
float64). Order 5 is 25 % faster than order 4 at a median of 5e-5. Order 8 is an estimate."""

FINEST = {"float32": 2e-6, "mixed": 2e-6, "float64": 1e-10}
"""The least accuracy that each precision can give: rounding makes a median error of some 3e-7 in float32."""


def settings(options: TreeOptions) -> Settings:
    """The settings for a user's options."""
    accuracy = options.accuracy
    _, order, ratio, leaf, group = next(step for step in STEPS if accuracy >= step[0])
    leaf = options.leaf or leaf
    return Settings(options.order or order, leaf, max(group, leaf), ratio * accuracy, options.theta)


def interactions(counted: int, targets: int) -> int:
    """The interactions of an evaluation for a number of targets: pairs of bodies, moments on bodies and moments on cells, as
    ``counted`` in an earlier evaluation; an estimate if none are counted yet."""
    return counted or targets * min(targets, PER_BODY)
