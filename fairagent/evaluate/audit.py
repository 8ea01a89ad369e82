"""An audit of a log of requests, in one pass: what the groups got of the attention against what they were due.

| log | what a request is |
|---|---|
| JSON lines, as of `fairagent search --json` or `/api/search` | a line: `query`, `hits` or `ids`, maybe `time` |
| CSV or TSV with a first line of names | rows with the same `request`, else the same query, that stand together |
| the account of `rerank: amortized` | nothing is left of single requests: sums alone, without intervals |

Everything is a share of all attention of a request: the discounts of its ranks over their sum. The due of a known group
is its target's share of what documents with a label got, so that nobody is blamed for labels that are missing; in an
account it is what the account counted as due. Bounds say what missing labels may hide.

Requests for the same query resemble each other, so the intervals resample queries and not requests. What is retained
of them does not grow with the log: each query belongs to one of `CLUSTERS`, by a checksum of its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from fairagent.collection import Collection
from fairagent.collection.exposure import dimensions_of
from fairagent.collection.known import KnownIds, compare_ids
from fairagent.collection.records import Faults, checked_id, csv_records, json_records, lines, listed, read_text, shown
from fairagent.collection.run_lines import places_of
from fairagent.collection.targets import judged_by, make_target
from fairagent.errors import DataError, UsageError
from fairagent.evaluate.comparison import bootstrap_intervals
from fairagent.measures import exposure_bounds, group_exposure, parse_discount
from fairagent.measures.amortized import attention
from fairagent.measures.base import seeded
from fairagent.search.account import Account
from fairagent.settings import Settings
from fairagent.storage.files import open_to_read
from fairagent.types import UNKNOWN
from fairagent.types.common import counted

CLUSTERS = 1_024
"""Into so many the queries are dealt, each whole; what is resampled."""
FEW = 30
"""Of fewer clusters the intervals say little."""
NAMED = 1_000
"""Unknown ids that are remembered, to say what is wrong with them."""
LONGEST = 100_000
"""Documents of one request."""
SQLITE = b"SQLite format 3\0"
NAMES: Mapping[str, tuple[str, ...]] = {
    "query": ("query", "query_id", "q", "topic", "qid", "search"),
    "document": ("document", "doc", "doc_id", "docid", "document_id", "id", "item", "result"),
    "rank": ("rank", "position", "place"),
    "time": ("time", "timestamp", "date", "datetime"),
    "request": ("request", "request_id", "session", "search_id", "impression"),
}
"""What the columns of a table may be called."""
MILLISECONDS = 1e11
"""Numbers above are no seconds since 1970, but milliseconds."""
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request: its query, the documents best first, and seconds since 1970 (None: not known)."""

    query: str
    ids: tuple[str, ...]
    time: float | None = None


@dataclass(frozen=True, slots=True)
class AuditedGroup:
    """A group's share of all attention with its 95 % interval, its due, and between what missing labels leave it."""

    label: str
    share: float
    low: float | None
    high: float | None
    due: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class AuditedDimension:
    """One dimension: `target` says where the due is from, `unlabeled` is the share of documents without a label."""

    name: str
    target: str
    groups: tuple[AuditedGroup, ...]
    unlabeled: float


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found; `n` is 0, and `begins` and `ends` are empty, where nothing is known of them."""

    log: str
    collection: str
    requests: int
    begins: str
    ends: str
    n: int
    discount: str
    dimensions: tuple[AuditedDimension, ...]
    notes: tuple[str, ...]


def audit_requests(
    requests: Iterable[LoggedRequest],
    collection: Collection,
    settings: Settings,
    known: KnownIds | None,
    log: Path,
    seed: int = 0,
) -> Audit:
    """An audit of the first `settings.n` documents of each request, by the groups of a collection.

    `known` are its documents (None: nobody knows). Raises DataError where it has none of the ids, or no request shows
    anything; UsageError where a dimension has no target that holds for every query.
    """
    discount, names = parse_discount(settings.discount), dimensions_of(collection, settings)
    targets = {}
    for one in names:
        # As rankings are judged where nobody has judged what is relevant.
        try:
            kind = judged_by(one, collection, settings.target, judged=False)
            targets[one] = make_target(kind, one, collection, "").shares, kind.name
        except (UsageError, DataError) as error:
            raise UsageError(
                f"the target of {one!r} has to hold for every query of a log: population, uniform, corpus, or shares "
                f"of your own (--target): {error}"
            ) from None
    counts = np.zeros(CLUSTERS)
    sums = {one: np.zeros((CLUSTERS, 1 + len(collection.groups.labels(one)))) for one in names}
    moments: list[float] = []
    empty = timeless = documents = unknown = 0
    strange: dict[str, None] = {}
    for request in requests:
        ids = request.ids[: settings.n]
        if request.time is None:
            timeless += 1
        else:
            moments = [min([*moments, request.time]), max([*moments, request.time])]
        if not ids:
            empty += 1
            continue
        missing = [id for id, there in zip(ids, known.has(ids), strict=True) if not there] if known else []
        documents, unknown = documents + len(ids), unknown + len(missing)
        strange |= dict.fromkeys(missing[: NAMED - len(strange)])
        cluster = crc32(request.query.encode("utf-8", "surrogatepass")) % CLUSTERS
        counts[cluster] += 1
        for one in names:
            rows = collection.groups.memberships(one, ids, "")
            sums[one][cluster] += group_exposure(rows, attention(discount(len(ids))))
    if not counts.any():
        raise DataError(f"{log}: no request shows a document")
    if unknown == documents and known:
        compare_ids(f"documents of {log.name}", strange, known)
    notes = []
    if empty:
        notes.append(f"{counted(empty, 'request')} showed nothing")
    if unknown and known:
        some = listed([shown(id) for id in strange], 5)
        lacking = f"{unknown:,} of {documents:,} documents shown are not in {known.where}"
        notes.append(f"{lacking}, and count as without a label: {some}")
    if known is None:
        notes.append("nothing tells which documents the collection has: ids that it lacks count as without a label")
    if timeless and moments:
        notes.append(f"{timeless:,} requests have no time")
    if (clusters := int((counts > 0).sum())) < FEW:
        notes.append(f"the requests are for few queries ({clusters}): the intervals say little")
    dimensions = []
    for one in names:
        mean = sums[one].sum(axis=0) / counts.sum()
        low, high = bootstrap_intervals(sums[one].T, seeded(seed, "audit", one), counts)
        shares, source = targets[one]
        columns = (mean[1:], low[1:], high[1:], (1 - mean[0]) * shares, *exposure_bounds(mean / mean.sum()))
        of_labels = zip(collection.groups.labels(one), *(column.tolist() for column in columns), strict=True)
        groups = tuple(AuditedGroup(*of_label) for of_label in of_labels)
        dimensions.append(AuditedDimension(one, source, groups, float(mean[0])))
    begins, ends = map(_minute, moments) if moments else ("", "")
    about = log.name, collection.name, int(counts.sum()), begins
    return Audit(*about, ends, settings.n, settings.discount, tuple(dimensions), tuple(notes))


def audit_account(account: Account) -> Audit:
    """What an account comes to: shares and dues as they were counted. DataError where there are none."""
    if not account.requests:
        raise DataError(f"{account.path}: there are no requests yet")
    source = "relevance of the candidates" if account.basis.get("due") == "relevance" else "the target"
    dimensions = []
    for name in dict.fromkeys(dimension for dimension, _ in account.columns):
        labels = [label for dimension, label in account.columns if dimension == name and label != UNKNOWN]
        received, deserved = account.shares([(name, label) for label in (UNKNOWN, *labels)])
        got, due = received.tolist(), deserved.tolist()
        groups = tuple(
            AuditedGroup(label, got[g], None, None, due[g], got[g], got[g] + got[0])
            for g, label in enumerate(labels, 1)
        )
        dimensions.append(AuditedDimension(name, source, groups, got[0]))
    note = f"{account}; it keeps no single request, so there are no intervals"
    discount = account.basis.get("discount", "")
    about = account.path.name, account.collection, account.requests, ""
    return Audit(*about, "", 0, discount, tuple(dimensions), (note,))


def is_account(path: Path) -> bool:
    """Whether the file is an SQLite file."""
    try:
        with open_to_read(path) as file:
            return file.read(len(SQLITE)) == SQLITE
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from None


def read_log(path: Path) -> Iterator[LoggedRequest]:
    """The requests of a log in their order, one after the other; at its end DataError with every fault, or for none."""
    faults, any_there = Faults(), False
    first = next((text for _, text in lines(path, Faults())), "")
    for request in (_of_json if first.lstrip().startswith("{") else _of_table)(path, faults):
        any_there = True
        yield request
    if not any_there and not faults:
        faults.add(path, None, "there are no requests")
    faults.check("log of requests")


def _of_json(path: Path, faults: Faults) -> Iterator[LoggedRequest]:
    for number, record in json_records(path, faults):
        try:
            query = record.get("query")
            if isinstance(query, Mapping):
                query = query.get("text", query.get("id"))
            if not isinstance(query, str):
                raise ValueError(f"`query` is {shown(query)}, expected a text")
            given = record.get("ids", record.get("hits"))
            if not isinstance(given, list):
                raise ValueError(f"no list `ids` or `hits`; there are: {listed(list(record)) or 'none'}")
            ids = [read_text(one if isinstance(one, Mapping) else {"id": one}, "id") for one in given]
            yield LoggedRequest(query, tuple(dict.fromkeys(ids)), _seconds(record.get("time")))
        except ValueError as error:
            faults.add(path, number, str(error))


def _of_table(path: Path, faults: Faults) -> Iterator[LoggedRequest]:
    """Without a `request`, a rank that is not above the one before and a document that is there begin another one."""
    columns: dict[str, str] = {}
    ranks: dict[str, float] = {}
    current: tuple[str, str, float | None] = ("", "", None)
    moment: float | None = None
    for number, record in csv_records(path, faults):
        if not columns:
            there = {name.strip().lower(): name for name in record}
            places = places_of(list(there), NAMES)
            columns = {what: list(there.values())[place] for what, place in places.items()}
            if not {"query", "document"} <= columns.keys():
                names = " and ".join(f"one of {', '.join(NAMES[what])}" for what in ("query", "document"))
                wanted = f"expected JSON lines, or columns for query and document ({names})"
                faults.add(path, 1, f"{wanted}; there are: {listed(list(record))}")
                return
        given = {what: record[column] for what, column in columns.items()}
        try:
            query, document = (read_text(record, columns[what]) for what in ("query", "document"))
            checked_id(document, "document")
            rank = given.get("rank", "")
            if rank and not _NUMBER.fullmatch(rank.strip()):
                raise ValueError(f"the rank {shown(rank)} is no number")
            time = _seconds(given.get("time"))
            if len(ranks) >= LONGEST:
                raise ValueError(f"more than {LONGEST:,} documents of one request")
        except ValueError as error:
            faults.add(path, number, str(error))
            continue
        named = given.get("request", "")
        key = (named, query, None if named else time)
        last = next(reversed(ranks.values()), None)
        again = not named and (document in ranks or (rank and last is not None and float(rank) <= last))
        if ranks and (key != current or again):
            yield LoggedRequest(current[1], tuple(sorted(ranks, key=ranks.__getitem__)), moment)
            ranks = {}
        if not ranks:
            current, moment = key, time
        ranks.setdefault(document, float(rank) if rank else float(len(ranks)))
    if ranks:
        yield LoggedRequest(current[1], tuple(sorted(ranks, key=ranks.__getitem__)), moment)


def _seconds(value: Any) -> float | None:
    """Seconds since 1970 of a number of seconds or milliseconds, or of a date of ISO 8601 (UTC where it says none)."""
    if value is None or value == "":
        return None
    text = str(value).strip()
    try:
        if _NUMBER.fullmatch(text):
            seconds = float(text) / (1000 if abs(float(text)) > MILLISECONDS else 1)
        else:
            moment = datetime.fromisoformat(text)
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        _minute(seconds)
    except (ValueError, OverflowError, OSError):
        wanted = "neither seconds since 1970 nor a date (2026-01-31T12:00) of the years 1 to 9999"
        raise ValueError(f"the time {shown(text)} is {wanted}") from None
    return seconds


def _minute(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="minutes").replace("+00:00", "Z")
