"""Logs of requests: which documents an engine showed for which query, in what order, and when; whoever wrote them.

| form | what a request is |
|---|---|
| the account of `rerank: amortized` | a row of it; it has shares of attention, and no ids |
| JSON lines, as `fairagent search --json` prints | a line: `query`, `hits` or `ids`, `time` if it has one |
| CSV or TSV with a first line of names | rows with the same `request`, else neighboring rows of the same query |
| a TREC run, or topic and document alone | a topic |
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from fairagent.collection.records import Faults, checked_id, csv_records, json_records, lines, listed, read_text, shown
from fairagent.collection.run_lines import PLAIN, TREC, by_score, run_line, run_lines
from fairagent.errors import DataError, NotRegular
from fairagent.storage.regular import open_to_read

SQLITE = b"SQLite format 3\0"
NAMES: Mapping[str, tuple[str, ...]] = {
    "query": ("query", "query_id", "q", "topic", "qid", "search"),
    "document": ("document", "doc", "doc_id", "docid", "document_id", "id", "item", "result"),
    "rank": ("rank", "position", "place"),
    "time": ("time", "timestamp", "date", "datetime"),
    "request": ("request", "request_id", "session", "search_id", "impression"),
}
"""What the columns of a table may be called."""
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
MILLISECONDS = 1e11
"""Numbers above are no seconds since 1970, but milliseconds."""


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request: its query, the documents best first, seconds since 1970 (None: not known), and calls of models."""

    query: str
    ids: tuple[str, ...]
    time: float | None = None
    calls: int = 0
    unusable: int = 0


def is_account(path: Path) -> bool:
    """Whether the file is an SQLite file; DataError where it cannot be read."""
    try:
        with open_to_read(path) as file:
            return file.read(len(SQLITE)) == SQLITE
    except NotRegular:
        raise
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from None


def read_log(path: Path) -> list[LoggedRequest]:
    """The requests of a log in their order, by time where all have one; DataError with every fault, or for none."""
    faults = Faults()
    first = next((text for _, text in lines(path, Faults())), "")
    if first.lstrip().startswith("{"):
        requests = list(_of_json(path, faults))
    elif _named(first):
        requests = list(_of_table(path, faults))
    else:
        requests = list(_of_run(path, faults))
    if not requests and not faults:
        faults.add(path, None, "there are no requests")
    faults.check("log of requests")
    if all(one.time is not None for one in requests):
        requests.sort(key=lambda one: one.time or 0.0)
    return requests


def _cells(line: str) -> list[str]:
    return [cell.strip().strip('"').lower() for cell in re.split(r"[,;\t]", line)]


def _named(line: str) -> bool:
    """Whether a first line names a column for the query and one for the document."""
    cells = _cells(line)
    return all(any(name in cells for name in NAMES[what]) for what in ("query", "document"))


def _of_json(path: Path, faults: Faults) -> Iterator[LoggedRequest]:
    for number, record in json_records(path, faults):
        try:
            yield _request(record)
        except ValueError as error:
            faults.add(path, number, str(error))


def _request(record: Mapping[str, Any]) -> LoggedRequest:
    query = record.get("query")
    if isinstance(query, Mapping):
        query = query.get("text", query.get("id"))
    if not isinstance(query, str):
        raise ValueError(f"`query` is {shown(query)}, expected a text")
    given = record.get("ids", record.get("hits"))
    if not isinstance(given, list):
        raise ValueError(f"no list `ids` or `hits`; there are: {listed(list(record)) or 'none'}")
    ids = [read_text(one, "id") if isinstance(one, Mapping) else str(one) for one in given]
    usage = (record.get("trace") or {}).get("usage") if isinstance(record.get("trace"), Mapping) else None
    counts = [usage.get(name, 0) if isinstance(usage, Mapping) else 0 for name in ("calls", "unusable")]
    calls, unusable = (one if isinstance(one, int) and one >= 0 else 0 for one in counts)
    return LoggedRequest(query, _distinct(ids), _seconds(record.get("time")), calls, unusable)


def _of_table(path: Path, faults: Faults) -> Iterator[LoggedRequest]:
    rows: list[tuple[str, str, str, float | None, float | None]] = []
    names: dict[str, str] | None = None
    for number, record in csv_records(path, faults):
        if names is None:
            there = {name.strip().lower(): name for name in record}
            columns = {what: next((there[one] for one in some if one in there), "") for what, some in NAMES.items()}
            names = {what: name for what, name in columns.items() if name}
        try:
            query, document = (read_text(record, names[what]) for what in ("query", "document"))
            rank = read_text(record, names["rank"]) if "rank" in names else ""
            if rank and not _NUMBER.fullmatch(rank.strip()):
                raise ValueError(f"the rank {shown(rank)} is no number")
            moment = _seconds(record.get(names["time"])) if "time" in names else None
            request = read_text(record, names["request"]) if "request" in names else ""
            rows.append((request, query, checked_id(document, "document"), float(rank) if rank else None, moment))
        except ValueError as error:
            faults.add(path, number, str(error))
    if names and "request" in names:
        # One request may be logged in pieces.
        order = {key: place for place, key in enumerate(dict.fromkeys(row[:2] for row in rows))}
        rows.sort(key=lambda row: order[row[:2]])
    for _, some in groupby(rows, lambda row: (row[:2], None if row[0] else row[4])):
        yield from _lists(list(some))


def _lists(rows: Sequence[tuple[str, str, str, float | None, float | None]]) -> Iterator[LoggedRequest]:
    """The requests of rows with one query: a rank that is not above the one before begins another one."""
    lists: list[list[tuple[float, str]]] = [[]]
    for place, (request, _, document, rank, _) in enumerate(rows):
        last = lists[-1]
        again = any(document == other for _, other in last)
        if last and not request and (again or (rank is not None and rank <= last[-1][0])):
            lists.append(last := [])
        last.append((float(place) if rank is None else rank, document))
    for one in lists:
        ids = _distinct([document for _, document in sorted(one, key=lambda pair: pair[0])])
        yield LoggedRequest(rows[0][1], ids, rows[0][4])


def _of_run(path: Path, faults: Faults) -> Iterator[LoggedRequest]:
    of_topic: dict[str, list[Any]] = {}
    scored = True
    for number, cells in run_lines(path, (TREC, PLAIN), faults):
        scored = len(cells) == len(TREC)
        try:
            one = run_line(number, cells)
            of_topic.setdefault(checked_id(one.topic, "topic"), []).append(one)
        except ValueError as error:
            faults.add(path, number, str(error))
    for topic, some in of_topic.items():
        ordered = by_score(path, some, faults) if scored else some
        yield LoggedRequest(topic, _distinct([one.document for one in ordered]))


def _distinct(ids: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids))


def _seconds(value: Any) -> float | None:
    """Seconds since 1970 of a number of seconds or milliseconds, or of a date of ISO 8601 (UTC where it says none)."""
    if value is None or value == "":
        return None
    text = str(value).strip()
    if _NUMBER.fullmatch(text):
        number = float(text)
        return number / 1000 if abs(number) > MILLISECONDS else number
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"the time {shown(text)} is neither seconds since 1970 nor a date (2026-01-31T12:00)"
        ) from None
    seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return seconds if math.isfinite(seconds) else None
