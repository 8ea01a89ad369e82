"""The track's corpus: Wikipedia articles as gzipped JSON lines, streamed.

`id` (a whole number), `title`, `url`, and the article in one of `plain`, `text` (wikitext) or `html`. Some ids occur
twice: the first line counts, the others are counted and named.
"""

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from fairagent.collection.faults import Faults, listed, shown
from fairagent.collection.records import Record, json_records, lines, read_text
from fairagent.collection.trec_fair.markup import html_to_text, wikitext_to_text
from fairagent.errors import DataError
from fairagent.measures.trec_fair import LARGEST_ID
from fairagent.types import Document

TEXTS = {"plain": lambda text: text, "text": wikitext_to_text, "html": html_to_text}
"""The field with the article, and what makes plain text of it."""
ARTICLES = 6_475_537
"""Lines of the corpus of 2022."""
BYTES = 7_680_000_000
"""About the size of its file of plain texts."""
WHOLE = 1 << 26
"""Files up to this size (bytes) are hashed from the first byte to the last."""
SAMPLES, SAMPLE = 64, 1 << 20


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
    """The articles of a corpus file; iterating reads them.

    A pass that meets a fault yields nothing from there on, reads to the end and raises one DataError with all of them.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name, self.paths = name, (path,)
        self._repeated: list[str] = []

    @property
    def notes(self) -> tuple[str, ...]:
        """What the last complete pass found odd."""
        return repeated_note(self._repeated, self.paths[0].name)

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
                # Made even where it is not used any more: it finds the faults.
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
        size = path.stat().st_size if path.is_file() else BYTES
        return sum(1 for _ in lines(path, Faults())) if size <= WHOLE else min(ARTICLES, round(ARTICLES * size / BYTES))

    def fingerprint(self) -> str:
        """SHA-256 (hex) of the file's size and its bytes.

        Of a file above 64 MB of its first and last megabyte and 62 between: a command cannot read gigabytes each time.
        The end of a gzip file holds the checksum of all that is in it, so another corpus has another fingerprint.
        """
        path = self.paths[0]
        try:
            status = path.stat()
        except FileNotFoundError:
            raise DataError(f"{path}: the corpus is gone") from None
        return _fingerprint(path, status.st_size, status.st_mtime_ns)


def repeated_note(ids: list[str], where: str) -> tuple[str, ...]:
    """A note on the ids that came again, if any did."""
    return (
        (f"articles of {where} that repeat an id, of which the first counts: {len(ids)} ({listed(ids)})",)
        if ids
        else ()
    )


def page_id(value: Any, what: str) -> int:
    """A page's id, a whole number; ValueError, naming `what` holds it, for anything else."""
    if type(value) is not int or not 0 <= value <= LARGEST_ID:
        raise ValueError(f"{what} is {shown(value)}, expected a whole number from 0 to {LARGEST_ID}")
    return value


def _document(page: int, record: Record) -> Document:
    there = [name for name in TEXTS if name in record]
    if len(there) != 1:
        found = f"found {' and '.join(there)}" if there else f"there are: {listed(list(record))}"
        raise ValueError(f"article {page}: expected the article in one of the fields {', '.join(TEXTS)}; {found}")
    title = read_text(record, "title") if record.get("title") is not None else ""
    text = TEXTS[there[0]](read_text(record, there[0]))
    return Document(str(page), text, title, {"url": record["url"]} if "url" in record else {})


@lru_cache(maxsize=64)
def _fingerprint(path: Path, size: int, modified: int) -> str:
    """The hash; `modified` (ns) only tells one state of the file from another."""
    digest = hashlib.sha256(f"trec-fair corpus {size}".encode())
    with path.open("rb") as file:
        if size <= WHOLE:
            digest.update(file.read())
        else:
            for place in range(SAMPLES):
                file.seek((size - SAMPLE) * place // (SAMPLES - 1))
                digest.update(file.read(SAMPLE))
    return digest.hexdigest()
