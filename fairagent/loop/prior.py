"""Which documents are of the kind that has labels of a dimension at all, and whether a query is about such documents.

A page about a river has no gender; a person of unknown gender has one that nobody wrote down. A filter on labels takes
both for the same. Here the kind is estimated: by the label, and by how many of the nearest documents have one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairagent.types import FloatArray

STEEPNESS, MIDDLE = 10.0, 0.4
"""Of the curve from evidence to probability: tuned on public topics (docs/loop.md)."""
LEAST_RATIO = 0.02
"""Below it a document's odds are not told apart, so that none is lost for good."""


@dataclass(frozen=True, slots=True, eq=False)
class DocumentKind:
    """How surely documents are of the kind that has labels of a dimension.

    `of` (n,) are probabilities, `chance` is their mean over the whole collection.
    """

    dimension: str
    of: FloatArray
    chance: float


def kinds_of(labeled: FloatArray, neighbors: NDArray[np.int32] | None, own: float = 0.5) -> FloatArray:
    """How surely each document is of the kind that has labels, (n,) in [0, 1].

    `labeled` (n,) is 1 where it has one; `neighbors` (n, k) are the numbers of its nearest documents, without which
    the label alone counts. `own` is the weight of the document's own label.

    >>> kinds_of(np.array([1.0, 0.0]), None).tolist()
    [1.0, 0.0]
    """
    if neighbors is None:
        return labeled
    around = np.asarray(labeled, dtype=np.float32)[neighbors].mean(axis=1)
    mixed = own * labeled + (1 - own) * around
    return np.asarray(1 / (1 + np.exp(-STEEPNESS * (mixed - MIDDLE))), dtype=np.float64)


def bonus(
    scores: FloatArray,
    kinds: Sequence[DocumentKind],
    weight: float,
    head: int = 50,
    shrink: float = 5.0,
    rounds: int = 3,
) -> tuple[FloatArray, dict[str, float]]:
    """What its kind adds to the score of each candidate (n,), and the estimated share of each kind among the answers.

    Of each kind the share p among the first `head` candidates, shrunk by `shrink` documents towards its chance c in the
    collection, is estimated `rounds` times, each from the order that the last one gave. A document of probability t
    gets `weight` ln(t p / c + (1 - t) (1 - p) / (1 - c)), its likelihood ratio; nothing where p is not above c, so that
    no query loses the documents that it is about, nor where all documents are of one kind.
    """
    total, shares = np.zeros(len(scores)), {}
    for kind in kinds:
        chance, part, share = kind.chance, np.zeros(len(scores)), kind.chance
        if 0 < chance < 1 and len(scores) and np.ptp(kind.of) > 0:
            for _ in range(rounds):
                first = np.argsort(-(scores + part), kind="stable")[:head]
                share = (kind.of[first].sum() + shrink * chance) / (len(first) + shrink)
                if share <= chance:
                    part = np.zeros(len(scores))
                    break
                ratio = kind.of * share / chance + (1 - kind.of) * (1 - share) / (1 - chance)
                part = weight * np.log(np.maximum(ratio, LEAST_RATIO))
        total, shares[kind.dimension] = total + part, float(share)
    return total, shares


def importance(share: float, chance: float) -> float:
    """How much a dimension applies to a query, in [0, 1]: its kind's share of what is found, beside the collection's.

    >>> importance(0.2, 0.4), importance(0.5, 0.4)
    (0.5, 1.0)
    """
    return min(1.0, share / chance) if chance > 0 else 0.0
