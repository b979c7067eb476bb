"""Where the panels of the window are."""

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

    def place(self, size: Size) -> tuple[int, int]:
        """The top left corner of a new panel: below the others on the left, else right of them, else at the right edge;
        where no place is free, the bottom right corner of the area."""
        left, top, right, bottom = self.area
        width, height = size
        lefts = [left, *(box[2] + self.gap for box in self.taken), right - width]
        tops = [top, *(box[3] + self.gap for box in self.taken)]
        for x in sorted(set(lefts)):
            for y in sorted(set(tops)):
                box = (x, y, x + width, y + height)
                if self._free(box):
                    self.take(box)
                    return x, y
        return max(right - width, left), max(bottom - height, top)

    def _free(self, box: Box) -> bool:
        left, top, right, bottom = self.area
        if box[0] < left or box[1] < top or box[2] > right or box[3] > bottom:
            return False
        gap = self.gap
        return all(
            box[2] + gap <= other[0] or other[2] + gap <= box[0] or box[3] + gap <= other[1] or other[3] + gap <= box[1]
            for other in self.taken
        )
