"""A model server's address and key, and its errors and those of the network as fairagent's own."""

from __future__ import annotations

import ipaddress
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Annotated, Any, TypeVar
from urllib.parse import urljoin, urlsplit, urlunsplit

from pydantic import BaseModel, Field, SecretStr, ValidationError
from pydantic_core import from_json

from fairagent.errors import (
    BackendUnavailable,
    FatalModelError,
    ModelError,
    ReplyRefused,
    SettingsError,
    TransientModelError,
)
from fairagent.settings import ModelSettings
from fairagent.types.clean import visible

KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"
OPENAI = "https://api.openai.com/v1"
SHORTEST_SECRET = 8
"""Shorter keys ("none", "ollama") are placeholders; to black them out would spoil replies that hold the word."""
QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
KEY_CODES = frozenset({"invalid_api_key", "account_deactivated"})
MODEL_CODES = frozenset({"model_not_found"})
FILTER_CODES = frozenset({"content_filter", "content_policy_violation"})
OVERLOAD_CODES = frozenset({"server_error", "internal_server_error", "rate_limit_exceeded", "overloaded_error"})
KNOWN_CODES = QUOTA_CODES | KEY_CODES | MODEL_CODES | FILTER_CODES | OVERLOAD_CODES
LONGEST_QUOTE = 300
MOST_VALUES = 500_000
"""Brackets and commas of an answer, each of which may take 150 bytes when its JSON is read; lines of a stream."""
MOST_TOKENS = 100_000_000
"""More than any model reads or writes at once: a larger count is none."""

# Strict: neither 3.5 nor true is a count.
TokenCount = Annotated[int, Field(ge=0, le=MOST_TOKENS, strict=True)]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible server: its address, its host with port (for people), and its key ("" for none)."""

    host: str
    base_url: str = field(repr=False)
    key: SecretStr = field(repr=False)

    @classmethod
    def find(cls, base_url: str, environ: Mapping[str, str] | None = None) -> Endpoint:
        """The server at `base_url`, else at OPENAI_BASE_URL, else OpenAI itself; the key is OPENAI_API_KEY.

        A user name and password in the address are dropped. Raises SettingsError for an address or key that cannot
        be one, BackendUnavailable where a server that is not local would be called without a key.
        """
        environ = os.environ if environ is None else environ
        try:
            parts = urlsplit(base_url or environ.get(URL_VARIABLE, "").strip() or OPENAI)
            name, _ = parts.hostname, parts.port
        except ValueError:
            name = None
        if not name or parts.scheme not in ("http", "https"):
            raise SettingsError(
                f"model.base_url (or {URL_VARIABLE}) is no address of a server; expected e.g. http://localhost:11434/v1"
            )
        host = parts.netloc.rpartition("@")[2]
        key = environ.get(KEY_VARIABLE, "").strip()
        if not (key.isascii() and key.isprintable()):
            raise SettingsError(f"{KEY_VARIABLE} holds characters that no key has; copy the key again")
        if not key and not is_local(name):
            raise BackendUnavailable(
                f"no key for the language model at {host}: set {KEY_VARIABLE}; for a model on your own machine set "
                f"{URL_VARIABLE} (or model.base_url in the settings) to its address, e.g. http://localhost:11434/v1. "
                "`profile: offline` works without a model"
            )
        return cls(host, urlunsplit(parts._replace(netloc=host, fragment="")), SecretStr(key))

    def hide(self, text: str) -> str:
        """`text` without the key, wherever a server may have echoed it."""
        key = self.key.get_secret_value()
        return text.replace(key, "***") if len(key) >= SHORTEST_SECRET else text

    def quote(self, words: str) -> str:
        """A server's words in one short line without the key; of a web page only that it is one."""
        # Hidden characters first: without them what stands there may be the key.
        text = " ".join(self.hide(visible(words)).split())
        if text[:1] == "<":
            return "(a web page)"
        return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]} ..."


def is_local(host: str) -> bool:
    """Whether `host` is this machine or one of the local network, where servers usually need no key.

    >>> is_local("localhost"), is_local("192.168.1.7"), is_local("gpu-box"), is_local("api.openai.com")
    (True, True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".localhost", ".local", ".internal"))


def check_named(settings: ModelSettings) -> None:
    """Raise SettingsError where the settings name no model."""
    if not settings.name:
        raise SettingsError(
            "no language model is named: set `model: {name: ...}` in the settings file, FAIRAGENT_MODEL__NAME in the "
            'environment, or model={"name": ...} in the call'
        )


def client_error(error: Exception, endpoint: Endpoint, model: str) -> ModelError:
    """The error that the `openai` package raised, as one of ours; no key is in it."""
    response = getattr(error, "response", None)
    if response is None:
        # What the transport raised is its cause; any other error is the client's own, which no other attempt mends.
        cause = error.__cause__
        return (
            cause
            if isinstance(cause, ModelError)
            else FatalModelError(f"{endpoint.host}: {endpoint.quote(str(cause or error))}")
        )
    status, headers = response.status_code, response.headers
    if 300 <= status < 400:
        where = endpoint.quote(_redirected_to(str(response.request.url), headers.get("location", "")))
        return FatalModelError(
            f"{endpoint.host} answered {status}: it sends requests on to {where}, where nothing was sent. If your "
            "server is there, set model.base_url in the settings to its address"
        )
    body: object = response.text
    # No JSON, or nested too deeply to be read: then it is the words.
    with suppress(ValueError):
        body = from_json(response.text)
    return status_error(status, *read_error(body), endpoint, model, retry_after(headers))


def _redirected_to(url: str, location: str) -> str:
    """Scheme, host and port that a redirect names; no path, in which a key may stand."""
    try:
        parts = urlsplit(urljoin(url, location))
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an invalid address"
    named = location and parts.hostname
    return f"{parts.scheme}://{parts.hostname}{port}" if named else "an address that it does not name"


def status_error(
    status: int, code: str, words: str, endpoint: Endpoint, model: str, wait: float | None = None
) -> ModelError:
    """The error for an HTTP `status` (0: an error body that came as a success), the provider's `code` and its words."""
    named = "" if code.isdecimal() else endpoint.quote(code)
    answered = f"{status or 'with an error'} {named}".strip()
    what = f"{endpoint.host} answered {answered}: {endpoint.quote(words) or 'no explanation'}"
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
    if status == 405:
        return FatalModelError(f"{what}. Check model.base_url in the settings")
    return ModelError(what)


def body_error(error: object, endpoint: Endpoint, model: str) -> ModelError:
    """The error for an error body that came with HTTP 200: transient if its code means overload, else fatal."""
    code, words = read_error(error)
    status = int(code) if code.isdecimal() and len(code) == 3 else 503 if code in OVERLOAD_CODES else 0
    return status_error(status if status == 429 or status >= 500 else 0, code, words, endpoint, model)


def read_error(body: object) -> tuple[str, str]:
    """The code and the words of an error body, whatever its shape; "" where there is none.

    >>> read_error({"message": "no such model", "code": "model_not_found", "type": "invalid_request_error"})
    ('model_not_found', 'no such model')
    >>> read_error({"error": "model 'x' not found"})
    ('', "model 'x' not found")
    """
    if isinstance(body, list) and body:
        return read_error(body[0])
    if not isinstance(body, Mapping):
        return "", str(body or "")
    if body.get("error"):
        return read_error(body["error"])
    # Some providers name the error in `type` alone; FastAPI's servers describe it in `detail`.
    code, category = str(body.get("code") or ""), str(body.get("type") or "")
    words = str(body.get("message") or body.get("detail") or "")
    return category if category in KNOWN_CODES and code not in KNOWN_CODES else code, words


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
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (date - (now or datetime.now(UTC))).total_seconds())


class Body(BaseModel):
    """What all answers of a server have in common."""

    error: Any = None
    usage: Any = None


B = TypeVar("B", bound=Body)


def read_body(form: type[B], response: Any, endpoint: Endpoint, api: str, model: str) -> B:
    """The JSON in the `response` of `model`, without the key.

    Raises ModelError for too many values, TransientModelError where it broke off, FatalModelError where the server is
    no such `api`, and the error that it holds.
    """
    body, content_type = endpoint.hide(response.text), response.headers.get("content-type", "")
    if sum(map(body.count, "[{,")) > MOST_VALUES:
        raise ModelError(f"{endpoint.host} sent an answer of more than {MOST_VALUES:,} values; it was not read")
    try:
        answer = form.model_validate_json(body)
    except ValidationError as error:
        cut_off = error.errors()[0]["type"] == "json_invalid" and "json" in content_type
    else:
        if answer.error:
            raise body_error(answer.error, endpoint, model)
        return answer
    # Out of the handler: what the server wrote must not be the error's context.
    if cut_off:
        raise broken_off(endpoint.host)
    got = endpoint.quote(content_type.partition(";")[0]) or "no content type"
    raise FatalModelError(f"{endpoint.host} is not {api} API (got {got}); check model.base_url")


def broken_off(host: str, why: str = "") -> TransientModelError:
    """The error for an answer that ends too early."""
    return TransientModelError(f"the answer of {host} broke off on the way{why}")
