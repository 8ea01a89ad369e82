"""The models of a run, which share connections, one budget and one cache."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from fairagent.errors import BackendUnavailable, SettingsError
from fairagent.llm.budget import Budget, Ledger
from fairagent.settings import BudgetSettings, ModelSettings, Price, Settings, plugins
from fairagent.types import Usage

if TYPE_CHECKING:
    from fairagent.llm.cache import ReplyCache
    from fairagent.llm.calls import CachingModel
    from fairagent.llm.embeddings import EmbeddingModel
    from fairagent.llm.server import ServerModel, ServerState

S = TypeVar("S", bound="ServerModel")


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
        self._opened: dict[ModelSettings, CachingModel] = {}
        self._embedding: dict[ModelSettings, EmbeddingModel] = {}
        self._servers: dict[tuple[str, str, str], ServerState] = {}
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
        from fairagent.llm.calls import CachingModel
        from fairagent.llm.openai import OpenAIModel

        with self._lock:
            if settings not in self._opened:
                price = self._price_of(settings.name)
                model = self._sharing(OpenAIModel(settings, self._environ, self.budget, price))
                cache, name = self._open_cache(), settings.name
                self._opened[settings] = CachingModel(model, cache, self._ledger, settings.deadline, name)
            return self._opened[settings]

    def open_embeddings(self, settings: ModelSettings) -> EmbeddingModel:
        """The embedding model of this name at the settings' server, the same one for the same settings.

        Raises what `open` raises.
        """
        from fairagent.llm.embeddings import EmbeddingModel

        with self._lock:
            if settings not in self._embedding:
                price, cache = self._price_of(settings.name), self._open_cache()
                model = EmbeddingModel(settings, self._environ, self.budget, price, cache, self._ledger)
                self._embedding[settings] = self._sharing(model)
            return self._embedding[settings]

    def _sharing(self, model: S) -> S:
        """The model, with the state of its server that others of its sort and name there have."""
        # Health and refusals of one API say nothing about another at the same address.
        key = (type(model).__name__, model.endpoint.base_url, model.name)
        model.server = self._servers.setdefault(key, model.server)
        return model

    @property
    def usage(self) -> Usage:
        """What was paid so far; `saved` is what the cache saved."""
        return self._ledger.usage

    def close(self) -> None:
        """Close all connections, and the cache."""
        with self._lock:
            for opened in self._opened.values():
                opened.model.close()
            for model in self._embedding.values():
                model.close()
            if self._cache:
                self._cache.close()
            self._opened, self._embedding, self._provider, self._cache = {}, {}, None, None

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


def add_on(what: str, name: str, group: str, base: type = object) -> Any:
    """The class of this name that an add-on brings; BackendUnavailable where there is none, or it cannot be loaded."""
    try:
        loaded = plugins.load(what, name, {}, group, base, base.__name__)
    except ValueError as error:
        raise BackendUnavailable(str(error)) from error
    if loaded is None:
        raise BackendUnavailable(f"no add-on has a {what} {name!r}; install fairagent again")
    return loaded
