"""What the loop asks of a search engine: lists, scores, and by further protocols texts, terms and embeddings."""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from fairagent.errors import DataError, UsageError
from fairagent.settings.parts import Part
from fairagent.settings.seam import PartCall
from fairagent.types import Document, FloatArray, Query, Ranking, Topic
from fairagent.types.clean import shown as quoted

E = TypeVar("E")


class Retriever(Protocol):
    """A search engine: any object with these two methods will do."""

    def search(self, query: Query, n: int) -> Ranking:
        """The best `n` documents for `query` (fewer where fewer match), ties in id order."""

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The engine's scores of the given documents for `query`, aligned with `ids`, shape (n,)."""


def as_query(query: str | Query | Topic) -> Query:
    """A text, or a topic of a collection, as a query; UsageError for anything else."""
    made = Query(query.query, query.id) if isinstance(query, Topic) else query
    made = Query(made) if isinstance(made, str) else made
    if not isinstance(made, Query) or not isinstance(made.text, str):
        raise UsageError(f"expected a query, a text, Query or Topic, and not {quoted(query)} ({type(query).__name__})")
    return made


@runtime_checkable
class TextSource(Protocol):
    """An engine that stores the texts of its documents; `documents(ids)` shows many at once, where it has that too."""

    def document(self, id: str) -> Document:
        """The stored document."""


@runtime_checkable
class PassageSource(Protocol):
    """An engine that knows which part of a long document answers a query."""

    def passages(self, query: Query, ids: Sequence[str]) -> list[Document]:
        """The best part of each of these documents for `query`, under the document's id."""


@runtime_checkable
class Vocabulary(Protocol):
    """An engine that knows whether a word matches anything."""

    def document_frequency(self, word: str) -> int:
        """How many documents hold `word` (of several words, the rarest)."""


@dataclass(frozen=True, slots=True, eq=False)
class EngineScores:
    """What each engine gives the documents in any of their lists, `scores` (n, engines); 0 where one has no score."""

    ids: tuple[str, ...]
    scores: FloatArray


@runtime_checkable
class FusedEngine(Protocol):
    """Several engines as one."""

    @property
    def engines(self) -> Sequence[Retriever]:
        """The engines."""

    def parts(self, query: Query) -> EngineScores:
        """What each engine gives the documents in any of their lists, weights included."""

    def failures(self, query: Query) -> Mapping[str, str]:
        """Name of each engine that failed at the last search for `query` -> its error."""


def lend(borrower: object, lender: object, *names: str) -> None:
    """Give an object those of these methods that another one has: what an engine can do is seen by its methods."""
    vars(borrower).update({name: getattr(lender, name) for name in names if hasattr(lender, name)})


def lend_texts(engine: E, texts: object) -> E:
    """The engine, whose own index stores no texts, with those of another: `TextSource` or `PassageSource`."""
    lend(engine, texts, "document", "documents", "passages", "column")
    return engine


def ignore(*values: object) -> None:
    """The null callback."""


def check_length(n: int) -> None:
    """Raise UsageError for an `n` below 1."""
    if n < 1:
        raise UsageError(f"n is the number of documents to retrieve and must be at least 1, not {n}")


def unknown_ids(missing: Sequence[str], where: str) -> DataError:
    """The error for ids of documents that are not there, which names the first."""
    shown = ", ".join(f"{id[:60]!r}" for id in missing[:5])
    return DataError(f"{len(missing)} document id(s) are not in {where}: {shown}")


def full_text(document: Document) -> str:
    """Title and text in one, as encoders and scorers read a document."""
    return f"{document.title} {document.text}".strip()


def searched(engine: Retriever, query: Query, n: int, part: Part | None = None) -> Ranking:
    """The engine's list of at most `n` documents, or a PartError: any object may be an engine; `part` describes it."""
    with PartCall("engine", engine, query, part) as call:
        ranking = engine.search(query, n)
    return call.ranking(ranking, n)


def scored(engine: Retriever, query: Query, ids: Sequence[str]) -> FloatArray:
    """The engine's scores of these documents (n,), or a PartError."""
    with PartCall("engine", engine, query) as call:
        scores = engine.score(query, ids)
    return call.numbers(scores, len(ids), ids)


def shown(ids: Sequence[str], engine: TextSource, query: Query) -> list[Document]:
    """These documents of a list for `query`, at once where the engine can; PartError where it gives others or none."""
    with PartCall("engine", engine, query) as call:
        at_once = getattr(engine, "documents", lambda ids: [engine.document(id) for id in ids])
        documents = at_once(ids)
    return call.documents(documents, ids)


def texts_for(query: Query, ids: Sequence[str], engine: Retriever) -> list[Document]:
    """These documents as a context for `query` needs them: of a long one the best passage, where the engine has any.

    Raises UsageError where the engine stores no texts.
    """
    if isinstance(engine, PassageSource):
        with PartCall("engine", engine, query) as call:
            passages = engine.passages(query, ids)
        return call.documents(passages, ids)
    if isinstance(engine, TextSource):
        return shown(ids, engine, query)
    raise UsageError(f"{type(engine).__name__} keeps no texts of its documents to answer from")


def placed(ids: tuple[str, ...], order: Iterable[int]) -> Ranking:
    """The documents `ids[i]` for i in `order`; their scores encode only the rank: from 1 down in equal steps.

    >>> placed(("a", "b", "c"), [2, 0]).scores.tolist()
    [1.0, 0.5]
    """
    chosen = tuple(ids[i] for i in order)
    return Ranking(chosen, np.linspace(1, 0, len(chosen), endpoint=False))


MAX_TERMS = 1 << 16
"""The most distinct terms that a query may have."""


def term_weights(query: Query, analyze: Callable[[str], list[str]]) -> dict[str, float]:
    """The terms of a query with their weights, those of repeated terms added up.

    Raises UsageError for a weight that is no usual number above 0, DataError for more than `MAX_TERMS` terms.
    """
    weights: dict[str, float] = {}
    for text, weight in query.weighted:
        if not 1e-30 < weight < 1e30:
            raise UsageError(f"the weight of a keyword is a (usual) number above 0; that of {text[:60]!r} is {weight}")
        for term in analyze(text):
            weights[term] = weights.get(term, 0.0) + weight
    if len(weights) > MAX_TERMS:
        raise DataError(f"a query may have {MAX_TERMS:,} distinct terms; this one has {len(weights):,}")
    return weights


class _Clock(threading.local):
    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.account, self.since = "", 0.0

    def change(self, account: str) -> None:
        now = perf_counter()
        if self.account:
            self.seconds[self.account] += now - self.since
        self.account, self.since = account, now


_clock = _Clock()


def engine_seconds() -> float:
    """Seconds that this thread has spent in `engine_time`; callers take differences."""
    return sum(_clock.seconds.values())


def engine_accounts() -> dict[str, float]:
    """The same by account: matrix (BM25), texts, terms, vectors, fusion, server, bridge (Java), engine (any other)."""
    return dict(_clock.seconds)


@contextmanager
def engine_time(account: str = "engine") -> Iterator[None]:
    """Count the time of the block as the engine's, on `account`; inside another block on this account alone."""
    outer = _clock.account
    _clock.change(account)
    try:
        yield
    finally:
        _clock.change(outer)
