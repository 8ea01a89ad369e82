"""Drawing the rankings of one row for one topic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fairagent.evaluate.kinds.fair_rag.section import Drawing, Draws
from fairagent.retrieve.plackett_luce import oracle_log_scores, sample_rankings, sampler_log_scores, topic_rng
from fairagent.types import FloatArray, Ranking


def rankings(
    draws: Draws, scores: FloatArray, useful: NDArray[np.bool_], section: Drawing, seed: int, topic: str
) -> NDArray[np.intp]:
    """The rankings of a row, (N, k'), as indices of the items; N is 1 for a system's own order.

    `scores` (m,) are those of the first m items, which are drawn from; ties of their own order go to the first. The
    oracle draws from all n by whether they are `useful` (n,). All rows of a topic and run share their random numbers.
    """
    n = len(useful) if draws.oracle else len(scores)
    if draws.alpha is None or not n:
        return np.argsort(-scores, kind="stable")[: section.k][None, :]
    if draws.oracle:
        log_scores = oracle_log_scores(useful, draws.alpha)
    else:
        log_scores = sampler_log_scores(scores, draws.alpha, section.compat)
    return sample_rankings(log_scores, section.k, topic_rng(seed, topic, draws.run), section.samples)


def most_exposed(items: Sequence[str], exposure: FloatArray, k: int) -> Ranking:
    """The `k` items with the most exposure, which are their scores; ties in the order of `items`.

    >>> most_exposed(["a", "b", "c"], np.array([0.5, 1.0, 0.0]), k=2).ids
    ('b', 'a')
    """
    order = [item for item in np.argsort(-exposure, kind="stable")[:k].tolist() if exposure[item] > 0]
    return Ranking(tuple(items[item] for item in order), exposure[order])
