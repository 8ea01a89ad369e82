"""A model server's address and key, its `openai` client, and a filter that keeps the key and prompts out of logs."""

from __future__ import annotations

import ipaddress
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from pydantic import SecretStr

from fairagent.errors import BackendUnavailable, SettingsError
from fairagent.settings import ModelSettings

if TYPE_CHECKING:
    from openai import OpenAI


KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"
OPENAI = "https://api.openai.com/v1"

SHORTEST_SECRET = 8
"""Shorter keys ("none", "ollama") are placeholders; to black them out would spoil replies that hold the word."""


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


LOGGERS = ("openai", "openai._base_client", "httpx", "httpcore.connection", "httpcore.http11", "httpcore.proxy")
"""Those that see a request. A filter holds for the records of its own logger only, so each needs it."""
PROMPTS = "Request options"
"""How openai's record of a whole request begins."""


class _Secrecy(logging.Filter):
    """Blackens the keys of all endpoints in every record and, unless `prompts`, drops those that hold prompts."""

    def __init__(self) -> None:
        super().__init__()
        self.endpoints: set[Endpoint] = set()
        self.prompts = False

    def filter(self, record: logging.LogRecord) -> bool:
        if not self.prompts and isinstance(record.msg, str) and record.msg.startswith(PROMPTS):
            return False
        message = record.getMessage()
        if (hidden := self._hide(message)) != message:
            record.msg, record.args = hidden, ()
        if record.exc_info:
            # A traceback is text only when it is written; here it becomes text that can be blackened.
            record.exc_text = self._hide(logging.Formatter().formatException(record.exc_info))
            record.exc_info = None
        return True

    def _hide(self, text: str) -> str:
        # A copy: another thread may open a model meanwhile.
        for endpoint in tuple(self.endpoints):
            text = endpoint.hide(text)
        return text


_secrecy = _Secrecy()


def open_client(endpoint: Endpoint, settings: ModelSettings) -> OpenAI:
    """The client for a server; it repeats nothing by itself, and from now on no logger shows the key.

    The errors of `fairagent.llm.transport` are the causes of those that it raises. `settings.log_prompts` holds for
    the whole process until the next call.
    """
    # Here and not above: openai takes a third of a second to load, and most runs need no model.
    import httpx
    from openai import OpenAI

    from fairagent.llm.transport import Transport

    _secrecy.endpoints.add(endpoint)
    _secrecy.prompts = settings.log_prompts
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_secrecy)
    key = endpoint.key.get_secret_value() or "no-key"
    http = httpx.Client(
        transport=Transport(endpoint),
        headers={"accept-encoding": "identity"},
        timeout=settings.timeout,
        follow_redirects=False,
        trust_env=False,
    )
    return OpenAI(api_key=key, base_url=endpoint.base_url, timeout=settings.timeout, max_retries=0, http_client=http)
