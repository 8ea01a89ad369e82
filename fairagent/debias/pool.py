"""Re-ranking one query's candidates by relevance and distance from avoided passages, on vectors.

Source: DebiasRAG (arXiv 2605.16113), Algorithm 2. The reference values are golden (`tests/golden`).
"""

from dataclasses import dataclass

import numpy as np

from fairagent.debias.signals import Flags, Places, Vectors, best, features, passing, to_avoided, to_query
from fairagent.debias.theta import Theta, ThetaStep
from fairagent.types import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Reranked:
    """What became of n candidates: the `places` (<= k) of the best, the best first, with their `scores`.

    `kept` are the places of those that the filter let through, in order; `emptied` says that it let none through, so
    that they are the least bad. `found` are the weights before the `step`. `flat` (2,) says which signals, relevance
    and distance from what is avoided, are the same for all that were kept, and so count for nothing.
    """

    places: Places
    scores: FloatArray
    kept: Places
    emptied: bool
    found: FloatArray
    step: ThetaStep
    flat: tuple[bool, bool]


def rerank(
    vectors: Vectors, query: Vectors, avoided: Vectors, theta: Theta, k: int, tau: float, exempt: Flags
) -> Reranked:
    """The best `k` of the candidates `vectors` (n, d), n >= 1, for `query` (d,), away from `avoided` (m, d), m >= 0.

    Vectors have length 1. Candidates whose cosine with any avoided passage is above `tau` are dropped, unless they are
    `exempt` (n,); `theta` takes one step on what is left.
    """
    bad = to_avoided(vectors, avoided)
    kept, emptied = passing(bad, tau, k, exempt)
    phi = features(to_query(vectors[kept], query), bad[kept])
    found, step = theta.move(phi)
    chosen = best(phi, step.theta, k)
    flat = not phi[:, 0].any(), not phi[:, 1].any()
    return Reranked(kept[chosen], np.asarray(phi[chosen] @ step.theta), kept, emptied, found, step, flat)
