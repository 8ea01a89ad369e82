"""Ids of records mended by name: those that are missing, occur before, or no TREC file could hold."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from fairagent.collection.config import RecordsFile
from fairagent.collection.forms import records
from fairagent.collection.records import LONGEST_ID, Faults, Record, checked_id
from fairagent.settings import validate

_SPACE = re.compile(r"[\s\x00]+")
ROOM = 40
"""Bytes of an id that is cut that are left for its number."""


@dataclass(frozen=True, slots=True)
class MendedId:
    """The record in row `row` (from 1), on line or row `place` of its file: what its id was, and what it is called now.

    >>> print(MendedId(7, 8, "", "row-7"))
    row 7 (line 8): no id, now row-7
    """

    row: int
    place: int
    was: str
    now: str

    def __str__(self) -> str:
        return f"row {self.row} (line {self.place}): {self.was or 'no id'}, now {self.now}"


def id_of(record: Record, id: str) -> str:
    """What a record has for an id, "" where that is nothing that could be one."""
    value = record.get(id)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return str(value)


def mend_ids(path: Path, format: str | None, id: str, to: Path) -> list[MendedId]:
    """Write the records of a file to `to` as JSON lines, each with an id of its own in the field `id`.

    The first record with an id keeps it; no new one is that of another record. Raises DataError for faults of the file.
    """
    fields, faults = validate(RecordsFile, {"format": format}, "init"), Faults()
    taken = {one for _, record in records(path, fields, faults) if _valid(one := id_of(record, id))}
    faults.check(str(path))
    used, mended = set[str](), list[MendedId]()
    with to.open("w", encoding="utf-8") as file:
        for row, (place, record) in enumerate(records(path, fields, faults), start=1):
            was = now = id_of(record, id)
            if not _valid(was) or was in used:
                now = _free(was, row, taken)
                mended.append(MendedId(row, place, was, now))
            used.add(now)
            taken.add(now)
            file.write(json.dumps({**record, id: now}, ensure_ascii=False, default=str) + "\n")
    faults.check(str(path))
    return mended


def _valid(id: str) -> bool:
    try:
        return bool(checked_id(id, "document"))
    except ValueError:
        return False


def _free(was: str, row: int, taken: set[str]) -> str:
    name = _SPACE.sub("_", was.strip()) or f"row-{row}"
    if len(name.encode("utf-8", "surrogatepass")) > LONGEST_ID - ROOM:
        name = name.encode("utf-8", "ignore")[: LONGEST_ID - ROOM].decode("utf-8", "ignore")
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free
