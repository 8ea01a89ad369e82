"""Reading StereoSet, CrowS-Pairs, and the tests of SEAT and WEAT."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from fairagent.extend import Faults, Malformed, Record, file_text, json_records, lines, parse_json, shown
from fairagent.papers.stereotypes.items import BLANK, Example, Pair, Part, filled_word

PARTS: tuple[Part, ...] = ("intrasentence", "intersentence")
GOLD = {"stereotype": "stereotype", "anti-stereotype": "anti_stereotype", "unrelated": "unrelated"}
"""StereoSet's labels -> the fields of an example."""
LARGEST = 1 << 27
"""Bytes of a file; StereoSet's has 5 MB."""
DIRECTIONS = {"stereo": True, "antistereo": False}

T = TypeVar("T")


def read_stereoset(path: Path) -> dict[str, Example]:
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


def _dev(path: Path, data: object, faults: Faults) -> Iterator[tuple[str, Example]]:
    found: dict[str, Example] = {}
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


def _dev_example(part: Part, id: str, record: Record) -> Example:
    sentences = record.get("sentences")
    by_label: dict[str, str] = {}
    for sentence in sentences if isinstance(sentences, list) else ():
        if isinstance(sentence, dict) and sentence.get("gold_label") in GOLD:
            by_label[GOLD[sentence["gold_label"]]] = str(sentence.get("sentence") or "")
    if len(by_label) != len(GOLD):
        raise ValueError(f"'sentences': expected one each with the gold_label {', '.join(GOLD)}")
    return _example(id, {**record, **by_label}, part)


def _example(id: str, record: Record, part: Part | None = None) -> Example:
    names = ("bias_type", "target", "context", "stereotype", "anti_stereotype", "unrelated")
    kind, target, context, *sentences = (_text(record, name) for name in names)
    blank = BLANK in context
    if part is None:
        part = "intrasentence" if blank else "intersentence"
    if part == "intrasentence":
        for sentence in sentences:
            filled_word(context, sentence)
    return Example(id, part, kind, target, context, *sentences)


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
