"""The `openai` client of an endpoint, and a filter that keeps its key, and prompts unless wanted, out of all logs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from fairagent.llm.endpoint import Endpoint
from fairagent.settings import ModelSettings

if TYPE_CHECKING:
    from openai import OpenAI

LOGGERS = ("openai", "openai._base_client", "httpx", "httpcore.connection", "httpcore.http11", "httpcore.proxy")
"""Those that see a request. A filter holds for the records of its own logger only, so each needs it."""

PROMPTS = "Request options"
"""How openai's record of a whole request begins."""


class _Secrecy(logging.Filter):
    """Blackens the keys of all endpoints in every record and, unless `prompts`, drops those that hold what is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.endpoints: set[Endpoint] = set()
        self.prompts = False

    def filter(self, record: logging.LogRecord) -> bool:
        if not self.prompts and isinstance(record.msg, str) and record.msg.startswith(PROMPTS):
            return False
        said = record.getMessage()
        if (hidden := self._hide(said)) != said:
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
    """The client for a server; it repeats nothing by itself, and from now on no logger tells the key.

    Its requests leave by `fairagent.llm.transport`, whose errors are the causes of those that it raises.
    `settings.log_prompts` says for the whole process, until the next call, whether logs may hold what is asked.
    """
    # Here and not above: openai takes a third of a second to load, and most runs need no model.
    from openai import OpenAI

    from fairagent.llm.transport import open_http

    _secrecy.endpoints.add(endpoint)
    _secrecy.prompts = settings.log_prompts
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_secrecy)
    key = endpoint.key.get_secret_value() or "no-key"
    http = open_http(endpoint, settings.timeout)
    return OpenAI(api_key=key, base_url=endpoint.base_url, timeout=settings.timeout, max_retries=0, http_client=http)
