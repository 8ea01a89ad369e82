"""Relevance judgments (TREC qrels, BEIR's, or JSON lines), and topics."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairagent.collection.config import QrelsFile, TopicsFile
from fairagent.collection.forms import records
from fairagent.collection.groups import TopicGroups
from fairagent.collection.labels import LabelReader
from fairagent.collection.records import (
    UTF8,
    Faults,
    Record,
    checked_id,
    field_reader,
    json_records,
    listed,
    plain_number,
    read_text,
    same_ids,
    shown,
    template_fields,
    tsv_records,
)
from fairagent.collection.run_lines import DOCUMENT, TOPIC, places_of, rows_of
from fairagent.collection.table_buffer import Labels
from fairagent.collection.topic_texts import has_topics, topic_records
from fairagent.types import Topic
from fairagent.types.common import counted

GRADE = ("relevance", "grade", "score", "rel", "label", "relevant")
"""What the column is called in a header, in capitals or not."""
FORMS = (
    "judgments have TREC's four columns (topic, iteration, document, grade), or BEIR's three (topic, document, grade), "
    "with or without a header that names them, or are JSON lines (`format: jsonl`)"
)
_GRADE = re.compile(r"[+-]?[0-9]{1,9}(\.0+)?", re.ASCII)
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
    reader = LabelReader(settings.dimensions)
    buffer = reader.buffer()
    qrels = Qrels({topic: {} for topic in topics})
    strangers: dict[str, dict[str, int]] = {}
    labels_of: dict[str, dict[str, Labels]] = {}
    repeated, before = 0, faults.count
    rows = list(_rows(path, settings, topics, faults))
    named, joined = same_ids(topics, (topic for _, (topic, _, _), _ in rows))
    own = {there: topic for topic, there in named.items()}
    for line, (topic, document, text), record in rows:
        topic = own.get(topic, topic)
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
                    raise ValueError(
                        f"document {shown(document)} of topic {shown(topic)} was judged differently before"
                    )
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
    if settings.format != "trec":
        yield from _json_rows(path, settings, faults)
    elif settings.header:
        for number, record in tsv_records(path, faults):
            cells = list(record.values())
            if len(cells) < 4:
                faults.add(path, 1, f"expected at least topic, iteration, document, grade, got: {listed(list(record))}")
                return
            yield number, (cells[0], cells[2], cells[3]), record
    else:
        names, rows = rows_of(path, faults, topics)
        places = _places(names)
        width, first = len(names) if places else 0, True
        for number, cells in rows:
            width = width or len(cells)
            places = places or {4: (0, 2, 3), 3: (0, 1, 2)}.get(width, ())
            if not places:
                hint = "; is this a run file?" if width in (5, 6) else ""
                faults.add(path, number, f"no judgment: {shown(' '.join(cells))}{hint}; {FORMS}")
                return  # every further line would say the same
            if len(cells) != width:
                faults.add(
                    path, number, f"{counted(len(cells), 'column')}, and {width} above: {shown(' '.join(cells))}"
                )
                continue
            topic, document, grade = (cells[place] for place in places)
            if first and not _GRADE.fullmatch(grade):
                faults.add(path, number, f"the grade {shown(grade)} is no whole number; {FORMS}")
                return
            first = False
            yield number, (topic, document, grade), {}


def _places(names: Sequence[str]) -> tuple[int, ...]:
    """Where topic, document and grade stand by the names of a header; () where it does not name all of them."""
    places = places_of(names, {"topic": TOPIC, "document": DOCUMENT, "grade": GRADE})
    return tuple(places.values()) if len(places) == 3 else ()


def _json_rows(path: Path, settings: QrelsFile, faults: Faults) -> Iterator[_Row]:
    read_topic, read_document = field_reader(settings.topic), field_reader(settings.document)
    for number, record in json_records(path, faults):
        try:
            topic, value = checked_id(read_topic(record), "topic"), record.get(settings.relevance)
            grade = str(int(value)) if isinstance(value, bool) else read_text(record, settings.relevance)
            yield number, (topic, read_document(record), grade), record
        except ValueError as error:
            faults.add(path, number, str(error))


def read_topics(path: Path, fields: TopicsFile, faults: Faults) -> dict[str, Topic]:
    """Topic id -> Topic, in the order of the file; what is wrong is added to `faults`."""
    topics: dict[str, Topic] = {}
    lines: dict[str, int] = {}
    there: tuple[str, ...] = ()
    read_id, before = field_reader(fields.id), faults.count
    encodings, found = fields.encoding or UTF8, records(path, fields, faults)
    if fields.format is None and has_topics(path, encodings):
        found = topic_records(path, faults, encodings)
    for number, record in found:
        try:
            id = checked_id(read_id(record), "topic")
            topic = _topic_of(id, record, fields)
            if id in topics:
                raise ValueError(f"the topic id {shown(id)} is that of line {lines[id]} already")
            topics[id], lines[id] = topic, number
            there = there or tuple(record)
        except ValueError as error:
            faults.add(path, number, str(error))
    if not topics and faults.count == before:
        faults.add(path, None, "there are no topics")
    if fields.group and faults.count == before and not any(topic.group for topic in topics.values()):
        faults.add(path, None, f"no topic has a group in the field {fields.group!r}; there are: {listed(there)}")
    return topics


def _topic_of(id: str, record: Record, fields: TopicsFile) -> Topic:
    """The topic of one record; ValueError where a field of it has another form."""
    query = read_text(record, fields.query)
    if not query.strip():
        raise ValueError(f"topic {shown(id)} has an empty query (field {fields.query!r})")
    names = record.get(fields.dimensions) if fields.dimensions else None
    if fields.dimensions and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise ValueError(f"expected a list of dimensions in {fields.dimensions!r}, got {shown(names)}")
    group = read_text(record, fields.group).strip() if fields.group and record.get(fields.group) is not None else ""
    used = {fields.query, *(() if template_fields(fields.id) else (fields.id,))}
    extra = {name: value for name, value in record.items() if name not in used}
    return Topic(id, query, extra, None if names is None else tuple(names), group)
