"""What a re-ranker gets and gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from fairagent.collection.exposure import ExposureMeter
from fairagent.errors import DataError, UsageError
from fairagent.measures import Discount
from fairagent.retrieve.site import Site
from fairagent.settings.parts import Part, part_class
from fairagent.settings.seam import PartCall
from fairagent.types import FloatArray, Query, Ranking


@dataclass(frozen=True, slots=True, eq=False)
class UnlabeledColumns:
    """Candidates without a label of one dimension as one more group, or as two: cannot have a label, and can.

    `rows` (n, u) are their shares of each candidate, `shares` (u,) what they should get of the exposure, and `own`
    (u + g,) is what they and the known groups have in the engine's own list.
    """

    rows: FloatArray
    shares: FloatArray
    own: FloatArray

    def changed(self, change: Callable[[FloatArray], FloatArray]) -> UnlabeledColumns:
        """With each of its arrays changed."""
        return UnlabeledColumns(change(self.rows), change(self.shares), change(self.own))


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The candidates for the final ranking of `n` documents.

    `query` is the user's own; `ranking` holds the candidates with the scores of the queries that retrieved them;
    `memberships` are their groups, (len(ranking), 1 + g) a dimension with column 0 unknown; `targets` the shares
    (g,) that the known groups of each dimension should get. `importance` (0 to 1) is how much each dimension counts,
    empty: all alike; `unit` what a difference of 1 in relevance is on the scale of the scores, 0: their range.
    `unlabeled` makes candidates without a label a group of each dimension, None where they are ignored (empty: in all).
    `ordered_by` is what re-rankers have made of these very candidates (`ChainReranker`); a changed pool begins anew.
    """

    query: Query
    ranking: Ranking
    memberships: tuple[FloatArray, ...]
    targets: tuple[FloatArray, ...]
    n: int
    importance: tuple[float, ...] = ()
    unit: float = 0.0
    unlabeled: tuple[UnlabeledColumns | None, ...] = ()
    ordered_by: dict[tuple[int, ...], Pool] = field(default_factory=dict, init=False, repr=False)

    def of(self, ranking: Ranking) -> Pool:
        """The pool with its candidates in the order, and with the scores, of `ranking`, which holds some of them."""
        place = {id: number for number, id in enumerate(self.ranking.ids)}
        order = [place[id] for id in ranking.ids]
        unlabeled = tuple(one and replace(one, rows=one.rows[order]) for one in self.unlabeled)
        memberships = tuple(rows[order] for rows in self.memberships)
        return replace(self, ranking=ranking, memberships=memberships, unlabeled=unlabeled)


def pool_of(query: Query, ranking: Ranking, meter: ExposureMeter, n: int, unit: float = 0.0) -> Pool:
    """The candidates of `ranking` with their groups, targets and importance as `meter` has them."""
    targets = tuple(target.shares for target in meter.targets)
    # Those without a label are one column, or two: documents that cannot have one, and that can.
    split = [
        np.hsplit(rows, [rows.shape[1] - len(shares)])
        for rows, shares in zip(meter.columns(ranking.ids), targets, strict=True)
    ]
    memberships = tuple(np.column_stack([unknown.sum(axis=1), known]) for unknown, known in split)
    unlabeled = tuple(
        UnlabeledColumns(unknown, due.shares, due.own) if due else None
        for due, (unknown, _) in zip(meter.unlabeled, split, strict=bool(meter.unlabeled))
    )
    return Pool(query, ranking, memberships, targets, n, meter.importance, unit, unlabeled)


class Reranker(Protocol):
    """Orders the candidates: any object with this method will do.

    One whose attribute `widens` is True may bring other documents of the engine's in.
    """

    def rerank(self, pool: Pool) -> Ranking:
        """The best `pool.n` of the candidates (fewer where there are fewer)."""
        ...


@runtime_checkable
class StrictReranker(Reranker, Protocol):
    """A re-ranker that can give exposure more weight."""

    def stricter(self) -> Reranker | None:
        """The same with more weight on what the groups lack; None where it has none."""
        ...


class Keeper(Reranker, Protocol):
    """A re-ranker that keeps an account of what was served; its attribute `keeps` is True."""

    @property
    def keeps(self) -> bool:
        """Whether it does."""
        ...

    def keep(self, pool: Pool, served: Pool) -> tuple[str, ...]:
        """Count a request with the candidates `pool` that was served the ranking of `served`; notes for its trace."""
        ...


def account_notes(reranker: Reranker | None, pools: Callable[[], tuple[Pool, Pool]], query: Query) -> tuple[str, ...]:
    """Let the re-ranker count what is served, where it keeps an account; `pools` makes what its `keep` takes."""
    if not getattr(reranker, "keeps", False):
        return ()
    keeper: Any = reranker
    with PartCall("rerank", keeper, query) as call:
        notes = keeper.keep(*pools())
    return tuple(str(note) for note in call.one_of(notes, tuple))


@runtime_checkable
class WithFairness(Reranker, Protocol):
    """A re-ranker that trades relevance for fairness at a price that can be set."""

    def with_fairness(self, fairness: float) -> Reranker | None:
        """The same at this price, 0 or more; None where it has no such dial."""
        ...

    def relevance(self, pool: Pool) -> Ranking:
        """All candidates by what counts as their relevance (0 to 1, or more in the pool's `unit`)."""
        ...


def reranked(reranker: Reranker, pool: Pool, part: Part | None = None) -> Ranking:
    """What the re-ranker gives: the best `pool.n` candidates; PartError where it gives something else.

    It cannot write into the pool. `part` describes it.
    """
    with PartCall("rerank", reranker, pool.query, part) as call:
        frozen = call.frozen
        given = replace(
            pool,
            ranking=call.frozen_ranking(pool.ranking),
            memberships=tuple(map(frozen, pool.memberships)),
            targets=tuple(map(frozen, pool.targets)),
            unlabeled=tuple(one and one.changed(frozen) for one in pool.unlabeled),
        )
        object.__setattr__(given, "ordered_by", pool.ordered_by)
        ranking = reranker.rerank(given)
    return call.ranking(ranking, pool.n, None if getattr(reranker, "widens", False) else pool.ranking.ids)


def stricter(reranker: Reranker | None, query: Query) -> Reranker | None:
    """The re-ranker with more weight on exposure; None where there is none."""
    if not isinstance(reranker, StrictReranker):
        return None
    with PartCall("rerank", reranker, query):
        return reranker.stricter()


def with_fairness(reranker: Reranker | None, fairness: float) -> Reranker:
    """The re-ranker at another price of fairness; UsageError where it has no such dial."""
    dialed = reranker.with_fairness(fairness) if isinstance(reranker, WithFairness) else None
    if dialed is None:
        what = "no re-ranker" if reranker is None else f"re-ranker {type(reranker).__name__}"
        raise UsageError(f"fairness: this agent has {what} with such a dial; search with `rerank: [graph, exposure]`")
    return dialed


def relevance_kept(reranker: Reranker | None, pool: Pool, served: Ranking, discount: Discount) -> float | None:
    """The share (0 to 1) of the estimated relevance that `served` keeps of the best list of the same candidates.

    The sum of w_i rel(d_i) over the ranks of `served`, over the same of the first candidates by relevance, which is the
    list at fairness 0. w is the discount; rel is what the re-ranker weighs against fairness, above that of the least
    relevant candidate (0 for what is no candidate). None where the re-ranker has no dial.
    """
    if not isinstance(reranker, WithFairness) or reranker.with_fairness(0) is None:
        return None
    by_relevance = reranker.relevance(pool)
    relevance = by_relevance.scores - by_relevance.scores.min(initial=np.inf) if len(by_relevance) else np.zeros(0)
    of = dict(zip(by_relevance.ids, relevance.tolist(), strict=True))
    weights = discount(min(len(served), len(relevance)))
    best = float(weights @ relevance[: len(weights)])
    return float(weights @ [of.get(id, 0.0) for id in served.ids[: len(weights)]]) / best if best > 0 else 1.0


def ordered(ids: tuple[str, ...], scores: FloatArray, n: int) -> Ranking:
    """The best `n` by score, ties by id; DataError where a score is no finite number."""
    odd = np.flatnonzero(~np.isfinite(scores))
    if len(odd):
        raise DataError(f"the engine's score of document {ids[odd[0]]!r} is {scores[odd[0]]}, expected a finite number")
    order = sorted(range(len(ids)), key=lambda i: (-scores[i], ids[i]))[:n]
    return Ranking(tuple(ids[i] for i in order), scores[order])


class PairScorer(Protocol):
    """Scores texts for a query: any object like this will do."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    def score(self, query: str, texts: Sequence[str]) -> FloatArray:
        """How well each text answers, (n,): larger is better, whatever the scale."""
        ...


def pair_scores(scorer: PairScorer, query: Query, texts: Sequence[str], ids: Sequence[str] = ()) -> FloatArray:
    """How well each text answers by the scorer, (n,); PartError, naming one of the `ids`, where that is no score."""
    with PartCall("scorer", scorer, query) as call:
        scores = scorer.score(query.text, texts)
    return call.numbers(scores, len(texts), ids)


def pair_scorer(site: Site, name: str) -> PairScorer:
    """The model `name` of the re-ranker `cross-encoder`, opened once for all who share the site's memo.

    Raises BackendUnavailable where it is not on this machine.
    """
    part: Any = part_class("rerank", "cross-encoder")
    scorer: PairScorer = site.memo.get(("pair scorer", name), lambda: part(scorer=name).open_scorer())
    return scorer
