"""The labeled examples that labels are made from: the collection's own, and those of a file.

Files of Label Studio and Argilla are read as these export them: Label Studio's JSON is a list of tasks with the
document's id in `data.id`, Argilla's `records.to_json` a list of records (JSON lines do as well). The question is named
like the dimension, or `label`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.collection import Collection
from fairagent.collection.config import RecordsFile
from fairagent.collection.known import KnownIds, compare_ids
from fairagent.collection.records import Faults, Record, checked_id, form_of, lines, listed, read_text, records, shown
from fairagent.collection.table import tables_of
from fairagent.errors import DataError, UsageError
from fairagent.storage.readers import file_text, parse_json
from fairagent.types.common import counted

FEWEST = 10
"""Examples in all; with fewer nothing can be said of errors."""
FEWEST_OF_GROUP = 3
"""Examples of a group, one a fold of the cross-validation; with fewer it is not predicted."""
LABEL = "label"
"""The question, or the field of a file, that holds the label where none is named like the dimension."""
LARGEST = 1 << 28
"""Bytes of a list."""


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Documents whose label in one dimension is known: `groups` (n,) are places in `labels`.

    `given` are all ids that have a label, those of several labels included: nothing is made for them. `of_file` are the
    labels that come from a file, which the collection lacks. `notes` say what is left out.
    """

    dimension: str
    labels: tuple[str, ...]
    ids: tuple[str, ...]
    groups: NDArray[np.intp]
    given: frozenset[str]
    of_file: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def enough(self) -> bool:
        """Whether labels can be learned from them."""
        return len(self.ids) >= FEWEST and len(self.labels) > 1

    @property
    def counts(self) -> tuple[int, ...]:
        """How many there are of each label."""
        return tuple(np.bincount(self.groups, minlength=len(self.labels)).tolist())


def examples_of(
    collection: Collection, dimension: str, documents: KnownIds, file: Path | None = None, few: bool = False
) -> Examples:
    """The examples of `dimension`: documents with one label in the collection, and the rows (id, label) of a `file`.

    DataError where there are fewer than ten, or of one group alone, unless a `few` will do; where two rows, or a row
    and the collection, give one document different labels; and where none of a file's ids is a document's (of some it
    is a note).
    """
    groups, labels = collection.groups, tuple[str, ...]()
    notes, of_file, of_document, given = list[str](), dict[str, str](), dict[str, str](), set[str]()
    if dimension in groups.predicted:
        raise UsageError(f"{dimension!r} has made labels already; name the groups file with the given ones alone")
    if dimension in groups.dimensions:
        table = next((one for one in tables_of(groups) if dimension in one.dimensions), None)
        if table is None:
            raise UsageError(
                f"labels of {dimension!r} hang on the topic, or are combined of others; they cannot be made"
            )
        labels = groups.labels(dimension)
        for _, some in table.batches():
            for id, row in zip(some, table.memberships(dimension, some)[:, 1:], strict=True):
                places = np.flatnonzero(row)
                if places.size:
                    given.add(id)
                if places.size == 1:
                    of_document[id] = labels[places[0]]
    if file is not None:
        of_file = read_examples(file, dimension)
        if note := compare_ids(f"examples in {file.name}", of_file, documents):
            notes.append(note)
            there = documents.has(list(of_file))
            of_file = {id: label for (id, label), is_there in zip(of_file.items(), there, strict=True) if is_there}
        for id, label in of_file.items():
            if id in given and of_document.get(id) != label:
                other = shown(of_document.get(id, "several"))
                raise DataError(f"{file}: {shown(id)} is {shown(label)} there, and {other} in the collection")
        of_file = {id: label for id, label in of_file.items() if id not in given}
        of_document |= of_file
        given |= of_file.keys()
    if documents.whole:
        every = list(of_document)
        of_document = {id: of_document[id] for id, there in zip(every, documents.has(every), strict=True) if there}
    sizes = Counter(of_document.values())
    known = sorted(label for label, size in sizes.items() if size >= FEWEST_OF_GROUP)
    if len(of_document) < FEWEST and not few:
        raise DataError(
            f"{counted(len(of_document), 'labeled example')} of {dimension!r}, and {FEWEST} are needed, better 50 to "
            "200; give more (--examples FILE, or --ask)"
        )
    if len(known) < 2 and not few:
        only = listed([f"{label} {size:,}" for label, size in sizes.most_common()])
        raise DataError(f"examples of {dimension!r} are of one group alone ({only}); give some of another")
    if rare := sorted(sizes.keys() - set(known)):
        notes.append(f"fewer than {FEWEST_OF_GROUP} examples, so never made, of: {listed(rare)}")
    every_label = dict.fromkeys((*labels, *collection.population.get(dimension, {})))
    if absent := [label for label in every_label if label not in sizes]:
        notes.append(f"no example, so never made, of: {listed(absent)}")
    ids = tuple(id for id in sorted(of_document) if of_document[id] in known)
    own = np.array([known.index(of_document[id]) for id in ids], np.intp)
    return Examples(dimension, tuple(known), ids, own, frozenset(given), of_file, tuple(notes))


def read_examples(file: Path, dimension: str) -> dict[str, str]:
    """Id -> label of a file of examples in any form of records; rows without a label are passed over.

    The label is in the field that is named like the dimension, else in `label`; exports of Label Studio and Argilla are
    read as well. DataError with all that is wrong.
    """
    faults, labels = Faults(), dict[str, str]()
    for number, record in _records(file, faults):
        try:
            id, values = _labels_in(record, dimension)
            checked_id(id, "document")
            for value in values:
                if value is None or value == "":
                    continue
                if not isinstance(value, str):
                    raise ValueError(f"{shown(value)} is no label; expected a text")
                label = value.strip()
                if labels.setdefault(id, label) != label:
                    raise ValueError(f"{shown(id)} is {shown(label)} here and {shown(labels[id])} above")
        except ValueError as error:
            faults.add(file, number, str(error))
    faults.check(f"examples {file}")
    return labels


def _records(file: Path, faults: Faults) -> Iterator[tuple[int, Record]]:
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


def _labels_in(record: Record, dimension: str) -> tuple[str, list[Any]]:
    """The id of a record and the labels given to it; ValueError where it holds no such thing."""
    answers: dict[str, list[Any]] = {}
    try:
        if {"data", "annotations"} <= record.keys():
            id = read_text(record["data"], "id")
            for annotation in record["annotations"]:
                for result in () if annotation.get("was_cancelled") else annotation["result"]:
                    if result["type"] == "choices":
                        choices = result["value"]["choices"]
                        # Several are shown as they are: no label.
                        answers.setdefault(result["from_name"], []).append(choices[0] if len(choices) == 1 else choices)
        elif {"fields", "responses"} <= record.keys():
            id = read_text(record, "id")
            answers = {question: [one["value"] for one in given] for question, given in record["responses"].items()}
        else:
            id, answers = read_text(record, "id"), {name: [value] for name, value in record.items() if name != "id"}
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"no task of Label Studio and no record of Argilla ({error!r})") from None
    if answers and not {dimension, LABEL} & answers.keys():
        raise ValueError(f"no question or field {dimension!r} or {LABEL!r}; there are: {listed(list(answers))}")
    return id, answers.get(dimension, answers.get(LABEL, []))
