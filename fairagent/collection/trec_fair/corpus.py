"""The track's corpus: Wikipedia articles as gzipped JSON lines, streamed.

`id` (a whole number), `title`, `url`, and the article in `plain` or `text` (wikitext). Some ids occur twice: the first
line counts, the others are counted and named.

Plain text from wikitext by simple rules.

What is dropped: comments, references, templates (and with them infoboxes), tables, files and categories, tags, styles
and scripts. What stays: running text, the shown text of links, headings, lists, and of formulas and code the source.
Text that templates would have produced is lost, so counts of terms differ a little from the track's own plain text:
prefer its plain corpus. Time grows with the length of the text, whatever is in it.
"""

import html
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fairagent.collection.records import Faults, Record, json_records, lines, listed, read_text, shown
from fairagent.errors import DataError
from fairagent.measures.trec_fair import LARGEST_ID
from fairagent.storage.digests import file_digest
from fairagent.types import Document

DEEPEST = 20
"""Templates and links within each other are resolved this many times."""

_TEMPLATE = re.compile(r"\{\{[^{}]*\}\}")
_LINK = re.compile(r"\[\[([^\[\]]*)\]\]")
_EXTERNAL = re.compile(r"\[(?:https?:)?//[^\s\[\]]*(?:\s([^\[\]]*))?\]")
_UNSHOWN = re.compile(r"\s*(?:file|image|category):", re.IGNORECASE)
_REFERENCE = re.compile(r"<ref\b[^<>]*?(/?)>", re.IGNORECASE)
_REFERENCE_END = re.compile(r"</ref\s*>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_MARKS = re.compile(r"'{2,}|^=+|(?<!=)=+[ \t]*$|^[*#:;]+|__[A-Z]+__", re.MULTILINE)
_COMMENT, _COMMENT_END = re.compile("<!--"), re.compile("-->")
_LONG_REFERENCE = re.compile(r"&#[xX]?[0-9a-fA-F]{9,}+;?")
_SPACE = re.compile(r"\s+")


def wikitext_to_text(source: str) -> str:
    """The words of a page's wikitext, in one line."""
    text = _without(source, _COMMENT, _COMMENT_END)
    text = _without(text, _REFERENCE, _REFERENCE_END)
    for _ in range(DEEPEST):
        text, count = _TEMPLATE.subn(" ", text)
        if not count:
            break
    text = _without(text, re.compile(r"\{\|"), re.compile(r"\|\}"))
    for _ in range(DEEPEST):
        text, count = _LINK.subn(_shown, text)
        if not count:
            break
    text = _EXTERNAL.sub(lambda link: link[1] or " ", text)
    # A number of no character, however long it is, stands for U+FFFD.
    text = html.unescape(_LONG_REFERENCE.sub("\N{REPLACEMENT CHARACTER}", _MARKS.sub(" ", _TAG.sub(" ", text))))
    return re.sub(r" ([,.;:)])", r"\1", _SPACE.sub(" ", text)).strip()


def _without(text: str, start: re.Pattern[str], end: re.Pattern[str]) -> str:
    """The text without what stands from each `start` to the next `end`; what is never closed stays."""
    pieces, place = [], 0
    while opening := start.search(text, place):
        # <ref name="x"/> has no content.
        closing = opening if opening.groups() and opening[1] else end.search(text, opening.end())
        if closing is None:
            break
        pieces.append(text[place : opening.start()])
        place = closing.end()
    return "".join([*pieces, text[place:]])


def _shown(link: re.Match[str]) -> str:
    target, _, label = link[1].rpartition("|")
    return " " if _UNSHOWN.match(target or label) else label


TEXTS: dict[str, Callable[[str], str]] = {"plain": str, "text": wikitext_to_text}
"""The field with the article, and what makes plain text of it."""
SMALL = 1 << 26
"""Bytes of a file whose lines are counted."""


class PageSet:
    """A set of page ids, one bit each: 9 MB for the ids of Wikipedia."""

    def __init__(self) -> None:
        self._bits = bytearray()

    def add(self, page: int) -> bool:
        """Add a page id; return whether it is new."""
        byte, bit = page >> 3, 1 << (page & 7)
        if byte >= len(self._bits):
            self._bits.extend(bytes(byte + 1 - len(self._bits) + (byte >> 3)))
        new = not self._bits[byte] & bit
        self._bits[byte] |= bit
        return new


class Corpus:
    """The articles of a corpus file; iterating reads them. Of articles that repeat an id the first counts.

    A pass that meets an error yields nothing from there on, reads to the end and raises one DataError with all of them.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name, self.paths = name, (path,)
        self._repeated: list[str] = []

    @property
    def notes(self) -> tuple[str, ...]:
        """What was odd in the last complete pass: the ids that came again."""
        if not self._repeated:
            return ()
        repeated = f"{len(self._repeated)} ({listed(self._repeated)})"
        return (f"articles of {self.paths[0].name} that repeat an id, of which the first counts: {repeated}",)

    def __iter__(self) -> Iterator[Document]:
        faults, pages, repeated, count = Faults(), PageSet(), list[str](), 0
        path = self.paths[0]
        for number, record in json_records(path, faults):
            count += 1
            try:
                page = page_id(record.get("id"), "field 'id'")
                if not pages.add(page):
                    repeated.append(str(page))
                    continue
                # Made even where it is not used any more, for the errors in it.
                document = _document(page, record)
            except ValueError as error:
                faults.add(path, number, str(error))
                continue
            if not faults:
                yield document
        if not count and not faults:
            faults.add(path, None, "there are no articles")
        faults.check(f"the corpus of {self.name!r}")
        self._repeated = repeated

    def count(self) -> int:
        """About how many documents there are: by its size in a large file, lines in a small one."""
        path = self.paths[0]
        size = path.stat().st_size if path.is_file() else 0
        return (
            sum(1 for _ in lines(path, Faults())) if size <= SMALL else size // 1_186
        )  # the mean of 2022's plain texts, packed

    def fingerprint(self) -> str:
        """SHA-256 (hex) of the file, noted for as long as the file is the same."""
        try:
            return file_digest(self.paths[0])
        except FileNotFoundError:
            raise DataError(f"{self.paths[0]}: the corpus is gone") from None


def page_id(value: Any, what: str) -> int:
    """A page's id, a whole number; ValueError, naming `what` holds it, for anything else."""
    if type(value) is not int or not 0 <= value <= LARGEST_ID:
        raise ValueError(f"{what} is {shown(value)}, expected a whole number from 0 to {LARGEST_ID}")
    return value


def _document(page: int, record: Record) -> Document:
    there = [name for name in TEXTS if name in record]
    if len(there) != 1:
        those = f"got {' and '.join(there)}" if there else f"there are: {listed(list(record))}"
        raise ValueError(f"article {page}: expected the article in one of the fields {', '.join(TEXTS)}; {those}")
    title = read_text(record, "title") if record.get("title") is not None else ""
    text = TEXTS[there[0]](read_text(record, there[0]))
    return Document(str(page), text, title, {"url": record["url"]} if "url" in record else {})
