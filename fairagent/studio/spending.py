"""What users have spent on language models: a small database beside their file, which survives a restart.

Each request to a model is counted before it is sent, at the most that it can take, and corrected to what it took; both
are on the disk when it goes on. What a killed process leaves counts as spent: it may have been. Several processes may
share the database. A reply from the cache costs nobody anything.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fairagent.errors import BackendUnavailable, BudgetExceeded
from fairagent.storage.files import open_to_write
from fairagent.studio.tokens import User
from fairagent.types.clean import logger

TABLE = """
create table if not exists sums (
  user text not null, day text not null, calls integer not null, tokens integer not null, dollars real not null,
  primary key (user, day)
);
"""
PATIENCE = 20.0
"""Seconds to wait for another process that writes."""

log = logger(__name__)


class UserBudgetExceeded(BudgetExceeded):
    """A user has spent what they may; `retry_after` is in seconds, None where time does not help."""

    retry_after: int | None = None


class SpendingBook:
    """The database at `path`, which is made where it is not there. Threads and processes may share it.

    `now` gives seconds since 1970. Raises NotRegular for a link or what is no file, BackendUnavailable where it cannot
    be used.
    """

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        self.path, self._now = path, now
        self._lock = threading.RLock()
        with self._explained():
            # First: the database itself would follow a link, and let others read it.
            os.close(open_to_write(path, os.O_RDWR | os.O_CREAT, private=True))
            self._rows = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
            self._rows.executescript(TABLE)

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._rows.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise BackendUnavailable(
                f"what users have spent cannot be kept at {self.path} ({error}); no model is asked without: make room, "
                "or move the file away to begin at nothing"
            ) from None

    def spent(self, user: User) -> tuple[int, int, float]:
        """Calls, tokens and dollars that a user has spent of the budget as it is now; without one, in all."""
        days = ["0001-01-01", "9999-12-31"]
        if user.budget and user.budget.per == "day":
            # With tomorrow: a clock that is put back a little gives nobody a day's budget twice.
            days = [(self._today() + timedelta(days=more)).date().isoformat() for more in (0, 1)]
        sums = "select coalesce(sum(calls), 0), coalesce(sum(tokens), 0), coalesce(sum(dollars), 0) from sums"
        with self._explained(), self._lock:
            row: tuple[int, int, float] = self._rows.execute(
                f"{sums} where user = ? and day between ? and ?", (user.name, *days)
            ).fetchone()
        return row

    def reserve(self, user: User, tokens: int, dollars: float | None) -> ReservedSpending:
        """Room for a request of at most `tokens` and `dollars`; UserBudgetExceeded, which says when there is more."""
        if dollars is None and user.budget and user.budget.dollars is not None:
            raise UserBudgetExceeded(
                f"the budget of {user.name} is in dollars, and the price of this model is not known: whoever runs this "
                "server adds it to `prices` of the settings"
            )
        amounts = (1, tokens, dollars or 0.0)
        with self._explained(), self._lock:
            self._rows.execute("begin immediate")
            try:
                self._expect_room(user, amounts)
                reserved = ReservedSpending(self, user.name, self._today().date().isoformat(), amounts)
                self.add(reserved, *amounts)
            except BaseException:
                self._rows.rollback()
                raise
            self._rows.commit()
        return reserved

    def add(self, reserved: ReservedSpending, calls: int, tokens: int, dollars: float) -> None:
        """Count this much more, or less, of a request."""
        with self._explained(), self._lock:
            self._rows.execute(
                "insert into sums values (?, ?, ?, ?, ?) on conflict do update set calls = calls + excluded.calls, "
                "tokens = tokens + excluded.tokens, dollars = dollars + excluded.dollars",
                (reserved.user, reserved.day, calls, tokens, dollars),
            )

    def _expect_room(self, user: User, amounts: tuple[int, int, float]) -> None:
        if (budget := user.budget) is None:
            return
        limits = {"calls": budget.calls, "tokens": budget.tokens, "dollars": budget.dollars}
        for (unit, limit), used, amount in zip(limits.items(), self.spent(user), amounts, strict=True):
            if limit is None or used + amount <= limit:
                continue
            today, seconds, when = self._today(), None, "in all"
            more = "ask whoever runs this server for more"
            if budget.per == "day":
                tomorrow = (today + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
                seconds = int((tomorrow - today).total_seconds()) + 1
                when, more = f"for {today:%Y-%m-%d} (UTC)", f"there is more at {tomorrow:%Y-%m-%d %H:%M} UTC"
            error = UserBudgetExceeded(
                f"{user.name}'s budget of {limit:,.6g} {unit} {when} is used up ({used:,.6g} are used, the next call "
                f"may take {amount:,.6g}); {more}"
            )
            error.retry_after = seconds
            raise error

    def _today(self) -> datetime:
        return datetime.fromtimestamp(self._now(), UTC)


@dataclass(frozen=True, slots=True)
class SpendingLimit:
    """The `Limit` on what is done for a user."""

    book: SpendingBook
    user: User

    def reserve(self, tokens: int, dollars: float | None) -> ReservedSpending:
        """Room for a request; see `SpendingBook.reserve`."""
        return self.book.reserve(self.user, tokens, dollars)


@dataclass(frozen=True, slots=True)
class ReservedSpending:
    """One request of a user, begun on a day: the calls, tokens and dollars that are counted for it."""

    book: SpendingBook
    user: str
    day: str
    amounts: tuple[int, int, float]

    def settle(self, tokens: int, dollars: float) -> None:
        """It took this much; where that cannot be kept, what it has reserved counts, and its reply is not lost."""
        try:
            self.book.add(self, 0, tokens - self.amounts[1], dollars - self.amounts[2])
        except BackendUnavailable as error:
            log.error("%s", error)

    def give_back(self) -> None:
        """It was not sent."""
        calls, tokens, dollars = self.amounts
        self.book.add(self, -calls, -tokens, -dollars)
