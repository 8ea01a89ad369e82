"""`Door`, which all model calls go through: it caches replies, asks the same question once, and counts usage."""

import hashlib
import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol
from weakref import WeakValueDictionary

from fairagent.errors import BudgetExceeded, ModelError, ReplyInvalid
from fairagent.llm.asking import valid_reply
from fairagent.llm.budget import Ledger, charged
from fairagent.llm.cache import ReplyCache
from fairagent.llm.request import ModelReply, ModelRequest, read_reply, tell
from fairagent.storage.threads import progress

PATIENCE = 300.0
"""Seconds: as long as a call takes at most, as `model.deadline` is shipped."""
FORMAT = 1
"""Of the keys: what was kept under another format is never found."""


class Identified(Protocol):
    """A `Model` that can say what its reply to a request depends on."""

    def complete(self, request: ModelRequest) -> ModelReply:
        """See `Model.complete`."""
        ...

    def identity(self, request: ModelRequest) -> dict[str, Any]:
        """Everything that may change the reply, as plain values without a secret."""
        ...

    def hide(self, text: str) -> str:
        """`text` without the secrets that the model knows."""
        ...

    def cost(self, input_tokens: int, output_tokens: int) -> float | None:
        """US dollars for so many tokens; None where the price is not known."""
        ...

    def close(self) -> None:
        """Free what it holds."""
        ...


class Door:
    """A `Model` in front of `model`, with an optional cache and usage counting. Threads may share it.

    Only complete replies of the form that was asked for are kept: no error, refusal, truncated or invalid one. Of
    several threads that ask the same at once, one asks the model; of several processes with the same cache as well,
    but that the others wait for it no longer than `patience` (seconds). `name` is the model's in transcripts.
    """

    def __init__(
        self, model: Identified, cache: ReplyCache | None, tally: Ledger, patience: float = PATIENCE, name: str = ""
    ) -> None:
        self.model = model
        self._name = name
        self._patience = patience
        self._cache = cache
        self._tally = tally
        self._lock = threading.Lock()
        self._flights: WeakValueDictionary[str, _SingleFlight] = WeakValueDictionary()

    def complete(self, request: ModelRequest) -> ModelReply:
        """The model's answer; see `Model.complete`."""
        return self._counted(request, lambda: self._ask(request))

    def stream(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        """The model's answer in free text, told piece by piece, one from the cache at once; see `StreamingModel`."""
        reply = self._counted(request, lambda: tell(self.model, request, on_text))
        if reply.cached:
            on_text(reply.text)
        return reply

    def _counted(self, request: ModelRequest, ask: Callable[[], ModelReply]) -> ModelReply:
        cache = self._cache
        try:
            with progress("asking the model"):
                reply = charged(
                    replace(request, messages=tuple((role, self.model.hide(text)) for role, text in request.messages)),
                    ask if cache is None else lambda: self._ask_once(request, cache, ask),
                    self._name,
                )
        except (ModelError, BudgetExceeded) as error:
            self._tally.add(error.usage)
            raise
        self._tally.add(reply.usage)
        return reply

    def key(self, request: ModelRequest) -> str:
        """SHA-256 (hex) of everything that the reply depends on."""
        told = {"format": FORMAT, **self.model.identity(request)}
        canonical = json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()

    def _ask(self, request: ModelRequest) -> ModelReply:
        """The model's answer; one that is to have a form has it: invalid ones are corrected on this side of the cache.

        So a reply that took corrections is kept under the first request, and nobody asks that again.
        """
        return self.model.complete(request) if request.reply is None else valid_reply(self.model, request)[1]

    def _ask_once(self, request: ModelRequest, cache: ReplyCache, ask: Callable[[], ModelReply]) -> ModelReply:
        started = time.perf_counter()
        key = self.key(request)
        with self._lock:
            flight = self._flights.setdefault(key, _SingleFlight())
        with flight.lock:
            if kept := self._kept(request, key, cache, started):
                return kept
            with cache.asking(key, self._patience):
                if kept := self._kept(request, key, cache, started):
                    return kept
                reply = ask()
                cache.put(key, reply)
                return reply

    def _kept(self, request: ModelRequest, key: str, cache: ReplyCache, started: float) -> ModelReply | None:
        """The reply that the cache has to the request since it was `started`, if it still fits."""
        kept = cache.get(key)
        if kept is None or not _fits(request, kept):
            return None
        # At today's price: what was paid then may have been another, or not known.
        cost = self.model.cost(kept.input_tokens, kept.output_tokens)
        return replace(kept, cost=cost, seconds=time.perf_counter() - started)


class _SingleFlight:
    """Single-flight lock: of the threads that make one request at once, one asks the model and the others wait."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


def _fits(request: ModelRequest, reply: ModelReply) -> bool:
    """Whether a kept reply is still one to this request: rows can be tampered with, and `accept` may have changed."""
    if request.reply is None:
        return bool(reply.text.strip())
    try:
        read_reply(request, reply.text)
    except ReplyInvalid:
        return False
    return True
