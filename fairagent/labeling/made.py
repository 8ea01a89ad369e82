"""Made labels: chances for documents without a label, how far they are right, and the file that holds them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fairagent.collection import Collection, GroupTable
from fairagent.collection.groups import tables_of
from fairagent.collection.label_errors import LabelErrors
from fairagent.collection.table_buffer import Labels, TableBuffer
from fairagent.labeling.classifier import LabelClassifier
from fairagent.labeling.examples import Examples
from fairagent.measures import calibration_error, confusion_matrix, reliability
from fairagent.measures.unawareness import Bin
from fairagent.storage.files import whole_file
from fairagent.types import FloatArray

DIGITS = 4
GIVEN = "given"


@dataclass(frozen=True, slots=True, eq=False)
class MadeLabels:
    """The labels of one dimension: `chances` (m, g) over the examples' labels for the documents `ids`, which have none.

    `labeled` (m,) is False where the labeler abstains. `source` says what made them, `bins` how far chances were right.
    """

    examples: Examples
    source: str
    ids: tuple[str, ...]
    chances: FloatArray
    labeled: NDArray[np.bool_]
    errors: LabelErrors
    bins: tuple[Bin, ...]

    def labels(self, id: str, row: FloatArray) -> dict[str, float]:
        """Label -> chance, rounded, of which those that are nothing are left out."""
        rounded = np.round(row, DIGITS)
        rounded[rounded.argmax()] += 1.0 - rounded.sum()
        pairs = zip(self.examples.labels, rounded.tolist(), strict=True)
        return {label: round(chance, DIGITS) for label, chance in pairs if chance > 0}


def errors_of(examples: Examples, classifier: LabelClassifier, source: str) -> tuple[LabelErrors, tuple[Bin, ...]]:
    """How far the classifier was right about examples that it was not made from, and its reliability."""
    held_out, groups = classifier.held_out, examples.groups
    right = held_out.argmax(axis=1) == groups
    errors = LabelErrors(
        dimension=examples.dimension,
        source=source,
        labels=examples.labels,
        examples=examples.counts,
        confusion=tuple(map(tuple, confusion_matrix(held_out, groups.tolist()).tolist())),
        right=tuple(float(right[groups == number].mean()) for number in range(len(examples.labels))),
        accuracy=float(right.mean()),
        calibration=calibration_error(held_out, groups.tolist()),
    )
    return errors, tuple(reliability(held_out, groups.tolist()))


def rows_of(collection: Collection, made: MadeLabels) -> Iterator[tuple[str, Labels, str]]:
    """Each document of the dimension with its labels and their source: the given ones as they are, then the made ones.

    A document that the labeler abstains from is there without a label.
    """
    dimension, own = made.examples.dimension, made.examples.own
    if dimension in collection.groups.dimensions:
        labels = collection.groups.labels(dimension)
        table = next(one for one in tables_of(collection.groups) if dimension in one.dimensions)
        for _, ids in table.batches():
            for id, row in zip(ids, table.memberships(dimension, ids), strict=True):
                if id in made.examples.given and id not in own:
                    shares = {label: float(share) for label, share in zip(labels, row[1:], strict=True) if share > 0}
                    unknown = 1.0 - sum(shares.values())
                    whole = len(shares) == 1 and unknown < 1e-6
                    yield id, next(iter(shares)) if whole else _rounded(shares), GIVEN
    for id, label in own.items():
        yield id, label, GIVEN
    for id, row, labeled in zip(made.ids, made.chances, made.labeled.tolist(), strict=True):
        yield id, made.labels(id, row) if labeled else None, made.source if labeled else f"{made.source}: abstained"


def _rounded(shares: Mapping[str, float]) -> dict[str, float]:
    total = sum(shares.values())
    return {label: round(share / total, 6) for label, share in shares.items()}


def write_labels(path: Path, collection: Collection, made: MadeLabels) -> None:
    """Write the labels as JSON lines, which `groups` of a collection file can name."""
    with whole_file(path) as stream:
        for id, labels, source in rows_of(collection, made):
            record = {"id": id, made.examples.dimension: labels, "source": source}
            stream.write((json.dumps(record, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass"))


def with_labels(collection: Collection, made: MadeLabels) -> Collection:
    """The collection with the given and the made labels of this dimension alone, as if its file named them."""
    dimension = made.examples.dimension
    groups = collection.groups
    known = groups.labels(dimension) if dimension in groups.dimensions else ()
    rows = [(id, labels) for id, labels, _ in rows_of(collection, made)]
    of_type = groups.of_type(dimension, [id for id, _ in rows]) if dimension in groups.dimensions else None
    labels = tuple(dict.fromkeys((*known, *made.examples.labels)))
    buffer = TableBuffer({dimension: labels}, predicted=[dimension], typed=[] if of_type is None else [dimension])
    for number, (id, label) in enumerate(rows, start=1):
        buffer.add(id, {dimension: label}, number, [dimension] if of_type is not None and of_type[number - 1] else [])
    label_errors = {**collection.label_errors, dimension: made.errors}
    return replace(collection, groups=GroupTable(*buffer.finish()), label_errors=label_errors)
