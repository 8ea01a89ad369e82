"""Adaptive re-ranking with group policies: what is scored next follows from the scores so far, and from the groups.

The loop is GAR's (MacAvaney, Tonellotto, Macdonald, CIKM 2022, Algorithm 1): batches come in turn from the initial
ranking and from the frontier, the neighbors of scored documents, which wait with the best score of a document that they
are neighbors of; the budget is the number of documents scored; what is left of the initial ranking follows below. That
groups guide such a loop is from Jaenich, McDonald, Ounis (SIGIR 2024), whose policies we could not read, so the
policies here are OURS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from fairagent.collection.exposure import dimensions_of
from fairagent.errors import SettingsError
from fairagent.measures import LOG2_MAX2, Discount, group_exposure, known_part, most_underexposed, parse_discount
from fairagent.papers.rivals.representative import counting_one, with_unknown
from fairagent.retrieve.base import full_text, texts_for
from fairagent.retrieve.encoders import Embeddings, Encoder
from fairagent.retrieve.graph import engine_encoders, graph_of, prepare_graphs
from fairagent.retrieve.site import Site
from fairagent.retrieve.vectors import check_vectors, encoder
from fairagent.search.rerank.base import PairScorer, Pool, ordered, pair_scorer, pair_scores
from fairagent.settings import Part, Settings
from fairagent.settings.parts import Progress
from fairagent.types import FloatArray, Query, Ranking

GroupPolicy = Literal["none", "budget", "exposure"]

Scoring = Callable[[Query, Sequence[str]], FloatArray]
"""How well each of these documents answers the query, (n,)."""

GroupsOf = Callable[[Query, Sequence[str]], tuple[FloatArray, ...]]
"""The groups of these documents, (n, 1 + g) a dimension, in the order of a pool's dimensions."""

SIMILARITY = "similarity:"
"""How a scorer is named that is an encoder."""


@dataclass(frozen=True, slots=True)
class AdaptiveReranker:
    """The best of the `budget` documents that are scored, `batch` at a time, in turn from the list and the frontier.

    Which of the waiting documents a batch takes depends on `policy`:

    - `none`: the best first. This is GAR.
    - `budget`: place by place, those of the group whose share of the documents scored so far lacks most of its target.
    - `exposure`: those of the group that lacks most exposure in the first n of what would be served now; then the best.

    The final order is by score alone, ties by id; candidates that were not scored follow.
    """

    widens: ClassVar[bool] = True
    graph: Any
    """`neighbors(ids)` are the documents nearest to each, nearest first."""
    score: Scoring
    groups: GroupsOf
    policy: GroupPolicy = "budget"
    budget: int = 100
    batch: int = 16
    discount: Discount = LOG2_MAX2

    def rerank(self, pool: Pool) -> Ranking:
        state = _Waiting(pool, self.groups)
        for turn in count():
            if len(state.scores) >= self.budget or not (state.listed or state.frontier):
                break
            source = state.frontier if turn % 2 else state.listed
            if not source:
                continue
            size = min(self.batch, self.budget - len(state.scores), len(source))
            # The best first; ties as they came.
            batch = tuple(sorted(source, key=lambda id: -source[id]))
            if self.policy == "none":
                batch = batch[:size]
            elif self.policy == "budget":
                batch = self._by_budget(state, batch, size)
            else:
                batch = self._by_exposure(state, batch, size)
            scored = ordered(batch, self.score(pool.query, batch), len(batch))
            # What was scored waits no more; its neighbors do, in the frontier.
            state.scores |= zip(scored.ids, scored.scores.tolist(), strict=True)
            for id in scored.ids:
                state.listed.pop(id, None)
                state.frontier.pop(id, None)
            if len(state.scores) < self.budget:
                for score, near in zip(scored.scores.tolist(), self.graph.neighbors(scored.ids), strict=True):
                    for id in (one for one in near if one not in state.scores):
                        state.frontier[id] = max(score, state.frontier.get(id, score))
        return state.ranking().top(pool.n)

    def _by_budget(self, state: _Waiting, waiting: tuple[str, ...], size: int) -> tuple[str, ...]:
        pairs = zip(state.pool.memberships, state.pool.targets, strict=True)
        target = np.concatenate([np.zeros(0), *(with_unknown(rows[: self.budget], shares) for rows, shares in pairs)])
        spent = state.shares(tuple(state.scores)).sum(axis=0)
        shares = state.shares(waiting)
        taken: list[int] = []
        for place in range(len(state.scores) + 1, len(state.scores) + 1 + size):
            lacking = np.maximum(place * target - spent, 0)
            # What lies below the twelfth decimal is rounding.
            gains = np.round(shares @ lacking, 12)
            gains[taken] = -1
            taken.append(int(gains.argmax()))
            spent = spent + shares[taken[-1]]
        return tuple(waiting[i] for i in taken)

    def _by_exposure(self, state: _Waiting, waiting: tuple[str, ...], size: int) -> tuple[str, ...]:
        served = state.ranking().top(state.pool.n).ids
        weights = self.discount(len(served))
        exposed = [known_part(group_exposure(rows, weights)) for rows in state.memberships(served)]
        place = most_underexposed(exposed, state.pool.targets)
        if place is None:
            return waiting[:size]
        dimension, group = place
        members = state.memberships(waiting)[dimension][:, 1 + group] > 0
        return tuple(waiting[i] for i in np.argsort(~members, kind="stable")[:size].tolist())


class _Waiting:
    """What is scored, and what waits in the initial ranking and in the frontier, each with the score it waits with."""

    def __init__(self, pool: Pool, groups: GroupsOf) -> None:
        self.pool, self.groups, ids = pool, groups, pool.ranking.ids
        self.listed = dict(zip(ids, pool.ranking.scores.tolist(), strict=True))
        self.frontier: dict[str, float] = {}
        self.scores: dict[str, float] = {}
        self._rows = {id: tuple(rows[place] for rows in pool.memberships) for place, id in enumerate(ids)}

    def ranking(self) -> Ranking:
        """What would be served: what is scored, by score, then the rest of the initial ranking."""
        best = ordered(tuple(self.scores), np.array(list(self.scores.values()), dtype=np.float64), len(self.scores))
        if not self.listed:
            return best
        last = best.scores[-1] if len(best) else 0.0
        below = last - np.arange(1, len(self.listed) + 1)
        return Ranking(best.ids + tuple(self.listed), np.concatenate([best.scores, below]))

    def memberships(self, ids: Sequence[str]) -> tuple[FloatArray, ...]:
        """The groups of these documents, (len(ids), 1 + g) a dimension."""
        if missing := [id for id in ids if id not in self._rows]:
            memberships = self.groups(self.pool.query, missing)
            self._rows |= {id: tuple(rows[place] for rows in memberships) for place, id in enumerate(missing)}
        return tuple(
            np.array([self._rows[id][dimension] for id in ids], dtype=np.float64).reshape(len(ids), 1 + len(target))
            for dimension, target in enumerate(self.pool.targets)
        )

    def shares(self, ids: Sequence[str]) -> FloatArray:
        """The same with the dimensions side by side, where each document counts 1 in each of them."""
        return np.hstack([np.zeros((len(ids), 0)), *(counting_one(rows) for rows in self.memberships(ids))])


@dataclass(frozen=True, slots=True)
class SimilarityScorer:
    """The inner product of an encoder's vectors of the query and of each text; up to 4,096 of the texts' are cached."""

    encoder: Encoder
    _cached: dict[str, Embeddings] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.encoder.name

    def score(self, query: str, texts: Sequence[str]) -> FloatArray:
        if not texts:
            return np.zeros(0)
        if missing := [text for text in texts if text not in self._cached]:
            if len(self._cached) + len(missing) > 4096:
                self._cached.clear()
                missing = list(dict.fromkeys(texts))
            self._cached.update(zip(missing, self.encoder.documents(missing), strict=True))
        vectors = np.array([self._cached[text] for text in texts])
        return np.asarray(vectors @ self.encoder.queries([query])[0], dtype=np.float64)


class AdaptiveConfig(Part):
    """Scores a budget of documents, chosen on the way from the candidates and their neighbors, by group."""

    kind: Literal["adaptive"] = "adaptive"
    scorer: str = ""
    """What scores the documents: a cross-encoder, named as for `rerank: cross-encoder`; `similarity:NAME`:
    how alike the vectors are that an encoder, named as for `engine: dense`, makes of query and document; empty: the
    engine's own score for the user's query."""
    encoder: str = ""
    """Whose embeddings say what is a neighbor, named as for `engine: dense`. Empty: those that the engine searches by,
    or where it has none the setting `encoder`."""
    policy: GroupPolicy = "budget"
    """Which documents are scored next. none: the best-placed. budget: those of the group that has had too few of the
    documents scored so far. exposure: those of the group that lacks most exposure in what would be served now."""
    budget: int = Field(100, ge=1)
    """How many documents are scored for a query. More find more, and take longer in proportion."""
    batch: int = Field(16, ge=1)
    """How many documents are scored at a time, from candidates and neighbors in turn. Smaller batches follow the scores
    more closely."""

    @property
    def sees_groups(self) -> bool:
        return self.policy != "none"

    def check(self, site: Site) -> None:
        _check_last(site.settings.rerank, site.settings)
        if named := self._graph_encoder(site):
            check_vectors(site, named)
        if self.scorer:
            self._scorer(site)

    def prepare(self, site: Site, progress: Progress) -> None:
        prepare_graphs(site, progress, self._graph_encoder(site))

    def _graph_encoder(self, site: Site) -> str:
        """Whose graph it is; empty: the engine's own."""
        return self.encoder or ("" if engine_encoders(site) else site.settings.encoder)

    def _scorer(self, site: Site) -> PairScorer:
        if self.scorer.startswith(SIMILARITY):
            name = self.scorer.removeprefix(SIMILARITY)
            opened = encoder(site, name)
            scorer: PairScorer = site.memo.get(("similarity", name), lambda: SimilarityScorer(opened))
            return scorer
        return pair_scorer(site, self.scorer)

    def build(self, site: Site) -> AdaptiveReranker:
        _check_last(site.settings.rerank, site.settings)
        engine, collection, settings = site.engine, site.collection, site.settings
        if (graph := graph_of(site, self._graph_encoder(site))) is None:
            needed = "a corpus graph; `fairagent index` builds it, but none of a collection in passages"
            raise SettingsError(f"rerank: adaptive needs {needed}")
        score: Scoring = engine.score
        if self.scorer:
            scorer = self._scorer(site)

            def score(query: Query, ids: Sequence[str]) -> FloatArray:
                """By title and text, or the best passage; UsageError where the engine keeps no texts."""
                return pair_scores(scorer, query, list(map(full_text, texts_for(query, ids, engine))))

        known = collection.groups.dimensions or self.sees_groups
        dimensions = dimensions_of(collection, settings) if known else ()

        def groups(query: Query, ids: Sequence[str]) -> tuple[FloatArray, ...]:
            return tuple(collection.groups.memberships(dimension, ids, query.id) for dimension in dimensions)

        discount = parse_discount(settings.discount)
        return AdaptiveReranker(graph, score, groups, self.policy, self.budget, self.batch, discount)


def _check_last(part: Part, settings: Settings) -> None:
    """Raise SettingsError for a chain that goes on after `adaptive`: its documents are not all of the chain's pool."""
    parts = [one for one in part.inner if not one.idle(settings)]
    if any(map(_holds_adaptive, parts[:-1])):
        raise SettingsError("rerank: adaptive finds documents of its own, so nothing can follow it in a chain")
    for one in parts[-1:]:
        _check_last(one, settings)


def _holds_adaptive(part: Part) -> bool:
    return isinstance(part, AdaptiveConfig) or any(map(_holds_adaptive, part.inner))
