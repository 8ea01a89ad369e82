"""`Account`: the readers' attention that documents and groups got over many requests, and what they deserved.

One SQLite file for one collection, which only its owner can read, with one table of sums: a row for each document that
was a candidate and for each group, and nothing of a query, a request or its time. Many threads and processes may write:
a request is one transaction. A process that is killed loses nothing that it had written; a power cut may lose the last
requests. It has to be on a disk of this machine: on network drives SQLite's shared memory does not work.

It is read strictly: each row has a checksum, each number is finite and not negative, and the rows of a dimension add up
to what its requests handed out; anything else is a DataError that names the row.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from weakref import finalize
from zlib import crc32

import numpy as np

from fairagent.errors import BackendUnavailable, DataError
from fairagent.storage.files import explained, open_to_write
from fairagent.storage.readers import parse_json
from fairagent.types import FloatArray
from fairagent.types.clean import in_line
from fairagent.types.common import counted

FORMAT = "2"
LONGEST_WAIT = 5.0
"""Seconds that another writer may take."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sums (dimension TEXT NOT NULL, label TEXT NOT NULL, received REAL NOT NULL,
  deserved REAL NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (dimension, label)) WITHOUT ROWID;
"""
DOCUMENTS, TOTAL = "", ""
"""The dimension of the rows of documents; the label of the row that holds the sum of a dimension's other rows."""
REQUESTS = (DOCUMENTS, TOTAL)
"""The row that counts the requests: each hands out an attention of 1."""
ROUNDING = 1e-6
"""By how much of a request the rows of a dimension may miss their sum, for each request."""
ENVIRONMENT = {
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY),
    *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOMEM),
}
"""SQLite's codes where the disk, the rights or another writer is at fault; every other code is damage."""

Column = tuple[str, str]
"""A dimension and one of its labels; the label of documents without one is `UNKNOWN`."""
Sums = tuple[float, float]
"""What was received, and what was deserved."""
NOTHING: Sums = (0.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """What one request adds: attention and due of documents and of groups, each a share of 1."""

    received: Mapping[str, float]
    deserved: Mapping[str, float]
    groups: Mapping[Column, Sums]


class Account:
    """The account in `path`, of the collection of that name; made where there is none.

    `basis` says how it counts. Without a `collection` the account is read as it is. Raises DataError where the file is
    no account, damaged, of another collection or kept on another basis, BackendUnavailable where it cannot be written.
    """

    def __init__(self, path: Path, collection: str | None = None, basis: Mapping[str, str] | None = None) -> None:
        self.path, self._lock = path, threading.RLock()
        if collection is not None:
            with explained(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                # Made here, so that only its owner can ever read it; SQLite gives its files the same rights.
                os.close(open_to_write(path, os.O_RDWR | os.O_CREAT, private=True))
        # Opened by its address with mode=rw, so that reading makes no new file.
        address = f"{path.absolute().as_uri()}?mode=rw"
        with self._explained():
            self._connection = sqlite3.connect(
                address, LONGEST_WAIT, isolation_level=None, check_same_thread=False, uri=True
            )
        finalize(self, self._connection.close)
        # Damaged text is decoded all the same, so that its row can be named.
        self._connection.text_factory = lambda text: text.decode("utf-8", "replace")
        with self._explained():
            if collection is not None:
                with self._transaction():
                    (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
                    if not tables:
                        for statement in SCHEMA.split(";"):
                            self._connection.execute(statement)
                        written = json.dumps(dict(basis or {}), sort_keys=True)
                        about = [("format", FORMAT), ("collection", collection), ("basis", written)]
                        self._connection.executemany("INSERT INTO about VALUES (?, ?)", about)
                    there, kept_by = self._about()
                    if there != collection:
                        raise DataError(
                            f"{path} is the account of collection {in_line(there)!r}, not of {in_line(collection)!r}; "
                            "name another file"
                        )
                    for key, value in (basis or {}).items():
                        if kept_by.get(key) != value:
                            raise DataError(
                                f"{path} was kept with {key} {in_line(str(kept_by.get(key)))}, not {in_line(value)}: "
                                "both in one sum would mean nothing; name another file"
                            )
                # Only now, when it is known to be an account: another program's file stays as it was.
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = NORMAL")
            with self._transaction("DEFERRED"):
                self.collection, self.basis = self._about()
                self._check(dict(self._checked(self._connection.execute("SELECT * FROM sums"))))

    def _about(self) -> tuple[str, Mapping[str, str]]:
        """The collection and the basis that the file names."""
        about = dict(self._connection.execute("SELECT key, value FROM about"))
        if (form := about.get("format")) != FORMAT:
            raise DataError(
                f"{self.path} is an account of format {in_line(str(form))}; this version of fairagent reads {FORMAT}: "
                "move it away, and a new one is begun"
            )
        try:
            basis = parse_json(about["basis"])
            if isinstance(basis, dict) and isinstance(about["collection"], str):
                return about["collection"], basis
        except (KeyError, TypeError, ValueError):
            pass
        raise DataError(f"{self.path}: what it says of its collection and basis is damaged; move it away")

    def documents(self, ids: Sequence[str]) -> FloatArray:
        """What these documents are owed, (n,), in shares of one request's attention; 0 for those that are not in it."""
        return self.groups([(DOCUMENTS, id) for id in ids])

    def groups(self, columns: Sequence[Column]) -> FloatArray:
        """What these groups are owed, (g,), in shares of one request's attention."""
        sums = self._read(columns)
        return sums[:, 1] - sums[:, 0]

    def shares(self, columns: Sequence[Column]) -> tuple[FloatArray, FloatArray]:
        """What these groups received and deserved of all attention so far, (g,) each; 0 before the first request."""
        sums = self._read([REQUESTS, *columns])
        received, deserved = sums[1:].T / (sums[0, 0] or 1.0)
        return received, deserved

    @property
    def requests(self) -> int:
        """How many it has counted."""
        return round(float(self._read([REQUESTS])[0, 0]))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The groups that are in it."""
        with self._explained(), self._lock, self._transaction("DEFERRED"):
            rows = self._connection.execute("SELECT dimension, label FROM sums WHERE dimension != '' AND label != ''")
            return tuple((dimension, label) for dimension, label in rows)

    def add(self, entry: Entry) -> None:
        """Count one request. Raises BackendUnavailable where it cannot be written."""
        ids = [
            id for id in dict.fromkeys((*entry.deserved, *entry.received)) if id in entry.received or entry.deserved[id]
        ]
        added: dict[Column, Sums] = {
            **{(DOCUMENTS, id): (entry.received.get(id, 0.0), entry.deserved.get(id, 0.0)) for id in ids},
            **entry.groups,
        }
        for dimension in dict.fromkeys(dimension for dimension, _ in entry.groups):
            of_labels = [sums for (one, _), sums in entry.groups.items() if one == dimension]
            added[dimension, TOTAL] = (math.fsum(one for one, _ in of_labels), math.fsum(one for _, one in of_labels))
        added[REQUESTS] = (1.0, 1.0)
        with self._explained(), self._lock, self._transaction():
            there = self._rows(list(added))
            rows = []
            for column, (received, deserved) in added.items():
                before = there.get(column, NOTHING)
                after = (before[0] + received, before[1] + deserved)
                rows.append((*column, *after, _checksum(column, after)))
            self._connection.executemany("INSERT OR REPLACE INTO sums VALUES (?, ?, ?, ?, ?)", rows)

    def _read(self, columns: Sequence[Column]) -> FloatArray:
        """Received and deserved of each, (n, 2)."""
        with self._explained(), self._lock, self._transaction("DEFERRED"):
            there = self._rows(columns)
        return np.array([there.get(column, NOTHING) for column in columns], dtype=np.float64).reshape(-1, 2)

    def _rows(self, columns: Sequence[Column]) -> dict[Column, Sums]:
        question = "SELECT * FROM sums WHERE dimension = ? AND label = ?"
        return dict(one for column in columns for one in self._checked(self._connection.execute(question, column)))

    def _checked(self, rows: Iterable[tuple[object, ...]]) -> Iterator[tuple[Column, Sums]]:
        for dimension, label, received, deserved, checksum in rows:
            column, sums = (str(dimension), str(label)), (received, deserved)
            if not all(isinstance(one, float) and math.isfinite(one) and one >= 0 for one in sums):
                raise self._damaged(column, f"received {sums[0]!r} and deserved {sums[1]!r}")
            if checksum != _checksum(column, sums):
                raise self._damaged(column, "its checksum is of other numbers")
            yield column, (float(received), float(deserved))  # type: ignore[arg-type]

    def _check(self, rows: Mapping[Column, Sums]) -> None:
        """Raise DataError unless the rows of each dimension add up to its total, the documents' to all attention."""
        requests = rows.get(REQUESTS, NOTHING)[0]
        for dimension in dict.fromkeys(dimension for dimension, _ in rows if dimension != DOCUMENTS):
            total = rows.get((dimension, TOTAL), NOTHING)
            for place, what in enumerate(("received", "deserved")):
                of_labels = [sums[place] for (one, label), sums in rows.items() if one == dimension and label != TOTAL]
                if abs(math.fsum(of_labels) - total[place]) > ROUNDING * max(requests, 1):
                    raise self._damaged((dimension, TOTAL), f"the groups {what} {math.fsum(of_labels)!r} in all")
        got = math.fsum(sums[0] for (one, label), sums in rows.items() if one == DOCUMENTS and label != TOTAL)
        if abs(got - requests) > ROUNDING * max(requests, 1):
            raise self._damaged(REQUESTS, f"the documents received {got!r} in all, of {requests!r} requests")

    def _damaged(self, column: Column, why: str) -> DataError:
        dimension, label = (in_line(one) for one in column)
        row = f"{dimension or 'documents'}: {label or 'all'}"
        return DataError(f"{self.path}, row {row!r}: damaged ({why}); move the file away, and a new one is begun")

    @contextmanager
    def _transaction(self, kind: str = "IMMEDIATE") -> Iterator[None]:
        self._connection.execute(f"BEGIN {kind}")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in ENVIRONMENT:
                raise BackendUnavailable(f"the account {self.path} cannot be used now ({error})") from None
            raise DataError(
                f"{self.path} is no account of requests, or damaged ({error}); move it away, and a new one is begun"
            ) from None

    def __str__(self) -> str:
        count = "SELECT count(*) FROM sums WHERE dimension = '' AND label != ''"
        (documents,) = self._connection.execute(count).fetchone()
        return (
            f"account of {self.collection!r}: {counted(self.requests, 'request')}, {counted(documents, 'document')}, "
            f"{self.path.stat().st_size / 1e6:.1f} MB"
        )


def _checksum(column: Column, sums: tuple[object, object]) -> int:
    return crc32("\0".join((*column, *map(repr, sums))).encode("utf-8", "surrogatepass"))
