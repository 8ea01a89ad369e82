"""Relevance judgments (TREC qrels, JSON lines, or a list of relevant documents per topic), and topics."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fairagent.collection.config import QrelsFile, TopicsFile
from fairagent.collection.forms import records
from fairagent.collection.groups import TopicGroups
from fairagent.collection.labels import LabelReader
from fairagent.collection.records import (
    Faults,
    Record,
    checked_id,
    field_reader,
    json_records,
    lines,
    listed,
    read_text,
    shown,
    template_fields,
    tsv_records,
)
from fairagent.collection.table_buffer import Labels
from fairagent.types import Topic

TREC_COLUMNS = ("topic", "iteration", "document", "grade")
_GRADE = re.compile(r"[+-]?[0-9]{1,9}")
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

    Judgments of other topics are left out and named in the notes, as are topics without a relevant
    document and judgments that are repeated. Repeated ones that differ are errors.
    """
    reader = LabelReader(settings.dimensions)
    buffer = reader.buffer()
    qrels = Qrels({topic: {} for topic in topics})
    strangers: dict[str, dict[str, int]] = {}
    labels_of: dict[str, dict[str, Labels]] = {}
    repeated, before = 0, faults.count
    for line, (topic, document, text), record in _rows(path, settings, faults):
        try:
            if not _GRADE.fullmatch(text):
                raise ValueError(f"the grade {shown(text)} is no whole number")
            pair = TopicGroups.pair(checked_id(topic, "topic"), checked_id(document, "document"))
            grade = int(text) if int(text) >= settings.relevant else 0
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
    if strangers:
        qrels.notes.append(f"{len(strangers)} qrels topics are not in the topics file: {listed(strangers)}")
    if without := [topic for topic, judged in qrels.grades.items() if not any(judged.values())]:
        there = f"{len(without)} of {len(qrels.grades)} topics"
        qrels.notes.append(f"{there} have no relevant document: {listed(without)}")
    if repeated:
        qrels.notes.append(f"{repeated} judgments are repeated (with the same grade)")
    return qrels


def _rows(path: Path, settings: QrelsFile, faults: Faults) -> Iterator[_Row]:
    if settings.format != "trec":
        yield from _json_rows(path, settings, faults)
    elif settings.header:
        for number, record in tsv_records(path, faults):
            cells = list(record.values())
            if len(cells) < len(TREC_COLUMNS):
                expected = f"expected at least 4 columns ({', '.join(TREC_COLUMNS)})"
                faults.add(path, 1, f"{expected}, got: {listed(list(record))}")
                return
            yield number, (cells[0], cells[2], cells[3]), record
    else:
        for number, line in lines(path, faults):
            cells = line.split()
            if len(cells) == len(TREC_COLUMNS):
                yield number, (cells[0], cells[2], cells[3]), {}
                continue
            hint = {6: "; is this a run file?", 2: "; is this a list of relevant documents?"}.get(len(cells), "")
            expected = f"expected 4 columns ({' '.join(TREC_COLUMNS)})"
            faults.add(path, number, f"{expected}, got {len(cells)}: {shown(line)}{hint}")


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
    for number, record in records(path, fields, faults):
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
