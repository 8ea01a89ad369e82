"""Errors of the network and the provider, translated into fairagent's own exceptions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import from_json

from fairagent.errors import FatalModelError, ModelError, ReplyRefused, TransientModelError
from fairagent.llm.endpoint import KEY_VARIABLE, Endpoint
from fairagent.types.clean import visible

QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
KEY_CODES = frozenset({"invalid_api_key", "account_deactivated"})
MODEL_CODES = frozenset({"model_not_found"})
FILTER_CODES = frozenset({"content_filter", "content_policy_violation"})
OVERLOAD_CODES = frozenset({"server_error", "internal_server_error", "rate_limit_exceeded", "overloaded_error"})
KNOWN_CODES = QUOTA_CODES | KEY_CODES | MODEL_CODES | FILTER_CODES | OVERLOAD_CODES

LONGEST_QUOTE = 300
MOST_VALUES = 500_000
"""Brackets and commas of an answer, each of which may take 150 bytes when its JSON is read; lines of a stream."""

B = TypeVar("B", bound="Body")


class BadStatus(Exception):
    """An answer that is no success: its status, the beginning of its body, and the seconds that it demands to wait."""

    def __init__(self, status: int, body: str, wait: float | None) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.body = body
        self.wait = wait


def from_client(error: Exception, endpoint: Endpoint, model: str) -> ModelError:
    """The error that the `openai` package raised, as one of ours; no key is in it.

    What the transport raised is its cause, and else it is the client's own, which no other attempt mends.
    """
    cause = error.__cause__
    if isinstance(cause, ModelError):
        return cause
    if not isinstance(cause, BadStatus):
        return FatalModelError(f"{endpoint.host}: {quote(str(cause or error), endpoint)}")
    try:
        body = from_json(cause.body)
    except ValueError:
        # No JSON, or nested too deeply to be read.
        body = cause.body
    return of_status(cause.status, *read_error(body), endpoint, model, cause.wait)


def of_status(
    status: int, code: str, words: str, endpoint: Endpoint, model: str, wait: float | None = None
) -> ModelError:
    """The error for an HTTP `status` (0: an error body that came as a success), the provider's `code` and its words."""
    named = "" if code.isdecimal() else quote(code, endpoint)
    answered = f"{status or 'with an error'} {named}".strip()
    what = f"{endpoint.host} answered {answered}: {quote(words, endpoint) or 'no explanation'}"
    if status == 402 or code in QUOTA_CODES:
        return FatalModelError(
            f"{what}. The quota or credit of the account is used up; add to it or use another server"
        )
    if status in (401, 403, 407) or code in KEY_CODES:
        return FatalModelError(f"{what}. Set {KEY_VARIABLE} to a key that may use {model!r} there")
    if status == 404 or code in MODEL_CODES:
        return FatalModelError(f"{what}. Check model.name ({model!r}) and model.base_url in the settings")
    if code in FILTER_CODES:
        return ReplyRefused(what, raw=endpoint.hide(words))
    if status in (408, 409, 425, 429) or status >= 500:
        return TransientModelError(what, retry_after=wait)
    if not status:
        return FatalModelError(what)
    if status < 400 or status == 405:
        return FatalModelError(f"{what}. Check model.base_url in the settings")
    return ModelError(what)


def in_body(error: object, endpoint: Endpoint, model: str) -> ModelError:
    """The error for an error body that came with HTTP 200: transient if its code means overload, else fatal."""
    code, words = read_error(error)
    status = int(code) if code.isdecimal() and len(code) == 3 else 503 if code in OVERLOAD_CODES else 0
    transient = status == 429 or status >= 500
    return of_status(status if transient else 0, code, words, endpoint, model)


def read_error(body: object) -> tuple[str, str]:
    """The code and the words of an error body, whatever its shape; "" where there is none.

    >>> read_error({"message": "no such model", "code": "model_not_found", "type": "invalid_request_error"})
    ('model_not_found', 'no such model')
    >>> read_error({"error": "model 'x' not found"})
    ('', "model 'x' not found")
    """
    if isinstance(body, list) and body:
        return read_error(body[0])
    if isinstance(body, Mapping):
        if body.get("error"):
            return read_error(body["error"])
        # Some providers name the error in `type` alone; FastAPI's servers describe it in `detail`.
        code, category = str(body.get("code") or ""), str(body.get("type") or "")
        words = str(body.get("message") or body.get("detail") or "")
        return category if category in KNOWN_CODES and code not in KNOWN_CODES else code, words
    return "", str(body or "")


MOST_TOKENS = 100_000_000
"""More than any model reads or writes at once: a larger count is none."""

# Strict: neither 3.5 nor true is a count.
TokenCount = Annotated[int, Field(ge=0, le=MOST_TOKENS, strict=True)]


class Body(BaseModel):
    """What all answers of a server have in common."""

    error: Any = None
    usage: Any = None


def read_body(form: type[B], body: str, content_type: str, endpoint: Endpoint, api: str, model: str) -> B:
    """The JSON in an answer of `model` without the key.

    Raises ModelError for too many values, TransientModelError where it broke off, FatalModelError where the server is
    no such `api`, and the error that it holds.
    """
    body = endpoint.hide(body)
    check_values(body, endpoint.host)
    try:
        answer = form.model_validate_json(body)
    except ValidationError as error:
        cut_off = error.errors()[0]["type"] == "json_invalid" and "json" in content_type
    else:
        if answer.error:
            raise in_body(answer.error, endpoint, model)
        return answer
    if cut_off:
        raise broken_off(endpoint.host)
    got = quote(content_type.partition(";")[0], endpoint) or "no content type"
    raise FatalModelError(f"{endpoint.host} is not {api} API (got {got}); check model.base_url")


def check_values(body: str, host: str) -> None:
    """Raise ModelError where the JSON in `body` may have more than half a million values."""
    if sum(map(body.count, "[{,")) > MOST_VALUES:
        raise ModelError(f"{host} sent an answer of more than {MOST_VALUES:,} values; it was not read")


def broken_off(host: str, why: str = "") -> TransientModelError:
    """The error for an answer that ends too early."""
    return TransientModelError(f"the answer of {host} broke off on the way{why}")


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """The wait (seconds >= 0) that the server demands by retry-after-ms or Retry-After; None without a usable value.

    >>> retry_after({"retry-after": "2"}), retry_after({"retry-after": "nan"}), retry_after({"retry-after": "-1"})
    (2.0, None, None)
    """
    given = headers.get("retry-after", "").strip()
    for text, scale in ((headers.get("retry-after-ms", ""), 1000), (given, 1)):
        try:
            seconds = float(text) / scale
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    try:
        date = parsedate_to_datetime(given)
    except (ValueError, OverflowError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - (now or datetime.now(UTC))).total_seconds())


def quote(words: str, endpoint: Endpoint) -> str:
    """A server's words in one short line without the key; of a web page only that it is one."""
    # Hidden characters first: without them what stands there may be the key.
    text = " ".join(endpoint.hide(visible(words)).split())
    if text[:1] == "<":
        return "(a web page)"
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]} ..."
