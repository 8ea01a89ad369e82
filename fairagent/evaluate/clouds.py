"""Topics as points of a plot, with the line of least squares through them."""

from __future__ import annotations

from collections.abc import Sequence

from fairagent.evaluate.engine.page import PlotLine, PlotPoint
from fairagent.measures.lines import fitted_line


def cloud(name: str, color: int, points: Sequence[PlotPoint]) -> PlotLine:
    """The points, each alone, and the two ends of the line through them, which is not there where it is not defined."""
    line = fitted_line([point.x for point in points], [point.y for point in points]) if points else None
    ends = sorted({point.x for point in points}) if line else []
    fit = [PlotPoint("fit", x, line.at(x)) for x in (ends[0], ends[-1])] if line else []
    return PlotLine(name, color, tuple(fit), tuple(points))
