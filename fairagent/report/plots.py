"""The page's plots as SVG: two axes, and what is drawn between them, in the page's own colors and markers.

Colors are classes (`f-` fill, `k-` stroke) that the style sheet sets for a light and a dark screen. There is no style
attribute, so a strict Content-Security-Policy lets it pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from markupsafe import Markup, escape

from fairagent.evaluate.run import MeanExposure
from fairagent.evaluate.tables import LinePlot
from fairagent.report.results import GapPaths, Mean, Point
from fairagent.report.text import shortened, signed
from fairagent.types import ExposureRow, exposure_rows
from fairagent.types.clean import printable

WIDTH = 360
"""Pixels; a chart is drawn for a phone's width and grows with its box."""
TEXT_SIZE = 11
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

    def grid_x(self, values: Iterable[float], form: str = "", lines: bool = True) -> None:
        """Values of the horizontal axis, with a line each."""
        for value, text in _labeled(values, form):
            x, _ = self.at(value, 0)
            if lines:
                self._parts.append(f'<path class="k-grid" d="M{x:.1f} {self.top}V{self.bottom}"/>')
            self.write(x, self.bottom + 14, text, "middle", "muted")

    def grid_y(self, values: Iterable[float], form: str = "") -> None:
        """Values of the vertical axis, with a line each."""
        for value, text in _labeled(values, form):
            _, y = self.at(0, value)
            self._parts.append(f'<path class="k-grid" d="M{self.left} {y:.1f}H{self.right}"/>')
            self.write(self.left - 5, y + 4, text, "end", "muted")

    def name_axes(self, x: str, y: str) -> None:
        """What the axes show."""
        self.write((self.left + self.right) / 2, self.height - 8, x, "middle", "muted")
        middle = (self.top + self.bottom) / 2
        self.write(11, middle, y, "middle", "muted", f' transform="rotate(-90 11 {middle:.1f})"')

    def line(
        self,
        points: Sequence[tuple[float, float]],
        color: str,
        width: float,
        opacity: float = 1,
        dash: str = "",
        breaks: Sequence[int] = (),
    ) -> None:
        """A line through the points, in `color` (`s0` ..., ink, muted, paper), broken before the places in `breaks`."""
        drawn = []
        for place, point in enumerate(points):
            x, y = self.at(*point)
            drawn.append(f"{'M' if place == 0 or place in breaks else 'L'}{x:.1f} {y:.1f}")
        more = f' opacity="{opacity:g}"' if opacity < 1 else ""
        more += f' stroke-dasharray="{dash}"' if dash else ""
        self._parts.append(f'<path class="k-{color}" fill="none" stroke-width="{width:g}"{more} d="{"".join(drawn)}"/>')

    def mark(
        self,
        x: float,
        y: float,
        system: int,
        hint: str = "",
        size: float = 1,
        hollow: bool = False,
        outline: bool = True,
    ) -> None:
        """The marker of a system at a point; `hint` is shown where a pointer rests on it."""
        across, up = self.at(x, y)
        color = f"s{color_number(system)}"
        fill, stroke = f"f-{'paper' if hollow else color}", f" k-{color}" if outline else ""
        place = f"translate({across:.1f} {up:.1f})" + (f" scale({size:g})" if size != 1 else "")
        title = f"<title>{escape(printable(hint))}</title>" if hint else ""
        width = ' stroke-width="1.6"' if outline else ""
        shape = MARKERS[marker_number(system)]
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


def _labeled(values: Iterable[float], form: str) -> Iterable[tuple[float, str]]:
    """The values with their texts, all with the same decimals unless `form` is a format."""
    values = list(values)
    digits = max((len(f"{value:g}".partition(".")[2]) for value in values), default=0)
    return [(value, format(value, form or f",.{digits}f").replace("-", "−")) for value in values]


# --- the plots ------------------------------------------------------------------------------------------------------

Axes = tuple[str, str]
LONGEST = 26
"""Letters of a name beside a point; the legend has it in full."""
LETTER = 0.55
"""Width of a letter in parts of its size, on average over the fonts that browsers have."""
MARKS = 16
"""About so many markers on a line over topics."""
DOTTED, DASHED = "1 3", "5 4"


def exposure_plot(means: Sequence[MeanExposure], systems: Sequence[str]) -> Markup:
    """Every group's mean share by system, tied to its target: the longer the line, the further from it."""
    rows = shown_rows(means)
    pitch = 14 if len(means) <= 6 else 11
    height = pitch * len(means) + 30
    full = 1.06 * max(max(one.share, one.target or 0) for of_group in rows for one in of_group)
    chart = Chart(height * len(rows) + 26, (0, full), (-height * len(rows), 0), left=10, bottom=24, top=2)
    chart.grid_x([value for value in ticks((0, full)) if value < full], ".0%")
    for place, of_group in enumerate(rows):
        top = -height * place
        chart.write(*chart.at(0, top - 14), shortened(of_group[0].label, 50), more=' font-weight="bold"')
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


def gap_plot(paths: GapPaths, system: str, highest: float) -> Markup:
    """A thin line a topic and the mean over the topics, after each retrieval; `highest` is the top of the scale."""
    means = paths.gaps.mean(axis=0).tolist()
    count = len(means)
    chart = Chart(220, (0.85, max(count, 2) + 0.15), (0, highest), left=40, bottom=40, top=10)
    chart.grid_y(ticks((0, highest)))
    chart.grid_x(range(1, count + 1), lines=False)
    chart.name_axes("retrievals", "gap (nats)")
    # One line with breaks in place of one a topic: the page stays small.
    every = [(place, gap) for path in paths.gaps.tolist() for place, gap in enumerate(path, start=1)]
    chart.line(every, "muted", 0.8, 0.45, breaks=range(0, len(every), count))
    mean_line = list(enumerate(means, start=1))
    chart.line(mean_line, "paper", 5)
    chart.line(mean_line, f"s{color_number(paths.system)}", 2.4)
    for place, mean in mean_line:
        chart.mark(place, mean, paths.system, size=0.8)
    label = ", ".join(f"{mean:.3f}" for mean in means)
    return chart.svg(f"Mean gap of {system} after each retrieval: {label}")


def gains_plot(by_system: Mapping[int, Sequence[float]], systems: Sequence[str]) -> Markup:
    """The topics' gains over the baseline, largest first: a line a system."""
    ordered = {system: sorted(gains, reverse=True) for system, gains in by_system.items()}
    most = max(len(gains) for gains in ordered.values())
    values = [0.0, *(gain for gains in ordered.values() for gain in gains)]
    y = _limits([(value, value) for value in values], bounded=False)
    chart = Chart(240, (0.5, most + 0.5), y, left=46, bottom=40, top=10)
    chart.grid_y(ticks(y))
    chart.grid_x([value for value in ticks((1, most)) if value == int(value)], lines=False)
    chart.name_axes("topics, the largest gain first", "gain over the baseline")
    chart.line([(0.5, 0), (most + 0.5, 0)], "ink", 1.2)
    for system, gains in ordered.items():
        line = list(enumerate(gains, start=1))
        chart.line(line, f"s{color_number(system)}", 1.6, 0.9)
        # Enough marks to tell the lines apart, not one a topic.
        for place, gain in line[:: max(1, len(line) // MARKS)]:
            chart.mark(place, gain, system, size=0.45, outline=False)
    label = "; ".join(
        f"{systems[system]}: from {signed(gains[0])} to {signed(gains[-1])}, "
        f"{sum(gain > 0 for gain in gains)} topics up, {sum(gain < 0 for gain in gains)} down"
        for system, gains in ordered.items()
        if gains
    )
    return chart.svg(f"Gains by topic. {label}")


def line_plot(plot: LinePlot) -> Markup:
    """Lines with a marker a point that says on a hint what it is."""
    points = [point for line in plot.lines for point in (*line.points, *line.alone)]
    x = _limits([(point.x, point.x) for point in points])
    y = _limits([(point.y, point.y) for point in points])
    chart = _chart(280, x, y, plot.axes, whole=all(point.x == int(point.x) for point in points))
    if plot.diagonal:
        ends = max(x[0], y[0]), min(x[1], y[1])
        chart.line([(end, end) for end in ends], "muted", 1, dash=DOTTED)
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


def trade_off_plot(points: Sequence[Point], systems: Sequence[str], axes: Axes, cheap: bool = False) -> Markup:
    """Two means with 95 % intervals, the Pareto front, curves of equal product; if `cheap`, the first is a cost."""
    x = _limits([(one.x.low, one.x.high) for one in points], bounded=not cheap)
    y = _limits([(one.y.low, one.y.high) for one in points])
    chart = _chart(300, x, y, axes, whole=False)
    if not cheap and x[0] * y[0] >= 0 and x[1] * y[1] > 0:
        for value in np.linspace(x[0] * y[0], x[1] * y[1], 7)[1:-1].tolist():
            # Only where they are within the axes.
            across = np.linspace(max(x[0], value / y[1]), min(x[1], value / y[0] if y[0] > 0 else x[1]), 40).tolist()
            chart.line([(place, value / place) for place in across], "muted", 1, 0.6, dash=DOTTED)
    # The best abscissa comes last, so that the edge falls away beyond it.
    front = sorted(((one.x.mean, one.y.mean) for one in points if one.front), reverse=cheap)
    if front:
        xs = [x[1 if cheap else 0], *(across for across, _ in front for _ in range(2))]
        ys = [*(up for _, up in front for _ in range(2)), y[0]]
        chart.line(list(zip(xs, ys, strict=True)), "ink", 1.2, dash=DASHED)
    for one in points:
        color = f"s{color_number(one.system)}"
        chart.line([(one.x.low, one.y.mean), (one.x.high, one.y.mean)], color, 1.4, 0.5)
        chart.line([(one.x.mean, one.y.low), (one.x.mean, one.y.high)], color, 1.4, 0.5)
    for one in points:
        hint = f"{systems[one.system]}\n{axes[0]} {_interval(one.x)}\n{axes[1]} {_interval(one.y)}"
        chart.mark(one.x.mean, one.y.mean, one.system, hint, hollow=one.oracle)
    for text, side, place in _names(chart, points, systems):
        chart.write(*place, text, side)
    label = "; ".join(
        f"{systems[p.system]}: {axes[0]} {number(p.x.mean)}, {axes[1]} {number(p.y.mean)}"
        f"{', Pareto front' if p.front else ''}"
        for p in points
    )
    return chart.svg(f"{'Cost' if cheap else 'Trade-off'}. {label}")


def _chart(height: int, x: tuple[float, float], y: tuple[float, float], axes: Axes, whole: bool) -> Chart:
    """A chart with grids; `whole` has whole numbers alone across."""
    chart = Chart(height, x, y, left=46, bottom=44)
    chart.grid_x([tick for tick in ticks(x) if not whole or tick == int(tick)])
    chart.grid_y(ticks(y))
    chart.name_axes(*axes)
    return chart


def _limits(intervals: Iterable[tuple[float, float]], bounded: bool = True) -> tuple[float, float]:
    """From a bit below the lowest to a bit above the highest; if `bounded`, within [0, 1] where the values are."""
    lows, highs = zip(*intervals, strict=True)
    low, high = min(lows), max(highs)
    room = max(0.12 * (high - low), 0.005)
    if not bounded:
        return low - room, high + room
    bottom = max(0.0, low - room) if low >= 0 else low - room
    return bottom, min(1.01, high + room) if high <= 1 else high + room


def _interval(of: Mean) -> str:
    return number(of.mean) + (f" [{number(of.low)}, {number(of.high)}]" if of.low < of.high else "")


class Box(NamedTuple):
    """A rectangle in pixels, from the top down."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Whether the two overlap."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


def _names(
    chart: Chart, points: Sequence[Point], systems: Sequence[str]
) -> Iterator[tuple[str, str, tuple[float, float]]]:
    """Names beside their points where they meet no other: text, which end is fixed, and where; without room, none."""
    inside = Box(chart.left, chart.top, chart.right, chart.bottom)
    centers = [chart.at(one.x.mean, one.y.mean) for one in points]
    taken = [Box(x - 7, y - 7, x + 7, y + 7) for x, y in centers]
    crosses = []
    for one, (x, y) in zip(points, centers, strict=True):
        (left, bottom), (right, top) = chart.at(one.x.low, one.y.low), chart.at(one.x.high, one.y.high)
        crosses += [Box(left, y - 1, right, y + 1), Box(x - 1, top, x + 1, bottom)]
    for one, center in zip(points, centers, strict=True):
        text = shortened(systems[one.system], LONGEST)
        free = [
            (box, side, place)
            for box, side, place in _places(*center, text)
            if box.left >= inside.left and box.right <= inside.right
            if box.top >= inside.top and box.bottom <= inside.bottom
            if not any(box.meets(other) for other in taken)
        ]
        # Best is a place that no interval runs through.
        free.sort(key=lambda place: any(place[0].meets(line) for line in crosses))
        for box, side, place in free[:1]:
            taken.append(box)
            yield text, side, place


def _places(x: float, y: float, text: str) -> Iterator[tuple[Box, str, tuple[float, float]]]:
    """The places for a name around a point, the best first: its box, which end of it is fixed, and where."""
    width, size = LETTER * TEXT_SIZE * len(text), TEXT_SIZE
    heights = (0.35 * size, -0.8 * size, 1.5 * size, -1.9 * size, 2.6 * size)
    for dy, (side, dx) in product(heights, (("start", 11.0), ("end", -11.0), ("middle", 0.0))):
        if side != "middle" or dy != 0.35 * size:
            left = x + dx - {"start": 0.0, "end": width, "middle": width / 2}[side]
            yield Box(left, y + dy - size, left + width, y + dy + 2), side, (x + dx, y + dy)
