"""Labels that people gave in Label Studio or Argilla, in the form in which these export them.

Label Studio's JSON export is a list of tasks: the document's id is `data.id`, its labels are the choices of the
annotations that were not skipped. Argilla's `records.to_json` is a list of records (one a line does as well): the
document's id is the record's, its labels are the responses. The question is named like the dimension, or `label`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairagent.collection.config import RecordsFile
from fairagent.collection.forms import form_of, records
from fairagent.collection.records import Faults, Record, lines, listed, read_text, shown
from fairagent.storage.readers import file_text, parse_json

LABEL = "label"
"""The question, or the field of a file of examples, that holds the label where none is named like the dimension."""
LARGEST = 1 << 28
"""Bytes of a list."""


def records_of(file: Path, faults: Faults) -> Iterator[tuple[int, Record]]:
    """The records of a file with their line, or with their place where the file is one JSON list."""
    first = next((text for _, text in lines(file, Faults())), "") if form_of(file) == "jsonl" else ""
    if not first.lstrip().startswith("["):
        yield from records(file, RecordsFile(), faults)
        return
    try:
        exported = parse_json(file_text(file, LARGEST))
    except (OSError, ValueError) as error:
        faults.add(file, None, f"no list of records ({error})")
        return
    for number, record in enumerate(exported, start=1):
        if isinstance(record, dict):
            yield number, record
        else:
            faults.add(file, number, f"expected an object in the list, got {shown(record)}")


def told_by_a_tool(record: Record, dimension: str) -> tuple[str, list[Any]] | None:
    """The id of a tool's record and what was said of it; None of any other record. ValueError for a damaged one."""
    said: dict[str, list[Any]] = {}
    try:
        if {"data", "annotations"} <= record.keys():
            id = read_text(record["data"], "id")
            for annotation in record["annotations"]:
                for result in () if annotation.get("was_cancelled") else annotation["result"]:
                    if result["type"] == "choices":
                        choices = result["value"]["choices"]
                        # Several are shown as they are: no label.
                        said.setdefault(result["from_name"], []).append(choices[0] if len(choices) == 1 else choices)
        elif {"fields", "responses"} <= record.keys():
            id = read_text(record, "id")
            said = {question: [one["value"] for one in given] for question, given in record["responses"].items()}
        else:
            return None
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"no task of Label Studio and no record of Argilla ({error!r})") from None
    if said and not {dimension, LABEL} & said.keys():
        raise ValueError(f"no question {dimension!r} or {LABEL!r}; there are: {listed(list(said))}")
    return id, said.get(dimension, said.get(LABEL, []))
