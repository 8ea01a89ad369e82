"""What has become of a file of documents since `fairagent init` saw it: gone, renamed, or with another header."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice
from pathlib import Path

from fairagent.collection.config import CollectionFile, DocumentsFile, RecordsFile, Seen
from fairagent.collection.forms import form_of, records
from fairagent.collection.records import Faults, listed, template_fields
from fairagent.collection.row_ids import CONTENT, ROW
from fairagent.storage.digests import file_digest

FEW = 100
"""Files that are compared with one that is gone, and rows in which the columns of a file are looked for."""
_COPY = re.compile(r"\.(mended\.jsonl|utf8\.\w+)(\.gz)?$")


def if_copy(fields: DocumentsFile) -> list[str]:
    """A note where the documents are a copy that an earlier version made of a user's file."""
    copies = [name for name in fields.path if _COPY.search(name)]
    made = f"{listed(copies)} is a copy that an earlier `fairagent init` made of your file"
    return [f"{made}: what you delete there stays here and is found; run `fairagent init` anew"] if copies else []


def if_gone(path: Path, seen: Seen | None) -> str:
    """What to add to an error about a file that is not there: what was seen, and what it may be called now."""
    if seen is None:
        return ""
    said = f"; `fairagent init` saw {seen.rows:,} rows in it, with the columns {listed(seen.columns)}"
    beside = [file for file in sorted(path.parent.glob(f"*{path.suffix}")) if file.is_file()][:FEW]
    for file in beside if seen.sha256 else ():
        with suppress(OSError):
            if file_digest(file) == seen.sha256:
                return f"{said}; {file.name} has the same content: if it was renamed, name it as the `path`"
    names = listed([file.name for file in beside]) or "none"
    return f"{said}; name its new place as `path` (files of its kind in this folder: {names})"


def if_other_header(path: Path, settings: CollectionFile) -> str:
    """What is wrong with the header of a file of documents, as it lacks a column that is used; "" where nothing is."""
    fields = settings.documents
    if fields is None or fields.seen is None:
        return ""
    plain = RecordsFile(format=fields.format, columns=fields.columns, encoding=fields.encoding)
    first = islice(records(path, plain, Faults()), FEW)
    there = list(dict.fromkeys(name for _, record in first for name in record))
    used = {name: "id" for name in template_fields(fields.id) or (fields.id,) if name not in (ROW, CONTENT)}
    used |= dict.fromkeys(fields.text, "text")
    # An object in JSON may lack what others have, but for its id and its text.
    if form_of(path, fields.format) != "jsonl":
        used |= {fields.title: "title"} if fields.title else {}
        for block in settings.groups:
            columns = block.dimensions.items() if block.path in fields.path else ()
            used |= {column.column or name: "groups" for name, column in columns}
    missing = [f"{name!r} ({role})" for name, role in used.items() if name not in there]
    if not there or not missing:
        return ""
    columns_now = f"there are: {listed(there)}; `fairagent init` saw {listed(fields.seen.columns)}"
    return f"another header than before: no column {listed(missing)}; {columns_now}; name them anew, or run it again"
