"""What the page says of a Fair RAG experiment: its four curves, utility by disparity, and the gap stage by stage."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from fairagent.evaluate.fair_rag.analysis import CURVES, Curve, Row, Stages, curves, stages
from fairagent.evaluate.run import Run
from fairagent.report.lines import Line, LinePoint, line_plot

SAID = {
    "EE-D": "disparity (EE-D)",
    "EE-R": "ranking quality (EE-R)",
    "normalized EU": "utility (normalized EU)",
    "EAE-D": "attributed disparity (EAE-D)",
}


@dataclass(frozen=True, slots=True)
class Drawing:
    """One plot: what it shows, and the picture."""

    caption: str
    plot: Markup


@dataclass(frozen=True, slots=True)
class Shown:
    """The section's content; `colors` are the numbers of the curves' colors, by their systems."""

    curves: tuple[Curve, ...]
    colors: dict[str, int]
    drawings: tuple[Drawing, ...]
    stages: dict[str, list[Stages]]


def fair_rag(run: Run) -> Shown | None:
    """The section of a Fair RAG experiment; None for other runs, and where nothing was measured yet."""
    found = curves(run) if run.draws else ()
    if not found:
        return None
    colors = {curve.system: number for number, curve in enumerate(found)}
    drawings = []
    for number, (x, y) in enumerate(CURVES):
        # Of answers that nobody has attributed there is no EAE-D.
        if not all(y in row.means for curve in found for row in curve.drawn):
            continue
        lines = [_line(curve, colors[curve.system], x, y) for curve in found]
        plot = line_plot(lines, (SAID[x], SAID[y]), f"r{number}-", diagonal=y == "EAE-D")
        drawings.append(Drawing(f"{SAID[y]} against {SAID[x]}", plot))
    by_dimension: dict[str, list[Stages]] = {}
    for stage in stages(run):
        by_dimension.setdefault(stage.dimension, []).append(stage)
    return Shown(found, colors, tuple(drawings), by_dimension)


def _line(curve: Curve, color: int, x: str, y: str) -> Line:
    def point(row: Row) -> LinePoint:
        return LinePoint("own order" if row.alpha is None else f"α={row.alpha:g}", row.means[x], row.means[y])

    return Line(curve.system, color, tuple(map(point, curve.drawn)), (point(curve.own),) if curve.own else ())
