"""The progress of the force evaluations of a state."""

from collections.abc import Callable


class ForceProgress:
    """The interactions of one state's force evaluations.

    Attributes:
        watch: called with :attr:`computed` during a force evaluation; an exception that it raises ends the evaluation,
            and leaves the accelerations undefined.
        requested, computed: interactions that were requested, and that were computed, while a watch was set.
    """

    def __init__(self) -> None:
        self.watch: Callable[[int], None] | None = None
        self.requested = self.computed = 0

    def take_over(self, other: "ForceProgress") -> None:
        """Go on with the numbers and the watch of another state, which has none from now on."""
        self.requested, self.computed = other.requested, other.computed
        self.watch, other.watch = other.watch, None

    def report(self, interactions: int) -> None:
        """Called by an engine when it has finished a piece of a force evaluation, or has launched it on the device.

        On a device this waits until little more than that piece is left to compute. So a run can be stopped soon for any N,
        and the device always has work.
        """
        self.requested += interactions
        self._add_computed(interactions)

    def wait(self, soon: bool = False) -> None:
        """Return when the device has finished its work. Signals are handled meanwhile, unless ``soon`` (the work is almost
        done)."""

    def _add_computed(self, interactions: int) -> None:
        self.computed += interactions
        if self.watch is not None:
            self.watch(self.computed)
