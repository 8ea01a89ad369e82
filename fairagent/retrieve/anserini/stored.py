"""The documents that an index of Anserini's stores: their titles and texts, of whatever form the collection had."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairagent.errors import DataError
from fairagent.intake.json_text import parse_json
from fairagent.retrieve.anserini.opened import AnseriniIndex
from fairagent.retrieve.java import java_class, using_java
from fairagent.types import Document

RAW, CONTENTS = "raw", "contents"
TITLES = ("title", "headline", "heading")
TEXTS = ("contents", "text", "passage", "segment", "body", "abstract")
"""Where the title and the text are in raw JSON: the first of these keys that it has."""
LEFT_OUT = frozenset({"id", "_id", "docid", "vector"})


def has_texts(index: AnseriniIndex) -> bool:
    """Whether an index stores the texts of its documents."""
    return bool(index.stored & {RAW, CONTENTS})


class StoredDocuments:
    """The documents as an index stores them."""

    def __init__(self, index: AnseriniIndex) -> None:
        self._index = index
        self._field = RAW if RAW in index.stored else CONTENTS

    def named(self, id: str) -> Document:
        """The document with this id; DataError where the index lacks it or stores no text of it."""
        return self._read(id, int(self._index.ids.known([id])[0]))

    def numbered(self, number: int) -> Document:
        """The document with this number; DataError where the index stores no text of it."""
        return self._read(self._index.ids.names(np.array([number]))[0].decode(), number)

    def _read(self, id: str, number: int) -> Document:
        with using_java(), self._index.sound():
            stored = self._index.reader.storedFields().document(number).get(self._field)
        if stored is None:
            raise DataError(f"the index at {self._index.folder} stores no text of document {id!r}")
        return parsed(id, stored)


def parsed(id: str, stored: str) -> Document:
    """The document that a stored text is: a JSON object, a page or record with tags, or plain text.

    >>> found = parsed("7", '{"id": "7", "title": "Bonn", "contents": "A city.", "year": 1288}')
    >>> found.id, found.title, found.text, found.extra
    ('7', 'Bonn', 'A city.', {'year': 1288})
    >>> parsed("7", "A city.").text
    'A city.'
    """
    record = _record(stored)
    if record is not None:
        title = next((key for key in TITLES if isinstance(record.get(key), str)), "")
        text = next((key for key in TEXTS if isinstance(record.get(key), str)), "")
        if text:
            extra = {key: value for key, value in record.items() if key not in LEFT_OUT | {title, text}}
            return Document(id, record[text], record[title] if title else "", extra)
    if stored.lstrip().startswith("<"):
        with using_java():
            return Document(id, java_class("org.jsoup.Jsoup").parse(stored).text())
    return Document(id, stored)


def _record(stored: str) -> Mapping[str, Any] | None:
    if not stored.lstrip().startswith("{"):
        return None
    try:
        found = parse_json(stored)
    except ValueError:
        return None
    return found if isinstance(found, Mapping) else None
