"""Vectors of texts by an OpenAI-compatible server, with the budget, cache and retries that chat has."""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError

from fairagent.errors import BudgetExceeded, FatalModelError, ModelError, ReplyInvalid
from fairagent.llm.budget import Budget, Ledger, in_threads, spent
from fairagent.llm.request import ModelReply, estimate_tokens, key_of
from fairagent.llm.server import Body, Call, Refused, ServerModel, TokenCount
from fairagent.settings import ModelSettings, Price
from fairagent.storage.telemetry import call_span, tell_usage
from fairagent.storage.threads import progress
from fairagent.types import Usage
from fairagent.types.clean import logger

if TYPE_CHECKING:
    from fairagent.llm.cache import ReplyCache

REQUESTS = 4
"""Requests that are under way at a time."""
CUT_AT = 16_000
"""Bytes of UTF-8 after which a text is cut, where the settings name no context: within 8,192 tokens in any language."""
STORED = np.dtype("<f4")

Vectors = NDArray[np.float32]
log = logger(__name__)


def _parts(texts: Sequence[tuple[str, str]], most: int) -> Iterator[Sequence[tuple[str, str]]]:
    return (texts[start : start + most] for start in range(0, len(texts), most))


def _decoded(vector: object) -> object:
    """The numbers of a vector, which servers without `encoding_format` may send in base64."""
    return np.frombuffer(base64.b64decode(vector), STORED).tolist() if isinstance(vector, str) else vector


class _Embedding(BaseModel):
    index: int = Field(strict=True)
    embedding: Annotated[list[float], BeforeValidator(_decoded)] = Field(min_length=1)


class _EmbeddingAnswer(Body):
    data: Any = None


class _TooMany(ModelError):
    """The server takes fewer texts at once."""


_EMBEDDINGS, _TOKENS = TypeAdapter(list[_Embedding]), TypeAdapter(TokenCount)


class EmbeddingModel(ServerModel):
    """An embedding model behind an embeddings API, whose vectors are stored in the `cache`; see `ServerModel`."""

    def __init__(
        self,
        settings: ModelSettings,
        environ: Mapping[str, str] | None = None,
        budget: Budget | None = None,
        price: Price | None = None,
        cache: ReplyCache | None = None,
        tally: Ledger | None = None,
        **more: Any,
    ) -> None:
        super().__init__(settings, environ, budget, price, **more)
        self._cache = cache
        self._ledger = tally or Ledger()
        self._lock = threading.Lock()
        self._dimension = 0

    @property
    def dimension(self) -> int:
        """The length of its vectors; 0 before it has given one."""
        return self._dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The vectors (n, d) of texts, none of them blank, as the server gives them; (0, 0) for none before the first.

        Texts are cut after `CUT_AT` bytes. Raises what `Model.complete` raises, and BudgetExceeded, each with its
        `usage`; ReplyInvalid for vectors of another number or length than expected, or of numbers that are not finite.
        What came before that is in the cache.
        """
        context = self.settings.context
        # A token has two bytes and more in the languages that take most tokens for a text.
        most = CUT_AT if context is None else max(1, min(CUT_AT, context * 2))
        cut = [text[:most].encode("utf-8", "replace")[:most].decode("utf-8", "ignore") for text in texts]
        identity = {"format": 1, "kind": "embedding", "server": self.endpoint.base_url, "model": self.name}
        keys = [key_of({**identity, "text": text}) for text in cut]
        vectors = {key: self._cached(key) for key in keys}
        missing = [(key, text) for key, text in dict(zip(keys, cut, strict=True)).items() if vectors[key] is None]
        batches = [dict(some) for some in _parts(missing, self.capabilities.known.batch)]
        with progress("asking for embeddings"):
            for part in in_threads(self._fetch, batches, REQUESTS, "embeddings"):
                vectors.update(part)
        rows = [vector for key in keys if (vector := vectors[key]) is not None]
        return np.stack(rows) if rows else np.zeros((0, self._dimension), dtype=np.float32)

    def _cached(self, key: str) -> Vectors | None:
        """The vector that the cache has under `key`, if it is one of this model as it is now; it counts as saved."""
        reply = self._cache.get(key) if self._cache else None
        if reply is None:
            return None
        try:
            vector = np.frombuffer(base64.b64decode(reply.text, validate=True), dtype=STORED)
        except ValueError:
            return None
        if not len(vector) or not np.isfinite(vector).all() or not self._has_dimension(len(vector)):
            return None
        self._count(replace(reply, cost=self.cost(reply.input_tokens), seconds=0.0, cached=True).usage)
        return np.asarray(vector, dtype=np.float32)

    def _fetch(self, batch: Mapping[str, str]) -> dict[str, Vectors]:
        """The vectors of a batch of texts by their keys, requested from the server, and cached."""
        if self._cache is None:
            return self._ask(batch)
        together = hashlib.sha256("".join(batch).encode()).hexdigest()
        with self._cache.alone(together, self.settings.deadline):
            # Another thread or process may have cached some meanwhile.
            cached = {key: vector for key in batch if (vector := self._cached(key)) is not None}
            missing = {key: text for key, text in batch.items() if key not in cached}
            return cached | (self._ask(missing) if missing else {})

    def _ask(self, batch: Mapping[str, str]) -> dict[str, Vectors]:
        """The vectors of the texts by their keys, in several requests where the server refuses so many at once."""
        if len(batch) > (most := self.capabilities.known.batch):
            parts = _parts(list(batch.items()), most)
            return {key: vector for some in parts for key, vector in self._ask(dict(some)).items()}
        call, texts = Call(self._clock(), self.settings.deadline), list(batch.values())
        try:
            with call_span("embeddings", self.name) as span:
                vectors, usage = self._repeat(lambda: self._attempt(texts, call), "embeddings", call)
                tell_usage(span, usage)
        except (ModelError, BudgetExceeded) as error:
            error.usage = replace(error.usage, unusable=call.sent)
            self._count(error.usage)
            if not isinstance(error, _TooMany):
                raise
            return self._ask(batch)
        self._count(usage)
        if self._cache:
            # Each text's part of the tokens, by their lengths; together they are all of them.
            ends = np.cumsum([len(text) for text in texts], dtype=np.float64)
            shares = np.diff(np.rint(usage.input_tokens * ends / max(1.0, ends[-1])).astype(int), prepend=0).tolist()
            calls = [call.sent, *[0] * len(texts)]
            for key, vector, share, sent in zip(batch, vectors, shares, calls, strict=False):
                text = base64.b64encode(vector.astype(STORED).tobytes()).decode()
                more: Any = {"estimated": usage.estimated, "calls": sent, "cost": self.cost(share)}
                self._cache.put(key, ModelReply(text, share, 0, self.name, **more))
        return dict(zip(batch, vectors, strict=True))

    def _attempt(self, texts: Sequence[str], call: Call) -> tuple[Vectors, Usage]:
        """One try: a request, and again without what the server could not take; `_TooMany` for too many texts."""
        tokens = estimate_tokens(*texts), 0
        while True:
            # Without a format many servers send base64, which others do not know.
            whole = {"model": self.name, "input": list(texts), "encoding_format": "float"}
            payload = self.capabilities.shape(whole)
            error: ModelError
            try:
                read = partial(self._read, texts=texts)
                return self._request("/embeddings", payload, call, tokens, read, refusable=True)
            except Refused as refused:
                error, note = refused.error, self.capabilities.learn(payload, refused.body)
            # Out of the handler: what the server wrote in full must not be the error's context.
            if note is None:
                raise error
            log.info("%s: %s", self, note)
            if len(texts) > self.capabilities.known.batch:
                raise _TooMany(str(error))

    def _read(self, response: Any, texts: Sequence[str]) -> tuple[Vectors, Usage]:
        """The vectors (n, d) in the `response` to `texts`, in their order, with the usage.

        Raises ReplyInvalid with `usage`: no vectors, one of another length than the others or than before, too few or
        too many, numbered wrongly, or with numbers that are not finite.
        """
        answer = self._read_body(_EmbeddingAnswer, response, "an embeddings")
        if not answer.data:
            raise FatalModelError(f"{self.endpoint.host} answered without vectors (no data); is it an embeddings API?")
        usage, vectors, wrong = Usage(1, estimate_tokens(*texts), estimated=True), np.zeros((0, 0), np.float32), ""
        with suppress(ValidationError, AttributeError):
            usage = Usage(1, _TOKENS.validate_python(answer.usage.get("prompt_tokens")))
        try:
            items = sorted(_EMBEDDINGS.validate_python(answer.data), key=lambda item: item.index)
            with np.errstate(over="ignore"):
                vectors = np.array([item.embedding for item in items], dtype=np.float32)
            if [item.index for item in items] != list(range(len(texts))):
                wrong = f"{len(items):,} vectors; {len(texts):,} were expected, one a text, numbered from 0"
            elif not np.isfinite(vectors).all():
                wrong = "numbers that are not finite"
            elif not self._has_dimension(vectors.shape[1]):
                wrong = (
                    f"vectors of {vectors.shape[1]} numbers; {self._dimension} were expected, as before. Has the model "
                    "been replaced there? Then build what it made again, and clear the cache (`fairagent cache clear`)"
                )
        except ValueError:
            wrong = "vectors of another form, or of several lengths; lists of as many numbers, each with its index"
        if wrong:
            error = ReplyInvalid(
                f"{self.endpoint.host} answered {self.name!r} with {wrong}", raw=self.hide(response.text)
            )
            error.usage = usage
            raise error
        return vectors, usage

    def _has_dimension(self, length: int) -> bool:
        """Whether vectors have this length; the first one decides which they have."""
        with self._lock:
            self._dimension = self._dimension or length
            return self._dimension == length

    def _count(self, usage: Usage) -> None:
        self._ledger.add(usage)
        spent(usage)
