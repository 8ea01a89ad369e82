"""The second search: the refined query over the whole collection, so that documents come in that no list had.

Vectors are searched by the refined vector, engines of words by a weighted query, engines that take text alone by a
query for each group. A group that has too few candidates is searched for among its own documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairagent.collection import Groups
from fairagent.retrieve.catalog import IdTable
from fairagent.retrieve.dense import VectorSearch, VectorSearchAmong
from fairagent.retrieve.relevance_model import SearchAmong, TermSource, share_out
from fairagent.search.loop.base import Lack
from fairagent.search.loop.candidates import VectorView
from fairagent.search.loop.evidence import group_query, refined_vector, words
from fairagent.search.loop.state import State
from fairagent.storage.threads import Memo
from fairagent.types import FloatArray, Query

WORDS = 10
"""Words that are added to a query of words: each of them has to be looked up, and more cost more than they bring."""


@dataclass(frozen=True, slots=True, eq=False)
class SecondSearch:
    """Searches for up to `depth` documents by the refined query.

    Which documents belong to which of the `groups` is looked up once for a dimension, and cached in `memo`.
    """

    groups: Groups
    memo: Memo
    depth: int = 100

    def documents(self, state: State, weights: FloatArray, short: Sequence[tuple[Lack, int]]) -> list[str]:
        """The ids of all documents that match the evidence of groups under their `weights` (g,), each once.

        `short` are groups that have too few candidates, each with the number of documents that it lacks. Raises what
        the engine raises.
        """
        views = [view for view in state.candidates.views if isinstance(view, VectorView)]
        source = state.candidates.mixer.source
        lists: Iterator[Sequence[str]]
        if any(isinstance(view.engine, VectorSearch) for view in views):
            lists = (ids for view in views for ids in self._by_vectors(view, state, weights, short))
        elif source is None:
            lists = iter(())
        elif isinstance(state.candidates.search.engine, TermSource):
            lists = self._by_words(source, state, weights, short)
        else:
            lists = self._by_queries(source, state)
        return list(dict.fromkeys(id for ids in lists for id in ids))

    def _by_vectors(
        self, view: VectorView, state: State, weights: FloatArray, short: Sequence[tuple[Lack, int]]
    ) -> Iterator[Sequence[str]]:
        engine, groups, beta = view.engine, view.groups(state.learned, state.texts), state.candidates.mixer.beta
        if not isinstance(engine, VectorSearch):
            return
        yield engine.nearest(refined_vector(view.query, groups, weights, beta), self.depth).ids
        if isinstance(engine, VectorSearchAmong):
            for lack, count in short:
                toward = refined_vector(view.query, groups[lack.place : lack.place + 1], np.ones(1), beta)
                yield engine.nearest_among(toward, count, self._members(engine.ids, lack)).ids

    def _by_words(
        self, source: TermSource, state: State, weights: FloatArray, short: Sequence[tuple[Lack, int]]
    ) -> Iterator[Sequence[str]]:
        postings, search, part = state.candidates.postings, state.candidates.search, state.candidates.mixer.terms
        total = np.zeros(len(postings.vocabulary))
        for one, weight in zip(state.learned, weights.tolist(), strict=True):
            for place, share in words(source, postings, one) if one and weight else ():
                total[place] += weight * share
        best = [place for place in np.argsort(-total, kind="stable")[:WORDS].tolist() if total[place] > 0]
        names = source.words(postings.vocabulary[best]) if best else []
        added = list(zip(names, total[best].tolist(), strict=True))
        query = search.query
        size = max(len(source.analyze(query.text)), 1) * part / (1 - part)
        yield search.retrieve(Query(query.text, query.id, (*query.terms, *share_out(added, size)))).ids[: self.depth]
        if isinstance(search.engine, SearchAmong):
            for lack, count in short:
                numbers = self._members(search.engine.ids, lack)
                yield search.engine.search_among(query, count, numbers).ids

    def _by_queries(self, source: TermSource, state: State) -> Iterator[Sequence[str]]:
        candidates = state.candidates
        for one in state.learned:
            if query := group_query(source, candidates.postings, one, candidates.search.query):
                yield candidates.search.retrieve(query).ids[: self.depth]

    def _members(self, ids: IdTable, lack: Lack) -> NDArray[np.intp]:
        """The numbers of the group's documents, rising; none where labels depend on the topic."""
        dimension, label = lack.group.dimension, lack.group.label
        if dimension in self.groups.oracle:
            return np.zeros(0, dtype=np.intp)

        def by_label() -> dict[str, NDArray[np.intp]]:
            rows = self.groups.memberships(dimension, ids.texts())[:, 1:]
            labels = self.groups.labels(dimension)
            return {one: np.flatnonzero(column) for one, column in zip(labels, rows.T, strict=True)}

        return self.memo.get(("members", id(ids), dimension), by_label)[label]  # type: ignore[no-any-return]
