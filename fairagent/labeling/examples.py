"""The labeled examples that labels are made from: those that the collection has, and those of a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fairagent.collection import Collection
from fairagent.collection.groups import tables_of
from fairagent.collection.known import KnownIds, compare_ids
from fairagent.collection.records import Faults, checked_id, field_reader, listed, shown
from fairagent.errors import DataError, UsageError
from fairagent.labeling.tools import LABEL, records_of, told_by_a_tool
from fairagent.types.common import counted

FEWEST = 10
"""Examples in all; with fewer nothing can be said of errors."""
FEWEST_OF_GROUP = 3
"""Examples of a group, one a fold of the cross-validation; with fewer it is not predicted."""


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Documents whose label in one dimension is known: `groups` (n,) are places in `labels`.

    `given` are all ids that have a label, those of several labels included: nothing is made for them. `own` are the
    labels that come from a file, which the collection lacks. `notes` say what is left out.
    """

    dimension: str
    labels: tuple[str, ...]
    ids: tuple[str, ...]
    groups: NDArray[np.intp]
    given: frozenset[str]
    own: Mapping[str, str]
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
    labels, of_document, given = _in_collection(collection, dimension)
    notes: list[str] = []
    own: dict[str, str] = {}
    if file is not None:
        own = read_examples(file, dimension)
        if note := compare_ids(f"examples in {file.name}", own, documents):
            notes.append(note)
            own = {id: label for (id, label), there in zip(own.items(), documents.has(list(own)), strict=True) if there}
        wrong = [
            f"{shown(id)} is {shown(label)} there, and {shown(of_document.get(id, 'several'))} in the collection"
            for id, label in own.items()
            if id in given and of_document.get(id) != label
        ]
        if wrong:
            raise DataError(
                f"{file}: {counted(len(wrong), 'example')} that contradict the collection: {listed(wrong, 5)}"
            )
        own = {id: label for id, label in own.items() if id not in given}
        of_document |= own
        given |= own.keys()
    if documents.whole:
        every = list(of_document)
        of_document = {id: of_document[id] for id, there in zip(every, documents.has(every), strict=True) if there}
    sizes = Counter(of_document.values())
    if len(of_document) < FEWEST and not few:
        few_examples = f"{counted(len(of_document), 'labeled example')} of {dimension!r}"
        raise DataError(
            f"{few_examples}, and {FEWEST} are needed, better 50 to 200; give more (--examples FILE, or --ask)"
        )
    rare = [label for label, size in sizes.items() if size < FEWEST_OF_GROUP]
    known = sorted(label for label in sizes if label not in rare)
    if len(known) < 2 and not few:
        only = listed([f"{label} {size:,}" for label, size in sizes.most_common()])
        raise DataError(f"examples of {dimension!r} are of one group alone ({only}); give some of another")
    if rare:
        notes.append(f"fewer than {FEWEST_OF_GROUP} examples, so never made, of: {listed(sorted(rare))}")
    world = collection.population.get(dimension, {})
    if absent := [label for label in dict.fromkeys((*labels, *world)) if label not in sizes]:
        notes.append(f"no example, so never made, of: {listed(absent)}")
    place = {label: number for number, label in enumerate(known)}
    ids = tuple(id for id in sorted(of_document) if of_document[id] in place)
    groups = np.array([place[of_document[id]] for id in ids], np.intp)
    return Examples(dimension, tuple(known), ids, groups, frozenset(given), own, tuple(notes))


def _in_collection(collection: Collection, dimension: str) -> tuple[tuple[str, ...], dict[str, str], set[str]]:
    """The labels of the dimension, the documents with one of them, and all documents with any."""
    if dimension not in collection.groups.dimensions:
        return (), {}, set()
    groups = collection.groups
    if dimension in groups.predicted:
        raise UsageError(f"{dimension!r} has made labels already; name the groups file with the given ones alone")
    table = next((one for one in tables_of(groups) if dimension in one.dimensions), None)
    if table is None:
        raise UsageError(f"labels of {dimension!r} hang on the topic, or are combined of others; they cannot be made")
    labels, one, some = groups.labels(dimension), dict[str, str](), set[str]()
    for _, ids in table.batches():
        rows = table.memberships(dimension, ids)[:, 1:]
        some.update(ids[place] for place in np.flatnonzero(rows.sum(axis=1)).tolist())
        single = (rows > 0).sum(axis=1) == 1
        for place in np.flatnonzero(single).tolist():
            one[ids[place]] = labels[int(rows[place].argmax())]
    return labels, one, some


def read_examples(file: Path, dimension: str) -> dict[str, str]:
    """Id -> label of a file of examples in any form of records; rows without a label are passed over.

    The label is in the field that is named like the dimension, else in `label`; exports of Label Studio and Argilla are
    read as well (`fairagent.labeling.tools`). DataError with all that is wrong.
    """
    faults, read_id, labels = Faults(), field_reader("id"), dict[str, str]()
    for number, record in records_of(file, faults):
        try:
            if (told := told_by_a_tool(record, dimension)) is None:
                field = dimension if dimension in record else LABEL
                if field not in record:
                    raise ValueError(f"no field {dimension!r} or {LABEL!r}; there are: {listed(list(record))}")
                told = read_id(record), [record[field]]
            id = checked_id(told[0], "document")
            for value in told[1]:
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
