"""External fields on the CPU: one compiled loop over the bodies. (One core is enough: N evaluations beside N² pairs.)"""

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numba import njit

from nbody.fields.sum import summed


def values_at(
    functions: Sequence[Callable], parameters: np.ndarray, position: np.ndarray, times: np.ndarray
) -> np.ndarray:
    """Acceleration and potential of the sum of the functions at positions (N, D), each at its time (N,): (N, 4)."""
    place, found = np.zeros((len(position), 3)), np.empty((len(position), 4))
    place[:, : position.shape[1]] = position
    _loop(tuple(functions))(place, times, parameters, found)
    return found


@cache
def _loop(functions: tuple[Callable, ...]) -> Callable:
    compile = njit(
        error_model="numpy"
    )  # a body in a singular centre gets infinities, which stop the run at its next frame
    total = summed(functions, compile)

    @compile
    def loop(place, times, parameters, found):
        for i in range(len(place)):
            found[i, 0], found[i, 1], found[i, 2], found[i, 3] = total(
                place[i, 0], place[i, 1], place[i, 2], times[i], parameters
            )

    return loop
