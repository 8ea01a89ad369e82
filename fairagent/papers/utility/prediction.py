"""How many documents to answer from, by a predictor of the query's performance: a question that the paper leaves open.

A predictor looks at the scores of the engine's own list alone. On training topics, the k with the best mean utility, 0
(do not retrieve) among them, is found for low, middling and high values of it; on the topics left out it is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairagent.papers.utility.measures import PairedTest, paired_test
from fairagent.types import FloatArray

HEAD, TOP = 100, 5
"""Documents that NQC and SMV look at, and that WIG does, as their papers recommend."""
LEVELS = 3
"""Low, middling and high values of a predictor, each of as many training topics."""


def nqc(scores: FloatArray, words: int) -> float:
    """Normalized query commitment: the standard deviation of the first scores, over the size of the mean of all.

    The score of the whole collection as one document is not to be had from every engine: the mean over the list stands
    for it. Source: Shtok et al., TOIS 2012.

    >>> round(nqc(np.array([3.0, 1.0]), 2), 4)
    0.5
    """
    return _over(float(scores[:HEAD].std()), abs(float(scores.mean())))


def wig(scores: FloatArray, words: int) -> float:
    """Weighted information gain: by how much the first scores are above the mean of all, by the query's length.

    Source: Zhou and Croft, SIGIR 2007; the mean over the list stands for the score of the collection, as in `nqc`.

    >>> round(wig(np.array([3.0, 3.0, 3.0, 3.0, 3.0, 1.0]), 4), 4)
    0.1667
    """
    return float(scores[:TOP].mean() - scores.mean()) / float(max(words, 1) ** 0.5)


def smv(scores: FloatArray, words: int) -> float:
    """Score magnitude and variance: the mean of s |ln(s / mean)| over the first scores, by the size of the mean of all.

    Scores of 0 or less count as nothing. Source: Tao and Wu, CIKM 2014.

    >>> round(smv(np.array([2.0, 2.0]), 1), 4)
    0.0
    """
    head = scores[:HEAD]
    mean = float(head.mean())
    positive = head[head > 0]
    if mean <= 0 or not len(positive):
        return 0.0
    magnitude = float((positive * np.abs(np.log(positive / mean))).sum()) / len(head)
    return _over(magnitude, abs(float(scores.mean())))


def first_score(scores: FloatArray, words: int) -> float:
    """The score of the first document.

    >>> first_score(np.array([3.0, 1.0]), 2)
    3.0
    """
    return float(scores[0])


PREDICTORS: Mapping[str, Callable[[FloatArray, int], float]] = {
    "NQC": nqc,
    "WIG": wig,
    "SMV": smv,
    "first score": first_score,
}
"""What is predicted from the scores (m,), best first, of a query of so many words."""


def predicted(scores: FloatArray, words: int) -> dict[str, float]:
    """Predictor -> value; 0 for an empty list."""
    return {name: predictor(scores, words) if len(scores) else 0.0 for name, predictor in PREDICTORS.items()}


def _over(value: float, size: float) -> float:
    return value / size if size else 0.0


@dataclass(frozen=True, slots=True)
class WayToChoose:
    """What choosing k in this way comes to: the mean utility over the topics, and the mean k.

    `none` is the share of the topics for which nothing is retrieved, `to_fixed` the test against the one k that is
    best on the training topics (None of that itself).
    """

    way: str
    utility: float
    k: float
    none: float
    to_fixed: PairedTest | None


FIXED, BEST, CHANCE = "one k for all", "the best k of each topic (not known before)", "a random number"


def choices(
    utilities: FloatArray, ks: Sequence[int], predictors: Mapping[str, FloatArray], folds: int, seed: int = 0
) -> list[WayToChoose]:
    """Ways to choose k, cross-validated: one k, by each of the `predictors` (t,), by a random number, and at best.

    `utilities` (t, c) are those of t topics at each of the c `ks`; utility is 0 at k = 0. The random number is the
    control: what it gains, the way of choosing gains without knowing anything. Topics are dealt out into 2 or more
    `folds` with `seed`.

    >>> ways = choices(np.array([[0.0, 1.0], [0.0, -3.0]] * 6), [0, 5], {"told": np.array([1.0, 0.0] * 6)}, folds=3)
    >>> [(one.way, round(one.utility, 2), one.k) for one in ways[:2]]
    [('one k for all', 0.0, 0.0), ('told', 0.5, 2.5)]
    """
    rng = np.random.default_rng(seed)
    topics = len(utilities)
    fold = rng.permutation(topics) % folds
    every = np.arange(topics)

    def way(name: str, chosen: NDArray[np.intp]) -> WayToChoose:
        gained, taken = utilities[every, chosen], np.array(ks)[chosen]
        test = None if name == FIXED else paired_test(gained, utilities[every, fixed])
        return WayToChoose(name, float(gained.mean()), float(taken.mean()), float((taken == 0).mean()), test)

    fixed = np.zeros(topics, dtype=np.intp)
    for number in range(folds):
        fixed[fold == number] = _best(utilities[fold != number])
    by = {
        name: _looked_up(utilities, values, fold, folds)
        for name, values in {**predictors, CHANCE: rng.random(topics)}.items()
    }
    return [
        way(FIXED, fixed),
        *(way(name, chosen) for name, chosen in by.items()),
        way(BEST, utilities.argmax(axis=1)),
    ]


def _best(utilities: FloatArray) -> int:
    """Which k has the best mean utility; of equal ones the smallest."""
    return int(utilities.mean(axis=0).argmax())


def _looked_up(utilities: FloatArray, values: FloatArray, fold: NDArray[np.intp], folds: int) -> NDArray[np.intp]:
    """For each topic, the k that is best on the other folds' topics with a value of the same level."""
    chosen = np.zeros(len(values), dtype=np.intp)
    for number in range(folds):
        train, test = fold != number, fold == number
        cuts = np.quantile(values[train], np.arange(1, LEVELS) / LEVELS)
        levels = np.digitize(values, cuts)
        for level in range(LEVELS):
            alike = train & (levels == level)
            chosen[test & (levels == level)] = _best(utilities[alike if alike.any() else train])
    return chosen
