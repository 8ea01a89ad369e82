"""A transformers model on this machine as a `Model`: nothing is sent anywhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from fairagent.errors import ModelError, ReplyError, ReplyInvalid, ReplyTruncated, SettingsError
from fairagent.llm.budget import Budget
from fairagent.llm.capabilities import json_schema
from fairagent.llm.request import ModelReply, ModelRequest
from fairagent.llm.weights import Manner, Weights
from fairagent.settings import ModelSettings, Price, TransformersSettings
from fairagent.settings.models import cost_of


class InProcessModel:
    """A model that runs in this process; threads may share it.

    A JSON reply is asked for by the prompt alone, and checked like any other. The same request has the same reply: by
    the likeliest tokens, by beams, or drawn with the request's seed (0 where it has none). (Rounding differs between
    batches and devices; where two tokens are as likely to the last digits, so may the reply.) `budget` is asked before
    every request; `price` turns tokens into dollars, `clock` tells seconds.
    """

    def __init__(
        self,
        settings: ModelSettings,
        weights: Weights,
        budget: Budget | None = None,
        price: Price | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.settings = settings
        self.weights = weights
        self._own = settings.transformers or TransformersSettings()
        if self._own.self_debias and not weights.causal:
            raise SettingsError(f"model.transformers.self_debias takes a causal model, which {settings.name!r} is not")
        self._budget = budget or Budget()
        self._price = price
        self._clock = clock

    def __repr__(self) -> str:
        return f"InProcessModel({self.settings.name!r})"

    def close(self) -> None:
        """Nothing: the weights go with the last who asks them."""

    def identity(self, request: ModelRequest) -> dict[str, Any]:
        """Everything that may change the reply, as plain values: what is asked of which weights."""
        manner = self._manner(request)
        wanted: dict[str, Any] = {
            "transformers": self.settings.name,
            "weights": self.weights.version,
            "messages": [list(message) for message in request.messages],
            "max_tokens": manner.most,
            "beams": manner.beams,
            "temperature": manner.temperature,
            "dtype": self._own.dtype,
            "context": self.settings.context,
        }
        if manner.biased_words:
            wanted |= {"biased_words": list(manner.biased_words), "alpha": manner.alpha}
        if manner.self_debias:
            wanted["self_debias"] = manner.self_debias.model_dump()
        if manner.temperature:
            wanted["seed"] = manner.seed
        if request.reply is not None:
            wanted["reply"] = json_schema(request)
        if not request.whole:
            wanted["whole"] = False
        return wanted

    def hide(self, text: str) -> str:
        """The text: a model of this process has no key."""
        return text

    def cost(self, input_tokens: int, output_tokens: int) -> float | None:
        """US dollars for so many tokens; None where the price is not known."""
        return cost_of(self._price, input_tokens, output_tokens)

    def complete(self, request: ModelRequest) -> ModelReply:
        """The model's answer; see `Model.complete`. Raises BudgetExceeded as well.

        A prompt that is longer than the model reads is a ModelError that says both lengths; it is never cut.
        """
        started = self._clock()
        ids = self.weights.read(request.messages)
        rule = self._own.self_debias
        longest = max(map(len, self.weights.asking_for_bias(rule))) if rule else 0
        manner = self._manner(request, self._room(len(ids) + longest))
        with self._budget.reserve(len(ids) + manner.most, self.cost(len(ids), manner.most) or 0.0) as held:
            written = self.weights.write(ids, manner)
            cost = self.cost(len(ids), written.tokens)
            held.settle(len(ids) + written.tokens, cost or 0.0)
        finish = "stop" if written.whole else "length"
        seconds = self._clock() - started
        reply = ModelReply(
            written.text, len(ids), written.tokens, self.settings.name, finish, seconds=seconds, cost=cost
        )
        fault: ReplyError
        if not written.whole and request.whole:
            fault = ReplyTruncated(
                f"{self.settings.name} was cut off after {written.tokens} tokens; raise model.max_tokens in the "
                "settings, and max_tokens in the prompt template where it is lower",
                raw=written.text,
            )
        elif not written.text:
            fault = ReplyInvalid(f"{self.settings.name} gave an empty reply")
        else:
            return reply
        fault.usage = reply.usage
        raise fault

    def _manner(self, request: ModelRequest, room: int | None = None) -> Manner:
        settings = self.settings
        most = min(settings.max_tokens, request.max_tokens or settings.max_tokens)
        temperature = settings.temperature if request.temperature is None else request.temperature
        if self._own.beams > 1:
            temperature = 0.0
        seed = (request.seed or 0) if temperature else 0
        return Manner(
            most if room is None else min(most, room),
            self._own.beams,
            temperature,
            seed,
            self._own.batch,
            self._own.biased_words,
            self._own.alpha,
            self._own.self_debias,
        )

    def _room(self, length: int) -> int | None:
        """The tokens that a prompt of this length leaves for the reply; None where that has a place of its own."""
        limit = self.settings.context or self.weights.limit
        causal = self.weights.causal
        if length + causal > limit:
            raise ModelError(
                f"the prompt has {length} tokens, and {self.settings.name!r} reads {limit} at once"
                f"{', its reply included' if causal else ''}; give it fewer or shorter texts (context.tokens), or, "
                "where it was made for more, set model.context"
            )
        return limit - length if causal else None
