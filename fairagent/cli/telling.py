"""What a command says on standard error of its work where no terminal is, a line every ten seconds; and its calls.

Logs and pipes are read later, or by a program: no bars, no colors, nothing before ten seconds have passed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from rich.progress import Progress

from fairagent.report import text as consoles
from fairagent.types.clean import in_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairagent.llm.prompts.calls import Calls
    from fairagent.settings.models import Price

EVERY = 10.0
"""Seconds between two lines."""
Write = Callable[[str], None]
Wait = Callable[[float], bool]
"""Waits so many seconds, or until it is time to end: then it returns True."""


def tell(what: Callable[[], Iterable[str]], write: Write, wait: Wait) -> None:
    """Write the lines that `what` returns, after how long, every ten seconds until it is time to end."""
    seconds = 0.0
    while not wait(EVERY):
        seconds += EVERY
        for line in what():
            write(f"{in_line(line)} ({timedelta(seconds=round(seconds))})")


@contextmanager
def telling(what: Callable[[], Iterable[str]], write: Write) -> Iterator[None]:
    """The same beside the work inside the block, in a thread."""
    ended = threading.Event()
    thread = threading.Thread(target=tell, args=(what, write, ended.wait), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


class ToldProgress(Progress):
    """A progress of rich that shows no bars, but tells of each thing that is not done yet."""

    def __init__(self, write: Write) -> None:
        # What is printed above its lines is no output of the command.
        super().__init__(console=consoles.console(stderr=True), disable=True, auto_refresh=False)
        self._telling = telling(self.lines, write)

    def start(self) -> None:
        """Begin to tell."""
        self._telling.__enter__()

    def stop(self) -> None:
        """Tell no more."""
        self._telling.__exit__(None, None, None)

    def lines(self) -> Iterator[str]:
        """How far each thing is that is not done: `evaluating first: 12 of 160`."""
        for task in self.tasks:
            if task.total is None or task.completed < task.total:
                of = "" if task.total is None else f" of {task.total:,.0f}"
                yield f"{task.description}: {task.completed:,.0f}{of}"


Asking = tuple[str, int, float | None]
"""A model, how often it is called at most, and the dollars of that; None where its price is not known."""


def of_calls(calls: Iterable[Calls], prices: Mapping[str, Price]) -> Iterator[Asking]:
    """Those of one search or answer."""
    for one in calls:
        price = prices.get(one.model.name)
        yield one.model.name, one.calls, price.dollars(one.input_tokens, one.output_tokens) if price else None


def ahead(askings: Iterable[Asking]) -> str:
    """The calls that a command may make, in one line; "" where it makes none.

    >>> ahead([("small", 40, 0.02), ("", 0, 0.0), ("small", 2, 0.01), ("large", 1, None)])
    'may ask small 42 times ($0.0300 at most) and large once (price unknown)'
    >>> ahead([("", 0, 0.0)])
    ''
    """
    counts: dict[str, int] = {}
    prices: dict[str, float | None] = {}
    for model, calls, dollars in askings:
        if calls:
            before = prices.get(model, 0.0)
            counts[model] = counts.get(model, 0) + calls
            prices[model] = None if before is None or dollars is None else before + dollars
    parts = [
        f"{in_line(model) or 'a model'} {'once' if calls == 1 else f'{calls:,} times'} "
        f"({'price unknown' if (price := prices[model]) is None else f'${price:.4f} at most'})"
        for model, calls in counts.items()
    ]
    return f"may ask {' and '.join(parts)}" if parts else ""
