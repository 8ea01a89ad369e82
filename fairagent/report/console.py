"""Consoles whose text is clean: whatever is printed, nothing in it steers the terminal."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from fairagent.clean import printable


class CleanConsole(Console):
    """A console of rich that makes every piece of text printable; its own colors and movements stay."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of what is printed."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)


def console(**about: Any) -> Console:
    """A console on standard output, or wherever `about` (rich's options) says; texts are no markup, [b] is [b]."""
    return CleanConsole(highlight=False, markup=False, **about)
