"""The models of a run, which share connections, one budget and one cache; every call goes through a `CachingModel`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from fairagent.errors import BudgetExceeded, ModelError, ReplyError, ReplyInvalid, SettingsError
from fairagent.llm.budget import Budget, Ledger, charged
from fairagent.llm.capabilities import FORMS, Known
from fairagent.llm.exchange import valid_reply
from fairagent.llm.replies import read_reply
from fairagent.llm.request import (
    ModelReply,
    ModelRequest,
    Reply,
    Tool,
    ToolCalls,
    key_of,
    schema_of,
    stream,
    text_within,
)
from fairagent.settings import BudgetSettings, ModelSettings, Price, Settings
from fairagent.storage.telemetry import call_span, tell_usage
from fairagent.storage.threads import progress
from fairagent.types import Usage
from fairagent.types.common import Check, counted

if TYPE_CHECKING:
    from fairagent.llm.cache import ReplyCache
    from fairagent.llm.embeddings import EmbeddingModel


class CachingModel:
    """A `Model` in front of `model`, with an optional cache and usage counting. Threads may share it.

    Beside those of a `Model`, `model` has the methods `identity`, `hide`, `cost` and `close` of an `OpenAIModel`.

    Only complete replies of the requested form are cached: no error, refusal, truncated or invalid one. Of several
    threads that ask the same at once, one asks the model; of several processes with the same cache as well, but that
    the others wait for it no longer than `patience` (seconds). `name` is the model's in transcripts.
    """

    def __init__(
        self, model: Any, cache: ReplyCache | None, tally: Ledger, patience: float = 300.0, name: str = ""
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

    def close(self) -> None:
        """Close the model's connections."""
        self.model.close()

    def key(self, request: ModelRequest) -> str:
        """SHA-256 (hex) of everything that the reply depends on."""
        return key_of({"format": 1, **self.model.identity(request)})

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
            cost = self.model.cost(cached.input_tokens, cached.output_tokens, cached.cached_tokens)
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


class _Color(Reply):
    color: Annotated[str, text_within(40)]


_NAMING = Tool("name_color", "Names a color.", schema_of(_Color))


class Models:
    """Opens models by their settings; threads may share it.

    `cache` is the folder of the replies that were paid for before, "" for none. `limits` hold for all models
    together, `prices` are those of the models by name. Nothing is called and no folder made before a model is opened.
    """

    def __init__(
        self,
        cache: Path | str = "",
        limits: BudgetSettings | None = None,
        prices: Mapping[str, Price] | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.budget = Budget(limits)
        self._folder = cache
        self._prices = prices or {}
        self._environ = environ
        self._lock = threading.Lock()
        self._cache: ReplyCache | None = None
        self._opened: dict[tuple[type, ModelSettings], Any] = {}
        self._firsts: dict[tuple[type, str, str], Any] = {}
        self._ledger = Ledger()

    @classmethod
    def of(cls, settings: Settings, environ: Mapping[str, str] | None = None) -> Models:
        """With the cache, the budget and the prices of the settings."""
        return cls(settings.cache, settings.budget, settings.prices, environ)

    def open(self, settings: ModelSettings) -> CachingModel:
        """The model that the settings name, the same one for the same settings.

        Raises SettingsError without a name, or without a price where dollars are limited; BackendUnavailable without
        a key, or where the cache's folder cannot be used.
        """
        # Here and not above: who only counts models needs none of them.
        from fairagent.llm.openai import OpenAIModel

        with self._lock:
            opened: CachingModel | None = self._opened.get((OpenAIModel, settings))
            if opened is None:
                price = self._price_of(settings.name)
                cache = self._open_cache()
                model = self._sharing(OpenAIModel(settings, self._environ, self.budget, price), cache)
                opened = CachingModel(model, cache, self._ledger, settings.deadline, settings.name)
                self._opened[OpenAIModel, settings] = opened
        return opened

    def open_embeddings(self, settings: ModelSettings) -> EmbeddingModel:
        """The embedding model of this name at the settings' server, the same one for the same settings.

        Raises what `open` raises.
        """
        from fairagent.llm.embeddings import EmbeddingModel

        with self._lock:
            opened: EmbeddingModel | None = self._opened.get((EmbeddingModel, settings))
            if opened is None:
                price, cache = self._price_of(settings.name), self._open_cache()
                model = EmbeddingModel(settings, self._environ, self.budget, price, cache, self._ledger)
                opened = self._opened[EmbeddingModel, settings] = self._sharing(model, cache)
        return opened

    def checks(self, settings: ModelSettings) -> Iterator[Check]:
        """What the server of the model takes, by requests for JSON, for a stream and for a call; it is learned anew."""
        model, replies, pieces = self.open(settings).model, list[ModelReply](), list[str]()
        model.capabilities.known = Known()
        messages = ("system", "You name colors."), ("user", 'Name one, as JSON: {"color": ...}')
        request = ModelRequest(messages, seed=1, whole=False)
        for ask in (
            partial(model.complete, replace(request, reply=_Color)),
            partial(model.stream, request, pieces.append),
            partial(model.complete, replace(request, reply=ToolCalls, tools=(_NAMING,))),
        ):
            try:
                replies.append(ask())
            except ReplyError as error:
                # What matters is what was accepted.
                replies.append(ModelReply("", 0, 0, notes=(str(error),)).with_usage(error.usage))
        name, known, took = f"model {settings.name}", model.capabilities.known, sum((r.usage for r in replies), Usage())
        money = "" if took.cost is None else f", ${took.cost:.6f}"
        other = f" as {replies[0].model}" if replies[0].model not in ("", settings.name) else ""
        detail = (
            f"{model.endpoint.host} answered {counted(took.calls, 'request')}{other} in {took.seconds:.1f} s{money}"
        )
        yield Check(name, "ok", detail, "; ".join(dict.fromkeys(note for one in replies for note in one.notes)))
        form = FORMS[known.form]
        takes = {
            "the system role": not known.folded,
            "temperature": "temperature" not in known.dropped,
            "seed": "seed" not in known.dropped,
            "max_completion_tokens" if known.renamed else "max_tokens": True,
            "response_format" if form == "text" else f"response_format {form}": form != "text",
            "streams": "stream" not in known.dropped and len(pieces) > 1,
            "tools": "tools" not in known.dropped,
            "counts of tokens": not any(reply.estimated for reply in replies),
        }
        yield Check(f"{name} takes", "ok", ", ".join(one for one, there in takes.items() if there))
        if lacking := [one for one, there in takes.items() if not there]:
            yield Check(
                f"{name} has no", "note", ", ".join(lacking), "works without: what is refused is not sent again"
            )

    def _sharing(self, model: Any, cache: ReplyCache | None) -> Any:
        """The model, with what others of its sort and name know of its server, in this process and in those before."""
        # Health and refusals of one API say nothing about another at the same address.
        first = self._firsts.setdefault((type(model), model.endpoint.base_url, model.name), model)
        model.share(first)
        if cache and first is model:
            model.remember_in(cache)
        return model

    @property
    def usage(self) -> Usage:
        """What was paid so far; `saved` is what the cache saved."""
        return self._ledger.usage

    def close(self) -> None:
        """Close all connections, and the cache."""
        with self._lock:
            for opened in self._opened.values():
                opened.close()
            if self._cache:
                self._cache.close()
            self._opened, self._cache = {}, None

    def _price_of(self, name: str) -> Price | None:
        price = self._prices.get(name)
        if price is None and self.budget.limits.dollars is not None and name:
            raise SettingsError(
                f"budget.dollars limits what {name!r} may cost, and its price is not known: add "
                f"`prices: {{{name}: {{input: ..., output: ...}}}}`, in dollars for a million tokens"
            )
        return price

    def _open_cache(self) -> ReplyCache | None:
        if self._folder and self._cache is None:
            from fairagent.llm.cache import ReplyCache

            self._cache = ReplyCache(self._folder)
        return self._cache
