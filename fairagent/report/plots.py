"""The page's plots: what is drawn, in matplotlib. Each is made for a phone's width and grows with its box."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from fairagent.report.names import shortened, signed
from fairagent.report.point_names import name_points
from fairagent.report.points import Mean, Point
from fairagent.report.series import GapPaths, MeanExposure
from fairagent.report.svg import INK, MUTED, PAPER, SERIES, TEXT_SIZE, Names, inline_svg, plot_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 360
"""Pixels; a plot is drawn for a phone."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""A marker a system, as in the page's legends, so that none is told by its color alone."""


def color_number(system: int) -> int:
    """The place in `SERIES` of a system's color; the first is the baseline's alone."""
    return system and 1 + (system - 1) % (len(SERIES) - 1)


def color_of(system: int) -> str:
    """The stand-in color of a system (`svg.SERIES`)."""
    return SERIES[color_number(system)]


def marker_number(system: int) -> int:
    """The place in `MARKERS` of a system's marker; when the colors come round again, the markers are out of step."""
    return (system + system // len(SERIES)) % len(MARKERS)


def marker_of(system: int) -> str:
    """The marker of a system, matplotlib's name for it."""
    return MARKERS[marker_number(system)]


def trade_off_plot(points: Sequence[Point], systems: Sequence[str], axes: tuple[str, str], prefix: str) -> Markup:
    """Mean fairness against mean relevance with 95 % intervals, the Pareto front, and curves of equal product."""
    return _scatter(points, systems, axes, prefix)


def cost_plot(points: Sequence[Point], systems: Sequence[str], axes: tuple[str, str], prefix: str) -> Markup:
    """A mean with its 95 % intervals against cost, of which less is better, and the Pareto front."""
    return _scatter(points, systems, axes, prefix, cheap=True)


def exposure_plot(means: Sequence[MeanExposure], systems: Sequence[str], prefix: str) -> Markup:
    """Every group's mean share by system, tied to its target: the longer the line, the further from it."""
    names = Names()
    labels = means[0].labels
    pitch = 14 if len(means) <= 6 else 11
    half, height = pitch / 2, pitch * len(means) + 30
    with plot_style():
        figure, axis = canvas(height * len(labels) + 26, left=10, bottom=24, right=14, top=2)
        axis.grid(axis="y", visible=False)
        axis.set_yticks([])
        axis.set_ylim(-height * len(labels), 0)
        full = max(float(max(mean.shares.max(), mean.target.max())) for mean in means)
        axis.set_xlim(0, 1.06 * full)
        _percent_ticks(axis, 1.06 * full)
        hints = []
        for place, group in enumerate(labels):
            top = -height * place
            # The name of the group stands on paper, so that no grid line runs through it.
            axis.text(
                0,
                top - 14,
                names(shortened(group, 50)),
                color=INK,
                fontweight="bold",
                fontsize=TEXT_SIZE,
                gid=f"group{place}",
            )
            for row, mean in enumerate(means):
                y = top - 27 - pitch * row
                share, target = float(mean.shares[place]), float(mean.target[place])
                color = color_of(mean.system)
                axis.plot([share, target], [y, y], color=color, linewidth=2.4, solid_capstyle="butt", alpha=0.55)
                axis.plot([target, target], [y - half, y + half], color=INK, linewidth=2, solid_capstyle="butt")
                gid = f"share{place}x{mean.system}"
                axis.plot([share], [y], marker_of(mean.system), color=color, markersize=half, gid=gid, clip_on=False)
                text = f"{systems[mean.system]}\n{group}: {share:.1%}, target {target:.1%}"
                hints.append((gid, text))
        said = "; ".join(
            f"{group}: target {float(means[0].target[place]):.0%}, "
            + ", ".join(f"{systems[mean.system]} {float(mean.shares[place]):.0%}" for mean in means)
            for place, group in enumerate(labels)
        )
        return inline_svg(figure, f"Exposure against target. {said}", names, prefix, hints)


def gap_plot(paths: GapPaths, system: str, highest: float, prefix: str) -> Markup:
    """A thin line a topic and the mean over the topics, after each retrieval; `highest` is the top of the scale."""
    names = Names()
    means = paths.gaps.mean(axis=0)
    retrievals = np.arange(1, len(means) + 1)
    with plot_style():
        figure, axis = canvas(220, left=40, bottom=40, right=14, top=10)
        axis.set_xlabel("retrievals")
        axis.set_ylabel("gap (nats)")
        axis.set_xlim(0.85, max(len(means), 2) + 0.15)
        axis.set_xticks(retrievals)
        axis.set_ylim(0, highest)
        axis.grid(axis="x", visible=False)
        # One line with breaks in place of one a topic: the page stays small.
        broken = np.hstack([paths.gaps, np.full((len(paths.gaps), 1), np.nan)]).ravel()
        across = np.tile([*retrievals, np.nan], len(paths.gaps))
        axis.plot(across, broken, color=MUTED, linewidth=0.8, alpha=0.45)
        color = color_of(paths.system)
        axis.plot(retrievals, means, color=PAPER, linewidth=5, solid_capstyle="round")
        axis.plot(retrievals, means, marker_of(paths.system), color=PAPER, markersize=10)
        axis.plot(retrievals, means, color=color, linewidth=2.4, solid_capstyle="round")
        axis.plot(retrievals, means, marker_of(paths.system), color=color, markersize=7)
        said = ", ".join(f"{mean:.3f}" for mean in means)
        return inline_svg(figure, f"Mean gap of {system} after each retrieval: {said}", names, prefix)


def gains_plot(by_system: Mapping[int, Sequence[float]], systems: Sequence[str], prefix: str) -> Markup:
    """The topics' gains over the baseline, largest first: a line a system."""
    from matplotlib.ticker import MaxNLocator

    names = Names()
    ordered = {system: sorted(gains, reverse=True) for system, gains in by_system.items()}
    most = max(len(gains) for gains in ordered.values())
    said = "; ".join(
        f"{systems[system]}: from {signed(gains[0])} to {signed(gains[-1])}, "
        f"{sum(gain > 0 for gain in gains)} topics up, {sum(gain < 0 for gain in gains)} down"
        for system, gains in ordered.items()
        if gains
    )
    with plot_style():
        figure, axis = canvas(240, left=46, bottom=40, right=14, top=10)
        axis.set_xlabel("topics, the largest gain first")
        axis.set_ylabel("gain over the baseline")
        axis.grid(axis="x", visible=False)
        axis.axhline(0, color=INK, linewidth=1.2)
        axis.set_xlim(0.5, most + 0.5)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        for system, gains in ordered.items():
            places = np.arange(1, len(gains) + 1)
            axis.plot(places, gains, color=color_of(system), linewidth=1.6, alpha=0.9)
            axis.plot(places, gains, marker_of(system), color=color_of(system), markersize=4)
        return inline_svg(figure, f"Gains by topic. {said}", names, prefix)


def _scatter(
    points: Sequence[Point], systems: Sequence[str], axes: tuple[str, str], prefix: str, cheap: bool = False
) -> Markup:
    names = Names()
    label = "; ".join(
        f"{systems[p.system]}: {axes[0]} {number(p.x.mean)}, {axes[1]} {number(p.y.mean)}"
        f"{', Pareto front' if p.front else ''}"
        for p in points
    )
    with plot_style():
        figure, axis = canvas(300, left=46, bottom=44, right=14, top=12)
        axis.set_xlabel(names(axes[0]))
        axis.set_ylabel(names(axes[1]))
        axis.set_xlim(*limits([(p.x.low, p.x.high) for p in points], bounded=not cheap))
        axis.set_ylim(*limits([(p.y.low, p.y.high) for p in points]))
        if not cheap:
            _equal_products(axis)
        _front(axis, [(p.x.mean, p.y.mean) for p in points if p.front], cheap)
        for p in points:
            _point(axis, p)
        name_points(axis, points, [systems[p.system] for p in points], names)
        hints = [
            (f"point{p.system}", f"{systems[p.system]}\n{axes[0]} {_interval(p.x)}\n{axes[1]} {_interval(p.y)}")
            for p in points
        ]
        return inline_svg(figure, f"{'Cost' if cheap else 'Trade-off'}. {label}", names, prefix, hints)


def canvas(height: int, *, left: int, bottom: int, right: int, top: int) -> tuple[Figure, Axes]:
    """A figure of `WIDTH` x `height` pixels with one pair of axes inside these margins."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72)
    inner = (
        left / WIDTH,
        bottom / height,
        (WIDTH - left - right) / WIDTH,
        (height - bottom - top) / height,
    )
    return figure, figure.add_axes(inner)


def limits(intervals: Iterable[tuple[float, float]], bounded: bool = True) -> tuple[float, float]:
    """From a bit below the lowest to a bit above the highest; if `bounded`, within [0, 1] where the values are."""
    lows, highs = zip(*intervals, strict=True)
    low, high = min(lows), max(highs)
    room = max(0.12 * (high - low), 0.005)
    if not bounded:
        return low - room, high + room
    bottom = max(0.0, low - room) if low >= 0 else low - room
    return bottom, min(1.01, high + room) if high <= 1 else high + room


def _equal_products(axis: Axes) -> None:
    """Curves on which the product of both coordinates is the same."""
    (left, right), (bottom, top) = axis.get_xlim(), axis.get_ylim()
    if left * bottom >= 0 and right * top > 0:
        across = np.linspace(max(left, 1e-9), right, 60)
        for value in np.linspace(left * bottom, right * top, 7)[1:-1]:
            axis.plot(across, value / across, color=MUTED, linewidth=1, linestyle=(0, (1, 3)), alpha=0.6, zorder=1)


def _front(axis: Axes, front: Iterable[tuple[float, float]], cheap: bool) -> None:
    """The edge of what the front leaves behind: from each point to the worse side and down, then out of sight."""
    # The best abscissa comes last, so that the edge falls away beyond it.
    ordered = sorted(front, reverse=cheap)
    if ordered:
        worst, bottom = axis.get_xlim()[1 if cheap else 0], axis.get_ylim()[0]
        xs = [worst, *(x for x, _ in ordered for _ in range(2))]
        ys = [*(y for _, y in ordered for _ in range(2)), bottom]
        axis.plot(xs, ys, color=INK, linewidth=1.2, linestyle=(0, (4, 3)), zorder=1.5)


def _point(axis: Axes, point: Point) -> None:
    x, y, color = point.x, point.y, color_of(point.system)
    axis.plot([x.low, x.high], [y.mean, y.mean], color=color, linewidth=1.4, alpha=0.5, zorder=2)
    axis.plot([x.mean, x.mean], [y.low, y.high], color=color, linewidth=1.4, alpha=0.5, zorder=2)
    inside = PAPER if point.oracle else color
    axis.plot(
        [x.mean],
        [y.mean],
        marker_of(point.system),
        markersize=9,
        markerfacecolor=inside,
        markeredgecolor=color,
        markeredgewidth=1.8,
        gid=f"point{point.system}",
        zorder=3,
    )


def _percent_ticks(axis: Axes, full: float) -> None:
    step = next(step for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25) if full / step <= 5 or step == 0.25)
    ticks = np.arange(0, full, step)
    axis.set_xticks(ticks, [f"{tick:.0%}" for tick in ticks])


def number(value: float) -> str:
    """A value of a measure, or a cost.

    >>> number(0.4621), number(23.04)
    ('0.462', '23.0')
    """
    return f"{value:,.{3 if abs(value) <= 1 else 1}f}"


def _interval(of: Mean) -> str:
    return number(of.mean) + (f" [{number(of.low)}, {number(of.high)}]" if of.low < of.high else "")
