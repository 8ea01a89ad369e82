"""Likelihoods: how likely a model finds a text after a context; by a server, or by an add-on's local model."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, Protocol

import numpy as np
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from fairagent.errors import BackendUnavailable, DataError, FatalModelError, ModelError
from fairagent.llm.budget import Budget, in_threads
from fairagent.llm.cache import ReplyCache
from fairagent.llm.openai import LogProbability
from fairagent.llm.request import ModelReply, estimate_tokens
from fairagent.llm.server import Body, Call, ServerModel, TokenCount
from fairagent.settings import ModelSettings, plugins
from fairagent.types import FloatArray, Usage

GROUP = "fairagent.likelihoods"
"""Entry points of add-ons: the kind of likelihood -> its class."""

Pair = tuple[str, str]
"""(context, text): how likely is the text, after the context?"""


class Likelihood(Protocol):
    """A language model that scores how likely it finds a text; any object like this will do."""

    @property
    def name(self) -> str:
        """What tables, messages and manifests call it."""

    def score(self, pairs: Sequence[Pair]) -> list[FloatArray]:
        """For each (context, text): the natural-log probabilities (<= 0) of the text's tokens, (t,).

        Each is given the context and the tokens before it; with an empty context, the first one is given the
        beginning of a text. A token that begins in the context and ends in the text is the text's. Texts are not
        empty: DataError.
        """


def open_local(kind: Literal["causal", "masked", "self-debiased"], *arguments: Any, **options: Any) -> Any:
    """A likelihood of this kind by a model on this machine, which an add-on brings (entry points of `GROUP`).

    A causal one is a `Likelihood`, a masked one scores single tokens: both take a name, `device`, `dtype` and `batch`,
    the causal one `chat` too. A self-debiased one is a `Likelihood` by a causal one and a rule.
    Raises BackendUnavailable where the add-on, its package or the model is missing.
    """
    try:
        loaded: Any = plugins.load("likelihood", kind, {}, GROUP, object, "object")
    except ValueError as error:
        raise BackendUnavailable(str(error)) from error
    if loaded is None:
        raise BackendUnavailable(f"no add-on has a likelihood {kind!r}; install fairagent again")
    return loaded(*arguments, **options)


def perplexity(log_probabilities: FloatArray) -> float:
    """exp(-mean) of a text's log-probabilities, (t,) with t >= 1: in [1, inf), and the lower the more fluent.

    >>> import numpy as np
    >>> round(perplexity(np.log([0.5, 0.125])), 9)
    4.0
    """
    return math.exp(-float(log_probabilities.mean()))


def check_texts(pairs: Sequence[Pair]) -> None:
    """Raise DataError where a text is empty: it has no tokens that could be likely."""
    if empty := sum(not text for _, text in pairs):
        raise DataError(f"{empty} of {len(pairs)} texts are empty, so they have no likelihood; leave them out")


TokenScores = Sequence[tuple[str, float | None]]
"""Each token as text, with its log-probability; None where the server has none, as for the first one."""


class _Echoed(BaseModel):
    tokens: list[str] = Field([], fail_fast=True)
    token_logprobs: list[LogProbability | None] = Field([], fail_fast=True)


class _PromptToken(BaseModel):
    logprob: LogProbability
    decoded_token: str | None = None


class _ScoredChoice(BaseModel):
    logprobs: Any = None
    prompt_logprobs: list[Mapping[str, _PromptToken] | None] | None = Field(None, fail_fast=True)


class _ScoredCompletion(Body):
    """What counts of a (chat) completion."""

    choices: list[_ScoredChoice] = Field([], fail_fast=True)
    prompt_logprobs: list[Mapping[str, _PromptToken] | None] | None = Field(None, fail_fast=True)

    def token_scores(self) -> TokenScores | None:
        """The tokens of the prompt, and maybe of what was written after it; None where the server reports none.

        `prompt_logprobs` is vLLM's own form, in the choice (completions) or next to the choices (chat).
        """
        choice = self.choices[0] if self.choices else _ScoredChoice()
        if entries := choice.prompt_logprobs or self.prompt_logprobs:
            # Without alternatives, a server reports of each place the token that stands there.
            first = [next(iter(entry.values())) if entry else None for entry in entries]
            return [("", None) if token is None else (token.decoded_token or "", token.logprob) for token in first]
        if not isinstance(choice.logprobs, dict) or "token_logprobs" not in choice.logprobs:
            return None
        try:
            echoed = _Echoed.model_validate(choice.logprobs)
        except ValidationError:
            return None
        # A server that does not echo reports only the one token that it wrote.
        if len(echoed.tokens) < 2 or len(echoed.tokens) != len(echoed.token_logprobs):
            return None
        return list(zip(echoed.tokens, echoed.token_logprobs, strict=True))


def of_the_text(tokens: TokenScores, context: str, text: str) -> FloatArray | None:
    """The log-probabilities of the tokens that end within the text, (t,); None where they cannot be told apart.

    Offsets that servers send count their marks for the beginning, so the texts of the tokens are compared instead.

    >>> of_the_text([("<s>", None), ("A", -3.0), (" b", -2.0), ("c", -1.0), (" d", -9.0)], "A", " bc").tolist()
    [-2.0, -1.0]
    """
    whole = "".join(token for token, _ in tokens)
    place = whole.find(context + text)
    # Of a character in several tokens each shows only a part: then only the text may be there, not the context.
    start = place + len(context) if place >= 0 else whole.rfind(text)
    if start < 0:
        return None
    scores: list[float] = []
    end = 0
    for token, log_probability in tokens:
        begin, end = end, end + len(token)
        if end > start and begin < start + len(text):
            if log_probability is None:
                return None
            scores.append(log_probability)
    return np.array(scores)


FORMAT = "likelihood-1"
"""Of the keys of the cache."""

_SCORES = TypeAdapter(list[float])


class EndpointModel(ServerModel):
    """A `Likelihood` by a model behind an OpenAI-compatible server; threads may share it.

    A context and its text are one prompt of the completion API (`echo` with `logprobs`). With `chat` they are what the
    user says and what the model then says, in the chat template of the server, of which only vLLM returns the
    log-probabilities (`prompt_logprobs`). `workers` requests are in the air at a time. A server cuts nothing: an input
    longer than its model takes is a ModelError.
    """

    def __init__(
        self,
        settings: ModelSettings,
        cache: ReplyCache | None = None,
        budget: Budget | None = None,
        chat: bool = False,
        workers: int = 8,
        environ: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(settings, environ, budget, **more)
        self._cache = cache
        self._chat = chat
        self._workers = workers

    def score(self, pairs: Sequence[Pair]) -> list[FloatArray]:
        """See `Likelihood.score`.

        Raises FatalModelError, naming the server, where it returns no log-probabilities; what `OpenAIModel.complete`
        raises; and BudgetExceeded.
        """
        check_texts(pairs)
        return in_threads(self._score, pairs, self._workers, "likelihood")

    def _score(self, pair: Pair) -> FloatArray:
        def request() -> tuple[FloatArray, ModelReply]:
            call = Call(self._clock(), self.settings.deadline)
            scores, usage = self._repeat(lambda: self._post(pair, call), "likelihood", call)
            return scores, ModelReply(json.dumps(scores.tolist()), usage.input_tokens, 0, self.name)

        def cached_scores(reply: ModelReply) -> FloatArray | None:
            try:
                return np.array(_SCORES.validate_json(reply.text))
            except ValidationError:
                return None  # A row that someone tampered with: requested again, and written over.

        if self._cache is None:
            return request()[0]
        identity = json.dumps([FORMAT, self.endpoint.base_url, self.name, self._chat, *pair])
        key = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
        return self._cache.fetch(key, self.settings.deadline, cached_scores, request)

    def _post(self, pair: Pair, call: Call) -> tuple[FloatArray, Usage]:
        """The text's log-probabilities by one request, and what it took."""
        context, text = pair
        # Temperature 0 and one token: a server has to write something, and what it writes is ignored.
        payload: dict[str, Any] = {"model": self.name, "max_tokens": 1, "temperature": 0}
        if self._chat:
            payload["messages"] = [{"role": "user", "content": context}, {"role": "assistant", "content": text}]
            payload |= {"prompt_logprobs": 0, "add_generation_prompt": False, "continue_final_message": True}
        else:
            payload |= {"prompt": context + text, "echo": True, "logprobs": 1}
        estimated = estimate_tokens(*pair)

        def read(response: Any) -> tuple[TokenScores | None, Usage]:
            completion = self._read_body(_ScoredCompletion, response, "a completion")
            tokens = estimated
            with suppress(ValidationError, AttributeError):
                tokens = TypeAdapter(TokenCount).validate_python(completion.usage.get("total_tokens"))
            return completion.token_scores(), Usage(1, tokens)

        path = "/chat/completions" if self._chat else "/completions"
        token_scores, usage = self._request(path, payload, call, (estimated, 0), read)
        if token_scores is None:
            raise FatalModelError(
                f"{self.endpoint.host} tells no log-probabilities of a prompt of {self.name!r}; serve the model with "
                f"vLLM{' (a chat needs it)' if self._chat else ' or another server whose completions take echo'}, "
                "or name a model's folder on this machine"
            )
        scores = of_the_text(token_scores, context, text)
        if scores is None:
            raise ModelError(
                f"{self.endpoint.host}: the tokens of {self.name!r} do not show where the text {text[:60]!r} stands "
                "in the prompt, or its first one has no probability; give it a context, or use a local model"
            )
        return scores, usage
