"""The file of users: who may ask this server, until when, and what their requests may spend on language models.

A line for each user is a JSON object: `name`, `sha256` (of the token, in hex), and where they are limited `budget` and
`expires`. A token is 32 random bytes. Nobody guesses one, however fast a hash is: what makes hashes of passwords slow
would only cost each request a fraction of a second. Who reads the file cannot ask the server by it, but learns who may;
so it is its owner's alone, and refused where it is not.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal, Protocol, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from fairagent.extend import (
    BackendUnavailable,
    DataError,
    FairAgentError,
    Fault,
    UsageError,
    logger,
    one_at_a_time,
    open_private,
    parse_json,
    write_whole,
)
from fairagent.studio.calls import RequestModel

LARGEST_FILE = 1_000_000
"""Bytes: some 5,000 users."""
LOOK = 0.5
"""Seconds after which a request looks whether the file is another one."""
WRITING = 10.0
"""Seconds that one command waits for another that writes the file."""
DAY = timedelta(days=1)

log = logger(__name__)


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

    def __str__(self) -> str:
        limits = [
            "" if self.calls is None else f"{self.calls:,} calls",
            "" if self.tokens is None else f"{self.tokens:,} tokens",
            "" if self.dollars is None else f"${self.dollars:g}",
        ]
        return f"{', '.join(filter(None, limits))} {'a day' if self.per == 'day' else 'in total'}"


def _of_one_word(name: str) -> str:
    if not name or not all(sign.isalnum() or sign in "._@+-" for sign in name):
        raise ValueError("is letters, digits and any of . _ @ + -")
    return name


class User(RequestModel):
    """A line of the file."""

    name: Annotated[str, Field(max_length=100), AfterValidator(_of_one_word)]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    budget: UserBudget | None = None
    expires: date | None = None
    """The last day on which the token holds, in UTC."""

    def has_expired(self, now: float) -> bool:
        """Whether the token holds no more at this time, in seconds since 1970."""
        return self.expires is not None and datetime.fromtimestamp(now, UTC).date() > self.expires


def hash_of(token: str) -> str:
    """What the file holds of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def read_users(path: Path) -> list[User]:
    """The users of a file.

    Raises NotRegular and UsageError as `open_private` does, DataError with every line that is wrong, BackendUnavailable
    where it cannot be read.
    """
    try:
        with open_private(path) as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        if isinstance(error, FairAgentError):
            raise
        raise BackendUnavailable(
            f"the users at {path} cannot be read ({error.strerror}); `fairagent token add NAME` begins such a file"
        ) from None
    if len(data) > LARGEST_FILE:
        raise DataError(f"{path} is larger than {LARGEST_FILE // 1000} kB, and no file of users")
    users, faults = [], []
    names: dict[str, int] = {}
    hashes: dict[str, int] = {}
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            user = User.model_validate(parse_json(line))
        except ValidationError as error:
            faults += [Fault(path, number, f"{'.'.join(map(str, one['loc']))}: {one['msg']}") for one in error.errors()]
        except ValueError as error:
            faults.append(Fault(path, number, str(error)))
        else:
            for what, seen, key in (("user", names, user.name), ("token", hashes, user.sha256)):
                if seen.setdefault(key, number) != number:
                    faults.append(Fault(path, number, f"the {what} of line {seen[key]} again"))
            users.append(user)
    if faults:
        raise DataError("the file of users is wrong", faults)
    return users


def write_users(path: Path, change: Callable[[list[User]], Sequence[User]]) -> None:
    """Put what `change` makes of the users into the file, at once; a file that is not there has none."""
    with one_at_a_time(path.with_name(f".{path.name}.lock"), WRITING):
        users = read_users(path) if os.path.lexists(path) else []
        lines = [user.model_dump_json(exclude_none=True) + "\n" for user in change(users)]
        write_whole(path, "".join(lines), private=True)


def add_user(path: Path, name: str, budget: UserBudget | None = None, expires: date | None = None) -> str:
    """Add a user; the token, which is kept nowhere. UsageError where there is one of that name."""
    token = secrets.token_urlsafe(32)
    try:
        new = User(name=name, sha256=hash_of(token), budget=budget, expires=expires)
    except ValidationError as error:
        raise UsageError(f"{name!r} cannot be a user's name: {error.errors()[0]['msg']}") from None

    def added(users: list[User]) -> list[User]:
        if any(user.name == name for user in users):
            raise UsageError(f"{path} has a user {name} already; `fairagent token remove {name}` ends that token")
        return [*users, new]

    write_users(path, added)
    return token


def remove_user(path: Path, name: str) -> None:
    """Remove a user, whose token holds no more from then on; UsageError where there is none of that name."""

    def others(users: list[User]) -> list[User]:
        if all(user.name != name for user in users):
            raise UsageError(f"{path} has no user {name}; it has {', '.join(user.name for user in users) or 'none'}")
        return [user for user in users if user.name != name]

    write_users(path, others)


class TokenRefused(Exception):
    """A token that does not hold; `status` is the reply's, and the text says why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Admission(Protocol):
    """Who may ask."""

    def user(self, token: str) -> User | None:
        """Whose token it is, None where users have no names; raises `TokenRefused`."""


class OneToken:
    """One token for whoever has it, which ends with the server."""

    def __init__(self, token: str) -> None:
        self._hash = hash_of(token)

    def user(self, token: str) -> None:
        """Nobody by name; `TokenRefused` for another token."""
        if not secrets.compare_digest(hash_of(token), self._hash):
            raise TokenRefused(401, "no token, or a wrong one: open the address that `fairagent serve` has printed")


class UserFile:
    """The users of a file, which is read again within half a second after it has changed.

    Where it cannot be read any more, nobody is let in. Raises what `read_users` does, UsageError where there is nobody.
    """

    def __init__(
        self, path: Path, clock: Callable[[], float] = time.monotonic, now: Callable[[], float] = time.time
    ) -> None:
        self._path, self._clock, self._now = path, clock, now
        self._lock = threading.Lock()
        self._looked = clock()
        self._stamp = self._stamp_now()
        self._users = self._read()
        self._broken = False
        if not self._users:
            raise UsageError(f"{path} has no users; `fairagent token add NAME --file {path}` adds one")

    def _read(self) -> dict[str, User]:
        return {user.sha256: user for user in read_users(self._path)}

    def _stamp_now(self) -> tuple[int, ...]:
        try:
            status = self._path.lstat()
        except OSError:
            return ()
        return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_mode, status.st_uid

    def _look(self) -> None:
        with self._lock:
            if self._clock() - self._looked < LOOK:
                return
            self._looked, stamp = self._clock(), self._stamp_now()
            if stamp == self._stamp:
                return
            # Before it is read: what is written meanwhile is read the next time.
            self._stamp = stamp
            try:
                self._users, self._broken = self._read(), False
            except FairAgentError as error:
                log.error("nobody is let in: %s", error)
                self._users, self._broken = {}, True

    def user(self, token: str) -> User:
        """The user of this token; `TokenRefused` where there is none, or it has expired, or the file is broken."""
        self._look()
        user = self._users.get(hash_of(token))
        if self._broken:
            raise TokenRefused(503, "the file of users cannot be used; where the server was started stands why")
        if user is None:
            raise TokenRefused(401, "no token, or one that holds no more: ask whoever runs this server for one")
        if user.has_expired(self._now()):
            raise TokenRefused(401, f"the token of {user.name} held until {user.expires}: ask whoever runs this server")
        return user
