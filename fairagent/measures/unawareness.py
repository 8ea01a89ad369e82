"""Missing, predicted and wrong labels: what AWRF and exposure can be, and are likely to be.

Bounds give the unlabeled documents' exposure to the groups in any way (Manski 2003). An estimate adds up a classifier's
probabilities for these documents (PCC; Jaenich et al., JAIR 2026, arXiv 2506.04140). A labeler is wrong about documents
of one topic together, so labels are not drawn from its chances alone: in each draw the groups' odds are those of the
chances times exp(z_g), z_g normal, one for all documents of the topic. Everything is over the known groups, as
AWRF(unknown=ignore).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError
from fairagent.measures.base import TOLERANCE, as_distribution, as_memberships, as_vector, check_nonnegative
from fairagent.measures.exposure import jensen_shannon, jensen_shannon_terms
from fairagent.types import FloatArray

ROUNDED = 5e-4
"""How far rounding to three decimals moves each number: by so much a group a row may add up to other than 1."""


def as_posteriors(values: FloatArray, name: str) -> FloatArray:
    """`values` as probabilities (n, g), each row divided by its sum, which is 1 but for rounding to three decimals."""
    rows = as_memberships(values)
    check_nonnegative(rows, name)
    totals = rows.sum(axis=1)
    wrong = np.flatnonzero(np.abs(totals - 1.0) > ROUNDED * rows.shape[1] + TOLERANCE)
    if wrong.size:
        raise DataError(f"{name}: row {wrong[0]} adds up to {totals[wrong[0]]:.9g}, expected 1")
    normalized: FloatArray = rows / totals[:, None]
    return normalized


LEVEL = 0.95
ROUNDING = 1e-12
"""By how much shares that fit below a distribution may add up to more than 1."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A value and the ends of its interval."""

    value: float
    low: float
    high: float


def exposure_bounds(exposure: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The least and the largest share of all exposure that each known group can have, (g,) each; both are reached.

    `exposure` (1 + g,) adds up to 1, with column 0 `UNKNOWN`.

    >>> [ends.round(6).tolist() for ends in exposure_bounds(np.array([0.3, 0.1, 0.6]))]
    [[0.1, 0.6], [0.4, 0.9]]
    """
    shares = _exposure(exposure)
    return shares[1:], shares[1:] + shares[0]


def awrf_bounds(
    exposure: FloatArray, target: FloatArray, base: float = math.e, target_known: FloatArray | None = None
) -> tuple[float, float]:
    """The least and the largest AWRF over the known groups that the unlabeled documents' exposure allows.

    `exposure` (1 + g,) is as in `exposure_bounds`, `target` (g,) is over the known groups; `target_known` (g,) is the
    part of it that is known whatever the missing labels are (None: all). With u and m the unknown share of exposure and
    target, these are known + u s and target_known + m s' for some distributions s and s'. AWRF is concave in (s, s'),
    so it is least where all unknowns of each are of one group, and largest where each side fills up the groups that
    have least for the other. Both ends are exact for exposure that can be shared out freely, and for documents shown
    that are others than those that the target was counted from. `base` is the logarithm's. Raises DataError for
    arguments out of form.

    >>> low, high = awrf_bounds(np.array([0.5, 0.5, 0.0]), np.array([0.5, 0.5]))
    >>> round(low, 6), high
    (0.784238, 1.0)
    >>> low, high = awrf_bounds(np.array([0.0, 1.0, 0.0]), np.array([0.5, 0.5]), target_known=np.array([0.4, 0.4]))
    >>> round(low, 6), round(high, 6)
    (0.725642, 0.836103)
    """
    shares, due = _exposure(exposure), as_distribution(target, "target")
    if due.size != shares.size - 1:
        raise DataError(f"exposure has {shares.size - 1} known groups and target {due.size}, expected the same")
    known = due if target_known is None else as_vector(target_known, "target_known")
    check_nonnegative(known, "target_known")
    if known.size != due.size or (known > due + TOLERANCE).any():
        raise DataError(f"target_known is {known.tolist()}, expected a part of the target {due.tolist()}")
    missing = 0.0 if target_known is None else max(0.0, 1.0 - float(known.sum()))
    high = 1.0 - jensen_shannon(*_nearest(shares[0], shares[1:], missing, known), base=base)
    low = 1.0 - jensen_shannon(*_farthest(shares[0], shares[1:], missing, known), base=base)
    return min(low, high), high  # where nothing is unknown, both are one value, but for rounding


def _farthest(unknown: float, known: FloatArray, missing: float, due: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of the exposures and targets in which all that is unknown or missing is of one group, the two farthest apart."""
    terms = jensen_shannon_terms(known, due)
    change = jensen_shannon_terms(known + unknown, due)[:, None] + jensen_shannon_terms(known, due + missing)
    change -= np.add.outer(terms, terms)
    np.fill_diagonal(change, jensen_shannon_terms(known + unknown, due + missing) - terms)
    shown, owed = np.unravel_index(int(change.argmax()), change.shape)
    corners = np.eye(known.size)
    return known + unknown * corners[shown], due + missing * corners[owed]


def _nearest(unknown: float, known: FloatArray, missing: float, due: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of the exposures at or above `known` and the targets at or above `due`, each adding up to 1, the nearest two.

    Where the unlabeled exposure goes, e_g / t_g is the same r, and elsewhere r or more; where the target's missing part
    goes, it is the same R, and elsewhere R or less. If known exposure and target both fit below one distribution, that
    is exposure and target; if not, r < 1 < R, and each side is filled up beside what is known of the other.
    """
    both = np.maximum(known, due)
    if missing > 0.0 and both.sum() <= 1.0 + ROUNDING:
        shared = both + max(0.0, 1.0 - float(both.sum())) / both.size
        return shared, shared
    return _filled(unknown, known, due), _filled(missing, due, known) if missing > 0.0 else due


def _filled(unknown: float, known: FloatArray, target: FloatArray) -> FloatArray:
    """The distribution max(known, r target), which is closest to the target of those at or above `known`."""
    due = np.flatnonzero(target > 0.0)
    order = due[np.argsort(known[due] / target[due], kind="stable")]
    # r if the first k groups of that order are filled up; it is right for the last k at which it takes none of them.
    levels = (unknown + np.cumsum(known[order])) / np.cumsum(target[order])
    level = levels[np.flatnonzero(levels >= known[order] / target[order])[-1]]
    filled = np.maximum(known, level * target)
    closest: FloatArray = filled / filled.sum()
    return closest


def _exposure(values: FloatArray) -> FloatArray:
    shares = as_distribution(values, "exposure")
    if shares.size < 2:
        raise DataError("exposure has no known group")
    return shares


DRAWS = 400
BINS = 10
TOPIC_SPREAD = 0.75
"""The standard deviation of z from topic to topic, in natural logarithms of odds, that the mean is drawn with."""
SAFE_SPREAD = 1.5
"""The one that intervals are drawn with. Both are chosen over public collections (evaluations/labels)."""
SHARED_SPREAD = 0.75
"""The part of SAFE_SPREAD that is one labeler's in all topics alike, chosen there as well."""


def odds_spread(examples: FloatArray, of_topic: float = TOPIC_SPREAD) -> FloatArray:
    """The deviation (g,) of the error in the log of each group's odds, by the labeled `examples` (g,) of each.

    >>> odds_spread(np.array([4.0, 100.0]), of_topic=0.0).tolist()
    [0.5, 0.1]
    """
    counts = np.maximum(as_vector(examples, "examples"), 1.0)
    spread: FloatArray = np.sqrt(of_topic**2 + 1.0 / counts)
    return spread


def shared_part(examples: FloatArray) -> float:
    """The share of the variance of a topic's error that all topics have in common, where one labeler made all labels.

    >>> shared_part(np.array([1e9, 1e9]))
    0.25
    """
    unlearned = float((odds_spread(examples, 0.0) ** 2).mean())
    return round((SHARED_SPREAD**2 + unlearned) / (SAFE_SPREAD**2 + unlearned), 6)


def mean_under_error(values: FloatArray) -> Interval:
    """The mean of values (t, 4) of topics, each with the ends of its interval and its `shared_part`, and its ends.

    The topics' errors are independent but for the shared part: on either side the squares of what they have alone add
    up, and so do the amounts themselves of what they share.

    Two topics off by .1 each: .1 / sqrt(2) where they err by themselves, .1 where together.

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
    """The groups (draws, n), 0 .. g - 1, that documents with these `chances` (n, g) may have.

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

    `chances` (n, g) are of all documents that count; one whose label is given has a row with a single 1. `attention`
    (n,) is what each gets in the ranking, `relevant` (n,) what it counts for in the target: `share` times the shares of
    the relevant documents, plus 1 - `share` times the fixed `target` (g,), which is taken alone where nothing relevant
    is drawn. As many draws lie below the interval as above it, but where they crowd at 1: it then ends as the shortest
    one does. Raises DataError for shapes that differ, and where nothing gets attention.

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
    # The shortest interval that holds so many of the draws (Chen & Shao 1999), of several the highest.
    ordered, inside = np.sort(values), max(1, math.ceil(LEVEL * draws - 1e-9))
    widths = ordered[inside - 1 :] - ordered[: draws - inside + 1]
    end = float(ordered[len(widths) - 1 - int(widths[::-1].argmin()) + inside - 1])
    return Interval(float(values.mean()), low, max(high, end))


def calibration_error(chances: FloatArray, groups: Sequence[int], bins: int = BINS) -> float:
    """The expected calibration error of the likeliest label, in [0, 1]: 0 where 70 % sure is right 7 times of 10.

    `chances` (n, g) are of documents whose true `groups` (n,) are 0 .. g - 1, sorted into `bins` of equal width by the
    chance of their likeliest label (Naeini et al., AAAI 2015). Raises DataError for no documents.

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
