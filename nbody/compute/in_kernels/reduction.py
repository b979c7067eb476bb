"""Reductions over the threads of a block, by halves in shared memory, and over the lanes of a warp, by exchanges: in
the same order each time, so with the same bits."""

from collections.abc import Callable

from nbody.compute import device_function, exact_function, lane, shuffle, sync_threads


def block_reduction(threads: int, combine: Callable[..., None]) -> Callable[..., None]:
    """A device function ``reduce(shared, t)``, which all ``threads`` threads of a block call with their number ``t``: it
    leaves in row 0 of ``shared`` what ``combine(shared, t, other)``, a device function, makes of all rows, two at a time.
    ``threads`` is a power of two."""

    @exact_function
    def reduce(shared, t):
        half = threads // 2
        while half:
            sync_threads()
            if t < half:
                combine(shared, t, t + half)
            half //= 2
        sync_threads()

    return reduce


@exact_function
def add_row(shared, t, other):
    """Add a row to row t."""
    for k in range(shared.shape[1]):
        shared[t, k] += shared[other, k]


@exact_function
def keep_least(shared, t, other):
    """Keep the least of two numbers."""
    shared[t] = min(shared[t], shared[other])


@exact_function
def keep_largest(shared, t, other):
    """Keep the largest of two numbers."""
    shared[t] = max(shared[t], shared[other])


@device_function
def sum_over_lanes(x):
    """The sum over the lanes of a warp, the same in all lanes."""
    for distance in (16, 8, 4, 2, 1):
        x += shuffle(x, lane() ^ distance)
    return x


@device_function
def least_over_lanes(x):
    """The least of the numbers of a warp's lanes."""
    for distance in (16, 8, 4, 2, 1):
        x = min(x, shuffle(x, lane() ^ distance))
    return x


@exact_function
def largest_over_lanes(x):
    """The largest of the numbers of a warp's lanes."""
    for distance in (16, 8, 4, 2, 1):
        x = max(x, shuffle(x, lane() ^ distance))
    return x
