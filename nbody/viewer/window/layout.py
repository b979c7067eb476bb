"""Where the panels of the window are."""

from itertools import product

Size = tuple[int, int]
Box = tuple[int, int, int, int]
"""Left, top, right, bottom, in pixels from the top left corner."""


class Layout:
    """Finds places for panels that do not cover each other, if there is room.

    Args:
        area: where panels may be.
        gap: the least distance between two panels.
    """

    def __init__(self, area: Box, gap: int) -> None:
        self.area, self.gap = area, gap
        self.taken: list[Box] = []

    def take(self, box: Box) -> None:
        """Mark a box as taken."""
        self.taken.append(box)

    def place(self, size: Size) -> tuple[int, int] | None:
        """The top left corner of a new panel, as far left as possible, then as high as possible; None without room."""
        left, top, right, _ = self.area
        width, height = size
        lefts = {left, *(box[2] + self.gap for box in self.taken), right - width}
        tops = {top, *(box[3] + self.gap for box in self.taken)}
        for x, y in product(sorted(lefts), sorted(tops)):
            if self.free(box := (x, y, x + width, y + height)):
                self.take(box)
                return x, y
        return None

    def place_wide(self, size: Size, least_height: int) -> Box | None:
        """The box of a panel at the top right, perhaps lower than wanted, or below all others in the full width."""
        left, top, right, bottom = self.area
        height = min(size[1], bottom - top)
        below = max([top, *(box[3] + self.gap for box in self.taken)])
        for box in (right - size[0], top, right, top + height), (left, below, right, min(below + height, bottom)):
            if box[3] - box[1] >= least_height and self.free(box):
                self.take(box)
                return box
        return None

    def free(self, box: Box) -> bool:
        """True if ``box`` is in the area and covers nothing."""
        left, top, right, bottom = self.area
        if box[0] < left or box[1] < top or box[2] > right or box[3] > bottom:
            return False
        gap = self.gap
        return all(
            box[2] + gap <= other[0] or other[2] + gap <= box[0] or box[3] + gap <= other[1] or other[3] + gap <= box[1]
            for other in self.taken
        )
