"""Relevance judgments: TREC qrels, JSON lines, or a list of relevant documents per topic.

Topics: the information needs of a test collection.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True, slots=True)
class Judgment:
    """One judgment: the grade of a document for a topic, and its record for further columns."""

    line: int
    topic: str
    document: str
    grade: int
    record: Record


@dataclass(slots=True)
class Qrels:
    """All judgments of the topics of a collection: topic -> document -> grade (0: not relevant)."""

    grades: dict[str, dict[str, int]]
    groups: TopicGroups | None = None
    notes: list[str] = field(default_factory=list)


def read_qrels(path: Path, settings: QrelsFile, topics: Collection[str], faults: Faults) -> Qrels:
    """The judgments of `topics`, each of which gets an entry; what is wrong is added to `faults`.

    Judgments of other topics are left out and named in the notes, as are topics without a relevant
    document and judgments that are repeated. Repeated ones that differ are faults.
    """
    reader = LabelReader(settings.dimensions)
    buffer = reader.buffer()
    qrels = Qrels({topic: {} for topic in topics})
    strangers: dict[str, dict[str, int]] = {}
    labels_of: dict[str, dict[str, Labels]] = {}
    repeated, before = 0, faults.count
    for judgment in _judgments(path, settings, faults):
        grade = judgment.grade if judgment.grade >= settings.relevant else 0
        of_topic = qrels.grades.get(judgment.topic)
        grades = strangers.setdefault(judgment.topic, {}) if of_topic is None else of_topic
        try:
            labels, types = reader.read(judgment.record), reader.read_types(judgment.record)
            pair = TopicGroups.pair(judgment.topic, judgment.document)
            if judgment.document in grades:
                if grades[judgment.document] != grade or labels_of.get(pair, {}) != labels:
                    where = f"document {shown(judgment.document)} of topic {shown(judgment.topic)}"
                    raise ValueError(f"{where} was judged differently before")
                repeated += 1
                continue
            grades[judgment.document] = grade
            if settings.dimensions:
                labels_of[pair] = labels
                if of_topic is not None:
                    buffer.add(pair, labels, judgment.line, types)
        except ValueError as error:
            faults.add(path, judgment.line, str(error))
    reader.check(path, faults)
    if faults.count == before and not strangers and not any(qrels.grades.values()):
        faults.add(path, None, "there are no judgments")
    if settings.dimensions and topics and faults.count == before:
        buffer.check(path, faults)
        qrels.groups = TopicGroups(*buffer.finish()) if faults.count == before else None
    qrels.notes = _notes(qrels.grades, strangers, repeated)
    return qrels


def _notes(grades: dict[str, dict[str, int]], strangers: Collection[str], repeated: int) -> list[str]:
    notes = []
    if strangers:
        notes.append(f"{len(strangers)} qrels topics are not in the topics file: {listed(strangers)}")
    if without := [topic for topic, judged in grades.items() if not any(judged.values())]:
        notes.append(f"{len(without)} of {len(grades)} topics have no relevant document: {listed(without)}")
    if repeated:
        notes.append(f"{repeated} judgments are repeated (with the same grade)")
    return notes


def _judgments(path: Path, settings: QrelsFile, faults: Faults) -> Iterator[Judgment]:
    if settings.format == "reldocs":
        yield from _relevant_lists(path, settings, faults)
    elif settings.format == "jsonl":
        read_topic = field_reader(settings.topic or "topic")
        read_document = field_reader(settings.document or "document")
        for number, record in json_records(path, faults):
            try:
                found = read_topic(record), read_document(record), _grade(record, settings.relevance)
                yield _judgment(number, *found, record)
            except ValueError as error:
                faults.add(path, number, str(error))
    else:
        rows = _named_columns(path, faults) if settings.header else _trec_columns(path, faults)
        for number, cells, record in rows:
            try:
                yield _judgment(number, cells[0], cells[2], cells[3], record)
            except ValueError as error:
                faults.add(path, number, str(error))


def _trec_columns(path: Path, faults: Faults) -> Iterator[tuple[int, list[str], Record]]:
    for number, line in lines(path, faults):
        cells = line.split()
        if len(cells) == len(TREC_COLUMNS):
            yield number, cells, {}
            continue
        hint = {6: "; is this a run file?", 2: "; is this a list of relevant documents?"}.get(len(cells), "")
        expected = f"expected 4 columns ({' '.join(TREC_COLUMNS)})"
        faults.add(path, number, f"{expected}, found {len(cells)}: {shown(line)}{hint}")


def _named_columns(path: Path, faults: Faults) -> Iterator[tuple[int, list[str], Record]]:
    for number, record in tsv_records(path, faults):
        if len(record) < len(TREC_COLUMNS):
            there = listed(list(record))
            faults.add(path, 1, f"expected at least 4 columns ({', '.join(TREC_COLUMNS)}), found: {there}")
            return
        yield number, list(record.values()), record


def _relevant_lists(path: Path, settings: QrelsFile, faults: Faults) -> Iterator[Judgment]:
    read_topic, name = field_reader(settings.topic or "id"), settings.document or "rel_docs"
    for number, record in json_records(path, faults):
        try:
            topic = checked_id(read_topic(record), "topic")
            documents = record.get(name)
            if not isinstance(documents, list):
                raise ValueError(f"field {name!r} is {shown(documents)}, expected a list of document ids")
            for document in documents:
                id = checked_id(read_text({name: document}, name), "document")
                yield Judgment(number, topic, id, settings.relevant, {})
        except ValueError as error:
            faults.add(path, number, str(error))


def _judgment(line: int, topic: str, document: str, grade: str, record: Record) -> Judgment:
    if not _GRADE.fullmatch(grade):
        raise ValueError(f"the grade {shown(grade)} is no whole number")
    return Judgment(line, checked_id(topic, "topic"), checked_id(document, "document"), int(grade), record)


def _grade(record: Record, name: str) -> str:
    value = record.get(name)
    return str(int(value)) if isinstance(value, bool) else read_text(record, name)


def read_topics(path: Path, fields: TopicsFile, faults: Faults) -> dict[str, Topic]:
    """Topic id -> Topic, in the order of the file; what is wrong is added to `faults`."""
    topics: dict[str, Topic] = {}
    lines: dict[str, int] = {}
    there: tuple[str, ...] = ()
    read_id = field_reader(fields.id)
    used = {fields.query, *(() if template_fields(fields.id) else (fields.id,))}
    before = faults.count
    for number, record in records(path, fields, faults):
        try:
            id = checked_id(read_id(record), "topic")
            query = read_text(record, fields.query)
            dimensions = _dimensions(record, fields.dimensions)
            group = _group(record, fields.group)
        except ValueError as error:
            faults.add(path, number, str(error))
            continue
        if id in topics:
            faults.add(path, number, f"the topic id {shown(id)} is that of line {lines[id]} already")
        elif not query.strip():
            faults.add(path, number, f"topic {shown(id)} has an empty query (field {fields.query!r})")
        else:
            extra = {name: value for name, value in record.items() if name not in used}
            topics[id], lines[id] = Topic(id, query, extra, dimensions, group), number
            there = there or tuple(record)
    if not topics and faults.count == before:
        faults.add(path, None, "there are no topics")
    if fields.group and faults.count == before and not any(topic.group for topic in topics.values()):
        faults.add(path, None, f"no topic has a group in the field {fields.group!r}; there are: {listed(there)}")
    return topics


def _dimensions(record: Mapping[str, Any], field: str | None) -> tuple[str, ...] | None:
    """The dimensions listed in `field`; None, for all, where no field is named."""
    if field is None:
        return None
    listed = record.get(field)
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise ValueError(f"expected a list of dimensions in {field!r}, found {shown(listed)}")
    return tuple(listed)


def _group(record: Record, field: str | None) -> str:
    """The group of topics in `field`; "" where it says none, or no field is named."""
    return read_text(record, field).strip() if field and record.get(field) is not None else ""
