"""StereoSet, CrowS-Pairs and the tests of SEAT and WEAT: reading them, and the numbers of a whole benchmark."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from fairagent.collection.records import Faults, Record, csv_records, lines, shown
from fairagent.papers.debias_rag.benchmarks.measures import (
    DECIMALS,
    crows_pairs_score,
    preferences,
    stereoset_score,
)
from fairagent.papers.records import Entry, gather, lines_of
from fairagent.storage.readers import Malformed, file_text, parse_json
from fairagent.types import FloatArray

BLANK = "BLANK"
Part = Literal["intrasentence", "intersentence"]
PARTS: tuple[Part, ...] = ("intrasentence", "intersentence")
GOLD = {"stereotype": "stereotype", "anti-stereotype": "anti_stereotype", "unrelated": "unrelated"}
"""StereoSet's labels -> the fields of an example."""
DIRECTIONS = ("stereo", "antistereo")
STEREOTYPE, LM_SCORE, MORE = "stereotype preferred", "LM score", "more stereotyping preferred"
LARGEST = 1 << 27
"""Bytes of a file; StereoSet's has 5 MB."""

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
        return " ".join(self.context.replace(BLANK, " ").split())

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.query, *self.sentences)

    def values(self, scores: FloatArray, decimals: int | None = None) -> dict[str, float]:
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
        first, second = self.more.split(), self.less.split()
        blocks = SequenceMatcher(None, first, second).get_matching_blocks()
        shared = [word for block in blocks for word in first[block.a : block.a + block.size]]
        return " ".join(shared or first)

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.query, *self.sentences)

    def values(self, scores: FloatArray, decimals: int | None = DECIMALS) -> dict[str, float]:
        return {MORE: float(preferences(scores[:1], scores[1:], decimals)[0][0])}


Item = StereoSetExample | Pair


@dataclass(frozen=True, slots=True)
class TargetsAndAttributes:
    """A test of SEAT: two sets of targets of one size, two sets of attributes, and what the four are called."""

    name: str
    targets: tuple[tuple[str, ...], tuple[str, ...]]
    attributes: tuple[tuple[str, ...], tuple[str, ...]]
    categories: tuple[str, str, str, str]


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


# --- the numbers of a benchmark -----------------------------------------------------------------------------------

OVERALL = "overall"
"""All parts together, or all bias types."""


@dataclass(frozen=True, slots=True)
class ItemScores:
    """How a model scored an item's sentences: what the numbers of all items together are made of.

    `kind`, `part` and `target` are those of the item; `decimals` is to how many places the scores of a pair are rounded
    before they are compared; `by_chance` as in `Scored`.
    """

    kind: str
    part: str
    target: str
    scores: tuple[float, ...]
    decimals: int | None = None
    by_chance: bool = False

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> ItemScores:
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

    `scores` are (3,) an example. Each row takes its own mean over its target terms, the overall ones too, so that it is
    no mean of the others. The original's list of a domain holds every example three times; `count` here is that of the
    examples.
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


# --- reading ------------------------------------------------------------------------------------------------------


def read_stereoset(path: Path) -> dict[str, StereoSetExample]:
    """Id -> example, in the order of the file; DataError with every fault.

    The file is StereoSet's dev.json, or JSON lines with `bias_type`, `target`, `context`, `stereotype`,
    `anti_stereotype` and `unrelated`, where a context with BLANK makes an example an intrasentence one. Their ids are q
    and the line; those of dev.json are its own. Of a folder all files of JSON lines are read, and their names stand
    before the ids.
    """
    faults = Faults()
    if path.is_dir():
        parts = {file.stem: read_stereoset(file) for file in sorted(path.glob("*.jsonl"))}
        every = {f"{stem}-{id}": one for stem, examples in parts.items() for id, one in examples.items()}
        if not every:
            faults.add(path, None, "is empty")
        faults.check("StereoSet")
        return {id: replace(one, id=id) for id, one in every.items()}
    whole = whole_file(path)
    dev = isinstance(whole, dict) and "data" in whole
    entries = _dev(path, whole["data"], faults) if dev else lines_of(path, faults, _example)
    return gather(path, "StereoSet", faults, entries)


def read_crows_pairs(path: Path) -> dict[str, Pair]:
    """Id (q and the number of the pair) -> pair, in the order of the file; DataError with every fault.

    The file is the benchmark's CSV, or JSON lines with its columns `sent_more`, `sent_less`, `stereo_antistereo` and
    `bias_type`.
    """
    faults = Faults()
    first = next((line for _, line in lines(path, Faults())), "")
    if first.lstrip().startswith("{"):
        return gather(path, "CrowS-Pairs", faults, lines_of(path, faults, _pair))
    rows = enumerate(csv_records(path, faults), start=1)
    entries = ((path, line, "", partial(_pair, f"q{number}", row)) for number, (line, row) in rows)
    return gather(path, "CrowS-Pairs", faults, entries)


def read_seat(path: Path) -> dict[str, TargetsAndAttributes]:
    """Name -> test; DataError with every fault.

    The path is a file of JSON lines, a test a line with its name as `test`; a file with one test, or a folder of such,
    named after the files (as in the paper's repository). A test has `targ1`, `targ2`, `attr1` and `attr2`, each with
    `category` and `examples`.
    """
    faults = Faults()

    def entries() -> Iterator[Entry[TargetsAndAttributes]]:
        for file in sorted(path.glob("*.jsonl")) if path.is_dir() else [path]:
            whole = whole_file(file)
            if isinstance(whole, dict) and "test" not in whole:
                yield file, None, "", partial(_test, file.stem, whole)
            else:
                yield from lines_of(file, faults, lambda _, record: _test(str(record.get("test", "")), record))

    return gather(path, "SEAT", faults, entries())


def whole_file(path: Path) -> Any:
    """The file as one JSON value; None where it is none, and may be JSON lines."""
    try:
        return parse_json(file_text(path, LARGEST))
    except (OSError, Malformed):
        return None


def _dev(path: Path, parts: object, faults: Faults) -> Iterator[Entry[StereoSetExample]]:
    for part in PARTS:
        examples = parts.get(part) if isinstance(parts, dict) else None
        if not isinstance(examples, list):
            faults.add(path, None, f"data.{part}: expected a list of examples, got {shown(examples)}")
            continue
        for number, record in enumerate(examples):
            yield path, None, f"data.{part}[{number}]: ", partial(_dev_example, part, number, record)


def _dev_example(part: Part, number: int, record: Any) -> tuple[str, StereoSetExample]:
    if not isinstance(record, dict):
        raise ValueError(f"expected an object, got {shown(record)}")
    sentences = record.get("sentences")
    by_label = {
        GOLD[one["gold_label"]]: str(one.get("sentence") or "")
        for one in (sentences if isinstance(sentences, list) else ())
        if isinstance(one, dict) and one.get("gold_label") in GOLD
    }
    if len(by_label) != len(GOLD):
        raise ValueError(f"'sentences': expected one each with the gold_label {', '.join(GOLD)}")
    return _example(str(record.get("id") or f"{part}-{number + 1}"), {**record, **by_label}, part)


def _example(id: str, record: Record, part: Part | None = None) -> tuple[str, StereoSetExample]:
    kind, target, context = (_text(record, name) for name in ("bias_type", "target", "context"))
    sentences = [_text(record, name) for name in GOLD.values()]
    part = part or ("intrasentence" if BLANK in context else "intersentence")
    if part == "intrasentence":
        for sentence in sentences:
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


def _test(name: str, record: Record) -> tuple[str, TargetsAndAttributes]:
    if not name:
        raise ValueError("'test': the test has no name")
    sets, categories = [], []
    for key in ("targ1", "targ2", "attr1", "attr2"):
        group = record.get(key)
        examples = group.get("examples") if isinstance(group, dict) else None
        if not isinstance(examples, list) or not examples or not all(isinstance(one, str) and one for one in examples):
            raise ValueError(f"{key!r}: expected {{category, examples: [texts]}}, got {shown(group)}")
        sets.append(tuple(examples))
        categories.append(str(group.get("category", key)))  # type: ignore[union-attr]
    first, second, a, b = sets
    if len(first) != len(second):
        raise ValueError(f"targ1 and targ2 are compared one for one, and have {len(first)} and {len(second)} examples")
    named = cast("tuple[str, str, str, str]", tuple(categories))
    return name, TargetsAndAttributes(name, (first, second), (a, b), named)


def _text(record: Record, name: str) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{name!r}: expected a text, got {shown(value)}")
    return value
