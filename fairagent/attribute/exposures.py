"""Whom an answer gives exposure, beside whom its context gave it: does fair retrieval stay fair in what is used?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fairagent.exposure import ExposureMeter
from fairagent.measures import Discount, Uniform
from fairagent.types import Attribution

ALIKE = Uniform()


def with_exposures(
    attribution: Attribution, ids: Sequence[str], meter: ExposureMeter, discount: Discount = ALIKE
) -> Attribution:
    """`attribution` with the exposures of its documents `ids` (the context in rank order), measured by `meter`.

    `retrieved` counts every document of the context, `exposures` each by how far the answer rests on it: the expected
    exposure of a group in what is attributed. All places weigh the same, since a model reads the whole context; another
    `discount` weighs both by rank. An answer that rests on nothing gives all groups 0.
    """
    places = discount(len(ids))
    return replace(
        attribution,
        exposures=meter.weigh(ids, places * attribution.weights),
        retrieved=meter.weigh(ids, places),
    )
