"""How a document lies in the index, and how many cross to Java at once.

The fields are those of Anserini, so that pyserini's LuceneSearcher opens the index: `id` (as a term, stored, and in
docvalues), `contents` (title and text, with frequencies, without positions) and `raw`, a stored JSON object with `id`,
`title`, `contents` (the text alone) and `extra`. `number`, the document's key (`Places`), is ours: pools are scored and
documents removed by it.
"""

import json
from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from typing import Any

from fairagent.errors import DataError
from fairagent.intake.json_text import parse_json
from fairagent.retrieve.handles import (
    OBJECT,
    STRING,
    STRINGS,
    as_function,
    bound,
    collected,
    constructor,
    fed,
    method,
    number,
    ordered,
    piped,
    signature,
    spread,
    static,
    typed,
)
from fairagent.retrieve.java import java_class
from fairagent.retrieve.lucene.catalog import DIGEST
from fairagent.types import Document

KEY = "number"
"""The field of a document's key."""
BETWEEN_DOCUMENTS, BETWEEN_FIELDS = "\0", "\x1f"
"""Neither is in a JSON text, the first in no id; every analyzer ends a word there."""
BLANKS = {ord(BETWEEN_DOCUMENTS): " ", ord(BETWEEN_FIELDS): " "}
FIELD, STREAM, LIST, FUNCTION = (
    "org.apache.lucene.document.",
    "java.util.stream.Stream",
    "java.util.List",
    "java.util.function.",
)
BYTES_REF, ITERABLE, CHARACTERS = "org.apache.lucene.util.BytesRef", "java.lang.Iterable", "java.lang.CharSequence"


def digest(document: Document) -> bytes:
    """16 bytes that change whenever a field of the document does.

    Raises DataError where it holds half of a surrogate pair.
    """
    extra = json.dumps(dict(document.extra), ensure_ascii=False) if document.extra else ""
    said = f"{len(document.title)} {len(document.text)} {document.title}{document.text}{extra}"
    try:
        return blake2b(said.encode(), digest_size=DIGEST).digest()
    except UnicodeEncodeError as error:
        near = said[max(0, error.start - 20) : error.start + 20]
        raise DataError(
            f"document {document.id!r}: half of a surrogate pair (not valid Unicode) in the text, near {near!r}"
        ) from None


def line_of(document: Document, key: int) -> str:
    """A document as it crosses to Java: what is analyzed, what is stored, its key and its id."""
    raw = {"id": document.id, "title": document.title, "contents": document.text, "extra": dict(document.extra)}
    contents = f"{document.title} {document.text}"
    if BETWEEN_DOCUMENTS in contents or BETWEEN_FIELDS in contents:
        contents = contents.translate(BLANKS)
    return BETWEEN_FIELDS.join((contents, json.dumps(raw, ensure_ascii=False), str(key), document.id))


def document_of(raw: str) -> Document:
    """The document of a stored `raw`; raises ValueError, KeyError or TypeError where it is none."""
    stored = parse_json(raw)
    return Document(stored["id"], stored["contents"], stored["title"], stored["extra"])


def adding(writer: Any, lines: Sequence[str]) -> Any:
    """A java.lang.Runnable that adds the documents of these lines to a Lucene index, in order."""
    documents = _split(BETWEEN_DOCUMENTS.join(lines)).map(_as_document())
    add = typed(
        bound(method("org.apache.lucene.index.IndexWriter", "addDocument", "long", ITERABLE), writer), "void", OBJECT
    )
    consumer = as_function(f"{FUNCTION}Consumer", add)
    every = method(STREAM, "forEachOrdered", "void", f"{FUNCTION}Consumer")
    return as_function("java.lang.Runnable", bound(every, documents, consumer))


def _split(text: str) -> Any:
    """A java.util.stream.Stream of the lines, not yet begun."""
    return java_class("java.util.regex.Pattern").compile(BETWEEN_DOCUMENTS).splitAsStream(text)


@cache
def _as_document() -> Any:
    """A java.util.function.Function from a line to the list of fields that is a document to Lucene."""
    stored = java_class(f"{FIELD}Field$Store").YES
    frequencies = java_class("org.apache.lucene.index.IndexOptions").DOCS_AND_FREQS
    kind = java_class(f"{FIELD}FieldType")()
    kind.setIndexOptions(frequencies)
    kind.freeze()
    text = constructor(f"{FIELD}Field", STRING, CHARACTERS, "org.apache.lucene.index.IndexableFieldType")
    digits = static("java.lang.Integer", "parseInt", "int", STRING)
    makers = (
        bound(bound(text, kind, at=2), "contents"),
        bound(constructor(f"{FIELD}StoredField", STRING, STRING), "raw"),
        fed(collected(bound(constructor(f"{FIELD}IntPoint", STRING, "[I"), KEY), "[I"), digits),
        bound(bound(constructor(f"{FIELD}StringField", STRING, STRING, f"{FIELD}Field$Store"), stored, at=2), "id"),
        fed(
            bound(constructor(f"{FIELD}BinaryDocValuesField", STRING, BYTES_REF), "id"),
            constructor(BYTES_REF, CHARACTERS),
        ),
    )
    listed = static(LIST, "of", LIST, *[OBJECT] * len(makers))
    fields = fed(listed, *[typed(maker, OBJECT, STRING) for maker in makers])
    # The id is the last part of the line, and of two fields.
    of_parts = spread(ordered(fields, signature(LIST, *[STRING] * 4), 0, 1, 2, 3, 3), STRINGS, 4)
    parts = bound(bound(method(STRING, "split", STRINGS, STRING, "int"), number(4), at=2), BETWEEN_FIELDS, at=1)
    return as_function(f"{FUNCTION}Function", piped(parts, of_parts))
