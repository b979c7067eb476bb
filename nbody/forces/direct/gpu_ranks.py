"""Several processes in one force evaluation, each with a GPU: every rank has all bodies, computes its part, and gets what
the others have computed through host memory."""

from typing import Any

import numpy as np

from nbody import gpu
from nbody.gpu import cuda
from nbody.parallel import Team


class Ranks:
    """The ranks that divide the force evaluations of a state.

    Attributes:
        size, rank: of the team.
    """

    def __init__(self, team: Team) -> None:
        self._team, self.size, self.rank = team, team.size, team.rank
        self._pinned: dict[tuple, np.ndarray] = {}

    def complete(self, array: Any, bounds: list[int], stream: Any) -> None:
        """Complete the rows of a device array on every rank: rank p has computed the rows [bounds[p], bounds[p + 1]). Waits
        for the stream, so this cannot be recorded in a graph."""
        begin = bounds[0]
        rows = array[begin : bounds[-1]]
        host = self._host(rows.shape, rows.dtype)
        first, last = (bounds[self.rank + k] - begin for k in (0, 1))
        if last > first:
            rows[first:last].copy_to_host(host[first:last], stream)
        gpu.wait_for(gpu.mark(stream))
        self._team.gather_rows(host, [each - begin for each in bounds])
        rows.copy_to_device(host, stream)

    def _host(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        key = shape, np.dtype(dtype)
        if key not in self._pinned:
            self._pinned[key] = cuda.pinned_array(shape, dtype)
        return self._pinned[key]
