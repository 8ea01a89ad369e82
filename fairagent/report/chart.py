"""A chart as SVG inside the page: two axes, and what is drawn between them, in the page's own colors and markers.

Colors are classes (`f-` fill, `k-` stroke) that the style sheet sets for a light and a dark screen. There is no style
attribute, so a strict Content-Security-Policy lets it pass.
"""

import math
from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

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
"""A marker a system, around 0, 0, so that none is told by its color alone."""

Limits = tuple[float, float]


def color_number(system: int) -> int:
    """The number of a system's color; the first is the baseline's alone."""
    return system and 1 + (system - 1) % (SERIES - 1)


def marker_number(system: int) -> int:
    """The number of a system's marker; there is one more than colors that come round, so that no pair soon returns."""
    return system % len(MARKERS)


class Chart:
    """An SVG of `WIDTH` x `height` pixels with axes inside the margins; things are drawn in the order of the calls."""

    def __init__(
        self, height: int, x: Limits, y: Limits, left: int, bottom: int, right: int = 14, top: int = 12
    ) -> None:
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
            self._text(x, self.bottom + 14, text, "middle", "f-muted")

    def grid_y(self, values: Iterable[float], form: str = "") -> None:
        """Values of the vertical axis, with a line each."""
        for value, text in _labeled(values, form):
            _, y = self.at(0, value)
            self._parts.append(f'<path class="k-grid" d="M{self.left} {y:.1f}H{self.right}"/>')
            self._text(self.left - 5, y + 4, text, "end", "f-muted")

    def name_axes(self, x: str, y: str) -> None:
        """What the axes show."""
        self._text((self.left + self.right) / 2, self.height - 8, x, "middle", "f-muted")
        middle = (self.top + self.bottom) / 2
        turned = f' transform="rotate(-90 11 {middle:.1f})"'
        self._text(11, middle, y, "middle", "f-muted", turned)

    def line(
        self,
        points: Sequence[tuple[float, float]],
        color: str,
        width: float,
        opacity: float = 1,
        dash: str = "",
        breaks: Sequence[int] = (),
    ) -> None:
        """A line through the points, in `color` (`s0` ..., ink, muted, paper); it is broken before places in `breaks`.

        What lies beyond the axes is cut.
        """
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

    def write(self, x: float, y: float, text: str, anchor: str = "start", bold: bool = False) -> None:
        """A text at a place in pixels."""
        self._text(x, y, text, anchor, "f-ink", ' font-weight="bold"' if bold else "")

    def svg(self, label: str) -> Markup:
        """The chart; `label` is what people hear who do not see it."""
        return Markup(
            f'<svg class="plot" viewBox="0 0 {WIDTH} {self.height}" role="img" aria-label="{escape(printable(label))}">'
            f"{''.join(self._parts)}</svg>"
        )

    def _text(self, x: float, y: float, text: str, anchor: str, color: str, more: str = "") -> None:
        end = f' text-anchor="{anchor}"' if anchor != "start" else ""
        said = escape(printable(text))
        self._parts.append(f'<text class="{color}" x="{x:.1f}" y="{y:.1f}"{end}{more}>{said}</text>')


def ticks(limits: Limits, most: int = 6) -> list[float]:
    """Round values within the limits, at most so many.

    >>> ticks((0.11, 0.52)), ticks((0, 7))
    ([0.2, 0.3, 0.4, 0.5], [0, 2, 4, 6])
    """
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
