"""Which steps become frames: step 0, every ``every``-th, and the last."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """The frames of a run that ends at step ``last``."""

    every: int
    last: int

    def due(self, step: int) -> bool:
        """True if ``step`` becomes a frame."""
        return step % self.every == 0 or step == self.last

    def next(self, step: int) -> int:
        """The first step after ``step`` that becomes a frame."""
        return min((step // self.every + 1) * self.every, self.last)

    def regular_after(self, step: int) -> int:
        """How many frames follow ``step`` each ``every`` steps after the one before; 0 if the first is closer."""
        return (self.last - step) // self.every if step % self.every == 0 else 0

    def count_after(self, step: int) -> int:
        """How many of the steps after ``step`` become frames."""
        if step >= self.last:
            return 0
        return self.last // self.every - step // self.every + (self.last % self.every != 0)
