"""The loop as a controller of group evidence: weights that follow what each group lacks, until it lacks nothing more.

For each group g its evidence E_g is what its own best documents have in common. The refined query is
(1 - beta) q + beta sum_g w_g E_g, with w beginning at the target t; what would be served is measured, and
w_g <- w_g ((t_g + s) / (e_g + s))^eta, until the gap stops falling. Every group's evidence is relevance feedback, which
is why relevance is kept; FAIR-QR's promise (arXiv 2503.21092), kept by control rather than by words added to a query.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fairagent.exposure import SMOOTHING, ExposureMeter, total_gap
from fairagent.loop.base import Looped, Search
from fairagent.loop.evidence import Channel, Learned, by_queries, by_terms, by_vectors, learn_from
from fairagent.loop.kinds import KindSource
from fairagent.loop.prior import bonus, importance
from fairagent.retrieve.dense import VectorEngine
from fairagent.retrieve.fused import FusedRetriever
from fairagent.retrieve.relevance_model import TermSource
from fairagent.types import Exposure, FloatArray, Group, Query, Ranking, Step

HALVINGS = 2
"""How often a step that overshoots is halved."""
HEAD = 50
"""Documents by which it is told whether a dimension applies to a query."""
NOTHING_SHOWN = float(-np.log(SMOOTHING))
"""What counts as the divergence of a dimension in which nothing labeled is shown, beside those of the others."""


@dataclass(frozen=True, slots=True, eq=False)
class Controller:
    """`steps` refinements at most. `source` tells terms for engines without vectors; `kinds` the kinds of documents.

    `beta` is the share of the groups' evidence in the refined query, `eta` the step's exponent, `feedback` the number
    of documents that evidence is learned from, `smoothing` what keeps small targets from large steps. A step counts if
    the gap of what would be served falls by it and its estimated relevance, the mean score by the engine, stays above
    (1 - `drift`) of that of the engine's own list; else it is halved, twice at most. `prior` is the weight of the kinds
    of documents (`fairagent.loop.prior`), 0 for none. `worse` is as in `Looped`.
    """

    steps: int = 3
    beta: float = 0.5
    eta: float = 0.5
    feedback: int = 20
    smoothing: float = 0.02
    drift: float = 0.1
    tolerance: float = 0.0
    prior: float = 0.6
    worse: float | None = 0.01
    source: TermSource | None = None
    kinds: KindSource | None = None

    def run(self, search: Search) -> Looped:
        """See `Loop.run`: the candidates are the engine's, with refined scores."""
        steps, first = list(search.steps), search.steps[-1].ranking
        if not len(first):
            return Looped(first, search.steps, "the query retrieves nothing", search.meter)
        meter = self._weighed(search.meter, first)
        kinds = self.kinds.of(first.ids, search.query.id) if self.kinds and self.prior else []
        added, _ = bonus(first.scores, kinds, self.prior)
        relevance = first.scores + added
        unit = max(float(np.ptp(first.scores)), 1e-9)
        learned = learn_from(relevance, meter.memberships(first.ids), self.feedback)
        has = np.array([bool(one) for one in learned])
        channels, fixed = self._channels(search, first, learned) if has.any() and self.steps else ([], first.scores)

        def served(scores: FloatArray) -> Ranking:
            return search.serve(search.pool(sorted_by(first, scores), meter, unit)).top(search.n)

        place = {id: number for number, id in enumerate(first.ids)}

        def estimated(ranking: Ranking) -> float:
            return float(relevance[[place[id] for id in ranking.ids]].mean())

        now = served(relevance)
        least = (1 - self.drift) * estimated(now)
        exposures = meter.measure(now)
        steps[-1] = replace(steps[-1], exposures=meter.measure(steps[-1].ranking))
        kept, gap = relevance, np.inf
        weights, eta, from_, stopped = self._start(meter, has), self.eta, None, ""
        factor = _factor(meter)
        for _ in range(self.steps if channels else 0):
            scores = fixed + added + sum(channel.scores(factor * weights) for channel in channels)
            now = served(scores)
            exposures = meter.measure(now)
            fell, drifted = finite_gap(exposures) < gap, estimated(now) < least
            reason = "" if fell and not drifted else "less relevant" if drifted else "the gap did not fall"
            steps.append(
                Step(
                    "controller",
                    search.query,
                    now,
                    exposures,
                    total_gap(exposures),
                    accepted=not reason,
                    weights=_named(meter, weights),
                    reason=reason,
                )
            )
            if not reason:
                kept, gap, from_ = scores, finite_gap(exposures), (weights, exposures)
                if gap <= self.tolerance:
                    stopped = f"the gap is not above {self.tolerance:g}"
                    break
            elif from_ is None or eta <= self.eta / 2**HALVINGS:
                stopped = f"a step was no gain: {reason}"
                break
            else:
                eta /= 2
            weights = self._moved(*from_, eta)
        stopped = stopped or (f"{self.steps} steps were made" if channels else "no group has evidence")
        return Looped(sorted_by(first, kept), tuple(steps), stopped, meter, unit, self.worse)

    def _weighed(self, meter: ExposureMeter, first: Ranking) -> ExposureMeter:
        """The meter in which a dimension counts by how much it applies to what was found."""
        groups, head = meter.collection.groups, first.top(HEAD)
        weights = []
        for target, rows in zip(meter.targets, meter.memberships(head.ids), strict=True):
            if target.dimension in groups.oracle:
                weights.append(1.0)
                continue
            labeled = float((rows[:, 1:].sum(axis=1) > 0).mean())
            weights.append(importance(labeled, 1 - float(groups.shares(target.dimension)[0])))
        return replace(meter, importance=tuple(weights))

    def _channels(self, search: Search, first: Ranking, learned: list[Learned]) -> tuple[list[Channel], FloatArray]:
        """What the groups' evidence says through each engine, and the part of the scores that is not refined."""
        engine, query = search.engine, search.query
        if isinstance(engine, FusedRetriever):
            parts = engine.parts(query)
            row = {id: number for number, id in enumerate(parts.ids)}
            scores = parts.scores[[row[id] for id in first.ids]]
            dense = [number for number, one in enumerate(engine.engines) if isinstance(one, VectorEngine)]
            if dense:
                fixed = np.delete(scores, dense, axis=1).sum(axis=1)
                channels = [
                    self._by_vectors(one, query, first, learned, engine.weights[number])
                    for number in dense
                    if isinstance(one := engine.engines[number], VectorEngine)
                ]
                return channels, fixed
        if isinstance(engine, VectorEngine):
            return [self._by_vectors(engine, query, first, learned, 1.0)], np.zeros(len(first))
        if self.source is None:
            return [], first.scores
        if isinstance(engine, TermSource):
            documents = len(engine) if hasattr(engine, "__len__") else len(first)
            channel = by_terms(self.source, first.ids, first.scores, query, learned, self.beta, documents)
        else:
            channel = by_queries(search.retrieve, self.source, first, query, learned, self.beta)
        return [channel], np.zeros(len(first))

    def _by_vectors(
        self, engine: VectorEngine, query: Query, first: Ranking, learned: list[Learned], weight: float
    ) -> Channel:
        return by_vectors(engine.vectors(first.ids), engine.query_vector(query), learned, self.beta, weight)

    def _start(self, meter: ExposureMeter, has: FloatArray) -> FloatArray:
        """The target's shares over the groups that have evidence, side by side."""
        sizes = [len(target.shares) for target in meter.targets]
        shares = np.concatenate([target.shares for target in meter.targets]) * has
        return np.concatenate([_normalized(part) for part in np.split(shares, np.cumsum(sizes)[:-1])])

    def _moved(self, weights: FloatArray, exposures: tuple[Exposure, ...], eta: float) -> FloatArray:
        """The weights after one step of the control law."""
        sizes = [len(exposure.shares) for exposure in exposures]
        parts = []
        for old, exposure in zip(np.split(weights, np.cumsum(sizes)[:-1]), exposures, strict=True):
            lack = (exposure.target + self.smoothing) / (exposure.shares + self.smoothing)
            parts.append(_normalized(old * lack**eta))
        return np.concatenate(parts)


def sorted_by(ranking: Ranking, scores: FloatArray) -> Ranking:
    """The documents in the order of `scores` (n,), ties as they stand."""
    order = np.argsort(-scores, kind="stable")
    return Ranking(tuple(ranking.ids[place] for place in order.tolist()), scores[order])


def finite_gap(exposures: tuple[Exposure, ...]) -> float:
    """`total_gap`, but a dimension in which nothing labeled is shown does not drown the others."""
    return sum(one.importance * min(one.divergence, NOTHING_SHOWN) for one in exposures)


def _normalized(shares: FloatArray) -> FloatArray:
    return shares / shares.sum() if shares.sum() > 0 else shares


def _factor(meter: ExposureMeter) -> FloatArray:
    """The importance of each group's dimension, side by side."""
    sizes = [len(target.shares) for target in meter.targets]
    return np.repeat(np.array(meter.importance), sizes)


def _named(meter: ExposureMeter, weights: FloatArray) -> tuple[tuple[Group, float], ...]:
    names = [Group(target.dimension, label) for target in meter.targets for label in target.labels]
    return tuple(zip(names, weights.tolist(), strict=True))


def first_of(steps: tuple[Step, ...]) -> Ranking:
    """The engine's own list: the last one that no loop has made."""
    return next(step.ranking for step in reversed(steps) if step.source != "controller")
