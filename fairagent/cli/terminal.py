"""Where the commands print: results to standard output, progress and complaints to standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from fairagent.clean import printable
from fairagent.report import console as consoles

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from fairagent.collection import Collection
    from fairagent.retrieve.forecast import Forecast


def console() -> Console:
    """Standard output: colors in a terminal only, block characters where the encoding has them."""
    return consoles.console()


def error_console() -> Console:
    """Standard error."""
    return consoles.console(stderr=True)


def echo(text: str, end: str = "\n", err: bool = False) -> None:
    """Print text that is no table of rich's; nothing in it steers the terminal."""
    typer.echo(printable(text) + end, nl=False, err=err)


def progress_bar() -> Progress:
    """A bar with counts and times that disappears when it is done, and says nothing where no terminal is."""
    from rich import progress

    terminal = error_console()
    columns = progress.TextColumn("{task.description}", markup=False), progress.BarColumn()
    times = progress.MofNCompleteColumn(), progress.TimeElapsedColumn(), progress.TimeRemainingColumn()
    return progress.Progress(*columns, *times, console=terminal, transient=True, disable=not terminal.is_terminal)


@contextmanager
def going_on(how: str) -> Iterator[None]:
    """Whoever interrupts what is done inside the block is told `how` to go on."""
    try:
        yield
    except KeyboardInterrupt as interrupted:
        interrupted.add_note(how)
        raise


def told(bar: Progress, collection: Collection) -> Callable[[str, int], None]:
    """What moves a line of `bar` for each thing that is built from the documents of `collection`."""
    tasks: dict[str, TaskID] = {}

    def progress(what: str, done: int) -> None:
        if what not in tasks:
            # How many passages there will be is not known before.
            total = None if bar.disable or collection.chunks else collection.source.count()
            tasks[what] = bar.add_task(what, total=total)
        bar.update(tasks[what], completed=done)

    return progress


def announced(bar: Progress) -> Callable[[str, Forecast], None]:
    """What says above `bar` what is about to take its time, and how much of it, and gives its line that length."""

    def announce(what: str, forecast: Forecast) -> None:
        bar.console.print(f"{what}: {forecast}", soft_wrap=True, markup=False, highlight=False)
        for task in bar.tasks:
            if task.description == what and task.total is None:
                bar.update(task.id, total=forecast.documents)

    return announce
