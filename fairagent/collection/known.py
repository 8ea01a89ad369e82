"""Ids of documents that a run, judgments, groups or a list name, and that the collection does not have; and leakage.

Some missing ids are as it should be: judgments name documents that a sample of the collection leaves out. None at all
means that the ids are of something else, or went through a spreadsheet: nothing that is measured with them means
anything. Leakage: training texts must not appear among test texts.
"""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Self

import numpy as np

from fairagent.collection.collection import Collection, Documents, DocumentsInMemory
from fairagent.collection.records import files_of, listed, shown
from fairagent.collection.table import Groups, tables_of
from fairagent.errors import DataError, FairAgentError
from fairagent.types.clean import logger
from fairagent.types.common import counted

NAMED = 5
"""So many ids are named."""
QUICKLY_READ = 1 << 25
"""Bytes of document files that are read for their ids, where there is no index."""
SPELLINGS: dict[str, Callable[[str], str]] = {
    "without `.0` at their end (they went through numbers with fractions)": lambda id: id.removesuffix(".0"),
    "with `.0` at their end": lambda id: f"{id}.0",
    "without white space, quotes and invisible characters": lambda id: id.strip(
        " \t\r\n\ufeff\u200b\u200c\u200d\u2060\u00ad\"'"
    ),
    "in lower case": str.lower,
    "in capitals": str.upper,
    "without zeros before them (of judgments: `digits: 0`)": lambda id: id.lstrip("0") or "0",
    "without the number of a passage (#1)": lambda id: id.rpartition("#")[0],
    "without what stands before their last /": lambda id: id.rpartition("/")[2],
}
"""What may have become of an id, and how it is undone."""

log = logger(__name__)
_NOT_WORDS = re.compile(r"[\W_]+")
_BETWEEN = re.compile(r"(?<=[.!?:;])\s+|[\"\u201c\u201d\u00ab\u00bb\n]+")


@dataclass(frozen=True, slots=True)
class KnownIds:
    """The documents that there are: `where`, as part of a sentence, which of some ids are there, and a few of them.

    `whole`: no other document is known to anybody; else they are those that have a label or a judgment.
    """

    where: str
    has: Callable[[Sequence[str]], Sequence[bool]]
    some: tuple[str, ...] = ()
    whole: bool = True

    @classmethod
    def of(cls, where: str, ids: Iterable[str], whole: bool = True) -> Self:
        all_ids = dict.fromkeys(ids)
        return cls(where, lambda wanted: [id in all_ids for id in wanted], tuple(all_ids)[:NAMED], whole)


def compare_ids(what: str, ids: Iterable[str], known: KnownIds, of: int = 0) -> str:
    """How many of the `ids`, which `what` names in the plural, are not known, with the first; "" where all are.

    `of`: the ids are some of so many. DataError where none is known: it says what the others are called, and which
    spelling of these would be among them.

    >>> there = KnownIds.of("the collection", ["d1", "d2"])
    >>> compare_ids("documents of the run", ["d1", "x"], there)
    "1 of 2 documents of the run are not in the collection (50 %): 'x'"
    """
    wanted = list(dict.fromkeys(ids))
    missing = [id for id, there in zip(wanted, known.has(wanted), strict=True) if not there]
    if not missing:
        return ""
    first = ", ".join(map(shown, missing[:NAMED])) + (" ..." if len(missing) > NAMED else "")
    spellings = dict(SPELLINGS)
    for width in sorted({len(id) for id in known.some if id.isdecimal()}):
        hint = f"with zeros before them (of judgments: `digits: {width}`)"
        spellings[hint] = lambda id, width=width: id.zfill(width)  # type: ignore[misc]
    counts, tried = dict[str, int](), missing[:1_000]
    for name, change in spellings.items():
        changed = [new for old in tried if (new := change(old)) and new != old]
        counts[name] = sum(map(bool, known.has(changed))) if changed else 0
    best = max(counts, key=counts.__getitem__)
    hint = f"; {best} {counts[best]:,} of {len(tried):,} are" if 2 * counts[best] >= len(tried) else ""
    if len(missing) == len(wanted):
        others = ", ".join(map(shown, known.some)) or "nothing"
        called = f"they are called {first}, and those there {others}"
        raise DataError(f"none of the {of or len(wanted):,} {what} is in {known.where}: {called}{hint}")
    looked = f" that were looked at, of {of:,}," if of > len(wanted) else ""
    percent = 100 * len(missing) / len(wanted)
    # Rounded down: 100 % is an error.
    share = f"{int(percent)} %" if percent >= 1 else f"{percent:.1g} %"
    return f"{len(missing):,} of {len(wanted):,} {what}{looked} are not in {known.where} ({share}): {first}{hint}"


@cache
def warn_once(message: str) -> None:
    """Log a warning that has not been logged yet in this process."""
    log.warning("%s", message)


def known_documents(collection: Collection) -> KnownIds | None:
    """The documents of a collection as far as they are quickly told: in memory, in small files, else in its labels.

    None where nothing is known of them.
    """
    source, where = collection.source, f"collection {collection.name!r}"
    try:
        if isinstance(source, Documents):
            quick = sum(file.stat().st_size for path in source.paths for file in files_of(path)) <= QUICKLY_READ
        else:
            quick = isinstance(source, DocumentsInMemory) and bool(source.documents)
        if quick:
            return KnownIds.of(where, (document.id for document in source))
    except (OSError, FairAgentError) as error:
        log.debug("the documents of %s cannot be read for their ids (%s)", where, error)
    tables = [table for table in tables_of(collection.groups) if len(table)]
    judged = dict.fromkeys(id for grades in collection.qrels.values() for id in grades)
    if not tables and not judged:
        return None
    some = tuple(id for table in tables for id in table.some(NAMED))[:NAMED] or tuple(judged)[:NAMED]

    def has(ids: Sequence[str]) -> Sequence[bool]:
        there = np.array([id in judged for id in ids], np.bool_)
        for table in tables:
            there |= table.has(ids)
        return there.tolist()  # type: ignore[no-any-return]

    return KnownIds("the labels and judgments" + (f" of {where}" if collection.name else ""), has, some, whole=False)


def notes_of_collection(collection: Collection, known: KnownIds | None) -> list[str]:
    """What to know of the ids of its judgments and groups; DataError where none of one of them is a document's."""
    if known is None or not known.whole:
        return []
    judged = dict.fromkeys(id for grades in collection.qrels.values() for id in grades)
    note = compare_ids("judged documents", judged, known) if judged else ""
    return [*([note] if note else []), *notes_of_groups(collection.groups, known)]


def notes_of_groups(groups: Groups, known: KnownIds) -> list[str]:
    """The same for tables of groups, of each of which some are looked at."""
    tables = [table for table in tables_of(groups) if len(table)]
    what = "documents with groups of {}"
    notes = [
        compare_ids(what.format(", ".join(table.dimensions)), table.some(10_000), known, len(table)) for table in tables
    ]
    return [note for note in notes if note]


def overlap(training: Iterable[str], test: Iterable[str], *, inside: bool = False) -> tuple[str, ...]:
    """The texts of `test` that stand in `training` too, each once, in order.

    Compared are whole texts by the hash of their words: case, punctuation, white space and forms of the same character
    make no difference; a text without words overlaps with nothing. With `inside` texts overlap as well where they have
    a sentence or a quotation of 4 words or more in common.

    >>> overlap(["Lawyers are men.", "Yes."], ["lawyers are  MEN", "Lawyers are women."])
    ('lawyers are  MEN',)
    >>> overlap(["All lawyers are men."], ['Is it so? "All lawyers are men" he wrote.'], inside=True)
    ('Is it so? "All lawyers are men" he wrote.',)
    """

    def keys(text: str) -> set[bytes]:
        parts = [part for part in _BETWEEN.split(text) if len(_NOT_WORDS.sub(" ", part).split()) >= 4]
        return {text_key(part) for part in (text, *(parts if inside else ()))} - {b""}

    seen = {key for text in training for key in keys(text)}
    overlapping: dict[bytes, str] = {}
    for text in test:
        if not seen.isdisjoint(keys(text)):
            overlapping.setdefault(text_key(text), text)
    return tuple(overlapping.values())


def refuse_overlap(
    training: Iterable[str],
    test: Iterable[str],
    training_name: str = "the training questions",
    test_name: str = "the test questions",
    *,
    inside: bool = False,
) -> None:
    """Raise DataError, with the number of overlaps and the first of them, where texts of `test` are in `training`.

    `inside` is as in `overlap`.
    """
    if texts := overlap(training, test, inside=inside):
        raise DataError(
            f"{counted(len(texts), 'text')} of {test_name} stand{'s' * (len(texts) == 1)} in {training_name} too, so "
            "that the test would reward what was learned by heart; take them out of either: "
            f"{listed([shown(text, 100) for text in texts], 5)}"
        )


def text_key(text: str) -> bytes:
    """A hash of the words of a text: equal for texts that differ in case, punctuation or white space; b"" for none."""
    words = _NOT_WORDS.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).digest() if words else b""
