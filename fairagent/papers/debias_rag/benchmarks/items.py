"""The items of the stereotype benchmarks: two or three sentences that a model chooses among.

A whole benchmark: the numbers of its items by part and by domain.

Reading StereoSet, CrowS-Pairs, and the tests of SEAT and WEAT.
"""

from __future__ import annotations

import csv
import io
import re
import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import numpy as np

from fairagent.extend import Faults, FloatArray, Malformed, Record, file_text, json_records, lines, parse_json, shown
from fairagent.papers.debias_rag.benchmarks.measures import (
    DECIMALS,
    CrowsPairsScore,
    StereoSetScore,
    crows_pairs_score,
    preferences,
    stereoset_score,
)

BLANK = "BLANK"
Part = Literal["intrasentence", "intersentence"]

_MARKS = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True)
class StereoSetExample:
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


Item = StereoSetExample | Pair

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


def stereoset_rows(examples: Sequence[StereoSetExample], scores: Sequence[FloatArray]) -> list[StereoSetRow]:
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


PARTS: tuple[Part, ...] = ("intrasentence", "intersentence")
GOLD = {"stereotype": "stereotype", "anti-stereotype": "anti_stereotype", "unrelated": "unrelated"}
"""StereoSet's labels -> the fields of an example."""
LARGEST = 1 << 27
"""Bytes of a file; StereoSet's has 5 MB."""
DIRECTIONS = {"stereo": True, "antistereo": False}

T = TypeVar("T")


def read_stereoset(path: Path) -> dict[str, StereoSetExample]:
    """Id -> example, in the order of the file; DataError with every fault.

    The file is StereoSet's dev.json, or JSON lines with `bias_type`, `target`, `context`, `stereotype`,
    `anti_stereotype` and `unrelated`, where a context with BLANK makes an example an intrasentence one. Their ids are q
    and the line; those of dev.json are its own. Of a folder all files of JSON lines are read, and their names stand
    before the ids.
    """
    if path.is_dir():
        parts = {file.stem: read_stereoset(file) for file in sorted(path.glob("*.jsonl"))}
        every = {f"{stem}-{id}": one for stem, examples in parts.items() for id, one in examples.items()}
        return _checked({id: replace(one, id=id) for id, one in every.items()}, path, Faults(), "StereoSet")
    faults = Faults()
    whole = whole_file(path)
    if isinstance(whole, dict) and "data" in whole:
        found = dict(_dev(path, whole["data"], faults))
    else:
        found = dict(_lines(path, faults, _example))
    return _checked(found, path, faults, "StereoSet")


def read_crows_pairs(path: Path) -> dict[str, Pair]:
    """Id (q and the number of the pair) -> pair, in the order of the file; DataError with every fault.

    The file is the benchmark's CSV, or JSON lines with its columns `sent_more`, `sent_less`, `stereo_antistereo` and
    `bias_type`.
    """
    faults = Faults()
    if _begins_with_brace(path):
        return _checked(dict(_lines(path, faults, _pair)), path, faults, "CrowS-Pairs")
    text = "\n".join(line for _, line in lines(path, faults))
    pairs: dict[str, Pair] = {}
    rows = csv.DictReader(io.StringIO(text), strict=True)
    try:
        for number, row in enumerate(rows, start=1):
            _add(pairs, f"q{number}", (path, rows.line_num), faults, _pair, row)
    except csv.Error as error:
        faults.add(path, rows.line_num, f"not CSV ({error})")
    return _checked(pairs, path, faults, "CrowS-Pairs")


@dataclass(frozen=True, slots=True)
class TargetsAndAttributes:
    """One test: two sets of targets of one size, two sets of attributes, and what the four are called."""

    name: str
    targets: tuple[tuple[str, ...], tuple[str, ...]]
    attributes: tuple[tuple[str, ...], tuple[str, ...]]
    categories: tuple[str, str, str, str]


def read_seat(path: Path) -> dict[str, TargetsAndAttributes]:
    """Name -> test; DataError with every fault.

    The path is a file of JSON lines, a test a line with its name as `test`; a file with one test, or a folder of such,
    named after the files (as in the paper's repository). A test has `targ1`, `targ2`, `attr1` and `attr2`, each with
    `category` and `examples`.
    """
    faults = Faults()
    tests: dict[str, TargetsAndAttributes] = {}
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    for file in files:
        whole = whole_file(file)
        if isinstance(whole, dict) and "test" not in whole:
            _add(tests, file.stem, (file, None), faults, _test, whole)
            continue
        for number, record in json_records(file, faults):
            _add(tests, str(record.get("test", "")), (file, number), faults, _test, record)
    return _checked(tests, path, faults, "SEAT")


def whole_file(path: Path) -> Any:
    """The file as one JSON value; None where it is none, and may be JSON lines."""
    try:
        return parse_json(file_text(path, LARGEST))
    except (OSError, Malformed):
        return None


def _begins_with_brace(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(100).lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"{")
    except OSError:
        return False


def _checked(found: dict[str, T], path: Path, faults: Faults, what: str) -> dict[str, T]:
    if not found and not faults:
        faults.add(path, None, "is empty")
    faults.check(what)
    return found


def _add(
    found: dict[str, T],
    id: str,
    place: tuple[Path, int | None],
    faults: Faults,
    read: Callable[[str, Record], T],
    record: Record,
    where: str = "",
) -> None:
    """Add what is read of the record under its id; a fault where it cannot be, or the id is there already."""
    try:
        value = read(id, record)
        if id in found:
            raise ValueError(f"the id {shown(id)} occurs twice")
    except ValueError as error:
        faults.add(*place, f"{where}{error}")
        return
    found[id] = value


def _lines(path: Path, faults: Faults, read: Callable[[str, Record], T]) -> Iterator[tuple[str, T]]:
    found: dict[str, T] = {}
    for number, record in json_records(path, faults):
        _add(found, f"q{number}", (path, number), faults, read, record)
    yield from found.items()


def _dev(path: Path, data: object, faults: Faults) -> Iterator[tuple[str, StereoSetExample]]:
    found: dict[str, StereoSetExample] = {}
    for part in PARTS:
        examples = data.get(part) if isinstance(data, dict) else None
        if not isinstance(examples, list):
            faults.add(path, None, f"data.{part}: expected a list of examples, found {shown(examples)}")
            continue
        for number, record in enumerate(examples):
            where = f"data.{part}[{number}]: "
            if not isinstance(record, dict):
                faults.add(path, None, f"{where}expected an object, found {shown(record)}")
                continue
            id = str(record.get("id") or f"{part}-{number + 1}")
            _add(found, id, (path, None), faults, partial(_dev_example, part), record, where)
    yield from found.items()


def _dev_example(part: Part, id: str, record: Record) -> StereoSetExample:
    sentences = record.get("sentences")
    by_label: dict[str, str] = {}
    for sentence in sentences if isinstance(sentences, list) else ():
        if isinstance(sentence, dict) and sentence.get("gold_label") in GOLD:
            by_label[GOLD[sentence["gold_label"]]] = str(sentence.get("sentence") or "")
    if len(by_label) != len(GOLD):
        raise ValueError(f"'sentences': expected one each with the gold_label {', '.join(GOLD)}")
    return _example(id, {**record, **by_label}, part)


def _example(id: str, record: Record, part: Part | None = None) -> StereoSetExample:
    names = ("bias_type", "target", "context", "stereotype", "anti_stereotype", "unrelated")
    kind, target, context, *sentences = (_text(record, name) for name in names)
    blank = BLANK in context
    if part is None:
        part = "intrasentence" if blank else "intersentence"
    if part == "intrasentence":
        for sentence in sentences:
            filled_word(context, sentence)
    return StereoSetExample(id, part, kind, target, context, *sentences)


def _pair(id: str, record: Record) -> Pair:
    more, less, direction, kind = (
        _text(record, name) for name in ("sent_more", "sent_less", "stereo_antistereo", "bias_type")
    )
    if direction not in DIRECTIONS:
        raise ValueError(f"'stereo_antistereo': expected {' or '.join(DIRECTIONS)}, found {shown(direction)}")
    if more == less:
        raise ValueError(f"both sentences are the same: {shown(more)}")
    return Pair(id, kind, more, less, DIRECTIONS[direction])


def _test(name: str, record: Record) -> TargetsAndAttributes:
    if not name:
        raise ValueError("'test': the test has no name")
    sets, categories = [], []
    for key in ("targ1", "targ2", "attr1", "attr2"):
        group = record.get(key)
        examples = group.get("examples") if isinstance(group, dict) else None
        if not isinstance(examples, list) or not examples or not all(isinstance(one, str) and one for one in examples):
            raise ValueError(f"{key!r}: expected {{category, examples: [texts]}}, found {shown(group)}")
        sets.append(tuple(examples))
        categories.append(str(group.get("category", key)))  # type: ignore[union-attr]
    first, second, a, b = sets
    if len(first) != len(second):
        raise ValueError(f"targ1 and targ2 are compared one for one, and have {len(first)} and {len(second)} examples")
    return TargetsAndAttributes(name, (first, second), (a, b), cast(tuple[str, str, str, str], tuple(categories)))


def _text(record: Record, name: str) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{name!r}: expected a text, found {shown(value)}")
    return value
