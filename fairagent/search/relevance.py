"""Estimated relevance: the engine's scores for the user's own query, relevance feedback, and the types of documents.

All candidates are ordered by it, whoever retrieved them, and it is what a list's relevance is the mean of. Feedback is
for short queries: these name a broad topic, whose documents are more alike than its few words say; of a long one it
blurs what it asks for. The figures, collection by collection: evaluations/controller/README.md.

The type of a document: a page about a river has no gender; a person of unknown gender has one that nobody wrote down. A
filter on labels takes both for the same. So a type counts only where the collection says which documents can have a
label (`applies_to`), or where documents near each other have labels, or none, together: then the subject decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from fairagent.collection import Collection, Groups
from fairagent.collection.exposure import ExposureMeter
from fairagent.errors import UsageError
from fairagent.measures.objective import estimated_relevance
from fairagent.retrieve.base import FusedEngine, Retriever, scored
from fairagent.retrieve.bm25.part import words_at_hand
from fairagent.retrieve.catalog import IdTable
from fairagent.retrieve.dense import VectorEngine
from fairagent.retrieve.graph import Graph, graph_of
from fairagent.retrieve.relevance_model import TermSource
from fairagent.retrieve.site import Site
from fairagent.search.rerank.base import ordered
from fairagent.storage.threads import Memo
from fairagent.types import FloatArray, Query, Ranking

STEEPNESS, MIDDLE = 10.0, 0.4
"""Of the curve from evidence to probability: tuned on public topics."""
HEAD, SHRINK, ROUNDS = 50, 5.0, 3
"""Of the share of a type: the first candidates, the documents that stand for its chance, and how often it is taken."""
LEAST_RATIO = 0.02
"""Below it a document's odds are not distinguished, so that none is lost for good."""
CLUSTERED = 0.92
"""The AUC from which on the subject decides whether a label is missing. Measured: gender of encyclopedia pages .95,
labels deleted at random .50, regions of news .72, tags of packages .87."""
TOGETHER = 0.75
"""The share of near documents without a label, around those without one, from which on these are a type. Measured:
pages without a gender .88, biographies of women whose labels were deleted .51 to .60."""
ENOUGH = 50
"""Documents with a label, and without one, that are needed for an estimate."""
FEW_MISSING = 0.05
"""The share of missing labels below which nobody has to think about them."""


def type_chances(labeled: FloatArray, neighbors: NDArray[np.int32]) -> FloatArray:
    """How surely each document is of the type that has labels, (n,) in [0, 1].

    `labeled` (n,) is 1 where it has one; its nearest documents (`neighbors`, (n, k) numbers) count as much together.
    """
    around = np.asarray(labeled, dtype=np.float32)[neighbors].mean(axis=1)
    mixed = 0.5 * labeled + 0.5 * around
    return np.asarray(1 / (1 + np.exp(-STEEPNESS * (mixed - MIDDLE))), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class TypePrior:
    """What the documents of a list gain by their types, `listed` (n,), and any others (`gain`), in units of relevance.

    `importance` (0 to 1) is a dimension's share of the first candidates beside its chance: how far it applies.
    """

    listed: FloatArray
    gain: Callable[[Sequence[str]], FloatArray]
    importance: Mapping[str, float]


def type_prior(source: TypeSource, topic: str, ids: Sequence[str], relevance: FloatArray, weight: float) -> TypePrior:
    """The prior on candidates with a `relevance` (n,), best first.

    Where the share p of a dimension's type among the first candidates is above the type's chance c in the collection, a
    document of probability t gains `weight` ln(t p / c + (1 - t) (1 - p) / (1 - c)); elsewhere nothing, so that no
    query loses the documents that it is about. p is estimated anew from the order that it gives, and shrunk a little
    towards c.
    """
    importance, shares = dict[str, float](), dict[str, tuple[float, float]]()
    listed = np.zeros(len(ids))
    for dimension, of, chance in source.document_types(ids, topic):
        importance[dimension] = min(1.0, float(of[:HEAD].mean()) / chance) if len(ids) else 1.0
        if not len(ids) or np.ptp(of) <= 0:
            continue
        part = np.zeros(len(ids))
        for _ in range(ROUNDS):
            first = np.argsort(-(relevance + part), kind="stable")[:HEAD]
            share = (of[first].sum() + SHRINK * chance) / (len(first) + SHRINK)
            if share <= chance:
                break
            part = weight * likelihood(of, share, chance)
        else:
            shares[dimension] = float(share), chance
            listed = listed + part

    def gain(others: Sequence[str]) -> FloatArray:
        total = np.zeros(len(others))
        for dimension, of, _ in source.document_types(others, topic) if shares and weight else ():
            if dimension in shares:
                total = total + weight * likelihood(of, *shares[dimension])
        return total

    return TypePrior(listed, gain, importance)


def likelihood(of: FloatArray, share: float, chance: float) -> FloatArray:
    """The logarithm of the ratio by which documents of these probabilities (n,) are likelier to be meant."""
    ratio = of * share / chance + (1 - of) * (1 - share) / (1 - chance)
    return np.asarray(np.log(np.maximum(ratio, LEAST_RATIO)))


@dataclass(frozen=True, slots=True, eq=False)
class TypeSource:
    """How surely documents are of the type that can have labels, for each dimension in which that is known.

    `chances` are the types' shares of all documents. Of `declared` dimensions the collection says which documents can
    have a label; of others the `table` does, (n,) over the documents `ids`. `clusterings` are the AUCs of missing
    labels.
    """

    collection: Collection
    chances: Mapping[str, float]
    declared: frozenset[str] = frozenset()
    ids: IdTable | None = None
    table: Mapping[str, FloatArray] = field(default_factory=dict)
    clusterings: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of_collection(cls, collection: Collection, graph: Graph | None, memo: Memo) -> TypeSource:
        """What the collection declares, and what its corpus graph, if there is one, shows."""
        groups = collection.groups
        names = [name for name in groups.dimensions if name not in groups.oracle]
        declared = frozenset(name for name in names if groups.of_type(name, []) is not None)

        def counted() -> dict[str, float]:
            parts = (part for part in getattr(groups, "parts", (groups,)) if hasattr(part, "batches"))
            known = (id for part in parts for _, ids in part.batches() for id in ids)
            ids = graph.ids.texts() if graph else list(dict.fromkeys(known))
            return {name: float(np.mean(np.asarray(groups.of_type(name, ids)))) if ids else 1.0 for name in declared}

        chances: dict[str, float] = memo.get(("declared types", id(groups)), counted)
        if graph is None:
            return cls(collection, chances, declared)
        others = [name for name in names if name not in declared and 0 < (labeled_share(groups, name) or 0) < 1]
        aucs, table = memo.get(("clustered types", id(graph)), lambda: _clustered(groups, others, graph))
        chances = chances | {name: float(of.mean()) for name, of in table.items()}
        return cls(collection, chances, declared, graph.ids, table, aucs)

    @property
    def notes(self) -> Iterator[str]:
        """What is known of missing labels where the collection does not declare which documents can have one."""
        for name, auc in self.clusterings.items():
            share = 1 - (labeled_share(self.collection.groups, name) or 0)
            if share >= FEW_MISSING or name in self.table:
                lack = "lack" if name in self.table else "do not lack"
                meaning = "that can have none" if name in self.table else "whose label nobody gave"
                yield (
                    f"{100 * share:.2g} % of the documents have no label of {name!r}; near documents {lack} it "
                    f"together (AUC {auc:.2f}), so they are taken for documents {meaning}; `applies_to` in the "
                    "collection's file can say which can have one"
                )

    def document_types(self, ids: Sequence[str], topic: str) -> Iterator[tuple[str, FloatArray, float]]:
        """Dimension, how surely these documents are of its type, (n,), and the mean of that over the collection."""
        for name, chance in self.chances.items():
            if not 0 < chance < 1:
                continue
            if name in self.declared:
                yield name, np.asarray(self.collection.groups.of_type(name, ids, topic), dtype=np.float64), chance
            elif self.ids is not None:
                yield name, self.table[name][self.ids.known(ids)], chance


def clustering(labeled: FloatArray, neighbors: NDArray[np.int32]) -> float:
    """How well the labels of its nearest documents predict whether a document has one: the AUC, in [0, 1].

    `labeled` (n,) is 1 where a document has a label, `neighbors` (n, k) are the numbers of its nearest documents. Where
    all have one, or none has, it is .5.

    >>> labeled, near = np.array([1.0, 1.0, 0.0, 0.0]), np.array([[1], [0], [3], [2]], dtype=np.int32)
    >>> clustering(labeled, near), clustering(labeled, near[::-1])
    (1.0, 0.0)
    """
    around = np.asarray(labeled, dtype=np.float32)[neighbors].sum(axis=1)
    values, place = np.unique(around, return_inverse=True)
    having = np.bincount(place, labeled, minlength=len(values))
    lacking = np.bincount(place, 1 - labeled, minlength=len(values))
    pairs = having.sum() * lacking.sum()
    if pairs <= 0:
        return 0.5
    below = np.cumsum(lacking) - lacking
    return float((having * (below + lacking / 2)).sum() / pairs)


def _clustered(groups: Groups, names: Sequence[str], graph: Graph) -> tuple[dict[str, float], dict[str, FloatArray]]:
    """How far missing labels cluster, and where they do how surely each of the graph's documents can have one."""
    ids, near = graph.ids.texts(), np.asarray(graph.numbers)
    aucs, table = {}, {}
    for name in names:
        has = (groups.memberships(name, ids)[:, 1:].sum(axis=1) > 0).astype(np.float64)
        lacks = has == 0
        if min(lacks.sum(), has.sum()) < ENOUGH:
            continue
        aucs[name] = clustering(has, near)
        if aucs[name] >= CLUSTERED and lacks[near[lacks]].mean() >= TOGETHER:
            table[name] = type_chances(has, near)
    return aucs, table


def labeled_share(groups: Groups, dimension: str) -> float | None:
    """The share of all documents that have a label; None where the groups of all documents are not known."""
    try:
        return 1 - float(groups.shares(dimension)[0])
    except UsageError:
        return None


SAME = 1e-6
"""Scores that differ by less of what the list's scores span are the same."""
Gain = Callable[[Sequence[str]], FloatArray]
"""What documents gain beside the engine's scores, (n,), on their scale."""


@dataclass(frozen=True, slots=True)
class VectorFeedback:
    """Rocchio's: the mean vector of the first `documents` has the share `mix` in the vector of a query of few words.

    A query is left as it is if it has more than `longest` words, as `words` analyzes them.
    """

    words: TermSource | None
    mix: float
    documents: int
    longest: int

    def gains(self, engine: Retriever, query: Query, engine_list: Ranking) -> tuple[FloatArray, Gain] | None:
        """What the documents of the engine's list gain, and how much any others do; None: the query stays.

        The scores of the engine's vectors become those of the new query vector, at the mean and the spread of the old
        ones.
        """
        length = len(self.words.analyze(query.text)) if self.words else len(query.text.split())
        if length > self.longest or len(engine_list) < 2 or not isinstance(engine, VectorEngine):
            return None
        vectors, vector = engine.vectors(engine_list.ids).astype(np.float64), engine.query_vector(query)
        first = vectors[: self.documents].mean(axis=0)
        toward = (1 - self.mix) * vector + self.mix * first / max(float(np.linalg.norm(first)), 1e-9)
        before, after = vectors @ vector, vectors @ toward
        spread = float(after.std())
        if spread <= 0:
            return None
        unit = _unit(engine, query, engine_list, before)
        scale = float(before.std()) / spread
        change = np.asarray(unit * (scale * toward - vector))
        shift = unit * (float(before.mean()) - scale * float(after.mean()))

        def gain(ids: Sequence[str]) -> FloatArray:
            return np.asarray(engine.vectors(ids).astype(np.float64) @ change + shift)

        return np.asarray(vectors @ change + shift), gain


def _unit(engine: VectorEngine, query: Query, engine_list: Ranking, products: FloatArray) -> float:
    """What a product of 1 is worth in the engine's scores, as these are spread; of a fusion in its vectors' part."""
    of_vectors, listed = engine_list.scores, np.ones(len(engine_list), dtype=bool)
    if isinstance(engine, FusedEngine):
        number = next((place for place, one in enumerate(engine.engines) if isinstance(one, VectorEngine)), None)
        if number is None:
            return 0.0
        parts = engine.parts(query)
        given = dict(zip(parts.ids, parts.scores[:, number].tolist(), strict=True))
        of_vectors = np.array([given.get(id, 0.0) for id in engine_list.ids])
        listed = of_vectors > 0
    spread = float(products[listed].std()) if listed.any() else 0.0
    return float(of_vectors[listed].std()) / spread if spread > 0 else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """The documents of the `engine_list` for a query as `candidates`, best first, and what measures them now."""

    engine: Retriever
    query: Query
    engine_list: Ranking
    candidates: Ranking
    meter: ExposureMeter
    gains: tuple[Gain, ...] = ()

    def joined(self, candidates: Ranking, ids: Sequence[str]) -> Ranking:
        """The candidates with these documents, each as relevant as it is for the user's own query.

        Where an engine scores given documents otherwise than its list does (a host's list is its own), a line through
        both gives the scores that the list makes likely. None is better than the last of the list, which has whatever
        is; one that is worse has a relevance below 0 (at 0 it would come in for nothing:
        evaluations/widening/README.md).
        """
        listed = self.engine_list.scores
        every_score = scored(self.engine, self.query, (*self.engine_list.ids, *ids))
        known, scores = every_score[: len(listed)], every_score[len(listed) :]
        if np.abs(known - listed).max() > SAME * np.ptp(listed):
            spread = float(known.var())
            slope = float(((known - known.mean()) * (listed - listed.mean())).mean()) / spread if spread > 0 else 0.0
            scores = listed.mean() + slope * (scores - known.mean())
        scores = np.minimum(scores, listed[-1])
        scores = scores + sum(gain(ids) for gain in self.gains)
        every = (*candidates.ids, *ids)
        return ordered(every, np.concatenate([candidates.scores, scores]), len(every))


@dataclass(frozen=True, slots=True)
class Weighing:
    """How the documents of an engine's list are weighed: by `feedback`, and by their `types` with this `weight`."""

    feedback: VectorFeedback | None
    types: TypeSource | None
    weight: float

    @classmethod
    def of_site(cls, site: Site) -> Weighing | None:
        """As settings say; None where the engine's order stays, as where nothing looks at groups."""
        settings, chosen = site.settings, site.settings.feedback
        if not (settings.sees_groups and site.collection.groups.dimensions):
            return None
        types = TypeSource.of_collection(site.collection, graph_of(site), site.memo) if settings.types else None
        feedback = None
        if chosen.mix and isinstance(site.engine, VectorEngine):
            feedback = VectorFeedback(words_at_hand(site), chosen.mix, chosen.documents, chosen.longest)
        return cls(feedback, types, settings.types) if feedback or types else None

    def of(self, engine: Retriever, query: Query, engine_list: Ranking, meter: ExposureMeter) -> Weighed:
        """The candidates by estimated relevance, and the meter as their types say.

        A dimension counts by how much it applies to the first documents, and several share the price of one; documents
        that cannot have a label should get what they have of the best by estimated relevance.
        """
        if not len(engine_list):
            return Weighed(engine, query, engine_list, engine_list, meter)
        gains: list[Gain] = []
        scores = engine_list.scores
        applies: Mapping[str, float] = {}
        if self.feedback and (fed := self.feedback.gains(engine, query, engine_list)):
            scores = scores + fed[0]
            gains.append(fed[1])
        if self.types:
            first, last = float(engine_list.scores[0]), float(engine_list.scores[-1])
            # What a difference of 1 in relevance is on the scale of the engine's scores.
            unit = first - last or 1.0
            relevance = estimated_relevance(scores, first, last)
            prior = type_prior(self.types, query.id, engine_list.ids, relevance, self.weight)
            scores, applies = scores + unit * prior.listed, prior.importance
            gains.append(lambda ids: unit * prior.gain(ids))
        counts = [applies.get(target.dimension, 1.0) for target in meter.targets]
        meter = replace(meter, importance=tuple(count / max(1.0, sum(counts)) for count in counts))
        order = np.argsort(-scores, kind="stable")
        candidates = Ranking(tuple(engine_list.ids[place] for place in order.tolist()), scores[order])
        if self.types:
            meter = meter.by_type(candidates, frozenset(self.types.table))
        return Weighed(engine, query, engine_list, candidates, meter, tuple(gains))
