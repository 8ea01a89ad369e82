"""Targets: the share of exposure that each known group of a dimension should get, for one topic.

With a(d) the membership row of document d over the known groups, all of these add up to 1:

| kind | share of group g | sees the judgments |
|---|---|---|
| population | its world share | no |
| uniform | 1 / (number of groups) | no |
| corpus | sum of a_g(d) over all documents / the same over all groups | no |
| estimated | sum of w(d) a_g(d) over the ranking / the same over all groups | no |
| trec-estimated | (estimated + population) / 2 | no |
| qrels | sum of a_g(d) over the relevant documents / the same over all groups | yes |
| trec | (qrels + population) / 2 | yes |

The two mixed kinds are the judged or estimated share alone in a dimension without a population, as TREC Fair does in
dimensions without a background distribution.

w(d) = (score(d) - lowest) / (highest - lowest), the min-max score within the ranking; 1 where all scores are
equal. `trec` is the known part of TREC Fair 2022's target, t <- t/2 + K b/2 with K the known mass, over K.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fairagent.collection.collection import Collection
from fairagent.collection.faults import listed
from fairagent.collection.population import share_faults
from fairagent.errors import DataError, UsageError
from fairagent.types import FloatArray, Ranking

KINDS = ("population", "uniform", "corpus", "estimated", "trec-estimated", "qrels", "trec")


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """The shares (g,) that the known `labels` of `dimension` should get; they add up to 1.

    `source` says where they come from. An `oracle` saw the judgments: fit for evaluation, and to be marked
    wherever it was used inside the loop.
    """

    dimension: str
    labels: tuple[str, ...]
    shares: FloatArray
    source: str
    oracle: bool


def make_target(
    kind: str | Mapping[str, float],
    dimension: str,
    collection: Collection,
    topic: str,
    ranking: Ranking | None = None,
) -> Target:
    """The target of `kind` (one of KINDS, or the user's own label -> share) for one topic id.

    `estimated` and `trec-estimated` need the `ranking`, best the whole deep list of the original query;
    where no labeled document of it has weight, they take the corpus's shares for it, and `source` says so.
    `trec` takes the population's alone where no relevant document is labeled.

    Raises UsageError for an unknown kind or dimension or a missing ranking; DataError where the shares
    cannot be told (no population, nothing labeled) or where the user's do not add up to 1.
    """
    labels = collection.groups.labels(dimension)
    if not labels:
        raise DataError(f"no document of {collection.name!r} has a label of {dimension!r}: no target can be made")
    # Labels that were taken from the judgments make an oracle of whatever counts them.
    judged = dimension in collection.groups.oracle
    if isinstance(kind, Mapping):
        return Target(dimension, labels, _given(kind, dimension, labels), "given", False)
    if kind == "population":
        return Target(dimension, labels, _population(dimension, labels, collection), kind, False)
    if kind == "uniform":
        return Target(dimension, labels, np.full(len(labels), 1 / len(labels)), kind, False)
    if kind == "corpus":
        return Target(dimension, labels, _corpus(dimension, collection), kind, judged)
    if kind in ("estimated", "trec-estimated"):
        if ranking is None:
            raise UsageError(f"the target {kind!r} needs the ranking of the original query")
        shares = _known(_weights(ranking) @ collection.groups.memberships(dimension, ranking.ids, topic))
        source = kind
        if shares is None:
            source = f"{kind} (nothing labeled was ranked: corpus)"
            shares = _corpus(dimension, collection)
        if kind == "trec-estimated" and dimension in collection.population:
            shares = (shares + _population(dimension, labels, collection)) / 2
        return Target(dimension, labels, shares, source, judged)
    if kind in ("qrels", "trec"):
        relevant = [id for id, grade in collection.qrels.get(topic, {}).items() if grade > 0]
        shares = _known(collection.groups.memberships(dimension, relevant, topic).sum(axis=0))
        if kind == "trec" and dimension in collection.population:
            world = _population(dimension, labels, collection)
            if shares is None:
                return Target(dimension, labels, world, "trec (no relevant document labeled: population)", True)
            return Target(dimension, labels, (shares + world) / 2, kind, True)
        if shares is None:
            raise DataError(
                f"topic {topic!r}: no relevant document has a label of {dimension!r}, so there is no target "
                "'qrels'; leave the topic out, or use 'trec' or 'population'"
            )
        return Target(dimension, labels, shares, kind, True)
    raise UsageError(f"no target {kind!r}; there are: {', '.join(KINDS)}, or your own label: share pairs")


def _known(totals: FloatArray) -> FloatArray | None:
    """The known part (column 1 on) of summed memberships as shares; None where it has no mass."""
    mass = totals[1:].sum()
    return totals[1:] / mass if mass > 0 else None


def _weights(ranking: Ranking) -> FloatArray:
    """Min-max scores (n,); all 1 where the scores are equal."""
    if not len(ranking):
        return np.empty(0)
    lowest, highest = ranking.scores.min(), ranking.scores.max()
    return (ranking.scores - lowest) / (highest - lowest) if highest > lowest else np.ones(len(ranking))


def _corpus(dimension: str, collection: Collection) -> FloatArray:
    shares = _known(collection.groups.shares(dimension))
    if shares is None:
        raise DataError(f"no document of {collection.name!r} has a label of {dimension!r}: no target 'corpus'")
    return shares


def _population(dimension: str, labels: tuple[str, ...], collection: Collection) -> FloatArray:
    if dimension not in collection.population:
        there = listed(list(collection.population)) or "none"
        raise DataError(
            f"{collection.name!r} has no population for {dimension!r} (there is: {there}); add it to the "
            "collection's settings file, or use 'uniform', 'corpus' or 'estimated'"
        )
    world = collection.population[dimension]
    return np.array([world.get(label, 0.0) for label in labels])


def _given(shares: Mapping[str, float], dimension: str, labels: tuple[str, ...]) -> FloatArray:
    faults = share_faults(shares)
    if strange := [str(label) for label in shares if label not in labels]:
        faults.append(f"{listed(strange)} is no group of the dimension, which has: {listed(labels)}")
    if faults:
        raise DataError(f"the target given for {dimension!r} cannot be used: {'; '.join(faults)}")
    return np.array([float(shares.get(label, 0.0)) for label in labels])
