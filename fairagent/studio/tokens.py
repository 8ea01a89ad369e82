"""Who may ask a server: whoever has its one token, or the users of a file, each with a budget for language models.

A line for each user is a JSON object: `name`, `sha256` (of the token, in hex), and where it is limited `budget`. A
token is 32 random bytes: nobody guesses one, however fast a hash is. Who reads the file cannot ask the server by it,
but learns who may; so it is its owner's alone, and refused where it is not. It is read when the server starts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, model_validator

from fairagent.errors import BackendUnavailable, DataError, FairAgentError, Fault, UsageError
from fairagent.settings.faults import fault_lines
from fairagent.storage.files import open_private
from fairagent.storage.readers import parse_json
from fairagent.studio.calls import RequestModel

LARGEST_FILE = 1_000_000
"""Bytes: some 5,000 users."""


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
    """A line of the file."""

    name: Annotated[str, Field(max_length=100, pattern=r"^[\w.@+-]+$")]
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    budget: UserBudget | None = None


Admission = Mapping[str, User | None]
"""Who may ask, by the SHA-256 of their token; None: somebody without a name."""


def hash_of(token: str) -> str:
    """What the file holds of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def read_users(path: Path) -> Admission:
    """The users of a file, by their hashes.

    Raises NotRegular and UsageError as `open_private` does, UsageError where there is nobody, DataError with every line
    that is wrong, BackendUnavailable where it cannot be read.
    """
    try:
        with open_private(path) as file:
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
            faults += [Fault(path, number, said) for said in fault_lines(User, error.errors())]
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
