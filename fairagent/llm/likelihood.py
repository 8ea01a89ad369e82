"""Likelihoods by a server that returns the log-probabilities of what it was given, as vLLM does."""

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from fairagent.errors import FatalModelError, ModelError, SettingsError
from fairagent.likelihood.likelihood import Pair, check_texts
from fairagent.likelihood.prompt_tokens import Completion, of_the_text, read_tokens
from fairagent.llm.body import check_values
from fairagent.llm.budget import Budget
from fairagent.llm.cache import ReplyCache
from fairagent.llm.client import open_client
from fairagent.llm.deadline import within
from fairagent.llm.endpoint import Endpoint
from fairagent.llm.faults import from_client, in_body
from fairagent.llm.openai import ServerState
from fairagent.llm.request import ModelReply, estimate_tokens
from fairagent.llm.retry import Retry
from fairagent.settings import ModelSettings
from fairagent.types import FloatArray

FORMAT = "likelihood-1"
"""Of the keys of the cache."""

_Kept = TypeAdapter(list[float])


class EndpointModel:
    """A model behind an OpenAI-compatible server, called through the `openai` package; threads may share it.

    A context and its text are one prompt of the completion API (`echo` with `logprobs`). With `chat` they are what the
    user says and what the model then says, in the chat template of the server, of which only vLLM tells the
    log-probabilities (`prompt_logprobs`). `workers` requests are in the air at a time; each has to get room in the
    `budget`, is tried again as the settings say, and is not sent where `cache` has its answer. A server cuts nothing:
    an input longer than its model takes is a ModelError.

    Raises BackendUnavailable without a key (a local server needs none), SettingsError without a model's name.
    """

    def __init__(
        self,
        settings: ModelSettings,
        cache: ReplyCache | None = None,
        budget: Budget | None = None,
        chat: bool = False,
        workers: int = 8,
        environ: Mapping[str, str] = os.environ,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.endpoint = Endpoint.find(settings.base_url, environ)
        if not settings.name:
            raise SettingsError("no language model is named: give its name at the server")
        self.name = settings.name
        self._settings = settings
        self._cache = cache
        self._budget = budget or Budget()
        self._chat = chat
        self._workers = workers
        self._server = ServerState()
        self._retry = Retry(settings.attempts, settings.deadline, sleep)
        self._client = open_client(self.endpoint, settings)

    def __repr__(self) -> str:
        return f"EndpointModel({self.name!r} at {self.endpoint.host})"

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def score(self, pairs: Sequence[Pair]) -> list[FloatArray]:
        """See `Likelihood.score`.

        Raises FatalModelError, naming the server, where it tells no log-probabilities; what `OpenAIModel.complete`
        raises; and BudgetExceeded.
        """
        check_texts(pairs)
        if self._workers == 1 or len(pairs) < 2:
            return [self._score(pair) for pair in pairs]
        with ThreadPoolExecutor(self._workers) as threads:
            asked = [threads.submit(self._score, pair) for pair in pairs]
            try:
                return [one.result() for one in asked]
            except BaseException:
                threads.shutdown(cancel_futures=True)
                raise

    def _score(self, pair: Pair) -> FloatArray:
        if self._cache is None:
            return self._asked(pair)[0]
        key = self._key(pair)
        if (kept := self._kept(key)) is not None:
            return kept
        with self._cache.asking(key, self._settings.deadline):
            if (kept := self._kept(key)) is not None:
                return kept
            score, tokens = self._asked(pair)
            self._cache.put(key, ModelReply(json.dumps(score.tolist()), tokens, 0, self.name))
            return score

    def _kept(self, key: str) -> FloatArray | None:
        assert self._cache
        try:
            return np.array(_Kept.validate_json(kept.text)) if (kept := self._cache.get(key)) else None
        except ValidationError:
            return None  # A row that someone tampered with: asked for again, and written over.

    def _asked(self, pair: Pair) -> tuple[FloatArray, int]:
        end = time.monotonic() + self._settings.deadline

        def attempt() -> tuple[FloatArray, int]:
            return self._server.breaker.run(lambda: self._ask(pair, end), "likelihood", end - time.monotonic())

        return self._retry.run(attempt, self._server.allowance)

    def _key(self, pair: Pair) -> str:
        told = [FORMAT, self.endpoint.base_url, self.name, self._chat, *pair]
        return hashlib.sha256(json.dumps(told).encode("utf-8", "surrogatepass")).hexdigest()

    def _ask(self, pair: Pair, end: float) -> tuple[FloatArray, int]:
        """The text's log-probabilities by one request, and how many tokens it took."""
        with self._budget.reserve(estimate_tokens(*pair), 0.0) as held:
            completion = self._send(pair, end)
            tokens = estimate_tokens(*pair) if completion.tokens is None else completion.tokens
            held.settle(tokens, 0.0)
        told = read_tokens(completion)
        if told is None:
            raise FatalModelError(
                f"{self.endpoint.host} tells no log-probabilities of a prompt of {self.name!r}; serve the model with "
                f"vLLM{' (a chat needs it)' if self._chat else ' or another server whose completions take echo'}, "
                "or name a model's folder on this machine"
            )
        score = of_the_text(told, *pair)
        if score is None:
            raise ModelError(
                f"{self.endpoint.host}: the tokens of {self.name!r} do not show where the text {pair[1][:60]!r} stands "
                "in the prompt, or its first one has no probability; give it a context, or use a local model"
            )
        return score, tokens

    def _send(self, pair: Pair, end: float) -> Completion:
        import openai

        context, text = pair
        # Temperature 0 and one token: a server has to write something, and what it writes is not looked at.
        asked: dict[str, Any] = {"model": self.name, "max_tokens": 1, "temperature": 0}
        create: Callable[..., Any]
        if self._chat:
            create = self._client.chat.completions.with_raw_response.create
            asked["messages"] = [{"role": "user", "content": context}, {"role": "assistant", "content": text}]
            form = {"prompt_logprobs": 0, "add_generation_prompt": False, "continue_final_message": True}
            asked["extra_body"] = form
        else:
            create = self._client.completions.with_raw_response.create
            asked |= {"prompt": context + text, "echo": True, "logprobs": 1}
        try:
            with within(min(self._settings.timeout, end - time.monotonic())):
                raw = create(**asked)
        except openai.OpenAIError as error:
            fault = from_client(error, self.endpoint, self.name)
        else:
            return self._read(raw.http_response.text)
        # Out of the handler, so that the client's error, which knows the key, is not its context.
        raise fault

    def _read(self, body: str) -> Completion:
        check_values(body, self.endpoint.host)
        try:
            completion = Completion.model_validate_json(self.endpoint.hide(body))
        except ValidationError:
            raise FatalModelError(
                f"{self.endpoint.host} does not answer as a completion API does; check model.base_url"
            ) from None
        if completion.error:
            raise in_body(completion.error, self.endpoint, self.name)
        return completion
