"""Log lines as JSON: one object a line, and nothing in it that was asked."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest

from fairagent.storage.log_lines import FIELDS, JsonLines, about_request

SECRET = "a query about somebody"


def line(texts: bool = False, message: str = "said %s", args: Any = ("this",), **more: Any) -> dict[str, Any]:
    record = logging.LogRecord("fairagent.x", logging.WARNING, "file", 1, message, args, more.pop("exc_info", None))
    record.__dict__.update(more)
    text = JsonLines(texts).format(record)
    assert "\n" not in text
    read: dict[str, Any] = json.loads(text)
    return read


def raised() -> Any:
    """A group of exceptions, one caused by another, one raised while another was handled, with notes."""
    try:
        try:
            try:
                raise KeyError(SECRET)
            except KeyError as error:
                error.add_note(SECRET)
                raise ValueError(SECRET) from error
        except ValueError as error:
            raise ExceptionGroup(SECRET, [error, OSError(2, SECRET)]) from None
    except ExceptionGroup:
        return sys.exc_info()


def test_a_line_has_time_level_event_and_the_requests_fields() -> None:
    with about_request(request="r1"), about_request(user="ada"):
        found = line(**{FIELDS: {"status": 200, "ms": 1.5}})
    assert found.pop("time").endswith("+00:00")
    assert found == {
        "level": "warning", "logger": "fairagent.x", "event": "said this", "request": "r1", "user": "ada",
        "status": 200, "ms": 1.5,
    }  # fmt: skip
    assert "request" not in line()


@pytest.mark.parametrize("bad", ["two\nlines", "\x1b[31mred", "\u2028", "\ud800"])
def test_no_message_breaks_a_line_or_steers_a_terminal(bad: str) -> None:
    found = line(message="%s", args=(bad,))
    assert "\x1b" not in found["event"]
    assert found["level"] == "warning"


def test_a_traceback_is_one_field_without_messages() -> None:
    found = line(exc_info=raised())
    assert all(told in found["traceback"] for told in ("KeyError", "ValueError", "test_log_lines.py"))
    assert SECRET not in json.dumps(found)
    # They are there where they are wanted.
    assert line(texts=True, exc_info=raised())["traceback"].count(SECRET) >= 3
