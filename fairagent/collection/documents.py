"""The documents of a collection, streamed from their files and never all in memory."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from fairagent.collection.bounds import STORED
from fairagent.collection.config import ROW, DocumentsFile
from fairagent.collection.forms import ROW_WARNING, count_records, files_of, mended_note, records
from fairagent.collection.records import Faults, Record, checked_id, field_reader, read_text, shown, template_fields
from fairagent.errors import DataError, UsageError
from fairagent.storage.digests import file_digest
from fairagent.types import Document
from fairagent.types.common import counted


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
    _mended: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    _blank: list[str] = field(default_factory=list, init=False, repr=False, compare=False)

    def __iter__(self) -> Iterator[Document]:
        faults, blank, empty = Faults(), 0, True
        self._mended.clear()
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
                if not faults and self._is_drawn(document.id):
                    empty = False
                    yield document
            if faults.mended:
                self._mended[path.name] = mended_note(faults.mended, path.name)
                faults.mended.clear()
        if not hashes and not faults:
            faults.add(self.paths[0], None, "there are no documents")
        elif not titled:
            faults.add(self.paths[0], None, f"no document has the title field {self.fields.title!r}")
        self._find_duplicates(hashes, faults)
        faults.check(f"the documents of collection {self.name!r}")
        self._blank[:] = blank_note(blank, len(hashes))
        if empty:
            raise UsageError(f"`share: {self.share}` of the documents leaves none; use more of them")

    def _is_drawn(self, id: str) -> bool:
        if self.share == 1:
            return True
        digest = hashlib.sha256(id.encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8]) < self.share * 2**64

    @property
    def notes(self) -> tuple[str, ...]:
        """What deleting a row does where ids are numbers of rows; of the last pass, ids mended and blank documents."""
        return (*([ROW_WARNING] if self.fields.id == ROW else []), *self._mended.values(), *self._blank)

    def count(self) -> int:
        """About how many documents the files seem to hold; errors show up when the documents are read."""
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

    def _find_duplicates(self, hashes: array[int], faults: Faults) -> None:
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
        """How many there are."""
        return len(self.documents)

    def fingerprint(self) -> str:
        """SHA-256 (hex) over all of their fields, in order."""
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
        """None."""
        return 0

    def fingerprint(self) -> str:
        """The same for all."""
        return ""
