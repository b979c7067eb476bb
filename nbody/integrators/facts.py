"""What a scheme says of itself before a run (:class:`SchemeFacts`), and of the steps so far (:class:`SchemeReport`)."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from nbody.forces.engine import Engine
from nbody.forces.problem import Problem
from nbody.law import Gravity
from nbody.state import Column, Outputs
from nbody.state.moves import MoveKind


class WorkingBytes(NamedTuple):
    """Bytes of a scheme's working arrays besides the columns.

    Attributes:
        first: in the memory in which the engine works.
        helper: on each other GPU, if several make the steps.
        exchange: what the first GPU needs besides, if several make the steps.
    """

    first: int = 0
    helper: int = 0
    exchange: int = 0


class Move(NamedTuple):
    """One move of a step: a force evaluation, a kick or a drift, over ``fraction`` of the time step."""

    kind: MoveKind
    fraction: float = 1.0


FLOAT64_ON_CPU = {"cpu": ("float64",)}
"""The precisions of a scheme with a compiled loop for a few bodies."""


def no_working_bytes(engine: type[Engine], particles: int, precision: str) -> WorkingBytes:
    """Those of a scheme without working arrays. (A plan is sent to other ranks, so this has a name.)"""
    return WorkingBytes()


def no_notes(motion: Any) -> bool:
    """Of a scheme whose steps no compiled loop makes."""
    return False


class SchemeFacts(NamedTuple):
    """What is known of a scheme before it makes a step.

    Attributes:
        order: the error of a run of given length is proportional to dt to this power.
        source: author and year.
        lengths: the lengths of steps in words: fixed, adaptive (one for all bodies), or individual.
        adaptive: the scheme chooses the length of each step.
        evaluations: force evaluations per step.
        outputs: the results that the engine must offer.
        targets: the engine must offer the forces on some of the bodies.
        leaves: the results that are current after a step.
        columns: the columns that it adds to the state.
        power_of_dt: the highest power of the time step that it forms.
        own_forces: it computes the forces in its own kernel.
        precisions: those in which its own kernels compute, by the device; empty: all that the engine has.
        star: it moves planets about a star, which is body 0 and the heaviest.
        fields: the kinds of external fields (:attr:`nbody.fields.field.Field.kind`) that it computes, besides those that the
            engine adds at given positions.
        tangents: the kinds of external fields in which it moves tangent vectors, which what
            :data:`~nbody.diagnostics.observables.OF_TANGENTS` lists needs; None: it moves none.
        softened: the steps follow from the softening length, so that there must be one.
        moves: those of a step, in order, if the scheme is a table of moves.
        accuracies: the option that sets the accuracy in place of ``dt``, if there is one, and values that ``nbody bench``
            measures, from coarse to fine.
        memory: the working arrays for an engine, a number of bodies and a precision.
        notes: for a :class:`~nbody.integrators.integrator.Motion`, whether a compiled loop makes its steps and writes the
            bodies at their ends into ``motion.state.clock.notes``.
    """

    order: int
    source: str
    lengths: str = "fixed"
    adaptive: bool = False
    evaluations: int = 1
    outputs: Outputs = Outputs.ACCELERATION
    targets: bool = False
    leaves: Outputs = Outputs.NOTHING
    columns: tuple[Column, ...] = ()
    power_of_dt: int = 1
    own_forces: bool = False
    precisions: Mapping[str, tuple[str, ...]] = {}
    star: bool = False
    fields: tuple[str, ...] = ()
    tangents: tuple[str, ...] | None = None
    softened: bool = False
    moves: tuple[Move, ...] = ()
    accuracies: Mapping[str, tuple[float, ...]] = {}
    memory: Callable[[type[Engine], int, str], WorkingBytes] = no_working_bytes
    notes: Callable[[Any], bool] = no_notes

    def problem(self, gravity: Gravity, precision: str, count: int = 1) -> Problem:
        """What the scheme asks of the forces."""
        return Problem(gravity, precision, count, self.outputs, self.targets, own_sums=self.own_forces)


class SchemeReport(NamedTuple):
    """What a scheme says of the steps so far.

    Attributes:
        pairs_per_step: interactions per step, the mean of the steps so far; excluding recording.
        bodies_per_step: bodies whose forces are computed in a step, the mean of the steps so far.
        body_steps: steps of single bodies made so far; None if all bodies make the same steps.
        observed: further observables, recorded with each frame (:data:`layout.SYSTEM_COLUMNS`).
        vectors: the tangent vectors, (M, 2, 3, n), if they were given at the beginning.
        message: a line for the user at the end of a run that was not interrupted; empty for most.
    """

    pairs_per_step: float
    bodies_per_step: float
    body_steps: int | None = None
    observed: Mapping[str, np.ndarray] = MappingProxyType({})
    vectors: np.ndarray | None = None
    message: str = ""
