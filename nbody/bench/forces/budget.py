"""How long a benchmark may take, and how long the rest of it will: what is left out, and what each row costs.

A contestant's rate, known roughly once it is compiled, says what an evaluation of a larger N would take. What stays out
leaves no gap that matters: a row says why it has no time, and speed-ups refer to the largest N below that has one.
"""

from collections.abc import Sequence

from nbody.bench import timing
from nbody.bench.forces import lecture
from nbody.bench.forces.contestant import Contestant, EngineContestant
from nbody.bench.forces.problems import LECTURE_STEPS

LONGEST = 10.0
"""Seconds of an evaluation beyond which it is left out."""

LONGEST_AGAIN = 2.0
"""The same for a CPU's engine that was timed with fewer bodies: its speed is nearly known. (Sixteen cores with AVX-512,
N from 20480 to 262144: float32 55 to 76e9 interactions/s, float64 25 to 28e9, one core 7.2 to 7.7e9 and 2.7e9.)"""

LONGEST_RUN = 3.0
"""Seconds beyond which a lecture run is left out."""

OVERHEAD = 0.1
"""Seconds that a row takes beside its evaluations, about: bodies are made, moved and judged."""


def longest(contestant: Contestant, again: bool) -> float:
    """Seconds that one evaluation by a contestant may take, which was timed with fewer bodies, or was not."""
    return LONGEST_AGAIN if again and contestant.backend == "cpu" else LONGEST


def makes_lecture_run(contestant: Contestant, count: int) -> bool:
    """True if the contestant knows the lecture's problem, and so few bodies are part of it."""
    return isinstance(contestant, EngineContestant) and count <= lecture.LARGEST


class Plan:
    """The rows of a benchmark, and what is still to be done of them.

    Args:
        contestants: compiled, so that their rates are known.
        counts: every N.
    """

    def __init__(self, contestants: Sequence[Contestant], counts: Sequence[int]) -> None:
        self._smallest = min(counts, default=0)
        self._forces = [(contestant, count) for count in counts for contestant in contestants]
        self._runs = [pair for pair in self._forces if makes_lecture_run(*pair)]

    def timed(self, contestant: Contestant, count: int) -> None:
        """The contestant's force evaluation needs no more time, measured or not."""
        self._forces.remove((contestant, count))

    def done(self, contestant: Contestant, count: int) -> None:
        """Nor does its lecture run."""
        if (contestant, count) in self._runs:
            self._runs.remove((contestant, count))

    def seconds_left(self) -> float:
        """What the rest will take, by the rates so far."""
        return sum(self._force_seconds(*pair) for pair in self._forces) + sum(run_seconds(*pair) for pair in self._runs)

    def _force_seconds(self, contestant: Contestant, count: int) -> float:
        each = contestant.expected(count)
        if each > longest(contestant, count > self._smallest):
            return 0.0
        if contestant.backend == "gpu":
            repeats, calls = timing.calls_on_device(each)
            return OVERHEAD + (2 + repeats * calls) * each
        return OVERHEAD + (2 * each if each > timing.ENOUGH else max(timing.ENOUGH, timing.FEWEST * each))


def run_seconds(contestant: Contestant, count: int) -> float:
    """What the lecture's run by a contestant will take, by its rate so far, compilation for the disc apart."""
    each = LECTURE_STEPS * contestant.expected(count)
    if each > LONGEST_RUN:
        return 0.0
    runs = timing.FOR_A_SPREAD if each > lecture.PATIENCE else lecture.FEWEST
    return OVERHEAD + max(lecture.ENOUGH, runs * each)


def about(seconds: float) -> str:
    """A time in words that claim no more than is known: 7 s, 40 s, 3 min."""
    if seconds < 10:
        return f"{max(1, round(seconds))} s"
    return f"{10 * round(seconds / 10)} s" if seconds < 115 else f"{round(seconds / 60)} min"
