"""A look at a file of records: what its columns seem to be, and the collection file that says so."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from textwrap import indent
from types import MappingProxyType
from typing import Any

import yaml

from fairagent.collection.config import RecordsFile
from fairagent.collection.forms import ROW, records
from fairagent.collection.labels import group_notes, joins
from fairagent.collection.records import Faults, checked_id, listed
from fairagent.collection.spellings import Spellings, join_spellings
from fairagent.errors import UsageError
from fairagent.settings import validate
from fairagent.settings.faults import no_such
from fairagent.types.clean import in_line

MOST_ROWS = 200_000
"""So many are looked at."""
MOST_LABELS = 30
"""A column with more different values is no group, unless it is named as one."""
MOST_VALUES = 5_000
"""Different values of a column that are counted."""
LONGEST_LABEL = 60
"""Characters."""
FEW_BAD, MOST_BAD = 20, 0.1
"""So many cells of a column of ids may be none, or that share of its rows: then these are mended."""
SEPARATORS = ("|", ";", ",")

ID = re.compile(r"(?i)(.*[_-])?(id|docid|docno|pid|uuid|key|doi|isbn|url)")
TEXTS = ("text", "body", "content", "contents", "abstract", "description", "passage")
WORD = re.compile(r"[^\W\d_]+")
NOTHING: Mapping[str, Any] = MappingProxyType({})
TITLES = ("title", "headline", "heading", "name", "subject")


@dataclass(slots=True)
class ColumnLook:
    """What the rows have in one column: how many have something there, and which values, each how often.

    `texts` is how many are text (or whole numbers), `characters` their lengths together. `values` are None where there
    are too many different ones. `bad_ids` counts the cells that are no id, or one that occurs before; `ids` are None
    where these are too many.
    """

    name: str
    filled: int = 0
    texts: int = 0
    numbers: int = 0
    characters: int = 0
    lists: bool = False
    example: str = ""
    values: Counter[str] | None = field(default_factory=Counter)
    ids: set[int] | None = field(default_factory=set)
    bad_ids: int = 0

    def add(self, value: Any) -> None:
        """Take one cell."""
        if value is None or value == [] or (isinstance(value, str) and not value.strip()):
            self._add_id("")
            return
        self.filled += 1
        parts = value if isinstance(value, list) else [value]
        self.lists = self.lists or isinstance(value, list)
        whole = all(isinstance(part, str | int) for part in parts)
        labels = [str(part).lower() if isinstance(part, bool) else str(part).strip() for part in parts]
        if not isinstance(value, list) and whole:
            self.texts += 1
            self.example = self.example or next((word for word in WORD.findall(labels[0]) if len(word) > 4), "")
            self.characters += len(labels[0])
            self.numbers += labels[0].lstrip("-").isdecimal()
        self._add_id(str(value) if whole and not isinstance(value, list) else "")
        if self.values is not None:
            self.values.update(labels if whole and all(len(one) <= 4 * LONGEST_LABEL for one in labels) else ())
            if not whole or len(self.values) > MOST_VALUES or self.characters > 4 * LONGEST_LABEL * self.filled:
                self.values = None

    def _add_id(self, id: str) -> None:
        if self.ids is None:
            return
        try:
            mark = hash(checked_id(id, "document"))
        except ValueError:
            mark = None
        if mark is None or mark in self.ids:
            self.bad_ids += 1
            if self.bad_ids > max(FEW_BAD, MOST_BAD * len(self.ids)):
                self.ids = None
        else:
            self.ids.add(mark)

    def lacking_ids(self, rows: int) -> int | None:
        """How many of so many rows have no id of their own in this column; None: too many for a column of ids."""
        if not self.ids:
            return None
        lacking = rows - len(self.ids)
        return lacking if lacking <= MOST_BAD * rows else None

    @property
    def is_text(self) -> bool:
        """Whether every cell holds some text."""
        return bool(self.texts) and self.texts == self.filled and self.numbers < self.texts

    def labels(self) -> tuple[Counter[str], str | None]:
        """The labels, the commonest first, and what seems to stand between several in one cell."""
        values = self.values or Counter()
        for sign in () if self.lists else SEPARATORS:
            if any(sign in value for value in values):
                split: Counter[str] = Counter()
                for value, count in values.items():
                    for label in dict.fromkeys(part.strip() for part in value.split(sign)):
                        split[label] += count if label else 0
                split = +split
                if len(_joined(split)) <= len(_joined(values)):
                    return split, sign
        return values, None

    def spellings(self) -> Spellings:
        """Which labels are spellings of others, and which say that there is none."""
        return join_spellings(self.labels()[0])

    def groups(self) -> Counter[str]:
        """The labels, their spellings joined, the commonest first; "" counts what says that there is none."""
        return _joined(self.labels()[0])

    def unlabeled(self) -> int:
        """How many cells say nothing but that there is no label; of lists 0, as that is not known."""
        _, separator = self.labels()
        map, cells = self.spellings().map, Counter[str]() if self.lists else self.values or Counter[str]()
        split = {cell: [one.strip() for one in cell.split(separator)] if separator else [cell] for cell in cells}
        return sum(cells[cell] for cell, parts in split.items() if not any(map.get(part, part) for part in parts))

    def could_be_group(self) -> bool:
        """Whether the values look like labels: few, short, each more than once, and no measurements."""
        labels = [label for label in self.groups() if label]
        few = 2 <= len(labels) <= MOST_LABELS and 2 * len(labels) <= self.filled
        short = all(len(label) <= LONGEST_LABEL for label in labels)
        return few and short and (self.numbers < self.filled or len(labels) == 2)


@dataclass(frozen=True, slots=True)
class Look:
    """What a file seems to hold: `rows` that were looked at (`whole`: all there are), and which column is what.

    `id` is `@row` where no column has ids; `bad_ids` is how many of the rows have none of their own in it. `groups` are
    the columns, each a dimension. `words` is a query for which there is something to be found.
    """

    path: Path
    format: str | None
    rows: int
    whole: bool
    columns: Mapping[str, ColumnLook]
    id: str
    text: tuple[str, ...]
    title: str | None
    groups: tuple[str, ...]
    bad_ids: int = 0
    words: str = ""

    @property
    def name(self) -> str:
        """What the collection is called, after its file."""
        return re.sub(r"[^\w.-]+", "-", self.path.name.split(".")[0]).strip("-.")[:60] or "collection"

    def file(self, output: Path, target: Any = None, more: Mapping[str, Any] = NOTHING) -> str:
        """The collection file, to be written to `output`; without a `target` its line is one to be filled in.

        `more` are further keys of it: topics and judgments.
        """
        path = os.path.relpath(self.path, output.parent)
        form = {"format": self.format} if self.format else {}
        text = self.text[0] if len(self.text) == 1 else list(self.text)
        title = {"title": self.title} if self.title else {}
        content: dict[str, Any] = {
            "name": self.name,
            "documents": {"path": path, **form, "id": self.id, **title, "text": text},
            **more,
        }
        if self.groups:
            dimensions: dict[str, dict[str, str]] = {name: {} for name in self.groups}
            for number, name in enumerate(self.groups):
                if separator := self.columns[name].labels()[1]:
                    dimensions[name]["separator"] = separator
                if self.columns[name].spellings().map:
                    # The placeholder stands there until the map is written, with comments, by `_map`.
                    dimensions[name]["map"] = f"map-{number}"
            content["groups"] = {"path": path, **form, "id": self.id, "dimensions": dimensions}
        rows = f"{self.rows:,} rows" if self.whole else f"the first {self.rows:,} rows"
        head = [
            f"# Proposed by `fairagent init` from {rows} of {in_line(self.path.name)}; see docs/your_data.md.",
            *(f"# {in_line(name)}: {in_line(self.labels_of(name))}" for name in self.groups),
        ]
        written = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=110)
        for number, name in enumerate(self.groups):
            written = written.replace(f"      map: map-{number}\n", self._map(name))
        return "\n".join(head) + "\n" + written + self._choices(target)

    def _choices(self, target: Any) -> str:
        """What the target can be, with the groups' shares of the rows, and its line."""
        if not self.groups:
            return ""
        lines = [
            "# The target is the share of exposure that each group should get. It can be",
            "#   uniform    the same for every group",
            "#   corpus     its share of the documents",
            "#   estimated  its share of the engine's own list for each query, and so the engine's bias with it",
            f"#   your own   {{{in_line(self.groups[0])}: {{GROUP: 0.5, ...}}}}, which add up to 1 in each dimension",
        ]
        for name in self.groups:
            counts = self.columns[name].groups()
            del counts[""]
            total = max(1, sum(counts.values()))
            shares = listed([f"{label} {count / total:.1%}" for label, count in counts.most_common()], 12)
            lines.append(in_line(f"# {name}: uniform {1 / max(1, len(counts)):.1%} each; corpus {shares}"))
        if target is None:
            lines += ["# Without one the first search asks. Choose, and take away the #:", "#target: uniform"]
        written = "" if target is None else yaml.safe_dump({"target": target}, sort_keys=False, allow_unicode=True)
        return "".join(f"{line}\n" for line in lines) + written

    def labels_of(self, column: str) -> str:
        """The labels of a column with their numbers of rows, spellings joined."""
        look = self.columns[column]
        groups = look.groups()
        unknown = self.rows - look.filled + look.unlabeled()
        known = [f"{label} {count:,}" for label, count in groups.most_common() if label]
        return listed(known + ([f"(unknown) {unknown:,}"] if unknown else []), 12)

    def notes(self) -> list[str]:
        """What to know of the groups before exposure is measured by them, and which spellings were joined."""
        notes = []
        for name in self.groups:
            spellings, groups = self.columns[name].spellings(), self.columns[name].groups()
            if spellings.map:
                alike = f"spellings of {name!r} that look like the same label are joined by `map`, to be confirmed"
                notes.append(f"{alike}: {joins(spellings.map)}")
            notes += [f"{name!r}: {doubt}" for doubt in spellings.doubts]
            del groups[""]
            notes += group_notes(name, groups)
        return notes

    def _map(self, column: str) -> str:
        """The lines of a column's `map`, each with its number of rows, for which YAML's writer has no place."""
        counts, spellings = self.columns[column].labels()[0], self.columns[column].spellings()
        lines = ["map:  # to be confirmed: value -> its label ([]: none), with the number of rows"]
        lines += [f"# {in_line(doubt)}" for doubt in spellings.doubts]
        for value, labels in spellings.map.items():
            entry = {value: labels[0] if labels else []}
            pair = yaml.safe_dump(entry, default_flow_style=False, allow_unicode=True, width=10**6).rstrip("\n")
            lines.append(indent(f"{pair}  # {counts[value]:,}", "  "))
        return indent("\n".join(lines), "      ") + "\n"


def _joined(labels: Counter[str]) -> Counter[str]:
    """The labels with their spellings joined; "" counts what says that there is none."""
    map, groups = join_spellings(labels).map, Counter[str]()
    for value, count in labels.items():
        groups[next(iter(map.get(value, (value,))), "")] += count
    return groups


def look_at(
    path: Path,
    format: str | None = None,
    id: str | None = None,
    text: Sequence[str] = (),
    title: str | None = None,
    groups: Sequence[str] = (),
) -> Look:
    """Look at the rows of a file; what is named is taken, the rest is inferred from names and values.

    Raises DataError for what is wrong in the file, with its line; UsageError for an unknown column, or where none holds
    text.
    """
    faults, columns, rows = Faults(), dict[str, ColumnLook](), 0
    read = records(path, validate(RecordsFile, {"format": format}, "init"), faults)
    for _, record in islice(read, MOST_ROWS):
        rows += 1
        for name, value in record.items():
            columns.setdefault(name, ColumnLook(name)).add(value)
    whole = next(read, None) is None
    if not rows and not faults:
        faults.add(path, None, "there are no rows")
    faults.check(f"{path}")
    named = [name for name in (id, *text, title, *groups) if name and name != ROW]
    if missing := [name for name in named if name not in columns]:
        raise UsageError(f"{path}: {no_such('column', missing[0], columns)}")
    lacking = {name: one.lacking_ids(rows) for name, one in columns.items()}
    named_so = {name: match for name in columns if (match := ID.fullmatch(name)) and lacking[name] is not None}
    # `user_id` may well be of somebody else: where some lack, it is no column of ids.
    likely = [name for name, match in named_so.items() if not (match[1] and lacking[name])]
    chosen = id or min(likely, key=lambda name: lacking[name] or 0, default=ROW)
    for name in groups:
        if columns[name].values and not any(columns[name].groups()):
            there = listed([f"{value!r} ({count:,})" for value, count in columns[name].labels()[0].most_common()])
            raise UsageError(f"{path}: the column {name!r} holds no label, only {there}; name another with --group")
    texts = tuple(text)
    if not texts:
        # The column that is named as texts are, or else the one with the longest.
        long = {name: one for name, one in columns.items() if one.is_text and name not in {chosen, title, *groups}}
        typical = next((name for known in TEXTS for name in long if name.lower() == known), None)
        longest = max(long, key=lambda name: long[name].characters / long[name].filled, default=None)
        texts = tuple(name for name in (typical or longest,) if name)
    if not texts:
        raise UsageError(f"{path}: no column holds text; there are: {listed(list(columns))}; name one with --text")
    free = [one for name, one in columns.items() if name not in {chosen, *texts}]
    if title is None:
        plain = {one.name.lower(): one.name for one in free if one.is_text and one.name not in groups}
        title = next((plain[name] for name in TITLES if name in plain), None)
    proposed = tuple(groups) or tuple(one.name for one in free if one.name != title and one.could_be_group())
    bad = lacking.get(chosen) or 0
    words = columns[title or texts[0]].example or columns[texts[0]].example
    return Look(path, format, rows, whole, columns, chosen, texts, title, proposed, bad, words)
