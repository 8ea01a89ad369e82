"""Ids of documents that a run, judgments, groups or a list name, and that the collection does not have.

Some are as it should be: judgments name documents that a sample of the collection leaves out. None at all means that
the ids are of something else, or went through a spreadsheet: nothing that is measured with them means anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from fairagent.collection.collection import Collection, Documents, DocumentsInMemory
from fairagent.collection.records import files_of, shown
from fairagent.collection.table import Groups, tables_of
from fairagent.errors import DataError, FairAgentError
from fairagent.types.clean import logger

NAMED = 5
"""So many ids are named."""
TRIED = 1_000
"""So many ids that are missing are tried in other spellings."""
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
    def of(cls, where: str, ids: Iterable[str], whole: bool = True) -> KnownIds:
        """These."""
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
    counts, tried = dict[str, int](), missing[:TRIED]
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
        size = 0 if isinstance(source, DocumentsInMemory) and source.documents else QUICKLY_READ + 1
        if isinstance(source, Documents):
            size = sum(file.stat().st_size for path in source.paths for file in files_of(path))
        if size <= QUICKLY_READ:
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
    notes = []
    for table in filter(len, tables_of(groups)):
        what = f"documents with groups of {', '.join(table.dimensions)}"
        notes.append(compare_ids(what, table.some(10_000), known, len(table)))
    return [note for note in notes if note]
