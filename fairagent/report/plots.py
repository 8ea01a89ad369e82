"""The page's plots as SVG: two axes, and what is drawn between them, in the page's own colors and markers.

Colors are classes (`f-` fill, `k-` stroke) that the style sheet sets for a light and a dark screen. There is no style
attribute, so a strict Content-Security-Policy lets it pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from fairagent.evaluate.comparison import Comparison
from fairagent.evaluate.findings import RELEVANCE, comparisons_of
from fairagent.evaluate.run import MeanExposure, Results
from fairagent.evaluate.tables import LinePlot
from fairagent.measures.parse import is_measure
from fairagent.types import ExposureRow, exposure_rows
from fairagent.types.clean import printable

WIDTH = 360
"""Pixels; a chart is drawn for a phone's width and grows with its box."""
SERIES = 14
"""How many colors the style sheet has for systems; more systems use them again, with other markers."""
MARKERS = (
    "M-4.4 0a4.4 4.4 0 1 0 8.8 0a4.4 4.4 0 1 0-8.8 0z",
    "M-4-4h8v8h-8z",
    "M0-5 4.8 4H-4.8z",
    "M0-5.4 5.4 0 0 5.4-5.4 0z",
    "M0 5 4.8-4H-4.8z",
    "M-1.7-5h3.4v3.3H5v3.4H1.7V5h-3.4V1.7H-5v-3.4h3.3z",
    "M0-2.4 2.7-5 5-2.7 2.4 0 5 2.7 2.7 5 0 2.4-2.7 5-5 2.7-2.4 0-5-2.7-2.7-5z",
    "M0-5.5 1.4-1.8 5.3-1.7 2.2.7 3.3 4.5 0 2.3-3.3 4.5-2.2.7-5.3-1.7-1.4-1.8z",
    "M-5 0 3.5-5v10z",
    "M5 0-3.5-5v10z",
    "M-5-2h10v4h-10z",
    "M-2-5h4v10h-4z",
    "M-4.8-4.8h9.6L0 0l4.8 4.8h-9.6L0 0z",
    "M0-5.2 4.9-1.6 3 4.2h-6L-4.9-1.6z",
)
"""A marker a system, around 0, 0, so that color alone distinguishes none."""

Limits = tuple[float, float]


def color_number(system: int) -> int:
    """The number of a system's color; the first is the baseline's alone."""
    return system and 1 + (system - 1) % (SERIES - 1)


def marker_number(system: int) -> int:
    """The number of a system's marker; there is one more than colors that come round, so that no pair soon returns."""
    return system % len(MARKERS)


class Chart:
    """An SVG of `WIDTH` x `height` pixels with axes inside the margins; things are drawn in the order of the calls."""

    def __init__(self, height: int, x: Limits, y: Limits, left: int, bottom: int, top: int = 12) -> None:
        self.height, self.left, self.right = height, left, WIDTH - 14
        self.top, self.bottom = top, height - bottom
        self._x, self._y = x, y
        self._parts: list[str] = []

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The pixels of a point."""
        (low, high), (least, most) = self._x, self._y
        across = (x - low) / ((high - low) or 1) * (self.right - self.left)
        up = (y - least) / ((most - least) or 1) * (self.bottom - self.top)
        return self.left + across, self.bottom - up

    def grid(self, x: Sequence[float] = (), y: Sequence[float] = (), form: str = "") -> None:
        """Values of the axes, with a line each; all of an axis with the same decimals unless `form` is a format."""
        for horizontal, values in ((True, x), (False, y)):
            digits = max((len(f"{value:g}".partition(".")[2]) for value in values), default=0)
            for value in values:
                across, up = self.at(value, value)
                shown = format(value, form or f",.{digits}f").replace("-", "−")
                if horizontal:
                    line, place = f"M{across:.1f} {self.top}V{self.bottom}", (across, self.bottom + 14.0)
                else:
                    line, place = f"M{self.left} {up:.1f}H{self.right}", (self.left - 5.0, up + 4)
                self._parts.append(f'<path class="k-grid" d="{line}"/>')
                self.write(*place, shown, "middle" if horizontal else "end", "muted")

    def line(
        self, points: Sequence[tuple[float, float]], color: str, width: float, opacity: float = 1, dash: str = ""
    ) -> None:
        """A line through the points, in `color` (`s0` ..., ink, muted)."""
        places = [self.at(*point) for point in points]
        drawn = "".join(f"{'L' if number else 'M'}{x:.1f} {y:.1f}" for number, (x, y) in enumerate(places))
        more = f' opacity="{opacity:g}"' if opacity < 1 else ""
        more += f' stroke-dasharray="{dash}"' if dash else ""
        self._parts.append(f'<path class="k-{color}" fill="none" stroke-width="{width:g}"{more} d="{drawn}"/>')

    def mark(
        self, x: float, y: float, system: int, hint: str, size: float = 1, hollow: bool = False, outline: bool = True
    ) -> None:
        """The marker of a system at a point; `hint` is shown where a pointer rests on it."""
        across, up = self.at(x, y)
        color = f"s{color_number(system)}"
        fill, stroke = f"f-{'paper' if hollow else color}", f" k-{color}" if outline else ""
        place = f"translate({across:.1f} {up:.1f})" + (f" scale({size:g})" if size != 1 else "")
        width = ' stroke-width="1.6"' if outline else ""
        shape, title = MARKERS[marker_number(system)], f"<title>{escape(printable(hint))}</title>"
        self._parts.append(f'<path class="{fill}{stroke}" transform="{place}"{width} d="{shape}">{title}</path>')

    def write(self, x: float, y: float, text: str, anchor: str = "start", color: str = "ink", more: str = "") -> None:
        """A text at a place in pixels, with `more` attributes."""
        end = f' text-anchor="{anchor}"' if anchor != "start" else ""
        shown = escape(printable(text))
        self._parts.append(f'<text class="f-{color}" x="{x:.1f}" y="{y:.1f}"{end}{more}>{shown}</text>')

    def svg(self, label: str) -> Markup:
        """The chart; `label` is its text for screen readers."""
        return Markup(
            f'<svg class="plot" viewBox="0 0 {WIDTH} {self.height}" role="img" aria-label="{escape(printable(label))}">'
            f"{''.join(self._parts)}</svg>"
        )


def ticks(limits: Limits, most: int = 6) -> list[float]:
    """Round values within the limits, at most so many."""
    low, high = limits
    least = (high - low) / most or 1.0
    size = 10.0 ** math.floor(math.log10(least))
    step = next(size * by for by in (1, 2, 5, 10) if size * by >= least * (1 - 1e-9))
    digits = max(0, -math.floor(math.log10(step)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(place * step, digits) if digits else int(place * step) for place in range(first, last + 1)]


# --- the plots ------------------------------------------------------------------------------------------------------


def exposure_plot(means: Sequence[MeanExposure], systems: Sequence[str]) -> Markup:
    """Every group's mean share by system, tied to its target: the longer the line, the further from it."""
    rows = shown_rows(means)
    pitch = 14 if len(means) <= 6 else 11
    height = pitch * len(means) + 30
    full = 1.06 * max(max(one.share, one.target or 0) for of_group in rows for one in of_group)
    chart = Chart(height * len(rows) + 26, (0, full), (-height * len(rows), 0), left=10, bottom=24, top=2)
    chart.grid(x=[value for value in ticks((0, full)) if value < full], form=".0%")
    for place, of_group in enumerate(rows):
        top = -height * place
        label = of_group[0].label
        shown = label if len(label) <= 50 else f"{label[:49]}…"
        chart.write(*chart.at(0, top - 14), shown, more=' font-weight="bold"')
        for row, (mean, (group, share, target)) in enumerate(zip(means, of_group, strict=True)):
            y = top - 27 - pitch * row
            hint = f"{systems[mean.system]}\n{group}: {share:.1%}"
            if target is not None:
                hint += f", target {target:.1%}"
                chart.line([(share, y), (target, y)], f"s{color_number(mean.system)}", 2.4, 0.55)
                chart.line([(target, y - pitch / 2), (target, y + pitch / 2)], "ink", 2)
            chart.mark(share, y, mean.system, hint, size=pitch / 16, outline=False)
    label = "; ".join(
        f"{of_group[0].label}: "
        + ("" if of_group[0].target is None else f"target {of_group[0].target:.0%}, ")
        + ", ".join(f"{systems[mean.system]} {one.share:.0%}" for mean, one in zip(means, of_group, strict=True))
        for of_group in rows
    )
    return chart.svg(f"Exposure against target. {label}")


def shown_rows(means: Sequence[MeanExposure]) -> list[tuple[ExposureRow, ...]]:
    """A row a group with what each system gives it; that of documents without a label where a system shows any."""
    rows = list(zip(*map(exposure_rows, means), strict=True))
    return rows if any(one.share or one.target for one in rows[-1]) else rows[:-1]


def line_plot(plot: LinePlot) -> Markup:
    """Lines with a marker a point that says on a hint what it is."""
    points = [point for line in plot.lines for point in (*line.points, *line.alone)]
    x = _limits([(point.x, point.x) for point in points])
    y = _limits([(point.y, point.y) for point in points])
    chart = _chart(280, x, y, plot.axes, whole=all(point.x == int(point.x) for point in points))
    if plot.diagonal:
        ends = max(x[0], y[0]), min(x[1], y[1])
        chart.line([(end, end) for end in ends], "muted", 1, dash="1 3")
    if y[0] < 0 < y[1]:
        chart.line([(x[0], 0), (x[1], 0)], "ink", 0.8, 0.4)
    for line in plot.lines:
        chart.line([(point.x, point.y) for point in line.points], f"s{color_number(line.color)}", 2, 0.6)
        for point, hollow in [*((one, False) for one in line.points), *((one, True) for one in line.alone)]:
            hint = f"{line.name} {point.name}\n{plot.axes[0]} {number(point.x)}\n{plot.axes[1]} {number(point.y)}"
            chart.mark(point.x, point.y, line.color, hint, size=0.9, hollow=hollow)
    label = "; ".join(
        f"{line.name}: " + ", ".join(f"{point.name} {number(point.x)} {number(point.y)}" for point in line.points)
        for line in plot.lines
    )
    return chart.svg(f"{plot.axes[1]} against {plot.axes[0]}. {label}")


def number(value: float) -> str:
    """A value of a measure, or a cost.

    >>> number(0.4621), number(23.04)
    ('0.462', '23.0')
    """
    return f"{value:,.{3 if abs(value) <= 1 else 1}f}"


@dataclass(frozen=True, slots=True)
class Point:
    """One system in a scatter plot, by its two means with their intervals; `front` marks the Pareto front."""

    system: int
    x: Comparison
    y: Comparison
    oracle: bool
    front: bool


def trade_off(run: Results, dimension: str) -> tuple[tuple[str, str], tuple[Point, ...]] | None:
    """The nDCG (over the dimension's own topics where there is one) and the AWRF that it is between, and every system.

    None where the run lacks one of the two.
    """
    compared, alone = comparisons_of(run, dimension), comparisons_of(run, RELEVANCE)
    fairness = next((m for m in run.measures if is_measure(m, "AWRF") and (run.baseline, m) in compared), None)
    judged = [m for m in run.measures if (run.baseline, m) in compared or (run.baseline, m) in alone]
    relevance = next((m for m in judged if is_measure(m, "nDCG")), None)
    if fairness is None or relevance is None:
        return None
    of_relevance = compared if (run.baseline, relevance) in compared else alone
    pairs = {
        system: (of_relevance[system, relevance], compared[system, fairness])
        for system in run.systems
        if (system, relevance) in of_relevance and (system, fairness) in compared
    }
    return (relevance, fairness), points(run, pairs)


def points(run: Results, pairs: Mapping[str, tuple[Comparison, Comparison]]) -> tuple[Point, ...]:
    """The systems with two means each, of which more is better; oracles on no front."""
    honest = [(x.mean, y.mean) for system, (x, y) in pairs.items() if system not in run.oracle_systems]

    def point(system: str, x: Comparison, y: Comparison) -> Point:
        means, oracle = (x.mean, y.mean), system in run.oracle_systems
        beaten = any(one[0] >= means[0] and one[1] >= means[1] and one != means for one in honest)
        return Point(run.systems.index(system), x, y, oracle, not oracle and not beaten)

    return tuple(point(system, x, y) for system, (x, y) in pairs.items())


def trade_off_plot(points: Sequence[Point], systems: Sequence[str], axes: tuple[str, str]) -> Markup:
    """Two means with 95 % intervals, and the Pareto front."""
    x = _limits([(one.x.low, one.x.high) for one in points])
    y = _limits([(one.y.low, one.y.high) for one in points])
    chart = _chart(300, x, y, axes, whole=False)
    front = sorted((one.x.mean, one.y.mean) for one in points if one.front)
    if front:
        # The best abscissa comes last, so that the edge falls away beyond it.
        xs = [x[0], *(across for across, _ in front for _ in range(2))]
        ys = [*(up for _, up in front for _ in range(2)), y[0]]
        chart.line(list(zip(xs, ys, strict=True)), "ink", 1.2, dash="5 4")
    for one in points:
        color = f"s{color_number(one.system)}"
        chart.line([(one.x.low, one.y.mean), (one.x.high, one.y.mean)], color, 1.4, 0.5)
        chart.line([(one.x.mean, one.y.low), (one.x.mean, one.y.high)], color, 1.4, 0.5)
    for one in points:
        hint = systems[one.system]
        for axis, of in zip(axes, (one.x, one.y), strict=True):
            ends = f" [{number(of.low)}, {number(of.high)}]" if of.low < of.high else ""
            hint += f"\n{axis} {number(of.mean)}{ends}"
        chart.mark(one.x.mean, one.y.mean, one.system, hint, hollow=one.oracle)
    label = "; ".join(
        f"{systems[p.system]}: {axes[0]} {number(p.x.mean)}, {axes[1]} {number(p.y.mean)}"
        f"{', Pareto front' if p.front else ''}"
        for p in points
    )
    return chart.svg(f"Trade-off. {label}")


def _chart(height: int, x: Limits, y: Limits, axes: tuple[str, str], whole: bool) -> Chart:
    """A chart with grids and the names of its axes; `whole` has whole numbers alone across."""
    chart = Chart(height, x, y, left=46, bottom=44)
    chart.grid([tick for tick in ticks(x) if not whole or tick == int(tick)], ticks(y))
    chart.write((chart.left + chart.right) / 2, height - 8, axes[0], "middle", "muted")
    middle = (chart.top + chart.bottom) / 2
    chart.write(11, middle, axes[1], "middle", "muted", f' transform="rotate(-90 11 {middle:.1f})"')
    return chart


def _limits(intervals: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """From a bit below the lowest to a bit above the highest; within [0, 1] where the values are."""
    lows, highs = zip(*intervals, strict=True)
    low, high = min(lows), max(highs)
    room = max(0.12 * (high - low), 0.005)
    bottom = max(0.0, low - room) if low >= 0 else low - room
    return bottom, min(1.01, high + room) if high <= 1 else high + room
