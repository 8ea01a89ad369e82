"""What `fairagent init` sees: what a file's columns are, its encoding, topics and judgments; and what it writes."""

import codecs
import json
import os
import re
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from fairagent.collection.config import CONTENT, ROW, QrelsFile, RecordsFile, TopicsFile
from fairagent.collection.labels import Spellings, group_notes, join_spellings, joins
from fairagent.collection.qrels import has_topics, read_qrels, read_topics
from fairagent.collection.records import (
    ROW_WARNING,
    UTF8,
    Faults,
    form_of,
    lines,
    listed,
    mended_note,
    plain_id,
    plain_number,
    records,
)
from fairagent.errors import UsageError
from fairagent.settings import validate
from fairagent.settings.faults import no_such
from fairagent.storage.digests import file_digest
from fairagent.storage.files import PIPES, open_to_read
from fairagent.storage.readers import unpacked
from fairagent.types import Topic
from fairagent.types.clean import in_line

MOST_GROUPS, LEAST_GROUP = 12, 0.01
"""Of a column with more labels than these, those that fewer of the labeled rows have are joined to the rest, as are all
after the commonest. A column with fewer labels keeps them all: small groups may be what it is about."""
REST = "other"
MOST_VALUES = 5_000
"""Different values of a column that are counted."""
LONGEST_LABEL = 60
"""Characters."""
FEW_BAD, MOST_BAD, MOST_BAD_OTHERS = 20, 0.1, 0.05
"""Rows that may lack an id of their own in a column that is called `id` (or docno ...), and in one that looks like one
otherwise: what is of somebody else (user_id) is repeated in far more rows than one of twenty."""
CODE = re.compile(r"(?=\S*\d)(?=\S*[a-zA-Z.:/-])[\w.:/-]{3,40}")
"""What looks like an id anywhere: letters and digits, without blanks."""

_BEFORE = r"(?i)(.*[\W_]|(?-i:.*[a-z](?=[A-Z])))?"
ID = re.compile(_BEFORE + "(id|docid|docno|pid|uuid|key|doi|isbn|url|identifier)")
CODE_NAME = re.compile(_BEFORE + r"(no|nr|num|number|code|ref|reference|accession|inventory|barcode|handle)\W*")
"""Names of columns that may have ids, where nearly all of their cells are different."""
NUMBER = re.compile(r"[-+]?[\d.,'\s]*\d\s?(%|[cmk]?m|k?g|in|ft|°C?)?")
"""Numbers and measurements, as 1,200 or 12.5 cm."""
DATE = re.compile(
    r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([T ].*)?|\d{1,2}:\d{2}.*|(c(a|irca)?\.? ?)?\d{4}s?( ?[-\u2013] ?\d{2,4})?|"
    r"(?i:\d{1,2}\.? [a-z]{3,9}\.? \d{4}|[a-z]{3,9}\.? (\d{1,2}, )?\d{4})"
)
"""As 2024-01-31, 31.1.2024, c. 1890, 1890s, 1890-95, 31 January 2024."""
QUERIES = ("query", "title", "question", "text", "topic")
"""What the field that is searched is called in files of topics, the likeliest first."""
TEXTS = ("text", "body", "content", "contents", "abstract", "description", "passage")
TITLES = ("title", "headline", "heading", "name", "subject")


@dataclass(frozen=True, slots=True)
class LabelsLook:
    """The values of a column as labels: `counts` of rows, what stands between several, and which are spellings of one.

    `joined` counts the rows with spellings joined. `chosen` labels are groups of their own, the commonest first, `rest`
    is that of the others where there are any, and `groups` counts the rows of these. `unlabeled` cells say that there
    is none; of lists that is not known, and 0.
    """

    counts: Counter[str]
    separator: str | None
    spellings: Spellings
    joined: Counter[str]
    chosen: tuple[str, ...]
    rest: str | None
    groups: Counter[str]
    unlabeled: int


@dataclass
class ColumnLook:
    """What the rows have in one column: how many have something there, and which values, each how often.

    `texts` is how many are text (or whole numbers), `numbers` how many of them are numbers, measurements or dates,
    `characters` their lengths together. `values` are None where there are too many different ones. `lacking` counts the
    cells that have no id, or one that occurs before, `odd` those whose id has to be written otherwise; `ids` are None
    where too many lack one. `codes` is how many look like ids, whatever the column is called.
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
    lacking: int = 0
    odd: int = 0
    codes: int = 0

    def add(self, value: Any) -> None:
        empty = value is None or value == [] or (isinstance(value, str) and not value.strip())
        if self.ids is not None:
            id = "" if empty else plain_id(value)
            self.odd += bool(id) and id != str(value)
            if id and hash(id) not in self.ids:
                self.ids.add(hash(id))
            else:
                self.lacking += 1
                if self.lacking > max(FEW_BAD, MOST_BAD * len(self.ids)):
                    self.ids = None
        if empty:
            return
        self.filled += 1
        self.lists = self.lists or isinstance(value, list)
        parts = value if isinstance(value, list) else [value]
        whole = all(isinstance(part, str | int) for part in parts)
        labels = [str(part).lower() if isinstance(part, bool) else str(part).strip() for part in parts]
        if not isinstance(value, list) and whole:
            self.texts += 1
            words = re.findall(r"[^\W\d_]+", labels[0]) if not self.example else []
            self.example = self.example or next((word for word in words if len(word) > 4), "")
            self.characters += len(labels[0])
            is_number = bool(NUMBER.fullmatch(labels[0]) or DATE.fullmatch(labels[0]))
            self.numbers += is_number
            self.codes += not is_number and bool(CODE.fullmatch(labels[0]))
        if self.values is not None:
            self.values.update(labels if whole and all(len(one) <= 4 * LONGEST_LABEL for one in labels) else ())
            if not whole or len(self.values) > MOST_VALUES or self.characters > 4 * LONGEST_LABEL * self.filled:
                self.values = None

    def lacking_ids(self, rows: int) -> int | None:
        """How many of so many rows have no id of their own in this column; None where it is no column of ids."""
        if not self.ids:
            return None
        lacking, match = rows - len(self.ids), ID.fullmatch(self.name)
        most = MOST_BAD if match and not match[1] else MOST_BAD_OTHERS
        # Without a name that says so, each cell has to look like an id: numbers that all differ may be anything.
        named = match or CODE_NAME.fullmatch(self.name) or self.codes == self.filled
        return lacking if named and lacking <= most * rows else None

    @property
    def is_text(self) -> bool:
        """Whether every cell holds some text."""
        return bool(self.texts) and self.texts == self.filled and self.numbers < self.texts

    @cached_property
    def labels(self) -> LabelsLook:
        """The values as labels, once all cells were taken."""
        values = self.values or Counter[str]()
        counts, separator, spellings, joined = values, None, Spellings({}), Counter[str]()
        for sign in (None,) if self.lists else (None, "|", ";", ","):
            if sign and not any(sign in value for value in values):
                continue
            split = Counter[str]() if sign else values
            for value, count in values.items() if sign else ():
                split.update(dict.fromkeys(filter(None, map(str.strip, value.split(sign))), count))
            alike, labels = join_spellings(split), Counter[str]()
            for value, count in split.items():
                labels[next(iter(alike.map.get(value, (value,))), "")] += count
            if sign is None or len(labels) <= len(joined):
                counts, separator, spellings, joined = split, sign, alike, labels
                if sign:
                    break
        del joined[""]
        chosen, rest = [label for label, _ in joined.most_common()], None
        if len(joined) > MOST_GROUPS:
            rest = next((label for label in joined if label.casefold() == REST), REST)
            least = LEAST_GROUP * joined.total()
            chosen = [label for label in chosen if joined[label] >= least and label != rest][: MOST_GROUPS - 1]
        groups = Counter[str]()
        for label, count in joined.items():
            groups[label if rest is None or label in chosen else rest] += count
        unlabeled = 0
        for cell, count in {} if self.lists else values.items():
            parts = [part.strip() for part in cell.split(separator)] if separator else [cell]
            unlabeled += count * (not any(spellings.map.get(part, part) for part in parts))
        return LabelsLook(counts, separator, spellings, joined, tuple(chosen), rest, groups, unlabeled)

    def could_be_group(self) -> bool:
        """Whether the values look like labels: few, short, each of several rows; no numbers, dates or many codes."""
        look = self.labels
        labels = look.joined
        if any(len(label) > LONGEST_LABEL for label in labels):
            return False
        if len(labels) == 2:
            return self.filled >= 4
        many = len(labels) > MOST_GROUPS
        return (
            2 < len(labels) <= 200
            and (10 if many else 2) * len(labels) <= self.filled
            and 2 * self.numbers < self.filled
            and not (many and self.codes == self.filled)
            and sum(labels[label] for label in look.chosen) >= 0.5 * sum(labels.values())
        )


@dataclass(frozen=True, slots=True)
class Look:
    """What a file seems to hold: `rows` that were looked at (`whole`: all there are), and which column is what.

    `id` is `@content` where no column has ids; `mended` are the rows that need a better one than they have in it.
    `encoding` is empty for UTF-8. `groups` are the columns, each a dimension. `words` is a query for which there is
    something to be found.
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
    encoding: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()
    words: str = ""

    @property
    def name(self) -> str:
        """What the collection is called, after its file."""
        return re.sub(r"[^\w.-]+", "-", self.path.name.split(".")[0]).strip("-.")[:60] or "collection"

    def file(self, output: Path, target: Any = None, more: Mapping[str, Any] | None = None) -> str:
        """The collection file, to be written to `output`; without a `target` its line is one to be filled in.

        `more` are further keys of it: topics and judgments.
        """
        path, form = os.path.relpath(self.path, output.parent), dict[str, Any]()
        if self.format:
            form["format"] = self.format
        if self.encoding:
            form["encoding"] = self.encoding[0] if len(self.encoding) == 1 else _Line(self.encoding)
        ids = {"id": self.id} | ({"ids": "mend"} if self.mended else {})
        seen = {"rows": self.rows, "columns": _Line(list(self.columns)[:100])}
        if self.path.is_file():
            seen["sha256"] = file_digest(self.path)
        title = {"title": self.title} if self.title else {}
        documents = {
            "path": path,
            **form,
            **ids,
            **title,
            "text": self.text[0] if len(self.text) == 1 else list(self.text),
            "seen": seen,
        }
        content: dict[str, Any] = {"name": self.name, "documents": documents, **(more or {})}
        seen_rows = f"{self.rows:,} rows" if self.whole else f"the first {self.rows:,} rows"
        head = [f"# Proposed by `fairagent init` from {seen_rows} of {in_line(self.path.name)}; see docs/your_data.md."]
        maps = dict[str, str]()
        if self.groups:
            dimensions: dict[str, dict[str, Any]] = {name: {} for name in self.groups}
            for number, name in enumerate(self.groups):
                head.append(f"# {in_line(name)}: {in_line(self.labels_of(name))}")
                labels = self.columns[name].labels
                if labels.rest:
                    dimensions[name] |= {"labels": _Line(labels.chosen), "rest": labels.rest}
                if labels.separator:
                    dimensions[name]["separator"] = labels.separator
                if labels.spellings.map:
                    # YAML's writer has no place for comments: a placeholder stands there until all is written.
                    dimensions[name]["map"] = f"map-{number}"
                    rows = ["map:  # to be confirmed: value -> its label ([]: none), with the number of rows"]
                    rows += [f"# {in_line(doubt)}" for doubt in labels.spellings.doubts]
                    for value, of_value in labels.spellings.map.items():
                        if labels.rest and of_value and of_value[0] not in labels.chosen:
                            continue  # of the rest whatever its spelling
                        entry = {value: of_value[0] if of_value else []}
                        pair = yaml.safe_dump(entry, default_flow_style=False, allow_unicode=True, width=10**6)
                        rows += [f"  {line}" for line in f"{pair.rstrip()}  # {labels.counts[value]:,}".split("\n")]
                    maps[f"      map: map-{number}\n"] = "".join(f"      {line}\n" for line in rows)
            content["groups"] = {"path": path, **form, **ids, "dimensions": dimensions}
        written = yaml.dump(content, Dumper=_Writer, sort_keys=False, allow_unicode=True, width=110)
        for placeholder, map in maps.items():
            written = written.replace(placeholder, map)
        written = "\n".join(head) + "\n" + written
        if not self.groups:
            return written
        lines = [
            "# The target is the share of exposure that each group should get. It can be",
            "#   uniform    the same for every group",
            "#   corpus     its share of the documents",
            "#   estimated  its share of the engine's own list for each query, and so the engine's bias with it",
            f"#   your own   {{{in_line(self.groups[0])}: {{GROUP: 0.5, ...}}}}, which add up to 1 in each dimension",
        ]
        for name in self.groups:
            groups = self.columns[name].labels.groups
            total = max(1, groups.total())
            shares = listed([f"{label} {count / total:.1%}" for label, count in groups.most_common()], 12)
            lines.append(in_line(f"# {name}: uniform {1 / max(1, len(groups)):.1%} each; corpus {shares}"))
        if target is None:
            lines += ["# Without one the first search asks. Choose, and take away the #:", "#target: uniform"]
            return written + "".join(f"{line}\n" for line in lines)
        chosen = yaml.safe_dump({"target": target}, sort_keys=False, allow_unicode=True)
        return written + "".join(f"{line}\n" for line in lines) + chosen

    def labels_of(self, column: str) -> str:
        """The labels of a column with their numbers of rows, spellings joined."""
        look = self.columns[column]
        unknown = self.rows - look.filled + look.labels.unlabeled
        known = [f"{label} {count:,}" for label, count in look.labels.groups.most_common()]
        return listed(known + ([f"(unknown) {unknown:,}"] if unknown else []), 12)

    def notes(self) -> list[str]:
        """What to know of the groups before exposure is measured by them, and which spellings were joined."""
        notes = [ROW_WARNING] if self.id == ROW else []
        notes += [mended_note(self.mended, self.path.name)] if self.mended else []
        for name in self.groups:
            labels = self.columns[name].labels
            if labels.rest and labels.counts:
                notes.append(
                    f"{name!r} has {len(labels.counts):,} values: the {len(labels.chosen)} commonest are groups, and "
                    f"the others are {labels.rest!r}, so that uniform gives each {1 / (len(labels.chosen) + 1):.1%} "
                    f"instead of {1 / len(labels.counts):.1%}; `labels` and `rest` in the file say which"
                )
            if labels.spellings.map:
                alike = f"spellings of {name!r} that look like the same label are joined by `map`, to be confirmed"
                notes.append(f"{alike}: {joins(labels.spellings.map)}")
            notes += [f"{name!r}: {doubt}" for doubt in labels.spellings.doubts]
            notes += group_notes(name, labels.groups)
        return notes


class _Line(tuple[str, ...]):
    """Names that are written in one line."""


class _Writer(yaml.SafeDumper):
    """YAML's own, with `_Line`, and without references to what was written before."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Writer.add_representer(
    _Line, lambda writer, names: writer.represent_sequence("tag:yaml.org,2002:seq", names, flow_style=True)
)


def look_at(
    path: Path,
    format: str | None = None,
    id: str | None = None,
    text: Sequence[str] = (),
    title: str | None = None,
    groups: Sequence[str] = (),
    encoding: Sequence[str] = (),
) -> Look:
    """Look at the rows of a file; what is named is taken, the rest is inferred from names and values.

    Raises DataError for what is wrong in the file, with its line; UsageError for an unknown column, or where none holds
    text.
    """
    faults, columns, rows = Faults(), dict[str, ColumnLook](), 0
    fields = validate(RecordsFile, {"format": format, "encoding": encoding}, "init")
    read = records(path, fields, faults)
    for _, record in islice(read, 200_000):
        rows += 1
        for name, value in record.items():
            columns.setdefault(name, ColumnLook(name)).add(value)
    whole = next(read, None) is None
    if not rows and not faults:
        faults.add(path, None, "there are no rows")
    faults.check(f"{path}")
    named = [name for name in (id, *text, title, *groups) if name and name not in (ROW, CONTENT)]
    if missing := [name for name in named if name not in columns]:
        raise UsageError(f"{path}: {no_such('column', missing[0], columns)}")
    likely = dict[str, tuple[bool, bool, bool, int]]()
    for name, column in columns.items():
        lacking = column.lacking_ids(rows) if name not in (*text, title, *groups) else None
        if lacking is not None:
            # `user_id` may well be of somebody else, most of all where some rows lack it.
            match = ID.fullmatch(name)
            likely[name] = not match, bool(match and match[1] and lacking), not CODE_NAME.fullmatch(name), lacking
    chosen = id or min(likely, key=likely.__getitem__, default=CONTENT)
    for name in groups:
        if columns[name].values and not columns[name].labels.groups:
            there = listed([f"{value!r} ({count:,})" for value, count in columns[name].labels.counts.most_common()])
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
    proposed = tuple(groups) or tuple(
        one.name for one in free if one.name != title and not ID.fullmatch(one.name) and one.could_be_group()
    )
    ids = columns.get(chosen)
    if ids and (ids.odd or ids.ids is None or len(ids.ids) < rows):
        fields = fields.model_copy(update={"id": chosen, "ids": "mend"})
        deque(records(path, fields, faults), maxlen=0)
        faults.check(f"{path}")
    words = columns[title or texts[0]].example or columns[texts[0]].example
    return Look(
        path, format, rows, whole, columns, chosen, texts, title, proposed, tuple(encoding), tuple(faults.mended), words
    )


@dataclass(slots=True)
class Prepared:
    """The documents' `encoding`, and `more` keys of the collection file; `notes` say what is not as it was."""

    encoding: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)
    topics: Mapping[str, Topic] = field(default_factory=dict)
    judged: tuple[str, ...] = ()


def prepare(
    path: Path, format: str | None, encoding: str, topics: Path | None, qrels: Path | None, output: Path
) -> Prepared:
    """The documents' encoding, and what the collection file `output` says of topics and judgments.

    Raises what reading these raises.
    """
    ready, faults = Prepared(), Faults()
    ready.encoding = _encoding(ready, path, encoding, format)
    if has_topics(path, ready.encoding or UTF8):
        raise UsageError(f"{path} is in a form of topics, and not of documents: init DOCUMENTS --topics {path}")
    if qrels and not topics:
        raise UsageError("--qrels needs --topics: judgments are of topics")
    if topics:
        keys = _topic_keys(ready, topics, encoding, output)
        ready.topics = read_topics(topics, validate(TopicsFile, keys | {"path": str(topics)}, "--topics"), faults)
        faults.check(f"--topics {topics}")
        ready.more["topics"] = keys
        first = next(iter(ready.topics.values())).query
        ready.notes.append(f"{len(ready.topics):,} topics; the first one: {first}")
    if qrels:
        read = read_qrels(qrels, QrelsFile(path=str(qrels)), ready.topics, faults)
        faults.check(f"--qrels {qrels}")
        ready.judged = tuple(dict.fromkeys(id for grades in read.grades.values() for id in grades))
        ready.notes += read.notes
        ready.more["qrels"] = {"path": os.path.relpath(qrels, output.parent)}
    return ready


def _encoding(ready: Prepared, path: Path, encoding: str, format: str | None = None) -> tuple[str, ...]:
    """What a text file is in, named or guessed, which is noted; () for UTF-8 and what is no text."""
    if path.parent in PIPES or not path.is_file() or form_of(path, format) not in ("jsonl", "tsv", "csv"):
        return ()
    encodings = (encoding,) if encoding else guessed_encoding(path)
    if encodings not in ((), UTF8):
        how = "as you say" if encoding else "guessed"
        told = f"it is in {' or '.join(encodings)} ({how}), not in UTF-8; it is read so each time (`encoding`)"
        ready.notes.append(f"{path.name}: {told}")
    return () if encodings == UTF8 else encodings


def guessed_encoding(path: Path) -> tuple[str, ...]:
    """The encodings of a text file, packed or not, of which each line is in the first that it fits; () for UTF-8.

    A byte order mark, or zeros in every other byte, tell UTF-16. In any other file what is not UTF-8 is Windows-1252,
    or Latin-1 where it has bytes that this lacks. UsageError where letters beyond ASCII are too many for it.
    """
    largest = 1 << 26
    try:
        with open_to_read(path) as file:
            content = unpacked(file).read(largest)
    except (OSError, ValueError):
        return ()  # whoever reads it says so
    if len(content) == largest:
        content = content[: content.rfind(b"\n") + 1]
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return ("utf-16",)
    # In UTF-16 without a mark Western text is ASCII and bytes of zero, and so is valid UTF-8.
    for name, half in {"utf-16-le": content[1:4096:2], "utf-16-be": content[:4096:2]}.items():
        if half.count(0) > len(half) / 2:
            return (name,)
    try:
        content.decode()
        return ()
    except UnicodeDecodeError:
        pass
    text = content.decode("utf-8", "replace")
    lost = text.count("\N{REPLACEMENT CHARACTER}")
    if lost > 0.2 * (lost + len(re.findall(r"[^\W\d_]", text))):
        raise UsageError(
            f"{path}: not UTF-8, and its encoding cannot be guessed: it has many letters beyond ASCII; name it with "
            "--encoding, e.g. cp1251, koi8-r, shift_jis, gb18030"
        )
    return ("utf-8", "cp1252", "latin-1")


def _topic_keys(ready: Prepared, path: Path, encoding: str, output: Path) -> dict[str, Any]:
    """The `topics` of the collection file: which column is the id, and which is searched."""
    keys: dict[str, Any] = {"path": os.path.relpath(path, output.parent)}
    if encodings := _encoding(ready, path, encoding):
        keys["encoding"] = encodings[0] if len(encodings) == 1 else list(encodings)
    encodings = encodings or UTF8
    if has_topics(path, encodings):
        return keys
    cells = next((text for _, text in lines(path, Faults(), encodings=encodings)), "").split("\t")
    if form_of(path) == "jsonl" and len(cells) > 1 and not cells[0].startswith("{"):
        keys["format"] = "tsv"
    if (keys.get("format") or form_of(path)) == "tsv" and len(cells) == 2 and not ID.fullmatch(cells[0].strip()):
        keys["columns"] = ["id", "query"]
    faults = Faults()
    fields = validate(RecordsFile, {name: value for name, value in keys.items() if name != "path"}, "init")
    first = next((record for _, record in records(path, fields, faults)), None)
    faults.check(f"--topics {path}")
    if first is None:
        return keys
    id = next((name for name in first if ID.fullmatch(name)), None)
    query = next((name for name in QUERIES if name in first), None)
    if id is None or query is None:
        lacking = "no column with ids" if id is None else f"none of {', '.join(QUERIES)}"
        raise UsageError(f"--topics {path}: {lacking} in it; there are: {listed(list(first))}")
    return keys | ({} if id == "id" else {"id": id}) | ({} if query == "query" else {"query": query})


def match_judged(ready: Prepared, look: Look) -> None:
    """Note which judged documents the rows of the look lack, and where zeros before ids are why, set `digits`."""
    column, numbers = look.columns.get(look.id), range(1, look.rows + 1 if look.id == ROW else 1)
    ids = column.ids if column else {hash(str(row)) for row in numbers}
    if not ready.judged or not ids or not look.whole:
        return
    many = len(ready.judged)
    plain = sum(hash(id) in ids for id in ready.judged)
    counts = [sum(hash(plain_number(id, digits)) in ids for id in ready.judged) for digits in range(13)]
    there = max(plain, *counts)
    if there > plain:
        best = counts.index(there)
        ready.more["qrels"]["digits"] = best
        ready.notes.append(
            f"{plain:,} of {many:,} judged documents are among the documents, and {there:,} with `digits: {best}`, "
            "which the qrels have now"
        )
    if there < many:
        ready.notes.append(f"{many - there:,} of {many:,} judged documents are not among the documents")


def experiment_text(ready: Prepared, look: Look, output: Path, target: Any) -> str:
    """An experiment file that compares the engine and the agent on the topics; "" where nothing can be compared.

    Without a `target` it has one of its own, until the collection names one.
    """
    if "topics" not in ready.more or not (look.groups or "qrels" in ready.more):
        return ""
    lines = [
        f"# Compares systems on the topics of {output.name}; `fairagent evaluate --template ranking` has all keys.",
        f"name: {json.dumps(look.name)}",
        f"collection: {json.dumps(output.name)}",
    ]
    if look.groups:
        if target is None:
            lines += ["# Until the collection names a target; then take it away.", "target: uniform"]
        lines += ["systems:", "  engine: {profile: engine}", "  agent: {}"]
    else:
        lines += ["measures: [nDCG@20]", "systems:", "  engine: {profile: engine}"]
    return "\n".join([*lines, ""])


def experiment_file(output: Path) -> Path:
    """Where the experiment of the collection file `output` is written."""
    name = "experiment.yaml" if output.stem == "collection" else f"{output.stem}.experiment.yaml"
    return output.parent / name
