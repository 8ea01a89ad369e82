"""Who is let in, and what they may spend: `RequestGuard`, one token or a file of users, and what these have spent.

A browser carries requests of every page that is open in it, also to 127.0.0.1. So the name that it calls this server
by has to be one of the server's (a name that others point here is none), the origin of the page has to be this server,
and the token has to be there, which other pages cannot know. The token is in a header that our pages set themselves: a
browser sends cookies to every port of this machine, so that any other program here would get it.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import Field, ValidationError, model_validator
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairagent.errors import BackendUnavailable, BudgetExceeded, DataError, FairAgentError, Fault, UsageError
from fairagent.llm.budget import limited_by
from fairagent.settings.faults import fault_lines
from fairagent.storage.files import open_to_read, open_to_write
from fairagent.storage.readers import parse_json
from fairagent.studio.desk import RequestModel
from fairagent.types.clean import logger

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Mapping[str, str] = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
LARGEST_BODY = 256_000
"""Bytes of a request: a query has 2,000 characters at most, a list 1,000 ids."""
LARGEST_FILE = 1_000_000
"""Bytes of a file of users: some 5,000."""
DATA = "/api/"
"""How the addresses begin that need a token, besides `METRICS`; `OPEN` does not."""
OPEN = "/api/openapi.json"
METRICS = "/metrics"
NO_TOKEN = (
    "no token, or a wrong one: open the address that `fairagent serve` has printed, or ask whoever runs it for one"
)
TABLE = """
create table if not exists sums (
  user text not null, day text not null, calls integer not null, tokens integer not null, dollars real not null,
  primary key (user, day)
);
"""
PATIENCE = 20.0
"""Seconds to wait for another process that writes what users spent."""

log = logger(__name__)

T = TypeVar("T")

_receive: ContextVar[Receive] = ContextVar("receive")
"""What the client of this request sends next."""


class UserBudget(RequestModel):
    """What a user's requests may spend on language models; what is not set is not limited."""

    per: Literal["day", "total"] = "day"
    """A day begins at 0:00 UTC."""
    calls: Annotated[int, Field(ge=0)] | None = None
    tokens: Annotated[int, Field(ge=0)] | None = None
    dollars: Annotated[float, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _of_something(self) -> Self:
        if self.calls is None and self.tokens is None and self.dollars is None:
            raise ValueError("limits nothing: set calls, tokens or dollars")
        return self


class User(RequestModel):
    """A line of the file of users, with the SHA-256 of the token in hex.

    A token is 32 random bytes: nobody guesses one, however fast a hash is.
    """

    name: Annotated[str, Field(max_length=100, pattern=r"^[\w.@+-]+$")]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    budget: UserBudget | None = None


Admission = Mapping[str, User | None]
"""Who may ask, by the SHA-256 of their token; None: somebody without a name."""


def hash_of(token: str) -> str:
    """What the file of users holds of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def read_users(path: Path) -> Admission:
    """The users of a file, by their hashes; it has a JSON object a line, and is its owner's alone.

    Raises NotRegular and UsageError as `open_to_read` does, UsageError where there is nobody, DataError with every line
    that is wrong, BackendUnavailable where it cannot be read.
    """
    try:
        with open_to_read(path, private=True) as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        if isinstance(error, FairAgentError):
            raise
        raise BackendUnavailable(f"the users at {path} cannot be read ({error.strerror})") from None
    if len(data) > LARGEST_FILE:
        raise DataError(f"{path} is larger than {LARGEST_FILE // 1000} kB, and no file of users")
    users: dict[str, User] = {}
    faults: list[Fault] = []
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            user = User.model_validate(parse_json(line))
        except ValidationError as error:
            faults += [Fault(path, number, message) for message in fault_lines(User, error.errors())]
        except ValueError as error:
            faults.append(Fault(path, number, str(error)))
        else:
            if user.sha256 in users or user.name in (one.name for one in users.values()):
                faults.append(Fault(path, number, "the user or the token of another line again"))
            users[user.sha256] = user
    if faults:
        raise DataError("the file of users is wrong", faults)
    if not users:
        raise UsageError(f'{path} has no users: a line is {{"name": "ada", "sha256": of the token}}')
    return users


class UserBudgetExceeded(BudgetExceeded):
    """A user has spent what they may; `retry_after` is in seconds, None where time does not help."""

    retry_after: int | None = None


class SpendingBook:
    """What users have spent: the database at `path`, made where it is not there. Threads and processes may share it.

    Each request is counted before it is sent, at the most that it can take, and corrected to what it took; both are on
    the disk when it goes on. What a killed process leaves counts as spent: it may have been. `now` gives seconds since
    1970. Raises NotRegular for a link or what is no file, BackendUnavailable where it cannot be used.
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
                f"what users have spent cannot be stored at {self.path} ({error}); no model is called without: make "
                "room, or move the file away to begin at nothing"
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
        budget, amounts = user.budget or UserBudget.model_construct(), (1, tokens, dollars or 0.0)
        if dollars is None and budget.dollars is not None:
            raise UserBudgetExceeded(
                f"the budget of {user.name} is in dollars, and the price of this model is not known: whoever runs this "
                "server adds it to `prices` of the settings"
            )
        limits = {"calls": budget.calls, "tokens": budget.tokens, "dollars": budget.dollars}
        today, seconds, when = self._today(), None, "in all"
        more = "ask whoever runs this server for more"
        if budget.per == "day":
            tomorrow = (today + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
            seconds = int((tomorrow - today).total_seconds()) + 1
            when, more = f"for {today:%Y-%m-%d} (UTC)", f"there is more at {tomorrow:%Y-%m-%d %H:%M} UTC"
        # The connection's block commits, or takes back what was begun.
        with self._explained(), self._lock, self._rows:
            self._rows.execute("begin immediate")
            for (unit, limit), used, amount in zip(limits.items(), self.spent(user), amounts, strict=True):
                if limit is not None and used + amount > limit:
                    state = f"{used:,.6g} are used, the next call may take {amount:,.6g}"
                    what = f"{user.name}'s budget of {limit:,.6g} {unit} {when}"
                    error = UserBudgetExceeded(f"{what} is used up ({state}); {more}")
                    error.retry_after = seconds
                    raise error
            reserved = ReservedSpending(self, user.name, today.date().isoformat(), amounts)
            self.add(reserved, *amounts)
        return reserved

    def add(self, reserved: ReservedSpending, calls: int, tokens: int, dollars: float) -> None:
        """Count this much more, or less, of a request."""
        with self._explained(), self._lock:
            self._rows.execute(
                "insert into sums values (?, ?, ?, ?, ?) on conflict do update set calls = calls + excluded.calls, "
                "tokens = tokens + excluded.tokens, dollars = dollars + excluded.dollars",
                (reserved.user, reserved.day, calls, tokens, dollars),
            )

    def _today(self) -> datetime:
        return datetime.fromtimestamp(self._now(), UTC)


@dataclass(frozen=True, slots=True)
class ReservedSpending:
    """One request of a user, begun on a day: the calls, tokens and dollars that are counted for it."""

    book: SpendingBook
    user: str
    day: str
    amounts: tuple[int, int, float]

    def settle(self, tokens: int, dollars: float) -> None:
        """It took this much; where that cannot be stored, what it has reserved counts, and its reply is not lost."""
        try:
            self.book.add(self, 0, tokens - self.amounts[1], dollars - self.amounts[2])
        except BackendUnavailable as error:
            log.error("%s", error)

    def give_back(self) -> None:
        """It was not sent."""
        calls, tokens, dollars = self.amounts
        self.book.add(self, -calls, -tokens, -dollars)


@dataclass(frozen=True, slots=True)
class Door:
    """Who is let in: `hosts` are what the server is called, as browsers write it; `admission` None: no token is needed.

    `book` has what users spend. With `open_metrics` /metrics needs no token either.
    """

    hosts: frozenset[str]
    admission: Admission | None
    book: SpendingBook | None = None
    open_metrics: bool = False


_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?")


def hosts_of(address: str, port: int, names: Collection[str] = ()) -> frozenset[str]:
    """What a server at `address` is called: this machine, the address itself where it is one, and `names`.

    A name without a port is that of a proxy at the usual one, or stands before the server's own. UsageError for what is
    no name.

    >>> sorted(hosts_of("10.0.0.5", 80, ["search.example.org"]))[:3]
    ['10.0.0.5:80', '127.0.0.1:80', 'localhost:80']
    """
    hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
    parsed = ipaddress.ip_address(address)
    if not parsed.is_unspecified:
        hosts.add(f"[{parsed}]:{port}" if parsed.version == 6 else f"{parsed}:{port}")
    for name in names:
        lower = name.lower()
        if not _NAME.fullmatch(lower):
            raise UsageError(f"--allow-host {name}: expected a name as browsers call it, e.g. search.example.org")
        hosts |= {lower} if ":" in lower else {lower, f"{lower}:{port}"}
    return frozenset(hosts)


class RequestGuard:
    """An ASGI middleware that lets in who calls the server by one of its names, with a token.

    The token is in the header `Authorization: Bearer ...`. Pages, their scripts and `/health` need none, since a link
    sends no such header: they hold nothing of the collection, and get what they show from /api/.
    """

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that may not pass, hand on every other."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                # What holds a run's page has a policy of its own.
                headers.setdefault("content-security-policy", POLICY)
                headers.setdefault("x-frame-options", "DENY")
                headers.update(HEADERS)
            await send(message)

        _receive.set(receive)
        door, limit, name = self._door, None, ""
        refusal, path = self._refusal(scope), scope["path"]
        closed = (path.startswith(DATA) and path != OPEN) or (path == METRICS and not door.open_metrics)
        needs_token = closed or scope["method"] not in ("GET", "HEAD")
        if refusal is None and door.admission is not None and needs_token:
            scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
            key = hash_of(token) if scheme == "Bearer" else ""
            refusal = None if key in door.admission else refused(401, NO_TOKEN)
            if user := door.admission.get(key):
                scope["user"] = name = user.name
                limit = partial(door.book.reserve, user) if door.book else None
        with limited_by(limit, name):
            await (refusal or self._app)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = ",".join(headers.getlist("host")).lower()
        if host not in self._door.hosts:
            return refused(
                403, "this server is called otherwise: 127.0.0.1 or localhost, with its port, or --allow-host"
            )
        foreign = any(origin not in (f"http://{host}", f"https://{host}") for origin in headers.getlist("origin"))
        if foreign or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return refused(403, "a page of another origin may not ask this server")
        # One that does not say its length is stopped while it is read.
        if int(headers.get("content-length", "0")) > LARGEST_BODY:
            return refused(413, f"the request is larger than {LARGEST_BODY // 1000} kB")
        return None


class ClientGone(Exception):
    """The client of this request has left; nobody gets the reply."""


async def unless_gone(result: asyncio.Future[T]) -> T:
    """What comes of `result`; ClientGone, and `result` is cancelled, as soon as the client of this request has left.

    The request has to be read before. Cancelled itself, it cancels `result` too.
    """

    async def left(receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    gone = asyncio.create_task(left(_receive.get()))
    # How it ends after that is nobody's any more.
    result.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        await asyncio.wait((result, gone), return_when=asyncio.FIRST_COMPLETED)
        if result.done():
            return result.result()
        raise ClientGone
    finally:
        gone.cancel()
        result.cancel()


def refused(status: int, message: str) -> Response:
    """An error as the API says it."""
    return JSONResponse({"error": message}, status)
