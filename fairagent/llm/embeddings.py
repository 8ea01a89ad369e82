"""Vectors of texts by an OpenAI-compatible server, through the same door as chat: one budget, one cache, one retry.

Reading an answer of an embeddings API; malformed bodies that come with HTTP 200 become errors.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from fairagent.errors import BudgetExceeded, FatalModelError, ModelError, ReplyInvalid, TransientModelError
from fairagent.llm.budget import Budget, Ledger, in_threads, spent
from fairagent.llm.completion import MOST_TOKENS
from fairagent.llm.connection import check_values, within
from fairagent.llm.endpoint import Endpoint
from fairagent.llm.faults import from_client, in_body, quote
from fairagent.llm.openai import ServerState
from fairagent.llm.request import ModelReply, estimate_tokens
from fairagent.llm.retry import Retry
from fairagent.settings import ModelSettings, Price
from fairagent.settings.models import cost_of
from fairagent.storage.threads import progress
from fairagent.types import Usage
from fairagent.types.clean import logger

if TYPE_CHECKING:
    from fairagent.llm.cache import ReplyCache


class _Item(BaseModel):
    index: int = Field(strict=True)
    embedding: list[float] = Field(min_length=1)


class _Tokens(BaseModel):
    prompt_tokens: int = Field(ge=0, le=MOST_TOKENS, strict=True)


class _Answer(BaseModel):
    data: Any = None
    error: Any = None
    usage: Any = None


_ITEMS = TypeAdapter(list[_Item])


def read_embeddings(
    body: str, content_type: str, texts: Sequence[str], endpoint: Endpoint, model: str
) -> tuple[NDArray[np.float32], Usage]:
    """The vectors (n, d) in `body`, which `model` sent as the answer to `texts`, in their order; and what it took.

    Raises FatalModelError (not an embeddings API, an error in the body), TransientModelError (broken off on the way, an
    overload in the body), ModelError (too many values), and ReplyInvalid with `usage`: no vectors, one of another
    length than the others, too few or too many, numbered wrongly, or with numbers that are not finite.
    """
    answer = _parse(endpoint.hide(body), content_type, endpoint)
    if answer.error:
        raise in_body(answer.error, endpoint, model)
    if not answer.data:
        raise FatalModelError(f"{endpoint.host} answered without vectors (no data); is it an embeddings API?")
    usage = _usage(answer.usage, texts)
    found = _vectors(answer.data, len(texts))
    if isinstance(found, str):
        fault = ReplyInvalid(f"{endpoint.host} answered {model!r} with {found}", raw=endpoint.hide(body))
        fault.usage = usage
        raise fault
    return found, usage


def _vectors(data: object, count: int) -> NDArray[np.float32] | str:
    """The vectors in the order of their texts, or what is wrong with them."""
    try:
        items = sorted(_ITEMS.validate_python(data), key=lambda item: item.index)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        return f"vectors of another form; a list of numbers with its index was expected (data.{where})"
    if len(items) != count:
        return f"{len(items):,} vectors; {count:,} were expected, one a text"
    if [item.index for item in items] != list(range(count)):
        return f"vectors that are not numbered from 0 to {count - 1}, as was expected"
    lengths = sorted({len(item.embedding) for item in items})
    if len(lengths) > 1:
        return f"vectors of {lengths[0]:,} and of {lengths[-1]:,} numbers; one length was expected"
    with np.errstate(over="ignore"):
        vectors = np.array([item.embedding for item in items], dtype=np.float32)
    if not np.isfinite(vectors).all():
        return "numbers that are not finite; vectors of finite ones were expected"
    return vectors


def _parse(body: str, content_type: str, endpoint: Endpoint) -> _Answer:
    check_values(body, endpoint.host)
    try:
        return _Answer.model_validate_json(body)
    except ValidationError as error:
        cut_off = error.errors()[0]["type"] == "json_invalid" and "json" in content_type
    if cut_off:
        raise TransientModelError(f"the answer of {endpoint.host} broke off on the way")
    kind = quote(content_type.partition(";")[0], endpoint) or "no content type"
    raise FatalModelError(f"{endpoint.host} is not an embeddings API (got {kind}); check model.base_url")


def _usage(given: object, texts: Sequence[str]) -> Usage:
    try:
        return Usage(1, _Tokens.model_validate(given).prompt_tokens)
    except ValidationError:
        return Usage(1, estimate_tokens(*texts), estimated=True)


BATCH = 32
"""Texts of a request: what every kind of server takes."""
REQUESTS = 4
"""Requests that are under way at a time."""
FORMAT = 1
"""Of the cache's keys: what was kept under another format is never found."""
CUT_AT = 16_000
"""Bytes of UTF-8 after which a text is cut, where the settings name no context: within 8,192 tokens in any language."""
SHORTEST_TOKEN = 2
"""Bytes, in the languages that take most tokens for a text; with them a text is cut for `model.context`."""
STORED = np.dtype("<f4")

log = logger(__name__)

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A text under the key that its vector is kept by."""

    key: str
    text: str


@dataclass(slots=True)
class _Call:
    """One batch's requests: how many were sent, and when its time is over, by the model's clock."""

    end: float
    sent: int = 0
    spent: Usage = field(default_factory=Usage)


class EmbeddingModel:
    """An embedding model behind an embeddings API; threads may share it.

    Each text's vector is kept in the `cache`, so that no text is paid for twice, whatever ends a build. `budget` is
    asked before every request that leaves; `server` is what is known of the server's health. `sleep` waits between
    attempts and takes seconds, `clock` tells them.
    """

    def __init__(
        self,
        settings: ModelSettings,
        endpoint: Endpoint,
        server: ServerState | None = None,
        budget: Budget | None = None,
        price: Price | None = None,
        cache: ReplyCache | None = None,
        tally: Ledger | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # Here and not above: it opens the door to the network.
        from fairagent.llm.endpoint import open_client

        self.settings = settings
        self.endpoint = endpoint
        self._server = server or ServerState(clock)
        self._budget = budget or Budget()
        self._price = price
        self._cache = cache
        self._tally = tally or Ledger()
        self._clock = clock
        self._retry = Retry(settings.attempts, settings.deadline, sleep, clock)
        self._client = open_client(endpoint, settings)
        self._lock = threading.Lock()
        self._dimension = 0

    def __repr__(self) -> str:
        return f"EmbeddingModel({self.settings.name!r} at {self.endpoint.host})"

    @property
    def name(self) -> str:
        """The model's name at its server."""
        return self.settings.name

    @property
    def dimension(self) -> int:
        """The length of its vectors; 0 before it has given one."""
        return self._dimension

    def cost(self, tokens: int) -> float | None:
        """US dollars for texts of so many tokens; None where the price is not known."""
        return cost_of(self._price, tokens, 0)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The vectors (n, d) of texts, none of them blank, as the server gives them; (0, 0) for none before the first.

        Texts are cut after `CUT_AT` bytes. Raises what `Model.complete` raises, and BudgetExceeded, each with its
        `usage`; ReplyInvalid for vectors of another number or length than expected, or of numbers that are not finite.
        What came before that is in the cache.
        """
        asked = [self._asked(text) for text in texts]
        known = {one.key: self._kept(one.key) for one in asked}
        missing = [one for one in dict.fromkeys(asked) if known[one.key] is None]
        with progress("asking for embeddings"):
            if len(missing) <= BATCH:
                parts = [self._fetched(missing)] if missing else []
            else:
                batches = [missing[start : start + BATCH] for start in range(0, len(missing), BATCH)]
                parts = in_threads(self._fetched, batches, REQUESTS, "embeddings")
        for part in parts:
            known.update(part)
        rows = [vector for one in asked if (vector := known[one.key]) is not None]
        return np.stack(rows) if rows else np.zeros((0, self._dimension), dtype=np.float32)

    def _asked(self, text: str) -> _Asked:
        context = self.settings.context
        most = CUT_AT if context is None else max(1, min(CUT_AT, context * SHORTEST_TOKEN))
        text = text[:most].encode("utf-8", "replace")[:most].decode("utf-8", "ignore")
        told = {"format": FORMAT, "kind": "embedding", "server": self.endpoint.base_url, "model": self.name}
        canonical = json.dumps({**told, "text": text}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return _Asked(hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest(), text)

    def _kept(self, key: str) -> Vectors | None:
        """The vector that the cache has under `key`, if it is one of this model as it is now; it counts as saved."""
        reply = self._cache.get(key) if self._cache else None
        if reply is None:
            return None
        try:
            vector = np.frombuffer(base64.b64decode(reply.text, validate=True), dtype=STORED)
        except ValueError:
            return None
        if not len(vector) or not np.isfinite(vector).all() or not self._of_this_length(len(vector)):
            return None
        usage = replace(reply, cost=self.cost(reply.input_tokens), seconds=0.0, cached=True).usage
        self._note(usage)
        return np.asarray(vector, dtype=np.float32)

    def _fetched(self, batch: Sequence[_Asked]) -> Mapping[str, Vectors]:
        """The vectors of a batch by their keys, asked of the server, and kept."""
        if self._cache is None:
            return self._asked_for(batch, lambda key, reply: None)
        together = hashlib.sha256("".join(one.key for one in batch).encode()).hexdigest()
        with self._cache.asking(together, self.settings.deadline):
            # Who asked the same meanwhile may have got it.
            there = {one.key: vector for one in batch if (vector := self._kept(one.key)) is not None}
            left = [one for one in batch if one.key not in there]
            return {**there, **self._asked_for(left, self._cache.put)} if left else there

    def _asked_for(self, batch: Sequence[_Asked], keep: Callable[[str, ModelReply], None]) -> Mapping[str, Vectors]:
        call, started = _Call(self._clock() + self.settings.deadline), self._clock()
        texts = [one.text for one in batch]

        def took(last: Usage) -> Usage:
            read = call.spent.input_tokens + last.input_tokens
            notes = tuple(dict.fromkeys((*call.spent.notes, *last.notes)))
            seconds = self._clock() - started
            return Usage(call.sent, read, 0, self.cost(read), seconds, last.estimated, notes)

        attempt = partial(self._server.breaker.run, partial(self._post, texts, call), "embeddings")
        try:
            vectors, last = self._retry.run(lambda: attempt(call.end - self._clock()), self._server.allowance)
        except (ModelError, BudgetExceeded) as error:
            error.usage = replace(took(error.usage), unusable=call.sent)
            self._note(error.usage)
            raise
        usage = took(last)
        self._note(usage)
        for number, (one, vector, tokens) in enumerate(
            zip(batch, vectors, shared(usage.input_tokens, texts), strict=True)
        ):
            text = base64.b64encode(vector.astype(STORED).tobytes()).decode()
            calls = call.sent if number == 0 else 0
            keep(
                one.key,
                ModelReply(text, tokens, 0, self.name, estimated=usage.estimated, calls=calls, cost=self.cost(tokens)),
            )
        return {one.key: vector for one, vector in zip(batch, vectors, strict=True)}

    def _post(self, texts: list[str], call: _Call) -> tuple[Vectors, Usage]:
        """One request, if the budget has room for it."""
        read = estimate_tokens(*texts)
        if self._clock() >= call.end:
            raise TransientModelError(f"no time is left to ask {self.endpoint.host} (model.deadline in the settings)")
        with self._budget.reserve(read, self.cost(read) or 0.0) as held:
            call.sent += 1
            create = self._client.embeddings.with_raw_response.create
            try:
                with within(min(call.end - self._clock(), self.settings.timeout)):
                    vectors, usage = self._send(create, texts)
            except ModelError as error:
                used = error.usage.input_tokens
                held.settle(used, self.cost(used) or 0.0)
                call.spent += error.usage
                error.usage = Usage()
                raise
            held.settle(usage.input_tokens, self.cost(usage.input_tokens) or 0.0)
            return vectors, usage

    def _send(self, create: Callable[..., Any], texts: list[str]) -> tuple[Vectors, Usage]:
        import openai

        try:
            # Else the client asks for base64, which not every server knows.
            raw = create(model=self.name, input=texts, encoding_format="float")
        except openai.OpenAIError as error:
            log.info("%s: %s", self, type(error.__cause__ or error).__name__)
            fault = from_client(error, self.endpoint, self.name)
        else:
            response = raw.http_response
            kind = response.headers.get("content-type", "")
            vectors, usage = read_embeddings(response.text, kind, texts, self.endpoint, self.name)
            self._expect_length(vectors.shape[1], usage)
            return vectors, usage
        # Out of the handler, so that the client's error, which knows the key, is not its context.
        raise fault

    def _of_this_length(self, length: int) -> bool:
        """Whether vectors have this length; the first one says which they have."""
        with self._lock:
            self._dimension = self._dimension or length
            return self._dimension == length

    def _expect_length(self, length: int, usage: Usage) -> None:
        if not self._of_this_length(length):
            fault = ReplyInvalid(
                f"{self.endpoint.host} answered with vectors of {length} numbers for {self.name!r}; "
                f"{self._dimension} were expected, as before. Has the model been replaced there? Then build what it "
                "made again, and clear the cache (`fairagent cache clear`)"
            )
            fault.usage = usage
            raise fault

    def _note(self, usage: Usage) -> None:
        self._tally.add(usage)
        spent(usage)


def shared(tokens: int, texts: Sequence[str]) -> list[int]:
    """Each text's part of the `tokens` of all, by their lengths; together they are all of them.

    >>> shared(10, ["a" * 30, "b" * 10, ""])
    [8, 2, 0]
    """
    ends = np.cumsum([len(text) for text in texts], dtype=np.float64)
    parts = np.rint(tokens * ends / max(1.0, ends[-1])).astype(int)
    return [int(part) for part in np.diff(parts, prepend=0)]
