"""`Collection`: documents, topics, judgments and groups; and what it was loaded from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairagent.collection.config import Chunks, passages
from fairagent.collection.documents import Source
from fairagent.collection.forms import files_of
from fairagent.collection.groups import Groups
from fairagent.collection.label_errors import LabelErrors
from fairagent.errors import UsageError
from fairagent.settings import Part
from fairagent.types import Document, Topic
from fairagent.types.common import Summarized, counted

if TYPE_CHECKING:
    from fairagent.collection.bounds import Bounds
    from fairagent.collection.labels import Labeling
    from fairagent.collection.load import GroupColumns

State = tuple[int, int, int]
"""Size, time of the last change (ns) and inode of a file; -1, 0, -1 where it is gone."""


def states_of(paths: Iterable[Path]) -> dict[Path, State]:
    """The state of each of these files, and of those in the folders of datasets."""
    states = {}
    for path in (file for place in paths for file in files_of(place)):
        try:
            stat = os.stat(path)
            states[path] = stat.st_size, stat.st_mtime_ns, stat.st_ino
        except OSError:
            states[path] = -1, 0, -1
    return states


@dataclass(frozen=True, slots=True)
class Origin:
    """The settings file of a collection, and the files of its documents and groups with their states when it was read.

    A look at the states costs a moment; that they are the same says that the files are. `made` is what was read: the
    source of the documents, the groups and the chunks.
    """

    file: Path
    states: Mapping[Path, State]
    documents: tuple[Path, ...] = ()
    made: tuple[object, ...] = ()

    def changed(self) -> bool:
        """Whether a file is not as it was."""
        return states_of(self.states) != self.states

    def documents_changed(self) -> bool:
        """Whether one of the documents' is not."""
        return any(self.states.get(path) != state for path, state in states_of(self.documents).items())

    def is_of(self, collection: Collection) -> bool:
        """Whether the collection has the documents and groups that were read, and no others in their place."""
        its = collection.source, collection.groups, collection.chunks
        return all(mine is other for mine, other in zip(self.made, its, strict=True))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Collection(Summarized):
    """Everything about a collection but its documents is in memory; those are streamed.

    `topics` are in the order of their file. `qrels` has an entry for each topic: document -> grade, where
    a grade > 0 is relevant and 0 is judged and not relevant; it is empty where there are no judgments.
    `population` maps dimension -> label -> world share. `target` is what its groups should get where a search says
    nothing else: one target, or one for some of the dimensions. A track judges by its own target, `judged`, whatever
    that is. `notes` say what was left out or is worth knowing,
    though it is no error. With `chunks` an index of the collection holds passages of its documents; everything
    else is about documents. `origin` is what it was loaded from. For whoever searches its index, `indexed` is the
    fingerprint of what that was made of, and `behind` says where the documents have changed since. `label_errors` says
    of predicted dimensions how far their labels are right, where a file tells.
    """

    name: str
    topics: Mapping[str, Topic]
    qrels: Mapping[str, Mapping[str, int]]
    groups: Groups
    population: Mapping[str, Mapping[str, float]]
    notes: tuple[str, ...]
    source: Source
    chunks: Chunks | None = None
    target: Part | Mapping[str, Part] | None = None
    judged: str = ""
    origin: Origin | None = None
    indexed: str = ""
    behind: str = ""
    label_errors: Mapping[str, LabelErrors] = field(default_factory=dict)

    @property
    def _summary(self) -> str:
        groups = ", ".join(self.groups.dimensions) or "no groups"
        return f"{self.name!r}: {counted(len(self.topics), 'topic')}, {groups}"

    @classmethod
    def from_records(
        cls,
        records: Any,
        text: str | Sequence[str] = "text",
        id: str | None = None,
        groups: GroupColumns = (),
        title: str | None = None,
        separator: str | None = None,
        population: Mapping[str, Mapping[str, float]] | None = None,
        name: str = "records",
        labels: Labeling | None = None,
        bounds: Bounds | None = None,
    ) -> Collection:
        """A collection in memory of rows, or of a file of them.

        `records` is a table of pandas, polars, pyarrow or `datasets`, an iterable of dicts, named tuples or
        dataclasses, or the path of a file in any form that collections are read from. `text` names the column with the
        text, or several; `id` that with the ids, by default `id` where the first row has one, else the content of the
        row; `title` that with the title. `groups` names the columns with the groups, or maps dimensions to
        them; a cell may be a list, a mapping to weights, or several labels with a `separator` between them; empty ones
        are unknown. `population` is the world's share of each label, for each dimension, and as it is the target, where
        a search says nothing else. `labels` cleans them: "join" joins the spellings of each label (F, Female; N/A for
        none), as `fairagent init` does; or it maps dimensions to "join" or to value -> label, or a list of labels, an
        empty one for none. What to know of the groups (more than a dozen, less than 1 % of the documents, spellings
        that look alike) is in `notes`, and logged as a warning. `bounds` (fairagent.collection.bounds) end what has no
        end: a million rows or 10 minutes of a generator, 2^30 characters of text, unless they say otherwise.

        All errors of all rows are raised together as a DataError that names the row, from 1 (of a file the line).
        UsageError for what holds no rows.
        """
        from fairagent.collection.load import collection_of

        return collection_of(records, text, id, groups, title, separator, population or {}, name, labels, bounds)

    def documents(self) -> Iterator[Document]:
        """Read what is indexed, in order: the documents, or with `chunks` their passages.

        Raises DataError with all errors at the end of a pass that meets any, UsageError where the index is `behind`.
        """
        if self.behind:
            raise UsageError("the documents have changed since they were indexed; `fairagent index` updates it")
        return passages(self.source, self.chunks) if self.chunks else iter(self.source)

    def fingerprint(self) -> str:
        """SHA-256 (hex) of what an index depends on: the bytes of the document files, the fields and chunks used."""
        if self.indexed:
            return self.indexed
        documents, chunks = self.source.fingerprint(), self.chunks
        return hashlib.sha256(f"{documents} {chunks.model_dump_json()}".encode()).hexdigest() if chunks else documents
