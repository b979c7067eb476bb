"""The positions or velocities of a recording as an array that is read frame by frame."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = np.ndarray

SAMPLE_BLOCKS = 64


class FrameColumn:
    """An array (T, N, D) whose frames are read when they are used, with their checksums verified: ``column[k]`` is frame
    ``k``, (N, D). Indices and slices mean what they mean in NumPy, and ``np.asarray(column)`` reads everything.

    Args:
        shape: returns (T, N, D), of which T may grow.
        dtype: float32 or float64.
        frame: reads frame ``k``, (N, D); ``k`` may be negative.
        part: ``part(k, start, count)`` reads some bodies of it, (count, 3), not verified.
    """

    def __init__(
        self, shape: Callable[[], tuple[int, int, int]], dtype: np.dtype, frame: Callable[[int], Array],
        part: Callable[[int, int, int], Array],
    ) -> None:  # fmt: skip
        self.dtype = dtype
        self._shape, self._frame, self._part = shape, frame, part

    ndim = 3

    @property
    def shape(self) -> tuple[int, int, int]:
        """(T, N, D)."""
        return self._shape()

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("the frames are in a file, and reading them makes a copy")
        return self[:].astype(dtype or self.dtype, copy=False)

    def __iter__(self) -> Iterator[Array]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, index: Any) -> Array:
        """Frame ``index``, counted from the end if negative: (N, D); a slice or a list of frames gives (frames, N, D). More
        indices select bodies and components: ``position[:, 5]`` is the path of body 5, (T, D).

        Raises:
            NoFrame: there is no such frame.
            InputError: the checksum of a frame is wrong.
        """
        first, *rest = index if isinstance(index, tuple) else (index,)
        if first is Ellipsis:
            first, *rest = [slice(None)] * (3 - len(rest)) + rest
        if isinstance(first, int | np.integer) and not isinstance(first, bool):
            return self._frame(int(first))[None][(0, *rest)]
        given = np.asarray(first) if not isinstance(first, slice) else np.empty(1)
        if given.ndim == 0 or (given.dtype == bool and given.ndim > 1):  # None, or a mask of bodies at each frame
            found: Array = self[:][index]
            return found
        frames = np.arange(len(self))[first]
        if isinstance(first, slice) or all(each is Ellipsis or isinstance(each, int | slice) for each in rest):
            return self._frames(frames, tuple(rest))
        # Several lists belong together, element by element.
        numbers, row = np.unique(frames, return_inverse=True)
        return self._frames(numbers, ())[(row.reshape(frames.shape), *rest)]

    def _frames(self, numbers: Array, rest: tuple) -> Array:
        """What ``rest`` selects of each of these frames."""
        some = np.empty((0, *self.shape[1:]), self.dtype)[(slice(None), *rest)]
        found = np.empty((*numbers.shape, *some.shape[1:]), self.dtype)
        for place, k in np.ndenumerate(numbers):
            found[place] = self._frame(int(k))[rest]
        return found

    def sample(self, frame: int, most: int) -> Array:
        """About ``most`` bodies of frame ``frame``, the same in every frame: blocks of neighbours, evenly spread. All bodies
        if there are fewer. The checksum is verified only if all are read. Raises as ``column[frame]``."""
        _, count, dimensions = self.shape
        if count <= most:
            return self[frame]
        block = -(-most // SAMPLE_BLOCKS)
        starts = np.linspace(0, count - block, SAMPLE_BLOCKS).astype(int)
        return np.concatenate([self._part(frame, start, block) for start in starts])[:, :dimensions]
