"""`CachingModel`, which all model calls go through: it caches replies, sends a request once, and counts usage."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from fairagent.errors import BudgetExceeded, ModelError, ReplyInvalid
from fairagent.llm.asking import valid_reply
from fairagent.llm.budget import Ledger, charged
from fairagent.llm.cache import ReplyCache, key_of
from fairagent.llm.request import Model, ModelReply, ModelRequest, read_reply, stream
from fairagent.storage.spans import call_span, tell_usage
from fairagent.storage.threads import progress

PATIENCE = 300.0
"""Seconds: as long as a call takes at most, as `model.deadline` is shipped."""
FORMAT = 1
"""Of the keys: entries under another format never match."""


class Identified(Model, Protocol):
    """A `Model` that can say what its reply to a request depends on."""

    def identity(self, request: ModelRequest) -> dict[str, Any]:
        """Everything that may change the reply, as plain values without a secret."""

    def hide(self, text: str) -> str:
        """`text` without the secrets that the model knows."""

    @property
    def cost(self) -> Callable[[int, int], float | None]:
        """US dollars for input and output tokens; None where the price is not known."""

    def close(self) -> None:
        """Free what it holds."""


class CachingModel:
    """A `Model` in front of `model`, with an optional cache and usage counting. Threads may share it.

    Only complete replies of the requested form are cached: no error, refusal, truncated or invalid one. Of several
    threads that ask the same at once, one asks the model; of several processes with the same cache as well, but that
    the others wait for it no longer than `patience` (seconds). `name` is the model's in transcripts.
    """

    def __init__(
        self, model: Identified, cache: ReplyCache | None, tally: Ledger, patience: float = PATIENCE, name: str = ""
    ) -> None:
        self.model = model
        self._name = name
        self._patience = patience
        self._cache = cache
        self._ledger = tally

    def complete(self, request: ModelRequest) -> ModelReply:
        """The model's answer; see `Model.complete`."""
        # Corrected on this side of the cache: what took corrections is cached under the first request.
        if request.reply is None:
            return self._counted(request, lambda: self.model.complete(request))
        return self._counted(request, lambda: valid_reply(self.model, request)[1])

    def stream(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        """The model's answer in free text, streamed, one from the cache at once; see `StreamingModel`."""
        reply = self._counted(request, lambda: stream(self.model, request, on_text))
        if reply.cached:
            on_text(reply.text)
        return reply

    def key(self, request: ModelRequest) -> str:
        """SHA-256 (hex) of everything that the reply depends on."""
        return key_of({"format": FORMAT, **self.model.identity(request)})

    def _counted(self, request: ModelRequest, ask: Callable[[], ModelReply]) -> ModelReply:
        cache, started = self._cache, time.perf_counter()

        def usable(cached: ModelReply) -> ModelReply | None:
            """A cached reply at today's price, if it still is one: rows can be changed, and `accept` may have been."""
            if request.reply is not None:
                try:
                    read_reply(request, cached.text)
                except ReplyInvalid:
                    return None
            elif not cached.text.strip():
                return None
            cost = self.model.cost(cached.input_tokens, cached.output_tokens)
            return replace(cached, cost=cost, seconds=time.perf_counter() - started)

        def answer() -> ModelReply:
            if cache is None:
                return ask()
            return cache.fetch(self.key(request), self._patience, usable, lambda: (reply := ask(), reply))

        shown = tuple((role, self.model.hide(text)) for role, text in request.messages)
        try:
            with progress("asking the model"), call_span("chat", self._name) as span:
                reply = charged(replace(request, messages=shown), answer, self._name)
                tell_usage(span, reply.usage.whole, reply.cached)
        except (ModelError, BudgetExceeded) as error:
            self._ledger.add(error.usage)
            raise
        self._ledger.add(reply.usage)
        return reply
