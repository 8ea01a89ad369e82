"""`Account`: what documents and groups have got of the readers' attention over requests, and what they deserve.

One SQLite file for one collection, which only its owner can read. Many threads and processes may write it: a request is
one transaction, which is there as a whole or not at all (WAL), and another writer waits for it. A process that is
killed loses nothing that it had written; a power cut may lose the last requests, and damages nothing. It has to be on
a disk of this machine: on network drives SQLite's shared memory does not work.

What is in it is bounded: documents (those with the smallest debts leave; their groups keep what they had), single
requests (the last ones), and days. No text of a query is in it unless that is asked for. Requests are numbered, so that
a clock which goes back changes no order; a request then stands under the time of the one before it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from weakref import finalize

import numpy as np

from fairagent.errors import BackendUnavailable, DataError
from fairagent.storage.files import explained
from fairagent.storage.readers import parse_json
from fairagent.storage.regular import open_to_write
from fairagent.types import FloatArray
from fairagent.types.clean import in_line
from fairagent.types.common import counted

FORMAT = "1"
LONGEST_WAIT = 5.0
"""Seconds that another writer may take."""
FOLDED_EVERY = 100
"""Requests after which it is looked whether there are too many documents."""
KEPT = 0.9
"""The share of the bound on documents that stays then."""
AT_ONCE = 500
"""Ids in one question to SQLite."""
SCHEMA = """
CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS documents (
  id TEXT PRIMARY KEY, received REAL NOT NULL, deserved REAL NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS groups (dimension TEXT NOT NULL, label TEXT NOT NULL, received REAL NOT NULL,
  deserved REAL NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (dimension, label)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS days (day TEXT NOT NULL, dimension TEXT NOT NULL, label TEXT NOT NULL,
  received REAL NOT NULL, deserved REAL NOT NULL, PRIMARY KEY (day, dimension, label)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS requests (number INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, query TEXT NOT NULL,
  quality REAL NOT NULL, calls INTEGER NOT NULL, unusable INTEGER NOT NULL, shares TEXT NOT NULL);
"""
ADDED = "ON CONFLICT DO UPDATE SET received = received + excluded.received, deserved = deserved + excluded.deserved"
WHOLE = ("", "")
"""The row of `groups` and `days` that counts the requests themselves."""
ENVIRONMENT = {
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY),
    *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM, sqlite3.SQLITE_NOMEM),
}
"""SQLite's codes where the disk, the rights or another writer is at fault; every other code is damage."""

Queries = Literal["none", "hash", "text"]
Column = tuple[str, str]
"""A dimension and one of its labels; the label of documents without one is `UNKNOWN`."""


@dataclass(frozen=True, slots=True)
class AccountBounds:
    """How much an account holds: documents, single requests, days."""

    documents: int = 100_000
    requests: int = 10_000
    days: int = 400


PLAIN = AccountBounds()


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose account it is, and by what it counts: `basis` is compared as a whole, a line for each thing.

    `fingerprint` is that of the documents; where they have changed, `has` says which ids the collection has now (None:
    nobody knows).
    """

    collection: str
    fingerprint: str
    basis: Mapping[str, str]
    has: Callable[[Sequence[str]], Sequence[bool]] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """What one request adds: attention and due of documents and of groups, each a share of 1.

    `quality` is the DCG of what was shown over the best one by the same scores, `calls` and `unusable` those of
    language models.
    """

    query: str
    received: Mapping[str, float]
    deserved: Mapping[str, float]
    groups: Mapping[Column, tuple[float, float]]
    quality: float
    calls: int = 0
    unusable: int = 0


@dataclass(frozen=True, slots=True)
class KeptRequest:
    """A request as the account has it: `groups` maps a column to what it received and deserved."""

    number: int
    time: float
    query: str
    quality: float
    calls: int
    unusable: int
    groups: Mapping[Column, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class AccountSize:
    """What an account holds; `folded` documents have left it, `set_back` is how often the clock went back."""

    collection: str
    requests: int
    documents: int
    folded: int
    single: int
    days: int
    bytes: int
    set_back: int

    def __str__(self) -> str:
        left = f", {counted(self.folded, 'document')} folded into their groups" if self.folded else ""
        back = f", the clock went back {counted(self.set_back, 'time')}" if self.set_back else ""
        return (
            f"account of {self.collection!r}: {counted(self.requests, 'request')} ({self.single:,} of them singly), "
            f"{counted(self.documents, 'document')}, {counted(self.days, 'day')}, {self.bytes / 1e6:.1f} MB{left}{back}"
        )


class Account:
    """The account in `path`, of the collection that `identity` names; made where there is none.

    What documents and groups have is halved after every `half_life` requests (0: never). `clock` gives seconds since
    1970. Raises DataError where the file is no account, damaged, of another collection or kept on another basis,
    NotRegular where it is no file, BackendUnavailable where it cannot be written.
    """

    def __init__(
        self,
        path: Path,
        identity: Identity,
        half_life: float = 0.0,
        queries: Queries = "hash",
        bounds: AccountBounds = PLAIN,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path, self.half_life, self.queries, self.bounds = path, half_life, queries, bounds
        self._clock, self._lock = clock, threading.RLock()
        with explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            # Made here, so that it is nobody else's from the first byte; SQLite gives its own files the same rights.
            os.close(open_to_write(path, os.O_RDWR | os.O_CREAT, private=True))
        self._connection = _connected(path)
        finalize(self, self._connection.close)
        with self._explained():
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            with self._transaction():
                for statement in SCHEMA.split(";"):
                    self._connection.execute(statement)
                self._identify(identity)

    def _identify(self, identity: Identity) -> None:
        about = self._about()
        if not about:
            given = {"format": FORMAT, "collection": identity.collection, "fingerprint": identity.fingerprint}
            salt = {"salt": os.urandom(16).hex()}
            self._note(**given, **salt, basis=json.dumps(dict(identity.basis), sort_keys=True))
            return
        _expect_format(self.path, about)
        if about["collection"] != identity.collection:
            raise DataError(
                f"{self.path} is the account of collection {in_line(about['collection'])!r}, not of "
                f"{in_line(identity.collection)!r}; name another file"
            )
        basis = parse_json(about["basis"])
        for key, value in identity.basis.items():
            if basis.get(key) != value:
                before = in_line(str(basis.get(key)))
                raise DataError(
                    f"{self.path} was kept with {key} {before}, not {in_line(value)}: both in one sum would mean "
                    "nothing; name another file"
                )
        if about["fingerprint"] != identity.fingerprint:
            ids = [id for (id,) in self._connection.execute("SELECT id FROM documents ORDER BY at DESC LIMIT 1000")]
            known = sum(map(bool, identity.has(ids))) if identity.has and ids else len(ids)
            if 2 * known < len(ids):
                raise DataError(
                    f"{self.path} is the account of another collection of the name {in_line(identity.collection)!r}: "
                    f"of {counted(len(ids), 'document')} that it had last {known:,} are here; name another file"
                )
            self._note(fingerprint=identity.fingerprint)

    def documents(self, ids: Sequence[str]) -> FloatArray:
        """What these documents are owed, (n,), in shares of one request's attention; 0 for those that are not in it."""
        with self._reading() as number:
            rows = self._documents(ids)
            return np.array([_debt(rows.get(id), number, self._factor) for id in ids])

    def groups(self, columns: Sequence[Column]) -> FloatArray:
        """What these groups are owed, (g,), in shares of one request's attention."""
        with self._reading() as number:
            rows = self._groups()
            return np.array([_debt(rows.get(column), number, self._factor) for column in columns])

    def shares(self, columns: Sequence[Column]) -> tuple[FloatArray, FloatArray]:
        """What these groups received and deserved of all attention so far, (g,) each; 0 before the first request."""
        with self._reading() as number:
            rows, factor = self._groups(), self._factor
            total = _aged(rows[WHOLE], number, factor)[0] if WHOLE in rows else 1.0
            both = [_aged(rows[one], number, factor) if one in rows else (0.0, 0.0) for one in columns]
            received, deserved = np.array(both).reshape(-1, 2).T / total
            return received, deserved

    def add(self, entry: Entry) -> tuple[str, ...]:
        """Count one request; notes where the clock went back. Raises BackendUnavailable where it cannot be written."""
        with self._explained(), self._lock, self._transaction():
            about = self._about()
            last = float(about.get("time", "-inf"))
            now = self._clock()
            back = last - now if now < last else 0.0
            moment = max(now, last)
            shares: dict[str, dict[str, list[float]]] = {}
            for (dimension, label), (received, deserved) in entry.groups.items():
                shares.setdefault(dimension, {})[label] = [round(received, 9), round(deserved, 9)]
            number = self._connection.execute(
                "INSERT INTO requests (time, query, quality, calls, unusable, shares) VALUES (?, ?, ?, ?, ?, ?)",
                (
                    moment,
                    self._query(entry.query, about["salt"]),
                    entry.quality,
                    entry.calls,
                    entry.unusable,
                    json.dumps(shares, separators=(",", ":")),
                ),
            ).lastrowid
            assert number is not None
            self._count(entry, number)
            self._count_day(entry, datetime.fromtimestamp(moment, UTC).date().isoformat())
            self._note(time=repr(moment), **({"set_back": str(int(about.get("set_back", 0)) + 1)} if back else {}))
            self._connection.execute("DELETE FROM requests WHERE number <= ?", (number - self.bounds.requests,))
            if number % FOLDED_EVERY == 0:
                self._fold(about)
        if back:
            return (f"the clock went back by {back:.0f} s: in the account this request has the time of the one before",)
        return ()

    @property
    def basis(self) -> Mapping[str, str]:
        """What it was kept by: `due`, `discount`."""
        with self._reading():
            basis: Mapping[str, str] = parse_json(self._about()["basis"])
        return basis

    def requests(self) -> Iterator[KeptRequest]:
        """The single requests that are kept, the first one first."""
        with self._reading():
            rows = self._connection.execute("SELECT * FROM requests ORDER BY number").fetchall()
        for number, moment, query, quality, calls, unusable, shares in rows:
            groups = {
                (dimension, label): (float(both[0]), float(both[1]))
                for dimension, labels in parse_json(shares).items()
                for label, both in labels.items()
            }
            yield KeptRequest(number, moment, query, quality, calls, unusable, groups)

    def size(self) -> AccountSize:
        """What it holds."""
        with self._reading() as number:
            about = self._about()
            count = {
                name: int(self._connection.execute(f"SELECT count({what}) FROM {name}").fetchone()[0])
                for name, what in (("documents", "*"), ("requests", "*"), ("days", "DISTINCT day"))
            }
        files = self.path.parent.glob(f"{self.path.name}*")
        return AccountSize(
            about["collection"],
            number,
            count["documents"],
            int(about.get("folded", 0)),
            count["requests"],
            count["days"],
            sum(path.stat().st_size for path in files if path.name in (self.path.name, f"{self.path.name}-wal")),
            int(about.get("set_back", 0)),
        )

    @property
    def _factor(self) -> float:
        """What is left of a share after one more request."""
        return float(0.5 ** (1 / self.half_life)) if self.half_life else 1.0

    def _query(self, query: str, salt: str) -> str:
        if self.queries == "hash":
            return hashlib.sha256(f"{salt}\n{query}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return query if self.queries == "text" else ""

    def _count(self, entry: Entry, number: int) -> None:
        received, deserved = entry.received, entry.deserved
        ids = [id for id in dict.fromkeys((*deserved, *received)) if id in received or deserved[id]]
        columns = {**entry.groups, WHOLE: (1.0, 1.0)}
        if self._factor < 1:
            # What is there fades first, so that all sums are of this moment.
            faded = [(*_aged(row, number, self._factor), number, id) for id, row in self._documents(ids).items()]
            self._connection.executemany("UPDATE documents SET received = ?, deserved = ?, at = ? WHERE id = ?", faded)
            groups = [
                (*_aged(row, number, self._factor), number, *column)
                for column, row in self._groups().items()
                if column in columns
            ]
            change = "UPDATE groups SET received = ?, deserved = ?, at = ? WHERE dimension = ? AND label = ?"
            self._connection.executemany(change, groups)
        self._connection.executemany(
            f"INSERT INTO documents VALUES (?, ?, ?, ?) {ADDED}, at = excluded.at",
            [(id, received.get(id, 0.0), deserved.get(id, 0.0), number) for id in ids],
        )
        self._connection.executemany(
            f"INSERT INTO groups VALUES (?, ?, ?, ?, ?) {ADDED}, at = excluded.at",
            [(*column, *both, number) for column, both in columns.items()],
        )

    def _count_day(self, entry: Entry, day: str) -> None:
        self._connection.executemany(
            f"INSERT INTO days VALUES (?, ?, ?, ?, ?) {ADDED}",
            [(day, *column, *both) for column, both in (*entry.groups.items(), (WHOLE, (1.0, 1.0)))],
        )
        latest = "SELECT DISTINCT day FROM days ORDER BY day DESC LIMIT ?"
        self._connection.execute(f"DELETE FROM days WHERE day NOT IN ({latest})", (self.bounds.days,))

    def _fold(self, about: Mapping[str, str]) -> None:
        """Let the documents with the smallest debts go where there are too many; their groups have counted them."""
        there = int(self._connection.execute("SELECT count(*) FROM documents").fetchone()[0])
        if there > self.bounds.documents:
            gone = there - int(KEPT * self.bounds.documents)
            least = "SELECT id FROM documents ORDER BY abs(deserved - received), at, id LIMIT ?"
            self._connection.execute(f"DELETE FROM documents WHERE id IN ({least})", (gone,))
            self._note(folded=str(int(about.get("folded", 0)) + gone))

    def _documents(self, ids: Sequence[str]) -> dict[str, tuple[float, float, int]]:
        entries: dict[str, tuple[float, float, int]] = {}
        for start in range(0, len(ids), AT_ONCE):
            some = ids[start : start + AT_ONCE]
            marks = ", ".join("?" * len(some))
            for id, *row in self._connection.execute(f"SELECT * FROM documents WHERE id IN ({marks})", some):
                entries[id] = (row[0], row[1], row[2])
        return entries

    def _groups(self) -> dict[Column, tuple[float, float, int]]:
        rows = self._connection.execute("SELECT * FROM groups")
        return {(dimension, label): (received, due, at) for dimension, label, received, due, at in rows}

    def _about(self) -> dict[str, str]:
        return dict(self._connection.execute("SELECT key, value FROM about"))

    def _note(self, **values: str) -> None:
        self._connection.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", list(values.items()))

    @contextmanager
    def _reading(self) -> Iterator[int]:
        """A block that sees one state, that after so many requests."""
        with self._explained(), self._lock:
            self._connection.execute("BEGIN")
            try:
                row = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'requests'").fetchone()
                yield int(row[0]) if row else 0
            finally:
                self._connection.execute("ROLLBACK")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
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
            raise account_error(self.path, error) from None


def open_account(path: Path) -> Account:
    """The account in a file as it is, to read; DataError where there is none.

    It is whatever collection's the file says.
    """
    try:
        with _connected(path, reading=True) as connection:
            about = dict(connection.execute("SELECT key, value FROM about"))
        connection.close()
        _expect_format(path, about)
        identity = Identity(about["collection"], about["fingerprint"], parse_json(about["basis"]))
    except (KeyError, ValueError) as error:
        raise DataError(f"{path} is no account of requests ({error})") from None
    except sqlite3.Error as error:
        raise account_error(path, error) from None
    return Account(path, identity)


def account_error(path: Path, error: sqlite3.Error) -> BackendUnavailable | DataError:
    """What SQLite's error about the file comes to: the disk, the rights and other writers, or damage."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in ENVIRONMENT:
        return BackendUnavailable(f"the account {path} cannot be used now ({error})")
    return DataError(f"{path} is no account of requests, or damaged ({error}); move it away, and a new one is begun")


def _connected(path: Path, reading: bool = False) -> sqlite3.Connection:
    # By its address, so that a path to read makes no new file.
    address = f"{path.absolute().as_uri()}?mode={'ro' if reading else 'rw'}"
    return sqlite3.connect(address, LONGEST_WAIT, isolation_level=None, check_same_thread=False, uri=True)


def _expect_format(path: Path, about: Mapping[str, str]) -> None:
    if about.get("format") != FORMAT:
        there = in_line(str(about.get("format")))
        raise DataError(f"{path} is an account of format {there}; this version of fairagent reads {FORMAT}")


def _aged(row: tuple[float, float, int] | None, number: int, factor: float) -> tuple[float, float]:
    """What a row received and deserved, as of request `number`."""
    if row is None:
        return 0.0, 0.0
    left = factor ** max(number - row[2], 0)
    return row[0] * left, row[1] * left


def _debt(row: tuple[float, float, int] | None, number: int, factor: float) -> float:
    received, deserved = _aged(row, number, factor)
    return deserved - received
