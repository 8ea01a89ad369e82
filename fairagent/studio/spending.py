"""What users have spent on language models: a small database beside their file, which survives a restart.

Each request to a model is reserved before it is sent, at the most that it can take, and settled at what it took; both
are on the disk when it goes on. What a killed process leaves reserved counts as spent: it may have been. Several
processes may share the database. A reply from the cache costs nobody anything.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fairagent.extend import BackendUnavailable, BudgetExceeded, logger, open_to_write, sleep
from fairagent.studio.tokens import DAY, User

TABLE = """
create table if not exists requests (
  id integer primary key autoincrement, user text not null, day text not null, began real not null,
  tokens integer not null, dollars real not null
);
create table if not exists sums (
  user text not null, day text not null, calls integer not null, tokens integer not null, dollars real not null,
  primary key (user, day)
);
"""
"""`sums` are what was settled; `requests` those that are in the air, or were when their process was killed."""
PATIENCE = 20.0
"""Seconds to wait for another process that writes."""
IN_THE_AIR = 600.0
"""Seconds after which nobody waits for a request to be settled; what it reserved counts as spent."""
POLL = 0.05

log = logger(__name__)


class UserBudgetExceeded(BudgetExceeded):
    """A user has spent what they may; `retry_after` is in seconds, None where time does not help."""

    retry_after: int | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """What requests took, or reserve."""

    calls: int = 0
    tokens: int = 0
    dollars: float = 0.0


class SpendingBook:
    """The database at `path`, which is made where it is not there. Threads and processes may share it.

    `now` gives seconds since 1970, `pause` waits. Raises NotRegular for a link or what is no file, BackendUnavailable
    where it cannot be used.
    """

    def __init__(
        self, path: Path, now: Callable[[], float] = time.time, pause: Callable[[float], None] = sleep
    ) -> None:
        self.path, self._now, self._pause = path, now, pause
        self._lock = threading.Lock()
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

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """The database, where nobody else writes; undone where the block raises."""
        with self._explained(), self._lock:
            self._rows.execute("begin immediate")
            try:
                yield self._rows
                self._rows.execute("commit")
            except BaseException:
                if self._rows.in_transaction:
                    self._rows.execute("rollback")
                raise

    def spent(self, user: User) -> Spent:
        """What a user has spent of the budget as it is now; without one, in all."""
        with self._explained(), self._lock:
            settled, air = self._both(user)
        return Spent(settled.calls + air.calls, settled.tokens + air.tokens, settled.dollars + air.dollars)

    def _both(self, user: User) -> tuple[Spent, Spent]:
        """What is settled or lost, and what is in the air."""
        day = self._day() if user.budget and user.budget.per == "day" else "%"
        sums = "select coalesce(sum(calls), 0), coalesce(sum(tokens), 0), coalesce(sum(dollars), 0) from"
        key = (user.name, day)
        done = self._rows.execute(f"{sums} sums where user = ? and day like ?", key).fetchone()
        requests = f"{sums} (select 1 as calls, * from requests) where user = ? and day like ? and began"
        lost = self._rows.execute(f"{requests} <= ?", (*key, self._now() - IN_THE_AIR)).fetchone()
        air = self._rows.execute(f"{requests} > ?", (*key, self._now() - IN_THE_AIR)).fetchone()
        return Spent(*map(sum, zip(done, lost, strict=True))), Spent(*air)

    def _day(self) -> str:
        return datetime.fromtimestamp(self._now(), UTC).date().isoformat()

    def limit(self, user: User) -> SpendingLimit:
        """The limit on what is done for a user."""
        return SpendingLimit(self, user)

    def reserve(self, user: User, tokens: int, dollars: float | None) -> int:
        """The number of a request of at most `tokens` and `dollars`; waits where others in the air take the room.

        Raises UserBudgetExceeded, which names the limit, and when there is more.
        """
        if dollars is None and user.budget and user.budget.dollars is not None:
            raise UserBudgetExceeded(
                f"the budget of {user.name} is in dollars, and the price of this model is not known: whoever runs this "
                "server adds it to `prices` of the settings"
            )
        while True:
            with self._writing() as rows:
                settled, air = self._both(user)
                if self._fits(user, settled, air, tokens, dollars or 0.0):
                    row = (user.name, self._day(), self._now(), tokens, dollars or 0.0)
                    insert = "insert into requests (user, day, began, tokens, dollars) values (?, ?, ?, ?, ?)"
                    return rows.execute(insert, row).lastrowid or 0
            self._pause(POLL)

    def _fits(self, user: User, settled: Spent, air: Spent, tokens: int, dollars: float) -> bool:
        budget, fits = user.budget, True
        if budget is None:
            return True
        # A call is one when it is sent, whatever becomes of it.
        for unit, limit, used, held, amount in (
            ("calls", budget.calls, settled.calls + air.calls, 0, 1),
            ("tokens", budget.tokens, settled.tokens, air.tokens, tokens),
            ("dollars", budget.dollars, settled.dollars, air.dollars, dollars),
        ):
            if limit is None:
                continue
            if used + amount > limit:
                raise self._exceeded(user, unit, limit, f"{used:,.6g} are used, the next call may take {amount:,.6g}")
            fits = fits and used + held + amount <= limit
        return fits

    def _exceeded(self, user: User, unit: str, limit: float, state: str) -> UserBudgetExceeded:
        when, seconds = "", None
        if user.budget and user.budget.per == "day":
            today = datetime.fromtimestamp(self._now(), UTC)
            tomorrow = (today + DAY).replace(hour=0, minute=0, second=0, microsecond=0)
            seconds = int((tomorrow - today).total_seconds()) + 1
            when = f" for {today:%Y-%m-%d} (UTC)"
        more = f"there is more at {tomorrow:%Y-%m-%d %H:%M} UTC" if seconds else "ask whoever runs this server for more"
        error = UserBudgetExceeded(f"{user.name}'s budget of {limit:,.6g} {unit}{when} is used up ({state}); {more}")
        error.retry_after = seconds
        return error

    def settle(self, number: int, spent: Spent) -> None:
        """The request of this number took this much."""
        with self._writing() as rows:
            row = rows.execute("delete from requests where id = ? returning user, day", (number,)).fetchone()
            if row and spent.calls:
                rows.execute(
                    "insert into sums values (?, ?, ?, ?, ?) on conflict do update set calls = calls + excluded.calls, "
                    "tokens = tokens + excluded.tokens, dollars = dollars + excluded.dollars",
                    (*row, spent.calls, spent.tokens, spent.dollars),
                )


@dataclass(frozen=True, slots=True)
class SpendingLimit:
    """The `Limit` on what is done for a user."""

    book: SpendingBook
    user: User

    def reserve(self, tokens: int, dollars: float | None) -> ReservedSpending:
        """Room for a request; see `SpendingBook.reserve`."""
        return ReservedSpending(self.book, self.book.reserve(self.user, tokens, dollars))


@dataclass(frozen=True, slots=True)
class ReservedSpending:
    """One request."""

    book: SpendingBook
    number: int

    def settle(self, tokens: int, dollars: float) -> None:
        """It took this much; where that cannot be kept, what it has reserved counts, and its reply is not lost."""
        try:
            self.book.settle(self.number, Spent(1, tokens, dollars))
        except BackendUnavailable as error:
            log.error("%s", error)

    def give_back(self) -> None:
        """It was not sent."""
        self.book.settle(self.number, Spent())
