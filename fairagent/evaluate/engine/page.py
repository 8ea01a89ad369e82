"""What a kind of experiment shows on the page, as values: the report draws it."""

from __future__ import annotations

from dataclasses import dataclass

from fairagent.evaluate.engine.tables import Table


@dataclass(frozen=True, slots=True)
class PlotPoint:
    """One point of a line: what it is called, and its two means."""

    name: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class PlotLine:
    """One line: its name, its color's number, its points in order, and points of it that stand alone (hollow)."""

    name: str
    color: int
    points: tuple[PlotPoint, ...]
    alone: tuple[PlotPoint, ...] = ()


@dataclass(frozen=True, slots=True)
class LinePlot:
    """Lines over two axes; `diagonal` draws where both are the same."""

    caption: str
    axes: tuple[str, str]
    lines: tuple[PlotLine, ...]
    diagonal: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """A paragraph; a `warning` stands out."""

    text: str
    warning: bool = False


Part = Note | Table | LinePlot


@dataclass(frozen=True, slots=True)
class PageSection:
    """A section of the page: its name in the list of sections, its title, and its parts from top to bottom.

    Plots stand side by side, with one legend of the lines: `legend` (name, color's number).
    """

    name: str
    title: str
    parts: tuple[Part, ...]
    legend: tuple[tuple[str, int], ...] = ()
