"""A whole benchmark: the numbers of its items by part and by domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairagent.evaluate.kinds.stereotypes.items import Example, Pair
from fairagent.measures.stereotypes import (
    CrowsPairsScore,
    StereoSetScore,
    crows_pairs_score,
    stereoset_score,
)
from fairagent.types import FloatArray

OVERALL = "overall"
"""All parts together, or all domains."""


@dataclass(frozen=True, slots=True)
class StereoSetRow:
    """StereoSet's numbers of one part (intrasentence, intersentence, overall) and one domain (or overall)."""

    part: str
    domain: str
    score: StereoSetScore


@dataclass(frozen=True, slots=True)
class CrowsPairsRow:
    """CrowS-Pairs' numbers of one bias type, or overall."""

    kind: str
    score: CrowsPairsScore


def stereoset_rows(examples: Sequence[Example], scores: Sequence[FloatArray]) -> list[StereoSetRow]:
    """The numbers of every part and domain that there are examples of, each part's overall ones after its domains.

    `scores` are (3,) an example. Each row takes its own mean over its target terms, the overall ones too, so that it is
    no mean of the others. The original's list of a domain holds every example three times; `count` here is that of the
    examples.
    """
    table = np.array(scores)
    rows = []
    for part in (*dict.fromkeys(example.part for example in examples), OVERALL):
        for domain in (*dict.fromkeys(example.kind for example in examples), OVERALL):
            chosen = [
                number
                for number, example in enumerate(examples)
                if part in (example.part, OVERALL) and domain in (example.kind, OVERALL)
            ]
            if chosen:
                terms = [examples[number].target for number in chosen]
                rows.append(StereoSetRow(part, domain, stereoset_score(terms, *table[chosen].T)))
    return rows


def crows_pairs_rows(pairs: Sequence[Pair], scores: Sequence[FloatArray], decimals: int | None) -> list[CrowsPairsRow]:
    """The numbers of all pairs, then of every bias type; `scores` are (2,) a pair, rounded to `decimals`."""
    table = np.array(scores)
    rows = []
    for kind in (OVERALL, *dict.fromkeys(pair.kind for pair in pairs)):
        chosen = [number for number, pair in enumerate(pairs) if kind in (pair.kind, OVERALL)]
        stereo = [pairs[number].stereo for number in chosen]
        more, less = table[chosen].T
        rows.append(CrowsPairsRow(kind, crows_pairs_score(more, less, stereo, decimals)))
    return rows
