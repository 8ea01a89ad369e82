"""What errors in made labels do to AWRF: labels drawn from a labeler's chances; and how far chances can be trusted.

A labeler is wrong about documents of one topic together: what it takes for the words of a group are the words of a
subject. Labels are therefore not drawn from the chances alone. In each draw the groups' odds are those of the chances
times exp(z_g), z_g normal, one for all documents of the topic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError
from fairagent.measures.base import as_memberships, as_vector, check_nonnegative
from fairagent.measures.divergence import jensen_shannon_terms
from fairagent.measures.unawareness import LEVEL, Interval, as_posteriors
from fairagent.types import FloatArray

DRAWS = 400
BINS = 10
TOPIC_SPREAD = 0.75
"""The standard deviation of z from topic to topic, in natural logarithms of odds, that the mean is drawn with."""
SAFE_SPREAD = 1.5
"""The one that intervals are drawn with. Both are chosen over public collections (evaluations/labels)."""
SHARED_SPREAD = 0.75
"""The part of SAFE_SPREAD that is one labeler's in all topics alike, chosen there as well."""


def odds_spread(examples: FloatArray, of_topic: float = TOPIC_SPREAD) -> FloatArray:
    """The standard deviation (g,) of the error in the logarithm of each group's odds.

    `examples` (g,) is how many labeled examples of each group the labeler was made from; 1 / n is the variance of the
    logarithm of a count n.

    >>> import numpy as np
    >>> odds_spread(np.array([4.0, 100.0]), of_topic=0.0).tolist()
    [0.5, 0.1]
    """
    counts = np.maximum(as_vector(examples, "examples"), 1.0)
    spread: FloatArray = np.sqrt(of_topic**2 + 1.0 / counts)
    return spread


def shared_part(examples: FloatArray) -> float:
    """The share of the variance of a topic's error that all topics have in common, where one labeler made all labels.

    That is SHARED_SPREAD, and what the labeler has not learned from its `examples` (g,) of each group.

    >>> import numpy as np
    >>> shared_part(np.array([1e9, 1e9]))
    0.25
    """
    unlearned = float((odds_spread(examples, 0.0) ** 2).mean())
    return round((SHARED_SPREAD**2 + unlearned) / (SAFE_SPREAD**2 + unlearned), 6)


def mean_under_error(values: FloatArray) -> Interval:
    """The mean of values (t, 4) of topics, each with the ends of its interval and its `shared_part`, and its ends.

    The topics' errors are independent of each other but for the shared part: on either side the squares of what they
    have alone add up, and so do the amounts themselves of what they share. A document in the lists of several topics
    is taken for several.

    Two topics off by .1 each: .1 / sqrt(2) where they err by themselves, .1 where together.

    >>> import numpy as np
    >>> alone, together = ([[0.8, 0.7, 0.9, part]] * 2 for part in (0.0, 1.0))
    >>> [round(end, 6) for end in (mean_under_error(np.array(alone)).low, mean_under_error(np.array(together)).low)]
    [0.729289, 0.7]
    """
    value, low, high, shared = np.asarray(values, dtype=np.float64).T
    mean = float(value.mean())

    def half(own: FloatArray) -> float:
        alone = float(((1.0 - shared) * own**2).sum()) / len(own) ** 2
        return math.sqrt(alone + float((np.sqrt(shared) * own).mean()) ** 2)

    return Interval(mean, mean - half(value - low), mean + half(high - value))


def drawn_labels(
    chances: FloatArray, spread: FloatArray, rng: np.random.Generator, draws: int = DRAWS
) -> NDArray[np.intp]:
    """The groups (draws, n), 0 .. g - 1, that documents with these `chances` (n, g) may have; rows add up to 1.

    Raises DataError for rows that do not, and shapes that differ.

    >>> import numpy as np
    >>> drawn_labels(np.array([[1.0, 0.0], [0.0, 1.0]]), np.ones(2), np.random.default_rng(0), 2).tolist()
    [[0, 1], [0, 1]]
    """
    rows = as_posteriors(chances, "chances")
    if spread.shape != rows.shape[1:]:
        raise DataError(f"chances have {rows.shape[1]} groups and spread has {spread.size}, expected the same")
    with np.errstate(divide="ignore"):
        odds = np.log(rows)
    drawn = np.empty((draws, len(rows)), np.intp)
    for draw in range(draws):
        # The largest of log odds with Gumbel noise is a draw from the odds (Gumbel 1954).
        noise = rng.normal(0.0, 1.0, len(spread)) * spread + rng.gumbel(size=rows.shape)
        drawn[draw] = (odds + noise).argmax(axis=1)
    return drawn


def awrf_under_error(
    chances: FloatArray,
    attention: FloatArray,
    relevant: FloatArray,
    target: FloatArray,
    share: float,
    spread: FloatArray,
    rng: np.random.Generator,
    base: float = math.e,
    draws: int = DRAWS,
) -> Interval:
    """AWRF over the known groups as labels drawn from `chances` have it: the mean of the draws, and where 95 % lie.

    `chances` (n, g) are of all documents that count, those shown and those that the target is counted from; one whose
    label is given has a row with a single 1. `attention` (n,) is what each gets in the ranking, 0 for those not shown;
    `relevant` (n,) what it counts for in the target. That is `share` times the shares of the relevant documents, plus
    1 - `share` times the fixed `target` (g,): share 1/2 with the world's for TREC Fair Ranking, 0 for a target that
    hangs on no label. A draw in which nothing relevant is drawn takes the target alone.

    As many draws lie below the interval as above it, but where they crowd at 1: it then ends as the shortest one does.
    Raises DataError for shapes that differ, and where nothing gets attention.

    >>> import numpy as np
    >>> sure, half = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.5, 0.5])
    >>> awrf_under_error(sure, np.ones(2), np.zeros(2), half, 0.0, np.ones(2), np.random.default_rng(0))
    Interval(value=1.0, low=1.0, high=1.0)
    """
    rows = as_memberships(chances)
    weights, counts, fixed = as_vector(attention, "attention"), as_vector(relevant, "relevant"), np.asarray(target)
    if not weights.shape == counts.shape == rows.shape[:1] or fixed.shape != rows.shape[1:]:
        raise DataError(f"chances have shape {rows.shape}, attention {weights.shape}, relevant {counts.shape}")
    check_nonnegative(weights, "attention")
    check_nonnegative(counts, "relevant")
    if not weights.any():
        raise DataError("no document with a label gets attention, so AWRF is not defined")
    labels = drawn_labels(rows, spread, rng, draws)
    own = [labels == group for group in range(rows.shape[1])]
    shown = np.stack([mask @ weights for mask in own], axis=1) / weights.sum()
    due = np.tile(fixed, (draws, 1))
    if share and counts.any():
        due = share * np.stack([mask @ counts for mask in own], axis=1) / counts.sum() + (1.0 - share) * due
    # Of all draws at once; the sides are shares by their making.
    values = 1.0 - jensen_shannon_terms(shown.T, due.T).sum(axis=0).clip(0.0, math.log(2.0)) / math.log(base)
    low, high = np.quantile(values, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0]).tolist()
    return Interval(float(values.mean()), low, max(high, shortest_interval(values)[1]))


def shortest_interval(values: FloatArray, level: float = LEVEL) -> tuple[float, float]:
    """The ends of the shortest interval that holds the share `level` of the values (n,), n >= 1.

    AWRF cannot be above 1, and its draws crowd there: an interval with as many draws above as below it would leave out
    every ranking that is all but perfect (Chen & Shao, Journal of Computational and Graphical Statistics 1999).

    >>> shortest_interval(np.array([0.0, 0.5, 0.9, 1.0, 1.0]), 0.6)
    (0.9, 1.0)
    >>> shortest_interval(np.array([0.0, 0.5, 0.51, 0.52, 1.0]), 0.6)
    (0.5, 0.52)
    """
    ordered = np.sort(values)
    inside = max(1, math.ceil(level * len(ordered) - 1e-9))
    widths = ordered[inside - 1 :] - ordered[: len(ordered) - inside + 1]
    # Of several that are as short, the highest.
    start = len(widths) - 1 - int(widths[::-1].argmin())
    return float(ordered[start]), float(ordered[start + inside - 1])


def calibration_error(chances: FloatArray, groups: Sequence[int], bins: int = BINS) -> float:
    """The expected calibration error of the likeliest label, in [0, 1]: 0 where 70 % sure is right 7 times of 10.

    `chances` (n, g) are of documents whose true `groups` (n,) are 0 .. g - 1. Documents are sorted into `bins` of equal
    width by the chance of their likeliest label; the error is the mean distance between that chance and the share of
    right labels, by documents (Naeini et al., AAAI 2015; Guo et al., ICML 2017). Raises DataError for no documents.

    >>> import numpy as np
    >>> round(calibration_error(np.array([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6]]), [0, 1, 1]), 6)
    0.4
    """
    return sum(one.documents * abs(one.chance - one.right) for one in reliability(chances, groups, bins)) / len(chances)


class Bin(NamedTuple):
    """Of the documents whose likeliest label has about the same chance: how many, its mean, the share that is right."""

    documents: int
    chance: float
    right: float


def reliability(chances: FloatArray, groups: Sequence[int], bins: int = BINS) -> list[Bin]:
    """The bins that have documents, the least sure first; see `calibration_error`."""
    rows, truth = as_posteriors(chances, "chances"), np.asarray(groups)
    if not len(rows) or truth.shape != rows.shape[:1]:
        raise DataError(f"chances of {len(rows)} documents and {truth.size} groups, expected as many, and one at least")
    surest, right = rows.max(axis=1), rows.argmax(axis=1) == truth
    place = np.minimum((surest * bins).astype(np.intp), bins - 1)
    return [
        Bin(int(own.sum()), float(surest[own].mean()), float(right[own].mean()))
        for own in (place == number for number in sorted(set(place.tolist())))
    ]
