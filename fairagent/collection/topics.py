"""Topics: the information needs of a test collection."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairagent.collection.config import TopicsFile
from fairagent.collection.faults import Faults, listed, shown
from fairagent.collection.forms import records
from fairagent.collection.records import Record, checked_id, field_reader, read_text, template_fields
from fairagent.types import Topic


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
