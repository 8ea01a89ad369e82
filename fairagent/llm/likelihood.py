"""Likelihoods by a server that returns the log-probabilities of what it was given, as vLLM does.

The `Likelihood` protocol: a name, and the log-probabilities of a text after a context.

Reading the prompt's log-probabilities from a completion, in the two formats that servers use.
"""

import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, Protocol

import numpy as np
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from fairagent.errors import BackendUnavailable, DataError, FatalModelError, ModelError, SettingsError
from fairagent.llm.budget import Budget
from fairagent.llm.cache import ReplyCache
from fairagent.llm.completion import MOST_TOKENS, LogProbability
from fairagent.llm.connection import check_values, within
from fairagent.llm.endpoint import Endpoint, open_client
from fairagent.llm.faults import from_client, in_body
from fairagent.llm.openai import ServerState
from fairagent.llm.request import ModelReply, estimate_tokens
from fairagent.llm.retry import Retry
from fairagent.settings import ModelSettings, plugins
from fairagent.types import FloatArray

GROUP = "fairagent.likelihoods"
"""Entry points of add-ons: the kind of likelihood -> its class."""

Pair = tuple[str, str]
"""(context, text): how likely is the text, after the context?"""


class Likelihood(Protocol):
    """A language model that tells how likely it finds a text; any object like this will do."""

    @property
    def name(self) -> str:
        """What tables, messages and manifests call it."""
        ...

    def score(self, pairs: Sequence[Pair]) -> list[FloatArray]:
        """For each (context, text): the natural-log probabilities (<= 0) of the text's tokens, (t,).

        Each is given the context and the tokens before it; with an empty context, the first one is given the
        beginning of a text. A token that begins in the context and ends in the text is the text's. Texts are not
        empty: DataError.
        """
        ...


class LocalModel(Protocol):
    """A transformers model on this machine; `masked` where it fills in masks, else it predicts the next token."""

    name: str
    masked: bool
    tokenizer: Any
    model: Any


class MaskedLikelihood(LocalModel, Protocol):
    """A model that fills in masks, and tells how likely it finds tokens and next sentences."""

    def ids(self, text: str) -> list[int]:
        """The tokens of a text on its own, with the marks that the model wants at its ends."""
        ...

    def each(self, text: str, places: Sequence[int], context: str = "") -> FloatArray:
        """The log-probabilities of the tokens at some `places` of `ids(text)`, (len(places),), each masked alone."""
        ...

    def word(self, text: str, start: int, end: int, context: str = "") -> FloatArray:
        """The log-probabilities of the tokens of text[start:end], (t,), from left to right."""
        ...

    def follows(self, first: str, second: str) -> float:
        """The probability that `second` is the sentence after `first`."""
        ...


def open_local(kind: Literal["causal", "masked", "self-debiased"], *arguments: Any, **options: Any) -> Any:
    """A likelihood of this kind by a model on this machine, which an add-on brings (entry points of `GROUP`).

    A causal one is a `Likelihood` and a `LocalModel`, a masked one a `MaskedLikelihood`: both take a name, `device`,
    `dtype` and `batch`, the causal one `chat` too. A self-debiased one is a `Likelihood` by a causal one and a rule.
    Raises BackendUnavailable where the add-on, its package or the model is missing.
    """
    try:
        opened = plugins.load("likelihood", kind, {}, GROUP, object, "class")
    except ValueError as error:
        raise BackendUnavailable(str(error)) from error
    if opened is None:
        raise BackendUnavailable(f"no add-on brings {kind} likelihoods; install fairagent again")
    return opened(*arguments, **options)


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


class _Token(BaseModel):
    logprob: LogProbability
    decoded_token: str | None = None


class _Choice(BaseModel):
    logprobs: Any = None
    prompt_logprobs: list[Mapping[str, _Token] | None] | None = Field(None, fail_fast=True)


class _Used(BaseModel):
    total_tokens: int = Field(ge=0, le=MOST_TOKENS, strict=True)


class Completion(BaseModel):
    """What counts of a (chat) completion."""

    choices: list[_Choice] = Field([], fail_fast=True)
    prompt_logprobs: list[Mapping[str, _Token] | None] | None = Field(None, fail_fast=True)
    error: Any = None
    usage: Any = None

    @property
    def tokens(self) -> int | None:
        """How many tokens were read and written; None where the server counts none, or none that can be right."""
        try:
            return _Used.model_validate(self.usage).total_tokens
        except ValidationError:
            return None


def read_tokens(completion: Completion) -> TokenScores | None:
    """The tokens of the prompt, and maybe of what was written after it; None where the server tells none.

    `prompt_logprobs` is vLLM's own form, beside the choice (completions) or the choices (chat).
    """
    choice = completion.choices[0] if completion.choices else _Choice()
    if entries := choice.prompt_logprobs or completion.prompt_logprobs:
        # Asked for no alternatives, a server tells of each place the token that stands there.
        first = [next(iter(entry.values())) if entry else None for entry in entries]
        return [("", None) if token is None else (token.decoded_token or "", token.logprob) for token in first]
    if not isinstance(choice.logprobs, dict) or "token_logprobs" not in choice.logprobs:
        return None
    try:
        echoed = _Echoed.model_validate(choice.logprobs)
    except ValidationError:
        return None
    # A server that does not echo tells only of the one token that it wrote.
    if len(echoed.tokens) < 2 or len(echoed.tokens) != len(echoed.token_logprobs):
        return None
    return list(zip(echoed.tokens, echoed.token_logprobs, strict=True))


def of_the_text(told: TokenScores, context: str, text: str) -> FloatArray | None:
    """The log-probabilities of the tokens that end within the text, (t,); None where that cannot be told.

    Offsets that servers send count their marks for the beginning, so the texts of the tokens are looked at instead.

    >>> of_the_text([("<s>", None), ("A", -3.0), (" b", -2.0), ("c", -1.0), (" d", -9.0)], "A", " bc").tolist()
    [-2.0, -1.0]
    """
    whole = "".join(token for token, _ in told)
    place = whole.find(context + text)
    # Of a character in several tokens each shows only a part: then the context cannot be found, but the text may be.
    start = place + len(context) if place >= 0 else whole.rfind(text)
    if start < 0:
        return None
    found: list[float] = []
    end = 0
    for token, log_probability in told:
        begin, end = end, end + len(token)
        if end > start and begin < start + len(text):
            if log_probability is None:
                return None
            found.append(log_probability)
    return np.array(found)


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
