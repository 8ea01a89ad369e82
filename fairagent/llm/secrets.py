"""What the logs of other packages may tell: never a key, and what was asked only if that is wanted."""

from __future__ import annotations

import logging

from fairagent.llm.endpoint import Endpoint

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


def keep_secret(endpoint: Endpoint, prompts: bool) -> None:
    """Let the loggers of other packages tell nothing of `endpoint`'s key from now on.

    `prompts` says for the whole process, until the next call, whether they may tell what is asked.
    """
    _secrecy.endpoints.add(endpoint)
    _secrecy.prompts = prompts
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_secrecy)
