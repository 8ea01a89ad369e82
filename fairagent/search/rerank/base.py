"""What a re-ranker gets and gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from fairagent.collection.exposure import ExposureMeter
from fairagent.errors import DataError, UsageError
from fairagent.measures.objective import estimated_relevance
from fairagent.retrieve.site import Site
from fairagent.search.rerank.frontier import Frontier
from fairagent.settings.parts import Part, part_class
from fairagent.settings.seam import PartCall
from fairagent.types import Dial, FloatArray, Query, Ranking


@dataclass(frozen=True, slots=True, eq=False)
class UnlabeledColumns:
    """Candidates without a label of one dimension as one more group, or as two: cannot have a label, and can.

    `rows` (n, u) are their shares of each candidate, `shares` (u,) what they should get, `before` (u + g,) what they
    and the known groups have in the engine's own list. `counts` says whether they have a part in the gap.
    """

    rows: FloatArray
    shares: FloatArray
    before: FloatArray
    counts: bool = True


NO_LIST = Ranking((), np.zeros(0))


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The candidates for the final ranking of `n` documents.

    `query` is the user's own; `ranking` holds the candidates with scores on the scale of the engine's own deep list,
    `engine_list` (empty: `ranking` itself), whose first and last score are a relevance of 1 and 0. `memberships` are
    their groups, (len(ranking), 1 + g) a dimension with column 0 unknown; `targets` the shares (g,) that the known
    groups of each dimension should get. `importance` (0 to 1) is how much each dimension counts, empty: all alike.
    `unlabeled` has the candidates without a label of each dimension (empty: they are ignored). `ordered_by` and
    `frontiers` remember what re-rankers have made of these very candidates; a changed pool begins anew.
    """

    query: Query
    ranking: Ranking
    memberships: tuple[FloatArray, ...]
    targets: tuple[FloatArray, ...]
    n: int
    importance: tuple[float, ...] = ()
    unlabeled: tuple[UnlabeledColumns, ...] = ()
    engine_list: Ranking = NO_LIST
    ordered_by: dict[tuple[int, ...], Pool] = field(default_factory=dict, init=False, repr=False)
    frontiers: dict[Any, Frontier] = field(default_factory=dict, init=False, repr=False)

    def of(self, ranking: Ranking) -> Pool:
        """The pool with its candidates in the order, and with the scores, of `ranking`, which holds some of them."""
        place = {id: number for number, id in enumerate(self.ranking.ids)}
        order = [place[id] for id in ranking.ids]
        unlabeled = tuple(replace(one, rows=one.rows[order]) for one in self.unlabeled)
        memberships = tuple(rows[order] for rows in self.memberships)
        return replace(self, ranking=ranking, memberships=memberships, unlabeled=unlabeled)


def pool_of(query: Query, ranking: Ranking, meter: ExposureMeter, n: int, engine_list: Ranking | None = None) -> Pool:
    """The candidates of `ranking` with their groups, targets and importance as `meter` has them."""
    targets = tuple(target.shares for target in meter.targets)
    # Documents without a label are one column, or two: those that cannot have one, and those that can.
    columns = meter.columns(ranking.ids)
    split = [np.hsplit(rows, [rows.shape[1] - len(shares)]) for rows, shares in zip(columns, targets, strict=True)]
    memberships = tuple(
        whole if unknown.shape[1] == 1 else np.column_stack([unknown.sum(axis=1), known])
        for whole, (unknown, known) in zip(columns, split, strict=True)
    )
    unlabeled = tuple(
        UnlabeledColumns(unknown, due.shares, due.own, due.counts)
        for due, (unknown, _) in zip(meter.unlabeled, split, strict=bool(meter.unlabeled))
    )
    return Pool(query, ranking, memberships, targets, n, meter.importance, unlabeled, engine_list or ranking)


class Reranker(Protocol):
    """Orders the candidates: any object with this method will do.

    One whose attribute `widens` is True may bring in other documents of the engine. One whose attribute `keeps` is True
    keeps an account: its `keep(pool, served)` counts a request with these candidates that was served this ranking, and
    returns notes for the trace.
    """

    def rerank(self, pool: Pool) -> Ranking:
        """The best `pool.n` of the candidates (fewer where there are fewer)."""
        ...


def account_notes(reranker: Any, pools: Callable[[], tuple[Pool, Pool]], query: Query) -> tuple[str, ...]:
    """Let the re-ranker count what is served, where it keeps an account; `pools` makes what its `keep` takes."""
    if not getattr(reranker, "keeps", False):
        return ()
    with PartCall("rerank", reranker, query) as call:
        notes = reranker.keep(*pools())
    return tuple(str(note) for note in call.one_of(notes, tuple))


def rerank_with(reranker: Reranker, pool: Pool, part: Part | None = None) -> Ranking:
    """What the re-ranker gives: the best `pool.n` candidates; PartError where it gives something else.

    It cannot write into the pool. `part` describes it.
    """
    with PartCall("rerank", reranker, pool.query, part) as call:
        given = replace(
            pool,
            ranking=call.frozen_ranking(pool.ranking),
            memberships=tuple(map(call.frozen, pool.memberships)),
            targets=tuple(map(call.frozen, pool.targets)),
            unlabeled=tuple(
                UnlabeledColumns(call.frozen(one.rows), call.frozen(one.shares), call.frozen(one.before), one.counts)
                for one in pool.unlabeled
            ),
        )
        object.__setattr__(given, "ordered_by", pool.ordered_by)
        object.__setattr__(given, "frontiers", pool.frontiers)
        ranking = reranker.rerank(given)
    return call.ranking(ranking, pool.n, None if getattr(reranker, "widens", False) else pool.ranking.ids)


def dialed(reranker: Reranker | None) -> Any:
    """The re-ranker, if it has the methods of `ExposureReranker` (of a chain its last one), else None."""
    last = reranker
    while (parts := getattr(last, "rerankers", None)) is not None:
        last = parts[-1] if parts else None
    return reranker if hasattr(last, "frontier") and hasattr(last, "with_dial") else None


def with_dial(reranker: Reranker | None, dial: Dial) -> Reranker:
    """The re-ranker at another point of its frontier; UsageError where it has no dial."""
    if (choosing := dialed(reranker)) is None:
        named = next((name for name, one in dial._asdict().items() if one is not None), "fairness")
        raise UsageError(f"{named}: this agent's re-ranker has no such dial; search with `rerank: [graph, exposure]`")
    changed: Reranker = choosing.with_dial(dial)
    return changed


def relevance_of(pool: Pool, unlabeled: float = 0.0) -> FloatArray:
    """The candidates' relevance (n,), less `unlabeled` for each dimension in which they have no label."""
    scores = (pool.engine_list if len(pool.engine_list) else pool.ranking).scores
    relevance = estimated_relevance(pool.ranking.scores, float(scores.max()), float(scores.min()))
    if unlabeled:
        relevance = relevance - unlabeled * sum((of[:, 1:].sum(axis=1) == 0) for of in pool.memberships)
    return relevance


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
    """The model `name` of the re-ranker `cross-encoder`, opened once a memo; BackendUnavailable if it is not there."""
    part: Any = part_class("rerank", "cross-encoder")
    scorer: PairScorer = site.memo.get(("pair scorer", name), lambda: part(scorer=name).open_scorer())
    return scorer
