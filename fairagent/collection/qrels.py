"""Relevance judgments (TREC qrels, BEIR's, or JSON lines), and topics: one a record, or as TREC and SMART write them.

TREC's topics are `<top>` with `<num>`, `<title>`, `<desc>` and `<narr>`, closed or not, or XML; SMART's are a line
`.I 7`, and under `.W` the words.
"""

import html
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from fairagent.collection.config import QrelsFile, TopicsFile, template_fields
from fairagent.collection.labels import LabelReader
from fairagent.collection.records import (
    UTF8,
    Faults,
    Record,
    checked_id,
    csv_records,
    field_reader,
    json_records,
    lines,
    listed,
    plain_number,
    read_text,
    records,
    same_ids,
    shown,
)
from fairagent.collection.run_lines import DOCUMENT, TOPIC, places_of, rows_of
from fairagent.collection.table import Labels, TopicGroups
from fairagent.storage.readers import first_bytes
from fairagent.types import Topic
from fairagent.types.common import counted

GRADE = ("relevance", "grade", "score", "rel", "label", "relevant")
"""What the column is called in a header, in capitals or not."""
FORMS = (
    "judgments have TREC's four columns (topic, iteration, document, grade), or BEIR's three (topic, document, grade), "
    "with or without a header that names them, or are JSON lines (`format: jsonl`)"
)
TAGS = {
    **dict.fromkeys(("title", "query"), "query"),
    **dict.fromkeys(("desc", "description", "question", "summary"), "description"),
    **dict.fromkeys(("narr", "narrative"), "narrative"),
    **dict.fromkeys(("num", "number"), "id"),
}
"""Tag -> the field of a topic."""
_GRADE = re.compile(r"[+-]?[0-9]{1,9}(\.0+)?", re.ASCII)
_TAG = re.compile(r"<(/?)([A-Za-z][\w-]{0,30})([^<>]{0,300})>")
_ID = re.compile(r"""\b(?:number|num|id|qid)\s*=\s*["']?([^"'\s>]+)""")
_SMART = re.compile(r"^\.I[ \t]+\S+[ \t\r]*$", re.MULTILINE)
_LABEL = re.compile(r"^\s*(?:Number|Topic|Title|Description|Narrative)\s?:", re.IGNORECASE)
_Row = tuple[int, tuple[str, str, str], Record]
"""A line; topic, document and grade in it; and all that it holds."""


@dataclass(slots=True)
class Qrels:
    """All judgments of the topics of a collection: topic -> document -> grade (0: not relevant)."""

    grades: dict[str, dict[str, int]]
    groups: TopicGroups | None = None
    notes: list[str] = field(default_factory=list)


def read_qrels(path: Path, settings: QrelsFile, topics: Collection[str], faults: Faults) -> Qrels:
    """The judgments of `topics`, each of which gets an entry; what is wrong is added to `faults`.

    Topics whose ids differ from those of the judgments by zeros before them, or `.0` at their end, are joined and named
    in the notes (`same_ids`). So are the judgments of other topics, which are left out, topics without a relevant
    document and judgments that are repeated. Repeated ones that differ are errors.
    """
    reader, before = LabelReader(settings.dimensions), faults.count
    buffer = reader.buffer()
    qrels = Qrels({topic: {} for topic in topics})
    strangers: dict[str, dict[str, int]] = {}
    labels_of: dict[str, dict[str, Labels]] = {}
    repeated, rows = 0, list(_rows(path, settings, topics, faults))
    named, joined = same_ids(topics, (topic for _, (topic, _, _), _ in rows))
    topic_of = {there: topic for topic, there in named.items()}
    for line, (topic, document, text), record in rows:
        topic = topic_of.get(topic, topic)
        document = document if settings.digits is None else plain_number(document, settings.digits)
        try:
            if not _GRADE.fullmatch(text):
                raise ValueError(f"the grade {shown(text)} is no whole number")
            pair = TopicGroups.pair(checked_id(topic, "topic"), checked_id(document, "document"))
            grade = int(float(text)) if float(text) >= settings.relevant else 0
            grades = qrels.grades[topic] if topic in qrels.grades else strangers.setdefault(topic, {})
            labels, types = reader.read(record), reader.read_types(record)
            if document in grades:
                if grades[document] != grade or labels_of.get(pair, {}) != labels:
                    what = f"document {shown(document)} of topic {shown(topic)}"
                    raise ValueError(f"{what} was judged differently before")
                repeated += 1
                continue
            grades[document] = grade
            if settings.dimensions:
                labels_of[pair] = labels
                if topic in qrels.grades:
                    buffer.add(pair, labels, line, types)
        except ValueError as error:
            faults.add(path, line, str(error))
    reader.check(path, faults)
    if faults.count == before and not strangers and not any(qrels.grades.values()):
        faults.add(path, None, "there are no judgments")
    if settings.dimensions and topics and faults.count == before:
        buffer.check(path, faults)
        qrels.groups = TopicGroups(*buffer.finish()) if faults.count == before else None
    qrels.notes += [joined] if joined else []
    if strangers:
        qrels.notes.append(f"{len(strangers)} qrels topics are not in the topics file: {listed(strangers)}")
    if without := [topic for topic, judged in qrels.grades.items() if not any(judged.values())]:
        there = f"{len(without)} of {len(qrels.grades)} topics"
        qrels.notes.append(f"{there} have no relevant document: {listed(without)}")
    if repeated:
        qrels.notes.append(f"{repeated} judgments are repeated (with the same grade)")
    return qrels


def _rows(path: Path, settings: QrelsFile, topics: Collection[str], faults: Faults) -> Iterator[_Row]:
    if settings.format == "jsonl":
        read_topic, read_document = field_reader(settings.topic), field_reader(settings.document)
        for number, record in json_records(path, faults):
            try:
                topic, value = checked_id(read_topic(record), "topic"), record.get(settings.relevance)
                grade = str(int(value)) if isinstance(value, bool) else read_text(record, settings.relevance)
                yield number, (topic, read_document(record), grade), record
            except ValueError as error:
                faults.add(path, number, str(error))
        return
    if settings.header:
        for number, record in csv_records(path, faults, tsv=True):
            cells = list(record.values())
            if len(cells) < 4:
                faults.add(path, 1, f"expected at least topic, iteration, document, grade, got: {listed(list(record))}")
                return
            yield number, (cells[0], cells[2], cells[3]), record
        return
    names, rows = rows_of(path, faults, topics)
    named = tuple(places_of(names, {"topic": TOPIC, "document": DOCUMENT, "grade": GRADE}).values())
    places = named if len(named) == 3 else ()
    width, first = len(names) if places else 0, True
    for number, cells in rows:
        width = width or len(cells)
        places = places or {4: (0, 2, 3), 3: (0, 1, 2)}.get(width, ())
        text = shown(" ".join(cells))
        if not places:
            hint = "; is this a run file?" if width in (5, 6) else ""
            faults.add(path, number, f"no judgment: {text}{hint}; {FORMS}")
            return  # every further line would say the same
        if len(cells) != width:
            faults.add(path, number, f"{counted(len(cells), 'column')}, and {width} above: {text}")
            continue
        topic, document, grade = (cells[place] for place in places)
        if first and not _GRADE.fullmatch(grade):
            faults.add(path, number, f"the grade {shown(grade)} is no whole number; {FORMS}")
            return
        first = False
        yield number, (topic, document, grade), {}


def read_topics(path: Path, fields: TopicsFile, faults: Faults) -> dict[str, Topic]:
    """Topic id -> Topic, in the order of the file; what is wrong is added to `faults`."""
    topics: dict[str, Topic] = {}
    lines_of: dict[str, int] = {}
    there: tuple[str, ...] = ()
    read_id, before = field_reader(fields.id), faults.count
    encodings, rows = fields.encoding or UTF8, records(path, fields, faults)
    if fields.format is None and has_topics(path, encodings):
        rows = topic_records(path, faults, encodings)
    used = {fields.query, *(() if template_fields(fields.id) else (fields.id,))}
    for number, record in rows:
        try:
            id = checked_id(read_id(record), "topic")
            query, dimensions, group = read_text(record, fields.query), None, ""
            if not query.strip():
                raise ValueError(f"topic {shown(id)} has an empty query (field {fields.query!r})")
            if fields.dimensions:
                dimensions = record.get(fields.dimensions)
                if not isinstance(dimensions, list) or not all(isinstance(name, str) for name in dimensions):
                    raise ValueError(f"expected a list of dimensions in {fields.dimensions!r}, got {shown(dimensions)}")
            if fields.group and record.get(fields.group) is not None:
                group = read_text(record, fields.group).strip()
            if id in topics:
                raise ValueError(f"the topic id {shown(id)} is that of line {lines_of[id]} already")
            extra = {name: value for name, value in record.items() if name not in used}
            topics[id] = Topic(id, query, extra, None if dimensions is None else tuple(dimensions), group)
            lines_of[id] = number
            there = there or tuple(record)
        except ValueError as error:
            faults.add(path, number, str(error))
    if not topics and faults.count == before:
        faults.add(path, None, "there are no topics")
    if fields.group and faults.count == before and not any(topic.group for topic in topics.values()):
        faults.add(path, None, f"no topic has a group in the field {fields.group!r}; there are: {listed(there)}")
    return topics


def has_topics(path: Path, encodings: Sequence[str] = UTF8) -> bool:
    """Whether a file holds topics as TREC or SMART write them."""
    start = first_bytes(path).decode(encodings[0], "replace").lstrip("\ufeff \t\r\n")
    tags = {tag[2].lower() for tag in _TAG.finditer(start[:2000])} if start.startswith("<") else set()
    return bool(_SMART.match(start)) or bool(tags & {"top", "topic", "topics"})


def topic_records(path: Path, faults: Faults, encodings: Sequence[str] = UTF8) -> Iterator[tuple[int, dict[str, str]]]:
    """The line and the fields of every topic: id, query, and where they are there description and narrative.

    Adds a fault for every topic that has no number or no words, and for what cannot be read.
    """
    text = "\n".join(text for _, text in lines(path, faults, blank=True, encodings=encodings))
    for start, fields in (_smart if _SMART.match(text.lstrip()) else _trec)(text):
        line = 1 + text.count("\n", 0, start)
        id = fields.get("id", "").split(" ")[0]
        query = fields.get("query") or fields.get("description", "")
        if not id:
            faults.add(path, line, f"a topic without a number: {shown(query)}")
        elif not query:
            faults.add(path, line, f"topic {shown(id)} has neither a title nor a description")
        else:
            yield line, {**fields, "id": id, "query": query}


def _smart(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Where each topic begins, and its fields: .W is the query, or where there is none .T, the title."""
    starts = [*(match.start() for match in _SMART.finditer(text)), len(text)]
    for start, end in pairwise(starts):
        id, *parts = re.split(r"^\.([A-Z])\b", text[start + 2 : end], flags=re.MULTILINE)
        fields = {name: " ".join(words.split()) for name, words in zip(parts[::2], parts[1::2], strict=True)}
        yield start, {"id": id.strip(), "query": fields.get("W") or fields.get("T", "")}


def _trec(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Where each topic begins, and its fields. A tag ends what the one before it has begun."""
    fields: dict[str, str] = {}
    begun, name, start = -1, "", 0

    def end(place: int) -> None:
        if name and begun >= 0 and name not in fields:
            fields[name] = " ".join(html.unescape(_LABEL.sub("", text[start:place])).split())

    for tag in _TAG.finditer(text):
        end(tag.start())
        name, start = "" if tag[1] else TAGS.get(tag[2].lower(), ""), tag.end()
        if tag[2].lower() in ("top", "topic"):
            if begun >= 0 and fields:
                yield begun, fields
            begun, fields = -1 if tag[1] else tag.start(), {}
            if not tag[1] and (number := _ID.search(tag[3])):
                fields["id"] = number[1]
    end(len(text))
    if begun >= 0 and fields:
        yield begun, fields
