"""Keeps the diagrams up to date, and draws them on a thread, so that the window goes on."""

from concurrent.futures import Future, ThreadPoolExecutor

from nbody.viewer.display.diagram import Diagram, draw_diagram
from nbody.viewer.sources.series import Series
from nbody.viewer.sources.source import Source

REFRESH = 0.5
"""Seconds between looks for new points."""


class Diagrams:
    """The diagrams of a source.

    Attributes:
        drawn: the latest drawing; None before the first.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.drawn: Diagram | None = None
        self._series: Series | None = None
        self._age = REFRESH
        self._begun: tuple = ()  # what the present drawing shows
        self._future: Future[Diagram] | None = None
        self._thread: ThreadPoolExecutor | None = None

    def tick(self, seconds: float, size: tuple[int, int], scale: float) -> bool:
        """Call this while the diagrams are shown. Returns True if there is a new drawing."""
        self._age += seconds
        if self._age >= REFRESH:
            self._age, self._series = 0.0, self._source.series()
        if finished := self._future is not None and self._future.done():
            self.drawn, self._future = self._future.result(), None
        if self._series is not None and self._future is None:
            wanted = (len(self._series.times), self._series.complete, size, scale)
            if wanted != self._begun:
                self._begun = wanted
                self._thread = self._thread or ThreadPoolExecutor(1, "diagrams")
                self._future = self._thread.submit(draw_diagram, self._series, size, scale)
        return finished

    def close(self) -> None:
        """End the thread."""
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)
