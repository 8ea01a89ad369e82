"""The models of a run, which share connections, one budget and one cache; add-ons bring models of other sorts."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairagent.errors import BackendUnavailable, SettingsError
from fairagent.llm.budget import Budget, Ledger
from fairagent.settings import BudgetSettings, ModelSettings, Price, Settings, plugins
from fairagent.settings.models import cost_of
from fairagent.types import Usage

if TYPE_CHECKING:
    from fairagent.llm.cache import ReplyCache
    from fairagent.llm.calls import CachingModel, Identified
    from fairagent.llm.embeddings import EmbeddingModel
    from fairagent.llm.server import ServerState

GROUP = "fairagent.models"
"""Entry points of add-ons: a section of the model's settings -> a `ModelProvider`."""


class ModelProvider(ABC):
    """Opens models of one sort, such as those of `model.transformers`; a `Models` makes one of its own."""

    @abstractmethod
    def open(self, settings: ModelSettings, budget: Budget, cost: Callable[[int, int], float | None]) -> Identified:
        """The model that the settings name; `cost` is in dollars for input and output tokens.

        Raises SettingsError, and BackendUnavailable where a package or the weights are missing.
        """


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
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.budget = Budget(limits)
        self._folder = cache
        self._prices = prices or {}
        self._environ = environ
        self._lock = threading.Lock()
        self._cache: ReplyCache | None = None
        self._opened: dict[ModelSettings, CachingModel] = {}
        self._embedding: dict[ModelSettings, EmbeddingModel] = {}
        self._servers: dict[tuple[str, str], ServerState] = {}
        self._provider: ModelProvider | None = None
        self._ledger = Ledger()

    @classmethod
    def of(cls, settings: Settings, environ: Mapping[str, str] = os.environ) -> Models:
        """With the cache, the budget and the prices of the settings."""
        return cls(settings.cache, settings.budget, settings.prices, environ)

    def open(self, settings: ModelSettings) -> CachingModel:
        """The model that the settings name, the same one for the same settings.

        Raises SettingsError without a name, or without a price where dollars are limited; BackendUnavailable without
        a key or the weights, or where the cache's folder cannot be used.
        """
        from fairagent.llm.calls import CachingModel
        from fairagent.llm.endpoint import check_named
        from fairagent.llm.openai import OpenAIModel

        with self._lock:
            if settings not in self._opened:
                price = self._price_of(settings.name)
                model: Identified
                if settings.transformers:
                    check_named(settings)
                    self._provider = self._provider or _provider("transformers")
                    model = self._provider.open(settings, self.budget, partial(cost_of, price))
                else:
                    model = OpenAIModel.from_settings(settings, self._environ, self.budget, price)
                    # One server is one server, whatever else the settings of those who call it.
                    model.server = self._servers.setdefault((model.endpoint.base_url, settings.name), model.server)
                self._opened[settings] = CachingModel(
                    model, self._open_cache(), self._ledger, settings.deadline, settings.name
                )
            return self._opened[settings]

    def open_embeddings(self, settings: ModelSettings) -> EmbeddingModel:
        """The embedding model of this name at the settings' server, the same one for the same settings.

        Raises what `open` raises.
        """
        from fairagent.llm.embeddings import EmbeddingModel
        from fairagent.llm.endpoint import Endpoint, check_named
        from fairagent.llm.server import ServerState

        with self._lock:
            if settings not in self._embedding:
                check_named(settings)
                price = self._price_of(settings.name)
                endpoint = Endpoint.find(settings.base_url, self._environ)
                # Health and refusals of the chat API at the same address say nothing about embeddings.
                server = self._servers.setdefault((f"{endpoint.base_url} embeddings", settings.name), ServerState())
                self._embedding[settings] = EmbeddingModel(
                    settings, endpoint, server, self.budget, price, self._open_cache(), self._ledger
                )
            return self._embedding[settings]

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


def _provider(section: str) -> ModelProvider:
    try:
        provider: Any = plugins.load("model", section, {}, GROUP, ModelProvider, "ModelProvider")
    except ValueError as error:
        raise BackendUnavailable(str(error)) from error
    if provider is None:
        raise BackendUnavailable(f"no add-on opens the models of model.{section}; install fairagent again")
    opened: ModelProvider = provider()
    return opened
