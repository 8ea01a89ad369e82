"""Topics as TREC and SMART write them.

TREC's are `<top>` with `<num>`, `<title>`, `<desc>` and `<narr>`, closed or not, or XML; SMART's are a line `.I 7`, and
under `.W` the words.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from fairagent.collection.records import UTF8, Faults, lines, shown
from fairagent.storage.readers import first_bytes

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
_SMART = re.compile(r"^\.I[ \t]+\S+[ \t\r]*$", re.MULTILINE)
_LABEL = re.compile(r"^\s*(?:Number|Topic|Title|Description|Narrative)\s?:", re.IGNORECASE)


def has_topics(path: Path, encodings: Sequence[str] = UTF8) -> bool:
    """Whether a file holds topics in one of these forms."""
    start = first_bytes(path).decode(encodings[0], "replace").lstrip("\ufeff \t\r\n")
    return bool(_SMART.match(start)) or (
        start.startswith("<") and any(tag[2].lower() in (*TOPICS, "topics") for tag in _TAG.finditer(start[:2000]))
    )


def topic_records(path: Path, faults: Faults, encodings: Sequence[str] = UTF8) -> Iterator[tuple[int, dict[str, str]]]:
    """The line and the fields of every topic: id, query, and where they are there description and narrative.

    Adds a fault for every topic that has no number or no words, and for what cannot be read.
    """
    text = "\n".join(text for _, text in lines(path, faults, blank=True, encodings=encodings))
    for line, fields in (_smart if _SMART.match(text.lstrip()) else _topics)(text):
        id = fields.get("id", "").split(" ")[0]
        query = fields.get("query") or fields.get("description", "")
        if not id:
            faults.add(path, line, f"a topic without a number: {shown(query)}")
        elif not query:
            faults.add(path, line, f"topic {shown(id)} has neither a title nor a description")
        else:
            yield line, {**fields, "id": id, "query": query}


def _smart(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Each topic's fields: .W is the query, or where there is none .T, the title."""
    starts, line, counted = [*(match.start() for match in _SMART.finditer(text)), len(text)], 1, 0
    for start, end in pairwise(starts):
        line, counted = line + text.count("\n", counted, start), start
        id, *parts = re.split(r"^\.([A-Z])\b", text[start + 2 : end], flags=re.MULTILINE)
        fields = {name: " ".join(words.split()) for name, words in zip(parts[::2], parts[1::2], strict=True)}
        yield line, {"id": id.strip(), "query": fields.get("W") or fields.get("T", "")}


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
    if field and begun and field not in fields:
        fields[field] = _plain(text[start:])
    if begun and fields:
        yield begun, fields


def _plain(text: str) -> str:
    return " ".join(html.unescape(_LABEL.sub("", text)).split())
