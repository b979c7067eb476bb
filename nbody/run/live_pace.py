"""How many steps a run that is shown makes before its next picture: pause, single steps, speed."""

import math
import queue
import time
from contextlib import suppress

PICTURES_PER_S = 60.0
"""The most pictures per second."""

SLOWEST, FASTEST = 1 / 64, 4096.0
"""Limits of the speed, in steps per picture."""

UNLIMITED = 1 << 30
"""Steps per picture of a run that nobody slows down."""

LATE = 0.1
"""Seconds after which a picture is shown although not all of its steps are made."""


class LivePace:
    """Set by the window, read by the run's thread. All methods return at once, except :meth:`sleep`.

    Attributes:
        playing: False while paused.
        steps_per_picture: below 1, a picture is shown for more than 1/:data:`PICTURES_PER_S` seconds.
        steps_per_s: the steps per second while steps were made, without pauses; 0 if not yet known.
        shown: the window has taken the latest picture.
        granted: the steps of the current progress event.
    """

    def __init__(self, steps_per_picture: float) -> None:
        self.playing, self.shown = True, True
        self.steps_per_picture, self.steps_per_s = steps_per_picture, 0.0
        self.granted = 0
        self._single_steps = 0
        self._made = 0  # steps since the latest picture
        self._picture_at = self._worked_since = time.perf_counter()
        self._changes: queue.SimpleQueue[None] = queue.SimpleQueue()

    # --- Called by the window ---

    def toggle(self) -> None:
        """Pause or go on."""
        self.playing = not self.playing
        self._single_steps = 0
        self.wake()

    def step(self, steps: int) -> None:
        """Pause, and make ``steps`` steps."""
        self.playing = False
        self._single_steps += max(0, steps)
        self.wake()

    def faster(self, factor: float) -> None:
        """Multiply the steps per picture by ``factor``, within :data:`SLOWEST` and :data:`FASTEST`."""
        speed = min(self.steps_per_picture, FASTEST) * factor
        if speed > 1:  # a whole number, at least one more or less than before
            now = min(self.steps_per_picture, FASTEST)
            speed = max(math.ceil(speed), now + 1) if factor > 1 else min(math.floor(speed), now - 1)
        self.steps_per_picture = min(max(speed, SLOWEST), FASTEST)
        self.wake()

    def detach(self) -> None:
        """From now on at full speed, unpaused."""
        self.steps_per_picture, self.playing = UNLIMITED, True
        self.wake()

    def taken(self) -> None:
        """The window has taken the latest picture: the next steps may be made."""
        if not self.shown:
            self.shown = True
            self.wake()

    def wake(self) -> None:
        """End :meth:`sleep`: something has changed."""
        self._changes.put(None)

    # --- Called by the thread ---

    def steps_now(self, watched: bool) -> int:
        """The steps that may be made now; 0 to wait. ``watched``: a window shows them."""
        if not self.playing:
            return self._single_steps
        if not watched or self.steps_per_picture >= UNLIMITED:
            return UNLIMITED
        wanted = max(1, round(self.steps_per_picture))
        if 0 < self._made < wanted:  # the rest of the steps of a picture
            return wanted - self._made
        due = self._picture_at + max(1.0, 1 / self.steps_per_picture) / PICTURES_PER_S
        return wanted if self.shown and time.perf_counter() >= due else 0

    def sleep(self, begun: bool) -> None:
        """Wait for a change, or until the next picture may be due."""
        with suppress(queue.Empty):
            self._changes.get(timeout=0.004 if self.playing and begun and self.shown else 0.2)

    def work(self) -> None:
        """Steps begin now."""
        self._worked_since = time.perf_counter()

    def made(self, steps: int) -> bool:
        """``steps`` steps have been made. Returns True if it is time for a picture."""
        now = time.perf_counter()
        if steps > 0 and now > self._worked_since:
            rate = steps / (now - self._worked_since)
            self.steps_per_s += (rate - self.steps_per_s) * (0.1 if self.steps_per_s else 1.0)
        self._made += steps
        self._single_steps = max(0, self._single_steps - steps)
        late = now - self._picture_at > LATE
        return not self.playing or self._made >= min(self.steps_per_picture, UNLIMITED - 1) or late

    @property
    def unshown(self) -> bool:
        """True if steps were made since the latest picture."""
        return self._made > 0

    def published(self) -> None:
        """There is a new picture, which the window has not taken."""
        self._made, self._picture_at, self.shown = 0, time.perf_counter(), False
