"""Records and errors as they leave for a browser or another program."""

import json
import math
from typing import Any

from fairagent.clean import printable
from fairagent.errors import (
    BackendUnavailable,
    BudgetExceeded,
    DataError,
    FairAgentError,
    ModelError,
    UsageError,
)
from fairagent.report.record import Record
from fairagent.studio.lanes import Busy
from fairagent.studio.own_prompts import Changed

FAULT = "a fault of fairagent; where the server was started stands what happened"

AS_IT_IS = {"id", "template"}

STATUS: tuple[tuple[type[FairAgentError], int], ...] = (
    (Busy, 503),
    (Changed, 409),
    (UsageError, 400),
    (BackendUnavailable, 503),
    (DataError, 500),
    (ModelError, 502),
    (BudgetExceeded, 429),
)


def status(error: FairAgentError) -> int:
    """The HTTP status of an error."""
    return next((number for kind, number in STATUS if isinstance(error, kind)), 500)


def cleaned(value: Any) -> Any:
    r"""A record that people will read: texts are printable, and what is not finite is null.

    Ids, and templates, which go back into their files, stay as they are.

    >>> cleaned({"title": "a\x1b[31m", "gap": float("inf")})
    {'title': 'a\ufffd[31m', 'gap': None}
    """
    if isinstance(value, dict):
        return {printable(key): part if key in AS_IT_IS else cleaned(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(part) for part in value]
    if isinstance(value, str):
        return printable(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def encoded(record: Record) -> str:
    """A record as JSON."""
    return json.dumps(cleaned(record), allow_nan=False)
