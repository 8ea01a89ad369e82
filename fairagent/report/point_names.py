"""Names beside the points of a scatter plot, where they fit: no name on another, nor on a point."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from fairagent.report.names import shortened
from fairagent.report.points import Point
from fairagent.report.svg import INK, TEXT_SIZE, Names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST = 26
"""Letters of a name; the legend has it in full."""
_LETTER = 0.55
"""Width of a letter in parts of its size, on average over the fonts that browsers have."""


class Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    bottom: float
    right: float
    top: float

    def meets(self, other: Box) -> bool:
        """Whether the two overlap."""
        return (
            self.left < other.right and other.left < self.right and self.bottom < other.top and other.bottom < self.top
        )


def name_points(axis: Axes, points: Sequence[Point], texts: Sequence[str], names: Names) -> None:
    """Write each name beside its point where it meets no other; where there is no such place, leave it out."""
    frame = axis.get_window_extent()
    inside = Box(frame.x0, frame.y0, frame.x1, frame.y1)
    centers = [axis.transData.transform((p.x.mean, p.y.mean)) for p in points]
    taken = [Box(x - 7, y - 7, x + 7, y + 7) for x, y in centers]
    crosses = [box for p in points for box in _cross(axis, p)]
    for (x, y), text in zip(centers, texts, strict=True):
        free = [
            (box, side, dx, dy)
            for box, side, (dx, dy) in _places(float(x), float(y), shortened(text, LONGEST))
            if box.left >= inside.left and box.right <= inside.right
            if box.bottom >= inside.bottom and box.top <= inside.top
            if not any(box.meets(other) for other in taken)
        ]
        # Best is a place that no interval runs through.
        free.sort(key=lambda place: any(place[0].meets(line) for line in crosses))
        for box, side, dx, dy in free[:1]:
            taken.append(box)
            at = axis.transData.inverted().transform((x + dx, y + dy))
            axis.text(at[0], at[1], names(shortened(text, LONGEST)), color=INK, ha=side, fontsize=TEXT_SIZE, zorder=4)


def _cross(axis: Axes, point: Point) -> tuple[Box, Box]:
    """The two lines of a point's intervals."""
    x, y = point.x, point.y
    (left, bottom), (right, top) = axis.transData.transform([(x.low, y.low), (x.high, y.high)]).tolist()
    across, up = axis.transData.transform((x.mean, y.mean)).tolist()
    return Box(left, up - 1, right, up + 1), Box(across - 1, bottom, across + 1, top)


def _places(x: float, y: float, text: str) -> list[tuple[Box, str, tuple[float, float]]]:
    """The places for a name around a point, the best first: its box, which end of it is fixed, and where."""
    width, size = _LETTER * TEXT_SIZE * len(text), TEXT_SIZE
    found = []
    for dy, (side, dx) in product(
        (-0.35 * size, 0.8 * size, -1.5 * size, 1.9 * size, -2.6 * size),
        (("left", 11.0), ("right", -11.0), ("center", 0.0)),
    ):
        if side != "center" or dy != -0.35 * size:
            left = x + dx - {"left": 0.0, "right": width, "center": width / 2}[side]
            found.append((Box(left, y + dy - 2, left + width, y + dy + size), side, (dx, dy)))
    return found
