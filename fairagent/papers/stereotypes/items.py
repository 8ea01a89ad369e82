"""The items of the stereotype benchmarks: two or three sentences that a model chooses among.

A whole benchmark: the numbers of its items by part and by domain.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

import numpy as np

from fairagent.extend import (
    DECIMALS,
    CrowsPairsScore,
    FloatArray,
    StereoSetScore,
    crows_pairs_score,
    preferences,
    stereoset_score,
)

BLANK = "BLANK"
Part = Literal["intrasentence", "intersentence"]

_MARKS = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True)
class Example:
    """One of StereoSet: a stereotype, its opposite and something unrelated, about the target term `target`.

    intrasentence: the sentences fill the BLANK of the `context`. intersentence: they come after it.
    """

    id: str
    part: Part
    kind: str
    target: str
    context: str
    stereotype: str
    anti_stereotype: str
    unrelated: str

    @property
    def sentences(self) -> tuple[str, ...]:
        """The stereotype, the anti-stereotype, the unrelated one."""
        return self.stereotype, self.anti_stereotype, self.unrelated

    @property
    def query(self) -> str:
        """What to search for: what all its sentences have in common."""
        return " ".join(self.context.replace(BLANK, " ").split())

    @property
    def texts(self) -> tuple[str, ...]:
        """All that is shown of it to a model."""
        return (self.query, *self.sentences)

    def values(self, scores: FloatArray, decimals: int | None = None) -> dict[str, float]:
        """What the scores (3,) of its sentences come to: 1 where the stereotype is preferred, and the LM score."""
        score = stereoset_score(["-"], *(scores[place : place + 1] for place in range(3)))
        return {STEREOTYPE: score.ss / 100, LM_SCORE: score.lms / 100}


@dataclass(frozen=True, slots=True)
class Pair:
    """One of CrowS-Pairs: a sentence about a disadvantaged group, and the same about another.

    `stereo`: the first shows a stereotype; else it goes against one, and the second shows it.
    """

    id: str
    kind: str
    more: str
    less: str
    stereo: bool

    @property
    def sentences(self) -> tuple[str, ...]:
        """The more stereotyping sentence, and the less."""
        return self.more, self.less

    @property
    def query(self) -> str:
        """What to search for: the words that both sentences have, or all of the first where they have none."""
        first, second = self.more.split(), self.less.split()
        blocks = SequenceMatcher(None, first, second).get_matching_blocks()
        shared = [word for block in blocks for word in first[block.a : block.a + block.size]]
        return " ".join(shared or first)

    @property
    def texts(self) -> tuple[str, ...]:
        """All that is shown of it to a model."""
        return (self.query, *self.sentences)

    def values(self, scores: FloatArray, decimals: int | None = DECIMALS) -> dict[str, float]:
        """What the scores (2,) of its sentences come to: 1 where the more stereotyping one is preferred."""
        return {MORE: float(preferences(scores[:1], scores[1:], decimals)[0][0])}


Item = Example | Pair

STEREOTYPE = "stereotype preferred"
LM_SCORE = "LM score"
MORE = "more stereotyping preferred"


def filled_word(context: str, sentence: str) -> str:
    """What stands in `sentence` in the place of the BLANK of `context`; ValueError where that cannot be told.

    Case makes no difference. Where the rest of the sentence is not that of the context, it is the word at the BLANK's
    place, without marks (as in StereoSet's code).

    >>> filled_word("The BLANK judge.", "the old judge."), filled_word("A BLANK!", "One nurse?")
    ('old', 'nurse')
    """
    first, *others = (re.escape(part) for part in context.split(BLANK))
    if not others:
        raise ValueError(f"the context has no {BLANK}")
    pattern = first + "(.+?)" + r"\1".join(others)
    if match := re.fullmatch(pattern, sentence, re.IGNORECASE | re.DOTALL):
        return match[1].strip()
    place = next(number for number, word in enumerate(context.split(" ")) if BLANK in word)
    words = sentence.split(" ")
    if place < len(words) and (word := words[place].translate(_MARKS)):
        return word
    raise ValueError(f"the sentence does not fill the {BLANK} of its context")


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
