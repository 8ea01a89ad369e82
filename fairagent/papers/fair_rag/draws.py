"""From the draws of one topic to its values: pure arithmetic on what was drawn, what is useful and what was used."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairagent.evaluate.kinds.fair_rag.section import HIGHEST, Drawing
from fairagent.measures import Log2Plus1
from fairagent.measures.attribution import (
    attributed_exposure,
    expected_attribution_rate,
    normalized_attributed_disparity,
)
from fairagent.measures.expected_exposure import expected_exposure, item_exposure
from fairagent.types import FloatArray

DISCOUNT = Log2Plus1()


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """The rankings of one topic: `rankings` (N, k') hold indices of its n items, of which `useful` (n,) are.

    `utilities` (N,) are what the answers to them are worth, `rested_on` (N, k') says how far each rests on each item,
    None where nobody has asked.
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


def values(drawn: Drawn, section: Drawing) -> dict[str, float]:
    """Measure -> value, all but the normalized EU, which takes the other rows.

    Where fewer items were found than a ranking has places, each place that is left over shows a blank, an item of no
    use that is always there: a short list is no fairer for that, and no better.
    """
    utility = {"EU": float(drawn.utilities.mean()), HIGHEST: float(drawn.utilities.max())}
    exposure, useful, k = drawn.exposure, drawn.useful, section.k
    places = min(k, len(useful))
    if (width := drawn.rankings.shape[1]) < places:
        # As many blanks as places, so that a list of blanks is the worst there is.
        exposure = np.concatenate([exposure, np.arange(places) < places - width])
        useful, k = np.concatenate([useful, np.zeros(places, dtype=bool)]), places
    expected = expected_exposure(exposure, useful, k, section.compat)
    return {
        "nDCG": expected_ndcg(drawn.rankings, drawn.useful, section.k),
        "EE-R": expected.relevance.normalized,
        "EE-D": expected.disparity.normalized,
        "EE-L": expected.difference.normalized,
        **utility,
        **_attribution(drawn, section),
    }


def _attribution(drawn: Drawn, section: Drawing) -> dict[str, float]:
    if drawn.rested_on is None:
        return {}
    if not drawn.rested_on.size:
        return {"EAR": 0.0, "EAE-D": 0.0}
    return {
        "EAR": expected_attribution_rate(drawn.rested_on),
        "EAE-D": normalized_attributed_disparity(drawn.attributed, section.k, section.normalization),
    }


def expected_ndcg(rankings: NDArray[np.intp], useful: NDArray[np.bool_], k: int) -> float:
    """The mean binary nDCG@k (discount 1 / log2(rank + 1)) of `rankings` (N, k'); 0 where nothing is useful.

    >>> expected_ndcg(np.array([[0, 1], [1, 0]]), np.array([True, False]), k=2).__round__(4)
    0.8155
    """
    best = DISCOUNT(min(k, int(useful.sum()))).sum()
    # The ideal ranking is the same for all draws, so that the mean of their gains is enough.
    return float(useful[rankings].mean(axis=0) @ DISCOUNT(rankings.shape[1]) / best) if best else 0.0
