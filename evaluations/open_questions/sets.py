"""Whether the utility of a set of items is the sum of what its items are worth, and the attention of each place.

Fair RAG says of each item alone whether it is useful. Drawn rankings, which are answered anyway, tell more: what an
item is worth in the sets that show it, and how often an answer rests on what stands first, second, and so on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError
from fairagent.papers.fair_rag.trial import TopicDraws
from fairagent.types import FloatArray


def worth_in_sets(rankings: NDArray[np.intp], utilities: FloatArray, n: int) -> FloatArray:
    """What each of n items adds to the utility of a set, (n,): the mean of sets with it, less that of those without.

    `rankings` (N, k) are the sets and `utilities` (N,) what the answers from them are worth. Of sets that are drawn
    uniformly it is what the item adds where it takes the place of another one, on average; it is 0 for an item that all
    sets have, or none.

    >>> worth_in_sets(np.array([[0, 1], [0, 2], [1, 2]]), np.array([1.0, 1.0, 0.0]), 3).tolist()
    [1.0, -0.5, -0.5]
    """
    shown = np.zeros((len(rankings), n))
    np.put_along_axis(shown, rankings, 1.0, axis=1)
    with_it, sums = shown.sum(axis=0), utilities @ shown
    without = len(rankings) - with_it
    some = (with_it > 0) & (without > 0)
    mean_with = np.divide(sums, with_it, out=np.zeros(n), where=some)
    mean_without = np.divide(utilities.sum() - sums, without, out=np.zeros(n), where=some)
    return np.where(some, mean_with - mean_without, 0.0)


@dataclass(frozen=True, slots=True)
class Additivity:
    """How well the utility of sets is foretold by the sum over their items: Pearson's r over sets that told nothing.

    `alone`: by how many of the items are useful on their own; `in_sets`: by what items are worth in other sets.
    `redundant` is the share of the useful items that add nothing to a set, `helpful` that of the others that do.
    """

    alone: float
    in_sets: float
    redundant: float
    helpful: float


def additivity(drawn: TopicDraws) -> Additivity | None:
    """Measured on every other draw, with the worth of items from the rest; None where there is nothing to foretell.

    That is where the utilities, or what would foretell them, are the same for all sets.
    """
    n, odd = len(drawn.useful), np.arange(len(drawn.rankings)) % 2 == 1
    worth = worth_in_sets(drawn.rankings[~odd], drawn.utilities[~odd], n)
    sets, utilities = drawn.rankings[odd], drawn.utilities[odd]
    by = [drawn.useful[sets].sum(axis=1).astype(float), worth[sets].sum(axis=1)]
    if any(np.ptp(side) == 0 for side in (utilities, *by) if side.size) or not utilities.size:
        return None
    alone, in_sets = (float(np.corrcoef(side, utilities)[0, 1]) for side in by)
    shown = np.isin(np.arange(n), drawn.rankings)
    useful, others = worth[shown & drawn.useful], worth[shown & ~drawn.useful]
    return Additivity(alone, in_sets, _share(useful <= 0), _share(others > 0))


def _share(which: NDArray[np.bool_]) -> float:
    return float(which.mean()) if which.size else 0.0


def attention(rested_on: FloatArray) -> FloatArray:
    """How far answers rest on what stands at each place, (k,): the mean over `rested_on` (N, k) of rankings.

    Only of rankings that are drawn uniformly, where a place says nothing about what stands there, is it the attention
    of the generator; of others it is relevance too. Raises DataError for no ranking.

    >>> attention(np.array([[1.0, 0.0], [1.0, 1.0]])).tolist()
    [1.0, 0.5]
    """
    if rested_on.ndim != 2 or not len(rested_on):
        raise DataError("there is no answer whose attention could be measured")
    mean: FloatArray = rested_on.mean(axis=0)
    return mean
