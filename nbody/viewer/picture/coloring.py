"""The values that colours show at each frame, and the scale of their colours."""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from nbody.analysis.data import spread
from nbody.viewer.picture import styles
from nbody.viewer.picture.look import COLOURS, MAPS
from nbody.viewer.picture.quantities import Around, ColourQuantity
from nbody.viewer.sources.frames import Array, ShownFrame
from nbody.viewer.sources.samples import CATEGORIES, LOGARITHMIC, ends
from nbody.viewer.sources.source import Source

STEPS = 256  # colours of the shader's texture
KEPT, MOST_WAITING = 6, 2  # frames whose values are kept, and frames for which they are computed at a time


@dataclass(frozen=True)
class Legend:
    """What the colours mean.

    Attributes:
        label, symbol: the quantity and its unit (empty if there is none).
        scale: ``logarithmic`` (the ends are percentiles), ``linear`` (the least and the greatest value) or ``categories``.
        low, high: the values at the ends, in the scenario's units; equal if all bodies have one value, NaN if there is none.
        names: of the species.
    """

    label: str
    symbol: str
    scale: str
    low: float
    high: float
    map: str
    names: tuple[str, ...] = ()
    note: str = ""

    def colours(self, steps: int) -> Array:
        """Linear RGB along the scale, (steps, 3), or one per name."""
        return styles.categories(len(self.names)) if self.names else MAPS.load(self.map)(steps)


class Coloring:
    """Values of one quantity for the bodies of a source; ``ends`` are those of the scale in the picture's units.

    If ``exact``, it waits for values that take long to compute. Otherwise a thread computes them, and the latest known
    values are used meanwhile. Raises InputError if the quantity can't be shown for this source.
    """

    def __init__(self, source: Source, color: str, map_name: str, exact: bool) -> None:
        quantity: ColourQuantity = COLOURS.load(color)
        quantity.check(color, source)
        self.source, self.quantity, self.map, self._exact = source, quantity, map_name, exact
        self._known: dict[int, Array] = {}
        self._coming: dict[int, Future[Array]] = {}
        self._thread = None if exact or quantity.constant else ThreadPoolExecutor(1, "colours")
        self.ends, self._sampled = (np.nan, np.nan), 0
        self._coming_ends: Future[tuple[float, float]] | None = None
        self._sample(source.frames)

    @property
    def in_shader(self) -> bool:
        """True if the shader computes the values from the velocities."""
        return self.quantity.compute is None

    @property
    def has_newer_colours(self) -> bool:
        """True if values have been computed that no picture shows yet."""
        if self._coming_ends is not None and self._coming_ends.done():
            return True
        return any(coming.done() for coming in self._coming.values())

    def scale(self) -> tuple[float, float, float]:
        """The shader's scale: both ends, and 1 if it is logarithmic."""
        if self.quantity.scale == CATEGORIES:
            return -0.5, len(self.source.catalogue.species_names) - 0.5, 0.0
        low, high = (speed / self.source.speed_unit for speed in self.source.speeds) if self.in_shader else self.ends
        return (low, high, float(self.quantity.scale == LOGARITHMIC)) if np.isfinite(high) else (0.0, 0.0, 0.0)

    def legend(self) -> Legend:
        quantity, unit = self.quantity, self.quantity.unit(self.source)
        low, high = self.scale()[:2] if self.in_shader or quantity.scale == CATEGORIES else self.ends
        names: tuple[str, ...] = ()
        if quantity.scale == CATEGORIES:
            names = tuple(name or "bodies" for name in self.source.catalogue.species_names)
        symbol = quantity.symbol(self.source.catalogue.units)
        note = "" if self.in_shader or self._known else "is being computed"
        return Legend(quantity.label, symbol, quantity.scale, low * unit, high * unit, self.map, names, note)

    def values(self, frame: ShownFrame) -> tuple[int, Array | None]:
        """The values of the shown bodies at ``frame``, (shown,) float32, with the number of the frame that they are of:
        while they are being computed, those of another frame, or None."""
        key = 0 if self.quantity.constant else frame.number
        self._collect()
        if key in self._known or key in self._coming:
            pass
        elif self._thread is None:
            self._remember(key, self._compute(*self._read(frame)))
        elif len(self._coming) < MOST_WAITING:
            self._coming[key] = self._thread.submit(self._compute, *self._read(frame))
        if key not in self._known:
            key = min(self._known, key=lambda number: abs(number - key), default=-1)
        return key, self._known.get(key)

    def rows(self, frame: ShownFrame, rows: Array) -> Array:
        """Linear RGB of some bodies at ``frame``, (rows, 3)."""
        if self.in_shader:
            return self.colours(np.linalg.norm(frame.velocity[rows], axis=1))
        values = self.values(frame)[1]
        return self.colours(np.full(len(rows), np.nan) if values is None else values[rows])

    def colours(self, values: Array) -> Array:
        """Linear RGB of values, (..., 3), as the shader computes it; the middle of the map for NaN."""
        low, high, logarithmic = self.scale()
        table = self.legend().colours(STEPS)
        fraction = np.full(np.shape(values), 0.5)
        if high > low:
            inside = np.clip(np.nan_to_num(values, nan=low), low, high)
            fraction = np.log(inside / low) / np.log(high / low) if logarithmic else (inside - low) / (high - low)
        return table[np.rint(fraction * len(table) - 0.5).astype(int).clip(0, len(table) - 1)]

    def close(self) -> None:
        """End the thread, after the frame that it computes."""
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)

    def _sample(self, frames: int) -> None:
        """Determine the ends of the scale from some frames of the run, and again when ``frames`` has doubled."""
        quantity, self._sampled = self.quantity, frames
        if self.in_shader or quantity.scale == CATEGORIES:
            return
        samples = 1 if quantity.constant else min(quantity.samples, self.source.frames)
        pasts = map(self.source.past, spread(self.source.frames, samples))
        sampled = [self._read(past) for past in pasts if past is not None]
        if self._thread is None:
            self.ends = self._ends(sampled)
        else:
            self._coming_ends = self._thread.submit(self._ends, sampled)

    def _ends(self, sampled: list[tuple[ShownFrame, Around]]) -> tuple[float, float]:
        values = np.concatenate([np.zeros(0), *(self._compute(*each) for each in sampled)])
        return ends(values, self.quantity.scale) if np.isfinite(values).any() else (np.nan, np.nan)

    def _read(self, frame: ShownFrame) -> tuple[ShownFrame, Around]:
        """What values are computed from, in host memory."""
        return frame.on_host(), self.quantity.around(self.source, frame)

    def _compute(self, frame: ShownFrame, around: Around) -> Array:
        assert self.quantity.compute is not None
        return np.ascontiguousarray(self.quantity.compute(self.source, frame, around), np.float32)

    def _collect(self) -> None:
        if self._coming_ends is not None and self._coming_ends.done():
            self.ends, self._coming_ends = self._coming_ends.result(), None
        for number in [number for number, coming in self._coming.items() if coming.done()]:
            self._remember(number, self._coming.pop(number).result())

    def _remember(self, number: int, values: Array) -> None:
        self._known[number] = values
        if number >= 2 * self._sampled and not self.quantity.constant:  # the ends follow a run that goes on
            self._sample(number)
        while len(self._known) > KEPT:
            del self._known[next(iter(self._known))]
