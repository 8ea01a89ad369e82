"""The sections `fair_rag:` and `lamp:` of an experiment file, how a row's rankings are drawn, and a topic's values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from fairagent.evaluate.kind import FileSection, Name
from fairagent.measures import LOG2_PLUS1, expected_exposure, item_exposure
from fairagent.measures.answers import (
    Normalization,
    attributed_exposure,
    expected_attribution_rate,
    normalized_attributed_disparity,
)
from fairagent.retrieve.stochastic import checked_alpha, sample_rankings, sampler_log_scores, topic_rng
from fairagent.settings import Section
from fairagent.types import FloatArray, Ranking


def oracle_log_scores(useful: ArrayLike, alpha: float) -> FloatArray:
    """The ln z of each item (n,) under an oracle that knows which are `useful`: z is 10^alpha, or 0^alpha for the rest.

    >>> oracle_log_scores([True, False], alpha=2).round(3).tolist()
    [4.605, -inf]
    """
    checked_alpha(alpha)
    helps = np.asarray(useful, dtype=bool)
    return np.where(helps, alpha * np.log(10), -np.inf) if alpha else np.zeros(len(helps))


HIGHEST = "highest utility"
"""The best utility of a row's draws: what EU is normalized by, and no measure."""
NORMALIZED = "normalized EU"


class Drawing(Section):
    """The section `fair_rag:`, as both kinds have it."""

    k: int = Field(5, ge=1)
    """How many items a generator is given: the machine user reads them all and nothing else."""
    samples: int = Field(100, ge=1)
    """Rankings that are drawn for a query."""
    runs: int = Field(1, ge=1)
    """How often they are drawn anew, each time with other random numbers: every run has rows of its own."""
    medians: dict[Name, tuple[str, ...]] = Field(default={}, examples=[{"BM25": ["BM25+small", "BM25+large"]}])
    """Name -> systems whose curves it is the median of, over all of their runs: slope, AUC, normalized EU and its
    difference in each interval of disparity. `expected` may name it."""
    queries: int = Field(0, ge=0)
    """How many queries the page shows one by one, utility against disparity; topics.csv has all of them."""
    alphas: tuple[float, ...] = Field((1.0, 2.0, 4.0, 8.0), min_length=1)
    """How close to the engine's order they are: 0 is uniform, 8 almost that order."""
    deterministic: bool = True
    """Whether each system has a row for its own order, as well as for its draws."""
    oracle: float | None = Field(8.0, ge=0)
    """alpha of the rankings that are drawn by usefulness itself, for each generator; null: none."""
    normalization: Normalization = "conditional"
    """What attributed disparity is measured against (`fairagent.measures.answers`)."""
    highest: Literal["all", "same-retriever"] = "all"
    """Whose best utility EU is divided by: all rows' with the same generator (the paper), or those of the same system
    and the oracle (the authors' code)."""
    compat: Literal["authors"] | None = None
    """authors: scores and exposures are normalized as in their code."""


class CollectionDrawing(Drawing):
    """The section `fair_rag:` of an experiment on a collection."""

    pool: int = Field(100, ge=1)
    """How many documents of the collection a ranking is drawn from."""
    grades: dict[int, int] = Field(default={})
    """Grades of the judgments -> what they mean here, where a higher one is not better; the others stay. Above 0 is
    useful."""
    enough: Literal["all", "one"] = "all"
    """What an answer is worth: the share of the useful documents that it rests on (of k at most), or 1 where it rests
    on any: where each of them is a valid answer, one is enough."""


class LampFiles(FileSection):
    """The section `lamp:`: questions in LaMP's format, each of which has items of its own."""

    paths: ClassVar[tuple[str, ...]] = ("questions", "outputs", "labels")

    task: Literal["LaMP-1", "LaMP-2", "LaMP-3", "LaMP-4", "LaMP-5", "LaMP-6", "LaMP-7"]
    """Which of LaMP's tasks."""
    questions: str = Field(min_length=1)
    """The file of the questions with their items, relative to this file."""
    outputs: str = Field(min_length=1)
    """The file of the right outputs."""
    labels: str = "labels"
    """The folder of the items' utility labels, which `fairagent labels FILE` makes: a file a generator."""


class Draws(Section):
    """How the rankings of one row are drawn: from `system`, by `alpha` (None: its own order, once).

    Where `oracle`, by usefulness. Runs are counted from 0; a system's own order is that of all of them.
    """

    system: str
    alpha: float | None
    oracle: bool = False
    run: int = 0


DISCOUNT = LOG2_PLUS1


@dataclass(frozen=True, slots=True, eq=False)
class TopicDraws:
    """The rankings of one topic: `rankings` (N, k') hold indices of its n items, of which `useful` (n,) are.

    `utilities` (N,) are what the answers to them are worth, `rested_on` (N, k') says how far each rests on each item,
    None where answers are not attributed.
    """

    rankings: NDArray[np.intp]
    useful: NDArray[np.bool_]
    utilities: FloatArray
    rested_on: FloatArray | None

    @property
    def exposure(self) -> FloatArray:
        """How often each item is among the first k', (n,)."""
        return item_exposure(self.rankings, len(self.useful))

    @property
    def attributed(self) -> FloatArray:
        """How often an answer rests on each item, (n,); 0 where nothing was retrieved."""
        if self.rested_on is None or not self.rested_on.size:
            return np.zeros(len(self.useful))
        return attributed_exposure(self.rankings, self.rested_on, len(self.useful))


def values(drawn: TopicDraws, section: Drawing) -> dict[str, float]:
    """Measure -> value, all but the normalized EU, which takes the other rows.

    Where fewer items are retrieved than a ranking has places, each place that is left over shows a blank, an item of
    no use that is always there: a short list is no fairer for that, and no better.
    """
    exposure, due, k = drawn.exposure, drawn.useful, section.k
    places = min(k, len(due))
    if (width := drawn.rankings.shape[1]) < places:
        # As many blanks as places, so that a list of blanks is the worst there is.
        exposure = np.concatenate([exposure, np.arange(places) < places - width])
        due, k = np.concatenate([due, np.zeros(places, dtype=np.bool_)]), places
    expected = expected_exposure(exposure, due, k, section.compat)
    measured = {
        "nDCG": expected_ndcg(drawn.rankings, drawn.useful, section.k),
        "EE-R": expected.relevance.normalized,
        "EE-D": expected.disparity.normalized,
        "EE-L": expected.difference.normalized,
        "EU": float(drawn.utilities.mean()),
        HIGHEST: float(drawn.utilities.max()),
    }
    if drawn.rested_on is not None:
        some, attributed = drawn.rested_on.size, drawn.attributed
        disparity = normalized_attributed_disparity(attributed, section.k, section.normalization) if some else 0.0
        measured |= {"EAR": expected_attribution_rate(drawn.rested_on) if some else 0.0, "EAE-D": disparity}
    return measured


def expected_ndcg(rankings: NDArray[np.intp], useful: NDArray[np.bool_], k: int) -> float:
    """The mean binary nDCG@k (discount 1 / log2(rank + 1)) of `rankings` (N, k'); 0 where nothing is useful.

    >>> expected_ndcg(np.array([[0, 1], [1, 0]]), np.array([True, False]), k=2).__round__(4)
    0.8155
    """
    best = DISCOUNT(min(k, int(useful.sum()))).sum()
    # The ideal ranking is the same for all draws, so that the mean of their gains is enough.
    return float(useful[rankings].mean(axis=0) @ DISCOUNT(rankings.shape[1]) / best) if best else 0.0


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
