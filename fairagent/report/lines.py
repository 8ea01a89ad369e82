"""Lines through points of two means each, such as systems over their settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from fairagent.report.plots import canvas, color_of, limits, marker_of, number
from fairagent.report.svg import INK, MUTED, PAPER, Names, inline_svg, plot_style


@dataclass(frozen=True, slots=True)
class LinePoint:
    """One point of a line: what it is called, and its two means."""

    name: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its name, its color's number, its points in order, and points of it that stand alone (hollow)."""

    name: str
    color: int
    points: tuple[LinePoint, ...]
    alone: tuple[LinePoint, ...] = ()


def line_plot(lines: Sequence[Line], axes: tuple[str, str], prefix: str, diagonal: bool = False) -> Markup:
    """The lines, with a marker a point that says on a hint what it is; `diagonal` draws where both are the same."""
    names = Names()
    points = [(line, point) for line in lines for point in (*line.points, *line.alone)]
    said = "; ".join(
        f"{line.name}: " + ", ".join(f"{point.name} {number(point.x)} {number(point.y)}" for point in line.points)
        for line in lines
    )
    with plot_style():
        figure, axis = canvas(280, left=46, bottom=44, right=14, top=12)
        axis.set_xlabel(names(axes[0]))
        axis.set_ylabel(names(axes[1]))
        if points:
            axis.set_xlim(*limits([(point.x, point.x) for _, point in points]))
            axis.set_ylim(*limits([(point.y, point.y) for _, point in points]))
        if diagonal:
            axis.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=(0, (1, 3)), zorder=1)
        hints = []
        for place, line in enumerate(lines):
            color = color_of(line.color)
            xs, ys = [point.x for point in line.points], [point.y for point in line.points]
            axis.plot(xs, ys, color=color, linewidth=2, alpha=0.6, zorder=2)
            for at, (point, filled) in enumerate([(p, True) for p in line.points] + [(p, False) for p in line.alone]):
                gid = f"line{place}x{at}"
                axis.plot(
                    [point.x],
                    [point.y],
                    marker_of(line.color),
                    markersize=8,
                    markerfacecolor=color if filled else PAPER,
                    markeredgecolor=color,
                    markeredgewidth=1.8,
                    gid=gid,
                    clip_on=False,
                    zorder=3,
                )
                hints.append(
                    (gid, f"{line.name} {point.name}\n{axes[0]} {number(point.x)}\n{axes[1]} {number(point.y)}")
                )
        axis.axhline(0, color=INK, linewidth=0.8, alpha=0.4)
        return inline_svg(figure, f"{axes[1]} against {axes[0]}. {said}", names, prefix, hints)
