"""Ids of rows that have none of their own: mended where a few rows of a column lack one, or made of what the row holds.

They are made anew at each reading, and nothing is kept: the file alone says which documents there are. The id of a row
follows from the row itself. Other rows count only where they have the same id or the same content, so that a row that
is taken out of the file changes the id of no other, but of one that had to make way for it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Container, Iterable, Iterator

from fairagent.collection.records import LONGEST_ID, Faults, Record, listed
from fairagent.types.common import counted

ROW = "@row"
"""The `id` of rows that go by their numbers, from 1."""
CONTENT = "@content"
"""The `id` of rows that go by a digest of what they hold."""
ROW_WARNING = (
    "the ids are numbers of rows (`id: '@row'`): where a row is deleted, all rows after it get the id of another "
    "document, so that judgments, labels and links by id name the wrong ones, and all are indexed anew; "
    f"`id: '{CONTENT}'` lets the others keep theirs"
)
DIGITS = 12
"""Of a digest in an id, 48 bits: two of a million rows share one by chance once in 500 times, and are told apart."""
_SPACE = re.compile(r"[\s\x00]+")


def plain_id(value: object) -> str:
    """What a cell has for an id, as a TREC file can hold it; "" where that is nothing.

    White space goes at the ends and is `_` within; a whole number that was read as a fraction is whole again.

    >>> [plain_id(value) for value in (" a b ", 7, 7.0, None, True, " ")]
    ['a_b', '7', '7', '', '', '']
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    id = _SPACE.sub("_", str(value).strip())
    if len(id.encode("utf-8", "surrogatepass")) <= LONGEST_ID:
        return id
    start = id.encode("utf-8", "ignore")[: LONGEST_ID - 40].decode("utf-8", "ignore")
    return f"{start}-{_digest(id)}"


def with_ids(rows: Iterable[tuple[int, Record]], id: str) -> Iterator[tuple[int, Record]]:
    """The rows, with the field `id` where that is the number of the row (`@row`) or its content (`@content`)."""
    if id == ROW:
        return ((number, {**row, ROW: place}) for place, (number, row) in enumerate(rows, start=1))
    return mended(rows, id, Faults(), ()) if id == CONTENT else iter(rows)


def own_ids(rows: Iterable[tuple[int, Record]], id: str) -> set[str]:
    """The ids of the rows that need no mending; about 100 bytes each."""
    cells = (row.get(id) for _, row in rows)
    return {str(cell) for cell in cells if (name := plain_id(cell)) and name == str(cell)}


def mended(
    rows: Iterable[tuple[int, Record]], id: str, faults: Faults, own: Container[str]
) -> Iterator[tuple[int, Record]]:
    """The rows, each with an id that no other has in the field `id`; what was mended is added to `faults.mended`.

    The first row with an id keeps it, and none that is among `own` goes to a row that has to be mended. A further row
    with the same id gets the digest of its content after it; a row without any is called `row-` and that digest. Rows
    of the same content are counted.
    """
    taken: dict[str, int] = {}
    for number, row in rows:
        cell = row.get(id)
        now = name = plain_id(cell)
        is_own = bool(name) and name == str(cell)
        if not name or name in taken or (not is_own and name in own):
            now = base = f"{name[: LONGEST_ID // 4] if len(name) > LONGEST_ID // 2 else name or 'row'}-{_digest(row)}"
            while now in taken or now in own:
                taken[base] = taken.get(base, 1) + 1
                now = f"{base}-{taken[base]}"
        taken.setdefault(now, 1)
        if id != CONTENT and now != str(cell):
            was = "" if cell is None else str(cell).strip()
            faults.mended.append(f"line {number}: {was or 'no id'}, now {now}")
        yield number, row if is_own and now == name else {**row, id: now}


def mended_note(made: Collection[str], file: str) -> str:
    """One sentence about the ids that were mended."""
    return f"{counted(len(made), 'id')} of {file} mended (`ids: mend`): {listed(made)}"


def _digest(content: object) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=_packed)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


def _packed(value: object) -> str | None:
    """Bytes count; of an object of somebody's no method is called."""
    return value.hex() if type(value) is bytes else None
