"""The models of a run, which share connections, one budget and one cache."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fairagent.errors import SettingsError
from fairagent.llm.budget import Budget, Ledger
from fairagent.settings import BudgetSettings, ModelSettings, Price, Settings
from fairagent.types import Usage

if TYPE_CHECKING:
    from fairagent.llm.cache import ReplyCache
    from fairagent.llm.calls import Door
    from fairagent.llm.embeddings import EmbeddingModel
    from fairagent.llm.in_process import InProcessModel
    from fairagent.llm.openai import OpenAIModel, ServerState
    from fairagent.llm.weights import Weights


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
        self._asked: list[OpenAIModel | InProcessModel] = []
        self._opened: dict[ModelSettings, Door] = {}
        self._embedding: dict[ModelSettings, EmbeddingModel] = {}
        self._servers: dict[tuple[str, str], ServerState] = {}
        self._weights: dict[tuple[str, str, str], Weights] = {}
        self._tally = Ledger()

    @classmethod
    def of(cls, settings: Settings, environ: Mapping[str, str] = os.environ) -> Models:
        """With the cache, the budget and the prices of the settings."""
        return cls(settings.cache, settings.budget, settings.prices, environ)

    def open(self, settings: ModelSettings) -> Door:
        """The model that the settings name, the same one for the same settings.

        Raises SettingsError without a name, or without a price where dollars are limited; BackendUnavailable without
        a key or the weights, or where the cache's folder cannot be used.
        """
        from fairagent.llm.calls import Door

        with self._lock:
            if settings not in self._opened:
                price = self._price_of(settings.name)
                model = self._local(settings, price) if settings.transformers else self._served(settings, price)
                self._asked.append(model)
                self._opened[settings] = Door(model, self._replies(), self._tally, settings.deadline, settings.name)
            return self._opened[settings]

    def open_embeddings(self, settings: ModelSettings) -> EmbeddingModel:
        """The embedding model of this name at the settings' server, the same one for the same settings.

        Raises what `open` raises.
        """
        from fairagent.llm.embeddings import EmbeddingModel
        from fairagent.llm.endpoint import Endpoint, check_named
        from fairagent.llm.openai import ServerState

        with self._lock:
            if settings not in self._embedding:
                check_named(settings)
                price = self._price_of(settings.name)
                endpoint = Endpoint.find(settings.base_url, self._environ)
                # Of the chat API at the same address its health says nothing, nor what it refuses.
                server = self._servers.setdefault((f"{endpoint.base_url} embeddings", settings.name), ServerState())
                self._embedding[settings] = EmbeddingModel(
                    settings, endpoint, server, self.budget, price, self._replies(), self._tally
                )
            return self._embedding[settings]

    def _price_of(self, name: str) -> Price | None:
        price = self._prices.get(name)
        if price is None and self.budget.limits.dollars is not None and name:
            raise SettingsError(
                f"budget.dollars limits what {name!r} may cost, and its price is not known: add "
                f"`prices: {{{name}: {{input: ..., output: ...}}}}`, in dollars for a million tokens"
            )
        return price

    def _served(self, settings: ModelSettings, price: Price | None) -> OpenAIModel:
        from fairagent.llm.openai import OpenAIModel

        model = OpenAIModel.from_settings(settings, self._environ, self.budget, price)
        # One server is one server, whatever else the settings of those who call it.
        model.server = self._servers.setdefault((model.endpoint.base_url, settings.name), model.server)
        return model

    def _local(self, settings: ModelSettings, price: Price | None) -> InProcessModel:
        from fairagent.llm.endpoint import check_named
        from fairagent.llm.in_process import InProcessModel
        from fairagent.llm.weights import Weights

        check_named(settings)
        assert settings.transformers
        # The same weights once, whatever else the settings of those who ask them.
        key = (settings.name, settings.transformers.device, settings.transformers.dtype)
        if key not in self._weights:
            self._weights[key] = Weights(*key)
        return InProcessModel(settings, self._weights[key], self.budget, price)

    @property
    def usage(self) -> Usage:
        """What was paid so far; `saved` is what the cache saved."""
        return self._tally.usage

    def close(self) -> None:
        """Close all connections, and the cache."""
        with self._lock:
            for model in (*self._asked, *self._embedding.values()):
                model.close()
            if self._cache:
                self._cache.close()
            self._asked, self._opened, self._embedding, self._weights, self._cache = [], {}, {}, {}, None

    def _replies(self) -> ReplyCache | None:
        if self._folder and self._cache is None:
            from fairagent.llm.cache import ReplyCache

            self._cache = ReplyCache(self._folder)
        return self._cache
