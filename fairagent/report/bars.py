"""A share as a bar, with a tick where its target is: block characters, or ASCII where the terminal has no others."""

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

BLOCKS = " ▏▎▍▌▋▊▉█"
"""A cell that is filled by 0 to 8 eighths."""
NARROWEST, WIDEST = 8, 40
TICK_STYLE = "bold yellow"


def draw_bar(share: float, target: float | None, width: int, ascii_only: bool = False) -> tuple[str, int]:
    """The bar's `width` characters for `share` of its length, and the place (from 0) of the tick at `target`.

    Both are fractions of the bar's length in [0, 1]; what is beyond is cut. Without a target there is no tick, and its
    place is `width`. In ASCII a cell is full from one half on.

    >>> draw_bar(0.25, 0.5, 8)
    ('██  │   ', 4)
    >>> draw_bar(0.8, 0.5, 8, ascii_only=True)
    ('####|#  ', 4)
    """
    eighths = round(8 * width * min(max(share, 0.0), 1.0))
    filled = [min(8, max(0, eighths - 8 * cell)) for cell in range(width)]
    tick = width if target is None else min(width - 1, int(width * min(max(target, 0.0), 1.0)))
    cells = ["#" if ascii_only and eighths >= 4 else " " if ascii_only else BLOCKS[eighths] for eighths in filled]
    if tick < width:
        cells[tick] = "|" if ascii_only else "│"
    return "".join(cells), tick


@dataclass(frozen=True, slots=True)
class ExposureBar:
    """`share` beside `target` as a rich renderable that takes the width it is given; `full` is a full bar's share."""

    share: float
    target: float | None
    full: float
    style: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = min(options.max_width, WIDEST)
        target = None if self.target is None else self.target / self.full
        drawn, tick = draw_bar(self.share / self.full, target, width, options.ascii_only)
        text = Text(drawn, self.style, no_wrap=True, end="")
        text.stylize(TICK_STYLE, tick, tick + 1)
        yield text

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(min(NARROWEST, options.max_width), min(WIDEST, options.max_width))
