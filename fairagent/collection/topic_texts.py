"""Topics as TREC writes them: `<top>` with `<num>`, `<title>`, `<desc>` and `<narr>`, closed or not, or as XML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from fairagent.collection.encodings import decoded, is_utf8
from fairagent.collection.records import Faults, checked_id, shown
from fairagent.storage.readers import Malformed, file_text

TopicRecord = Mapping[str, str]
"""`id`, `query`, and `description` and `narrative` where the file has them."""

LARGEST_TOPICS = 1 << 26
"""Bytes."""
FIELDS = {
    **dict.fromkeys(("title", "query"), "query"),
    **dict.fromkeys(("desc", "description", "question", "summary"), "description"),
    **dict.fromkeys(("narr", "narrative"), "narrative"),
    **dict.fromkeys(("num", "number"), "id"),
}
"""Tag -> the field of a topic."""
TOPICS = ("top", "topic")
_TAG = re.compile(r"<(/?)([A-Za-z][\w-]{0,30})([^<>]{0,300})>")
_ID = re.compile(r"""\b(?:number|num|id|qid)\s*=\s*["']?([^"'\s>]+)""")
_LABEL = re.compile(r"^\s*(?:Number|Topic|Title|Description|Narrative)\s?:", re.IGNORECASE)


def are_topics(start: str) -> bool:
    r"""Whether a text that begins so is topics in tags.

    >>> are_topics("\n<top>\n<num> Number: 301"), are_topics("<DOC>"), are_topics('{"id": 1}')
    (True, False, False)
    >>> are_topics('{"text": "<topic> is a tag"}')
    False
    """
    if not start.lstrip().startswith("<"):
        return False
    return any(tag[2].lower() in TOPICS or tag[2].lower() == "topics" for tag in _TAG.finditer(start[:2000]))


def topics_text(path: Path, encoding: str = "") -> str:
    """The text of a file of topics; raises DataError where it cannot be read."""
    if encoding or not is_utf8(path):
        return decoded(path, encoding).text
    faults = Faults()
    try:
        return file_text(path, LARGEST_TOPICS)
    except FileNotFoundError:
        faults.add(path, None, "no such file")
    except OSError as error:
        faults.add(path, None, f"cannot be read ({error.strerror or error})")
    except Malformed as error:
        faults.add(path, error.line, str(error))
    faults.check(str(path))
    raise AssertionError


def read_topics(path: Path, text: str) -> list[TopicRecord]:
    """The topics of a text; raises DataError with every topic that has no number or no words, or occurs twice."""
    faults, topics, seen = Faults(), list[TopicRecord](), set[str]()
    for line, fields in _topics(text):
        id = fields.get("id", "").split(" ")[0]
        query = fields.get("query") or fields.get("description", "")
        if not id:
            faults.add(path, line, f"a topic without a number: {shown(query)}")
        elif not query:
            faults.add(path, line, f"topic {shown(id)} has neither a title nor a description")
        elif id in seen:
            faults.add(path, line, f"topic {shown(id)} occurs twice")
        else:
            try:
                topics.append({**fields, "id": checked_id(id, "topic"), "query": query})
            except ValueError as error:
                faults.add(path, line, str(error))
        seen.add(id)
    if not topics and not faults:
        faults.add(path, None, "there is no <top> or <topic> in it")
    faults.check(str(path))
    return topics


def _topics(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Each topic's fields, with the line that it begins on. A tag ends what the one before it has begun."""
    fields: dict[str, str] = {}
    begun, field, start, line, counted = 0, "", 0, 1, 0
    for tag in _TAG.finditer(text):
        closes, name = bool(tag[1]), tag[2].lower()
        if field and begun and field not in fields:
            fields[field] = _plain(text[start : tag.start()])
        field, start = "" if closes else FIELDS.get(name, ""), tag.end()
        line, counted = line + text.count("\n", counted, tag.start()), tag.start()
        if name in TOPICS:
            if begun and fields:
                yield begun, fields
            begun, fields = (0, {}) if closes else (line, {})
            if number := None if closes else _ID.search(tag[3]):
                fields["id"] = number[1]
    if begun and fields:
        yield begun, fields


def _plain(text: str) -> str:
    return " ".join(html.unescape(_LABEL.sub("", text)).split())
