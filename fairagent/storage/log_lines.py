"""Log lines as JSON: one object a line, with what is known of the request that was served when it was written.

Nothing of a query is in one by default: of an exception only its type and its places in the code are told, not its
message, which may quote what was asked.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

from fairagent.types.clean import printable

FIELDS = "fields"
"""The attribute of a log record, by `extra`, that has further fields of its line."""

_about: ContextVar[Mapping[str, object] | None] = ContextVar("about", default=None)


@contextmanager
def about_request(**fields: object) -> Iterator[None]:
    """Log lines of what is done in the block, also in threads that share its context, have these fields."""
    token = _about.set({**(_about.get() or {}), **fields})
    try:
        yield
    finally:
        _about.reset(token)


class JsonLines(logging.Formatter):
    """One JSON object a line: `time` (UTC), `level`, `logger`, `event`, those of the request, and `traceback`.

    With `texts` a traceback ends with the exception's message, which may quote a query.
    """

    def __init__(self, texts: bool = False) -> None:
        super().__init__()
        self._texts = texts

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": printable(record.getMessage()),
            **(_about.get() or {}),
            **getattr(record, FIELDS, {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["traceback"] = printable(self._traceback(record.exc_info[1]))
        return json.dumps(line, default=str)

    def _traceback(self, error: BaseException) -> str:
        trace = traceback.TracebackException.from_exception(error)
        if not self._texts:
            _without_messages(trace, set())
        return "".join(trace.format())


def _without_messages(trace: traceback.TracebackException, seen: set[int]) -> None:
    """Take the messages of an exception, and of those that it came from or is a group of, out of a traceback."""
    if id(trace) in seen:
        return
    seen.add(id(trace))
    trace._str = ""  # type: ignore[attr-defined]
    if hasattr(trace, "__notes__"):
        trace.__notes__ = None
    for other in (trace.__cause__, trace.__context__, *(trace.exceptions or ())):
        if other is not None:
            _without_messages(other, seen)


def logs_as_json() -> bool:
    """Whether all log lines are JSON."""
    return any(isinstance(handler.formatter, JsonLines) for handler in logging.getLogger().handlers)


def log_as_json(texts: bool = False) -> None:
    """From here on all log lines, and Python's warnings, are JSON on standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(texts))
    logging.captureWarnings(True)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("fairagent").setLevel(logging.INFO)
