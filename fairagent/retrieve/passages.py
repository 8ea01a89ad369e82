"""Documents by their best passage (MaxP, Dai & Callan 2019), over an engine whose index holds passages.

The loop, the re-rankers and the exposure of groups see documents; a context gets the passage that answers best.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.collection.config import START, joined, passage_document, passage_id
from fairagent.errors import IndexMismatch
from fairagent.retrieve.base import Retriever, check_length, lend, scored, searched
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.catalog import IdTable
from fairagent.retrieve.dense import DenseRetriever
from fairagent.retrieve.encoders import Embeddings
from fairagent.retrieve.relevance_model import Postings
from fairagent.types import Document, FloatArray, Query, Ranking


class PassageRetriever:
    """Ranks documents by their best passage; ties are ordered by document id, at the cut as well.

    `engine` is over passages, whose `ids` are in the order of their documents; IndexMismatch where it holds none.
    """

    def __init__(self, engine: Any) -> None:
        self._passages: Retriever = engine
        self._table: IdTable = engine.ids
        first = np.flatnonzero(np.strings.endswith(self._table.names(np.arange(len(self._table))), b"#1"))
        if not len(first) or first[0] != 0:
            raise IndexMismatch("the index holds documents, not their passages; build it again with `chunks` set")
        self._starts = np.append(first, len(self._table))

    def __len__(self) -> int:
        return len(self._starts) - 1

    def search(self, query: Query, n: int) -> Ranking:
        """The best `n` documents, each with the score of its best passage."""
        check_length(n)
        depth = 2 * n
        while True:
            passages = searched(self._passages, query, depth)
            best = _of_documents(passages)
            scores = list(best.values())
            # Complete where all passages were seen, or those not seen score less than the last document wanted.
            if len(passages) < depth or (len(best) >= n and passages.scores[-1] < scores[n - 1]):
                break
            depth *= 2
        ids = sorted(best, key=lambda id: (-best[id], id))[:n]
        return Ranking(tuple(ids), np.array([best[id] for id in ids], dtype=np.float64))

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The engine's score of the best passage of each of the documents, (n,), in one call.

        Raises DataError naming passages, such as "d#1", of documents that are not in the index.
        """
        if not len(ids):
            return np.zeros(0)
        passages, starts = self.passage_ids(ids)
        return np.asarray(np.maximum.reduceat(scored(self._passages, query, passages), starts))

    def passage_ids(self, ids: Sequence[str]) -> tuple[list[str], NDArray[np.intp]]:
        """The ids of all passages of these documents, and where those of each document start."""
        first = self._table.known([passage_id(id, 1) for id in ids])
        sizes = self._starts[np.searchsorted(self._starts, first) + 1] - first
        starts = np.cumsum(sizes) - sizes
        numbers = np.arange(sizes.sum()) + np.repeat(first - starts, sizes)
        return self._table.texts(numbers), starts

    def best(self, query: Query, ids: Sequence[str]) -> list[str]:
        """The id of the best passage of each of the documents; of equal ones the first."""
        passages, starts = self.passage_ids(ids)
        parts = np.split(scored(self._passages, query, passages), starts[1:]) if len(ids) else []
        return [passages[start + int(np.argmax(part))] for start, part in zip(starts.tolist(), parts, strict=True)]


class BM25Passages(PassageRetriever):
    """Documents by their best passage under BM25, with texts and terms of documents as `BM25Retriever` has them."""

    def __init__(self, engine: BM25Retriever) -> None:
        super().__init__(engine)
        self._engine = engine
        lend(self, engine, "document_frequency", "words", "analyze", "bound")
        # The loop asks for the terms of the same deep list once an iteration.
        self._postings = lru_cache(maxsize=8)(self._of_documents)

    def document(self, id: str) -> Document:
        """The whole document, put together again; raises DataError where the id is not in the index."""
        parts = self._engine.documents(self.passage_ids([id])[0])
        return _under(id, parts[0], joined(parts))

    def passages(self, query: Query, ids: Sequence[str]) -> list[Document]:
        best = self._engine.documents(self.best(query, ids))
        return [_under(id, passage, passage.text) for id, passage in zip(ids, best, strict=True)]

    def postings(self, ids: Sequence[str]) -> Postings:
        """The terms of all passages of these documents (what two share counts twice); shares are those of passages."""
        return self._postings(tuple(ids))

    def _of_documents(self, ids: tuple[str, ...]) -> Postings:
        passages, starts = self.passage_ids(ids)
        of = self._engine.postings(passages)
        owner = np.repeat(np.arange(len(ids)), np.diff(np.append(starts, len(passages))))
        size = max(1, len(of.vocabulary))
        pair, place = np.unique(owner[of.row] * size + of.term, return_inverse=True)
        count = np.bincount(place, of.count, len(pair)).astype(np.float64)
        length = np.bincount(owner, of.length, len(ids)).astype(np.float64)
        return Postings(pair // size, pair % size, count, length, of.vocabulary, of.document_share)


class DensePassages(PassageRetriever):
    """Documents by their best passage under vector search."""

    def __init__(self, engine: DenseRetriever) -> None:
        super().__init__(engine)
        self._engine, self.query_vector = engine, engine.query_vector

    def vectors(self, ids: Sequence[str]) -> Embeddings:
        """The mean embedding of the passages of each of these documents, (n, d)."""
        passages, starts = self.passage_ids(ids)
        vectors = self._engine.vectors(passages)
        sizes = np.diff(np.append(starts, len(passages)))
        return np.asarray(np.add.reduceat(vectors, starts, axis=0) / sizes[:, None], dtype=vectors.dtype)

    def nearest(self, vector: Embeddings, n: int) -> Ranking:
        """The documents of the `n` passages with the largest products with `vector` (d,), each by its best one."""
        best = _of_documents(self._engine.nearest(vector, n))
        return Ranking(tuple(best), np.array(list(best.values()), dtype=np.float64))


def _of_documents(passages: Ranking) -> dict[str, float]:
    """The documents of these passages with the scores of their best ones."""
    best: dict[str, float] = {}
    for passage, score in zip(passages.ids, passages.scores.tolist(), strict=True):
        best.setdefault(passage_document(passage), score)
    return best


def _under(id: str, passage: Document, text: str) -> Document:
    """`text` under the document's id, with what the passage has of its document."""
    extra = {name: value for name, value in passage.extra.items() if name != START}
    return Document(id, text, passage.title, extra)
