"""What is asked of the forces: one question, which every engine and every scheme answers by ``supports``."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from nbody.law import Gravity
from nbody.scenario.options import PRECISIONS as PRECISIONS
from nbody.state.outputs import Outputs, missing

ROUNDOFF = {"float32": 2.0**-24, "mixed": 2.0**-24, "float64": 2.0**-53}
"""Unit roundoff u of the arithmetic on a pair, by precision."""

DIRECT = {"float32": 5e-7, "mixed": 1e-7, "float64": ROUNDOFF["float64"]}
"""The accuracy of direct sums, with a margin: the median errors of the engines that ``auto`` takes are 0.9 to 2.2e-7 in
float32 and 3e-8 in ``mixed``, for up to 262144 bodies."""


class SchemeProblem(NamedTuple):
    """What is asked of the scheme besides.

    Attributes:
        fields: the external fields.
        collisions: the rule of collisions that the run looks for; empty if it looks for none.
        changes: True if bodies may be added, changed or removed.
        unlimited: True if the run gives no largest time step.
        backward: True if the run goes back in time.
        tangents: the number of tangent vectors that are moved with the bodies.
    """

    fields: tuple[Any, ...] = ()
    collisions: str = ""
    changes: bool = False
    unlimited: bool = False
    backward: bool = False
    tangents: int = 0


class Problem(NamedTuple):
    """What is asked of the forces.

    Attributes:
        gravity: the law of a pair, its softening (one length, or one per species) and the number of dimensions.
        precision: one of :data:`PRECISIONS`.
        particles: the number of bodies.
        outputs: what is computed besides the accelerations.
        targets: True if the forces on some of the bodies are asked for.
        accuracy: the median relative error of the accelerations; None for that of the precision.
        ranks: the number of processes that compute the forces together.
        gpus: the number of GPUs of one process that do.
        systems: the number of systems of an ensemble, whose bodies attract only those of their own; 0 without one.
        own_sums: True if the scheme computes the forces itself, as direct sums.
        of_scheme: what is asked of the scheme besides, which no engine reads.
    """

    gravity: Gravity
    precision: str = "float64"
    particles: int = 1
    outputs: Outputs = Outputs.ACCELERATION
    targets: bool = False
    accuracy: float | None = None
    ranks: int = 1
    gpus: int = 1
    systems: int = 0
    own_sums: bool = False
    of_scheme: SchemeProblem = SchemeProblem()


class Refusal(str):
    """Why something is not supported, in one clause; empty if it is, so that ``a or b`` is the first reason.

    Attributes:
        key: the key of the scenario that is to blame; empty for the one that names the component.
        remedy: what else a user may write; empty if only another component helps.
    """

    key: str
    remedy: str

    def __new__(cls, reason: str, key: str, remedy: str) -> "Refusal":
        """The clause, with its key and remedy."""
        made = super().__new__(cls, reason)
        made.key, made.remedy = key, remedy
        return made


class Abilities(NamedTuple):
    """What an engine can compute. (Other rooms read ``device``, ``tree`` and ``growth``, and the bench ``auto_range`` and
    ``pairs_once``; all else is asked by :meth:`Engine.supports`.)

    Attributes:
        precisions: those of :data:`PRECISIONS` that it offers.
        device: ``cpu`` or ``gpu``.
        compiled: whether Numba compiles it for the CPU, with its threads.
        outputs: what it computes besides the accelerations.
        potential: how it computes the potential: ``joint`` with the accelerations; in a ``separate`` pass over all pairs; or
            ``summed``: the energy alone is faster than the potential of each body.
        targets: whether it computes the forces on some of the bodies only.
        species: whether each species may have a softening length; ε² of a pair is the larger one of its bodies'.
        ranks: whether several processes divide its work.
        gpus: whether several GPUs of one process divide its work.
        divided_from: the fewest bodies with mass for which GPUs, or ranks, do.
        pairs_once: whether it computes each pair once, so that a reciprocal square root serves two interactions.
        massless: whether it may leave bodies without mass out of its sums (:mod:`nbody.forces.layers.massless`).
        finest: the least accuracy, a median relative error of the accelerations, in each precision.
        auto_range: the numbers of bodies for which it may be the fastest engine of some machine, so that ``auto`` considers
            it.
        own_units: whether it computes in units of length and mass that fit the bodies, whatever the scenario's are.
        few: the largest number of bodies for which the engine is a plain loop over pairs that other compiled loops inline
            (:mod:`nbody.forces.direct.cpu_few`); 0 for none.
        systems: whether its device computes the forces within the systems of an ensemble, in place of its own sums
            (:mod:`nbody.forces.systems`).
        growth: the power of N with which its time grows: 2 for all pairs, 1 for a tree.
    """

    precisions: tuple[str, ...] = ("float32", "float64")
    device: str = "cpu"
    compiled: bool = False
    outputs: Outputs = Outputs.POTENTIAL
    potential: str = "joint"
    targets: bool = False
    species: bool = False
    ranks: bool = False
    gpus: bool = False
    divided_from: int = 0
    pairs_once: bool = False
    massless: bool = False
    finest: Mapping[str, float] = DIRECT
    auto_range: range = range(0)
    own_units: bool = False
    few: int = 0
    systems: bool = False
    growth: int = 2

    @property
    def tree(self) -> bool:
        """True for a tree. It computes fewer than all pairs, so its speed is given in bodies per second."""
        return self.growth == 1

    def refusal(self, problem: Problem) -> str:
        """Why the engine cannot compute what is asked, in one clause; empty if it can."""
        precision = problem.precision
        if problem.systems and not self.systems:
            return "it computes the forces of one system, not of an ensemble"
        if precision not in self.precisions:
            return f"it computes in {' or '.join(self.precisions)}, not in {precision}"
        if missing(problem.outputs, self.outputs):
            return "it does not compute the jerk, which the scheme needs"
        if problem.targets and not self.targets:
            return "it does not compute the forces on some of the bodies, which the scheme needs"
        if problem.gravity.per_species and not (self.species and precision != "mixed"):
            return "it has one softening length for all bodies" + " in mixed precision" * self.species
        if problem.ranks > 1 and not self.ranks:
            return "it does not divide its work over ranks"
        if problem.gpus > 1 and problem.ranks > 1:
            return "each rank has one GPU, so start as many ranks as there are GPUs"
        if problem.gpus > 1 and not self.gpus:
            return "it computes on one device"
        if problem.own_sums and self.tree:
            return "it is a tree, and the scheme sums over all pairs itself"
        if problem.accuracy is not None and problem.accuracy < (least := self.finest[precision]):
            return f"it has an accuracy of {least:.2g} at best in {precision}"
        return ""
