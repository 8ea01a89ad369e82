"""Where the commands print: results to standard output, progress and complaints to standard error."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


def console() -> Console:
    """Standard output: colors in a terminal only, block characters where the encoding has them."""
    return Console(highlight=False)


def error_console() -> Console:
    """Standard error."""
    return Console(stderr=True, highlight=False)


def progress_bar() -> Progress:
    """A bar with counts and times that disappears when it is done, and says nothing where no terminal is."""
    terminal = error_console()
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    times = TimeElapsedColumn(), TimeRemainingColumn()
    return Progress(*columns, *times, console=terminal, transient=True, disable=not terminal.is_terminal)
