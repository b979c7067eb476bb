"""The compiled steps of :mod:`.radau`, each of them looked at, and ended when two bodies touch."""

from collections.abc import Callable
from functools import cache, partial

import numpy as np

from nbody import compute
from nbody.compute.compiling.cpu_inner import inner
from nbody.fields.field import Term
from nbody.integrators.adaptive import BEGIN, END
from nbody.integrators.collisions.contact import any_contact
from nbody.integrators.collisions.span import Span
from nbody.integrators.solvers.pair_forces import Attraction
from nbody.integrators.solvers.radau import RadauStep, StepLimits, stepper_for
from nbody.state.notes import NO_NOTES, StepNotes, note


@inner
def put(row, k, values):
    """Write numbers into a row, from place k on."""
    for value in values.flat:
        row[k] = value
        k += 1
    return k


@cache
def _watching(kind: str, terms: tuple[Term, ...], dimensions: int) -> Callable:
    make_steps, note_step = inner(stepper_for(kind, terms, dimensions), calls=True), inner(note)

    def steps_to_contact(x, v, law, step, limits, radius, again, notes, records):
        """Make steps as :func:`.stepper_for`, until two bodies touch in the last one.

        Args:
            limits: the time of ``last`` is the latest one that is shown.
            radius: (N,); (0,) if nobody looks for contacts.
            again: look at the last step, too.
            notes: get the bodies after each step.
            records: (K, 4 + 36 N) get what :func:`recorded` reads of each.

        Returns:
            The number of steps, False if the next one cannot be made, and True if two bodies touch.
        """
        until, shown, steps, longest, eta = limits
        begin, clock = step.begin, step.clock
        done, good, touched, count = 0, True, False, 0 if again else 1
        while (count == 0 or (done < steps and clock[END] < until)) and good and not touched:
            made, good = make_steps(x, v, law, step, StepLimits(shown, np.inf, count, longest, eta))
            touched = (
                radius.size > 0
                and made >= count
                and any_contact(begin[0], begin[1], x, v, clock[END] - clock[BEGIN], radius)
            )
            if made > 0:
                note_step(notes, done, clock[END], x.T, v.T)
                if done < len(records):
                    k = put(records[done], put(records[done], 0, begin), step.b)
                    put(records[done], put(records[done], put(records[done], k, step.lost_x), step.lost_v), clock)
            done, count = done + made, 1
        return done, good, touched

    return compute.kernel("cpu")(steps_to_contact)


def recorded(row: np.ndarray, bodies: int) -> RadauStep:
    """The step in a row: it can be shown, and no other one made from it."""
    begin, b, lost_x, lost_v, clock = np.split(row, bodies * np.array([9, 30, 33, 36]))
    b = b.reshape(7, -1)
    lost_x, lost_v = lost_x.reshape(3, -1), lost_v.reshape(3, -1)
    return RadauStep(begin.reshape(3, 3, -1), clock, b, b, lost_x, lost_v, np.zeros((2, 0, 5)))


class WatchedSteps:
    """Makes steps as the kernels of :func:`~.radau.steps_for` do, and stops at the first contact.

    Args:
        radius: (N,); (0,) if nobody looks for contacts.
        within: the bodies are within a step, at which nothing has looked.
        ends: a step ends at a contact.
        notes: get the bodies after each step.

    ``records`` are those of the noted steps. ``span`` is the step of the contact after a call; None if there was none, or
    if that step goes beyond the time until, unless it ``ends`` there.
    """

    def __init__(self, radius: np.ndarray, within: bool, ends: bool, notes: StepNotes) -> None:
        self._radius, self._within, self._ends, self._notes = radius, within, ends, notes
        self.records = np.empty((len(notes.times), 4 + 36 * notes.vectors.shape[2]))
        self.span: Span | None = None

    def steps_for(self, kind: str, terms: tuple[Term, ...], dimensions: int) -> Callable:
        """A function with the arguments and results of the kernel of a kind of forces."""
        return partial(self._call, _watching(kind, terms, dimensions))

    def _call(
        self, watching: Callable, x: np.ndarray, v: np.ndarray, law: Attraction, step: RadauStep, limits: StepLimits
    ) -> tuple[int, bool]:
        until, clock = limits.until, step.clock
        done, good, touched = watching(x, v, law, step, limits, self._radius, self._within, self._notes, self.records)
        beyond = clock[END] > until or not (done or self._within)
        if beyond and not (touched and self._ends):
            watching(x, v, law, step, limits._replace(last=until, steps=0), self._radius, True, NO_NOTES, self.records[:0])
        elif touched:
            x0, v0 = step.begin[:2, :3].transpose(0, 2, 1).copy()
            self.span = Span(x0, v0, x[:3].T.copy(), v[:3].T.copy(), clock[BEGIN], clock[END])
        return done, good
