"""`ReplyCache`: replies of models, vectors and likelihoods too, stored on disk, so that none is paid for twice."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import diskcache
from pydantic import TypeAdapter

from fairagent.errors import BackendUnavailable, NotRegular, SettingsError
from fairagent.llm.request import ModelReply
from fairagent.storage.files import expect_regular, one_at_a_time, sealed, unsealed
from fairagent.storage.threads import holding
from fairagent.types.clean import logger

ENVIRONMENT = (
    *("SQLITE_PERM", "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_NOMEM", "SQLITE_READONLY", "SQLITE_INTERRUPT"),
    *("SQLITE_IOERR", "SQLITE_FULL", "SQLITE_CANTOPEN", "SQLITE_PROTOCOL", "SQLITE_AUTH"),
)
"""SQLite's codes where the disk, the rights or another process is at fault; every other code is damage."""
ODD = (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError)
"""What diskcache raises where the tables hold what it never wrote there."""
FAULTS = (sqlite3.Error, OSError, diskcache.Timeout, *ODD)
FORMAT_KEY, FORMAT = "format", "1"
"""Of the rows; a database of another format is moved aside."""
ASIDE = "+"
"""How the keys begin of what is no reply."""
DATABASE = "cache.db"
ASKING = ".asking-"
"""How the names of the files begin that are there while a request is on its way."""
LONGEST_WAIT = 10.0
"""Seconds that another process may keep the database locked."""

log = logger(__name__)

T = TypeVar("T")

_ROW = TypeAdapter(ModelReply)


class TextDisk(diskcache.Disk):  # type: ignore[misc]
    """A diskcache disk that stores texts only; what is none of ours is "".

    diskcache's own disks unpickle what a row says is a pickle, so that whoever can write to the database can run code.
    Here such a row is no value at all, and a row's file name is never opened nor removed.
    """

    def put(self, key: Any) -> tuple[str, bool]:
        """The key as it is stored."""
        if not isinstance(key, str):
            raise TypeError(f"expected a text, not {type(key).__name__}")
        return key, True

    def get(self, key: Any, raw: Any) -> str:
        """A stored key."""
        return key if raw and isinstance(key, str) else ""

    def store(self, value: Any, read: Any, key: Any = None) -> tuple[int, int, None, str]:
        """The value as it is stored: size (as diskcache counts: 0 in the database), mode, no file name, the text."""
        return 0, diskcache.core.MODE_RAW, None, self.put(value)[0]

    def fetch(self, mode: Any, filename: Any, value: Any, read: Any) -> str:
        """A stored value."""
        return value if mode == diskcache.core.MODE_RAW and filename is None and isinstance(value, str) else ""

    def remove(self, file_path: Any) -> None:
        """Nothing: no row of ours names a file."""


@dataclass(frozen=True, slots=True)
class CacheStats:
    """How many replies there are, of which models, how many bytes they take, and what they took when they were paid."""

    folder: str
    replies: int
    bytes: int
    calls: int
    tokens: int
    dollars: float
    models: dict[str, int]


class ReplyCache:
    """Replies by the hash of their requests, in a folder of its own that only its owner can read.

    Nothing is ever thrown out. A damaged database is moved aside, and a new one begun. Where it cannot be written any
    more (full disk, read-only), one warning says so, and replies are not stored. Threads and processes may share it.
    Raises SettingsError where the folder holds something else, BackendUnavailable where it cannot be used.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self._lock = threading.Lock()
        self._warned = False
        self._keys: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            there = sorted(self.folder.iterdir())
            if foreign := [path.name for path in there if not path.name.startswith((DATABASE, "."))]:
                raise SettingsError(
                    f"cache: {self.folder} holds other things ({foreign[0]}); name a folder that is the cache's alone"
                )
            for path in self.folder.glob(f"{DATABASE}*"):
                expect_regular(path, path.lstat())
            with suppress(PermissionError):
                self.folder.chmod(0o700)
            for path in there:
                if path.name.startswith(ASKING):
                    # A killed process has left it; where somebody is asking, it stays.
                    with one_at_a_time(path, 0.0):
                        pass
            try:
                self._connect()
            except FAULTS as error:
                if not _damaged(error):
                    raise
                self._move_aside(error)
                self._connect()
        except NotRegular:
            raise
        except (OSError, sqlite3.Error, diskcache.Timeout) as error:
            raise BackendUnavailable(
                f"the cache of replies cannot be made in {self.folder} ({_reason(error)}); name another folder with "
                "`cache:` in the settings, or none with `cache: ''`"
            ) from None

    def get(self, key: str) -> ModelReply | None:
        """The reply under `key`, marked as `cached`; None where there is none that can be read."""
        text = self._try(lambda rows: rows.get(key))
        if text is None:
            return None
        try:
            return replace(_ROW.validate_json(unsealed(text.encode(), key)), cached=True)
        except (ValueError, RecursionError):
            log.warning("a row of the cache in %s is damaged or not one of fairagent's; it is ignored", self.folder)
            return None

    def put(self, key: str, reply: ModelReply) -> None:
        """Store `reply` with a checksum; a cache that cannot take it loses no reply that was paid for."""
        text = sealed(json.dumps(asdict(reply)), key)
        # Without diskcache's own `retry`, which would try for ever on a database that cannot be written.
        self._try(lambda rows: rows.set(key, text))

    def fetch(
        self,
        key: str,
        seconds: float,
        read: Callable[[ModelReply], T | None],
        ask: Callable[[], tuple[T, ModelReply]],
    ) -> T:
        """What `read` makes of the reply under `key`, or else what `ask` returns with the reply to store.

        Of all who fetch the same, one asks; the others wait for it up to `seconds`.
        """
        if (known := self.get(key)) and (value := read(known)) is not None:
            return value
        with self.alone(key, seconds):
            # Somebody else may have asked meanwhile.
            if (reply := self.get(key)) and reply != known and (value := read(reply)) is not None:
                return value
            value, reply = ask()
            self.put(key, reply)
        return value

    @contextmanager
    def alone(self, key: str, seconds: float) -> Iterator[None]:
        """A block that one thread of one process is in for a `key`; others wait, processes up to `seconds`."""
        with self._lock:
            lock = self._keys.setdefault(key, threading.Lock())
        with holding(lock), one_at_a_time(self.folder / f"{ASKING}{key}", seconds):
            yield

    def recall(self, key: str) -> str:
        """The text that was remembered under `key`, which is no reply; "" where there is none."""
        with suppress(ValueError):
            return unsealed((self._try(lambda rows: rows.get(f"{ASIDE}{key}")) or "").encode(), key).decode()
        return ""

    def remember(self, key: str, text: str) -> None:
        """Remember a `text` under `key`, in one line, in the place of the one before."""
        self._try(lambda rows: rows.set(f"{ASIDE}{key}", sealed(text, key)))

    def clear(self) -> int:
        """Delete every reply, and what was remembered; how many replies there were."""
        count = self.stats().replies
        self._try(lambda rows: rows.clear() and rows.set(FORMAT_KEY, FORMAT))
        return count

    def stats(self) -> CacheStats:
        """What the cache holds; what cannot be read is left out."""
        rows = [self.get(key) for key in self._try(list) or () if key not in ("", FORMAT_KEY) and key[:1] != ASIDE]
        replies = [reply for reply in rows if reply]
        models = Counter(reply.model for reply in replies)
        size = sum(path.stat().st_size for path in self.folder.glob(f"{DATABASE}*"))
        calls, tokens = sum(one.calls for one in replies), sum(one.input_tokens + one.output_tokens for one in replies)
        dollars = sum((one.cost or 0.0 for one in replies), 0.0)
        return CacheStats(str(self.folder), models.total(), size, calls, tokens, dollars, dict(models))

    def close(self) -> None:
        """Close the database."""
        self._rows.close()

    def _try(self, work: Callable[[Any], T]) -> T | None:
        """What `work` makes of the database, or of a new one if it is damaged; None where that cannot be."""
        for last in (False, True):
            rows = self._rows
            try:
                return work(rows)
            except FAULTS as error:
                if last or not _damaged(error) or not self._replaced(rows, error):
                    if not self._warned:
                        self._warned, reason = True, _reason(error)
                        log.warning("the cache in %s cannot be used (%s); replies are not stored", self.folder, reason)
                    break
        return None

    def _connect(self) -> None:
        rows = diskcache.Cache(
            str(self.folder), timeout=LONGEST_WAIT, disk=TextDisk, eviction_policy="none", cull_limit=0, statistics=0
        )
        written = rows.get(FORMAT_KEY)
        if written is None:
            rows.set(FORMAT_KEY, FORMAT)
        elif written != FORMAT:
            rows.close()
            raise sqlite3.DatabaseError(f"format {written[:9]!r}; this version of fairagent writes {FORMAT!r}")
        self._rows, self._inode = rows, (self.folder / DATABASE).stat().st_ino
        # Others cannot enter the folder; nor read what somebody copies out of it.
        for path in self.folder.glob(f"{DATABASE}*"):
            # Another process may have closed it, and its log is gone.
            with suppress(PermissionError, FileNotFoundError):
                path.chmod(0o600)

    def _replaced(self, old: Any, error: Exception) -> bool:
        """Whether there is another database in the place of the damaged `old` one."""
        with self._lock:
            # Another thread, or another process, may have replaced it in the meantime.
            if self._rows is old:
                try:
                    with suppress(sqlite3.Error):
                        old.close()
                    if (self.folder / DATABASE).stat().st_ino == self._inode:
                        self._move_aside(error)
                    self._connect()
                except (sqlite3.Error, OSError, diskcache.Timeout):
                    return False
        return True

    def _move_aside(self, error: Exception) -> None:
        moment = time.strftime("%Y%m%d-%H%M%S")
        names = (f"{self.folder.name}.bad-{moment}{more}" for more in ("", *(f"-{n}" for n in range(2, 100))))
        aside = next(path for name in names if not (path := self.folder.with_name(name)).exists())
        self.folder.rename(aside)
        self.folder.mkdir(mode=0o700)
        log.warning("the cache in %s is damaged (%s); it was moved to %s, a new one begun", self.folder, error, aside)


def _damaged(error: Exception) -> bool:
    """Whether the file is at fault, and not the disk, the rights or another process."""
    if not isinstance(error, sqlite3.Error):
        return isinstance(error, ODD)
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    # A short read is an error of the disk by its code, but it means a file that ends too early.
    return code == sqlite3.SQLITE_IOERR_SHORT_READ or code & 0xFF not in {getattr(sqlite3, one) for one in ENVIRONMENT}


def _reason(error: Exception) -> str:
    """What went wrong, in words; diskcache has none where it cannot begin to write."""
    return str(error) or "it cannot be written: read-only, or locked by another process"
