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
from fairagent.loop.base import Search
from fairagent.loop.channels import Mixer
from fairagent.loop.evidence import EvidenceDocuments, group_query, refined_vector, words
from fairagent.loop.lack import Lack
from fairagent.loop.sources import GroupText
from fairagent.memo import Memo
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.dense import DenseRetriever, VectorSearch
from fairagent.retrieve.fused import FusedRetriever
from fairagent.retrieve.relevance_model import TermSource, share_out
from fairagent.retrieve.strings import IdTable
from fairagent.types import FloatArray, Query, Ranking

WORDS = 10
"""Words that are added to a query of words: each of them has to be looked up, and more cost more than they find."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupMembers:
    """Which documents of an index belong to a group; looked up once for a dimension, and kept in `memo`."""

    groups: Groups
    memo: Memo

    def numbers(self, ids: IdTable, lack: Lack) -> NDArray[np.intp]:
        """The numbers of the group's documents, rising; none where labels depend on the topic."""
        dimension, label = lack.group.dimension, lack.group.label
        if dimension in self.groups.oracle:
            return np.zeros(0, dtype=np.intp)

        def found() -> dict[str, NDArray[np.intp]]:
            rows = self.groups.memberships(dimension, ids.texts())[:, 1:]
            labels = self.groups.labels(dimension)
            return {one: np.flatnonzero(column) for one, column in zip(labels, rows.T, strict=True)}

        return self.memo.get(("members", id(ids), dimension), found)[label]  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What a second search goes by: the candidates `found`, and what is `learned` of each group among them.

    `texts` are a model's words for the groups, `weights` (g,) those of their evidence; `short` are groups that have too
    few candidates, each with the number of documents that it lacks.
    """

    found: Ranking
    learned: Sequence[EvidenceDocuments]
    texts: Sequence[Sequence[GroupText]]
    weights: FloatArray
    short: Sequence[tuple[Lack, int]]


@dataclass(frozen=True, slots=True, eq=False)
class SecondSearch:
    """Finds up to `depth` documents by the refined query; `members` tell the documents of groups."""

    members: GroupMembers
    depth: int = 100

    def documents(self, search: Search, mixer: Mixer, evidence: Evidence) -> list[str]:
        """The ids of all documents that are found, each once. Raises what the engine raises."""
        engine = search.engine
        engines = engine.engines if isinstance(engine, FusedRetriever) else (engine,)
        by_vectors = [one for one in engines if isinstance(one, VectorSearch)]
        lists: Iterator[Sequence[str]]
        if by_vectors:
            lists = (ids for one in by_vectors for ids in self._by_vectors(one, search, mixer, evidence))
        elif mixer.source is None:
            lists = iter(())
        elif isinstance(engine, TermSource):
            lists = self._by_words(mixer.source, search, mixer, evidence)
        else:
            lists = self._by_queries(mixer.source, search, evidence)
        return list(dict.fromkeys(id for ids in lists for id in ids))

    def _by_vectors(
        self, engine: VectorSearch, search: Search, mixer: Mixer, evidence: Evidence
    ) -> Iterator[Sequence[str]]:
        vectors = engine.vectors(evidence.found.ids)
        own = mixer.query_vector(engine, search.query, evidence.found, vectors)
        groups = mixer.group_vectors(engine, vectors, evidence.learned, evidence.texts)
        yield engine.nearest(refined_vector(own, groups, evidence.weights, mixer.beta), self.depth).ids
        inner = getattr(engine, "engine", engine)
        if isinstance(inner, DenseRetriever):
            for lack, count in evidence.short:
                toward = refined_vector(own, groups[lack.place : lack.place + 1], np.ones(1), mixer.beta)
                yield inner.nearest(toward, count, self.members.numbers(inner.ids, lack)).ids

    def _by_words(
        self, source: TermSource, search: Search, mixer: Mixer, evidence: Evidence
    ) -> Iterator[Sequence[str]]:
        postings = source.postings(evidence.found.ids)
        total: dict[int, float] = {}
        for one, weight in zip(evidence.learned, evidence.weights.tolist(), strict=True):
            for place, share in words(source, postings, one, len(evidence.found)) if one and weight else ():
                total[place] = total.get(place, 0.0) + weight * share
        best = sorted(total.items(), key=lambda item: (-item[1], item[0]))[:WORDS]
        names = source.words(postings.vocabulary[[place for place, _ in best]]) if best else []
        found = [(name, share) for name, (_, share) in zip(names, best, strict=True)]
        query = search.query
        size = max(len(source.analyze(query.text)), 1) * mixer.terms / (1 - mixer.terms)
        yield search.retrieve(Query(query.text, query.id, (*query.terms, *share_out(found, size)))).ids[: self.depth]
        if isinstance(search.engine, BM25Retriever):
            for lack, count in evidence.short:
                numbers = self.members.numbers(search.engine.ids, lack)
                yield search.engine.search(query, count, among=numbers).ids

    def _by_queries(self, source: TermSource, search: Search, evidence: Evidence) -> Iterator[Sequence[str]]:
        postings, size = source.postings(evidence.found.ids), len(evidence.found)
        for one in evidence.learned:
            if (asked := group_query(source, postings, one, size, search.query)) is not None:
                yield search.retrieve(asked).ids[: self.depth]
