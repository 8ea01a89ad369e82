"""`Collection`: documents, streamed from their files, topics, judgments and groups; and what it was read from."""

import hashlib
import json
import os
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fairagent.collection.config import ROW, Chunks, DocumentsFile, passages, template_fields
from fairagent.collection.labels import LabelErrors, Labeling
from fairagent.collection.records import (
    ROW_WARNING,
    Faults,
    Record,
    checked_id,
    count_records,
    field_reader,
    files_of,
    mended_note,
    read_text,
    records,
    shown,
)
from fairagent.collection.rows import STORED, Bounds
from fairagent.collection.table import Groups
from fairagent.errors import DataError, UsageError
from fairagent.settings import Part
from fairagent.storage.digests import file_digest
from fairagent.types import Document, Topic
from fairagent.types.common import Summarized, counted

if TYPE_CHECKING:
    from fairagent.collection.load import GroupColumns


class Source(Protocol):
    """Where the documents of a collection come from."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was odd in the last complete pass, though no error."""

    def __iter__(self) -> Iterator[Document]:
        """Read the documents."""

    def count(self) -> int:
        """About how many documents there are, for a progress bar."""

    def fingerprint(self) -> str:
        """A hash that changes whenever the documents do."""


@dataclass(frozen=True, slots=True)
class Documents:
    """The document files of one collection and what their fields mean; iterating reads them.

    With a `share` below 1 they are those whose id has a hash below it, whatever else there is. A pass that meets an
    error yields nothing from there on, reads to the end and raises one DataError with all of them. A pass needs 8 bytes
    a document (to notice ids that occur twice).
    """

    name: str
    paths: tuple[Path, ...]
    fields: DocumentsFile
    share: float = 1.0
    _notes: list[str] = field(default_factory=list, init=False, repr=False, compare=False)

    def __iter__(self) -> Iterator[Document]:
        faults, blank, empty, notes = Faults(), 0, True, list[str]()
        hashes = array("q")
        titled = self.fields.title is None
        read_id = field_reader(self.fields.id)
        for path in self.paths:
            for number, record in records(path, self.fields, faults):
                titled = titled or self.fields.title in record
                try:
                    document = document_of(checked_id(read_id(record), "document"), record, self.fields)
                except ValueError as error:
                    faults.add(path, number, str(error))
                    continue
                hashes.append(hash(document.id))
                blank += not document.text.strip()
                if faults:
                    continue
                digest = hashlib.sha256(document.id.encode("utf-8", "surrogatepass")).digest()
                if self.share == 1 or int.from_bytes(digest[:8]) < self.share * 2**64:
                    empty = False
                    yield document
            if faults.mended:
                notes.append(mended_note(faults.mended, path.name))
                faults.mended.clear()
        if not hashes and not faults:
            faults.add(self.paths[0], None, "there are no documents")
        elif not titled:
            faults.add(self.paths[0], None, f"no document has the title field {self.fields.title!r}")
        self._find_duplicates(hashes, faults)
        faults.check(f"the documents of collection {self.name!r}")
        self._notes[:] = notes + blank_note(blank, len(hashes))
        if empty:
            raise UsageError(f"`share: {self.share}` of the documents leaves none; use more of them")

    @property
    def notes(self) -> tuple[str, ...]:
        """What deleting a row does where ids are numbers of rows; of the last pass, ids mended and blank documents."""
        return (*([ROW_WARNING] if self.fields.id == ROW else []), *self._notes)

    def count(self) -> int:
        return round(self.share * sum(count_records(path, self.fields) for path in self.paths))

    def fingerprint(self) -> str:
        """SHA-256 (hex) over the bytes of the files, in order, and the fields; not over their names."""
        # Unset they are left out, so that indexes from before there were any stay good.
        unset = set() if self.fields.format or self.fields.columns else {"format", "columns"}
        unset |= {name for name in ("encoding", "ids") if not getattr(self.fields, name)}
        fields = self.fields.model_dump(exclude={"path", "seen"} | unset)
        digest = hashlib.sha256(json.dumps(fields, sort_keys=True).encode())
        for path in (file for place in self.paths for file in files_of(place)):
            try:
                digest.update(bytes.fromhex(file_digest(path)))
            except FileNotFoundError:
                raise DataError(f"{path}: the document file is gone") from None
        whole = digest.hexdigest()
        return whole if self.share == 1 else hashlib.sha256(f"{whole} {self.share}".encode()).hexdigest()

    def _find_duplicates(self, hashes: "array[int]", faults: Faults) -> None:
        """Add an error for each id that came before; reads the files again only if hashes are equal."""
        ordered = np.sort(np.frombuffer(hashes, np.int64)) if hashes else np.empty(0, np.int64)
        suspects = set(ordered[1:][ordered[1:] == ordered[:-1]].tolist())
        first: dict[str, str] = {}
        read_id = field_reader(self.fields.id)
        for path in self.paths if suspects else ():
            for number, record in records(path, self.fields, Faults()):
                try:
                    id = read_id(record)
                except ValueError:
                    continue
                here = f"{path.name}:{number}"
                if hash(id) in suspects and first.setdefault(id, here) != here:
                    message = f"the document id {shown(id)} is that of {first[id]} already"
                    faults.add(path, number, f"{message}; `ids: mend` gives it another")


def document_of(id: str, record: Record, fields: DocumentsFile) -> Document:
    """The document of one record; ValueError where a field of its text or title is missing or is no text.

    A null is an empty text, as an empty cell of a CSV file is.
    """
    texts = [read_text(record, name) for name in fields.text if record.get(name, "") is not None]
    title = fields.title
    used = {title, *fields.text, *(() if template_fields(fields.id) else (fields.id,))}
    return Document(
        id=id,
        text=" ".join(text for text in texts if text),
        title=read_text(record, title) if title and record.get(title) is not None else "",
        extra={name: value for name, value in record.items() if name not in used and isinstance(value, STORED)},
    )


def blank_note(blank: int, documents: int) -> list[str]:
    """What to know of documents without a text, if any."""
    return [f"{blank:,} of {counted(documents, 'document')} without a text"] if blank else []


@dataclass(frozen=True, slots=True, weakref_slot=True)
class DocumentsInMemory:
    """Documents that a program has at hand."""

    documents: tuple[Document, ...]
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Document]:
        return iter(self.documents)

    def count(self) -> int:
        return len(self.documents)

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for one in self.documents:
            line = json.dumps([one.id, one.title, one.text, dict(one.extra)], sort_keys=True)
            digest.update(f"{line}\n".encode())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class NoDocuments:
    """The documents of a collection that names none: they are in an index that fairagent did not build."""

    name: str
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Document]:
        raise UsageError(
            f"collection {self.name!r} names no `documents`, so there is nothing to read or to index; add them to its "
            "settings file, or search an index that exists already (engine: opensearch, lucene)"
        )

    def count(self) -> int:
        return 0

    def fingerprint(self) -> str:
        return ""


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

    def is_of(self, collection: "Collection") -> bool:
        """Whether the collection has the documents and groups that were read, and no others in their place."""
        its = collection.source, collection.groups, collection.chunks
        return all(mine is other for mine, other in zip(self.made, its, strict=True))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Collection(Summarized):
    """Everything about a collection but its documents is in memory; those are streamed.

    `topics` are in the order of their file. `qrels` has an entry for each topic: document -> grade, where a grade >
    0 is relevant and 0 is judged and not relevant; it is empty where there are no judgments. `population` maps
    dimension -> label -> world share. `target` is what its groups should get where a search says nothing else: one
    target, or one for some of the dimensions. A track judges by its own target, `judged`, whatever that is. `notes`
    say what was left out or is worth knowing, though it is no error. With `chunks` an index of the collection holds
    passages of its documents; everything else is about documents. `origin` is what it was loaded from. For whoever
    searches its index, `indexed` is the fingerprint of what that was made of, and `behind` says where the documents
    have changed since. `label_errors` says of predicted dimensions how far their labels are right, where a file
    tells.
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
        groups: "GroupColumns" = (),
        title: str | None = None,
        separator: str | None = None,
        population: Mapping[str, Mapping[str, float]] | None = None,
        name: str = "records",
        labels: Labeling | None = None,
        bounds: Bounds | None = None,
    ) -> "Collection":
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
        that look alike) is in `notes`, and logged as a warning. `bounds` (fairagent.collection.rows) end what has no
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
