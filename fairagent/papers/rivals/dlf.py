"""DLF: a fairness score learned without relevance labels, fused with the engine's (after Chen & Fang, ICTIR 2023).

The paper's formulas could not be read; these are this project's: the exposure of a document is its chance of being
ranked first, p = softmax(s), that of a group the sum of p times membership, as a share of what all known groups get.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field
from scipy.special import rel_entr, softmax

from fairagent.errors import DataError
from fairagent.measures import min_max
from fairagent.papers.rivals.deltr import LearningPart
from fairagent.retrieve.bm25.part import prepare_index
from fairagent.retrieve.encoders import BUNDLED
from fairagent.retrieve.site import Site
from fairagent.retrieve.vectors import check_vectors, open_vectors, prepare_vectors
from fairagent.search.rerank.base import Pool, Reranker, ordered
from fairagent.settings.parts import Progress
from fairagent.types import FloatArray, Ranking

Direction = Literal["kl", "kl-reverse"]
"""kl: KL(exposure || target); kl-reverse: KL(target || exposure), infinite where a group of the target gets nothing."""

Features = Callable[[Pool], FloatArray]
"""One row of numbers a candidate, (n, f), the same f for every pool (the paper: Sentence-BERT's)."""


def exposure_loss(
    scores: FloatArray,
    memberships: FloatArray,
    target: FloatArray,
    direction: Direction = "kl-reverse",
    smoothing: float = 0.0,
) -> tuple[float, FloatArray]:
    """The divergence of the groups' exposure and `target` (g,), in nats, and its gradient in `scores`, (n,).

    `memberships` (n, g) are those in the known groups; `smoothing` is added to every share first. Where no document has
    a label, both are 0.
    """
    p = softmax(scores)
    mass = p @ memberships
    total = mass.sum()
    if total <= 0:
        return 0.0, np.zeros_like(scores)
    share = mass / total
    scale = 1 + smoothing * len(target)
    e, t = (share + smoothing) / scale, (target + smoothing) / scale
    if direction == "kl-reverse":
        loss = rel_entr(t, e).sum()
        of_share = -np.divide(t, e, out=np.zeros_like(e), where=t > 0) / scale
    else:
        loss = rel_entr(e, t).sum()
        of_share = np.log(np.divide(e, t, out=np.ones_like(e), where=e > 0)) / scale
    of_mass = (of_share - share @ of_share) / total
    of_p = memberships @ of_mass
    return float(loss), np.asarray(p * (of_p - p @ of_p))


def fuse(fairness: FloatArray, relevance: FloatArray, alpha: float) -> FloatArray:
    """The sum alpha min-max(fairness) + (1 - alpha) min-max(relevance), (n,).

    >>> fuse(np.array([0.0, 4.0, 2.0]), np.array([30.0, 10.0, 20.0]), alpha=0.25).tolist()
    [0.75, 0.25, 0.5]
    """
    return alpha * min_max(fairness) + (1 - alpha) * min_max(relevance)


def fit_dlf(
    pools: Sequence[Pool],
    features: Features,
    epochs: int = 50,
    rate: float = 1e-3,
    l2: float = 1e-4,
    seed: int = 0,
) -> FloatArray:
    """The weights (f,) of a linear fairness score, fitted to the groups and targets of the training pools.

    The loss of a pool is the sum over its dimensions of `exposure_loss`, plus `l2` |weights|^2. Adam (Kingma & Ba
    2015; decay .9 and .999) takes a step a pool, in an order drawn anew each epoch with `seed`. Raises DataError for
    no pool or features that differ in number.
    """
    training = [(features(pool), pool) for pool in pools if len(pool.ranking)]
    widths = sorted({rows.shape[1] for rows, _ in training})
    if len(widths) != 1:
        raise DataError(f"DLF needs pools with candidates and one number of features, not {widths}")
    rng = np.random.default_rng(seed)
    weights, mean, square = np.zeros((3, widths[0]))
    order = [i for _ in range(epochs) for i in rng.permutation(len(training)).tolist()]
    for number, i in enumerate(order, start=1):
        rows, pool = training[i]
        scores = rows @ weights
        of_scores = np.zeros_like(scores)
        # Smoothed: a group of the target may have no candidate.
        for memberships, target in zip(pool.memberships, pool.targets, strict=True):
            of_scores += exposure_loss(scores, memberships[:, 1:], target, smoothing=1e-6)[1]
        gradient = of_scores @ rows + 2 * l2 * weights
        mean += 0.1 * (gradient - mean)
        square += 0.001 * (gradient**2 - square)
        weights -= rate * (mean / (1 - 0.9**number)) / (np.sqrt(square / (1 - 0.999**number)) + 1e-8)
    return np.asarray(weights)


@dataclass(frozen=True, slots=True)
class DLFReranker:
    """By the learned fairness score and the candidates' own, both min-max: alpha fairness + (1 - alpha) relevance."""

    weights: FloatArray
    features: Features
    alpha: float = 0.5

    def rerank(self, pool: Pool) -> Ranking:
        if not len(pool.ranking):
            return pool.ranking
        scores = fuse(self.features(pool) @ self.weights, pool.ranking.scores, self.alpha)
        return ordered(pool.ranking.ids, scores, pool.n)


class DLFConfig(LearningPart):
    """DLF on the texts' embeddings, fitted to judged topics as `deltr` is."""

    of_groups: ClassVar[bool] = True
    kind: Literal["dlf"] = "dlf"
    alpha: float = Field(0.5, ge=0, le=1)
    """The weight of the learned fairness score, 0 to 1; relevance has the rest."""
    encoder: str = BUNDLED
    """The embedding model whose vectors the model learns from, named as for `engine: dense`."""

    def check(self, site: Site) -> None:
        super().check(site)
        check_vectors(site, self.encoder)

    def prepare(self, site: Site, progress: Progress) -> None:
        prepare_index(site, progress)
        prepare_vectors(site, self.encoder, progress)

    def build(self, site: Site) -> Reranker:
        source = open_vectors(site, self.encoder)

        def embeddings(pool: Pool) -> FloatArray:
            return np.asarray(source.vectors(pool.ranking.ids), dtype=np.float64)

        def fit(pools: Mapping[str, Pool]) -> DLFReranker:
            weights = fit_dlf(tuple(pools.values()), embeddings, seed=site.seed)
            return DLFReranker(weights, embeddings, self.alpha)

        return self.fitted(site, fit)
