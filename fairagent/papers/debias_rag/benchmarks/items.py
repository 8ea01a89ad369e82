"""StereoSet, CrowS-Pairs and the tests of SEAT: reading them (JSON lines), and the numbers of a whole benchmark.

evaluations/stereotypes/convert.py makes these files of those that the benchmarks' authors publish.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fairagent.collection.records import Record, shown
from fairagent.errors import DataError
from fairagent.papers.debias_rag.benchmarks.measures import DECIMALS, crows_pairs_score, preferences, stereoset_score
from fairagent.papers.records import read_records
from fairagent.types import FloatArray

BLANK = "BLANK"
Part = Literal["intrasentence", "intersentence"]
DIRECTIONS = ("stereo", "antistereo")
STEREOTYPE, LM_SCORE, MORE = "stereotype preferred", "LM score", "more stereotyping preferred"
OVERALL = "overall"
"""All parts together, or all bias types."""

_MARKS = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True)
class StereoSetExample:
    """A stereotype, its opposite and something unrelated, about the target term `target`; `kind` is its bias type.

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
        return self.stereotype, self.anti_stereotype, self.unrelated

    @property
    def query(self) -> str:
        """What to search for: what all its sentences have in common."""
        return " ".join(self.context.replace(BLANK, " ").split())

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.query, *self.sentences)

    def values(self, scores: FloatArray, decimals: int | None = None) -> dict[str, float]:
        """What the scores (3,) of its sentences come to: 1 where the stereotype is preferred, and the LM score."""
        score = stereoset_score(["-"], *scores[:, None])
        return {STEREOTYPE: score.ss / 100, LM_SCORE: score.lms / 100}


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence of CrowS-Pairs about a disadvantaged group, and the same about another; `kind` is its bias type.

    `stereo`: the first shows a stereotype; else it goes against one, and the second shows it.
    """

    id: str
    kind: str
    more: str
    less: str
    stereo: bool
    target = ""

    @property
    def part(self) -> str:
        return DIRECTIONS[not self.stereo]

    @property
    def sentences(self) -> tuple[str, ...]:
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
        return (self.query, *self.sentences)

    def values(self, scores: FloatArray, decimals: int | None = DECIMALS) -> dict[str, float]:
        """What the scores (2,) of its sentences come to: 1 where the more stereotyping one is preferred."""
        return {MORE: float(preferences(scores[:1], scores[1:], decimals)[0][0])}


Item = StereoSetExample | Pair


@dataclass(frozen=True, slots=True)
class TargetsAndAttributes:
    """A test of SEAT: two sets of targets of one size, two sets of attributes, and what the four are called."""

    name: str
    targets: tuple[tuple[str, ...], tuple[str, ...]]
    attributes: tuple[tuple[str, ...], tuple[str, ...]]
    categories: tuple[str, ...]


def filled_word(context: str, sentence: str) -> str:
    """What stands in `sentence` in the place of the BLANK of `context`; ValueError where that is unclear.

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


# --- the numbers of a benchmark


@dataclass(frozen=True, slots=True)
class ItemScores:
    """How a model scored an item's sentences; `kind`, `part` and `target` are those of the item.

    `decimals` is to how many places the scores of a pair are rounded before they are compared; `by_chance` as in
    `Scored`.
    """

    kind: str
    part: str
    target: str
    scores: tuple[float, ...]
    decimals: int | None = None
    by_chance: bool = False

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> ItemScores:
        """That of an outcome's record."""
        return cls(**{**record, "scores": tuple(record["scores"])})


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of the `count` items of one part and one bias type, each or both OVERALL."""

    part: str
    kind: str
    values: Mapping[str, float | None]
    count: int


def stereoset_numbers(
    items: Sequence[StereoSetExample | ItemScores], scores: Sequence[Sequence[float] | FloatArray]
) -> list[Numbers]:
    """LMS, SS and ICAT of every part and domain that there are examples of, each part's overall ones after its domains.

    `scores` are (3,) an example. Each row takes its own mean over its target terms, the overall ones too.
    """
    table, rows = np.array(scores), []
    for part in (*dict.fromkeys(item.part for item in items), OVERALL):
        for kind in (*dict.fromkeys(item.kind for item in items), OVERALL):
            chosen = [
                number
                for number, item in enumerate(items)
                if part in (item.part, OVERALL) and kind in (item.kind, OVERALL)
            ]
            if chosen:
                score = stereoset_score([items[number].target for number in chosen], *table[chosen].T)
                rows.append(Numbers(part, kind, {"LMS": score.lms, "SS": score.ss, "ICAT": score.icat}, score.count))
    return rows


def crows_pairs_numbers(
    items: Sequence[Pair | ItemScores], scores: Sequence[Sequence[float] | FloatArray], decimals: int | None
) -> list[Numbers]:
    """CP-S of all pairs, then of every bias type; `scores` are (2,) a pair, rounded to `decimals`."""
    table, rows = np.array(scores), []
    for kind in (OVERALL, *dict.fromkeys(item.kind for item in items)):
        chosen = [number for number, item in enumerate(items) if kind in (item.kind, OVERALL)]
        more, less = table[chosen].T
        score = crows_pairs_score(more, less, [items[number].part == DIRECTIONS[0] for number in chosen], decimals)
        values = {"CP-S": score.score, "CP-S stereo": score.stereotype, "CP-S antistereo": score.anti_stereotype}
        rows.append(Numbers(OVERALL, kind, values, score.count))
    return rows


# --- reading


def read_stereoset(path: Path) -> dict[str, StereoSetExample]:
    """Id (q and the line) -> example, in the order of the file; DataError with every fault.

    A line has `bias_type`, `target`, `context`, `stereotype`, `anti_stereotype` and `unrelated`; a context with BLANK
    makes an example an intrasentence one. Of a folder all files are read, and their names stand before the ids.
    """
    if not path.is_dir():
        return read_records(path, "StereoSet", _example)
    parts = {file.stem: read_stereoset(file) for file in sorted(path.glob("*.jsonl"))}
    if not parts:
        raise DataError(f"{path} is empty: StereoSet's files (*.jsonl) are expected")
    every = ((f"{stem}-{id}", one) for stem, examples in parts.items() for id, one in examples.items())
    return {id: replace(one, id=id) for id, one in every}


def read_crows_pairs(path: Path) -> dict[str, Pair]:
    """Id (q and the line) -> pair, in the order of the file; DataError with every fault.

    A line has the columns of the benchmark's CSV: `sent_more`, `sent_less`, `stereo_antistereo` and `bias_type`.
    """
    return read_records(path, "CrowS-Pairs", _pair)


def read_seat(path: Path) -> dict[str, TargetsAndAttributes]:
    """Name -> test, in the order of the file; DataError with every fault.

    A line has the test's name as `test`, and `targ1`, `targ2`, `attr1` and `attr2`, each with `category` and
    `examples`.
    """
    return read_records(path, "SEAT", _test)


def _example(id: str, record: Record) -> tuple[str, StereoSetExample]:
    kind, target, context, *sentences = (
        _text(record, name) for name in ("bias_type", "target", "context", "stereotype", "anti_stereotype", "unrelated")
    )
    part: Part = "intrasentence" if BLANK in context else "intersentence"
    for sentence in sentences if part == "intrasentence" else ():
        filled_word(context, sentence)
    return id, StereoSetExample(id, part, kind, target, context, *sentences)


def _pair(id: str, record: Record) -> tuple[str, Pair]:
    names = ("sent_more", "sent_less", "stereo_antistereo", "bias_type")
    more, less, direction, kind = (_text(record, name) for name in names)
    if direction not in DIRECTIONS:
        raise ValueError(f"'stereo_antistereo': expected {' or '.join(DIRECTIONS)}, got {shown(direction)}")
    if more == less:
        raise ValueError(f"both sentences are the same: {shown(more)}")
    return id, Pair(id, kind, more, less, direction == DIRECTIONS[0])


def _test(id: str, record: Record) -> tuple[str, TargetsAndAttributes]:
    name, sets, categories = _text(record, "test"), [], []
    for key in ("targ1", "targ2", "attr1", "attr2"):
        group: Any = record.get(key)
        examples = group.get("examples") if isinstance(group, dict) else None
        if not isinstance(examples, list) or not examples or not all(isinstance(one, str) and one for one in examples):
            raise ValueError(f"{key!r}: expected {{category, examples: [texts]}}, got {shown(group)}")
        sets.append(tuple(examples))
        categories.append(str(group.get("category", key)))
    first, second, a, b = sets
    if len(first) != len(second):
        raise ValueError(f"targ1 and targ2 are compared one for one, and have {len(first)} and {len(second)} examples")
    return name, TargetsAndAttributes(name, (first, second), (a, b), tuple(categories))


def _text(record: Record, name: str) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{name!r}: expected a text, got {shown(value)}")
    return value
